"""The models, prompts and caches of a run's stages, found by one walk over their attributes.

The walk enters lists, tuples and dicts, and the attributes of objects whose class is in this
repository or in the user's code. Of an installed package (a module below ``site-packages``) it
enters stages, which are called with ``documents``, objects that derive from a class of this
repository, and all objects below these whose class is in the same package. It does not enter
records, nor other objects of libraries, such as a tokenizer or an array.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from components.code import OUR_PACKAGES
from components.identity import identity
from eval.models.chat import CachedWriter
from eval.models.engine import Engine
from eval.prompting.prompts import PromptFile


@runtime_checkable
class KeepsAnswers(Protocol):
    """A model or a searcher that can cache its answers."""

    def keep_answers_in(self, folder: Path) -> None:
        """Cache answers in this folder, unless another cache is configured."""


class Parts(list[object]):
    """The result of :func:`find_parts`, which returns it unchanged when called again."""


def find_parts(root: object) -> Parts:
    """Return ``root`` and all objects reachable from it, each once, parents first."""
    return root if isinstance(root, Parts) else Parts(_walk(root, set(), set()))


def find_writers(root: object) -> list[CachedWriter]:
    """Return the language models among the parts."""
    return [part for part in find_parts(root) if isinstance(part, CachedWriter)]


def hash_prompts(root: object) -> dict[str, str]:
    """Return SHA-256 of the parts' prompts and example files, which decide the results.

    Several stages have a prompt of the same name, so the key is the file name with two folders
    above it, or the whole path if that is ambiguous too.
    """
    hashes: dict[str, str] = {}
    for file in (part for part in find_parts(root) if isinstance(part, PromptFile)):
        key = "/".join(file.path.parts[-3:])
        if hashes.setdefault(key, file.sha256) != file.sha256:
            hashes[file.path.as_posix()] = file.sha256
    return hashes


def find_identities(root: object) -> list[dict[str, Any]]:
    """Return the distinct identities of the models, searchers and parsers among the parts."""
    kinds = (Engine, CachedWriter)
    described = [
        identity(part)
        for part in find_parts(root)
        if isinstance(part, kinds)
        or (callable(part) and hasattr(part, "search"))  # a retriever that searches
        or isinstance(getattr(part, "identity", None), dict)
    ]
    return [model for i, model in enumerate(described) if model not in described[:i]]


def describe_options(root: object) -> list[dict[str, Any]]:
    """Return the class and the constructor's plain options of each part, as a configuration."""
    described = []
    for part in find_parts(root):
        names = vars(part).keys() & signature(type(part)).parameters.keys()
        options = {name: getattr(part, name) for name in sorted(names)}
        plain = {name: value for name, value in options.items() if _is_plain(value)}
        described.append({"class_path": type(part).__qualname__, "init_args": plain})
    return described


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple | dict):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, str | int | float)


def add_answer_caches(root: object, folder: Path) -> None:
    """Let models and searchers without a cache use one in the run's folder."""
    for part in find_parts(root):
        if isinstance(part, KeepsAnswers):
            part.keep_answers_in(folder)


def _walk(part: object, seen: set[int], packages: set[str]) -> Iterator[object]:
    inner: Iterable[object] = ()
    if isinstance(part, list | tuple | dict):
        inner = part.values() if isinstance(part, dict) else part
    elif id(part) not in seen and _is_entered(type(part), frozenset(packages)):
        seen.add(id(part))
        packages.add(_package(type(part)))
        yield part
        inner = list(getattr(part, "__dict__", {}).values())
    for item in inner:
        yield from _walk(item, seen, packages)


@cache
def _is_entered(kind: type, packages: frozenset[str]) -> bool:
    if issubclass(kind, BaseModel | ModuleType | FunctionType | type):
        return False
    if _package(kind) in packages or OUR_PACKAGES.intersection(map(_package, kind.__mro__)):
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    is_library = _package(kind) in sys.stdlib_module_names or "-packages" in file
    return not is_library or _is_stage(kind)


def _is_stage(kind: type) -> bool:
    code = getattr(kind.__call__, "__code__", None)
    return code is not None and "documents" in code.co_varnames[: code.co_argcount]


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
