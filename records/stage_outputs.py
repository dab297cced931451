"""Validation of what user-defined classes return; errors name the class."""

from collections.abc import Iterable, Mapping, Sequence

from records.errors import UserError


def require_one_each(source: str, outputs: object, inputs: Sequence[object], noun: str) -> list:
    """Return the outputs of a custom class as a list, one per input (``noun``)."""
    if not isinstance(outputs, Iterable) or isinstance(outputs, str | bytes | Mapping):
        raise UserError(
            f"{source}: returned a {type(outputs).__name__}; return a list, one entry per {noun}"
        )
    entries = list(outputs)
    if len(entries) != len(inputs):
        raise UserError(
            f"{source}: returned {len(entries)} entries for {len(inputs)}; return one per {noun}"
        )
    return entries


def class_path_of(stage: object) -> str:
    """Return the import path of a function or of a stage's class."""
    kind = stage if hasattr(stage, "__qualname__") else type(stage)
    return f"{kind.__module__}.{kind.__qualname__}"
