"""The one reader of a knowledge base: things and their values from a Wikidata-shaped endpoint.

The queries use ``rdfs:label`` with a language filter instead of Wikidata's label service, and name
what they ask about in ``VALUES`` blocks, so that the same text runs on the embedded snapshot and on
``https://query.wikidata.org/sparql``. A domain is whatever patterns over ``?item`` describe, e.g.
``?item wdt:P31 wd:Q11424 .`` for films; people, with all their facts, are in ``facts.py``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clients.sparql import SparqlClient
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
"""

# Everything that is a human; a domain on Wikidata narrows it, e.g. by occupation and a year.
POPULATION = "?item wdt:P31 wd:Q5 ."

LABEL = "?person rdfs:label ?text ."

# The calendar module's names would follow the locale.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


# A value as the endpoint writes it, and its datatype.
Raw = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a property.

    Attributes:
        label: English label; of a date ``7 May 1861``, or ``1861`` where only the year is known.
        iri: the value's IRI; ``None`` for dates.
        year: of a date, as XSD 1.1 and Wikidata count: 0 is 1 BC, -43 is 44 BC.
    """

    label: str
    iri: str | None
    year: int | None = None


def check_population(population: str, subject: str = "item") -> None:
    """Refuse patterns that cannot select anything."""
    if not re.search(rf"\?{subject}\b", population):
        example = {"item": "Q11424 .' for films", "person": "Q5 .' for everybody"}[subject]
        raise UserError(
            f"population: {population!r} has no ?{subject}; e.g. '?{subject} wdt:P31 wd:{example}"
        )


def members(client: SparqlClient, population: str, subject: str = "item") -> list[str]:
    """IRIs of everything that the patterns bind to ``?item`` or another subject, sorted."""
    check_population(population, subject)
    query = f"{PREFIXES}SELECT DISTINCT ?{subject} WHERE {{ {population} }}"
    rows = client.select(query, "population")
    if any(subject not in row for row in rows):
        raise UserError(
            f"population: {population!r} leaves ?{subject} unbound; take it out of OPTIONAL"
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
    """Ask the same of many IRIs, a hundred in a query.

    Args:
        client: the endpoint.
        iris: what is asked about.
        body: patterns over ``?person``, or whatever ``subject`` is called.
        family: what the manifest counts the requests under.
        subject: name of the variable that is bound to the IRIs.
        variables: the variables to select in addition to the subject; ``None`` for all.
        prefixes: of the query.
        dropped: counts the IRIs that are none or that the endpoint refuses.
    """
    selected = "*" if variables is None else f"?{subject} {variables}"

    def query(block: str) -> str:
        return (
            f"{prefixes}SELECT DISTINCT {selected} WHERE {{\n"
            f"  VALUES ?{subject} {{ {block} }}\n  {body}\n}}"
        )

    return client.select_values(query, iris, family, dropped)


def column(
    client: SparqlClient, iris: Sequence[str], body: str, family: str
) -> dict[str, set[str]]:
    """What the patterns bind to ``?value``, by ``?person``."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows_about(client, iris, body, family, variables="?value"):
        found[row["person"]].add(row["value"])
    return found


def texts_of(
    client: SparqlClient, iris: Sequence[str], body: str, family: str
) -> dict[str, set[str]]:
    """English texts; Wikidata's ``mul`` (same in all languages) where there is no English one.

    Args:
        client: the endpoint.
        iris: what is asked about.
        body: patterns over ``?person`` that bind ``?text``, e.g. ``LABEL``.
        family: what the manifest counts the requests under.
    """
    by_language: dict[str, dict[str, set[str]]] = {"en": defaultdict(set), "mul": defaultdict(set)}
    body = f'{body}\n  BIND(LANG(?text) AS ?lang) FILTER(?lang IN ("en", "mul"))'
    for row in rows_about(client, iris, body, family, variables="?text ?lang"):
        by_language[row["lang"]][row["person"]].add(row["text"])
    return {**by_language["mul"], **by_language["en"]}


def labels_of(client: SparqlClient, iris: Sequence[str], family: str) -> dict[str, str]:
    """English labels, of several the first by the alphabet."""
    return {iri: min(texts) for iri, texts in texts_of(client, iris, LABEL, family).items()}


def load_items(client: SparqlClient, population: str, dropped: Counter[str]) -> dict[str, str]:
    """IRI to English name of everything that the patterns select, sorted by IRI.

    Names that several items share are left out: a statement about one would be about all.
    """
    iris = members(client, population)
    names = labels_of(client, iris, "names")
    dropped["item without an English name"] += len(iris) - len(names)
    bearers = Counter(names.values())
    alone = {iri: names[iri] for iri in iris if iri in names and bearers[names[iri]] == 1}
    dropped["item whose name others share"] += len(names) - len(alone)
    return alone


def single_values(
    client: SparqlClient, iris: Sequence[str], prop: str, date: bool, dropped: Counter[str]
) -> dict[str, Value]:
    """The value of a property of each item that has exactly one.

    Args:
        client: the endpoint.
        iris: the items.
        prop: e.g. ``P19``.
        date: whether its values are dates rather than items.
        dropped: counts the items with several values, and values that cannot be told.
    """
    known = raw_values(client, iris, prop, subject="item", typed=True)
    single = {iri: min(values) for iri, values in known.items() if len(values) == 1}
    dropped[f"item with several values of {prop}"] += len(known) - len(single)
    told = labelled(client, single.values(), prop, date)
    found = {iri: told[value] for iri, value in single.items() if value in told}
    dropped[f"value of {prop} without an English label, or no date"] += len(single) - len(found)
    return found


def raw_values(
    client: SparqlClient, iris: Sequence[str], prop: str, *, subject: str = "person", typed: bool
) -> dict[str, set[Raw]]:
    """The values of a property as the endpoint writes them, with their datatypes if asked for."""
    body, variables = f"?{subject} wdt:{prop} ?value .", "?value"
    if typed:
        body, variables = f"{body} BIND(STR(DATATYPE(?value)) AS ?type)", "?value ?type"
    found: dict[str, set[Raw]] = defaultdict(set)
    for row in rows_about(client, iris, body, prop, subject=subject, variables=variables):
        found[row[subject]].add((row["value"], row.get("type", "")))
    return found


def labelled(
    client: SparqlClient, values: Iterable[Raw], prop: str, date: bool
) -> dict[Raw, Value]:
    """Those of the values that can be told: dates that are such, things with an English label."""
    if date:
        dates = {value: parse_date(*value) for value in values}
        return {value: told for value, told in dates.items() if told is not None}
    values = list(values)
    labels = labels_of(client, sorted({iri for iri, _ in values}), f"labels of {prop}")
    return {value: Value(labels[value[0]], value[0]) for value in values if value[0] in labels}


def frequency_of(text: str) -> int | None:
    """A frequency as an endpoint writes it; ``None`` for "unknown value", and what else is none."""
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        return None
    return number if number >= 0 else None


def parse_date(text: str, datatype: str) -> Value | None:
    """A date's label and year, or ``None`` where the text is no date.

    Wikidata's truthy values are all ``xsd:dateTime`` and carry no precision; those on 1 January
    are read as a year alone, which is what nearly all of them are. Its query service writes years
    before the common era with three digits, too (``-099``, which is 100 BC).
    """
    match = re.match(r"^([+-]?\d{4,}|-\d{3})(?:-(\d\d)-(\d\d))?(?:T.*)?Z?$", text)
    if match is None:
        return None
    year = int(match[1])
    shown = str(year) if year > 0 else f"{1 - year} BC"
    month, day = int(match[2] or 0), int(match[3] or 0)
    if month > 12:
        return None
    vague = datatype.endswith("dateTime") and (month, day) == (1, 1)
    if not month or not day or vague:
        return Value(shown, None, year)
    return Value(f"{day} {MONTHS[month - 1]} {shown}", None, year)
