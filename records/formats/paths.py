"""The path language of format declarations.

- ``answer.text``: a column, then a field of its object; a list gives the field of each item;
- ``annotations.0``: the item of a list; ``sentences.*``: all values of an object or a list;
- ``#fact``, ``@fact``: the place and the key of a loop's item, also as ``labels.#fact``;
- ``row``: the whole row; ``=normal``: the text "normal";
- ``doc | hash``: the value after a conversion (``conversions.py``);
- ``label | {1: supported}``: the value that a table has for it, else unchanged (``"*"``: for all
  others);
- ``title + text``: the texts after each other;
- a list of paths: the first value that is not empty, else the first that exists.

A block of paths with ``each: {sentence: annotations, fact: sentence.facts}`` is a list with one
entry per item of the nested loops; a later loop may use the items of an earlier one.
"""

from collections.abc import Callable, Iterator, Mapping

import yaml

from records.formats.conversions import CONVERSIONS
from records.formats.label_words import plain_word

Scope = Mapping[str, object]
Evaluate = Callable[[Scope], object]


def compile_block(block: Mapping) -> Evaluate:
    """Compile a block to a function of a row; fields without a value are missing."""
    loops = [(name, compile_path(path)) for name, path in block.get("each", {}).items()]
    fields = {
        name: compile_block(value) if isinstance(value, Mapping) else compile_path(value)
        for name, value in block.items()
        if name != "each"
    }

    def evaluate(scope: Scope) -> dict | list[dict] | None:
        if loops and loops[0][1](scope) is None:
            return None
        rows = [
            {name: value for name, field in fields.items() if (value := field(inner)) is not None}
            for inner in _loop(loops, scope)
        ]
        return rows if loops else rows[0]

    return evaluate


def compile_path(path: str | list) -> Evaluate:
    """Compile a path, or a list of alternatives, to a function of a row."""
    if isinstance(path, list):
        alternatives = [compile_path(alternative) for alternative in path]
        return lambda scope: _first(alternatives, scope)
    if path.startswith("="):
        return lambda scope: path[1:]
    if " + " in path:
        texts = [compile_path(part) for part in path.split(" + ")]
        return lambda scope: " ".join(v.strip() for text in texts if (v := text(scope)))
    source, *names = path.split(" | ")
    parts = source.split(".")
    conversions = [_conversion(name) for name in names]

    def evaluate(scope: Scope) -> object:
        value = scope[source] if source in scope else _follow(scope, parts, scope)
        for convert in conversions:
            value = convert(value)
        return value

    return evaluate


def columns_of(path: str | list | Mapping) -> set[str]:
    """Return the columns that a path or block reads."""
    if isinstance(path, Mapping):
        loops = path.get("each", {})
        return {c for value in (*loops.values(), *path.values()) for c in columns_of(value)} - set(
            loops
        )
    if isinstance(path, list):
        return {column for alternative in path for column in columns_of(alternative)}
    if " + " in path:
        return columns_of(path.split(" + "))
    source = path.partition(" | ")[0]
    return {source, source.partition(".")[0]} if path[:1] not in ("=", "#", "@") else set()


def _loop(loops: list[tuple[str, Evaluate]], scope: Scope) -> Iterator[Scope]:
    if not loops:
        yield scope
        return
    (name, path), *inner = loops
    items = path(scope)
    entries = items.items() if isinstance(items, dict) else enumerate(items or ())
    for place, (key, item) in enumerate(entries):
        if item is None:  # in tables, systems that did not answer
            continue
        yield from _loop(inner, {**scope, name: item, f"#{name}": place, f"@{name}": key})


def _first(alternatives: list[Evaluate], scope: Scope) -> object:
    first = None
    for path in alternatives:
        value = path(scope)
        if value not in (None, "", [], {}):
            return value
        first = value if first is None else first
    return first


def _follow(value: object, parts: list[str], scope: Scope) -> object:
    for index, part in enumerate(parts):
        key = scope[part] if part.startswith("#") else int(part) if part.isdigit() else part
        if part == "*":
            value = list(value.values()) if isinstance(value, dict) else value
        elif isinstance(value, list) and isinstance(key, int):
            value = value[key]
        elif isinstance(value, list):
            return _flattened(_follow(item, parts[index:], scope) for item in value)
        elif isinstance(value, Mapping):
            value = value.get(key)
        else:
            return None
    return value


def _flattened(values: Iterator[object]) -> list:
    listed = [value if isinstance(value, list) else [value] for value in values]
    return [item for items in listed for item in items if item is not None]


def _conversion(name: str) -> Callable[[object], object]:
    if not name.startswith("{"):
        return CONVERSIONS[name]
    table = {plain_word(word): meaning for word, meaning in yaml.safe_load(name).items()}
    return lambda value: table.get(plain_word(value), table.get("*", value))
