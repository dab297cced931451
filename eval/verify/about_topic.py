"""Defences against a lenient judge: support only claims that speak of the topic, and plainly."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from components.english import has_negation, without_qualifier
from eval.stages import Verifier, run_verifier
from records import Claim, Document, Passage, Verdict

# "that" introduces what somebody says; a colon and a parenthesis introduce a second statement.
_ATTRIBUTED = re.compile(
    r"\b(?:that|according to|said|says|claim\w*|believ\w+|report\w*)\b|[:(]", re.IGNORECASE
)
_PRONOUN = "he|she|they|it"


@dataclass(eq=False)
class AboutTopic:
    """Withdraw support from claims in which somebody else could be meant, or nothing be asserted.

    Rules on words, so they also reject true claims in these forms; the second ladder of
    ``experiment robustness`` shows how many.

    Args:
        verify: the verifier.
        subject: support a claim only if it begins with the topic's name, its last word, or a
            pronoun.
        plain: support a claim only if it has no negation and attributes nothing to others.
    """

    verify: Verifier
    subject: bool = False
    plain: bool = False

    @property
    def judges_sets(self) -> bool:
        return self.verify.judges_sets

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        rows = []
        judged = run_verifier(self.verify, documents, claims, passages)
        for document, listed, verdicts in zip(documents, claims, judged, strict=True):
            by_id = {claim.id: claim for claim in listed}
            rows.append([self._checked(document, by_id[v.claim], v) for v in verdicts])
        return rows

    def _checked(self, document: Document, claim: Claim, verdict: Verdict) -> Verdict:
        is_plain = not has_negation(claim.text) and _ATTRIBUTED.search(claim.text) is None
        about_topic = begins_with_topic(claim.text, document.topic)
        rejected = (self.subject and not about_topic) or (self.plain and not is_plain)
        if verdict.label == "supported" and rejected:
            return verdict.model_copy(update={"label": "not_supported"})
        return verdict


def begins_with_topic(text: str, topic: str) -> bool:
    """Whether a claim begins with the topic's name, its last word, or a pronoun; no possessive."""
    name = without_qualifier(topic)
    names = "|".join(map(re.escape, (name, name.split()[-1])))
    return re.match(rf"(?:{names}|{_PRONOUN})\b(?!['’]s)", text, re.IGNORECASE) is not None
