"""Batched engines: one answer per text pair, with deduplication, cache and batches.

Inputs are deduplicated, looked up in the cache, and judged in batches of **equal length**. An input
that is longer than the model's is read in windows of tokens, or has an empty answer. Without
padding, an answer is independent of the other pairs and of interruptions (up to the last bits of a
float32).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from tqdm import tqdm

from components.encoding import Features, Pair
from components.identity import identity
from eval.models.cache import AnswerCache, answer_key
from records import UserError

if TYPE_CHECKING:  # takes seconds to import, which cached answers do not need
    import torch
    from transformers import PreTrainedModel

Dtype = Literal["float32", "bfloat16"]

# Pairs that are tokenized and sorted together; bounds the memory.
WINDOW = 16_384
PROGRESS_AFTER = 5  # seconds until a progress bar appears
# Why a pair has no answer.
TOO_LONG = "the claim is too long for the model"
# A batch has at most batch_size rows and batch_size times this many tokens. In bfloat16 32 is an
# eighth faster than 16; larger batches can exceed a CPU's cache (half the speed at 6 000 tokens).
_TOKENS_PER_ROW = {"cpu": 32, "cuda": 256}


class EncodedRow(NamedTuple):
    """One encoded input or window, and what reading its answer needs.

    Attributes:
        features: token ids and token types.
        places: for a tagger, the first token of each word; for question answering, the characters
            of each token of the context.
        claim: for a sequence-to-sequence model, which is constrained to its words.
    """

    features: Features
    places: Sequence = ()
    claim: str = ""


class Engine:
    """Base class of engines that judge text pairs: deduplication, cache and batches.

    Args:
        batch_size: rows per batch; batches of long rows are smaller.
        cache: SQLite file for the answers; null (the default) caches nothing, and a re-run computes
            all answers again.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        dtype: of the weights and the computation.

    Attributes:
        judged: number of inputs (windows of pairs) that the model judged, without cached ones.
        no_answer: the reason why a pair has no answer.
        after_answers: options that only affect what is computed from the cached answers.
    """

    no_answer = TOO_LONG
    after_answers: Sequence[str] = ()
    _model: "PreTrainedModel"

    def __init__(
        self, batch_size: int, cache: str | Path | None, device: str, dtype: Dtype = "float32"
    ):
        if batch_size < 1:
            raise UserError(f"batch_size: expected at least 1, got {batch_size}")
        self.batch_size = batch_size
        self._device = device
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
            _ = self.device  # raises an error if PyTorch does not know it
        self.dtype = dtype
        self.judged = 0
        self._cache = AnswerCache(cache) if cache is not None else None

    @cached_property
    def device(self) -> "torch.device":
        """Device of the model, resolved when it is needed."""
        from eval.models.device import pick_device

        return pick_device(self._device)

    @cached_property
    def _fingerprint(self) -> bytes:
        described = {n: v for n, v in identity(self).items() if n not in self.after_answers}
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).digest()

    def _encode(self, inputs: Sequence[Pair]) -> list[list[EncodedRow]]:
        """Return the rows of each input: several if it is read in windows, none if too long."""
        raise NotImplementedError

    def _logits(self, output: Any) -> "torch.Tensor":
        return output.logits

    def _read(self, logits: np.ndarray, rows: Sequence[EncodedRow]) -> list[np.ndarray]:
        raise NotImplementedError

    def _unite(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        """Return the answer to an input from those to its windows: the largest first value."""
        return max(answers, key=lambda answer: answer[0])

    def _batches(self, rows: Sequence[EncodedRow]) -> Iterator[list[int]]:
        lengths = [len(row.features["input_ids"]) for row in rows]
        order = sorted(range(len(rows)), key=lambda index: -lengths[index])
        budget = self.batch_size * _TOKENS_PER_ROW.get(self.device.type, 256)
        for length, group in groupby(order, key=lambda index: lengths[index]):
            members = list(group)
            step = max(1, min(self.batch_size, budget // length))
            yield from (members[s : s + step] for s in range(0, len(members), step))

    def _forward(self, inputs: Sequence[Pair]) -> Iterator[dict[Pair, np.ndarray]]:
        encoded = self._encode(inputs)
        rows = [row for windows in encoded for row in windows]
        owners = [place for place, windows in enumerate(encoded) for _ in windows]
        ends = np.cumsum([0, *map(len, encoded)]).tolist()
        yield {pair: np.empty(0) for pair, w in zip(inputs, encoded, strict=True) if not w}
        answers: dict[int, np.ndarray] = {}
        for fresh in self._answers(rows) if rows else ():
            answers |= fresh
            indices = {p: range(ends[p], ends[p + 1]) for p in (owners[i] for i in fresh)}
            yield {
                inputs[place]: self._unite([answers.pop(index) for index in windows])
                for place, windows in indices.items()
                if answers.keys() >= set(windows)
            }

    def _answers(self, rows: Sequence[EncodedRow]) -> Iterator[dict[int, np.ndarray]]:
        import torch

        batches = list(self._batches(rows))
        model = self._model  # loaded once, before the threads
        threads = min(torch.get_num_threads(), len(batches)) if self.device.type == "cpu" else 1

        @torch.inference_mode()
        def judged(batch: list[int]) -> dict[int, np.ndarray]:
            chosen = [rows[index] for index in batch]
            features = {
                name: torch.tensor([row.features[name] for row in chosen], device=self.device)
                for name in chosen[0].features
            }
            logits = self._logits(model(**features)).double().cpu().numpy()
            return dict(zip(batch, self._read(logits, chosen), strict=True))

        if threads <= 1:
            yield from map(judged, batches)
            return
        # One thread per batch is faster than several threads per matrix product.
        before = torch.get_num_threads()
        try:
            alone = partial(torch.set_num_threads, 1)
            with ThreadPoolExecutor(threads, initializer=alone) as pool:
                yield from pool.map(judged, batches)
        finally:
            torch.set_num_threads(before)

    def _judge(self, inputs: Sequence[Pair]) -> list[np.ndarray]:
        answers: dict[Pair, np.ndarray] = dict.fromkeys(inputs)
        keys: dict[Pair, bytes] = {}
        if self._cache is not None:
            keys = {pair: answer_key(self._fingerprint, pair) for pair in answers}
            cached = self._cache.get(list(keys.values()))
            answers = {pair: cached.get(key) for pair, key in keys.items()}
        missing = [pair for pair, answer in answers.items() if answer is None]
        title = type(self).__name__
        with tqdm(
            None, title, len(missing), False, unit="pair", disable=None, delay=PROGRESS_AFTER
        ) as bar:
            for start in range(0, len(missing), WINDOW):
                for fresh in self._forward(missing[start : start + WINDOW]):
                    if self._cache is not None:
                        self._cache.put({keys[pair]: answer for pair, answer in fresh.items()})
                    answers.update(fresh)
                    self.judged += len(fresh)
                    bar.update(len(fresh))
        return [answers[pair] for pair in inputs]
