"""The frame of verifiers: each claim's evidence, what fails for want of it, and the verdicts.

A verifier of one verdict a claim says how it judges claims with their passages
(:class:`ClaimByClaim`), pairs of a passage and a claim (:class:`ByPassage`), or how it asks one
prompt a claim (:class:`eval.verify.prompted.ByPrompt`); everything else is here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from components.encoding import Pair
from records import Claim, Document, Passage, UserError, Verdict
from records.stage_outputs import class_path_of, require_one_each
from records.types import VerdictLabel

RETRIEVAL_FAILED = "retrieval failed"
NOTHING_FOUND = "no passage was found"


class ClaimToJudge(NamedTuple):
    """A claim that is to be judged.

    Attributes:
        row: the same for claims that may stand in one prompt: their document's place in the batch.
        passages: what it is judged by, best first; empty where the verifier reads none.
    """

    row: int
    document: Document
    claim: Claim
    passages: list[Passage]

    @property
    def evidence(self) -> list[str] | None:
        """The ids of the passages, ``None`` where there are none."""
        return [passage.id for passage in self.passages] or None


class ClaimByClaim(ABC):
    """A verifier of one verdict a claim.

    Attributes:
        assessor: who judges, as the verdicts say it.
        name: which of the assessor's verdicts.
        reads_passages: whether claims are judged by the passages that the pipeline found.
    """

    judges_sets = False
    assessor: str
    name = "default"
    reads_passages = True

    @abstractmethod
    def judge(self, asked: Sequence[ClaimToJudge]) -> Iterable[Verdict]:
        """One verdict for each claim, in their order."""

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim.

        A claim without a passage is ``failed`` where passages are read; the ``reason`` says why.
        """
        asked: list[ClaimToJudge] = []
        failed: list[list[Verdict | None]] = []
        for row, (document, own, texts) in enumerate(zip(documents, claims, passages, strict=True)):
            known = {passage.id: passage for passage in texts}
            found = [select_passages(claim, known) if self.reads_passages else [] for claim in own]
            pairs = list(zip(own, found, strict=True))
            asked += [ClaimToJudge(row, document, c, f) for c, f in pairs if not isinstance(f, str)]
            failed.append([self.failed(c, f) if isinstance(f, str) else None for c, f in pairs])
        judged = iter(self._judged(asked) if asked else ())
        return [[verdict or next(judged) for verdict in own] for own in failed]

    def _judged(self, asked: Sequence[ClaimToJudge]) -> list[Verdict]:
        who = f"{class_path_of(self)}.judge"
        found = require_one_each(who, self.judge(asked), asked, "claim")
        for one, verdict in zip(asked, found, strict=True):
            if not isinstance(verdict, Verdict) or verdict.claim != one.claim.id:
                raise UserError(
                    f"{who}: document {one.document.id!r}: gave {verdict!r:.60} for the claim "
                    f"{one.claim.id!r}; give one verdict a claim, in their order"
                )
        return found

    def verdict(self, claim: Claim, label: VerdictLabel, **known: Any) -> Verdict:
        """This verifier's verdict on a claim, with what else is known."""
        names = {"claim": claim.id, "assessor": self.assessor, "name": self.name}
        return Verdict(**names, label=label, **known)

    def failed(self, claim: Claim, reason: str, **known: Any) -> Verdict:
        """The verdict on a claim that could not be judged."""
        return self.verdict(claim, "failed", reason=reason, **known)


class ByPassage(ClaimByClaim):
    """A verifier that judges a claim by each of its passages alone, all pairs of a batch at once.

    Attributes:
        title_in_premise: whether a passage's title is put before its text.
    """

    title_in_premise: bool

    @abstractmethod
    def answers(self, pairs: Sequence[Pair]) -> Iterable[Any]:
        """What the model says of each (passage, claim)."""

    @abstractmethod
    def decide(self, claim: Claim, passages: Sequence[Passage], answers: Sequence[Any]) -> Verdict:
        """The verdict on a claim by the answers to its passages, one each."""

    def judge(self, asked: Sequence[ClaimToJudge]) -> Iterable[Verdict]:
        pairs = [
            (premise(passage, self.title_in_premise), one.claim.text)
            for one in asked
            for passage in one.passages
        ]
        who = f"{class_path_of(self)}.answers"
        answers = iter(require_one_each(who, self.answers(pairs), pairs, "pair"))
        return [
            self.decide(one.claim, one.passages, [next(answers) for _ in one.passages])
            for one in asked
        ]


def select_passages(claim: Claim, known: Mapping[str, Passage]) -> list[Passage] | str:
    """The passages of a claim, best first, or a text that says why it has none.

    Args:
        claim: after retrieval.
        known: its document's passages by their ids.
    """
    if claim.contexts is None:
        return RETRIEVAL_FAILED
    names = dict.fromkeys(claim.contexts)
    return [known[name] for name in names if name in known] or NOTHING_FOUND


def distinct_passages(asked: Iterable[ClaimToJudge]) -> list[Passage]:
    """The passages of some claims of a document, each once, in the claims' order."""
    return list({passage.id: passage for one in asked for passage in one.passages}.values())


def premise(passage: Passage, title_in_premise: bool) -> str:
    """What a checker reads of a passage: its text, with its title before it or without."""
    titled = title_in_premise and passage.title
    return f"{passage.title}. {passage.text}" if titled else passage.text
