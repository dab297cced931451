"""Load people and their facts from the knowledge base."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clients.sparql import SparqlClient
from data_builders.kb.graph import (
    PREFIXES,
    WD,
    Value,
    agreed_date,
    frequency_of,
    labelled,
    labels_of,
    load_column,
    members,
    raw_values,
    texts_of,
)

POPULATION = "?person wdt:P31 wd:Q5 ."

# Other names: aliases on Wikidata, labels of redirects on DBpedia.
ALIASES = (
    "{ ?person skos:altLabel ?text } UNION { ?person owl:sameAs ?other . ?other rdfs:label ?text }"
)
TITLE = (
    "?value0 schema:about ?person ; schema:isPartOf <https://en.wikipedia.org/> ; "
    "schema:name ?value ."
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

SEXES = {f"{WD}Q6581097": "male", f"{WD}Q6581072": "female"}


@dataclass(frozen=True, slots=True)
class Person:
    """One person with all facts that the builders use.

    Attributes:
        iri: identifies the person.
        name: English label; not unique.
        title: title of the English Wikipedia page, which is unique; otherwise the name.
        aliases: other names, sorted.
        sex: ``male``, ``female``, or ``""`` if unknown.
        facts: property (``P27``, ``P106``, …) to its values, sorted by label; properties without a
            known value are absent.
        continent: English label of the continent that decided the group.
        group: Core's group of continents, A to D (``CONTINENTS``).
        frequency: number of occurrences of the name in a corpus; ``0`` if unknown.
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
        """Name of the bin, as in ``bios``."""
        return list(BINS)[self.frequency_bin]


def load_people(
    client: SparqlClient,
    population: str = POPULATION,
    *,
    dropped: Counter[str] | None = None,
    limit: int | None = None,
) -> list[Person]:
    """Load a population with its facts, sorted by IRI.

    One query lists the people; then one query per property and hundred people loads the values.
    ``dropped`` counts people without an English name, values without an English label, invalid
    dates (unknown values), and dates whose statements differ.
    """
    dropped = Counter() if dropped is None else dropped
    iris = members(client, population, "person")[:limit]
    names = labels_of(client, iris, "names")
    dropped["person without an English name"] += len(iris) - len(names)
    iris = [iri for iri in iris if iri in names]
    columns = load_column(client, iris, TITLE, "titles")
    titles = {iri: min(values) for iri, values in columns.items()}
    aliases = texts_of(client, iris, ALIASES, "aliases")
    columns = load_column(client, iris, "?person wdt:P21 ?value .", "P21")
    sexes = {iri: SEXES.get(min(values), "") for iri, values in columns.items()}
    columns = load_column(client, iris, "?person ff:frequency ?value .", "frequency")
    numbers_of = {iri: [frequency_of(value) for value in values] for iri, values in columns.items()}
    frequencies = {iri: max(n or 0 for n in numbers) for iri, numbers in numbers_of.items()}
    dropped["frequency that is not a number"] += sum(
        numbers.count(None) for numbers in numbers_of.values()
    )
    facts: dict[str, dict[str, tuple[Value, ...]]] = {iri: {} for iri in iris}
    for prop in PROPERTIES:
        for iri, values in _values(client, iris, prop, dropped).items():
            facts[iri][prop] = values
    countries = {value.iri for values_of in facts.values() for value in values_of.get("P27", ())}
    continents = _continents(client, sorted(iri for iri in countries if iri))
    people = []
    for iri in iris:
        name = names[iri]
        other_names = tuple(sorted(aliases.get(iri, set()) - {name}))
        group, continent = _group(facts[iri].get("P27", ()), continents)
        people.append(
            Person(
                iri=iri,
                name=name,
                title=titles.get(iri, name),
                aliases=other_names,
                sex=sexes.get(iri, ""),
                facts=facts[iri],
                continent=continent,
                group=group,
                frequency=frequencies.get(iri, 0),
            )
        )
    return people


def count_people(
    client: SparqlClient,
    patterns: Sequence[str],
    population: str = POPULATION,
) -> int:
    """Count the people of a population for whom all patterns over ``?person`` hold.

    E.g. ``"?person wdt:P106 wd:Q82955 ."`` or ``"FILTER NOT EXISTS { ?person wdt:P166 ?award }"``.
    """
    body = "\n  ".join([population, *patterns])
    query = f"{PREFIXES}SELECT (COUNT(DISTINCT ?person) AS ?n) WHERE {{\n  {body}\n}}"
    return int(client.select(query, family="counts")[0]["n"])


def _values(
    client: SparqlClient, iris: Sequence[str], prop: str, dropped: Counter[str]
) -> dict[str, tuple[Value, ...]]:
    date = prop in DATES
    raw = raw_values(client, iris, prop, dropped, typed=date)
    labels = labelled(client, set().union(*raw.values()), prop, date, dropped)
    values_of = {}
    for iri, values in raw.items():
        named = {labels[value] for value in values if value in labels}
        n_unlabelled = sum(value not in labels for value in values)
        dropped["invalid date" if date else "value without an English label"] += n_unlabelled
        if date and len(named) > 1:
            agreed = agreed_date(named)
            if agreed not in named:
                lost = "day or month" if agreed else "year"
                dropped[f"{PROPERTIES[prop]} whose statements differ in the {lost}"] += 1
            named = {agreed} if agreed else set()
        if named:
            values_of[iri] = tuple(sorted(named, key=lambda v: (v.year or 0, v.label, v.iri or "")))
    return values_of


def _continents(client: SparqlClient, countries: Sequence[str]) -> dict[str, list[str]]:
    raw = load_column(client, countries, "?person wdt:P30 ?value .", "P30")
    iris = sorted({v for values in raw.values() for v in values})
    labels = labels_of(client, iris, "labels of P30")
    return {iri: [labels.get(v, v) for v in sorted(values)] for iri, values in raw.items()}


def _group(
    citizenships: Iterable[Value], continents: dict[str, list[str]]
) -> tuple[str, str | None]:
    labels = [label for c in citizenships for label in continents.get(c.iri or "", ())]
    group = most_voted(map(group_of, labels))
    return group, min((label for label in labels if group_of(label) == group), default=None)


# Groups of Core's Table 1 (2407.03572), as in the authors' released code, by the English label of
# the continent on Wikidata. A country may belong to Oceania, Insular Oceania, the Australian
# continent, or all of them. Unlisted continents, and topics without one (NULL), are in REST.
CONTINENTS = {
    "A": ("Asia", "Australian continent", "Indian subcontinent", "Insular Oceania", "Oceania"),
    "B": ("North America",),
    "C": ("Eurasia", "Europe"),
    "D": ("Africa", "Afro-Eurasia", "Americas", "Caribbean", "Central America", "South America"),
}
REST = "D"
# Least frequency of each bin.
BINS = {"very rare": 0, "rare": 100, "medium": 1000, "frequent": 5000}


def group_of(label: str, groups: Mapping[str, Sequence[str]] = CONTINENTS, rest: str = REST) -> str:
    """Return the group that lists an English label, e.g. of a continent."""
    return next((group for group, labels in groups.items() if label in labels), rest)


def most_voted(votes: Iterable[str], rest: str = REST) -> str:
    """Return the group with most votes (ties: the first), or ``rest`` without votes.

    Two countries of one continent are two votes. The paper does not define ties.
    """
    counts = Counter(votes)
    return min(counts, key=lambda group: (-counts[group], group), default=rest)


def bin_of(frequency: int, edges: Sequence[int] = tuple(BINS.values())) -> int:
    """Return the index of the bin of a frequency."""
    return sum(frequency >= edge for edge in edges) - 1
