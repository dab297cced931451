"""What finds longest supported subsequences: the contract, and two controls that learned nothing.

The trained ones are ``eval.models.encoder.LssTagger`` and ``eval.models.seq2seq.LssSeq2Seq``.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from components.encoding import Pair
from components.overlap import new_words
from components.windows import chunks_of
from components.words import join_words, project, split_words
from records import UserError
from records.stage_outputs import class_path_of, require_one_each


class Subsequence(NamedTuple):
    """What is kept of a claim: per word of ``split_words(claim)``, and as text.

    ``keep`` is ``None`` for an LSS* with words of its own.
    """

    keep: list[bool] | None
    text: str


class LssModel(Protocol):
    """Finds what a reference supports of a claim (2308.12157, section 3)."""

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """One answer a (claim, reference) pair; ``None`` where there is none."""


def subsequences_of(engine: LssModel, pairs: Sequence[Pair]) -> list[Subsequence | None]:
    """What an engine, also one of a user's own, says of (claim, reference) pairs."""
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
    """Any engine over references of any length: each window is asked about, and all are united.

    A word is kept where some window keeps it. Of texts with words of their own (LSS*) the one that
    has most of the claim's words counts.

    Args:
        lss: the engine; e.g. eval.models.seq2seq.LssSeq2Seq cuts what does not fit its input.
        chunk_words: words of a window, each overlapping half the last; as many as fit the engine's
            input.
    """

    def __init__(self, lss: LssModel, chunk_words: int = 250):
        if chunk_words < 2:
            raise UserError(f"chunk_words: at least 2, got {chunk_words}")
        self.lss = lss
        self.chunk_words = chunk_words

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """One answer a (claim, reference) pair; ``None`` where one of its windows has none."""
        windows = chunks_of((reference for _, reference in pairs), self.chunk_words)
        inputs = [(c, w) for (c, _), parts in zip(pairs, windows, strict=True) for w in parts]
        answers = iter(subsequences_of(self.lss, inputs))
        return [
            _united(claim, [next(answers) for _ in parts])
            for (claim, _), parts in zip(pairs, windows, strict=True)
        ]


def _united(claim: str, answers: Sequence[Subsequence | None]) -> Subsequence | None:
    if len(answers) == 1 or any(answer is None for answer in answers):
        return answers[0] if len(answers) == 1 else None
    words = split_words(claim)
    if any(answer.keep is None for answer in answers):
        return max(answers, key=lambda answer: sum(project(answer.text, words)))
    keep = [any(column) for column in zip(*(answer.keep for answer in answers), strict=True)]
    return Subsequence(keep, join_words(claim, words, keep))


class SharedWords:
    """Keeps the words of the claim whose stems the reference has, wherever it has them.

    Stop words are nearly always kept, and a denial is never seen: what a trained model adds to this
    is what it has learned.
    """

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """One answer a (claim, reference) pair."""
        kept: list[Subsequence | None] = []
        for claim, reference in pairs:
            words = split_words(claim)
            keep = [not new for new in new_words([word.text for word in words], reference)]
            kept.append(Subsequence(keep, join_words(claim, words, keep)))
        return kept


class WholeClaim:
    """Keeps every word: as if everything were supported."""

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """One answer a (claim, reference) pair."""
        return [Subsequence([True] * len(split_words(claim)), claim) for claim, _ in pairs]
