"""Dates in claims, what follows from them (a decade, before and after), and when it happened."""

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from data_builders.kb.graph import MONTHS
from data_builders.kb.language.statements import ordinal
from data_builders.written.claims.clauses import has_negation

_MONTH = "|".join(MONTHS)
_YEAR = r"(?:1\d{3}|20\d{2})"
# Either way of writing a day, a month, or a year alone.
DATE = re.compile(
    rf"(?<![\w–-])(?:(?P<d>\d\d?) (?P<m>{_MONTH}),? (?P<y>{_YEAR})"
    rf"|(?P<m2>{_MONTH}) (?P<d2>\d\d?), (?P<y2>{_YEAR})"
    rf"|(?P<m3>{_MONTH}) (?P<y3>{_YEAR})|(?P<y4>{_YEAR}))(?![\w–-])"
)
_LAST = re.compile(rf"^(?P<stem>.+?) (?:on|in) (?P<date>{DATE.pattern})$")


class Date(NamedTuple):
    """A day, a month or a year."""

    year: int
    month: int | None = None
    day: int | None = None


def dates_in(text: str) -> list[Date]:
    """The dates of a text, in order."""
    return [_date(found) for found in DATE.finditer(text)]


def ends_in_date(text: str) -> tuple[str, Date] | None:
    """What a claim says before ``on`` or ``in`` and a date at its end, and the date."""
    found = _LAST.match(text)
    return None if found is None else (found["stem"], _date(found))


def swap_date_format(text: str) -> str:
    """The same with each day as the other side of the Atlantic writes it."""
    return DATE.sub(_otherwise, text)


def coarser_times(date: Date) -> Iterator[str]:
    """What follows of a date, as it stands behind a verb, from fine to coarse."""
    year = date.year
    if date.day is not None:
        yield f"on the {ordinal(date.day)} day of a month"
        yield f"in {MONTHS[date.month - 1]} {year}"
    if date.month is not None:
        yield f"in {MONTHS[date.month - 1]}"
        yield f"in {year}"
    decade, century = year // 10 * 10, (year - 1) // 100
    yield f"in the {decade}s"
    yield f"in the {ordinal(century + 1)} century"
    for away in (1, 2, 3, 5, 8, 12, 18, 25):
        yield f"after {year - away}"
        yield f"before {year + away}"
        yield f"between {year - away} and {year + away}"


def has_same_times(text: str, base: str) -> bool:
    """Whether each time that a text speaks of is one of its base, or holds of a date of it."""
    dates, told = dates_in(base), {said for said, _ in _read(base)[0]}
    return all(said in told or any(map(true, dates)) for said, true in _read(text)[0])


def without_times(text: str) -> str:
    """A text without the times that it speaks of."""
    return _read(text)[1]


def _date(found: re.Match[str]) -> Date:
    year = found["y"] or found["y2"] or found["y3"] or found["y4"]
    month, day = found["m"] or found["m2"] or found["m3"], found["d"] or found["d2"]
    return Date(int(year), MONTHS.index(month) + 1 if month else None, int(day) if day else None)


def _otherwise(found: re.Match[str]) -> str:
    if found["d"]:
        return f"{found['m']} {found['d']}, {found['y']}"
    if found["d2"]:
        return f"{found['d2']} {found['m2']} {found['y2']}"
    return found[0]


# Each kind of expression with what it says of a date; the first that matches takes its words.
_SAYS: list[tuple[str, Callable[[re.Match[str]], Callable[[Date], bool]]]] = [
    (
        rf"\bbetween ({_YEAR}) and ({_YEAR})\b",
        lambda m: lambda d: int(m[1]) <= d.year <= int(m[2]),
    ),
    (rf"\bafter ({_YEAR})\b", lambda m: lambda d: d.year > int(m[1])),
    (rf"\bbefore ({_YEAR})\b", lambda m: lambda d: d.year < int(m[1])),
    (r"\bin the (\d{3}0)s\b", lambda m: lambda d: d.year // 10 * 10 == int(m[1])),
    (
        r"\bin the (\d\d?)(?:st|nd|rd|th) century\b",
        lambda m: lambda d: (d.year - 1) // 100 + 1 == int(m[1]),
    ),
    (r"\bon the (\d\d?)(?:st|nd|rd|th) day of a month\b", lambda m: lambda d: d.day == int(m[1])),
    (rf"(?:\b[oi]n )?{DATE.pattern}", lambda m: lambda d: is_within(d, _date(m))),
    (rf"\bin ({_MONTH})\b", lambda m: lambda d: d.month == MONTHS.index(m[1]) + 1),
]


def _read(text: str) -> tuple[list[tuple[str, Callable[[Date], bool]]], str]:
    said = []
    for pattern, says in _SAYS:
        said += [(_plain(found), says(found)) for found in re.finditer(pattern, text)]
        text = re.sub(pattern, " ", text)
    return said, text


def _plain(found: re.Match[str]) -> str:
    return str(_date(found)) if "y" in found.groupdict() else found[0]


def is_within(date: Date, other: Date) -> bool:
    """Whether a date is the other, or in it."""
    return all(mine == its for mine, its in zip(date, other, strict=True) if its is not None)


BORN = re.compile(r"(?i)\bborn\b|\bbirth|came into the world|life began|the light of day")
DIED = re.compile(
    r"(?i)\bdied\b|\bdeath|\bpassed away|\bexpired\b|\blast moments|\blast day|met (?:his|her) end"
    r"|saw alive|the end of .* life\b|life (?:ended|came to)"
)
_NO_MOMENT = re.compile(
    r"(?i)\b(?:before|after|until|beyond|since|from|between|by \d)\b.*\d{4}|\bposthum"
)
# Whoever does this is alive.
_ALIVE = re.compile(
    r"(?i)\b(?:studied|studies|graduated|educated|an education|schooling|a student|student years"
    r"|moved to|joined|played for|taught)\b"
)
# Further than any year.
_EVER = 1e6


def year_range(text: str) -> tuple[float, float] | None:
    """When something happened: the earliest and the latest year that its words leave open.

    Death is behind all else, and whoever studies or plays is alive. None of a birth, of which
    nobody would believe that it came later, and where the text does not say: several years, or
    something that need not be in life.
    """
    if has_negation(text) or _NO_MOMENT.search(text) or BORN.search(text):
        return None
    if DIED.search(text):
        return (math.inf, math.inf)
    years = {float(date.year) for date in dates_in(text)}
    if years:
        year = years.pop()
        return None if years else (year, year)
    return (-_EVER, _EVER) if _ALIVE.search(text) else None
