"""Attacked texts: what they say, and on what each of their claims rests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from data_builders.written.corruption.sources import Source
from data_builders.written.corruption.texts import as_sentence
from records import Claim, Passage

# Who says so, of claims whose labels an attack gives.
RULE = "rule: the attack's construction"


# A title with an end of its own: "It may be that she starred in Hello, Dolly!."
_ENDS_TWICE = re.compile(r"([!?])\.$")


class NotApplicable(Exception):
    """An attack cannot be made of a document; the message is counted, so keep it general."""


class Said(NamedTuple):
    """A sentence of an attacked text that is one claim.

    Attributes:
        text: the sentence.
        label: its truth; ``None`` where nobody knows.
        rests_on: ids of what makes it so: claims of the document, or facts of the ``World``.
    """

    text: str
    label: str | None
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attacked:
    """What an attack made of a document.

    Attributes:
        text: the adversarial text.
        claims: what it says; the field ``rests_on`` of each holds ids as in :class:`Said`.
        passages: ``None`` for those of the document.
        asides: pieces of the text that claim nothing, such as an instruction.
        more: further fields of the record.
    """

    text: str
    claims: list[Claim]
    passages: list[Passage] | None = None
    asides: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


def one_by_one(said: Sequence[Said], **more: Any) -> Attacked:
    """A text of sentences that are one claim each."""
    sentences = [_ENDS_TWICE.sub(r"\1", as_sentence(one.text)) for one in said]
    claims = [
        Claim(
            id=f"c{place}",
            text=text,
            sentence=place,
            source=text,
            label=one.label,
            labelled_by=RULE if one.label else "none",
            rests_on=list(one.rests_on),
        )
        for place, (text, one) in enumerate(zip(sentences, said, strict=True))
    ]
    return Attacked(" ".join(sentences), claims, **more)


def as_they_were(source: Source) -> list[Claim]:
    """The document's claims, each resting on itself."""
    return [claim.model_copy(update={"rests_on": [claim.id]}) for claim in source.claims]
