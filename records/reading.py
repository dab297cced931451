"""Reading records from JSONL, CSV and Parquet, and whole JSON files.

Errors say where and what to mend.
"""

import csv
import gzip
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from records.errors import BadInput, UserError
from records.formats.adapters import adapt, rows_of_file
from records.formats.ambigbio import is_name_line, name_rows
from records.types import Record

R = TypeVar("R", bound=Record)
M = TypeVar("M", bound=BaseModel)

MAX_FAULTS = 10
# Lists and objects within each other: what reads results again takes 200, around a row of ours.
MAX_DEPTH = 100

_BLANK = re.compile(r"\s*")
_TABLES = {".csv", ".tsv"}  # and a .txt with tabs
_JSON = {".json", ".score"}  # ALCE's scores are JSON
_PLAIN_TEXT = 'json: plain text; give an object a line, {"topic": "…", "text": "…"} for a document'
_DAMAGED = (OSError, EOFError, UnicodeDecodeError, zlib.error)  # files and their .gz
# What an empty cell of a table says something of: a text, which may be empty, and the atoms that
# HALoGEN found none of.
_TEXTS = ("text", "output", "response")
_ATOMS = "hallucinated atoms"


# What JSON's reader raises: of what is none, of a number of thousands of digits, of deep nesting.
_NOT_JSON = (ValueError, RecursionError)


def _not_json(error: Exception, what: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg.removesuffix(" at")
        return f"json: {reason} at column {error.colno}; is the {what} whole?"
    return f"json: cannot be read ({error})"


def json_fault(row: object) -> str | None:
    """Why a row could not be written again as JSON; ``None`` where it could."""
    try:
        written = to_json(row, fallback=str)
    except ValueError as error:
        if "UnicodeEncodeError" in str(error):
            return "json: half a character (a \\ud8… escape without its other half); take it out"
        return f"row: cannot be kept as JSON ({error})"
    if written.count(b"[") + written.count(b"{") > MAX_DEPTH and _depth(row) > MAX_DEPTH:
        return f"row: lists and objects stand more than {MAX_DEPTH} deep in each other; flatten it"
    return None


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _not_utf8(path: Path) -> tuple[int, str]:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    number = 0
    try:
        with opener(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = f"byte {error.start + 1} of the line is 0x{raw[error.start]:02x}"
                    return number, f"file: not UTF-8 ({byte}); save it as UTF-8"
    except _DAMAGED as error:
        return number + 1, f"file: cannot be read ({error})"
    return 1, "file: changed while it was read"


def _jsonl_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    number = 0
    try:
        with _open_text(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except _NOT_JSON as error:
                    if _suffix(path) == ".txt" and line.lstrip()[0] not in "{[":
                        yield number, _PLAIN_TEXT
                        return
                    yield number, _not_json(error, "line")
                    continue
                if not isinstance(row, dict):
                    row = "json: expected an object a line; a list goes into a file named .json"
                yield number, row
    except UnicodeDecodeError:
        yield _not_utf8(path)
    except (OSError, EOFError, zlib.error) as error:  # a damaged .gz
        yield number + 1, f"file: cannot be read ({error})"


def _json_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        yield _not_utf8(path)
        return
    except OSError as error:
        yield 1, f"json: cannot be read ({error})"
        return
    decoder, place, number = json.JSONDecoder(), 0, 0
    while (place := _BLANK.match(text, place).end()) < len(text):
        try:
            found, end = decoder.raw_decode(text, place)
        except _NOT_JSON as error:
            yield getattr(error, "lineno", number + 1), _not_json(error, "file")
            return
        try:
            rows = rows_of_file(found)
        except ValueError as error:
            yield number + 1, str(error)
            return
        for row in rows:
            number += 1
            yield number, row if isinstance(row, dict) else "json: expected an object"
        place = end


def iter_rows(path: str | Path, any_text: bool = False) -> Iterator[tuple[int, dict]]:
    """Read a table or a JSONL file of any size row by row, without a record type.

    Args:
        path: JSONL (anything whose suffix is not one of the others), CSV, TSV or a ``.txt`` with
            tabs, also with ``.gz`` behind it; Parquet; or JSON, whose objects of many lines, or
            list, are in memory.
        any_text: also give rows with half a character, which cannot be written again: the caller
            counts them.

    Yields:
        The line, counted from 1 (in Parquet: the row), and the row. Cells of a CSV are texts.

    Raises:
        BadInput: a row that cannot be read, as ``file:line: what is wrong``.
    """
    for number, row in _rows(Path(path)):
        fault = row if isinstance(row, str) else None if any_text else json_fault(row)
        if fault:
            raise BadInput([f"{path}:{number}: {fault}"])
        yield number, row


def require_file(path: str | Path) -> None:
    """See that a data file is there."""
    if not Path(path).is_file():
        there = "a pipe or device" if Path(path).exists() else "no such file"
        what = "a folder" if Path(path).is_dir() else there
        raise UserError(f"{path}: {what}; give the path of a JSONL, CSV or Parquet file")


def _suffix(path: Path) -> str:
    return next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")


def _rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    require_file(path)
    suffix = _suffix(path)
    readers = {".csv": _csv_rows, ".tsv": _csv_rows, ".parquet": _parquet_rows}
    whole = _json_rows if path.suffix.lower() in _JSON else _jsonl_rows
    read = readers.get(".tsv" if _is_table(path) else suffix, whole)
    return _name_rows(path) if suffix in _TABLES and _has_names(path) else read(path)


def _is_table(path: Path) -> bool:
    suffix = _suffix(path)
    if suffix != ".txt":
        return suffix in _TABLES
    try:
        with _open_text(path) as file:
            header = file.readline()
    except _DAMAGED:
        return False  # the reader of the file says what is wrong
    return "\t" in header and not header.startswith("{")


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", errors="strict", newline="")


def _csv_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    suffix = _suffix(path)
    separator = "," if suffix == ".csv" else "\t"
    # In the .txt of SICK and SNLI a quotation mark is part of the text.
    marks = csv.QUOTE_NONE if suffix == ".txt" else csv.QUOTE_MINIMAL
    csv.field_size_limit(1 << 30)  # a page's text is longer than the default
    with _open_text(path) as file:
        # Strict: a quotation mark that nobody closes would swallow the lines behind it.
        reader = csv.DictReader(file, delimiter=separator, quoting=marks, strict=True)
        try:
            columns = Counter(name for name in reader.fieldnames or () if name)
            twice = [name for name, count in columns.items() if count > 1]
            if twice:
                yield 1, f"row: the header has the column {twice[0]!r} twice; name one otherwise"
                return
            for row in reader:
                if None in row or None in row.values():
                    yield reader.line_num, "row: not as many cells as the header has"
                else:
                    yield reader.line_num, row
        except UnicodeDecodeError:
            yield _not_utf8(path)
        except (csv.Error, *_DAMAGED) as error:
            yield reader.line_num + 1, f"file: cannot be read ({error})"


def _has_names(path: Path) -> bool:
    try:
        with _open_text(path) as file:
            return is_name_line(file.readline())
    except _DAMAGED:
        return False  # the reader of tables says what is wrong


def _name_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    number = 0
    try:
        with _open_text(path) as file:
            for number, row in name_rows(file):
                yield number, row
    except _DAMAGED as error:
        yield number + 1, f"file: cannot be read ({error})"


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    import pyarrow.parquet

    number = 0
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=1000):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    # Its own errors, and Python's for a value that it cannot hold.
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        yield number + 1, f"file: cannot be read ({str(error).partition(chr(10))[0]})"


def _there(value: object) -> bool:
    return not (value is None or (isinstance(value, float) and math.isnan(value)))


def _plain(cell: object) -> object:
    if isinstance(cell, str) and cell[:1] in ("[", "{"):
        try:
            found = json.loads(cell)
        except _NOT_JSON:
            return cell
        return cell if json_fault(found) else found
    return cell


def _field(place: Sequence[int | str]) -> str:
    return " ".join(".".join(map(str, place)).split()) or "record"


def _faults(where: str, error: ValidationError) -> list[str]:
    found = []
    for item in error.errors():
        field = _field(item["loc"])
        message = item["msg"][:1].lower() + item["msg"][1:]
        value = item.get("input")
        shown = "" if isinstance(value, (dict, list)) else f" (got {str(value)[:60]!r})"
        found.append(f"{where}: {field}: {message}{shown if item['type'] != 'missing' else ''}")
    return found


def read_records(path: str | Path, kind: type[R]) -> list[R]:
    """Read all records of one type from a JSONL, CSV, TSV or Parquet file.

    Rows that carry another project's published field names are adapted first
    (``records/formats``). No row is ever dropped silently.

    Args:
        path: the file; its suffix tells the format (anything else is read as JSONL; ``.json`` and
            ``.score`` may hold objects of many lines, or a list). Where a row is named by a number,
            it is the line in JSONL and CSV, and the row in the others.
        kind: the record type.

    Returns:
        The records in the file's order.

    Raises:
        BadInput: up to ten faults as ``file:line: field: message``.
    """
    tabled, parquet = _is_table(Path(path)), _suffix(Path(path)) == ".parquet"
    records: list[R] = []
    faults: list[str] = []
    for number, row in _rows(Path(path)):
        where = f"{path}:{number}"
        row = row if isinstance(row, str) else json_fault(row) or row
        if isinstance(row, str):
            faults.append(f"{where}: {row}")
            continue
        if tabled or parquet:
            row = {name: cell for name, cell in row.items() if _there(cell)}
        if tabled:  # where an empty cell is none; Parquet has a word for none
            empty = next((name for name in _TEXTS if row.get(name) == ""), None)
            row = {n: _plain(cell) for n, cell in row.items() if cell != "" or n == _ATOMS}
            if empty and not any(name in row for name in _TEXTS):
                row[empty] = ""  # a text that says nothing, which is an abstention
        try:
            records.extend(kind.model_validate(found) for found in adapt(row, kind, number))
        except ValidationError as error:
            faults.extend(_faults(where, error))
        except ValueError as error:
            faults.append(f"{where}: {error}")
    if faults:
        raise BadInput(faults[:MAX_FAULTS], max(0, len(faults) - MAX_FAULTS))
    if not records:
        raise UserError(f"{path}: the file is empty; expected at least one {kind.__name__} a line")
    return records


def to_bad_input(where: str | Path, error: ValidationError) -> BadInput:
    """The first field that is wrong in an object, as one line.

    Args:
        where: the file, or the row, that the object stands in.
        error: what the validation said.
    """
    first = error.errors()[0]
    field = _field(first["loc"])
    return BadInput([f"{where}: {field}: {first['msg']}"])


def read_json(path: str | Path, kind: type[M]) -> M:
    """Read and validate a file that holds one JSON object.

    Raises:
        FileNotFoundError: no such file; the caller knows what would have made it.
    """
    try:
        return kind.model_validate(load_json(path))
    except ValidationError as error:
        raise to_bad_input(path, error) from None


def load_json(path: str | Path) -> object:
    """What a JSON file holds.

    Raises:
        FileNotFoundError: no such file.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except _NOT_JSON as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    fault = json_fault(found)
    if fault:
        raise UserError(f"{path}: {fault}")
    return found
