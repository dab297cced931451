"""What a file is read as, decided once by its first rows: format, columns and labels."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from records.errors import UserError
from records.evidence import evidence_passages, is_evidence
from records.formats.ambigbio import rows_of_object
from records.formats.declared import find_format, formats
from records.formats.label_words import check_meanings
from records.formats.pairs import Pair, pairs_of, probable_pair, relation_of
from records.formats.paths import compile_path
from records.formats.preferences import to_preference
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

FIRST_ROWS = 100
LABEL_COLUMNS = ("label", "gold_label", "entailment_label", "entailment_judgment")
# Columns without a record field that splits, experiments and stages read.
_USED = {"documents", "unit", "source_id", "should_respond", "person"}
_KEYS = {RelationPair: "pairs", LssExample: "lss", UnliPair: "unli"}

logger = logging.getLogger("records")


class FileReader:
    """Converts the rows of a file into rows of a record type; :meth:`report` logs how.

    Args:
        path: the file, for messages.
        kind: the record type.
        rows: the first rows, of which the format is decided.
        fields: our field to the file's, as the user mapped them.
        labels: the meaning of numbers as labels, as the user stated it.
        format: name of a shipped format, or a YAML file with formats.
    """

    def __init__(
        self,
        path: object,
        kind: type[Record],
        rows: Sequence[Mapping],
        fields: Mapping[str, str] | None = None,
        labels: Mapping[int, str] | None = None,
        format: str | None = None,
    ):
        self.path, self.kind = path, kind
        self.fields, self.labels = dict(fields or {}), dict(labels or {})
        self._paths = {field: compile_path(path) for field, path in self.fields.items()}
        check_meanings(self.labels)
        bases = [base for base in kind.__mro__ if base in (*_KEYS, Document)]
        self._key = _KEYS.get(bases[0]) if bases else None
        columns = dict.fromkeys(column for row in rows for column in row)
        for name in self.fields.values():
            if rows and name not in columns and name.partition(".")[0] not in columns:
                raise UserError(
                    f"{path}: {name}: no such field (--fields); the rows have {', '.join(columns)}"
                )
        first = [self._renamed(row) for row in rows]
        name = "plain" if "text" in self.fields else format
        self.format = find_format(first, self._key, name) if bases else None
        self.format = formats()["texts"] if issubclass(kind, Generation) else self.format
        self._evidence = self._evidence_column(first)
        self._columns: dict[str, None] = {}

    def records(self, row: dict, number: int) -> list[dict]:
        """Convert a row into rows of the record type.

        Raises:
            ValueError: the row is invalid; the message starts with the field.
        """
        self._columns |= dict.fromkeys(row)
        with report_malformed_row(self.format.name if self.format else "its project"):
            row = self._relabelled(self._renamed(row))
            if issubclass(self.kind, Preference):
                return [to_preference(row)]
            if issubclass(self.kind, Generation):
                return [row if "text" in row else self._generation(row, number)]
            if issubclass(self.kind, Document):
                return self._documents(row, number)
            if self.format is None:
                return [row]
            if issubclass(self.kind, RelationPair):
                return self._relations(row)
            record = self.format.records(self._key, row)
            return [record if self._key == "lss" else row | record]

    def pairs(self, row: dict) -> list[Pair]:
        """Convert a row into pairs of premise and hypothesis, or one with a probability."""
        self._columns |= dict.fromkeys(row)
        with report_malformed_row(self.format.name):
            if self._key == "unli":
                return [probable_pair(row, self.format)]
            return pairs_of(self._relabelled(row), self.format)

    def _documents(self, row: dict, number: int) -> list[dict]:
        if self.format is None:
            raise ValueError(
                f"text: field required (or output, response); the row has {', '.join(row)}; name "
                "its fields with --fields '{text: NAME, topic: NAME}'"
            )
        documents = self.format.documents(row, number)
        column = self._evidence
        if column and row.get(column):
            passages = evidence_passages(column, row[column])
            documents = [{"passages": passages} | document for document in documents]
        return documents

    def _generation(self, row: dict, number: int) -> dict:
        document = self.format.documents(row, number)[0]
        return {name: value for name, value in document.items() if name != "id"}

    def _relations(self, row: dict) -> list[dict]:
        if self.format.name == "nli":
            is_word = isinstance(row.get("label"), str | int | None) and "label" in row
            is_judged = is_word and not issubclass(self.kind, UnjudgedRelationPair)
            return [row | {"label": relation_of(row["label"])} if is_judged else row]
        fields = ("premise", "hypothesis", "label", "group")
        return [
            {field: getattr(pair, field) for field in fields} | {"source": self.format.name}
            for pair in pairs_of(row, self.format)
        ]

    def _renamed(self, row: Mapping) -> dict:
        if not self.fields:
            return dict(row)
        named = {field: path(row) for field, path in self._paths.items()}
        replaced = {path.partition(".")[0] for path in self.fields.values()}
        replaced |= {"output", "response"}
        rest = {name: value for name, value in row.items() if name not in replaced}
        return rest | {field: value for field, value in named.items() if value is not None}

    def _relabelled(self, row: dict) -> dict:
        if not self.labels:
            return row
        numbers = {column: _whole_number(row.get(column)) for column in LABEL_COLUMNS}
        return row | {c: self.labels[n] for c, n in numbers.items() if n in self.labels}

    def _evidence_column(self, rows: Sequence[Mapping]) -> str | None:
        if self.format is None or not issubclass(self.kind, Document):
            return None
        read = self.format.columns()
        if any(read.get(column) == "passages" and row[column] for row in rows for column in row):
            return None
        names = {
            column: None
            for row in rows
            for column, value in row.items()
            if column not in read
            and is_evidence(column)
            and isinstance(value, str | dict | list)
            and value
        }
        if "passages" in names:
            return "passages"
        if len(names) > 1:
            raise UserError(
                f"{self.path}: {', '.join(names)}: several columns can hold the evidence; name one "
                f"with --fields '{{passages: {next(iter(names))}}}'"
            )
        return next(iter(names), None)

    def report(self, labels: Mapping[str, int], notes: Sequence[str] = ()) -> None:
        """Log the line.

        Args:
            labels: number of rows or claims of each class.
            notes: further facts about the file, such as its separator.
        """
        read = self._fields_of_columns()
        used = [
            column if field in (column, None) else f"{column} → {field}"
            for column in self._columns
            if column in read
            for field in [read[column]]
        ]
        unused = [column for column in self._columns if column not in read]
        numbers = ", ".join(f"{number} = {word}" for number, word in self.labels.items())
        counts = ", ".join(f"{label} {count:,}" for label, count in labels.items())
        parts = [
            f"format {self.format.name if self.format else 'ours'}",
            ", ".join(used),
            *notes,
            f"label numbers: {numbers}" if numbers else "",
            f"labels: {counts}" if counts else "",
            f"not used: {', '.join(unused)}" if unused else "",
        ]
        _log_once(f"{self.path}: {'; '.join(filter(None, parts))}")

    def _fields_of_columns(self) -> dict[str, str | None]:
        keeps = self.format is None or self.format.keeps or self.format.name == "nli"
        keeps = keeps or self._key == "unli"
        read = dict.fromkeys({*self.kind.model_fields, *_USED}) if keeps else {}
        if self.format is not None:
            read = self.format.columns() | read
        if self._key == "pairs":
            names = {"passages": "premise", "text": "hypothesis"}
            read = {column: names.get(field, field) for column, field in read.items()}
        if self._evidence:
            read[self._evidence] = "passages"
        return read | {path.partition(".")[0]: field for field, path in self.fields.items()}


@cache
def _log_once(line: str) -> None:
    logger.info(line)


def _whole_number(value: object) -> int | None:
    try:
        return int(float(value)) if float(value).is_integer() else None
    except (TypeError, ValueError, OverflowError):
        return None


@contextmanager
def report_malformed_row(project: str) -> Iterator[None]:
    """Convert lookup and type errors of the block into a ``ValueError`` that names the field."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: field required") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"record: does not match the format of {project} ({error})") from None


def rows_of_file(content: object) -> list:
    """Return the rows of a JSON file: its list, a known project's rows, or the object itself.

    Known projects: SAFE (``per_prompt_data``), FaithBench (``samples``), ALCE and D-FActScore.
    """
    if not isinstance(content, dict):
        return content if isinstance(content, list) else [content]
    with report_malformed_row("its project"):
        if isinstance(content.get("per_prompt_data"), list):
            sides = {name: content[name] for name in ("side_1", "side_2") if name in content}
            return [row | sides for row in content["per_prompt_data"]]
        if isinstance(content.get("samples"), list):
            return content["samples"]
        rows = rows_of_object(content)
    return [content] if rows is None else rows
