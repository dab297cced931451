"""FActScore's Nonparametric Probability: how likely a masked model finds a claim in passages.

FActScore (2305.14251, section 4.1) masks each token of a fact and computes its probability with NPM
(Min et al. 2023, 2212.01349), a masked language model that fills a mask with corpus tokens.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from bm25s.stopwords import STOPWORDS_EN_PLUS
from jsonargparse.typing import ClosedUnitInterval, PositiveInt
from scipy.special import softmax
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from components.base import load_tokenizer
from components.encoding import batches_by_length, pad
from eval.models.engine import Engine
from eval.models.hub import check_length, load_whole
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import Claim, Passage, UserError, Verdict

# Claims per memory chunk; 64 x 3 passages of 256 tokens take 200 MB.
CLAIMS = 64

_LEAD = "Fact: "
_STOPWORDS = frozenset(STOPWORDS_EN_PLUS)


class _Masked(NamedTuple):
    """A claim's token ids with special tokens, and the positions that may be masked."""

    ids: list[int]
    positions: list[int]


class NP(ClaimByClaim, Engine):
    """Judge each claim by the mean probability of its tokens; also a part of ``FActScore``.

    For the token x at a masked position of "Fact: claim", with vector q of the mask, and the tokens
    y₁ … yₙ of the passages, with vectors p₁ … pₙ (last hidden states of dimension d)::

        P(x) = Σ_{i: yᵢ = x} exp(q·pᵢ / √d) / Σᵢ exp(q·pᵢ / √d)

    A claim is supported if the mean of P over its tokens is above ``threshold``. Stop words and
    punctuation are not masked. This follows the released code (``factscore/npm.py``), except:

    - The passages are the claim's first ``k``; the released code searches the page again by BM25.
    - The mask replaces a token id; the released code masks the text and tokenizes it again.
    - Stop words are NLTK's, lower-case; the released code has a list of RoBERTa token ids.
    - A claim without content words, or one that is too long, is ``failed``.

    Args:
        model: a masked language model: a hub id, a folder or ``package:…``; safetensors only.
        threshold: mean probability above which a claim is supported.
        k: passages per claim.
        max_length: input length in tokens; 512, as in RoBERTa; longer passages are encoded in
            parts.
        batch_size: rows per batch.
        cache: SQLite file for the probabilities; null (the default) caches nothing, and a re-run
            computes them again.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    assessor = "factscore"
    name = "np"
    after_answers = ("threshold",)

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

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        """Judge claims; ``p`` is the mean probability of a claim's tokens."""
        probabilities = self.probabilities([(item.claim.text, item.passages) for item in items])
        return [self._verdict(item.claim, p) for item, p in zip(items, probabilities, strict=True)]

    def _verdict(self, claim: Claim, p: float | str) -> Verdict:
        if isinstance(p, str):
            return self.failed(claim, p)
        return self.verdict(claim, "supported" if p > self.threshold else "not_supported", p=p)

    def probabilities(self, pairs: Sequence[tuple[str, Sequence[Passage]]]) -> list[float | str]:
        """Return the mean probability of each claim's tokens, or the reason why there is none.

        Args:
            pairs: claims with their passages, best first.
        """
        reasons = [self._unfit(claim) for claim, _ in pairs]
        inputs = [
            (claim, *(passage.text for passage in passages[: self.k]))
            for (claim, passages), reason in zip(pairs, reasons, strict=True)
            if reason is None
        ]
        probabilities = iter(self._judge(inputs))  # each of shape (masked tokens,)
        return [
            float(next(probabilities).mean()) if reason is None else reason for reason in reasons
        ]

    def _unfit(self, claim: str) -> str | None:
        masked = self._masked(claim)
        if len(masked.ids) > self.max_length:
            return "claim too long for the model"
        return None if masked.positions else "no word that could be masked"

    def _masked(self, claim: str) -> _Masked:
        text = f"{_LEAD}{' '.join(claim.split())}"
        encoded = self._tokenizer(
            text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False
        )
        positions = [
            position
            for position, (span, special) in enumerate(
                zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
            )
            if not special and _may_be_masked(text, *span)
        ]
        return _Masked(encoded["input_ids"], positions)

    def _forward(
        self, inputs: Sequence[tuple[str, ...]]
    ) -> Iterator[dict[tuple[str, ...], np.ndarray]]:
        """Map (claim, *passages) to token probabilities, shape (masked tokens,)."""
        states: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for start in range(0, len(inputs), CLAIMS):
            part = inputs[start : start + CLAIMS]
            texts = list(dict.fromkeys(text for _, *passages in part for text in passages))
            # Consecutive claims share passages, so reuse states of the previous chunk.
            states = {text: states[text] for text in texts if text in states}
            states |= self._passages([text for text in texts if text not in states])
            masks = self._masks([claim for claim, *_ in part])
            yield {
                key: _probabilities(queries, targets, [states[text] for text in key[1:]])
                for key, (queries, targets) in zip(part, masks, strict=True)
            }

    def _masks(self, claims: Sequence[str]) -> list[tuple[np.ndarray, list[int]]]:
        """Per claim the masks' vectors, shape (masks, width), and the masked token ids."""
        masked = [self._masked(claim) for claim in claims]
        mask = self._tokenizer.mask_token_id
        rows = [
            [*claim.ids[:position], mask, *claim.ids[position + 1 :]]
            for claim in masked
            for position in claim.positions
        ]
        vectors = iter(self._encode_ids(rows))
        return [
            (
                np.stack([next(vectors)[position] for position in claim.positions]),
                [claim.ids[position] for position in claim.positions],
            )
            for claim in masked
        ]

    def _passages(self, texts: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Map texts to token ids, shape (tokens,), and vectors, shape (tokens, width)."""
        if not texts:
            return {}
        # Without start and end tokens, as in the released code
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)
        text_chunks = [
            [ids[start : start + self.max_length] for start in range(0, len(ids), self.max_length)]
            for ids in encoded["input_ids"]
        ]
        vectors = iter(self._encode_ids([ids for chunks in text_chunks for ids in chunks]))
        special = self._tokenizer.all_special_ids
        encoded_texts = {}
        for text, chunks in zip(texts, text_chunks, strict=True):
            tokens = np.asarray([token for ids in chunks for token in ids], dtype=int)
            states = [next(vectors) for _ in chunks]
            keep = ~np.isin(tokens, special)
            encoded_texts[text] = tokens[keep], np.concatenate(states or [np.empty((0, 1))])[keep]
        return encoded_texts

    @torch.inference_mode()
    def _encode_ids(self, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Last hidden states, each of shape (tokens, width)."""
        states: list[np.ndarray] = [np.empty(0)] * len(rows)
        for batch in batches_by_length([len(row) for row in rows], self.batch_size):
            chosen = [rows[index] for index in batch]
            ids = pad(chosen, self._tokenizer.pad_token_id).to(self.device)
            mask = pad([[1] * len(row) for row in chosen], 0).to(self.device)
            output = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            for index, row, vectors in zip(batch, chosen, output.cpu().numpy(), strict=True):
                states[index] = vectors[: len(row)].copy()
        return states

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        tokenizer = load_tokenizer(self.model)
        if tokenizer.mask_token_id is None:
            raise UserError(f"{self.model}: has no mask token; use a masked language model")
        return tokenizer

    @cached_property
    def _model(self) -> PreTrainedModel:
        # Language models are saved without a pooler, which is not needed here.
        loaded = load_whole(AutoModel, self.model, self.device, optional="pooler")
        check_length(self.model, self.max_length, loaded.config)
        return loaded


def _may_be_masked(text: str, start: int, end: int) -> bool:
    piece = text[start:end]
    if end < len(_LEAD) or not any(char.isalnum() for char in piece):
        return False
    starts_inside = piece[0].isalnum() and text[start - 1 : start].isalnum()
    ends_inside = piece[-1].isalnum() and text[end : end + 1].isalnum()
    return starts_inside or ends_inside or piece.strip() not in _STOPWORDS


def _probabilities(
    queries: np.ndarray, targets: Sequence[int], passages: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return P of each target among the passages' tokens, shape (masks,)."""
    tokens = np.concatenate([ids for ids, _ in passages])  # (n,)
    if not len(tokens):
        return np.zeros(len(targets))
    vectors = np.concatenate([states for ids, states in passages if len(ids)]).astype(np.float64)
    scores = queries.astype(np.float64) @ vectors.T / np.sqrt(vectors.shape[1])  # (masks, n)
    same = np.asarray(targets)[:, None] == tokens[None, :]
    return (softmax(scores, axis=1) * same).sum(axis=1)
