"""FActScore's Nonparametric Probability: how likely a masked model finds a claim in passages.

FActScore (2305.14251, section 4.1) masks each token of a fact and asks a nonparametric masked
language model (NPM, Min et al. 2023, 2212.01349) for its probability. Such a model has no output
layer: it fills a mask with a token of a corpus, here the claim's passages, whose vector is near
the mask's.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from bm25s.stopwords import STOPWORDS_EN_PLUS
from jsonargparse.typing import ClosedUnitInterval, PositiveInt
from scipy.special import softmax
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from components.base import load_tokenizer
from components.encoding import batches_by_length, pad
from eval.models.engine import Engine
from eval.models.hub import check_length, load_whole, named
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import Claim, Passage, UserError, Verdict

# Claims whose passages are in memory together; 64 x 3 passages of 256 tokens take 200 MB.
CLAIMS = 64

_LEAD = "Fact: "
_STOPWORDS = frozenset(STOPWORDS_EN_PLUS)


class _Masked(NamedTuple):
    """A claim's tokens with those of special meaning, and where a mask may stand."""

    ids: list[int]
    places: list[int]


class NP(ClaimByClaim, Engine):
    """Judge each claim by the mean probability of its tokens; also a part of ``FActScore``.

    For the token x at a masked place of "Fact: claim", with vector q of the mask, and the tokens
    y₁ … yₙ of the passages, with vectors p₁ … pₙ (last hidden states, d wide)::

        P(x) = Σ_{i: yᵢ = x} exp(q·pᵢ / √d) / Σᵢ exp(q·pᵢ / √d)

    and a claim is supported where the mean of P over its tokens is above ``threshold``. Stop words
    and punctuation are not masked. All this is the released code's (``factscore/npm.py``). Here it
    departs from that: the passages are the first ``k`` of the claim's own, where the released code
    searches the page anew by BM25; a mask is put among the token ids, not into a text that is
    tokenized again; stop words are NLTK's, in small letters, where it has a list of RoBERTa's ids;
    a claim of nothing but stop words, or one that is too long, is ``failed``.

    Args:
        model: a masked language model: a hub id, a folder or ``package:…``; safetensors only.
        threshold: mean probability above which a claim is supported.
        k: passages a claim.
        max_length: input length in tokens; longer passages are read in parts.
        batch_size: rows a batch.
        cache: SQLite file that keeps the probabilities; ``None`` keeps none.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    assessor = "factscore"
    name = "np"

    def __init__(
        self,
        model: str = "facebook/npm-single",
        threshold: ClosedUnitInterval = 0.3,
        k: PositiveInt = 3,
        max_length: PositiveInt = 512,
        batch_size: PositiveInt = 32,
        cache: Path | None = None,
        device: str = "auto",
    ):
        Engine.__init__(self, batch_size, cache, device)
        self.model = model
        self.threshold = threshold
        self.k = k
        self.max_length = max_length

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The model and whatever else decides the probabilities."""
        return {"engine": "np", "model": named(self.model), "max_length": self.max_length}

    def judge(self, asked: Sequence[ClaimToJudge]) -> list[Verdict]:
        """One verdict a claim; ``p`` is the mean probability of its tokens."""
        found = self.probabilities([(one.claim.text, one.passages) for one in asked])
        return [self._verdict(one.claim, p) for one, p in zip(asked, found, strict=True)]

    def _verdict(self, claim: Claim, p: float | str) -> Verdict:
        if isinstance(p, str):
            return self.failed(claim, p)
        return self.verdict(claim, "supported" if p > self.threshold else "not_supported", p=p)

    def probabilities(self, pairs: Sequence[tuple[str, Sequence[Passage]]]) -> list[float | str]:
        """Mean probability of each claim's tokens; a text that says why there is none.

        Args:
            pairs: a claim and its passages, best first.
        """
        reasons = [self._unfit(claim) for claim, _ in pairs]
        inputs = [
            (claim, *(passage.text for passage in own[: self.k]))
            for (claim, own), reason in zip(pairs, reasons, strict=True)
            if reason is None
        ]
        found = iter(self._judge(inputs))  # each of shape (masked tokens,)
        return [float(next(found).mean()) if why is None else why for why in reasons]

    def _unfit(self, claim: str) -> str | None:
        masked = self._masked(claim)
        if len(masked.ids) > self.max_length:
            return "claim too long for the model"
        return None if masked.places else "no word that could be masked"

    def _masked(self, claim: str) -> _Masked:
        text = f"{_LEAD}{' '.join(claim.split())}"
        encoded = self._tokenizer(
            text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False
        )
        places = [
            place
            for place, (span, special) in enumerate(
                zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
            )
            if not special and _may_be_masked(text, *span)
        ]
        return _Masked(encoded["input_ids"], places)

    def _forward(
        self, inputs: Sequence[tuple[str, ...]]
    ) -> Iterator[dict[tuple[str, ...], np.ndarray]]:
        """Per claim, with its passages, the probability of each token, shape (masked tokens,)."""
        states: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for start in range(0, len(inputs), CLAIMS):
            part = inputs[start : start + CLAIMS]
            texts = list(dict.fromkeys(text for _, *own in part for text in own))
            # Neighbours share passages, so what the last claims had may serve again.
            states = {text: states[text] for text in texts if text in states}
            states |= self._passages([text for text in texts if text not in states])
            masks = self._masks([claim for claim, *_ in part])
            yield {
                whole: _probabilities(queries, targets, [states[text] for text in whole[1:]])
                for whole, (queries, targets) in zip(part, masks, strict=True)
            }

    def _masks(self, claims: Sequence[str]) -> list[tuple[np.ndarray, list[int]]]:
        """Per claim the masks' vectors, shape (masks, width), and the tokens that they hide."""
        masked = [self._masked(claim) for claim in claims]
        mask = self._tokenizer.mask_token_id
        rows = [
            [*own.ids[:place], mask, *own.ids[place + 1 :]]
            for own in masked
            for place in own.places
        ]
        vectors = iter(self._encode_ids(rows))
        return [
            (
                np.stack([next(vectors)[place] for place in own.places]),
                [own.ids[place] for place in own.places],
            )
            for own in masked
        ]

    def _passages(self, texts: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Per text its token ids, shape (tokens,), and vectors, shape (tokens, width).

        As in the released code the model reads them without the tokens that mark a text's ends.
        """
        if not texts:
            return {}
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)
        parts = [
            [ids[start : start + self.max_length] for start in range(0, len(ids), self.max_length)]
            for ids in encoded["input_ids"]
        ]
        vectors = iter(self._encode_ids([ids for own in parts for ids in own]))
        special = self._tokenizer.all_special_ids
        found = {}
        for text, own in zip(texts, parts, strict=True):
            tokens = np.asarray([token for ids in own for token in ids], dtype=int)
            states = [next(vectors) for _ in own]
            keep = ~np.isin(tokens, special)
            found[text] = tokens[keep], np.concatenate(states or [np.empty((0, 1))])[keep]
        return found

    @torch.inference_mode()
    def _encode_ids(self, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Last hidden states, each of shape (tokens, width)."""
        states: list[np.ndarray] = [np.empty(0)] * len(rows)
        for batch in batches_by_length([len(row) for row in rows], self.batch_size):
            chosen = [rows[place] for place in batch]
            ids = pad(chosen, self._tokenizer.pad_token_id).to(self.device)
            mask = pad([[1] * len(row) for row in chosen], 0).to(self.device)
            output = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            for place, row, vectors in zip(batch, chosen, output.cpu().numpy(), strict=True):
                states[place] = vectors[: len(row)].copy()
        return states

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        tokenizer = load_tokenizer(self.model)
        if tokenizer.mask_token_id is None:
            raise UserError(f"{self.model}: has no mask token; give a masked language model")
        return tokenizer

    @cached_property
    def _model(self) -> PreTrainedModel:
        # A pooler, which language models are saved without, reads no single token.
        loaded = load_whole(AutoModel, self.model, self.device, optional="pooler")
        check_length(self.model, self.max_length, loaded.config)
        return loaded


def _may_be_masked(text: str, start: int, end: int) -> bool:
    piece = text[start:end]
    if end < len(_LEAD) or not any(char.isalnum() for char in piece):
        return False
    inside = piece[0].isalnum() and text[start - 1 : start].isalnum()
    goes_on = piece[-1].isalnum() and text[end : end + 1].isalnum()
    return inside or goes_on or piece.strip() not in _STOPWORDS


def _probabilities(
    queries: np.ndarray, targets: Sequence[int], passages: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """P of each target among the passages' tokens.

    Args:
        queries: vectors of the masks, shape (masks, width).
        targets: the tokens that they hide.
        passages: token ids, shape (tokens,), and vectors, shape (tokens, width), of each.
    """
    tokens = np.concatenate([ids for ids, _ in passages])  # (n,)
    if not len(tokens):
        return np.zeros(len(targets))
    vectors = np.concatenate([own for ids, own in passages if len(ids)]).astype(np.float64)
    scores = queries.astype(np.float64) @ vectors.T / np.sqrt(vectors.shape[1])  # (masks, n)
    same = np.asarray(targets)[:, None] == tokens[None, :]
    return (softmax(scores, axis=1) * same).sum(axis=1)
