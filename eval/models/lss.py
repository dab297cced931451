"""Interface of models for longest supported subsequences (LSS), and two untrained controls.

Trained models: ``eval.models.encoder.LssTagger`` and ``eval.models.seq2seq.LssSeq2Seq``.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from components.encoding import Pair
from components.overlap import new_words
from components.windows import chunks_of
from components.words import join_words, project, split_words
from eval.stages import no_answer
from records import UserError
from records.stage_outputs import class_path_of, require_one_each


class Subsequence(NamedTuple):
    """A subsequence of a claim: one bool per word of ``split_words(claim)``, and the text.

    ``keep`` is ``None`` for an LSS* with words that are not in the claim.
    """

    keep: list[bool] | None
    text: str


class LssModel(Protocol):
    """Finds the subsequence of a claim that a reference supports (2308.12157, section 3)."""

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """Return one answer per (claim, reference) pair; ``None`` for a failure."""


def subsequences_of(engine: LssModel, pairs: Sequence[Pair]) -> list[Subsequence | None]:
    """Query an engine for (claim, reference) pairs and validate its answers."""
    method = f"{class_path_of(engine)}.subsequences"
    answers = require_one_each(method, engine.subsequences(pairs), pairs, "pair")
    for (claim, _), answer in zip(pairs, answers, strict=True):
        if not isinstance(answer, Subsequence | None):
            raise UserError(
                f"{method}: claim {claim!r:.60}: expected a Subsequence or None, got {answer!r:.60}"
            )
        words, keep = len(split_words(claim)), answer and answer.keep
        if keep is not None and len(keep) != words:
            raise UserError(
                f"{method}: claim {claim!r:.60}: expected {words} bools in keep, got {len(keep)}"
            )
    return answers


class InWindows:
    """Apply an engine to references of any length, window by window.

    A word is kept if any window keeps it. For LSS* answers with words that are not in the claim,
    the answer with most of the claim's words counts.

    Args:
        lss: the engine, e.g. eval.models.seq2seq.LssSeq2Seq.
        chunk_words: window size in words, which should fit the engine's input; consecutive windows
            overlap by half.
    """

    def __init__(self, lss: LssModel, chunk_words: int = 250):
        if chunk_words < 2:
            raise UserError(f"chunk_words: expected at least 2, got {chunk_words}")
        self.lss = lss
        self.chunk_words = chunk_words
        self.no_answer = no_answer(lss, "no LSS could be found")

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """Return one answer per (claim, reference) pair; ``None`` if a window failed."""
        windows = chunks_of((reference for _, reference in pairs), self.chunk_words)
        inputs = [(c, w) for (c, _), parts in zip(pairs, windows, strict=True) for w in parts]
        answers = iter(subsequences_of(self.lss, inputs))
        return [
            unite(claim, [next(answers) for _ in parts])
            for (claim, _), parts in zip(pairs, windows, strict=True)
        ]


def unite(claim: str, answers: Sequence[Subsequence | None]) -> Subsequence | None:
    """Return the subsequence that the windows of a reference support together."""
    if len(answers) == 1 or any(answer is None for answer in answers):
        return answers[0] if len(answers) == 1 else None
    words = split_words(claim)
    if any(answer.keep is None for answer in answers):
        return max(answers, key=lambda answer: sum(project(answer.text, words)))
    keep = [any(column) for column in zip(*(answer.keep for answer in answers), strict=True)]
    return Subsequence(keep, join_words(claim, words, keep))


class SharedWords:
    """Control: keeps the words whose stems occur anywhere in the reference.

    Keeps almost all stop words and ignores negation.
    """

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        kept: list[Subsequence | None] = []
        for claim, reference in pairs:
            words = split_words(claim)
            keep = [not new for new in new_words([word.text for word in words], reference)]
            kept.append(Subsequence(keep, join_words(claim, words, keep)))
        return kept


class WholeClaim:
    """Control: keeps every word."""

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        return [Subsequence([True] * len(split_words(claim)), claim) for claim, _ in pairs]
