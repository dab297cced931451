"""Batched engines: text pairs in, one answer a pair out; deduplicated, cached, in even batches.

An engine takes a list of text pairs over the whole batch of documents. Inputs are deduplicated,
looked up in the cache, and judged in batches of **equal length**: without padding, the answer to a
pair does not depend on what else is asked, or on what a killed run had already answered (up to the
last bits of a float32).
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from components.encoding import Pair
from eval.models.cache import AnswerCache, answer_key
from eval.models.counting import CountsPairs
from records import UserError

Dtype = Literal["float32", "bfloat16"]

# Pairs that are tokenized and sorted together; bounds the memory that millions of pairs take.
WINDOW = 16_384
# A batch holds at most batch_size rows and batch_size times this many tokens. On a CPU larger
# batches of long rows fall out of its cache (measured: half the speed at 6 000 tokens).
_TOKENS_PER_ROW = {"cpu": 16, "cuda": 256}


def pick_device(device: str) -> torch.device:
    """``auto`` is the accelerator where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(device)
    except RuntimeError:
        raise UserError(
            f"device: {device!r} is none of PyTorch's; give auto, cpu, cuda or cuda:1"
        ) from None


def present(device: torch.device) -> torch.device:
    """The device, for the moment at which a model is put there."""
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device: {device}: no such GPU here; give auto or cpu")
    return device


class _PackedLinear(torch.nn.Module):
    """A linear layer whose weights are laid out for oneDNN, for inference on a CPU.

    The same numbers as ``torch.nn.Linear`` up to rounding. Where PyTorch hands float32 to MKL,
    which leaves AVX-512 unused on AMD, this computes up to 2.3 times as fast; bfloat16, which is
    oneDNN's already, gains some 8 % of a whole model's time.
    """

    def __init__(self, linear: torch.nn.Linear):
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.data, None)
        self.bias = None if linear.bias is None else linear.bias.data

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


def pack_linears(module: torch.nn.Module) -> None:
    """Replace the linear layers of a model on a CPU by packed ones.

    oneDNN packs bfloat16 only on processors with AVX-512 or AVX-NE-CONVERT.
    """
    for name, child in module.named_children():
        if type(child) is torch.nn.Linear and _can_pack(child.weight.dtype):
            setattr(module, name, _PackedLinear(child))
        else:
            pack_linears(child)


def _can_pack(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype != torch.bfloat16 or torch.ops.mkldnn._is_mkldnn_bf16_supported()


class Row(NamedTuple):
    """One encoded input: features of one length, and for a tagger where the words start."""

    features: dict[str, list[int]]
    places: Sequence[int | None] = ()


class Engine(CountsPairs):
    """What judges text pairs with an encoder: deduplication, cache and batches.

    Args:
        batch_size: rows a batch; a batch of long rows has fewer.
        cache: SQLite file that keeps the answers; ``None`` keeps none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        dtype: of the weights and of what is computed with them.

    Attributes:
        judged: inputs (windows of pairs) that the model judged so far; not what the cache knew.
    """

    # What decides the answers; and the model, loaded when first needed.
    identity: dict[str, Any]
    _model: PreTrainedModel

    def __init__(
        self, batch_size: int, cache: str | Path | None, device: str, dtype: Dtype = "float32"
    ):
        logging.disable_progress_bar()  # a bar for loading weights that takes a second is noise
        if batch_size < 1:
            raise UserError(f"batch_size: {batch_size}; give at least 1")
        self.batch_size = batch_size
        self.device = pick_device(device)
        self.dtype = dtype
        self.judged = 0
        self._cache = AnswerCache(cache) if cache is not None else None

    @cached_property
    def _fingerprint(self) -> bytes:
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).digest()

    def _encode(self, inputs: Sequence[Pair]) -> list[Row]:
        raise NotImplementedError

    def _read(self, logits: np.ndarray, rows: Sequence[Row]) -> list[np.ndarray]:
        raise NotImplementedError

    def _batches(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        lengths = [len(row.features["input_ids"]) for row in rows]
        order = sorted(range(len(rows)), key=lambda index: -lengths[index])
        budget = self.batch_size * _TOKENS_PER_ROW.get(self.device.type, 256)
        for length, group in groupby(order, key=lambda index: lengths[index]):
            members = list(group)
            step = max(1, min(self.batch_size, budget // length))
            yield from (members[s : s + step] for s in range(0, len(members), step))

    def _forward(self, inputs: Sequence[Pair]) -> Iterator[dict[Pair, np.ndarray]]:
        rows = self._encode(inputs)
        batches = list(self._batches(rows))
        model = self._model  # loaded once, before the threads
        threads = min(torch.get_num_threads(), len(batches)) if self.device.type == "cpu" else 1

        @torch.inference_mode()
        def judged(batch: list[int]) -> dict[Pair, np.ndarray]:
            chosen = [rows[index] for index in batch]
            features = {
                name: torch.tensor([row.features[name] for row in chosen], device=self.device)
                for name in chosen[0].features
            }
            logits = model(**features).logits
            answers = self._read(logits.double().cpu().numpy(), chosen)
            return {inputs[i]: a for i, a in zip(batch, answers, strict=True)}

        if threads <= 1:
            yield from map(judged, batches)
            return
        # A thread a batch: cores that share each matrix product wait for each other.
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
        if self._count is not None:
            answers.update(self._counted(missing, keys, len(answers) - len(missing)))
            missing = []
        for start in range(0, len(missing), WINDOW):
            for fresh in self._forward(missing[start : start + WINDOW]):
                if self._cache is not None:
                    self._cache.put({keys[pair]: answer for pair, answer in fresh.items()})
                answers.update(fresh)
                self.judged += len(fresh)
        return [answers[pair] for pair in inputs]
