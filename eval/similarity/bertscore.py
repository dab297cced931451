"""BERTScore: tokens of two texts matched by their contextual embeddings.

Zhang et al. 2020 (1904.09675), section 3. Written here because a long reference must be read whole:
the published package cuts a text where the encoder's input ends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

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
from eval.models.engine import Engine, Row
from eval.models.hub import load_whole, named, positions
from eval.similarity import Measure
from records import UserError, iter_rows

# Pairs whose embeddings are in memory together.
_TOGETHER = 128


@dataclass(eq=False)
class BertScore(Measure):
    """Greedy matching of tokens by cosine: recall over the reference's, precision over the other's.

    A text that is longer than the encoder's input is read in windows that overlap by half; each
    token is embedded where it has most text on both sides. Start and end tokens are left out (in
    the released code they weigh nothing, but others may match them). No baseline rescaling, which
    is a linear map and changes no correlation.

    Args:
        model: a hub id, a folder or ``package:…``. Published figures use ``roberta-large``.
        layer: which hidden layer, 0 for the input embeddings; the last when not given. The released
            code takes 17 for ``roberta-large``, 9 for ``bert-base-uncased``.
        value: which of the three.
        idf: file with a column ``reference`` (JSONL, CSV, Parquet); tokens then weigh
            ln((1 + texts) / (1 + texts with it)) over its different references.
        max_length: input length in tokens; the model's own when not given.
        batch_size: windows a batch; a batch of long ones has fewer.
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
    def identity(self) -> dict[str, Any]:
        """The encoder and its layer."""
        return {"engine": "bertscore", "model": named(self.model), "layer": self.layer}

    @cached_property
    def _embedder(self) -> _Embedder:
        return _Embedder(self.model, self.layer, self.max_length, self.batch_size, self.device)

    @cached_property
    def _weights(self) -> tuple[Counter[int], int] | None:
        if self.idf is None:
            return None
        texts = {str(row.get("reference") or "") for _, row in iter_rows(self.idf)} - {""}
        if not texts:
            raise UserError(f"idf: {self.idf} has no column reference")
        found = self._embedder.tokens(sorted(texts))
        return Counter(token for ids in found for token in sorted(set(ids))), len(texts)

    def _weigh(self, ids: Sequence[int]) -> np.ndarray:
        """The weight of each token, shape (tokens,)."""
        if self._weights is None:
            return np.ones(len(ids))
        spread, texts = self._weights
        return np.asarray([math.log((texts + 1) / (spread[token] + 1)) for token in ids])

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in [-1, 1]; NaN where the encoder knows no token of a text."""
        scores = []
        for start in range(0, len(pairs), _TOGETHER):
            own = pairs[start : start + _TOGETHER]
            texts = list(dict.fromkeys(text for pair in own for text in pair))
            ids = dict(zip(texts, self._embedder.tokens(texts), strict=True))
            vectors = dict(zip(texts, self._embedder.embed([ids[t] for t in texts]), strict=True))
            scores += [
                self._match(vectors[r], vectors[c], self._weigh(ids[r]), self._weigh(ids[c]))
                for r, c in own
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
            raise UserError(f"layer: {self.layer}; {self.name} has {layers}")
        return model

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        one = self.tokenizer("a", return_special_tokens_mask=True)
        text = [place for place, special in enumerate(one["special_tokens_mask"]) if not special]
        return one["input_ids"][: text[0]], one["input_ids"][text[-1] + 1 :]

    @cached_property
    def _room(self) -> int:
        places = positions(self._model.config)
        whole = min(places, self.tokenizer.model_max_length, self.max_length or 10**6)
        return whole - sum(map(len, self._frame))

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # As in the released code, so that a first word is the same token as within a text.
        first = " " if isinstance(self.tokenizer, (GPT2Tokenizer, RobertaTokenizer)) else ""
        bare = [f"{first}{text.strip()}" for text in texts]
        return self.tokenizer(bare, add_special_tokens=False, verbose=False)["input_ids"]

    @torch.inference_mode()
    def embed(self, texts: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Unit vectors of the tokens of each text, shape (tokens, size)."""
        (before, after), room = self._frame, self._room
        places = []
        for text, ids in enumerate(texts):
            last = max(len(ids) - room, 0)
            places += [(text, start) for start in [*range(0, last, max(1, room // 2)), last] if ids]
        windows = [[*before, *texts[text][start : start + room], *after] for text, start in places]
        found = [np.zeros((len(ids), self._model.config.hidden_size), np.float32) for ids in texts]
        best = [np.full(len(ids), -1.0) for ids in texts]
        for batch in self._batches([Row({"input_ids": window}) for window in windows]):
            ids = torch.tensor([windows[index] for index in batch], device=self.device)
            layers = self._model(input_ids=ids, output_hidden_states=True).hidden_states
            layer = layers[-1 if self.layer is None else self.layer]
            unit = torch.nn.functional.normalize(layer.float(), dim=-1).cpu().numpy()
            for index, vectors in zip(batch, unit, strict=True):
                text, start = places[index]
                own = vectors[len(before) : len(vectors) - len(after)]
                _keep_deepest(found[text], best[text], start, own)
        return found


def _keep_deepest(found: np.ndarray, best: np.ndarray, start: int, vectors: np.ndarray) -> None:
    """Take over the tokens that stand farther from a cut in this window than in those before.

    Args:
        found: vectors of the text so far, shape (tokens, size); changed.
        best: tokens to the nearest cut in the window they are from, shape (tokens,); changed.
        start: the window's first token.
        vectors: of the window, shape (its tokens, size).
    """
    end, place = start + len(vectors), np.arange(len(vectors), dtype=float)
    left = place if start else np.full_like(place, np.inf)
    right = place[::-1] if end < len(found) else np.full_like(place, np.inf)
    depth = np.minimum(left, right)
    deeper = depth > best[start:end]
    found[start:end][deeper] = vectors[deeper]
    best[start:end][deeper] = depth[deeper]
