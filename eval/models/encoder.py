"""Trained encoders as batched engines: entailment, UNLI, and the LSS keep/drop tagger.

A long premise is cut into windows (``chunk_words`` and ``max_length`` of ``component.json``), of
which the best counts as in FactReasoner (2502.18573) and WiCE, or is reduced to one extract
(``focus_words``).
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from cli.shipped import find_shipped
from components.calibration import probabilities
from components.checkpoint import (
    RELATIONS,
    TWO_CLASSES,
    Component,
    is_published,
    read_component,
)
from components.encoding import Pair, encode_pairs, encode_words, first_tokens, token_windows
from components.windows import best_windows, chunks_of, windows_of
from components.words import WORD, join_words, split_words
from eval.models.engine import Dtype, EncodedRow, Engine
from eval.models.lss import Subsequence
from records import UserError

if TYPE_CHECKING:  # takes seconds to import, which cached answers do not need
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Loaded models, shared by all engines of the same checkpoint.
_LOADED: "WeakValueDictionary[tuple, PreTrainedModel]" = WeakValueDictionary()


class Encoder(Engine):
    """An engine with a checkpoint of this repository.

    Args:
        checkpoint: checkpoint folder written by ``python -m train``.
        batch_size: rows per batch; batches of long rows are smaller.
        cache: SQLite file for the answers; null (the default) caches nothing, and a re-run computes
            all answers again.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        dtype: of weights and computation; ``bfloat16`` is two to three times as fast on GPUs
            and on CPUs with AMX (``benchmarks/entailment.py`` measures the difference in answers).
    """

    expected: str
    auto_model = "AutoModelForSequenceClassification"

    def __init__(
        self,
        checkpoint: str | Path,
        batch_size: int = 64,
        cache: str | Path | None = None,
        device: str = "auto",
        dtype: Dtype = "float32",
    ):
        self.checkpoint = find_shipped(str(checkpoint))
        self.component = self._described()
        self._check()
        super().__init__(batch_size, cache, device, dtype)

    def _described(self) -> Component:
        return read_component(self.checkpoint, self.expected)

    def _check(self) -> None:
        """Raise an error if the engine cannot read the outputs of the checkpoint."""

    @cached_property
    def _tokenizer(self) -> "PreTrainedTokenizerBase":
        from components.base import load_tokenizer

        return load_tokenizer(str(self.checkpoint), self._commit)

    @property
    def _commit(self) -> str | None:
        return None if Path(self.checkpoint).is_dir() else self.component.base["revision"]

    @cached_property
    def _model(self) -> "PreTrainedModel":
        import transformers

        from eval.models.hub import load_whole

        key = (self._fingerprint, self.auto_model, str(self.device))
        model = _LOADED.get(key)
        if model is None:
            model = _LOADED[key] = load_whole(
                getattr(transformers, self.auto_model),
                str(self.checkpoint),
                self.device,
                dtype=self.dtype,
                revision=self._commit,
            )
        return model

    def _encode(self, inputs: Sequence[Pair]) -> list[list[EncodedRow]]:
        encoded = encode_pairs(self._tokenizer, inputs, self.component.max_length)
        return [[EncodedRow(features) for features in windows] for windows in encoded]

    def _best_of_windows(self, pairs: Sequence[Pair], width: int) -> np.ndarray:
        """Return the answer of the window with the highest first value, shape (n, width).

        NaN for a pair whose hypothesis is too long.
        """
        if not pairs:
            return np.empty((0, width))
        component = self.component
        rows, windows = windows_of(
            pairs, component.chunk_words, component.focus_words, component.mark_new
        )
        failed = np.full(width, np.nan)
        answers = np.asarray([a if a.size else failed for a in self._judge(windows)])
        best = answers[best_windows(answers[:, 0], rows)]  # from (windows, width)
        best[np.asarray(rows)[np.isnan(answers[:, 0])]] = np.nan
        return best


class Entailment(Encoder):
    """Relation of hypotheses to premises (an ``EntailmentModel`` of ``eval/stages.py``).

    Uses a checkpoint of this repository or a published NLI model (safetensors only, no remote
    code). A published model is not calibrated and reads at most 512 tokens; long premises are cut
    into windows. For a model with the two classes entailment and not_entailment, not_entailment is
    returned as neutral and the contradiction probability is 0.

    Args:
        checkpoint: folder written by ``python -m train``, a hub id ``owner/name``, or a folder of a
            published model.
        batch_size: rows per batch; batches of long rows are smaller.
        cache: SQLite file for the answers; null (the default) caches nothing, and a re-run computes
            all answers again.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        dtype: as in ``Encoder``.
        labels: class names of a published model in its order; overrides the names in its
            configuration (e.g. LABEL_0).
        revision: branch, tag or commit of a hub model.
    """

    expected = "relation"

    def __init__(
        self,
        checkpoint: str | Path,
        batch_size: int = 64,
        cache: str | Path | None = None,
        device: str = "auto",
        dtype: Dtype = "float32",
        labels: list[str] | None = None,
        revision: str | None = None,
    ):
        self.labels = labels
        self.revision = revision
        super().__init__(checkpoint, batch_size, cache, device, dtype)

    def _described(self) -> Component:
        if is_published(self.checkpoint):
            from eval.models.published import read_published

            return read_published(self.checkpoint, self.labels, self.revision)
        component = super()._described()
        if self.labels is not None or self.revision is not None:
            raise UserError(
                f"{self.checkpoint}: has a component.json; do not set labels or revision"
            )
        return component

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return calibrated probabilities of (premise, hypothesis) pairs.

        For a premise of several windows, all three values are those of the window with the highest
        entailment probability.

        Returns:
            Shape (n, 3): entailment, neutral, contradiction.
        """
        return self._best_of_windows(pairs, 3)

    def _read(self, logits: np.ndarray, rows: Sequence[EncodedRow]) -> list[np.ndarray]:
        component = self.component
        ours = RELATIONS if len(component.labels) == len(RELATIONS) else TWO_CLASSES
        order = [component.labels.index(name) for name in ours]
        calibrated = probabilities(logits[:, order], component.temperature, component.shift)
        return list(np.pad(calibrated, ((0, 0), (0, len(RELATIONS) - len(ours)))))


class Unli(Encoder):
    """Subjective probability of hypotheses (a ``UnliModel`` of ``eval/stages.py``).

    ``checkpoint`` may also be a published model with one output, a folder or a hub id, e.g.
    ``Zhengping/roberta-large-unli``, whose sigmoid is the probability.
    """

    expected = "unli"

    def _described(self) -> Component:
        if is_published(self.checkpoint):
            from eval.models.published import read_published

            return read_published(self.checkpoint, component="unli")
        return super()._described()

    def _check(self) -> None:
        if len(self.component.labels) != 1:
            raise UserError(
                f"{self.checkpoint}: labels: expected one output, got {self.component.labels}"
            )

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return p(hypothesis | premise) of shape (n,), the maximum over windows; NaN: too long."""
        return self._best_of_windows(pairs, 1)[:, 0]

    def _read(self, logits: np.ndarray, rows: Sequence[EncodedRow]) -> list[np.ndarray]:
        calibrated = probabilities(logits[:, 0], self.component.temperature, self.component.shift)
        return list(calibrated[:, None])


class LssTagger(Encoder):
    """Longest supported subsequences by keep/drop decisions (2308.12157, made non-generative).

    A word's probability is the maximum over the reference's windows because different windows can
    support different parts of a claim.
    """

    expected = "lss"
    auto_model = "AutoModelForTokenClassification"

    @cached_property
    def _fingerprint(self) -> bytes:
        # Includes the word pattern: a cached answer has one number per word.
        return hashlib.sha256(super()._fingerprint + WORD.encode()).digest()

    def _check(self) -> None:
        if self.component.architecture != "token_classifier":
            raise UserError(
                f"{self.checkpoint}: expected a token_classifier, got "
                f"{self.component.architecture}; for seq2seq use eval.models.seq2seq.LssSeq2Seq"
            )
        if "keep" not in self.component.labels or len(self.component.labels) > 2:
            raise UserError(
                f"{self.checkpoint}: labels: expected [keep] or [drop, keep], got "
                f"{self.component.labels}"
            )

    def keep_probabilities(self, pairs: Sequence[Pair]) -> list[np.ndarray | None]:
        """Return the keep probability of each word, shape (words,), per (claim, reference).

        ``None`` for a claim that exceeds ``max_length``.
        """
        chunks = chunks_of((reference for _, reference in pairs), self.component.chunk_words)
        inputs = [(claim, c) for cs, (claim, _) in zip(chunks, pairs, strict=True) for c in cs]
        answers = iter(self._judge(inputs))
        kept = []
        for (claim, _), cs in zip(pairs, chunks, strict=True):
            probs, words = [next(answers) for _ in cs], len(split_words(claim))
            # Marks of new words can make a claim too long in some windows only.
            fits = all(len(p) == words for p in probs)
            kept.append(self._unite(probs) if fits else None)
        return kept

    def _unite(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        return np.max(answers, axis=0)  # (windows, words) -> (words,)

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """Return the subsequence per (claim, reference); ``None`` if a claim is too long."""
        threshold = self.component.keep_threshold or 0.5
        kept: list[Subsequence | None] = []
        for (claim, _), p in zip(pairs, self.keep_probabilities(pairs), strict=True):
            keep = None if p is None else (p >= threshold).tolist()
            text = "" if keep is None else join_words(claim, split_words(claim), keep)
            kept.append(None if keep is None else Subsequence(keep, text))
        return kept

    def _encode(self, inputs: Sequence[Pair]) -> list[list[EncodedRow]]:
        rows, component = [], self.component
        options = component.focus_words, component.mark_new
        for claim, reference in inputs:
            words = split_words(claim)
            encoded = encode_words(self._tokenizer, words, reference, *options)
            places = first_tokens(encoded, 0, len(words))  # the claim comes first in all windows
            windows = token_windows(encoded, 0, component.max_length, 1)
            rows.append([EncodedRow(features, places) for features in windows])
        return rows

    def _read(self, logits: np.ndarray, rows: Sequence[EncodedRow]) -> list[np.ndarray]:
        keep = self.component.labels.index("keep")
        answers = []
        for row, tokens in zip(rows, logits, strict=True):  # tokens: (length, labels)
            single = tokens.shape[1] == 1
            p = probabilities(tokens[:, 0] if single else tokens, self.component.temperature)
            p = p if single else p[:, keep]
            answers.append(np.asarray([0.0 if at is None else p[at] for at in row.places]))
        return answers
