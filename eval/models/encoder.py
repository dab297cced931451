"""Trained encoders as batched engines: entailment, UNLI, and the LSS keep/drop tagger.

An engine takes a list of text pairs over the whole batch of documents and gives one answer a pair.
Inputs are deduplicated, looked up in the cache, and judged in batches of **equal length**: without
padding, the answer to a pair does not depend on what else is asked, or on what a killed run had
already answered (up to the last bits of a float32).

A long premise is cut into windows (``chunk_words`` of ``component.json``) and the best window
counts, as in FactReasoner (2502.18573) and WiCE, or reduced to one extract (``focus_words``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from components.calibration import probabilities
from components.checkpoint import RELATIONS, read_component
from components.encoding import Pair, encode_pairs, encode_words, first_tokens, row_features
from components.overlap import new_words
from components.windows import best_windows, chunk_premise, windows_of
from components.words import join_words, split_words
from eval.models.cache import AnswerCache, answer_key, fingerprint
from eval.models.counting import CountsPairs
from eval.models.lss import Subsequence
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
    return torch.device(device)


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
    """Replace the linear layers of a model on a CPU by packed ones."""
    for name, child in module.named_children():
        if type(child) is torch.nn.Linear and torch.backends.mkldnn.is_available():
            setattr(module, name, _PackedLinear(child))
        else:
            pack_linears(child)


class Row(NamedTuple):
    """One encoded input: features of one length, and for a tagger where the words start."""

    features: dict[str, list[int]]
    places: Sequence[int | None] = ()


# Models that some engine holds: where a configuration names a checkpoint several times, it has as
# many engines of one model.
_LOADED: WeakValueDictionary[tuple, PreTrainedModel] = WeakValueDictionary()


class Engine(CountsPairs):
    """What judges text pairs with an encoder: deduplication, cache and batches.

    Args:
        batch_size: rows a batch; a batch of long rows has fewer.
        cache: SQLite file that keeps the answers; ``None`` keeps none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        dtype: of the weights and of what is computed with them.
    """

    # What decides the answers; and the model, loaded when first needed.
    identity: dict[str, Any]
    _model: PreTrainedModel

    def __init__(
        self, batch_size: int, cache: str | Path | None, device: str, dtype: Dtype = "float32"
    ):
        logging.disable_progress_bar()  # a bar for loading weights that takes a second is noise
        self.batch_size = batch_size
        self.device = pick_device(device)
        self.dtype = dtype
        self._cache = AnswerCache(cache) if cache is not None else None

    @cached_property
    def _fingerprint(self) -> bytes:
        """What decides the answers, for the cache's keys."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).digest()

    def _encode(self, inputs: Sequence[Pair]) -> list[Row]:
        """Encode pairs, each as it would be encoded alone."""
        raise NotImplementedError

    def _read(self, logits: np.ndarray, rows: Sequence[Row]) -> list[np.ndarray]:
        """Turn the logits of a batch into one float array a row."""
        raise NotImplementedError

    def _batches(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        """Indices of rows of equal length, longest first."""
        lengths = [len(row.features["input_ids"]) for row in rows]
        order = sorted(range(len(rows)), key=lambda index: -lengths[index])
        budget = self.batch_size * _TOKENS_PER_ROW.get(self.device.type, 256)
        for length, group in groupby(order, key=lambda index: lengths[index]):
            members = list(group)
            step = max(1, min(self.batch_size, budget // length))
            yield from (members[s : s + step] for s in range(0, len(members), step))

    @torch.inference_mode()
    def _forward(self, inputs: Sequence[Pair]) -> Iterator[dict[Pair, np.ndarray]]:
        rows = self._encode(inputs)
        for batch in self._batches(rows):
            chosen = [rows[index] for index in batch]
            features = {
                name: torch.tensor([row.features[name] for row in chosen], device=self.device)
                for name in chosen[0].features
            }
            logits = self._model(**features).logits
            answers = self._read(logits.double().cpu().numpy(), chosen)
            yield {inputs[i]: a for i, a in zip(batch, answers, strict=True)}

    def _judge(self, inputs: Sequence[Pair]) -> list[np.ndarray]:
        """One answer an input, from the cache or the model."""
        answers: dict[Pair, np.ndarray] = dict.fromkeys(inputs)
        keys: dict[Pair, bytes] = {}
        if self._cache is not None:
            keys = {pair: answer_key(self._fingerprint, pair) for pair in answers}
            known = self._cache.get(list(keys.values()))
            answers = {pair: known.get(key) for pair, key in keys.items()}
        missing = [pair for pair, answer in answers.items() if answer is None]
        if self._count is not None:
            answers.update(self._counted(missing, keys, len(answers) - len(missing)))
            missing = []
        for start in range(0, len(missing), WINDOW):
            for fresh in self._forward(missing[start : start + WINDOW]):
                if self._cache is not None:
                    self._cache.put({keys[pair]: answer for pair, answer in fresh.items()})
                answers.update(fresh)
        return [answers[pair] for pair in inputs]


class Encoder(Engine):
    """An engine with a checkpoint of this repo.

    Args:
        checkpoint: folder that ``python -m train`` wrote.
        batch_size: rows a batch; a batch of long rows has fewer.
        cache: SQLite file that keeps the answers; ``None`` keeps none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        dtype: ``bfloat16`` (weights too) is about twice as fast where the processor computes in it;
            ``benchmarks/entailment.py`` says how far it moves the answers.

    Raises:
        UserError: not a checkpoint of the expected component.
    """

    expected: str
    auto_model: type = AutoModelForSequenceClassification

    def __init__(
        self,
        checkpoint: str | Path,
        batch_size: int = 64,
        cache: str | Path | None = None,
        device: str = "auto",
        dtype: Dtype = "float32",
    ):
        self.checkpoint = Path(checkpoint)
        self.component = read_component(self.checkpoint, self.expected)
        self._check()
        super().__init__(batch_size, cache, device, dtype)

    def _check(self) -> None:
        """Refuse a checkpoint of the right component whose outputs this engine cannot read."""

    @cached_property
    def _fingerprint(self) -> bytes:
        return fingerprint(self.expected, self.checkpoint, self.component, self.dtype)

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return AutoTokenizer.from_pretrained(self.checkpoint)

    @cached_property
    def _model(self) -> PreTrainedModel:
        """The model, loaded at the first pair that the cache does not know."""
        key = (self._fingerprint, self.auto_model, str(self.device))
        model = _LOADED.get(key)
        if model is None:
            model = _LOADED[key] = self._load()
        return model

    def _load(self) -> PreTrainedModel:
        dtype = getattr(torch, self.dtype)
        try:
            model, info = self.auto_model.from_pretrained(
                self.checkpoint, use_safetensors=True, dtype=dtype, output_loading_info=True
            )
        except (OSError, SafetensorError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{self.checkpoint}: weights cannot be loaded ({reason})") from None
        if info["missing_keys"]:
            raise UserError(
                f"{self.checkpoint}: weights lack {', '.join(sorted(info['missing_keys'])[:3])}; "
                "export the checkpoint again"
            )
        model.eval().to(self.device)
        if self.device.type == "cpu":
            pack_linears(model)
        return model

    def _encode(self, inputs: Sequence[Pair]) -> list[Row]:
        """Encode (premise, hypothesis) pairs, each as it would be encoded alone."""
        encoded = encode_pairs(self._tokenizer, inputs, self.component.max_length)
        return [Row(row_features(encoded, place)) for place in range(len(inputs))]

    def _best_of_windows(self, pairs: Sequence[Pair], width: int) -> np.ndarray:
        """Per pair the answer of the window with the highest first value, shape (n, width)."""
        if not pairs:
            return np.empty((0, width))
        component = self.component
        rows, windows = windows_of(
            pairs, component.chunk_words, component.focus_words, component.mark_new
        )
        answers = np.asarray(self._judge(windows))  # (windows, width)
        return answers[best_windows(answers[:, 0], rows)]


class Entailment(Encoder):
    """Relation of hypotheses to premises (an ``EntailmentModel`` of ``eval/stages.py``)."""

    expected = "relation"

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Calibrated probabilities of (premise, hypothesis) pairs.

        Of a premise of several windows, the window with the highest entailment probability gives
        all three values.

        Returns:
            Shape (n, 3): entailment, neutral, contradiction, whatever the checkpoint's own order.
        """
        return self._best_of_windows(pairs, 3)

    def _stand_in(self, pair: Pair) -> np.ndarray:
        """Entailment by the share of the hypothesis's words that the premise has."""
        new = new_words(pair[1].split(), pair[0])
        share = 0.98 * (1 - sum(new) / max(1, len(new)))
        return np.array([share, 1 - share, 0.0])

    def _read(self, logits: np.ndarray, rows: Sequence[Row]) -> list[np.ndarray]:
        component = self.component
        order = [component.labels.index(name) for name in RELATIONS]
        return list(probabilities(logits[:, order], component.temperature, component.shift))


class Unli(Encoder):
    """Subjective probability of hypotheses (a ``UnliModel`` of ``eval/stages.py``)."""

    expected = "unli"

    def _check(self) -> None:
        if len(self.component.labels) != 1:
            raise UserError(
                f"{self.checkpoint}: a UNLI model has one output, not {self.component.labels}"
            )

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """p(hypothesis | premise) of shape (n,); of several windows the likeliest counts."""
        return self._best_of_windows(pairs, 1)[:, 0]

    def _stand_in(self, pair: Pair) -> np.ndarray:
        return np.array([0.5])

    def _read(self, logits: np.ndarray, rows: Sequence[Row]) -> list[np.ndarray]:
        found = probabilities(logits[:, 0], self.component.temperature, self.component.shift)
        return list(found[:, None])


class LssTagger(Encoder):
    """Longest supported subsequences by keep/drop decisions (2308.12157, made non-generative).

    A word's probability is the highest over the reference's windows: different parts of a claim
    may be supported by different parts of the reference.
    """

    expected = "lss"
    auto_model = AutoModelForTokenClassification

    def _check(self) -> None:
        if self.component.architecture != "token_classifier":
            raise UserError(
                f"{self.checkpoint}: a {self.component.architecture} is no tagger; use "
                "eval.models.seq2seq.LssSeq2Seq, or give a token_classifier checkpoint"
            )
        if "keep" not in self.component.labels or len(self.component.labels) > 2:
            raise UserError(
                f"{self.checkpoint}: labels {self.component.labels} must be keep, or drop and keep"
            )

    def keep_probabilities(self, pairs: Sequence[Pair]) -> list[np.ndarray | None]:
        """Per (claim, reference) the probability of each word, shape (words,).

        ``None`` stands for a claim that does not fit the model's input.
        """
        chunks = [chunk_premise(ref, self.component.chunk_words) for _, ref in pairs]
        inputs = [(claim, c) for cs, (claim, _) in zip(chunks, pairs, strict=True) for c in cs]
        answers = iter(self._judge(inputs))
        found = []
        for (claim, _), cs in zip(pairs, chunks, strict=True):
            p = np.max([next(answers) for _ in cs], axis=0)  # (windows, words) -> (words,)
            # A claim that did not fit has no answers, see _encode.
            found.append(p if len(p) == len(split_words(claim)) else None)
        return found

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """What the references support of the claims; ``None`` where a claim is too long.

        Args:
            pairs: (claim, reference).
        """
        threshold = self.component.keep_threshold or 0.5
        found: list[Subsequence | None] = []
        for (claim, _), p in zip(pairs, self.keep_probabilities(pairs), strict=True):
            keep = None if p is None else (p >= threshold).tolist()
            text = "" if keep is None else join_words(claim, split_words(claim), keep)
            found.append(None if keep is None else Subsequence(keep, text))
        return found

    def _stand_in(self, pair: Pair) -> np.ndarray:
        return np.ones(len(split_words(pair[0])))

    def _encode(self, inputs: Sequence[Pair]) -> list[Row]:
        rows, component = [], self.component
        for claim, reference in inputs:
            words = split_words(claim)
            try:
                encoded = encode_words(
                    self._tokenizer,
                    words,
                    reference,
                    component.max_length,
                    component.focus_words,
                    component.mark_new,
                )
            except Exception:  # the tokenizer's only complaint: the claim alone is too long
                rows.append(Row({"input_ids": [self._tokenizer.pad_token_id or 0]}))
                continue
            places = first_tokens(encoded, 0, len(words))
            rows.append(Row(row_features(encoded, 0), places))
        return rows

    def _read(self, logits: np.ndarray, rows: Sequence[Row]) -> list[np.ndarray]:
        """Probabilities of keep at the first token of every word; 0 for a word without tokens."""
        keep = self.component.labels.index("keep")
        answers = []
        for row, tokens in zip(rows, logits, strict=True):  # tokens: (length, labels)
            single = tokens.shape[1] == 1
            p = probabilities(tokens[:, 0] if single else tokens, self.component.temperature)
            p = p if single else p[:, keep]
            answers.append(np.asarray([0.0 if at is None else p[at] for at in row.places]))
        return answers
