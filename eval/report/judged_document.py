"""A scored document with the verdicts of one assessor, as the export functions read it."""

from typing import Literal, NamedTuple

from eval.metrics.document import DocumentScore, Scored, score_document
from records import Claim, Verdict
from records.abstention import responds


class Judged(NamedTuple):
    """A document with the verdicts of one assessor and one selection; k is K of recall@K."""

    scored: Scored
    score: DocumentScore
    claims: list[tuple[Claim, Verdict]]
    k: int

    def decided(self) -> list[tuple[Claim, Verdict]]:
        """Return the claims that have a decision."""
        return [pair for pair in self.claims if pair[1].label not in ("failed", "irrelevant")]


def build_judged(
    document: Scored, assessor: str, name: str, selection: Literal["none", "core"], k: int
) -> Judged:
    key = (assessor, name, selection)
    score = next((s for s in document.scores if (s.assessor, s.name, s.selection) == key), None)
    if score is None:
        core = selection == "core"
        kept = {s.claim for s in document.selections if s.selected} if core else None
        score = score_document(responds(document.document), document.claims, [], kept)
    return Judged(document, score, document.judged(*key), k)
