"""A defence against a lenient judge of compound claims: support only what all parts support."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eval.stages import run_verifier
from eval.verify.about_topic import begins_with_topic
from eval.verify.wrapped import WithdrawsSupport, WrappedVerifier
from records import Claim, Document, Passage, Verdict

_BETWEEN_PARTS = re.compile(r"[,;]\s+(?:(?:and|but|while|in addition,)\s+)?")


@dataclass(eq=False)
class InParts(WrappedVerifier):
    """Judge the statements of a compound claim apart, and support it only if all are supported.

    A claim that begins with the topic's name or a pronoun is cut at each comma or semicolon that is
    followed by one. A claim of which a part has no verdict has none.

    Args:
        verify: the verifier.
        max_words: a claim with a part of more words is not supported, since nobody knows how many
            facts it states; null: no limit.
    """

    max_words: int | None = None

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
        verify = self.verify
        if self.max_words is not None:
            verify = _NotTooLong(verify, self.max_words)
        judged = run_verifier(verify, documents, parts, passages)
        return [list(_joined(*row)) for row in zip(parts, judged, strict=True)]


@dataclass(eq=False)
class _NotTooLong(WithdrawsSupport):
    """Withdraw support from claims of more words."""

    max_words: int

    def rejects(self, document: Document, passages: Sequence[Passage]) -> Callable[[Claim], bool]:
        return lambda claim: len(claim.text.split()) > self.max_words


def _joined(parts: Sequence[Claim], verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """Yield the strictest verdict of each assessor and name on each claim."""
    number = Counter(part.id.rpartition(".")[0] for part in parts)
    groups: dict[tuple[str, str, str], list[Verdict]] = {}
    for verdict in verdicts:
        claim = verdict.claim.rpartition(".")[0]
        groups.setdefault((claim, verdict.assessor, verdict.name), []).append(verdict)
    for (claim, _, _), group in groups.items():
        if len(group) == number[claim]:
            yield strictest(group, claim)


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
