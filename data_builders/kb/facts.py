"""People and their facts from a Wikidata-shaped SPARQL endpoint.

The queries use ``rdfs:label`` with a language filter instead of Wikidata's label service, and name
people in ``VALUES`` blocks, so that the same text runs on the embedded snapshot and on
``https://query.wikidata.org/sparql``. Only the population differs by domain.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clients.sparql import SparqlClient
from data_builders.kb.core_cells import BINS, bin_of, group_of, most_voted

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
POPULATION = "?person wdt:P31 wd:Q5 ."

LABEL = "?person rdfs:label ?text ."
# Wikidata gives other names, DBpedia gives redirects with names of their own.
ALIASES = (
    "{ ?person skos:altLabel ?text } UNION { ?person owl:sameAs ?other . ?other rdfs:label ?text }"
)

PROPERTIES = {
    "P27": "country of citizenship",
    "P106": "occupation",
    "P569": "date of birth",
    "P570": "date of death",
    "P19": "place of birth",
    "P20": "place of death",
    "P166": "award received",
    "P69": "educated at",
    "P54": "member of sports team",
}
DATES = ("P569", "P570")

# The calendar module's names would follow the locale.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

SEXES = {f"{WD}Q6581097": "male", f"{WD}Q6581072": "female"}


@dataclass(frozen=True)
class Value:
    """One value of a property.

    Attributes:
        label: English label; of a date ``7 May 1861``, or ``1861`` where only the year is known.
        iri: the value's IRI; ``None`` for dates.
        year: of a date; negative before the common era.
    """

    label: str
    iri: str | None
    year: int | None = None


@dataclass(frozen=True)
class Person:
    """One person with everything the builders use.

    Attributes:
        iri: identifies the person.
        name: English label; two people may share it.
        title: title of the English Wikipedia page, which is unique; the name where there is none.
        aliases: other names, sorted.
        sex: ``male``, ``female`` or ``""`` where the endpoint says neither.
        facts: property (``P27``, ``P106``, …) to its values, sorted by label; an absent property
            has no known value.
        continent: English label of the continent that decided the group.
        group: Core's group of continents, A to D (see ``core_cells``).
        frequency: how often a corpus names the person; ``0`` where the endpoint has no table.
    """

    iri: str
    name: str
    title: str
    aliases: tuple[str, ...]
    sex: str
    facts: dict[str, tuple[Value, ...]]
    continent: str | None
    group: str
    frequency: int

    @property
    def frequency_bin(self) -> int:
        """0 to 3 for [0, 100), [100, 1000), [1000, 5000), [5000, inf)."""
        return bin_of(self.frequency)

    @property
    def frequency_name(self) -> str:
        """The bin's name, as ``bios`` has them."""
        return list(BINS)[self.frequency_bin]


def load_people(
    client: SparqlClient,
    population: str = POPULATION,
    *,
    dropped: Counter[str] | None = None,
    limit: int | None = None,
) -> list[Person]:
    """Load a population with its facts.

    One query finds the people, then one a property and a hundred people fetches what is known.

    Args:
        client: the endpoint to ask.
        population: SPARQL patterns that bind ``?person``.
        dropped: counts what was left out, by reason: people without an English name, values
            without an English label, dates that are no date ("unknown value").
        limit: only the first so many people.

    Returns:
        The people, sorted by IRI.
    """
    dropped = Counter() if dropped is None else dropped
    found = client.select(
        f"{PREFIXES}SELECT DISTINCT ?person WHERE {{ {population} }}", family="population"
    )
    iris = sorted({row["person"] for row in found})[:limit]
    names = texts_of(client, iris, LABEL, "names")
    dropped["person without an English name"] += len(iris) - len(names)
    iris = [iri for iri in iris if iri in names]
    titles = _titles(client, iris)
    aliases = texts_of(client, iris, ALIASES, "aliases")
    sexes = _column(client, iris, "?person wdt:P21 ?value .", "P21")
    frequencies = _column(client, iris, "?person ff:frequency ?value .", "frequency")
    facts: dict[str, dict[str, tuple[Value, ...]]] = {iri: {} for iri in iris}
    for prop in PROPERTIES:
        read = _dates if prop in DATES else _values
        for iri, values in read(client, iris, prop, dropped).items():
            facts[iri][prop] = values
    countries = {value.iri for known in facts.values() for value in known.get("P27", ())}
    continents = _continents(client, sorted(iri for iri in countries if iri))
    people = []
    for iri in iris:
        name = min(names[iri])
        others = tuple(sorted(aliases.get(iri, set()) - {name}))
        group, continent = _group(facts[iri].get("P27", ()), continents)
        people.append(
            Person(
                iri=iri,
                name=name,
                title=min(titles.get(iri, {name})),
                aliases=others,
                sex=SEXES.get(min(sexes.get(iri, {""})), ""),
                facts=facts[iri],
                continent=continent,
                group=group,
                frequency=max((int(float(n)) for n in frequencies.get(iri, ())), default=0),
            )
        )
    return people


def count_people(
    client: SparqlClient,
    patterns: Sequence[str],
    population: str = POPULATION,
    family: str = "counts",
) -> int:
    """Count the people of a population for whom all patterns hold.

    Args:
        client: the endpoint to ask.
        patterns: SPARQL patterns over ``?person``, e.g. ``"?person wdt:P106 wd:Q82955 ."`` or
            ``"FILTER NOT EXISTS { ?person wdt:P166 ?award }"``.
        population: patterns that bind ``?person``; put first.
        family: what the manifest counts the query under.
    """
    body = "\n  ".join([population, *patterns])
    query = f"{PREFIXES}SELECT (COUNT(DISTINCT ?person) AS ?n) WHERE {{\n  {body}\n}}"
    return int(client.select(query, family=family)[0]["n"])


def property_labels(client: SparqlClient, properties: Sequence[str]) -> dict[str, str]:
    """English labels of properties such as ``P106``; ours where the endpoint has none."""
    iris = {f"{WD}{prop}": prop for prop in properties}
    labels = texts_of(client, sorted(iris), LABEL, "property labels")
    return {p: min(labels.get(iri, {PROPERTIES.get(p, p)})) for iri, p in iris.items()}


def _chunked(
    client: SparqlClient, iris: Sequence[str], variables: str, body: str, family: str
) -> list[dict[str, str]]:
    def query(block: str) -> str:
        return (
            f"{PREFIXES}SELECT DISTINCT ?person {variables} WHERE {{\n"
            f"  VALUES ?person {{ {block} }}\n  {body}\n}}"
        )

    return list(client.select_values(query, iris, family))


def _column(
    client: SparqlClient, iris: Sequence[str], body: str, family: str
) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in _chunked(client, iris, "?value", body, family):
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
    for row in _chunked(client, iris, "?text ?lang", body, family):
        by_language[row["lang"]][row["person"]].add(row["text"])
    return {**by_language["mul"], **by_language["en"]}


def _titles(client: SparqlClient, iris: Sequence[str]) -> dict[str, set[str]]:
    body = (
        "?value0 schema:about ?person ; schema:isPartOf <https://en.wikipedia.org/> ; "
        "schema:name ?value ."
    )
    return _column(client, iris, body, "titles")


def _values(
    client: SparqlClient, iris: Sequence[str], prop: str, dropped: Counter[str]
) -> dict[str, tuple[Value, ...]]:
    known = _column(client, iris, f"?person wdt:{prop} ?value .", prop)
    distinct = sorted({value for values in known.values() for value in values})
    labels = texts_of(client, distinct, LABEL, f"labels of {prop}")
    found = {}
    for iri, values in known.items():
        named = [Value(min(labels[v]), v) for v in values if v in labels]
        dropped["value without an English label"] += len(values) - len(named)
        if named:
            found[iri] = tuple(sorted(named, key=lambda v: (v.label, v.iri or "")))
    return found


def _dates(
    client: SparqlClient, iris: Sequence[str], prop: str, dropped: Counter[str]
) -> dict[str, tuple[Value, ...]]:
    body = f"?person wdt:{prop} ?value . BIND(STR(DATATYPE(?value)) AS ?type)"
    found: dict[str, set[Value]] = defaultdict(set)
    for row in _chunked(client, iris, "?value ?type", body, prop):
        value = parse_date(row["value"], row.get("type", ""))
        if value is None:
            dropped["date that is no date"] += 1
        else:
            found[row["person"]].add(value)
    return {iri: tuple(sorted(v, key=lambda d: (d.year, d.label))) for iri, v in found.items()}


def parse_date(text: str, datatype: str) -> Value | None:
    """A date's label and year, or ``None`` where the text is no date.

    Wikidata's truthy values are all ``xsd:dateTime`` and carry no precision; those on 1 January
    are read as a year alone, which is what nearly all of them are.
    """
    match = re.match(r"^([+-]?\d{4,})(?:-(\d\d)-(\d\d))?(?:T.*)?Z?$", text)
    if match is None:
        return None
    year = int(match[1])
    shown = str(year) if year > 0 else f"{-year} BC"
    month, day = int(match[2] or 0), int(match[3] or 0)
    vague = datatype.endswith("dateTime") and (month, day) == (1, 1)
    if not month or not day or vague:
        return Value(shown, None, year)
    return Value(f"{day} {MONTHS[month - 1]} {shown}", None, year)


def _continents(client: SparqlClient, countries: Sequence[str]) -> dict[str, list[str]]:
    """Country IRI to the labels of its continents."""
    known = _column(client, countries, "?person wdt:P30 ?value .", "P30")
    found = sorted({v for values in known.values() for v in values})
    labels = texts_of(client, found, LABEL, "labels of P30")
    return {iri: [min(labels.get(v, {v})) for v in sorted(values)] for iri, values in known.items()}


def _group(
    citizenships: Iterable[Value], continents: dict[str, list[str]]
) -> tuple[str, str | None]:
    """Group of a person, and the first continent of their countries that lies in it."""
    labels = [label for c in citizenships for label in continents.get(c.iri or "", ())]
    group = most_voted(map(group_of, labels))
    return group, min((label for label in labels if group_of(label) == group), default=None)
