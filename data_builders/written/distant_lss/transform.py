"""Rules that make sentences partly false, and mark the words that are still supported.

After FactCC (Kryściński et al. 2020, section 3.1: swaps of entities, numbers, dates and pronouns,
negation, noise), with regular expressions instead of a parser and an entity recogniser. A rule
returns the claim in pieces, each supported or not. If a rule recognises a complete phrase ("in
Paris", "on 3 May 1950"), the phrase is unsupported and the rest is a sentence; otherwise only the
changed words are unsupported.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from components.english import MONTH, MONTHS, NEGATION, OPENERS, WEEKDAYS

_YEAR = r"(?:1[0-9]|20)\d\d"
_FULL_DATE = re.compile(rf"\b(\d{{1,2}} {MONTH}|{MONTH} \d{{1,2}},|{MONTH}),? ({_YEAR})\b")
_YEAR_PHRASE = re.compile(
    rf"\b(?:in|since|until|by|before|after|around|during) ({_YEAR})\b(?! ?[–-])"
)
_NUMBERS = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "twenty",
    "fifty",
    "hundred",
)
_NUMBER = re.compile(rf"(?<![\w.,$£€-])(?:\d{{1,3}}(?:,\d{{3}})*|{'|'.join(_NUMBERS)})(?= [a-z])")
# O'Brien; for "Ann's" and "the Parkers'" the part before the apostrophe.
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
    rf"{NEGATION}|\b(?:cannot|none|without"
    r"|(?:is|was|are|were|has|had|have|do|does|did|would|could|should)nt)\b",
    re.IGNORECASE,
)
# Names of times, which follow the prepositions of places and people as well.
_TIMES = frozenset((*MONTHS, *WEEKDAYS))
# Words that lose their capital when they no longer begin a sentence.
_OPENER = re.compile(f"{OPENERS}|When|Both|With|As|Since|Until")
_LONG_WORD = re.compile(r"[a-z]{4,}|\d+")

Pieces = list[tuple[str, bool]]


@dataclass
class Pool:
    """Sentences of other passages of the same split, and names by the preposition before them."""

    sentences: list[str] = field(default_factory=list)
    entities: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Setting:
    """The passage of a sentence, and its pool."""

    reference: str
    near: Mapping[str, Sequence[str]]  # preposition to names of the passage
    pool: Pool
    share_near: float  # probability of using a name of the same passage, if any


def entities(text: str) -> dict[str, list[str]]:
    """Return the names of a text by the preposition before them, a proxy for the entity type."""
    names: dict[str, list[str]] = {}
    for match in _ENTITY_PHRASE.finditer(text):
        if match[2].split()[0] not in _TIMES:
            names.setdefault(match[1], []).append(match[2])
    return names


def replace_span(text: str, start: int, end: int, new: str) -> Pieces:
    """Replace ``[start:end]`` by an unsupported text."""
    return [(text[:start], True), (new, False), (text[end:], True)]


def _replace_phrase(sentence: str, start: int, end: int, changed: str) -> Pieces:
    """Replace ``[start:end]`` by ``changed``, which is not supported.

    If commas delimit the phrase, one of them belongs to it.
    """
    before, after = sentence[:start], sentence[end:]
    if before.endswith(", ") and after.startswith("."):
        return [(before[:-2], True), (f", {changed}", False), (after, True)]
    if before.endswith(", ") and after.startswith(","):
        return [(before, True), (f"{changed},", False), (after[1:], True)]
    return replace_span(sentence, start, end, changed)


def swap_entity(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Use another name after the same preposition; removes the phrase, in a list the name."""
    matches = [
        m
        for m in _ENTITY_PHRASE.finditer(sentence)
        if m[2].split()[0] not in _TIMES and sentence[m.end() : m.end() + 1] not in ("'", "’")
    ]
    rng.shuffle(matches)
    for match in matches:
        use_near = rng.random() < setting.share_near
        for source in (setting.near, setting.pool.entities)[:: 1 if use_near else -1]:
            names = [n for n in source.get(match[1], ()) if _fits(n, match[2], sentence)]
            if source is not setting.near:
                names = [n for n in names if n not in setting.reference]
            if names:
                return _swap_name(sentence, match, rng.choice(names))
    return None


def _fits(name: str, old: str, sentence: str) -> bool:
    return name not in sentence and not set(name.lower().split()) & set(old.lower().split())


def _swap_name(sentence: str, match: re.Match, name: str) -> Pieces:
    start, end = match.span(2)
    after = sentence[end:]
    # "in Paris and Rome": the phrase continues.
    if re.match(r",? (?:and|or) |\(|, [A-Z]", after) or match[1] == "as":
        return replace_span(sentence, start, end, name)
    return _replace_phrase(sentence, match.start(), end, sentence[match.start() : start] + name)


def swap_date(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Change a year or month; removes the year if only the year of a date changes, else all."""
    full = list(_FULL_DATE.finditer(sentence))
    if full:
        match = rng.choice(full)
        if rng.random() < 0.5:
            start, end = match.span(2)
            year = _other_year(match[2], setting.reference, rng)
            if sentence[start - 2 : start] == ", ":
                start -= 2
                year = f", {year}"
            return replace_span(sentence, start, end, year)
        months = [m for m in MONTHS if m not in setting.reference]
        if not months:
            return None
        changed = re.sub(MONTH, rng.choice(months), match[0])
        start = match.start()
        preposition = re.search(r"\b(?:on|in|since|until|by|before|after) $", sentence[:start])
        start = preposition.start() if preposition else start
        return _replace_phrase(
            sentence, start, match.end(), sentence[start : match.start()] + changed
        )
    years = list(_YEAR_PHRASE.finditer(sentence))
    if not years:
        return None
    match = rng.choice(years)
    changed = match[0].replace(match[1], _other_year(match[1], setting.reference, rng))
    return _replace_phrase(sentence, *match.span(), changed)


def _other_year(year: str, reference: str, rng: random.Random) -> str:
    years = [str(int(year) + step) for step in range(-30, 31) if step]
    return rng.choice([other for other in years if other not in reference] or [str(int(year) - 40)])


def swap_number(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Change a count; removes the number: "won three medals" becomes "won medals"."""
    matches = [
        m for m in _NUMBER.finditer(sentence) if not re.match(rf" {MONTH}", m.string[m.end() :])
    ]
    if not matches:
        return None
    match = rng.choice(matches)
    if match[0] in _NUMBERS:
        candidates = [number for number in _NUMBERS if number not in setting.reference]
    else:
        value = int(match[0].replace(",", ""))
        steps = [value + step for step in (-2, -1, 1, 2, 3, 5, 10)] + [2 * value, 10 * value]
        candidates = [f"{n:,}" for n in steps if n > 0 and f"{n:,}" not in setting.reference]
    if not candidates:
        return None
    return replace_span(sentence, *match.span(), rng.choice(candidates))


def swap_pronoun(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    matches = list(_PRONOUN.finditer(sentence))
    if not matches:
        return None
    match = rng.choice(matches)
    return replace_span(sentence, *match.span(), _PRONOUNS[match[0]])


def negate(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Insert "not" or "never" after an auxiliary of a sentence without negation; removes it."""
    matches = list(_AUXILIARY.finditer(sentence))
    if not matches or NEGATED.search(sentence):
        return None
    end = rng.choice(matches).end()
    word = rng.choice(("not", "never")) if rng.random() < 0.3 else "not"
    return replace_span(sentence, end, end, f" {word}")


def add_phrase(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Insert a phrase of another passage before the full stop; removes the phrase."""
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
    """Join a sentence of another passage with "and"; removes both."""
    if not setting.pool.sentences:
        return None
    other = rng.choice(setting.pool.sentences)
    if not _is_foreign(other, setting.reference):
        return None
    if rng.random() < 0.5:
        end = len(sentence) - 1
        return replace_span(sentence, end, end, f", and {_lower_opening(other)[:-1]}")
    return [(f"{other[:-1]}, and ", False), (_lower_opening(sentence), True)]


def _lower_opening(sentence: str) -> str:
    is_opener = _OPENER.fullmatch(sentence.split()[0])
    return sentence[0].lower() + sentence[1:] if is_opener else sentence


def _is_foreign(sentence: str, reference: str) -> bool:
    names = [name for group in entities(sentence).values() for name in group]
    names += re.findall(_YEAR, sentence)
    return bool(names) and all(name not in reference for name in names)


def foreign_sentence(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
    """Use a sentence of another passage without common longer words; removes all."""
    if not setting.pool.sentences:
        return None
    other = rng.choice(setting.pool.sentences)
    words, reference = (set(_LONG_WORD.findall(t.lower())) for t in (other, setting.reference))
    is_unrelated = not words & reference and _is_foreign(other, setting.reference)
    return [(other, False)] if is_unrelated else None


def whole_sentence(sentence: str, setting: Setting, rng: random.Random) -> Pieces | None:
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
