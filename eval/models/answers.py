"""Question answering over contexts of any length: the answer, and whether there is one.

A long context is cut into windows; the one in which the question is most answerable counts.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    BatchEncoding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from components.base import load_tokenizer
from components.encoding import Pair, row_features
from components.windows import best_windows, chunks_of
from eval.models.engine import Engine, Row
from eval.models.hub import load_whole, named
from eval.models.text2text import Text2Text
from records import UserError

# Tokens of the longest answer, as SQuAD's scripts have it.
_MAX_ANSWER_TOKENS = 30


class FoundAnswer(NamedTuple):
    """An answer, and the probability that the context has one."""

    text: str
    answerable: float


class Answerer(Protocol):
    """Answers questions from contexts."""

    def answers(self, pairs: Sequence[Pair]) -> list[FoundAnswer | None]:
        """One answer a (question, context) pair; ``None`` where the question does not fit."""


def _windows(pairs: Sequence[Pair], chunk_words: int) -> tuple[list[int], list[Pair]]:
    rows, inputs = [], []
    chunks = chunks_of((context for _, context in pairs), chunk_words)
    for row, ((question, _), parts) in enumerate(zip(pairs, chunks, strict=True)):
        for chunk in parts:
            rows.append(row)
            inputs.append((question, chunk))
    return rows, inputs


class WrittenAnswers:
    """Answers that a sequence-to-sequence model writes, as QuestEval's do (2103.12693).

    ``ThomasNLG/t5-qa_squad2neg-en`` reads ``question </s> context`` and writes "unanswerable" where
    the context does not say; what the first token's probability leaves over is answerability.

    Args:
        writer: the model, with what it writes for "no answer" as ``watch``.
        chunk_words: words of a window.
    """

    def __init__(self, writer: Text2Text, chunk_words: int = 300):
        if chunk_words < 1:
            raise UserError(f"chunk_words: {chunk_words}; give at least 1")
        self.writer = writer
        self.chunk_words = chunk_words

    def answers(self, pairs: Sequence[Pair]) -> list[FoundAnswer | None]:
        """One answer a (question, context) pair; ``None`` where the question does not fit."""
        if self.writer.watch is None:
            raise UserError(
                "watch: not set, so that every question would be answerable; give the answerer's "
                "model what it writes for no answer, e.g. unanswerable"
            )
        if not pairs:
            return []
        rows, inputs = _windows(pairs, self.chunk_words)
        written = self.writer.write(inputs)
        scores = np.asarray([-1.0 if w is None else 1 - w.watched for w in written])
        best = [written[index] for index in best_windows(scores, rows)]
        return [None if w is None else FoundAnswer(w.text, 1 - w.watched) for w in best]


class SpanAnswers(Engine):
    """Answers that stand in the context, as in SQuAD 2.0: QAFactEval's ELECTRA, or any other.

    A window that is too long for the input loses its end.

    The input's first token stands for "no answer". Answerability is the logistic function of the
    best span's score less that of no answer.

    Args:
        model: a hub id, a folder or ``package:…``; safetensors only.
        chunk_words: words of a window.
        max_length: input length in tokens; a longer window is cut.
        batch_size: rows a batch; a batch of long rows has fewer.
        cache: SQLite file that keeps the answers; ``None`` keeps none.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    def __init__(
        self,
        model: str,
        chunk_words: int = 220,
        max_length: int = 384,
        batch_size: int = 32,
        cache: Path | None = None,
        device: str = "auto",
    ):
        super().__init__(batch_size, cache, device)
        if min(chunk_words, max_length) < 1:
            raise UserError("chunk_words, max_length: at least 1")
        self.model = model
        self.chunk_words = chunk_words
        self.max_length = max_length

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The model and whatever else decides the answer from one window."""
        return {
            "engine": "span_answers",
            "model": named(self.model),
            "max_length": self.max_length,
            "dtype": self.dtype,
        }

    def answers(self, pairs: Sequence[Pair]) -> list[FoundAnswer | None]:
        """One answer a (question, context) pair; ``None`` where the question does not fit."""
        if not pairs:
            return []
        rows, inputs = _windows(pairs, self.chunk_words)
        spans = self._judge(inputs)  # per window: first and last character, answerability
        scores = np.asarray([span[2] if len(span) else -1.0 for span in spans])
        best = best_windows(scores, rows)
        return [self._answer(inputs[index][1], spans[index]) for index in best]

    def _answer(self, context: str, span: np.ndarray) -> FoundAnswer | None:
        if not len(span):
            return None
        start, end, answerable = span
        return FoundAnswer(context[int(start) : int(end)], float(answerable))

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return load_tokenizer(self.model)

    @cached_property
    def _model(self) -> PreTrainedModel:
        return load_whole(AutoModelForQuestionAnswering, self.model, self.device)

    def _encoded(self, question: str, context: str) -> BatchEncoding | None:
        ids = self._tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"]
        special = self._tokenizer.num_special_tokens_to_add(pair=True)
        if len(ids) + special >= self.max_length:
            return None
        cut = {"truncation": "only_second", "max_length": self.max_length}
        return self._tokenizer([question], [context], return_offsets_mapping=True, **cut)

    @torch.inference_mode()
    def _forward(self, inputs: Sequence[Pair]) -> Iterator[dict[Pair, np.ndarray]]:
        encoded = [self._encoded(*pair) for pair in inputs]
        yield {pair: np.empty(0) for pair, row in zip(inputs, encoded, strict=True) if row is None}
        fitting = [
            (pair, row) for pair, row in zip(inputs, encoded, strict=True) if row is not None
        ]
        rows = [Row(_features(row)) for _, row in fitting]
        for batch in self._batches(rows):
            features = {
                name: torch.tensor([rows[i].features[name] for i in batch], device=self.device)
                for name in rows[batch[0]].features
            }
            output = self._model(**features)
            starts, ends = (x.double().cpu().numpy() for x in (output[0], output[1]))
            yield {
                fitting[i][0]: _best_span(starts[row], ends[row], fitting[i][1])
                for row, i in enumerate(batch)
            }


def _features(encoded: BatchEncoding) -> dict[str, list[int]]:
    return {n: v for n, v in row_features(encoded, 0).items() if n != "offset_mapping"}


def _best_span(start: np.ndarray, end: np.ndarray, encoded: BatchEncoding) -> np.ndarray:
    """First character, end and answerability of the best span of the context.

    Args:
        start, end: logits of shape (tokens,).
        encoded: the row.
    """
    places = [place for place, part in enumerate(encoded.sequence_ids(0)) if part == 1]
    none = start[0] + end[0]
    if not places:
        return np.asarray([0.0, 0.0, 0.0])
    scores = start[places][:, None] + end[places][None, :]  # (first token, last token)
    far = np.subtract.outer(np.arange(len(places)), np.arange(len(places)))
    scores[(far > 0) | (far <= -_MAX_ANSWER_TOKENS)] = -np.inf
    first, last = np.unravel_index(scores.argmax(), scores.shape)
    offsets = encoded["offset_mapping"][0]
    p = 1 / (1 + np.exp(np.clip(none - scores[first, last], -700, 700)))
    return np.asarray([offsets[places[first]][0], offsets[places[last]][1], p])
