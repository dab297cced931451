"""Readers of JSONL, CSV, TSV, Parquet and JSON files; errors name the line and the fix."""

import ast
import csv
import gzip
import json
import math
import re
import tokenize
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from records.errors import BadInput, UserError
from records.evidence import is_evidence
from records.formats.ambigbio import is_name_line, name_rows
from records.formats.file_reader import FIRST_ROWS, FileReader, rows_of_file
from records.types import Document, Record, RelationPair

R = TypeVar("R", bound=Record)
M = TypeVar("M", bound=BaseModel)

MAX_FAULTS = 10
_LINES_FOR_QUOTES = 1000
# Nesting of lists and objects; readers of results accept 200 levels, including those around a row.
MAX_DEPTH = 100

_BLANK = re.compile(r"\s*")
_SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_TABLE_SUFFIXES = {".csv", ".tsv"}  # also .txt with tabs
_JSON_SUFFIXES = {".json", ".score"}  # ALCE's scores are JSON
_PLAIN_TEXT_FAULT = (
    'json: plain text; expected one object per line, e.g. {"topic": "…", "text": "…"}'
)
_READ_ERRORS = (OSError, EOFError, UnicodeDecodeError, zlib.error)  # also of .gz
# Columns whose empty cells mean something: texts may be empty, HALoGEN may list no atoms.
_TEXT_COLUMNS = ("text", "output", "response")
_ATOM_COLUMN = "hallucinated atoms"
# Columns of lists, in addition to those of evidence.
_LIST_COLUMNS = {"claims", "annotations", "facts", "atoms"}
# A list as NumPy names it, or a tuple of texts.
_ARRAY = re.compile(r"^(?:array\(\[|\((?=['\"]))(.*?)(?:\](?:, dtype=\w+)?)?\)$", re.DOTALL)
# Invalid JSON, numbers of thousands of digits, deep nesting.
_JSON_ERRORS = (ValueError, RecursionError)


def _json_error(error: Exception, unit: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg.removesuffix(" at")
        return f"json: {reason} at column {error.colno}; the {unit} may be incomplete"
    return f"json: cannot be read ({error})"


def json_fault(row: object) -> str | None:
    """Return why a row cannot be serialised as JSON, or ``None`` if it can."""
    try:
        written = to_json(row, fallback=str)
    except ValueError as error:
        if "UnicodeEncodeError" in str(error):
            return "json: lone surrogate (a \\ud8… escape without its pair); remove it"
        return f"row: cannot be serialised as JSON ({error})"
    if written.count(b"[") + written.count(b"{") > MAX_DEPTH and _depth(row) > MAX_DEPTH:
        return f"row: nested more than {MAX_DEPTH} levels deep; flatten it"
    return None


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _encoding_fault(path: Path) -> tuple[int, str]:
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
    except _READ_ERRORS as error:
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
                except _JSON_ERRORS as error:
                    if _suffix(path) == ".txt" and line.lstrip()[0] not in "{[":
                        yield number, _PLAIN_TEXT_FAULT
                        return
                    yield number, _json_error(error, "line")
                    continue
                if not isinstance(row, dict):
                    row = "json: expected one object per line; put a list into a .json file"
                yield number, row
    except UnicodeDecodeError:
        yield _encoding_fault(path)
    except (OSError, EOFError, zlib.error) as error:  # a damaged .gz
        yield number + 1, f"file: cannot be read ({error})"


def _json_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        yield _encoding_fault(path)
        return
    except OSError as error:
        yield 1, f"json: cannot be read ({error})"
        return
    decoder, position, number = json.JSONDecoder(), 0, 0
    while (position := _BLANK.match(text, position).end()) < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except _JSON_ERRORS as error:
            yield getattr(error, "lineno", number + 1), _json_error(error, "file")
            return
        try:
            rows = rows_of_file(value)
        except ValueError as error:
            yield number + 1, str(error)
            return
        for row in rows:
            number += 1
            yield number, row if isinstance(row, dict) else "json: expected an object"
        position = end


def iter_rows(path: str | Path, any_text: bool = False) -> Iterator[tuple[int, dict]]:
    """Read a table or JSONL file of any size row by row, without a record type.

    Formats: JSONL (default), CSV, TSV and ``.txt`` with tabs, each also with ``.gz``; Parquet; JSON
    (objects over several lines, or a list), which is read into memory. CSV cells are strings.

    Args:
        path: the file.
        any_text: also yield rows with lone surrogates, which cannot be serialised.

    Yields:
        The line number from 1 (Parquet: row number) and the row.
    """
    for number, row in _rows(Path(path)):
        fault = row if isinstance(row, str) else None if any_text else json_fault(row)
        if fault:
            raise BadInput([f"{path}:{number}: {fault}"])
        yield number, row


def require_file(path: str | Path) -> None:
    """Raise a one-line error if a data file does not exist."""
    if not Path(path).is_file():
        folder = Path(path).parent
        missing = "no such file" if folder.is_dir() else f"no such folder as {folder}"
        fault = "a pipe or device" if Path(path).exists() else missing
        fault = "a folder" if Path(path).is_dir() else fault
        raise UserError(f"{path}: {fault}; expected a JSONL, CSV or Parquet file")


def _suffix(path: Path) -> str:
    return next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")


def _rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    require_file(path)
    suffix = _suffix(path)
    readers = {".csv": _csv_rows, ".tsv": _csv_rows, ".parquet": _parquet_rows}
    default = _json_rows if path.suffix.lower() in _JSON_SUFFIXES else _jsonl_rows
    reader = readers.get(".tsv" if _is_table(path) else suffix, default)
    return _name_rows(path) if suffix in _TABLE_SUFFIXES and _is_name_table(path) else reader(path)


def _is_table(path: Path) -> bool:
    suffix = _suffix(path)
    if suffix != ".txt":
        return suffix in _TABLE_SUFFIXES
    try:
        with _open_text(path) as file:
            header = file.readline()
    except _READ_ERRORS:
        return False  # the file's reader reports the error
    return "\t" in header and not header.startswith("{")


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", errors="strict", newline="")


def separator_of(path: Path) -> str:
    """Return the separator of a table's cells.

    The usual one of the file's suffix, unless only another one divides the first rows into as many
    cells as the header.
    """
    suffix = _suffix(path)
    usual = "," if suffix == ".csv" else "\t"
    if suffix == ".txt":
        return usual
    candidates = [usual, *(mark for mark in ",;\t|" if mark != usual)]
    for row_count in (50, 1):  # the header alone names the separator of rows that do not fit
        for mark in candidates:
            if _divides(path, mark, row_count):
                return mark
    return usual


def _divides(path: Path, separator: str, row_count: int) -> bool:
    with _open_text(path) as file:
        try:
            rows = list(islice(csv.reader(file, delimiter=separator, strict=True), row_count))
        except (csv.Error, *_READ_ERRORS):
            return False
    return bool(rows) and len(rows[0]) > 1 and {len(row) for row in rows if row} == {len(rows[0])}


def _csv_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    csv.field_size_limit(1 << 30)  # page texts exceed the default
    separator = separator_of(path)
    name = _SEPARATOR_NAMES[separator]
    has_plain_marks = separator == "\t" and _has_plain_marks(path)
    marks = csv.QUOTE_NONE if has_plain_marks else csv.QUOTE_MINIMAL
    with _open_text(path) as file:
        # Strict: an unclosed quotation mark would swallow the following lines.
        reader = csv.DictReader(file, delimiter=separator, quoting=marks, strict=True)
        try:
            columns = Counter(name for name in reader.fieldnames or () if name)
            twice = [name for name, count in columns.items() if count > 1]
            if twice:
                yield 1, f"row: duplicate column {twice[0]!r} in the header; rename one"
                return
            for row in reader:
                if None in row or None in row.values():
                    yield (
                        reader.line_num,
                        f"row: number of cells differs from the header (separator: {name})",
                    )
                else:
                    yield reader.line_num, row
        except UnicodeDecodeError:
            yield _encoding_fault(path)
        except (csv.Error, *_READ_ERRORS) as error:
            yield reader.line_num + 1, f"file: cannot be read ({error})"


def _has_plain_marks(path: Path) -> bool:
    """Whether quotation marks are text in a tab-separated file, as in SICK and SNLI.

    They enclose cells if the lines do not have the header's number of cells otherwise, if all
    texts have them, or if marks are doubled within them.
    """
    try:
        with _open_text(path) as file:
            header, *rows = [
                line.rstrip("\r\n").split("\t")
                for line in islice(file, _LINES_FOR_QUOTES)
                if line.strip()
            ]
    except (ValueError, *_READ_ERRORS):
        return True  # an empty file; its reader reports other errors
    if _suffix(path) == ".txt":
        return True
    cells = [cell for row in rows for cell in row]
    enclosed = [cell for cell in cells if len(cell) > 1 and cell[0] == cell[-1] == '"']
    texts = [cell for cell in cells if not re.fullmatch(r"[-\d.,]*", cell)]
    return (
        all(len(row) == len(header) for row in rows)
        and len(enclosed) < max(1, len(texts))
        and not any('""' in cell[1:-1] for cell in enclosed)
    )


def _is_name_table(path: Path) -> bool:
    try:
        with _open_text(path) as file:
            return is_name_line(file.readline())
    except _READ_ERRORS:
        return False  # the table reader reports the error


def _name_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    number = 0
    try:
        with _open_text(path) as file:
            for number, row in name_rows(file):
                yield number, row
    except _READ_ERRORS as error:
        yield number + 1, f"file: cannot be read ({error})"


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    import pyarrow.parquet

    number = 0
    try:
        classes = _class_names(path)
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=1000):
            for row in batch.to_pylist():
                number += 1
                yield number, row | name_classes(row, classes) if classes else row
    # Arrow errors, and Python errors for values out of range.
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        yield number + 1, f"file: cannot be read ({str(error).partition(chr(10))[0]})"


def _class_names(path: Path) -> dict[str, list[str]]:
    """Return the names of the Hub's ``ClassLabel`` columns, as ``datasets`` stores them."""
    import pyarrow.parquet

    stored = (pyarrow.parquet.read_schema(path).metadata or {}).get(b"huggingface", b"{}")
    features = json.loads(stored).get("info", {}).get("features", {})
    return {
        column: feature["names"]
        for column, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }


def name_classes(row: dict, classes: Mapping[str, Sequence[str]]) -> dict:
    """Return the class names of a row's numbers; -1 is the Hub's missing label."""
    return {
        column: None if row[column] < 0 else names[row[column]]
        for column, names in classes.items()
        if isinstance(row.get(column), int)
    }


def _is_present(value: object) -> bool:
    return not (value is None or (isinstance(value, float) and math.isnan(value)))


def _parse_cell(column: str, cell: object) -> object:
    """Parse a cell that holds a list or an object; other cells are unchanged."""
    if not isinstance(cell, str):
        return cell
    is_list = is_evidence(column) or column in _LIST_COLUMNS
    written = _ARRAY.sub(r"[\1]", cell.strip()) if is_list else cell
    if written[:1] not in ("[", "{"):
        return cell
    for parse in (json.loads, _parse_python):  # pandas writes Python's lists
        try:
            value = parse(written)
        except (*_JSON_ERRORS, SyntaxError, MemoryError, tokenize.TokenError):
            continue
        if not isinstance(value, set):  # its order is lost
            return cell if json_fault(value) else value
    if is_list:
        raise ValueError(
            f"{column}: the cell {cell[:40]!r} is neither JSON nor a Python list; write it with "
            "json.dumps, or save the table as JSONL or Parquet"
        )
    return cell


def _parse_python(cell: str) -> object:
    """Parse a Python literal, or texts without commas between them, as NumPy prints an array."""
    tokens = [t for t in tokenize.generate_tokens(StringIO(cell).readline) if t.string.strip()]
    kinds = [token.type for token in tokens]
    if (tokenize.STRING, tokenize.STRING) not in pairwise(kinds):
        return ast.literal_eval(cell)
    # Python would join the texts to one.
    if kinds != [tokenize.OP, *[tokenize.STRING] * (len(tokens) - 2), tokenize.OP]:
        raise ValueError("an array of other values")
    return [ast.literal_eval(token.string) for token in tokens[1:-1]]


def _field_path(location: Sequence[int | str]) -> str:
    return " ".join(".".join(map(str, location)).split()) or "record"


def _faults(where: str, error: ValidationError) -> list[str]:
    faults = []
    for item in error.errors():
        message = item["msg"].removeprefix("Value error, ")
        message = message[:1].lower() + message[1:]
        # Messages about the whole record start with the field.
        named = not item["loc"] and re.match(r"\w+: ", message)
        field = "" if named else f"{_field_path(item['loc'])}: "
        value = item.get("input")
        got = "" if isinstance(value, (dict, list)) else f" (got {str(value)[:60]!r})"
        faults.append(f"{where}: {field}{message}{got if item['type'] != 'missing' else ''}")
    return faults


def read_records(
    path: str | Path,
    kind: type[R],
    fields: Mapping[str, str] | None = None,
    skipped: Counter[str] | None = None,
    labels: Mapping[int, str] | None = None,
    format: str | None = None,
) -> list[R]:
    """Read all records of one type from a file in one of the formats of :func:`iter_rows`.

    Rows of other projects are converted by the format that the first rows have
    (``records/formats``). Invalid rows raise an error; none is dropped. What was read is logged in
    one line (logger ``records``).

    Args:
        fields: our field to the file's, which may be a path such as ``answer.text``.
        skipped: counts pairs without a gold label, which are invalid otherwise; updated.
        labels: the meaning of numbers as labels, such as ``{0: "entailment", 1: "neutral"}``.
        format: name of a shipped format, or a YAML file that declares formats.

    Raises:
        BadInput: up to ten faults as ``file:line: field: message``.
    """
    rows = _prepared_rows(Path(path))
    first = list(islice(rows, FIRST_ROWS))
    readable = [row for _, row in first if isinstance(row, dict)]
    reader = FileReader(path, kind, readable, fields, labels, format)
    records: list[R] = []
    faults: list[str] = []
    n_rows = number = 0
    for number, row in chain(first, rows):
        n_rows += 1
        where = f"{path}:{number}"
        if isinstance(row, str):
            faults.append(f"{where}: {row}")
            continue
        try:
            for values in reader.records(row, number):
                if skipped is not None and kind is RelationPair and values.get("label", "") is None:
                    skipped["row without a gold label"] += 1
                else:
                    records.append(kind.model_validate(values))
        except ValidationError as error:
            faults.extend(_faults(where, error))
        except ValueError as error:
            expected, _, got = str(error).rpartition(", got ")
            is_known = expected and any(expected in fault for fault in faults)
            field = expected.partition(":")[0]
            faults.append(f"{where}: {field}: got {got}" if is_known else f"{where}: {error}")
    if faults:
        raise BadInput(faults[:MAX_FAULTS], max(0, len(faults) - MAX_FAULTS))
    if not records:
        raise UserError(f"{path}: the file is empty; expected at least one {kind.__name__}")
    reader.report(_label_counts(records), file_notes(path, n_rows, number))
    return records


def _prepared_rows(path: Path) -> Iterator[tuple[int, dict | str]]:
    """Yield rows without missing values and with parsed cells, or the fault of a row."""
    is_table = _is_table(path)
    has_nulls = is_table or _suffix(path) == ".parquet"
    for number, row in _rows(path):
        row = row if isinstance(row, str) else json_fault(row) or row
        if isinstance(row, dict) and has_nulls:
            row = {name: cell for name, cell in row.items() if _is_present(cell)}
        try:
            yield number, _parse_cells(row) if isinstance(row, dict) and is_table else row
        except ValueError as error:
            yield number, str(error)


def _parse_cells(row: dict) -> dict:
    """Parse the lists of a table's row; empty cells are missing values."""
    empty = next((name for name in _TEXT_COLUMNS if row.get(name) == ""), None)
    row = {n: _parse_cell(n, cell) for n, cell in row.items() if cell != "" or n == _ATOM_COLUMN}
    if empty and not any(name in row for name in _TEXT_COLUMNS):
        row[empty] = ""  # an empty text is an abstention
    return row


def file_notes(path: str | Path, n_rows: int, last_line: int) -> list[str]:
    """Return facts about a file: separator, rows of several lines, and names of its classes."""
    notes = []
    if _suffix(Path(path)) in _TABLE_SUFFIXES and Path(path).is_file():
        separator = separator_of(Path(path))
        notes += [] if separator == "," else [f"separator: {_SEPARATOR_NAMES[separator]}"]
        if n_rows + 1 < last_line:
            notes.append(f"{n_rows:,} rows in {last_line - 1:,} lines")
    if _suffix(Path(path)) == ".parquet" and Path(path).is_file():
        for column, names in _class_names(Path(path)).items():
            numbers = ", ".join(f"{number} = {name}" for number, name in enumerate(names))
            notes.append(f"classes of {column}: {numbers}")
    return notes


def _label_counts(records: Sequence[Record]) -> Counter[str]:
    if isinstance(records[0], RelationPair):
        return Counter(pair.label for pair in records)
    if isinstance(records[0], Document):
        claims = (claim for document in records for claim in document.claims or ())
        return Counter(claim.label for claim in claims if claim.label)
    return Counter()


def to_bad_input(where: str | Path, error: ValidationError) -> BadInput:
    """Return the first error of a validation as one line; ``where`` is the file or row."""
    first = error.errors()[0]
    field = _field_path(first["loc"])
    return BadInput([f"{where}: {field}: {first['msg']}"])


def read_json(path: str | Path, kind: type[M]) -> M:
    """Read and validate a file that holds one JSON object; may raise FileNotFoundError."""
    try:
        return kind.model_validate(load_json(path))
    except ValidationError as error:
        raise to_bad_input(path, error) from None


def load_json(path: str | Path) -> object:
    """Return the value of a JSON file; may raise FileNotFoundError."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except _JSON_ERRORS as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    fault = json_fault(value)
    if fault:
        raise UserError(f"{path}: {fault}")
    return value
