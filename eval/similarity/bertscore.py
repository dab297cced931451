"""BERTScore (Zhang et al. 2020, 1904.09675, section 3), for texts of any length.

The published package truncates texts at the encoder's maximum length.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jsonargparse.typing import NonNegativeInt, PositiveInt
from transformers import (
    AutoModel,
    GPT2Tokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    RobertaTokenizer,
)

from components.base import load_tokenizer
from components.encoding import Pair
from eval.models.engine import EncodedRow, Engine
from eval.models.hub import load_whole, positions
from eval.similarity import Measure
from records import UserError, iter_rows

_PAIRS_PER_BATCH = 128


@dataclass(eq=False)
class BertScore(Measure):
    """Greedy matching of tokens by cosine: recall over the reference, precision over the candidate.

    Longer texts are split into windows that overlap by half; each token's embedding is from the
    window with most context on both sides. Special tokens are excluded (in the released code they
    have no weight, but other tokens may match them). There is no baseline rescaling.

    Args:
        model: a hub id, a folder or ``package:…``. Published results use ``roberta-large``.
        layer: hidden layer, 0: input embeddings; null: the last. The released code uses 17 for
            ``roberta-large``, 9 for ``bert-base-uncased``.
        value: F1, precision or recall.
        idf: file with a column ``reference`` (JSONL, CSV, Parquet) for IDF weights of tokens,
            ln((1 + texts) / (1 + texts with the token)), over its distinct references.
        max_length: maximum input length in tokens; null: the model's.
        batch_size: maximum windows per batch; fewer for long windows.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    model: str
    layer: NonNegativeInt | None = None
    value: Literal["fmeasure", "precision", "recall"] = "fmeasure"
    idf: str | None = None
    max_length: PositiveInt | None = None
    batch_size: int = 64
    device: str = "auto"

    @cached_property
    def _embedder(self) -> _Embedder:
        return _Embedder(self.model, self.layer, self.max_length, self.batch_size, self.device)

    @cached_property
    def _weights(self) -> tuple[Counter[int], int] | None:
        if self.idf is None:
            return None
        texts = {str(row.get("reference") or "") for _, row in iter_rows(self.idf)} - {""}
        if not texts:
            raise UserError(f"idf: {self.idf}: expected a column `reference`")
        token_ids = self._embedder.tokens(sorted(texts))
        return Counter(token for ids in token_ids for token in sorted(set(ids))), len(texts)

    def _weigh(self, ids: Sequence[int]) -> np.ndarray:
        """Weights of shape (tokens,)."""
        if self._weights is None:
            return np.ones(len(ids))
        spread, texts = self._weights
        return np.asarray([math.log((texts + 1) / (spread[token] + 1)) for token in ids])

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score in [-1, 1] per pair; NaN if a text has no tokens."""
        scores = []
        for start in range(0, len(pairs), _PAIRS_PER_BATCH):
            batch = pairs[start : start + _PAIRS_PER_BATCH]
            texts = list(dict.fromkeys(text for pair in batch for text in pair))
            ids = dict(zip(texts, self._embedder.tokens(texts), strict=True))
            vectors = dict(zip(texts, self._embedder.embed([ids[t] for t in texts]), strict=True))
            scores += [
                self._match(vectors[r], vectors[c], self._weigh(ids[r]), self._weigh(ids[c]))
                for r, c in batch
            ]
        return scores

    def _match(
        self, reference: np.ndarray, candidate: np.ndarray, r_weight: np.ndarray, c_weight
    ) -> float:
        """The score from unit vectors of shapes (tokens, size) and weights (tokens,)."""
        if not r_weight.sum() or not c_weight.sum():
            return math.nan
        cosine = reference @ candidate.T
        recall = float(np.average(cosine.max(axis=1), weights=r_weight))
        precision = float(np.average(cosine.max(axis=0), weights=c_weight))
        if self.value != "fmeasure":
            return {"recall": recall, "precision": precision}[self.value]
        both = recall + precision
        return 2 * recall * precision / both if both else 0.0


class _Embedder(Engine):
    """Token embeddings of texts of any length, in batches of equal length without padding."""

    def __init__(
        self, model: str, layer: int | None, max_length: int | None, batch_size: int, device: str
    ):
        super().__init__(batch_size, None, device)
        self.name = model
        self.layer = layer
        self.max_length = max_length
        self.tokenizer: PreTrainedTokenizerBase = load_tokenizer(model)

    @cached_property
    def _model(self) -> PreTrainedModel:
        model = load_whole(AutoModel, self.name, self.device, optional="pooler")
        if self.layer is not None and self.layer > model.config.num_hidden_layers:
            layers = model.config.num_hidden_layers
            raise UserError(f"layer: {self.layer}, but {self.name} has {layers} layers")
        return model

    @cached_property
    def _special_tokens(self) -> tuple[list[int], list[int]]:
        encoded = self.tokenizer("a", return_special_tokens_mask=True)
        text = [i for i, special in enumerate(encoded["special_tokens_mask"]) if not special]
        return encoded["input_ids"][: text[0]], encoded["input_ids"][text[-1] + 1 :]

    @cached_property
    def _window_length(self) -> int:
        max_positions = positions(self._model.config)
        length = min(max_positions, self.tokenizer.model_max_length, self.max_length or 10**6)
        return length - sum(map(len, self._special_tokens))

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # as in the released code: the first word gets the same token as later words
        first = " " if isinstance(self.tokenizer, (GPT2Tokenizer, RobertaTokenizer)) else ""
        bare = [f"{first}{text.strip()}" for text in texts]
        return self.tokenizer(bare, add_special_tokens=False, verbose=False)["input_ids"]

    @torch.inference_mode()
    def embed(self, texts: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Unit vectors of the tokens of each text, shape (tokens, size)."""
        (before, after), size = self._special_tokens, self._window_length
        starts = []
        for text, ids in enumerate(texts):
            last = max(len(ids) - size, 0)
            starts += [(text, start) for start in [*range(0, last, max(1, size // 2)), last] if ids]
        windows = [[*before, *texts[text][start : start + size], *after] for text, start in starts]
        result = [np.zeros((len(ids), self._model.config.hidden_size), np.float32) for ids in texts]
        best = [np.full(len(ids), -1.0) for ids in texts]
        for batch in self._batches([EncodedRow({"input_ids": window}) for window in windows]):
            ids = torch.tensor([windows[index] for index in batch], device=self.device)
            layers = self._model(input_ids=ids, output_hidden_states=True).hidden_states
            layer = layers[-1 if self.layer is None else self.layer]
            unit = torch.nn.functional.normalize(layer.float(), dim=-1).cpu().numpy()
            for index, vectors in zip(batch, unit, strict=True):
                text, start = starts[index]
                inner = vectors[len(before) : len(vectors) - len(after)]
                _keep_deepest(result[text], best[text], start, inner)
        return result


def _keep_deepest(kept: np.ndarray, best: np.ndarray, start: int, vectors: np.ndarray) -> None:
    """Replace the ``kept`` vectors of tokens that are farther from the edges of this window.

    ``best`` is the distance of each token of the text to the nearest edge of its window.
    """
    end, index = start + len(vectors), np.arange(len(vectors), dtype=float)
    left = index if start else np.full_like(index, np.inf)
    right = index[::-1] if end < len(kept) else np.full_like(index, np.inf)
    depth = np.minimum(left, right)
    deeper = depth > best[start:end]
    kept[start:end][deeper] = vectors[deeper]
    best[start:end][deeper] = depth[deeper]
