"""The models, prompts and caches of a run's stages: one walk over their attributes.

The walk enters lists, tuples and dicts, and the attributes of objects of this repository's and of
a user's own classes. It does not enter records, nor objects of the standard library and of
installed packages (modules below ``site-packages``), such as a tokenizer or an array.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from eval.models.chat import CachedWriter
from eval.prompting.prompts import PromptFile
from eval.run.provenance import OUR_PACKAGES


@runtime_checkable
class KeepsAnswers(Protocol):
    """A model or a searcher that can keep its answers, so that nothing is asked twice."""

    def keep_answers_in(self, folder: Path) -> None:
        """Keep them in this folder, unless it was told another place."""


class Parts(list[object]):
    """What :func:`held` returned: taken as it is, also when parts have loaded more since."""


def find_parts(root: object) -> Parts:
    """``root`` and all that its attributes lead to, each once, a part before its own parts.

    Args:
        root: a stage, a pipeline or an experiment, or a list of such; or :class:`Parts`.
    """
    return root if isinstance(root, Parts) else Parts(_held(root, set()))


def find_writers(root: object) -> list[CachedWriter]:
    """The language models that are held."""
    return [part for part in find_parts(root) if isinstance(part, CachedWriter)]


def hash_prompts(root: object) -> dict[str, str]:
    """SHA-256 of the prompts and banks of examples that are held; they decide the results.

    Several stages have a prompt of the same name, so that the folders above it are in the key;
    where these are the same too, of other texts, the whole path.
    """
    found: dict[str, str] = {}
    for file in (part for part in find_parts(root) if isinstance(part, PromptFile)):
        key = "/".join(file.path.parts[-3:])
        if found.setdefault(key, file.sha256) != file.sha256:
            found[file.path.as_posix()] = file.sha256
    return found


def find_identities(root: object) -> list[dict[str, Any]]:
    """The ``identity`` of each model, searcher and parser that is held: what decides answers."""
    values = [getattr(part, "identity", None) for part in find_parts(root)]
    dicts = [identity for identity in values if isinstance(identity, dict)]
    return [identity for place, identity in enumerate(dicts) if identity not in dicts[:place]]


def add_answer_caches(root: object, folder: Path) -> None:
    """Give models and searchers without a cache one in the run's folder: nothing is asked twice."""
    for part in find_parts(root):
        if isinstance(part, KeepsAnswers):
            part.keep_answers_in(folder)


def _held(part: object, seen: set[int]) -> Iterator[object]:
    inner: Iterable[object] = ()
    if isinstance(part, list | tuple | dict):
        inner = part.values() if isinstance(part, dict) else part
    elif _is_entered(type(part)) and id(part) not in seen:
        seen.add(id(part))
        yield part
        inner = list(getattr(part, "__dict__", {}).values())
    for item in inner:
        yield from _held(item, seen)


@cache
def _is_entered(kind: type) -> bool:
    if issubclass(kind, BaseModel | ModuleType | FunctionType | type):
        return False
    package = kind.__module__.partition(".")[0]
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    is_library = package in sys.stdlib_module_names or "-packages" in file
    return package in OUR_PACKAGES or not is_library
