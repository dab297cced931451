"""The share of a claim's words that its longest supported subsequences (2308.12157) keep."""

from collections.abc import Sequence
from dataclasses import dataclass

from bm25s.stopwords import STOPWORDS_EN_PLUS
from jsonargparse.typing import ClosedUnitInterval

from components.encoding import Pair
from components.words import Word, project, split_words
from eval.models.lss import LssModel, Subsequence, subsequences_of
from eval.stages import no_answer
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict

# Function words are nearly always kept. Negations count as content words.
_DENIALS = {"no", "not", "nor"}
_FUNCTION = frozenset(STOPWORDS_EN_PLUS) - _DENIALS


@dataclass(eq=False)
class SupportedShare(ByPassage):
    """Judge each claim by the share of its words that its passages support.

    The share is over content words, including negations. A word is supported if the LSS of the
    claim and some passage keeps it, so different passages may support different parts of a claim.
    The verdict's ``p`` is the share. It is a grade, not a probability: its mean is
    ``graded_precision`` in ``results.json``, and the E-measure and Brier score there are not
    meaningful. ``kept`` lists for each word whether it is supported.

    Args:
        lss: model that finds the subsequences, e.g. eval.models.encoder.LssTagger.
        threshold: minimum share for the label ``supported``.
        title_in_premise: prepend the passage's title to its text.
    """

    assessor = "supported_share"

    lss: LssModel
    threshold: ClosedUnitInterval = 0.8
    title_in_premise: bool = False

    def answers(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        return subsequences_of(self.lss, [(claim, reference) for reference, claim in pairs])

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[Subsequence | None]
    ) -> Verdict:
        words = split_words(claim.text)
        pairs = zip(passages, answers, strict=True)
        kept = {passage.id: _keep(answer, words) for passage, answer in pairs}
        counted = _counted(words)
        if not any(counted):
            return self.failed(claim, "the claim has no word")
        if unread := [name for name, keep in kept.items() if keep is None]:
            reason = no_answer(self.lss, "no LSS could be found")
            return self.failed(claim, f"{reason}, with {', '.join(unread)}")
        union = [any(column) for column in zip(*kept.values(), strict=True)]
        share = sum(k for k, c in zip(union, counted, strict=True) if c) / sum(counted)
        return self.verdict(
            claim,
            "supported" if share >= self.threshold else "not_supported",
            p=share,
            evidence=_needed(kept),
            kept=[[word.text, keep] for word, keep in zip(words, union, strict=True)],
        )


def _counted(words: Sequence[Word]) -> list[bool]:
    counted = [word.text[0].isalnum() for word in words]
    content = [c and w.text.lower() not in _FUNCTION for w, c in zip(words, counted, strict=True)]
    return content if any(content) else counted


def _keep(answer: Subsequence | None, words: list[Word]) -> list[bool] | None:
    if answer is None or answer.keep is not None:
        return answer and answer.keep
    return project(answer.text, words)


def _needed(kept: dict[str, list[bool]]) -> list[str]:
    covered: set[int] = set()
    ids = []
    for name, keep in sorted(kept.items(), key=lambda entry: -sum(entry[1])):
        words = {index for index, yes in enumerate(keep) if yes}
        if words - covered:
            ids.append(name)
            covered |= words
    return ids
