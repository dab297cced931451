"""Conversion of other projects' rows, recognised by their field names, into records.

Each module has readers that return ``None`` for rows of other projects. Rows in our own format are
unchanged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from records.formats import ambigbio
from records.formats.columns import FileReading, TrackedRow
from records.formats.documents import to_documents
from records.formats.pairs import RELATIONS, pairs_of, set_of
from records.formats.row_fields import plain_text, to_generation
from records.formats.wice import to_lss
from records.types import (
    Document,
    Generation,
    LssExample,
    Preference,
    Record,
    RelationPair,
    UnjudgedRelationPair,
    UnliPair,
)


def _to_relations(row: dict, number: int, reading: FileReading) -> list[dict]:
    if "premise" in row:
        label = row.get("label")
        if isinstance(label, str | int) and label not in RELATIONS and "hypothesis" in row:
            fields = {name: row[name] for name in ("premise", "hypothesis", "label")}
            row = row | {"label": pairs_of(fields, "hub")[0].label}
        return reading.note("ours", row, set(), [row])
    name = "wice" if {"claim_tokens", "evidence"} <= row.keys() else set_of(row)
    if name in (None, "lss"):
        return reading.note("ours", row, set(), [row])
    fields = ("premise", "hypothesis", "label", "group")
    tracked = TrackedRow(row)
    pairs = [
        {field: getattr(pair, field) for field in fields} | {"source": name}
        for pair in pairs_of(tracked, name)
    ]
    return reading.note(name, row, tracked.used, pairs)


def to_preference(row: dict) -> dict:
    """Convert chat messages, as TRL has them, to one user message and two answers.

    Raises:
        ValueError: the row has other messages, which the prompt cannot hold.
    """
    remedy = "which the prompt, one user message, cannot hold; drop the row"
    for name in ("system", "history"):
        if row.get(name):
            raise ValueError(f"{name}: has earlier messages, {remedy}")
    texts, prompt = {}, row.get("prompt")
    for name in ("chosen", "rejected"):
        if not isinstance(row.get(name), list):
            continue
        *context, answer = row[name]
        if isinstance(prompt, list) and context[: len(prompt)] != prompt:
            context = [*prompt, *context]
        roles = [message["role"] for message in context]
        if answer["role"] != "assistant" or roles not in ([], ["user"]):
            all_roles = ", ".join([*roles, answer["role"]])
            raise ValueError(f"{name}: has messages of the roles {all_roles}, {remedy}")
        texts[name] = answer["content"]
        for message in context:
            if texts.setdefault("prompt", message["content"]) != message["content"]:
                raise ValueError(f"{name}: answers another prompt than chosen; drop the row")
    if isinstance(prompt, list):
        if [message["role"] for message in prompt] != ["user"]:
            raise ValueError(f"prompt: has earlier messages, {remedy}")
        texts["prompt"] = prompt[0]["content"]
    elif isinstance(prompt, str) and texts.get("prompt", prompt).strip() != prompt.strip():
        raise ValueError("prompt: differs from the user message of chosen; drop the row")
    return row | texts


def _adapted(
    name: str, convert: Callable[[dict], dict]
) -> Callable[[dict, int, FileReading], list[dict]]:
    def adapter(row: dict, number: int, reading: FileReading) -> list[dict]:
        tracked = TrackedRow(row)
        converted = convert(tracked)
        is_ours = converted is tracked
        return reading.note("ours" if is_ours else name, row, tracked.used, [converted])

    return adapter


def _unjudged(row: dict, number: int, reading: FileReading) -> list[dict]:
    # The label of a row of ours is not read: it may be of another task.
    if "premise" in row:
        return reading.note("ours", row, set(), [row])
    return _to_relations(row, number, reading)


_ADAPTERS: dict[type[Record], Callable[[dict, int, FileReading], list[dict]]] = {
    Document: to_documents,
    Generation: _adapted("texts", to_generation),
    UnjudgedRelationPair: _unjudged,
    RelationPair: _to_relations,
    UnliPair: _adapted("pairs", lambda row: row),
    LssExample: _adapted("wice", to_lss),
    Preference: _adapted("chat", to_preference),
}


def rename(row: dict, fields: Mapping[str, str], columns: Sequence[str]) -> dict:
    """Rename a row's fields to ours.

    Args:
        fields: our field to the row's, or to a path such as ``answer.text``; a path into a list
            selects the name in each of its items.
        columns: all names of the row, also of empty cells.
    """
    named = {}
    for field, path in fields.items():
        names = [path] if path in columns else path.split(".")
        if names[0] not in columns:
            raise ValueError(f"{path}: no such field (--fields); the row has {', '.join(columns)}")
        value: object = row
        for name in names:
            value = [item.get(name) for item in value] if isinstance(value, list) else value
            value = value.get(name) if isinstance(value, dict) else value
        named[field] = value
    used = {path.partition(".")[0] for path in fields.values()} | {"output", "response"}
    named = {field: value for field, value in named.items() if value is not None}
    return {name: value for name, value in row.items() if name not in used} | named


@contextmanager
def report_malformed_row(project: str = "its project") -> Iterator[None]:
    """Convert lookup and type errors of the block into a ``ValueError`` that names the field."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: field required") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"record: does not match the format of {project} ({error})") from None


def adapt(
    row: dict, kind: type[Record], number: int, reading: FileReading, has_text: bool = False
) -> list[dict]:
    """Convert ``row`` to one or more rows of ``kind`` if it is a known project's row.

    With ``has_text`` the row's ``text`` was named by the user, and no project's format is tried.

    Raises:
        ValueError: the row is recognised but invalid; the message starts with the field.
    """
    adapter = next((_ADAPTERS[base] for base in kind.__mro__ if base in _ADAPTERS), None)
    if adapter is None:
        return reading.note("ours", row, set(), [row])
    with report_malformed_row():
        if has_text:
            return to_documents(row, number, reading, {"texts": plain_text})
        return adapter(reading.relabel(row), number, reading)


def rows_of_file(content: object) -> list:
    """Return the rows of a JSON file: its list, a known project's rows, or the object itself.

    Known projects: SAFE (``per_prompt_data``), FaithBench (``samples``), ALCE and D-FActScore.
    """
    if not isinstance(content, dict):
        return content if isinstance(content, list) else [content]
    with report_malformed_row():
        if isinstance(content.get("per_prompt_data"), list):
            sides = {name: content[name] for name in ("side_1", "side_2") if name in content}
            return [row | sides for row in content["per_prompt_data"]]
        if isinstance(content.get("samples"), list):
            return content["samples"]
        rows = ambigbio.rows_of_object(content)
    return [content] if rows is None else rows
