"""Read items and values from a Wikidata-shaped endpoint.

The queries use ``rdfs:label`` with a language filter instead of Wikidata's label service and list
their items in ``VALUES`` blocks, so they run unchanged on the embedded snapshot and on
``https://query.wikidata.org/sparql``. Patterns over ``?item`` define a domain, e.g. ``?item wdt:P31
wd:Q11424 .`` for films; ``facts.py`` loads people with all facts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clients.sparql import SparqlClient
from components.english import MONTHS
from records import UserError

ENTITY = "https://factfoundry.example/entity/"
WD = "http://www.wikidata.org/entity/"

PREFIXES = f"""\
PREFIX ff: <{ENTITY}>
PREFIX wd: <{WD}>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX schema: <http://schema.org/>
PREFIX p: <http://www.wikidata.org/prop/>
PREFIX psv: <http://www.wikidata.org/prop/statement/value/>
PREFIX wikibase: <http://wikiba.se/ontology#>
"""

# All humans; restrict it on Wikidata, e.g. by occupation and year.
POPULATION = "?item wdt:P31 wd:Q5 ."

LABEL = "?person rdfs:label ?text ."

# Languages of English names: of several names, the first language counts. ``mul`` is Wikidata's tag
# of names that are the same in most languages.
ENGLISH = ("en", "mul", "en-gb", "en-ca")
IS_ENGLISH = f"IN {ENGLISH}"

# A value as the endpoint writes it, with its datatype and, for dates, their precision and the IRI
# of their calendar (``wikibase:timePrecision`` and ``wikibase:timeCalendarModel``).
Raw = tuple[str, str, int, str]
# Precisions: 8 is a decade, 7 a century. Endpoints other than Wikidata have none.
YEAR, MONTH, NO_PRECISION = 9, 10, 99
GREGORIAN, JULIAN = f"{WD}Q1985727", f"{WD}Q1985786"
# Britain and its colonies changed the calendar in 1752; English texts have earlier dates in either.
FIRST_GREGORIAN_YEAR = 1753


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a property.

    Attributes:
        label: English label; ``7 May 1861`` for a date, ``May 1861`` or ``1861`` if less is known.
        iri: the value's IRI; ``None`` for dates.
        year: of a date, as in XSD 1.1 and Wikidata: 0 is 1 BC, -43 is 44 BC.
        gregorian: the date in the endpoint (``1643-01-04``) if the label is in the Julian calendar.
    """

    label: str
    iri: str | None
    year: int | None = None
    gregorian: str = ""


def check_population(population: str, subject: str = "item") -> None:
    """Raise an error for patterns without the subject variable."""
    if not re.search(rf"\?{subject}\b", population):
        example = {"item": "Q11424 .' for films", "person": "Q5 .' for everybody"}[subject]
        raise UserError(
            f"population: {population!r} has no ?{subject}; e.g. '?{subject} wdt:P31 wd:{example}"
        )


def members(client: SparqlClient, population: str, subject: str = "item") -> list[str]:
    """List the sorted IRIs that the patterns bind to ``?item`` or another subject."""
    check_population(population, subject)
    query = f"{PREFIXES}SELECT DISTINCT ?{subject} WHERE {{ {population} }}"
    rows = client.select(query, "population")
    if any(subject not in row for row in rows):
        raise UserError(
            f"population: {population!r} leaves ?{subject} unbound; move it out of OPTIONAL"
        )
    return sorted({row[subject] for row in rows})


def rows_about(
    client: SparqlClient,
    iris: Sequence[str],
    body: str,
    family: str,
    *,
    subject: str = "person",
    variables: str | None = None,
    prefixes: str = PREFIXES,
    dropped: Counter[str] | None = None,
) -> Iterator[dict[str, str]]:
    """Run a query about many IRIs, in batches.

    Args:
        body: patterns over the subject.
        family: name under which the manifest counts the requests.
        subject: name of the variable bound to the IRIs.
        variables: the variables to select in addition to the subject; ``None`` for all.
        dropped: counts invalid IRIs and IRIs that the endpoint refuses; updated.
    """
    selected = "*" if variables is None else f"?{subject} {variables}"

    def query(block: str) -> str:
        return (
            f"{prefixes}SELECT DISTINCT {selected} WHERE {{\n"
            f"  VALUES ?{subject} {{ {block} }}\n  {body}\n}}"
        )

    return client.select_values(query, iris, family, dropped)


def load_column(
    client: SparqlClient, iris: Sequence[str], body: str, family: str
) -> dict[str, set[str]]:
    """Map each ``?person`` to the values of ``?value``."""
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows_about(client, iris, body, family, variables="?value"):
        values[row["person"]].add(row["value"])
    return values


def texts_of(
    client: SparqlClient, iris: Sequence[str], body: str, family: str
) -> dict[str, set[str]]:
    """Map each ``?person`` to the values of ``?text`` in the languages of ``ENGLISH``."""
    texts: dict[str, set[str]] = defaultdict(set)
    for _, iri, text in _english_texts(client, iris, body, family):
        texts[iri].add(text)
    return texts


def labels_of(client: SparqlClient, iris: Sequence[str], family: str) -> dict[str, str]:
    """Return English labels: of several, the first by language, then in alphabetical order."""
    labels: dict[str, str] = {}
    for _, iri, text in sorted(_english_texts(client, iris, LABEL, family)):
        labels.setdefault(iri, text)
    return labels


def _english_texts(
    client: SparqlClient, iris: Sequence[str], body: str, family: str
) -> Iterator[tuple[int, str, str]]:
    body = f"{body}\n  BIND(LCASE(LANG(?text)) AS ?lang) FILTER(?lang {IS_ENGLISH})"
    for row in rows_about(client, iris, body, family, variables="?text ?lang"):
        yield ENGLISH.index(row["lang"]), row["person"], row["text"]


def load_items(client: SparqlClient, population: str, dropped: Counter[str]) -> dict[str, str]:
    """Map the IRIs that the patterns select to their English names, sorted by IRI.

    Items that share a name are dropped, since a statement would be ambiguous.
    """
    iris = members(client, population)
    names = labels_of(client, iris, "names")
    dropped["item without an English name"] += len(iris) - len(names)
    bearers = Counter(names.values())
    unique = {iri: names[iri] for iri in iris if iri in names and bearers[names[iri]] == 1}
    dropped["item with a shared name"] += len(names) - len(unique)
    return unique


def single_values(
    client: SparqlClient, iris: Sequence[str], prop: str, date: bool, dropped: Counter[str]
) -> dict[str, Value]:
    """Return the value of a property for each item with exactly one.

    Items with several values and values without a label are counted in ``dropped``.
    """
    values_of = raw_values(client, iris, prop, dropped, subject="item", typed=True)
    single = {iri: min(values) for iri, values in values_of.items() if len(values) == 1}
    dropped[f"item with several values of {prop}"] += len(values_of) - len(single)
    converted = labelled(client, single.values(), prop, date, dropped)
    kept = {iri: converted[value] for iri, value in single.items() if value in converted}
    dropped[f"value of {prop} without an English label, or no date"] += len(single) - len(kept)
    return kept


def raw_values(
    client: SparqlClient,
    iris: Sequence[str],
    prop: str,
    dropped: Counter[str],
    *,
    subject: str = "person",
    typed: bool,
) -> dict[str, set[Raw]]:
    """Return the values of a property as the endpoint writes them, optionally with datatypes.

    Typed dates that are known only to the decade or less are counted in ``dropped``.
    """
    body, variables = f"?{subject} wdt:{prop} ?value .", "?value"
    if typed:
        body = (
            f"{body} BIND(STR(DATATYPE(?value)) AS ?type) OPTIONAL {{ ?{subject} p:{prop} ?claim . "
            f"?claim psv:{prop} ?node . ?node wikibase:timeValue ?value ; "
            "wikibase:timePrecision ?precision . "
            "FILTER NOT EXISTS { ?claim wikibase:rank wikibase:DeprecatedRank } "
            "OPTIONAL { ?node wikibase:timeCalendarModel ?calendar . } }"
        )
        variables = "?value ?type ?precision ?calendar"
    precisions: dict[tuple[str, str, str], int] = {}
    calendars: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in rows_about(client, iris, body, prop, subject=subject, variables=variables):
        key = (row[subject], row["value"], row.get("type", ""))
        precision = int(row.get("precision", NO_PRECISION))
        precisions[key] = min(precision, precisions.get(key, NO_PRECISION))
        calendars[key].add(row.get("calendar", ""))
    values: dict[str, set[Raw]] = defaultdict(set)
    for key, precision in precisions.items():
        iri, value, datatype = key
        if precision < YEAR:
            dropped[f"value of {prop} known only to the decade, century or less"] += 1
        else:
            values[iri].add((value, datatype, precision, " ".join(sorted(calendars[key]))))
    return values


def labelled(
    client: SparqlClient, values: Iterable[Raw], prop: str, date: bool, dropped: Counter[str]
) -> dict[Raw, Value]:
    """Convert raw values; drop invalid dates and items without an English label.

    Days that are left out because their calendar is unknown are counted in ``dropped``.
    """
    if date:
        dates = {value: parse_date(*value, dropped=dropped) for value in values}
        return {value: parsed for value, parsed in dates.items() if parsed is not None}
    values = list(values)
    labels = labels_of(client, sorted({iri for iri, *_ in values}), f"labels of {prop}")
    return {value: Value(labels[value[0]], value[0]) for value in values if value[0] in labels}


def agreed_date(dates: Iterable[Value]) -> Value | None:
    """Return what several statements of one date agree on: a day, a month or a year.

    A year and a day in it are this day; ``None`` if the years differ.
    """
    by_precision = sorted(dates, key=lambda date: len(date.label.split()))
    finest, words = by_precision[-1], by_precision[-1].label.split()
    if len({date.year for date in by_precision}) > 1:
        return None
    if all(words[-len(parts) :] == parts for parts in (d.label.split() for d in by_precision)):
        return finest
    least = by_precision[0].label.split()
    shared = [date.label.split()[-2:] for date in by_precision]
    has_month = finest.year > 0 and len(least) > 1 and all(part == shared[0] for part in shared)
    year = words[-1:] if finest.year > 0 else words[-2:]  # 44 BC
    return Value(" ".join(shared[0] if has_month else year), None, finest.year)


def frequency_of(text: str) -> int | None:
    """Parse a frequency; ``None`` for "unknown value" and other non-numbers."""
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        return None
    return number if number >= 0 else None


def parse_date(
    text: str,
    datatype: str,
    precision: int = NO_PRECISION,
    calendar: str = "",
    dropped: Counter[str] | None = None,
) -> Value | None:
    """Parse a date; ``None`` if the text is not a date.

    Without a precision, 1 January of an ``xsd:dateTime`` is read as a year alone, which nearly all
    of Wikidata's are. Its query service also writes years BC with three digits
    (``-099`` is 100 BC).

    Wikidata's RDF has days of the Julian calendar in the Gregorian one; they are converted back, so
    that 1643-01-04 is 25 December 1642. Without ``calendar``, an ``xsd:date`` is read as written,
    and an ``xsd:dateTime`` before ``FIRST_GREGORIAN_YEAR`` may be in either calendar: it is reduced
    to its year, or ``None`` if the calendars differ in the year.
    """
    match = re.match(r"^([+-]?\d{4,}|-\d{3})(?:-(\d\d)-(\d\d))?(?:T.*)?Z?$", text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if month > 12:
        return None
    is_time = datatype.endswith("dateTime")
    vague = is_time and (month, day) == (1, 1) and precision == NO_PRECISION
    if not month or not day or precision == YEAR or vague:
        month = day = 0
    elif precision == MONTH:
        day = 0
    gregorian = ""
    if day and calendar == JULIAN:
        gregorian = text.partition("T")[0]
        year, month, day = _julian(year, month, day)
    elif day and calendar != GREGORIAN and (calendar or (is_time and year < FIRST_GREGORIAN_YEAR)):
        if dropped is not None:
            dropped["day of a date in an unknown calendar"] += 1
        if _julian(year, month, day)[0] != year:
            return None
        month = day = 0
    month_name = MONTHS[month - 1] if month else ""
    words = (str(day or ""), month_name, str(year) if year > 0 else f"{1 - year} BC")
    return Value(" ".join(filter(None, words)), None, year, gregorian)


def _julian(year: int, month: int, day: int) -> tuple[int, int, int]:
    """Convert a date of the Gregorian calendar to the Julian calendar.

    Years begin in March here, so that the leap day is the last day of a year.
    """
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day + 1
    year = (4 * days + 3) // 1461
    days -= 1461 * year // 4
    month = (5 * days + 2) // 153
    day = days - (153 * month + 2) // 5 + 1
    return (year, month + 3, day) if month < 10 else (year + 1, month - 9, day)
