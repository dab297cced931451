"""What a pipeline holds: its language models, its prompts, wherever in its stages they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, TypeVar

from pydantic import BaseModel

from eval.models.chat import CachedWriter
from eval.prompting.prompts import PromptFile

T = TypeVar("T")

_PLAIN = (str, bytes, int, float, type, BaseModel)
# Nothing of ours lies in these, and they may be large.
_FOREIGN = ("torch", "numpy", "transformers", "tokenizers", "bm25s", "sqlite3", "scipy")


def parts(root: object, kind: type[T]) -> list[T]:
    """Every object of ``kind`` that ``root`` holds, each once, in the order of the attributes."""
    return [part for part in _walk(root, set()) if isinstance(part, kind)]


def writers(root: object) -> list[CachedWriter]:
    """The language models of a pipeline."""
    return parts(root, CachedWriter)


def prompts(root: object) -> dict[str, str]:
    """SHA-256 of a pipeline's prompts and banks of examples; they decide its results.

    Several stages have a prompt of the same name, so that the folders above it are in the key.
    """
    return {"/".join(p.path.parts[-3:]): p.sha256 for p in parts(root, PromptFile)}


def identities(root: object) -> list[dict[str, Any]]:
    """What the models and searchers of a pipeline say they are, where they say it, each once."""
    found = [part.identity for part in parts(root, object) if hasattr(type(part), "identity")]
    return [one for place, one in enumerate(found) if one not in found[:place]]


def replaced(root: Any, kind: type[T], make: Callable[[T], object]) -> Any:
    """``root`` with other parts in the place of those of ``kind``; ``root`` itself stays as it is.

    Args:
        make: gives the new part; called once for each old one.
    """
    made: dict[int, Any] = {}

    def new(value: Any) -> Any:
        if id(value) in made:
            return made[id(value)]
        if isinstance(value, kind):
            made[id(value)] = make(value)
        elif isinstance(value, dict):
            made[id(value)] = {key: new(item) for key, item in value.items()}
        elif isinstance(value, list | tuple) and type(value) in (list, tuple):
            made[id(value)] = type(value)(new(item) for item in value)
        elif parts(value, kind):
            made[id(value)] = twin = copy(value)
            vars(twin).update({name: new(item) for name, item in vars(value).items()})
        else:
            return value
        return made[id(value)]

    return new(root)


def _walk(value: object, seen: set[int]) -> Iterator[object]:
    if id(value) in seen or value is None or isinstance(value, _PLAIN):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    elif type(value).__module__.split(".")[0] in _FOREIGN:
        inner = []
    else:
        inner = list(getattr(value, "__dict__", {}).values())
    for item in inner:
        yield from _walk(item, seen)
