"""Bleached claims: the record, how a model's answers are read, and which of them Core is given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from eval.models.chat import Answer
from eval.select.weights import TOPIC, normalise

_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,3}[.):])\s+(.*)$")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<![.!?]\s)\b[A-Z]\w*")


class BleachedClaim(BaseModel):
    """A bleached claim and what it rests on.

    Attributes:
        text: with ``{topic}``; of a single topic without.
        source: ``kb/class`` or ``kb/value`` (an instance of, a value), ``kb/property`` (some value
            of a property), or ``model``.
        share: of the population for which the knowledge base holds it; of the model's answers
            that have it.
        count: how many those are.
        of: how many members, or answers, there are.
        fact: property and value, e.g. ``P31=Q5``; ``None`` for a model's.
        topic: what alone it is about; ``None`` for any member of the domain.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    source: str
    share: float
    count: int
    of: int
    fact: str | None = None
    topic: str | None = None


def from_answers(
    answers: Sequence[Answer], dropped: Counter[str], topic: str | None = None
) -> list[BleachedClaim]:
    """The statements of a model's answers that may be bleached claims.

    Args:
        answers: each with a list, a statement an item.
        dropped: counts answers that failed and lines that are no such statement.
        topic: what the statements are about; ``None`` for any member of a domain.
    """
    said: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for answer in answers:
        if answer.failed is not None:
            dropped[f"model: no answer ({answer.failed})"] += 1
            continue
        own = set()
        for line in filter(str.strip, answer.text.splitlines()):
            item = _ITEM.match(line)
            text = item[1].strip() if item else ""
            reason = "line outside the list" if item is None else _fault(text, topic)
            if reason is None and normalise(text) in own:
                reason = "statement twice in an answer"
            if reason is not None:
                dropped[f"model: {reason}"] += 1
                continue
            own.add(normalise(text))
            spelled.setdefault(normalise(text), text)
        said.update(own)
    return [
        BleachedClaim(
            text=spelled[key],
            source="model",
            share=round(said[key] / len(answers), 4),
            count=said[key],
            of=len(answers),
            topic=topic,
        )
        for key in sorted(said)
    ]


def _fault(text: str, topic: str | None) -> str | None:
    """Why a model's statement is no bleached claim; ``None`` if it may be one.

    Numbers and names that stand in the topic itself say nothing new about it.
    """
    if topic is None and TOPIC not in text:
        return f"statement without {TOPIC}"
    rest = text.replace(TOPIC, "x") if topic is None else text
    known = "" if topic is None else topic
    if any(number not in _NUMBER.findall(known) for number in _NUMBER.findall(rest)):
        return "statement with a number"
    if "{" in rest or "#" in rest:
        return "statement with another placeholder"
    # The first word of a sentence has a capital anyway.
    names = (found[0] for found in _NAME.finditer(rest, 1))
    if any(name not in _WORD.findall(known) for name in names):
        return "statement with a name"
    if not rest.endswith((".", "!")):
        return "statement that is no whole sentence"
    return None


def distinct(claims: Sequence[BleachedClaim], dropped: Counter[str]) -> list[BleachedClaim]:
    """Each statement once, the surest first."""
    order = {"kb/class": 0, "kb/property": 1, "kb/value": 2, "model": 3}
    found: dict[str, BleachedClaim] = {}
    for claim in sorted(claims, key=lambda c: (order[c.source], -c.share, c.fact or "", c.text)):
        key = normalise(claim.text)
        dropped["statement that was there already"] += key in found
        found.setdefault(key, claim)
    return list(found.values())


def choose(claims: Sequence[BleachedClaim], most: int) -> list[BleachedClaim]:
    """The claims for Core: those of each source in turn, so that none crowds out the others."""
    by_source: dict[str, list[BleachedClaim]] = {}
    for claim in claims:
        by_source.setdefault(claim.source, []).append(claim)
    chosen: list[BleachedClaim] = []
    while len(chosen) < most and any(by_source.values()):
        for own in by_source.values():
            if own and len(chosen) < most:
                chosen.append(own.pop(0))
    return [claim for claim in claims if claim in chosen]


def text_file(domain: str, claims: Sequence[BleachedClaim]) -> str:
    head = (
        f"# Bleached claims: true of almost anything that is {domain}.\n"
        f"# One a line; {TOPIC} is the name. bleached.jsonl says whence.\n"
    )
    return head + "".join(f"{claim.text}\n" for claim in claims)
