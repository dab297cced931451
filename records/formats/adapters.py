"""Rows of other projects, recognised by their published field names and turned into our records.

One file a project or set: a function of it answers ``None`` to a row that is not the project's.
Rows in our own format pass untouched.
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
    """Turn what the block's reading of a row raises into a ``ValueError`` that names the field."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: field required") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"record: not as {project} writes it ({error})") from None


def adapt(row: dict, kind: type[Record], number: int) -> list[dict]:
    """Give ``row`` the field names of ``kind`` if it is a known project's row.

    Returns:
        One row; for a project that keeps many records in a row, as many as there are.

    Raises:
        ValueError: the row is recognised but incomplete or inconsistent; the message starts with
            the field.
    """
    adapter = next((_ADAPTERS[base] for base in kind.__mro__ if base in _ADAPTERS), None)
    if adapter is None:
        return [row]
    with report_malformed_row():
        adapted = adapter(row, number)
    return adapted if isinstance(adapted, list) else [adapted]


def rows_of_file(whole: object) -> list:
    """The rows of a JSON file's value: a list's, else the object, unless it holds a project's rows.

    These are SAFE's results (``per_prompt_data``), FaithBench's batches (``samples``), and the
    files of ALCE and D-FActScore.

    Raises:
        ValueError: it is such a file, but not a whole one.
    """
    if not isinstance(whole, dict):
        return whole if isinstance(whole, list) else [whole]
    with report_malformed_row():
        if isinstance(whole.get("per_prompt_data"), list):
            sides = {name: whole[name] for name in ("side_1", "side_2") if name in whole}
            return [row | sides for row in whole["per_prompt_data"]]
        if isinstance(whole.get("samples"), list):
            return whole["samples"]
        rows = ambigbio.rows_of_object(whole)
    return [whole] if rows is None else rows
