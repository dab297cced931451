"""Dense retrieval: passages and queries as vectors of a sentence encoder, the nearest ones found.

AmbigBio's passages come from GTR (Ni et al. 2022; 2402.05629, section 2.2): a T5 encoder, mean
pooling, a linear layer, normalisation. ``modules.json`` in a sentence-transformers folder says
which of these steps a model has, so GTR, MiniLM and E5 run through the same code here.
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
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import torch
from huggingface_hub import snapshot_download
from jsonargparse.typing import PositiveInt
from numpy.lib import format as array_format
from pydantic import ValidationError
from tqdm import tqdm
from transformers.utils import logging

from components.base import resolve_base
from components.overlap import stem_shares
from eval.models.engine import pick_device, present
from eval.models.hub import check_length, positions
from eval.retrieve.pages import DECIMALS
from eval.retrieve.search import Per, SearchRetriever
from records import Passage, UserError, read_records, sha256_file, sha256_text
from records.errors import first_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

# Passages that are encoded and written together: what a killed run loses at most.
CHUNK = 2048
# Rows of the index, and queries, that meet at a time: 64 MiB of scores.
BLOCK = 65_536
QUERIES = 256

_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
# What is no lines of JSON, or packed, and is read whole.
_WHOLE = {".csv", ".tsv", ".txt", ".parquet", ".gz", ".json", ".score"}


class SentenceEncoder:
    """A sentence-transformers model; nothing is fetched for one that lies in a folder.

    Args:
        model: a hub id, a folder or ``package:…``; one without ``modules.json`` is pooled by the
            mean and normalised.
        batch_size: texts that are encoded together.
        max_length: tokens of a text; ``None`` for what the model's settings say.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    def __init__(
        self,
        model: str,
        batch_size: PositiveInt = 64,
        max_length: PositiveInt | None = None,
        device: str = "auto",
    ):
        logging.disable_progress_bar()  # a bar for loading weights that takes a second is noise
        self._base = resolve_base(model)
        self.model = model
        self.batch_size = batch_size
        self.device = pick_device(device)
        self._length = max_length

    @cached_property
    def folder(self) -> Path:
        """Where the model lies; one of the hub is fetched when first wanted."""
        if isinstance(self._base, Path):
            return self._base
        return Path(snapshot_download(self._base, allow_patterns=list(_FILES)))

    @cached_property
    def max_length(self) -> int:
        """Tokens of a text; the rest is not read."""
        # Models of older versions have it beside their weights, under their own kind's name.
        file = next(iter(sorted(self.folder.rglob("sentence_*_config.json"))), None)
        settings = json.loads(file.read_text(encoding="utf-8")) if file else {}
        return self._length or settings.get("max_seq_length") or 512

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over what decides the vectors."""
        files = sorted({path for pattern in _FILES for path in self.folder.rglob(pattern)})
        lines = [f"{p.relative_to(self.folder).as_posix()}:{sha256_file(p)}\n" for p in files]
        return sha256_text("".join([*lines, str(self.max_length)]))

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of shape (texts, width), float32."""
        return self._model.encode(
            list(texts),
            prompt="",  # what goes before a text is the caller's to say
            batch_size=self.batch_size,
            normalize_embeddings=not (self.folder / "modules.json").is_file(),
            show_progress_bar=False,
        )

    @cached_property
    def _model(self) -> SentenceTransformer:
        # Seconds to load, with all that trains such models; only who needs vectors waits.
        from sentence_transformers import SentenceTransformer

        for pickled in sorted(self.folder.rglob("pytorch_model.bin")):
            if not pickled.with_name("model.safetensors").is_file():
                raise UserError(f"{pickled.parent}: no model.safetensors; give a model that has it")
        options = {"use_safetensors": True, "dtype": torch.float32}
        try:
            model = SentenceTransformer(
                str(self.folder),
                device=str(present(self.device)),
                model_kwargs=options,
                local_files_only=True,
            )
        except (OSError, ValueError, TypeError, ImportError, AttributeError) as error:
            reason = first_line(error)
            raise UserError(f"{self.model}: the model cannot be loaded ({reason})") from None
        model.max_seq_length = self._fitting(getattr(model[0], "auto_model", None))
        return model.float()

    def _fitting(self, encoder: PreTrainedModel | None) -> int:
        config = getattr(encoder, "config", None)
        if not getattr(config, "max_position_embeddings", None):
            return self.max_length
        check_length(self.model, self._length or 0, config)
        return min(self.max_length, positions(config))


def unit_vectors(encoder: SentenceEncoder, texts: Sequence[str]) -> np.ndarray:
    """Vectors of length 1, whose products are cosines, whatever length the model's have.

    Returns:
        Shape (texts, width), float64; (0, 1) without a text.
    """
    if not texts:
        return np.zeros((0, 1))
    vectors = np.asarray(encoder.encode(texts), dtype=float)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def relatedness(texts: Sequence[str], encoder: SentenceEncoder | None) -> np.ndarray:
    """How much any two of some texts have to do with each other.

    Returns:
        Shape (n, n): cosines of the encoder's vectors; without one, at [i, j] the share of text j's
        weighted stems that text i has (:func:`components.overlap.stem_shares`).
    """
    if encoder is None:
        return stem_shares(texts)
    units = unit_vectors(encoder, texts)
    return units @ units.T


class PassageFile(Sequence[Passage]):
    """The passages of a JSONL file, read from the disk when they are wanted.

    In memory is where each begins: 8 bytes a passage.

    Args:
        path: a file of passage records.

    Raises:
        BadInput: a line that is no passage.
    """

    def __init__(self, path: Path):
        if not path.is_file():
            raise UserError(f"{path}: no such file; give a file of passages")
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
            raise UserError(f"{path}: the file is empty; expected at least one Passage a line")

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, place: int) -> Passage:
        with self.path.open("rb") as file:
            file.seek(self._starts[place])
            line = file.readline()
        try:
            return Passage.model_validate_json(line)
        except ValidationError:
            # It says which line is wrong, and how; a file of that size is worth the second look.
            read_records(self.path, Passage)
            raise UserError(
                f"{self.path}: lines that end in no line feed (\\n); save it with one behind each"
            ) from None


class Hit(NamedTuple):
    """A passage's place and its similarity to a query."""

    place: int
    score: float


class DenseIndex:
    """Vectors of passages, searched exactly.

    Args:
        file: ``.npy`` file of the vectors, made here when absent and read through memory mapping;
            a killed run goes on in it. ``None`` keeps them in memory.
        prefix: goes before each passage, where the model wants one (E5: ``passage: ``).
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        encoder: SentenceEncoder,
        file: Path | None = None,
        prefix: str = "",
    ):
        self.passages = passages
        self.encoder = encoder
        self.prefix = prefix
        if file is None:
            self.vectors = np.concatenate(list(self._chunks(0)))
        else:
            if not file.is_file():
                self._write(file)
            try:
                self.vectors = np.load(file, mmap_mode="r")
            except (ValueError, EOFError):  # one that was cut, or is none
                raise UserError(f"{file}: no whole file of vectors; delete it") from None

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The ``k`` nearest passages of each query by inner product, best first."""
        if not queries:
            return []
        asked = torch.from_numpy(self.encoder.encode(queries))  # (queries, width)
        best: list[list[Hit]] = [[] for _ in queries]
        for start in range(0, len(self.vectors), BLOCK):
            block = torch.from_numpy(self.vectors[start : start + BLOCK].astype(np.float32))
            for first in range(0, len(queries), QUERIES):
                own = best[first : first + QUERIES]
                _keep_best(own, asked[first : first + QUERIES] @ block.T, start, k)
        return best

    def _chunks(self, first: int) -> Iterator[np.ndarray]:
        starts = range(first, len(self.passages), CHUNK)
        for start in tqdm(starts, desc="vectors", unit=f"x{CHUNK}", disable=None):
            stop = min(start + CHUNK, len(self.passages))
            own = [self.passages[place] for place in range(start, stop)]
            texts = [f"{self.prefix}{p.title} {p.text}".strip() for p in own]
            yield self.encoder.encode(texts).astype(np.float16)

    def _write(self, file: Path) -> None:
        """Chunk after chunk behind the header of an ``.npy`` file, which is renamed when whole.

        Another process that writes it (workers begin at the same time) is waited for.
        """
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
        done = max(0, size - head) // (2 * width * CHUNK) * CHUNK  # whole chunks that are there
        rows.write(header.getvalue())
        rows.seek(head + 2 * width * done)
        rows.truncate()
        for chunk in self._chunks(done):
            rows.write(chunk.astype("<f2").tobytes())
            rows.flush()


def _keep_best(best: list[list[Hit]], scores: torch.Tensor, start: int, k: int) -> None:
    """Bring each query's ``k`` best up to date with its scores for the rows from ``start`` on.

    Args:
        scores: (queries, rows), rounded here.
    """
    scores.round_(decimals=DECIMALS)
    least = scores.topk(min(k, scores.shape[1])).values[:, -1:]
    # All that tie with the last one, since topk picks any of them.
    rows, places = (scores >= least).nonzero(as_tuple=True)
    marks = scores[rows, places].tolist()
    for row, place, mark in zip(rows.tolist(), places.tolist(), marks, strict=True):
        best[row].append(Hit(start + place, round(mark, DECIMALS)))
    for own in best:
        own.sort(key=lambda hit: (-hit.score, hit.place))
        del own[k:]


class Dense(SearchRetriever):
    """The ``k`` nearest passages of a file for each claim, by a sentence encoder.

    Args:
        passages: a file of passage records; JSONL stays on the disk, all else is read whole.
        model: a sentence-transformers model: a hub id, a folder or ``package:…``.
        k: passages a claim.
        topic_in_query: whether the topic goes before the claim.
        query_prefix: goes before each query, where the model wants one (E5: ``query: ``).
        passage_prefix: goes before each passage.
        batch_size: texts that are encoded together; changes the speed.
        max_length: tokens of a text; null for what the model's settings say.
        device: ``auto``, ``cpu``, ``cuda``, …
        cache_dir: folder of the passages' vectors, so that they are made once, and a killed run
            goes on; two bytes a number. They stay in memory without it.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
    """

    def __init__(
        self,
        passages: str,
        model: str,
        k: PositiveInt = 5,
        topic_in_query: bool = True,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: PositiveInt = 64,
        max_length: PositiveInt | None = None,
        device: str = "auto",
        cache_dir: Path | None = None,
        per: Per = "claim",
    ):
        super().__init__(k, topic_in_query, per)
        self.path = Path(passages)
        self.query_prefix = query_prefix
        self.passage_prefix = passage_prefix
        self.cache_dir = Path(cache_dir) if cache_dir else None
        self._encoder = SentenceEncoder(model, batch_size, max_length, device)

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            **self._settings(),
            "passages_sha256": sha256_file(self.path),
            "model": self._encoder.model,
            "model_sha256": self._encoder.fingerprint,
            "max_length": self._encoder.max_length,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
        }

    @cached_property
    def _index(self) -> DenseIndex:
        whole = self.path.suffix.lower() in _WHOLE
        passages = read_records(self.path, Passage) if whole else PassageFile(self.path)
        file = None
        if self.cache_dir is not None:
            key = [self._encoder.fingerprint, sha256_file(self.path), self.passage_prefix]
            file = self.cache_dir / f"{sha256_text(json.dumps(key))[:32]}.npy"
        return DenseIndex(passages, self._encoder, file, self.passage_prefix)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        found = self._index.search([f"{self.query_prefix}{query}" for query in queries], k)
        places = sorted({hit.place for hits in found for hit in hits})
        known = {place: self._index.passages[place] for place in places}
        return [[known[hit.place] for hit in hits] for hits in found]
