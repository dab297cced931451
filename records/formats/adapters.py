"""Conversion of other projects' rows, recognised by their field names, into records.

Each module has readers that return ``None`` for rows of other projects. Rows in our own format are
unchanged.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from records.formats import ambigbio
from records.formats.documents import to_documents
from records.formats.pairs import pairs_of, set_of
from records.formats.row_fields import to_generation
from records.formats.wice import to_lss
from records.types import Document, Generation, LssExample, Record, RelationPair


def _to_relations(row: dict, number: int) -> dict | list[dict]:
    if "premise" in row:
        return row
    name = "wice" if {"claim_tokens", "evidence"} <= row.keys() else set_of(row)
    if name in (None, "lss"):
        return row
    fields = ("premise", "hypothesis", "label", "group")
    return [
        {field: getattr(pair, field) for field in fields} | {"source": name}
        for pair in pairs_of(row, name)
    ]


_ADAPTERS: dict[type[Record], Callable[[dict, int], dict | list[dict]]] = {
    Document: to_documents,
    Generation: lambda row, number: to_generation(row),
    RelationPair: _to_relations,
    LssExample: lambda row, number: to_lss(row),
}


@contextmanager
def report_malformed_row(project: str = "its project") -> Iterator[None]:
    """Convert lookup and type errors of the block into a ``ValueError`` that names the field."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: field required") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"record: does not match the format of {project} ({error})") from None


def adapt(row: dict, kind: type[Record], number: int) -> list[dict]:
    """Convert ``row`` to one or more rows of ``kind`` if it is a known project's row.

    Raises:
        ValueError: the row is recognised but invalid; the message starts with the field.
    """
    adapter = next((_ADAPTERS[base] for base in kind.__mro__ if base in _ADAPTERS), None)
    if adapter is None:
        return [row]
    with report_malformed_row():
        adapted = adapter(row, number)
    return adapted if isinstance(adapted, list) else [adapted]


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
