"""What a file is read as: format, the field of each column, columns without use, and labels."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from records.evidence import is_evidence
from records.formats.judged_claims import parse_judgement
from records.formats.row_fields import KEPT_FIELDS

LABEL_COLUMNS = ("label", "gold_label", "entailment_label", "entailment_judgment")
# Columns without a record field that splits, experiments and stages read.
_USED = {*KEPT_FIELDS, "documents", "unit", "source_id", "should_respond", "person"}

logger = logging.getLogger("records")


class TrackedRow(dict):
    """A row that remembers in ``used`` which of its columns were read."""

    def __init__(self, row: Mapping, used: set[str] | None = None):
        super().__init__(row)
        self.used: set[str] = set() if used is None else used

    def __getitem__(self, column: str) -> object:
        self.used.add(column)
        return super().__getitem__(column)

    def get(self, column: str, default: object = None) -> object:
        """Return a column's value like ``dict.get``."""
        self.used.add(column)
        return super().get(column, default)

    def __or__(self, other: Mapping) -> "TrackedRow":
        return TrackedRow(dict.__or__(self, other), self.used)

    def __ror__(self, other: Mapping) -> "TrackedRow":
        return TrackedRow(dict.__or__(dict(other), self), self.used)


class FileReading:
    """What a file is read as; :meth:`report` logs it in one line.

    Args:
        path: the file, for messages.
        model_fields: fields of the record type; columns of the same name are used.
        fields: our field to the file's, as the user mapped them.
        labels: the meaning of numbers as labels, as the user stated it.
    """

    def __init__(
        self,
        path: object,
        model_fields: Iterable[str],
        fields: Mapping[str, str] | None = None,
        labels: Mapping[int, str] | None = None,
    ):
        for word in (labels or {}).values():
            parse_judgement(word, "labels")
        self.path, self.labels = path, dict(labels or {})
        self._model_fields = set(model_fields)
        self._formats: Counter[str] = Counter()
        self._columns: dict[str, str | None] = {name: None for name in (fields or {}).values()}
        self._field_of = {name: field for field, name in (fields or {}).items()}

    def relabel(self, row: dict) -> dict:
        """Replace numbers as labels by the words that ``labels`` states."""
        if not self.labels:
            return row
        numbers = {column: _whole_number(row.get(column)) for column in LABEL_COLUMNS}
        return row | {c: self.labels[n] for c, n in numbers.items() if n in self.labels}

    def note(self, name: str, row: dict, used: set[str], records: list[dict]) -> list[dict]:
        """Return ``records``, which a row was read as, and note its format and used columns."""
        self._formats[name] += 1
        for column, value in row.items():
            self._columns.setdefault(column, None)
            if column in self._field_of or not records:
                continue
            is_kept = column in records[0]
            if is_kept and column in self._model_fields:
                self._field_of[column] = column
            elif column in used:
                self._field_of[column] = self._find_field(column, value, records[0])
            elif is_kept and column in _USED:
                self._field_of[column] = column
        return records

    def _find_field(self, column: str, value: object, record: dict) -> str | None:
        if is_evidence(column) and "passages" in record:
            return "passages"
        value = value.strip() if isinstance(value, str) else value
        fields = (field for field in record if field in self._model_fields)
        return next((f for f in fields if record[f] == value and value is not None), None)

    def report(self, labels: Mapping[str, int], notes: Iterable[str] = ()) -> None:
        """Log the line.

        Args:
            labels: number of rows or claims of each class.
            notes: further facts about the file, such as its separator.
        """
        fields = [
            column if field in (column, None) else f"{column} → {field}"
            for column in self._columns
            if column in self._field_of
            for field in [self._field_of[column]]
        ]
        unused = [column for column in self._columns if column not in self._field_of]
        numbers = ", ".join(f"{number} = {word}" for number, word in self.labels.items())
        counts = ", ".join(f"{label} {count:,}" for label, count in labels.items())
        parts = [
            f"format {' and '.join(self._formats)}",
            ", ".join(fields),
            *notes,
            f"label numbers: {numbers}" if numbers else "",
            f"labels: {counts}" if counts else "",
            f"not used: {', '.join(unused)}" if unused else "",
        ]
        _log_once(f"{self.path}: {'; '.join(filter(None, parts))}")


@cache
def _log_once(line: str) -> None:
    logger.info(line)


def _whole_number(value: object) -> int | None:
    try:
        return int(float(value)) if float(value).is_integer() else None
    except (TypeError, ValueError, OverflowError):
        return None
