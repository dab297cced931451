"""LERC: a learned comparison of two answers to a question (Chen et al. 2020, 2010.03636)."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from components.base import load_tokenizer
from components.encoding import Pair, grounded_windows
from eval.models.engine import EncodedRow, Engine
from eval.models.hub import load_whole
from records import UserError

# The input order of QAFactEval's model; the marks are plain text for the tokenizer.
_TEMPLATE = "{claim} <c> {reference}"


class Lerc(Engine):
    """Agreement of an answer with the expected answer, predicted by a regression model.

    QAFactEval uses QuIP trained on MOCHA (``quip-512-mocha`` of its download script; scores of
    about 1 to 5). The input is ``question <q> expected <r> answer <c> context``, with the context
    in windows that fit into ``max_length``.

    Args:
        model: a hub id, a folder or ``package:…`` with one output; safetensors only.
        max_length: input length in tokens; 512, as in BERT.
        batch_size: rows per batch; batches of long rows are smaller.
        cache: SQLite file for the scores; null (the default) caches nothing, and a re-run computes
            all scores again.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    def __init__(
        self,
        model: str,
        max_length: int = 512,
        batch_size: int = 32,
        cache: Path | None = None,
        device: str = "auto",
    ):
        super().__init__(batch_size, cache, device)
        self.model = model
        self.max_length = max_length

    def compare(self, rows: Sequence[tuple[str, str, str, str]]) -> np.ndarray:
        """Return scores of (question, expected answer, answer, context), shape (n,).

        NaN if question and answers are too long for ``max_length``. Of a context that is read in
        windows, the largest score counts.
        """
        pairs = [
            (f"{q} <q> {expected} <r> {answer}", context) for q, expected, answer, context in rows
        ]
        scores = self._judge(pairs)
        return np.asarray([row[0] if row.size else np.nan for row in scores], dtype=float)

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self.model)

    @cached_property
    def _model(self) -> PreTrainedModel:
        model = load_whole(AutoModelForSequenceClassification, self.model, self.device)
        if model.config.num_labels != 1:
            raise UserError(f"{self.model}: expected one output, got {model.config.num_labels}")
        return model

    def _encode(self, inputs: Sequence[Pair]) -> list[list[EncodedRow]]:
        return [
            [
                EncodedRow({"input_ids": ids})
                for ids in grounded_windows(
                    self._tokenizer, _TEMPLATE, context, answers, self.max_length
                )
            ]
            for answers, context in inputs
        ]

    def _read(self, logits: np.ndarray, rows: Sequence[EncodedRow]) -> list[np.ndarray]:
        return list(logits)
