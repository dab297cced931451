"""Base classes of verifiers with one verdict per claim; see also ``eval.verify.prompted``."""

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
    """A claim with its document and evidence.

    Attributes:
        passages: the claim's evidence, best first; empty if the verifier reads no passages.
    """

    document: Document
    claim: Claim
    passages: list[Passage]

    @property
    def evidence(self) -> list[str] | None:
        """Ids of the passages; ``None`` if there are none."""
        return [passage.id for passage in self.passages] or None


class ClaimByClaim(ABC):
    """A verifier with one verdict per claim.

    Attributes:
        assessor: the verdicts' ``assessor``.
        name: the verdicts' ``name``.
        reads_passages: whether claims are judged by the pipeline's passages.
    """

    judges_sets = False
    assessor: str
    name = "default"
    reads_passages = True

    @abstractmethod
    def judge(self, items: Sequence[ClaimToJudge]) -> Iterable[Verdict]:
        """Return one verdict per claim, in order."""

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """Judge a batch; if passages are read, a claim without passages is ``failed``."""
        items: list[ClaimToJudge] = []
        failed: list[list[Verdict | None]] = []
        for document, listed, texts in zip(documents, claims, passages, strict=True):
            by_id = {passage.id: passage for passage in texts}
            evidence = [
                select_passages(claim, by_id) if self.reads_passages else [] for claim in listed
            ]
            pairs = list(zip(listed, evidence, strict=True))
            items += [ClaimToJudge(document, c, f) for c, f in pairs if not isinstance(f, str)]
            failed.append([self.failed(c, f) if isinstance(f, str) else None for c, f in pairs])
        verdicts = iter(self._judged(items) if items else ())
        return [[verdict or next(verdicts) for verdict in listed] for listed in failed]

    def _judged(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        method = f"{class_path_of(self)}.judge"
        verdicts = require_one_each(method, self.judge(items), items, "claim")
        for item, verdict in zip(items, verdicts, strict=True):
            if not isinstance(verdict, Verdict) or verdict.claim != item.claim.id:
                raise UserError(
                    f"{method}: document {item.document.id!r}: expected a verdict on claim "
                    f"{item.claim.id!r}, got {verdict!r:.60}; return a verdict per claim, in order"
                )
        return verdicts

    def verdict(self, claim: Claim, label: VerdictLabel, **fields: Any) -> Verdict:
        """Return this verifier's verdict on a claim, with further fields."""
        names = {"claim": claim.id, "assessor": self.assessor, "name": self.name}
        return Verdict(**names, label=label, **fields)

    def failed(self, claim: Claim, reason: str, **fields: Any) -> Verdict:
        """Return the verdict on a claim that could not be judged."""
        return self.verdict(claim, "failed", reason=reason, **fields)


class ByPassage(ClaimByClaim):
    """A verifier that scores (passage, claim) pairs, all pairs of a batch in one call.

    Attributes:
        title_in_premise: whether a passage's title is prepended to its text.
    """

    title_in_premise: bool

    @abstractmethod
    def answers(self, pairs: Sequence[Pair]) -> Iterable[Any]:
        """Return the model's answer to each (passage, claim) pair."""

    @abstractmethod
    def decide(self, claim: Claim, passages: Sequence[Passage], answers: Sequence[Any]) -> Verdict:
        """Return the verdict on a claim from one answer per passage."""

    def judge(self, items: Sequence[ClaimToJudge]) -> Iterable[Verdict]:
        pairs = [
            (premise(passage, self.title_in_premise), item.claim.text)
            for item in items
            for passage in item.passages
        ]
        method = f"{class_path_of(self)}.answers"
        answers = iter(require_one_each(method, self.answers(pairs), pairs, "pair"))
        return [
            self.decide(item.claim, item.passages, [next(answers) for _ in item.passages])
            for item in items
        ]


def select_passages(claim: Claim, by_id: Mapping[str, Passage]) -> list[Passage] | str:
    """Return the passages of a claim, best first, or the reason why it has none."""
    if claim.contexts is None:
        return RETRIEVAL_FAILED
    names = dict.fromkeys(claim.contexts)
    return [by_id[name] for name in names if name in by_id] or NOTHING_FOUND


def premise(passage: Passage, title_in_premise: bool) -> str:
    """Return a passage's text, optionally with its title prepended."""
    titled = title_in_premise and passage.title
    return f"{passage.title}. {passage.text}" if titled else passage.text
