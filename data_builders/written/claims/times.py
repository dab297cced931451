"""Dates in claims, and coarser times that they entail (decade, before, after)."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from components.english import MONTH, MONTHS, ordinal

_YEAR = r"(?:1\d{3}|20\d{2})"
# A day in either format, a month, or a year.
DATE = re.compile(
    rf"(?<![\w–-])(?:(?P<d>\d\d?) (?P<m>{MONTH}),? (?P<y>{_YEAR})"
    rf"|(?P<m2>{MONTH}) (?P<d2>\d\d?), (?P<y2>{_YEAR})"
    rf"|(?P<m3>{MONTH}) (?P<y3>{_YEAR})|(?P<y4>{_YEAR}))(?![\w–-])"
)
_LAST = re.compile(rf"^(?P<stem>.+?) (?:on|in) (?P<date>{DATE.pattern})$")


class Date(NamedTuple):
    year: int
    month: int | None = None
    day: int | None = None


def dates_in(text: str) -> list[Date]:
    return [_date(match) for match in DATE.finditer(text)]


def ends_in_date(text: str) -> tuple[str, Date] | None:
    """Split a claim that ends in ``on`` or ``in`` and a date; return the stem and the date."""
    match = _LAST.match(text)
    return None if match is None else (match["stem"], _date(match))


def swap_date_format(text: str) -> str:
    """Swap the formats ``3 May 1950`` and ``May 3, 1950`` of each day."""
    return DATE.sub(_swap_format, text)


def coarser_times(date: Date) -> Iterator[str]:
    """Yield the times that a date entails, as phrases after a verb, from fine to coarse."""
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
    """Return whether each time of a text is a time of its base or is entailed by its dates."""
    dates, base_times = dates_in(base), {time for time, _ in _parse_times(base)[0]}
    return all(t in base_times or any(map(match, dates)) for t, match in _parse_times(text)[0])


def without_times(text: str) -> str:
    return _parse_times(text)[1]


def _date(match: re.Match[str]) -> Date:
    year = match["y"] or match["y2"] or match["y3"] or match["y4"]
    month, day = match["m"] or match["m2"] or match["m3"], match["d"] or match["d2"]
    return Date(int(year), MONTHS.index(month) + 1 if month else None, int(day) if day else None)


def _swap_format(match: re.Match[str]) -> str:
    if match["d"]:
        return f"{match['m']} {match['d']}, {match['y']}"
    if match["d2"]:
        return f"{match['d2']} {match['m2']} {match['y2']}"
    return match[0]


# Time expressions and their predicates on dates; the first match consumes its words.
_EXPRESSIONS: list[tuple[str, Callable[[re.Match[str]], Callable[[Date], bool]]]] = [
    (rf"\bbetween ({_YEAR}) and ({_YEAR})\b", lambda m: lambda d: int(m[1]) <= d.year <= int(m[2])),
    (rf"\bafter ({_YEAR})\b", lambda m: lambda d: d.year > int(m[1])),
    (rf"\bbefore ({_YEAR})\b", lambda m: lambda d: d.year < int(m[1])),
    (r"\bin the (\d{3}0)s\b", lambda m: lambda d: d.year // 10 * 10 == int(m[1])),
    (
        r"\bin the (\d\d?)(?:st|nd|rd|th) century\b",
        lambda m: lambda d: (d.year - 1) // 100 + 1 == int(m[1]),
    ),
    (r"\bon the (\d\d?)(?:st|nd|rd|th) day of a month\b", lambda m: lambda d: d.day == int(m[1])),
    (rf"(?:\b[oi]n )?{DATE.pattern}", lambda m: lambda d: is_within(d, _date(m))),
    (rf"\bin ({MONTH})\b", lambda m: lambda d: d.month == MONTHS.index(m[1]) + 1),
]


def _parse_times(text: str) -> tuple[list[tuple[str, Callable[[Date], bool]]], str]:
    times = []
    for pattern, predicate in _EXPRESSIONS:
        times += [(_plain(match), predicate(match)) for match in re.finditer(pattern, text)]
        text = re.sub(pattern, " ", text)
    return times, text


def _plain(match: re.Match[str]) -> str:
    return str(_date(match)) if "y" in match.groupdict() else match[0]


def is_within(date: Date, other: Date) -> bool:
    return all(a == b for a, b in zip(date, other, strict=True) if b is not None)
