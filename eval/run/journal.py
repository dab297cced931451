"""The journal of a part of a run: its rows, and each chunk's usage.

A chunk is its documents' rows and a last line ``{"documents": IDS, "usage": [...]}``. Rows are
written exactly as in the final file, so they are serialised and validated once. An incomplete chunk
at the end is discarded.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from records.writing import LineAppender, atomic_bytes, read_complete_rows

R = TypeVar("R", bound=BaseModel)

_LAST_LINE = b'{"documents": '


class Chunk(NamedTuple):
    """Documents that were processed together."""

    ids: list[str]
    rows: list[str]  # one JSON line per document
    usage: list[dict[str, int]]  # per language model (``eval.models.chat.Usage.since``)
    records: Sequence[BaseModel] | None = None  # None if another process made them


class Journal(LineAppender, Generic[R]):
    """The rows of complete chunks; ``records`` maps document ids to records."""

    def __init__(self, path: Path, record: type[R]):
        self.record = record
        self.records: dict[str, R] = {}
        self._rows: dict[str, tuple[int, int]] = {}  # byte range of a document's row
        super().__init__(path)

    def _read(self) -> int:
        rows: list[tuple[int, int, Any]] = []
        start = complete = 0
        for end, row in read_complete_rows(self.path):
            if "usage" in row and "documents" in row:
                for name, (*span, value) in zip(row["documents"], rows, strict=True):
                    self._rows[name] = tuple(span)
                    self.records[name] = self.record.model_validate(value)
                rows, complete = [], end
            else:
                rows.append((start, end, row))
            start = end
        return complete

    def append(self, chunk: Chunk) -> None:
        """Write a chunk and make it durable before returning."""
        start = self._file.seek(0, os.SEEK_END)
        last = json.dumps({"documents": chunk.ids, "usage": chunk.usage}, ensure_ascii=False)
        self.append_lines([*chunk.rows, last])
        records = chunk.records
        if records is None:
            records = map(self.record.model_validate_json, chunk.rows)
        for name, row, record in zip(chunk.ids, chunk.rows, records, strict=True):
            end = start + len(row.encode()) + 1
            self._rows[name] = (start, end)
            self.records[name] = record
            start = end

    def copy_rows(self, ids: Sequence[str], path: Path) -> None:
        """Write the rows of documents, in the given order, to a file that is replaced at once."""
        with atomic_bytes(path) as file, open(self.path, "rb") as rows:
            for name in ids:
                start, end = self._rows[name]
                rows.seek(start)
                file.write(rows.read(end - start))


def read_chunks(path: Path) -> Iterator[tuple[list[str], list[dict[str, int]]]]:
    """Yield the ids and the usage of each complete chunk, without changing the journal."""
    # As bytes, since an interrupted line may end within a character.
    with open(path, "rb") as lines:
        for line in lines:
            if line.startswith(_LAST_LINE) and line.endswith(b"\n"):
                row = json.loads(line)
                yield row["documents"], row["usage"]
