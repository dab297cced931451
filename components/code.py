"""The version of our code: the commit, and a hash of the modules that a result depends on.

The hash covers the tokens of all modules that the given ones import, directly or not, wherever in
a module the import stands, and the YAML files next to them. It depends neither on comments,
docstrings and line breaks nor on what a process has imported.
"""

import hashlib
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cli.shipped import ROOT

OUR_PACKAGES = frozenset(
    {"cli", "clients", "components", "data_builders", "eval", "records", "train"}
)
# Draws pages and computes no result.
_DRAWING = "eval.report"
_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


class _Module(NamedTuple):
    digest: str
    imports: tuple[str, ...]


def describe_code(modules: Iterable[str]) -> dict[str, str | bool | None]:
    """Return the commit, whether our packages differ from it, and the hash of the modules."""
    return _commit() | {"sha256": code_sha256(modules)}


def code_sha256(modules: Iterable[str]) -> str:
    """Return a hash of the tokens of modules and of all modules of ours that they import."""
    files = {name: _loaded_file(name) for name in modules}
    todo = [(name, path) for name, path in files.items() if path is not None]
    digests: dict[str, str] = {}
    while todo:
        name, path = todo.pop()
        if name in digests or f"{name}.".startswith(f"{_DRAWING}."):
            continue
        digests[name], imports = _read_module(path, path.stat().st_mtime_ns)
        for imported in imports:
            file = _file_of(imported, path)
            todo += [] if file is None else [(imported, file)]
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()


def modules_of(described: object) -> Iterator[str]:
    """Yield the modules of the classes in an object's ``identity``."""
    if isinstance(described, dict):
        if isinstance(path := described.get("class"), str):
            yield path.rpartition(".")[0]
        described = list(described.values())
    if isinstance(described, list):
        for item in described:
            yield from modules_of(item)


def _loaded_file(name: str) -> Path | None:
    file = getattr(sys.modules.get(name), "__file__", None)
    path = Path(file).resolve() if file else _file_of(name, ROOT / "components")
    is_library = path is None or "site-packages" in path.parts or path.suffix != ".py"
    return None if is_library else path


def _file_of(name: str, importer: Path) -> Path | None:
    top, *rest = name.split(".")
    is_ours = importer.is_relative_to(ROOT) and importer.relative_to(ROOT).parts[0] in OUR_PACKAGES
    if is_ours and top not in OUR_PACKAGES:
        return None
    base = (ROOT if top in OUR_PACKAGES else importer.parent).joinpath(top, *rest)
    paths = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


@cache
def _read_module(path: Path, _: int) -> _Module:
    digest = hashlib.sha256()
    imports: list[str] = []
    with path.open("rb") as file:
        for statement in _statements(tokenize.tokenize(file.readline)):
            if len(statement) == 1 and statement[0][:1] in "\"'rR":
                continue  # a docstring
            digest.update(repr(statement).encode())
            imports += _imported(statement)
    for table in sorted(path.parent.glob("*.yaml")):
        digest.update(table.read_bytes())
    return _Module(digest.hexdigest(), tuple(dict.fromkeys(imports)))


def _statements(tokens: Iterable[tokenize.TokenInfo]) -> Iterator[list[str]]:
    statement: list[str] = []
    for token in tokens:
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            yield [tokenize.tok_name[token.type]]
        elif token.type not in _LAYOUT:
            statement.append(token.string)
        elif token.type == tokenize.NEWLINE:
            yield statement
            statement = []


def _imported(statement: list[str]) -> Iterator[str]:
    if statement[0] == "import":
        names = " ".join(statement[1:]).replace(" . ", ".").split(" , ")
        yield from (name.partition(" as ")[0] for name in names)
    elif statement[0] == "from" and "import" in statement:
        at = statement.index("import")
        module = "".join(statement[1:at])
        yield module
        yield from (f"{module}.{word}" for word in statement[at + 1 :] if word.isidentifier())


@cache
def _commit() -> dict[str, str | bool | None]:
    try:
        changed = bool(_git("status", "--porcelain", "--untracked-files=no", "--", *OUR_PACKAGES))
        return {"commit": _git("rev-parse", "HEAD"), "changed": changed}
    except (OSError, subprocess.CalledProcessError):  # a copy without its history
        return {"commit": None, "changed": None}


def time_of_commit(*paths: str) -> int | None:
    """Seconds since 1970 of the last commit that changed these files; ``None`` without history."""
    try:
        return int(_git("log", "-1", "--format=%ct", "--", *paths) or 0) or None
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
