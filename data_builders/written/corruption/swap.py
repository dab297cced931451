"""The rule-based corrupter: replaces a value by another value of the same property.

A claim is searched for values of the knowledge base in any form (``French``, ``France``;
``chemist``, ``chemistry``; ``7 May 1861``), and for years, numbers, ordinals and months. One match
is replaced by another value of its kind.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from components.english import MONTH, MONTHS
from data_builders.kb.facts import Person
from data_builders.kb.graph import Value
from data_builders.kb.language.statements import (
    Fact,
    facts_of,
    facts_of_value,
    is_another,
    ordinal,
    overlap,
)
from data_builders.kb.language.wording import lexicon
from data_builders.written.claims.clauses import name_of
from data_builders.written.claims.knowledge_base import ARTICLE, VALUED, KnownPeople, fit_article
from data_builders.written.corruption.corrupters import NOTHING_TO_CHANGE, Change, ToChange

COUNTED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
RANKED = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
# Countries of which one is or was part of another.
KIN = (
    frozenset({"United Kingdom", "Great Britain", "England", "Scotland", "Wales", "Ireland"}),
    frozenset({"Russia", "Soviet Union", "Russian Empire", "Ukraine", "Georgia", "Lithuania"}),
    frozenset({"Germany", "Prussia", "Austria", "Holy Roman Empire"}),
    frozenset({"Czech Republic", "Czechoslovakia", "Slovakia", "Bohemia", "Austria", "Hungary"}),
    frozenset({"United States", "United States of America"}),
    frozenset({"China", "Taiwan", "Hong Kong"}),
    frozenset({"India", "Pakistan", "Bangladesh", "British India"}),
    frozenset({"Yugoslavia", "Serbia", "Croatia", "Slovenia", "Bosnia and Herzegovina"}),
)
# A year changes by 1 to YEARS years, a decade by 1 to DECADES decades.
YEARS, DECADES = 15, 3
LAST_YEAR = 2025

_YEAR = re.compile(r"(?<![\d,.])(1\d{3}|20\d{2})(s?)(?![\d,]\d|\d|\.\d)")
_NUMBER = re.compile(r"(?<![\w,.$€£-])(\d{1,3}(?:,\d{3})+|\d{1,3}|\d{5,})(?![\w-]|[,.]\d)")
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_MONTH = re.compile(rf"\b{MONTH}\b(?=,? \d)|(?<=\bin ){MONTH}\b")
_DAY = re.compile(
    rf"(?:{'|'.join(f'(?<={month} )' for month in MONTHS)})(\d\d?)\b"
    rf"|\b(\d\d?)(?= {MONTH})"
)
# Lower case only: capitalised, they are part of a title.
_COUNTED = re.compile(rf"\b({'|'.join(COUNTED)})\b(?!-)")
_RANKED = re.compile(rf"(?<=\bthe |\bher |\bhis )({'|'.join(RANKED)})\b")

# After these words a number is a lower or an upper bound, and only a larger or a smaller number is
# false. A range is narrowed only: an event between 1880 and 1881 is also between 1880 and 1882.
_ABOVE = re.compile(
    r"(?i)\b(?:more than|no fewer than|at least|over|above|after|between(?: the)?) [$€£]?$"
)
_BELOW = re.compile(
    r"(?i)\b(?:less than|fewer than|at most|up to|under|below|before"
    r"|between (?:the )?\S+ and(?: the)?) [$€£]?$"
)

# A capitalised word next to a name makes it part of a longer name: the American Academy.
_NAME_BEFORE = re.compile(r"[A-Z][\w.'’-]*(?: of(?: the)?| de| and)? $")
_NAME_AFTER = re.compile(r"^(?:['’]s)? (?:of (?:the )?)?[A-Z]")
# After a capitalised word, except the first of the sentence, a number is part of a name: if Rush
# Hour 2 is a film, so is Rush Hour 3.
_NUMBERED = re.compile(r"(?<=\S )[A-Z][\w.'’-]* $")
# What follows an adjective that denotes a person: "an Italian who", "an Italian."
_NO_NOUN = re.compile(r"^(?:[.,;]|$| (?:who|and|by|from|in|but|of)\b)")


class Find(NamedTuple):
    """A value in a claim, and other values of its kind, sorted."""

    start: int
    end: int
    kind: str  # a property, or year, month, day, ordinal, number
    replacements: Sequence[str]


class ValueSwap(KnownPeople):
    """Replaces a value by one of the same property, from a Wikidata-shaped knowledge base."""

    source = "rule: another value"

    @property
    def identity(self) -> dict[str, Any]:
        """The knowledge base and the people taken from it."""
        return {"corrupter": "value_swap", **super().identity}

    @cached_property
    def _values(self) -> Values:
        return Values(self.load())

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """Return one change per claim, without text if the claim has no replaceable value."""
        return [
            self._values.change(claim, random.Random(f"{seed}:swap:{claim.key}"))
            for claim in claims
        ]


class Values:
    """The values of the knowledge base, by property and form."""

    def __init__(self, people: Sequence[Person]):
        # By IRI and by name: a person's facts, and all forms of their values.
        self._true: dict[str, list[Fact]] = defaultdict(list)
        self._true_forms: dict[str, set[str]] = defaultdict(set)
        # Adjectives that are also nouns for a person: an Italian, but not a French.
        self._nouns: set[str] = set()
        self._forms: dict[tuple[str, str], dict[str, Fact]] = defaultdict(dict)
        for person in people:
            facts = [fact for prop in VALUED for fact in facts_of(person, prop)]
            forms = {t for f in facts for level in (f, *f.coarser) for _, t in _forms(level)}
            # Namesakes share their facts: rather too few changes than a true one.
            for key in (person.iri, person.name):
                self._true[key] += facts
                self._true_forms[key] |= forms
            for fact in facts:
                self._add(fact)
        # Countries and occupations that none of the people has.
        for prop, words in (("P27", "countries"), ("P106", "occupations")):
            for label in lexicon(words):
                for fact in facts_of_value(prop, Value(label, None)):
                    self._add(fact)
        self._patterns = {
            key: re.compile(
                rf"\b({'|'.join(map(re.escape, sorted(texts, key=lambda t: (-len(t), t))))})\b"
            )
            for key, texts in sorted(self._forms.items())
        }

    def _add(self, fact: Fact) -> None:
        self._nouns.update(text for form, text in fact.slots.items() if form == "one")
        for form, text in _forms(fact):
            self._forms[fact.prop, form].setdefault(text, fact)

    def change(self, claim: ToChange, rng: random.Random) -> Change:
        """Replace one value of the claim."""
        finds = self._replaceable(claim)
        if not finds:
            return Change(reason=NOTHING_TO_CHANGE)
        find = rng.choice(finds)
        old, new = claim.text[find.start : find.end], rng.choice(find.replacements)
        if old[0].isupper() and find.start == 0:
            new = new[0].upper() + new[1:]
        before, after = claim.text[: find.start], claim.text[find.end :]
        country = find.kind == "P27" and old not in self._forms["P27", "adj"]
        if country and before.endswith(" the ") and _NO_NOUN.search(after):
            before = before.removesuffix("the ")  # the article of the country's name
        text = fit_article(before, new) + new + after
        return Change(text=text, kind=find.kind, old=old, new=new)

    def _replaceable(self, claim: ToChange) -> list[Find]:
        names = name_of(claim.topic).split()  # London in Lauren London is not a place
        taken = [m.span() for m in re.finditer(re.escape(claim.topic), claim.text, re.IGNORECASE)]
        finds = sorted(
            [*self._find_values(claim), *_bounded_numbers(claim.text)],
            key=lambda find: (find.start - find.end, find.start, find.kind == "number", find.kind),
        )
        kept = []
        for find in finds:
            if claim.text[find.start : find.end] in names:
                continue
            if find.replacements and all(find.end <= a or b <= find.start for a, b in taken):
                kept.append(find)
                taken.append((find.start, find.end))
        return sorted(kept, key=lambda find: find.start)

    def _find_values(self, claim: ToChange) -> Iterator[Find]:
        key = claim.person or claim.topic
        forms = self._true_forms.get(key, set())
        for (prop, form), pattern in self._patterns.items():
            texts = self._forms[prop, form]
            true = [fact for fact in self._true.get(key, ()) if fact.prop == prop]
            for match in pattern.finditer(claim.text):
                old = match[1]
                if old[0].isupper() and _in_longer_name(claim.text, *match.span()):
                    continue
                # Words such as "law" or "films" denote an occupation only of a person who has it,
                # and a name is an alias only of the topic.
                if (prop == "alias" or (prop == "P106" and form != "v")) and old not in forms:
                    continue
                noun = form == "adj" and (
                    ARTICLE.search(claim.text[: match.start()])
                    and _NO_NOUN.search(claim.text[match.end() :])
                )
                replacements = [
                    text
                    for text, fact in texts.items()
                    if text not in forms
                    and text not in claim.text
                    and not overlap(text, old)
                    and not (noun and text not in self._nouns)
                    and not any({fact.value, texts[old].value} <= kin for kin in KIN)
                    and is_another(fact, [texts[old], *true])
                ]
                yield Find(*match.span(), prop, sorted(replacements))


def _forms(fact: Fact) -> Iterator[tuple[str, str]]:
    for form, text in fact.slots.items():
        # A noun for a person from a country reads like the adjective.
        if form != "one" and len(text) > 2:
            yield form, text


def _in_longer_name(text: str, start: int, end: int) -> bool:
    before = _NAME_BEFORE.search(text[:start])
    # The first word of a sentence is always capitalised.
    named_before = before is not None and before.start() > 0
    return named_before or _NAME_AFTER.search(text[end:]) is not None


def _bounded_numbers(text: str) -> Iterator[Find]:
    """Find years, months, days, ordinals and numbers, with replacements near them that are false.

    "sold more than 100 records" implies "more than 78", so after a lower bound replacements are
    larger, after an upper bound smaller.
    """
    for find in _numbers(text):
        old, before = _parse_number(text[find.start : find.end]), text[: find.start]
        numbers = find.replacements
        if old is not None and _ABOVE.search(before):
            numbers = [number for number in numbers if _parse_number(number) > old]
        elif old is not None and _BELOW.search(before):
            numbers = [number for number in numbers if _parse_number(number) < old]
        yield find._replace(replacements=numbers)


def _parse_number(number: str) -> int | None:
    if number in COUNTED:
        return COUNTED.index(number) + 2
    digits = number.replace(",", "")
    return int(digits) if digits.isdecimal() else None


def _numbers(text: str) -> Iterator[Find]:
    for match in _YEAR.finditer(text):
        year = int(match[1])
        step, largest = (10, DECADES) if match[2] else (1, YEARS)
        near = [year + step * away for away in range(-largest, largest + 1)]
        years = [str(y) for y in near if y <= max(year, LAST_YEAR) and str(y) not in text]
        yield Find(*match.span(1), "year", years)
    for match in _MONTH.finditer(text):
        yield Find(*match.span(), "month", [m for m in MONTHS if m not in text])
    for match in _DAY.finditer(text):
        day = int(match[1] or match[2])
        yield Find(*match.span(), "day", [str(n) for n in range(1, 29) if n != day])
    for match in _ORDINAL.finditer(text):
        number = int(match[1])
        near = [n for n in range(max(1, number - 3), number + 4) if n != number]
        yield Find(*match.span(), "ordinal", [ordinal(n) for n in near])
    for match in _NUMBER.finditer(text):
        if _NUMBERED.search(text[: match.start()]):
            continue
        number = int(match[1].replace(",", ""))
        # A few hundred replacements at most, and none below 2, for plurals.
        step = max(1, number // 1000)
        away = max(3, min(number // 3, 300))
        near = range(max(2, number - step * away), number + step * away + 1, step)
        numbers = [f"{n:,}" if "," in match[1] else str(n) for n in near if n != number]
        yield Find(*match.span(), "number", numbers if number > 1 else [])
    for match in _COUNTED.finditer(text):
        yield Find(*match.span(), "number", [word for word in COUNTED if word != match[1]])
    for match in _RANKED.finditer(text):
        yield Find(*match.span(), "ordinal", [word for word in RANKED if word != match[1]])
