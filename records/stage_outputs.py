"""What a class of a user's own gave for what it was asked; a fault names the class."""

from collections.abc import Iterable, Mapping, Sequence

from records.errors import UserError


def require_one_each(who: str, given: object, of: Sequence[object], what: str) -> list:
    """What a user's code gave, as a list with one entry for each of those it was asked about.

    Args:
        who: what gave it, as the line names it.
        given: any iterable.
        of: what it was asked about.
        what: one of them, in words.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise UserError(f"{who}: gave a {type(given).__name__}; give a list, one entry a {what}")
    found = list(given)
    if len(found) != len(of):
        raise UserError(f"{who}: gave {len(found)} entries for {len(of)}; give one a {what}")
    return found


def class_path_of(stage: object) -> str:
    """The path of a stage's class, or of a function."""
    kind = stage if hasattr(stage, "__qualname__") else type(stage)
    return f"{kind.__module__}.{kind.__qualname__}"
