"""What a run holds: the language models, prompts and caches of its stages, as they themselves say.

A stage with a method ``holds`` names what it is made of; a stage without one, such as a user's own
function, holds nothing that a run would have to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from eval.models.chat import CachedWriter
from eval.prompting.prompts import PromptFile


@runtime_checkable
class Holds(Protocol):
    """Whatever is made of other parts."""

    def holds(self) -> Sequence[object]:
        """The parts that it is made of: stages, models, prompts. ``None`` is a part left out."""


@runtime_checkable
class KeepsAnswers(Protocol):
    """A model or a searcher that can keep its answers, so that nothing is asked twice."""

    def keep_answers_in(self, folder: Path) -> None:
        """Keep them in this folder, unless it was told another place."""


@runtime_checkable
class Identified(Protocol):
    """A model, a searcher or a parser that says what decides its answers, without secrets."""

    identity: dict[str, Any]


def held(root: object) -> list[object]:
    """``root`` and all that it holds, each once, a part before its own parts.

    Args:
        root: what says what it ``holds``, or a list of such.
    """
    return list(_held(root, set()))


def writers(root: object) -> list[CachedWriter]:
    """The language models that are held."""
    return [part for part in held(root) if isinstance(part, CachedWriter)]


def prompts(root: object) -> dict[str, str]:
    """SHA-256 of the prompts and banks of examples that are held; they decide the results.

    Several stages have a prompt of the same name, so that the folders above it are in the key;
    where these are the same too, of other texts, the whole path.
    """
    found: dict[str, str] = {}
    for file in (part for part in held(root) if isinstance(part, PromptFile)):
        key = "/".join(file.path.parts[-3:])
        if found.setdefault(key, file.sha256) != file.sha256:
            found[file.path.as_posix()] = file.sha256
    return found


def identities(root: object) -> list[dict[str, Any]]:
    """What the models and searchers that are held say they are, each once."""
    found = [part.identity for part in held(root) if isinstance(part, Identified)]
    return [one for place, one in enumerate(found) if one not in found[:place]]


def keep_answers(root: object, folder: Path) -> None:
    """Give models and searchers without a cache one in the run's folder: nothing is asked twice."""
    for part in held(root):
        if isinstance(part, KeepsAnswers):
            part.keep_answers_in(folder)


def _held(part: object, seen: set[int]) -> Iterator[object]:
    if isinstance(part, list | tuple):
        inner: Sequence[object] = part
    elif part is None or id(part) in seen:
        return
    else:
        seen.add(id(part))
        yield part
        inner = part.holds() if isinstance(part, Holds) else ()
    for one in inner:
        yield from _held(one, seen)
