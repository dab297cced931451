"""Sentences made partly false, and the words of them that stay true.

After FactCC (Kryściński et al. 2020, section 3.1: swaps of entities, numbers, dates and pronouns,
negation, noise), with regular expressions where FactCC has a parser and an entity recogniser. Each
rule returns the claim in pieces, each of which is supported or not. Where a rule can tell a whole
phrase ("in Paris", "on 3 May 1950"), the phrase goes and the rest is a sentence; where it cannot,
only the changed words go.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from data_builders.kb.graph import MONTHS

_MONTH = f"(?:{'|'.join(MONTHS)})"
_YEAR = r"(?:1[0-9]|20)\d\d"
_FULL_DATE = re.compile(rf"\b(\d{{1,2}} {_MONTH}|{_MONTH} \d{{1,2}},|{_MONTH}),? ({_YEAR})\b")
_YEAR_PHRASE = re.compile(
    rf"\b(?:in|since|until|by|before|after|around|during) ({_YEAR})\b(?! ?[–-])"
)
_NUMBERS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "twenty", "fifty", "hundred"),
)
_NUMBER = re.compile(rf"(?<![\w.,$£€-])(?:\d{{1,3}}(?:,\d{{3}})*|{'|'.join(_NUMBERS)})(?= [a-z])")
# O'Brien, and of "Ann's" or "the Parkers'" what stands before the apostrophe.
_PART = r"[A-Z](?:[\w-]|[’'](?!s\b)(?=\w))+"
_NAME = rf"{_PART}(?:(?: (?:of|de|van|von|the|and the|for))? {_PART})*"
_ENTITY_PHRASE = re.compile(rf"\b(in|at|by|from|to|with|near|for|of|as) (?:the )?({_NAME})")
_PRONOUNS = {
    "he": "she", "she": "he", "his": "her", "him": "her", "himself": "herself",
    "herself": "himself", "He": "She", "She": "He", "His": "Her",
}  # fmt: skip
_PRONOUN = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b")
_AUXILIARY = re.compile(
    r"\b(?:(?:is|was|are|were|will|would|could|can)\b(?= [a-z])|"
    r"(?:has|had|have)\b(?= (?:been|also|become|[a-z]+ed)\b))"
)
NEGATED = re.compile(
    r"\b(?:not|cannot|never|no|none|neither|nor|without)\b|n['’]t\b"
    r"|\b(?:is|was|are|were|has|had|have|do|does|did|would|could|should)nt\b",
    re.IGNORECASE,
)
# Names of times, which stand behind the prepositions of places and people as well.
_TIMES = frozenset(
    {*MONTHS, "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
)
# Words that lose their capital when they no longer begin a sentence.
_OPENERS = frozenset(
    """He She It They His Her Its Their The A An This That These Those There Both In On At By With
    For From As After Before During While When Since Until""".split()  # noqa: SIM905
)
_LONG_WORD = re.compile(r"[a-z]{4,}|\d+")

Pieces = list[tuple[str, bool]]


@dataclass
class Pool:
    """What other passages of the same split offer.

    Attributes:
        sentences: whole sentences.
        entities: preposition to names that follow it.
    """

    sentences: list[str] = field(default_factory=list)
    entities: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Setting:
    """Where a sentence stands.

    Attributes:
        reference: the passage.
        near: the entities of the passage itself, by preposition.
        pool: of the other passages.
        share_near: how often a name of the same passage replaces one, where there is one.
    """

    reference: str
    near: Mapping[str, Sequence[str]]
    pool: Pool
    share_near: float


def entities(text: str) -> dict[str, list[str]]:
    """Names of a text by the preposition before them, which stands for a kind of entity."""
    found: dict[str, list[str]] = {}
    for match in _ENTITY_PHRASE.finditer(text):
        if match[2].split()[0] not in _TIMES:
            found.setdefault(match[1], []).append(match[2])
    return found


def _without(sentence: str, start: int, end: int, changed: str) -> Pieces:
    """The sentence with ``changed`` for ``[start:end]``, which is not supported.

    Where commas set the phrase off, one of them goes with it.
    """
    before, after = sentence[:start], sentence[end:]
    if before.endswith(", ") and after.startswith("."):
        return [(before[:-2], True), (f", {changed}", False), (after, True)]
    if before.endswith(", ") and after.startswith(","):
        return [(before, True), (f"{changed},", False), (after[1:], True)]
    return [(before, True), (changed, False), (after, True)]


def swap_entity(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Another name after the same preposition; the phrase goes, in a list only the name."""
    found = [
        m
        for m in _ENTITY_PHRASE.finditer(sentence)
        if m[2].split()[0] not in _TIMES and sentence[m.end() : m.end() + 1] not in ("'", "’")
    ]
    rng.shuffle(found)
    for match in found:
        near = rng.random() < setting.share_near
        for source in (setting.near, setting.pool.entities)[:: 1 if near else -1]:
            names = [n for n in source.get(match[1], ()) if _fits(n, match[2], sentence)]
            if source is not setting.near:
                names = [n for n in names if n not in setting.reference]
            if names:
                return _put(sentence, match, rng.choice(names))
    return None


def _fits(name: str, old: str, sentence: str) -> bool:
    return name not in sentence and not set(name.lower().split()) & set(old.lower().split())


def _put(sentence: str, match: re.Match, name: str) -> Pieces:
    start, end = match.span(2)
    after = sentence[end:]
    # "in Paris and Rome": the phrase does not end here.
    if re.match(r",? (?:and|or) |\(|, [A-Z]", after) or match[1] == "as":
        return [(sentence[:start], True), (name, False), (after, True)]
    return _without(sentence, match.start(), end, sentence[match.start() : start] + name)


def swap_date(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Another year or month. Of a full date with another year the year goes, else the phrase."""
    full = list(_FULL_DATE.finditer(sentence))
    if full:
        match = rng.choice(full)
        if rng.random() < 0.5:
            start, end = match.span(2)
            year = _other_year(match[2], setting.reference, rng)
            if sentence[start - 2 : start] == ", ":
                start -= 2
                year = f", {year}"
            return [(sentence[:start], True), (year, False), (sentence[end:], True)]
        months = [m for m in MONTHS if m not in setting.reference]
        if not months:
            return None
        changed = re.sub(_MONTH, rng.choice(months), match[0])
        start = match.start()
        preposition = re.search(r"\b(?:on|in|since|until|by|before|after) $", sentence[:start])
        start = preposition.start() if preposition else start
        return _without(sentence, start, match.end(), sentence[start : match.start()] + changed)
    years = list(_YEAR_PHRASE.finditer(sentence))
    if not years:
        return None
    match = rng.choice(years)
    changed = match[0].replace(match[1], _other_year(match[1], setting.reference, rng))
    return _without(sentence, *match.span(), changed)


def _other_year(year: str, reference: str, rng: random.Random) -> str:
    near = [str(int(year) + step) for step in range(-30, 31) if step]
    return rng.choice([other for other in near if other not in reference] or [str(int(year) - 40)])


def swap_number(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Another number of things; the number goes: "won three medals", "won medals"."""
    found = [
        m for m in _NUMBER.finditer(sentence) if not re.match(rf" {_MONTH}", m.string[m.end() :])
    ]
    if not found:
        return None
    match = rng.choice(found)
    if match[0] in _NUMBERS:
        others = [number for number in _NUMBERS if number not in setting.reference]
    else:
        value = int(match[0].replace(",", ""))
        steps = [value + step for step in (-2, -1, 1, 2, 3, 5, 10)] + [2 * value, 10 * value]
        others = [f"{n:,}" for n in steps if n > 0 and f"{n:,}" not in setting.reference]
    if not others:
        return None
    return [
        (sentence[: match.start()], True),
        (rng.choice(others), False),
        (sentence[match.end() :], True),
    ]


def swap_pronoun(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """He for she and she for he; the pronoun goes."""
    found = list(_PRONOUN.finditer(sentence))
    if not found:
        return None
    match = rng.choice(found)
    return [
        (sentence[: match.start()], True),
        (_PRONOUNS[match[0]], False),
        (sentence[match.end() :], True),
    ]


def negate(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """ "Not" or "never" after an auxiliary of a sentence that denies nothing; the word goes."""
    found = list(_AUXILIARY.finditer(sentence))
    if not found or NEGATED.search(sentence):
        return None
    end = rng.choice(found).end()
    word = rng.choice(("not", "never")) if rng.random() < 0.3 else "not"
    return [(sentence[:end], True), (f" {word}", False), (sentence[end:], True)]


def add_phrase(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """A phrase of another passage before the last full stop; the phrase goes."""
    kinds = [
        kind for kind in ("in", "at", "with", "near", "for") if setting.pool.entities.get(kind)
    ]
    if not kinds:
        return None
    kind = rng.choice(kinds)
    name = rng.choice(setting.pool.entities[kind])
    if name in setting.reference or sentence.endswith("etc."):
        return None
    return [(sentence[:-1], True), (f" {kind} {name}", False), (sentence[-1], True)]


def add_clause(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """A sentence of another passage joined by "and"; it goes with the word that joins."""
    if not setting.pool.sentences:
        return None
    other = rng.choice(setting.pool.sentences)
    if not _foreign(other, setting.reference):
        return None
    if rng.random() < 0.5:
        return [
            (sentence[:-1], True),
            (f", and {_inside(other)[:-1]}", False),
            (sentence[-1], True),
        ]
    return [(f"{other[:-1]}, and ", False), (_inside(sentence), True)]


def _inside(sentence: str) -> str:
    first = sentence.split()[0]
    return sentence[0].lower() + sentence[1:] if first in _OPENERS else sentence


def _foreign(sentence: str, reference: str) -> bool:
    names = [name for found in entities(sentence).values() for name in found]
    names += re.findall(_YEAR, sentence)
    return bool(names) and all(name not in reference for name in names)


def foreign_sentence(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """A sentence of another passage that shares no longer word with this one: all goes."""
    if not setting.pool.sentences:
        return None
    other = rng.choice(setting.pool.sentences)
    shared = set(_LONG_WORD.findall(other.lower())) & set(
        _LONG_WORD.findall(setting.reference.lower())
    )
    return [(other, False)] if not shared and _foreign(other, setting.reference) else None


def whole_sentence(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """The sentence as it is: all stays."""
    return [(sentence, True)]


RULES: dict[str, Callable[[str, Setting, random.Random], Pieces | None]] = {
    "entity_swap": swap_entity,
    "date_swap": swap_date,
    "number_swap": swap_number,
    "pronoun_swap": swap_pronoun,
    "negation": negate,
    "noise_phrase": add_phrase,
    "noise_clause": add_clause,
    "foreign": foreign_sentence,
    "whole": whole_sentence,
}
