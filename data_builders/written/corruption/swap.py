"""The rule-based corrupter: replaces a value by another value of its kind.

A claim is searched for the values that the lead of its topic states, for nationalities and
occupations, and for years, numbers, ordinals and months. One match is replaced.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from components.english import MONTH, MONTHS, ordinal, with_article, without_qualifier
from data_builders.splits import SPLITS
from data_builders.written.corruption.corrupters import NOTHING_TO_CHANGE, Change, ToChange
from data_builders.written.leads.false_values import (
    Article,
    FalseValues,
    article_files,
    other_nationalities,
    other_occupations,
    read_articles,
)
from data_builders.written.leads.lead_statements import nationalities, occupation_fields
from records import sha256_file

COUNTED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
RANKED = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
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
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
# What follows an adjective that denotes a person: "an Italian who", "an Italian."
_NO_NOUN = re.compile(r"^(?:[.,;]|$| (?:who|and|by|from|in|but|of)\b)")
# Not after another noun: a film director is no film chemist.
_BEFORE_OCCUPATION = re.compile(r"(?:\b(?:an?|and|as)|,|\b[A-Z][\w-]+) $")


class Find(NamedTuple):
    """A value in a claim, and other values of its kind, sorted."""

    start: int
    end: int
    kind: str  # a slot of a lead, or year, month, day, ordinal, number
    replacements: Sequence[str]


class ValueSwap:
    """Replaces a value by another of its kind.

    A value of the topic's lead, a nationality or an occupation is replaced by one that the lead
    does not state. A topic without a lead has neither alias, award nor office to be replaced.

    Args:
        leads: output of ``leads``.
    """

    source = "rule: another value"

    def __init__(self, leads: str = "data/leads"):
        self.leads = leads

    @property
    def identity(self) -> dict[str, Any]:
        files = [path for split in SPLITS for path in article_files(self.leads, split)]
        return {"leads": [sha256_file(path) for path in files]}

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """Return one change per claim, without text if the claim has no replaceable value."""
        return [self.change(c, random.Random(f"{seed}:swap:{c.key}")) for c in claims]

    def change(self, claim: ToChange, rng: random.Random) -> Change:
        """Replace one value of the claim."""
        finds = self.replaceable(claim)
        if not finds:
            return Change(reason=NOTHING_TO_CHANGE)
        find = rng.choice(finds)
        old, new = claim.text[find.start : find.end], rng.choice(find.replacements)
        if old[0].isupper() and find.start == 0:
            new = new[0].upper() + new[1:]
        text = _fit_article(claim.text[: find.start], new) + new + claim.text[find.end :]
        return Change(text=text, kind=find.kind, old=old, new=new)

    def replaceable(self, claim: ToChange) -> list[Find]:
        """Return the values of a claim that can be replaced, none of which overlap."""
        names = without_qualifier(claim.topic).split()  # London in Lauren London is not a place
        taken = [m.span() for m in re.finditer(re.escape(claim.topic), claim.text, re.IGNORECASE)]
        article = self._articles.get(claim.topic)
        finds = sorted(
            [
                *(self._lead_values(claim.text, article) if article else ()),
                *_words(claim.text, article),
                *_bounded_numbers(claim.text),
            ],
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

    @cached_property
    def _articles(self) -> dict[str, Article]:
        articles = (a for split in SPLITS for a in read_articles(self.leads, split))
        return {article.passage.title: article for article in articles}

    @cached_property
    def _values(self) -> FalseValues:
        return FalseValues(self._articles.values())

    def _lead_values(self, text: str, article: Article) -> Iterator[Find]:
        lead = article.passage.text.lower()
        for statement in article.statements:
            if not statement.value:
                continue
            values = self._values.other_values(statement, article)
            replacements = [value for value in values if value.lower() not in lead]
            for match in re.finditer(rf"\b{re.escape(statement.value)}(?!\w)", text):
                yield Find(*match.span(), statement.rule, replacements)


def _words(text: str, article: Article | None) -> Iterator[Find]:
    """Find nationalities and occupations, with replacements that neither text nor lead states."""
    lead = article.passage.text if article else ""
    stated = {s.value for s in article.statements if s.rule == "nationality"} if article else set()
    for match in re.finditer("|".join(rf"\b{word}\b" for word in sorted(nationalities())), text):
        after = text[match.end() :]
        if _in_longer_name(text, *match.span()):
            continue
        words = other_nationalities(stated | {match[0]})
        replacements = [word for word in words if word not in lead]
        if _ARTICLE.search(text[: match.start()]) and _NO_NOUN.search(after):
            # an Italian, not a French
            replacements = [word for word in replacements if word.endswith("an")]
        yield Find(*match.span(), "nationality", replacements)
    for match in re.finditer(r"\b[a-z-]+\b", text):
        if match[0] in occupation_fields() and _BEFORE_OCCUPATION.search(text[: match.start()]):
            yield Find(*match.span(), "occupation", other_occupations(f"{lead} {text}"))


def _fit_article(before: str, new: str) -> str:
    """Change the article at the end of the text before a value to fit a new value."""
    article = _ARTICLE.search(before)
    if article is None:
        return before
    fitting = with_article(new).split()[0]
    fitting = fitting.capitalize() if article[1][0].isupper() else fitting
    return f"{before[: article.start()]}{fitting} "


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
