"""Defences against a lenient judge: support only claims that speak of the topic, and plainly."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from components.english import has_negation, without_qualifier
from eval.verify.wrapped import WithdrawsSupport
from records import Claim, Document, Passage

# "that" introduces what somebody says; a colon and a parenthesis introduce a second statement.
_ATTRIBUTED = re.compile(
    r"\b(?:that|according to|said|says|claim\w*|believ\w+|report\w*)\b|[:(]", re.IGNORECASE
)
_PRONOUN = "he|she|they|it"


@dataclass(eq=False)
class AboutTopic(WithdrawsSupport):
    """Withdraw support from claims in which somebody else could be meant, or nothing be asserted.

    Rules on words, so they also reject true claims in these forms; the second ladder of
    ``experiment robustness`` shows how many.

    Args:
        verify: the verifier.
        subject: support a claim only if it begins with the topic's name, its last word, or a
            pronoun.
        plain: support a claim only if it has no negation and attributes nothing to others.
    """

    subject: bool = False
    plain: bool = False

    def rejects(self, document: Document, passages: Sequence[Passage]) -> Callable[[Claim], bool]:
        return lambda claim: (
            (self.subject and not begins_with_topic(claim.text, document.topic))
            or (self.plain and not is_plain(claim.text))
        )


def is_plain(text: str) -> bool:
    """Whether a claim has no negation and attributes nothing to others."""
    return not has_negation(text) and _ATTRIBUTED.search(text) is None


def begins_with_topic(text: str, topic: str) -> bool:
    """Whether a claim begins with the topic's name, its last word, or a pronoun; no possessive."""
    name = without_qualifier(topic)
    names = "|".join(map(re.escape, (name, name.split()[-1])))
    return re.match(rf"(?:{names}|{_PRONOUN})\b(?!['’]s)", text, re.IGNORECASE) is not None
