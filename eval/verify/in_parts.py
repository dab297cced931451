"""A defence against a lenient judge of compound claims: support only what all parts support."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eval.stages import Verifier
from eval.verify.about_topic import begins_with_topic
from records import Claim, Document, Passage, Verdict

_BETWEEN_PARTS = re.compile(r"[,;]\s+(?:(?:and|but|while|in addition,)\s+)?")


@dataclass(eq=False)
class InParts:
    """Judge the statements of a compound claim apart, and support it only if all are supported.

    A claim that begins with the topic's name or a pronoun is cut at each comma or semicolon that is
    followed by one.
    """

    verify: Verifier

    @property
    def judges_sets(self) -> bool:
        return self.verify.judges_sets

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        parts = [
            [
                claim.model_copy(update={"id": f"{claim.id}.{number}", "text": text})
                for claim in listed
                for number, text in enumerate(parts_of(claim.text, document.topic))
            ]
            for document, listed in zip(documents, claims, strict=True)
        ]
        judged = self.verify(documents, parts, passages)
        return [
            [
                strictest([v for v in verdicts if v.claim.rpartition(".")[0] == claim.id], claim.id)
                for claim in listed
            ]
            for listed, verdicts in zip(claims, judged, strict=True)
        ]


def strictest(verdicts: Sequence[Verdict], claim: str) -> Verdict:
    """The first verdict that failed, else the first that rejects, else the first, for a claim."""
    ranked = sorted(verdicts, key=lambda v: (v.label != "failed", v.label == "supported"))
    return ranked[0].model_copy(update={"claim": claim})


def parts_of(text: str, topic: str) -> list[str]:
    """The statements of a compound claim, in order."""
    parts, start = [], 0
    for match in _BETWEEN_PARTS.finditer(text) if begins_with_topic(text, topic) else ():
        if begins_with_topic(text[match.end() :], topic):
            parts.append(text[start : match.start()] + ".")
            start = match.end()
    return [*parts, text[start:]]
