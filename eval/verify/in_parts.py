"""Defences against a lenient judge: support only what several judges, or all parts, support."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eval.stages import Verifier
from eval.verify.about_topic import begins_with_topic
from records import Claim, Document, Passage, Verdict

_BETWEEN_PARTS = re.compile(r"[,;]\s+(?:(?:and|but|while|in addition,)\s+)?")


@dataclass(eq=False)
class Unanimous:
    """Support a claim only if every verifier does.

    A verifier judges only the claims that those before it support, so put the fastest first. Judges
    with different base models make different mistakes, so that fewer false claims convince all of
    them (2310.02743, section 4, for reward models).
    """

    verify: list[Verifier]

    @property
    def judges_sets(self) -> bool:
        return any(verifier.judges_sets for verifier in self.verify)

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        verdicts = self.verify[0](documents, claims, passages)
        for verifier in self.verify[1:]:
            supported = [
                [c for c, v in zip(listed, row, strict=True) if v.label == "supported"]
                for listed, row in zip(claims, verdicts, strict=True)
            ]
            judged = verifier(documents, supported, passages)
            later = [{verdict.claim: verdict for verdict in row} for row in judged]
            verdicts = [
                [newer.get(verdict.claim, verdict) for verdict in row]
                for row, newer in zip(verdicts, later, strict=True)
            ]
        return verdicts


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
