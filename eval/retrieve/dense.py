"""Dense retrieval: nearest passages by the vectors of a sentence encoder.

AmbigBio uses GTR (Ni et al. 2022; 2402.05629, section 2.2): a T5 encoder, mean pooling, a linear
layer, normalisation. sentence-transformers configures these steps in ``modules.json``, so that GTR,
MiniLM and E5 use the same code.
"""

from __future__ import annotations

import codecs
import fcntl
import io
import json
import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import torch
from jsonargparse.typing import PositiveInt
from numpy.lib import format as array_format
from pydantic import ValidationError
from tqdm import tqdm

from components.identity import identity
from eval.models.sentence_encoder import SentenceEncoder
from eval.retrieve.pages import DECIMALS
from eval.retrieve.search import Per, SearchRetriever
from records import Passage, UserError, read_records, sha256_file, sha256_text

if TYPE_CHECKING:
    pass

# Passages that are encoded and written together; an interrupted run loses at most one chunk.
CHUNK = 2048
# Rows and queries of one matrix product: 64 MiB of scores
BLOCK = 65_536
QUERIES = 256

# Formats that are read into memory: not JSONL, or compressed
_READ_WHOLE = {".csv", ".tsv", ".txt", ".parquet", ".gz", ".json", ".score"}


class PassageFile(Sequence[Passage]):
    """The passages of a JSONL file, read on access; memory holds 8 bytes per passage."""

    def __init__(self, path: Path):
        if not path.is_file():
            raise UserError(f"{path}: no such file; expected a file of passages")
        self.path = path
        self._starts = array("q")
        with path.open("rb") as file:
            start = 0
            if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
                start = len(codecs.BOM_UTF8)
            file.seek(start)
            for line in file:
                if line.strip():
                    self._starts.append(start)
                start += len(line)
        if not self._starts:
            raise UserError(f"{path}: the file is empty; expected at least one Passage")

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> Passage:
        with self.path.open("rb") as file:
            file.seek(self._starts[index])
            line = file.readline()
        try:
            return Passage.model_validate_json(line)
        except ValidationError:
            read_records(self.path, Passage)  # raises an error with the line and the field
            raise UserError(
                f"{self.path}: lines do not end with a line feed (\\n); save it with line feeds"
            ) from None


class Hit(NamedTuple):
    """A passage's row and its similarity to a query."""

    row: int
    score: float


class DenseIndex:
    """Vectors of passages with exact search.

    Args:
        file: ``.npy`` file of the vectors, memory-mapped; created if missing, and an interrupted
            run resumes it. ``None``: in memory.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        encoder: SentenceEncoder,
        file: Path | None = None,
    ):
        self.passages = passages
        self.encoder = encoder
        if file is None:
            self.vectors = np.concatenate(list(self._chunks(0)))
        else:
            if not file.is_file():
                self._write(file)
            try:
                self.vectors = np.load(file, mmap_mode="r")
            except (ValueError, EOFError):
                raise UserError(f"{file}: truncated or not a .npy file; delete it") from None

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The ``k`` nearest passages of each query by inner product, best first."""
        if not queries:
            return []
        query_vectors = torch.from_numpy(self.encoder.encode(queries))  # (queries, width)
        best: list[list[Hit]] = [[] for _ in queries]
        for start in range(0, len(self.vectors), BLOCK):
            block = torch.from_numpy(self.vectors[start : start + BLOCK].astype(np.float32))
            for first in range(0, len(queries), QUERIES):
                group = best[first : first + QUERIES]
                _keep_best(group, query_vectors[first : first + QUERIES] @ block.T, start, k)
        return best

    def _chunks(self, first: int) -> Iterator[np.ndarray]:
        starts = range(first, len(self.passages), CHUNK)
        for start in tqdm(starts, desc="vectors", unit=f"x{CHUNK}", disable=None):
            stop = min(start + CHUNK, len(self.passages))
            chunk = [self.passages[row] for row in range(start, stop)]
            texts = [f"{p.title} {p.text}".strip() for p in chunk]
            yield self.encoder.encode(texts).astype(np.float16)

    def _write(self, file: Path) -> None:
        """Write chunks to a partial file, and rename it when complete; other processes wait."""
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as rows:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(rows, fcntl.LOCK_EX)
            if file.is_file():
                partial.unlink(missing_ok=True)
                return
            self._fill(rows)
            partial.replace(file)

    def _fill(self, rows: BinaryIO) -> None:
        width = self.encoder.encode(["width"]).shape[1]
        shape = (len(self.passages), width)
        header = io.BytesIO()
        array_format.write_array_header_1_0(
            header, {"descr": "<f2", "fortran_order": False, "shape": shape}
        )
        head, size = len(header.getvalue()), os.fstat(rows.fileno()).st_size
        written = max(0, size - head) // (2 * width * CHUNK) * CHUNK  # complete chunks
        rows.write(header.getvalue())
        rows.seek(head + 2 * width * written)
        rows.truncate()
        for chunk in self._chunks(written):
            rows.write(chunk.astype("<f2").tobytes())
            rows.flush()


def _keep_best(best: list[list[Hit]], scores: torch.Tensor, start: int, k: int) -> None:
    """Update each query's ``k`` best with scores, (queries, rows), of rows from ``start``."""
    scores.round_(decimals=DECIMALS)
    least = scores.topk(min(k, scores.shape[1])).values[:, -1:]
    # include all ties with the last score, since topk picks any of them
    rows, columns = (scores >= least).nonzero(as_tuple=True)
    values = scores[rows, columns].tolist()
    for row, column, value in zip(rows.tolist(), columns.tolist(), values, strict=True):
        best[row].append(Hit(start + column, round(value, DECIMALS)))
    for hits in best:
        hits.sort(key=lambda hit: (-hit.score, hit.row))
        del hits[k:]


class Dense(SearchRetriever):
    """Retrieve the ``k`` nearest passages of a file for each claim by a sentence encoder.

    Args:
        passages: a file of passage records; JSONL is read on access, other formats into memory.
        model: a sentence-transformers model: a hub id, a folder or ``package:…``.
        k: passages per claim.
        topic_in_query: prepend the topic to the claim.
        batch_size: texts per batch.
        max_length: maximum tokens of a text; null: the model's setting.
        device: ``auto``, ``cpu``, ``cuda``, …
        cache_dir: folder of the vectors (float16), to encode once and to resume an interrupted run;
            null: in memory.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic.
    """

    def __init__(
        self,
        passages: str,
        model: str,
        k: PositiveInt = 5,
        topic_in_query: bool = True,
        batch_size: PositiveInt = 64,
        max_length: PositiveInt | None = None,
        device: str = "auto",
        cache_dir: Path | None = None,
        per: Per = "claim",
    ):
        super().__init__(k, topic_in_query, per)
        self.passages = Path(passages)
        self.cache_dir = Path(cache_dir) if cache_dir else None
        self._encoder = SentenceEncoder(model, batch_size, max_length, device)

    @cached_property
    def _index(self) -> DenseIndex:
        in_memory = self.passages.suffix.lower() in _READ_WHOLE
        path = self.passages
        passages = read_records(path, Passage) if in_memory else PassageFile(path)
        file = None
        if self.cache_dir is not None:
            key = [identity(self._encoder), sha256_file(self.passages)]
            file = self.cache_dir / f"{sha256_text(json.dumps(key))[:32]}.npy"
        return DenseIndex(passages, self._encoder, file)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        results = self._index.search(queries, k)
        rows = sorted({hit.row for hits in results for hit in hits})
        passages = {row: self._index.passages[row] for row in rows}
        return [[passages[hit.row] for hit in hits] for hits in results]
