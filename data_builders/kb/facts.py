"""People and all their facts, read from the knowledge base's graph."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clients.sparql import SparqlClient
from data_builders.kb.graph import (
    PREFIXES,
    WD,
    Value,
    column,
    frequency_of,
    labelled,
    labels_of,
    members,
    raw_values,
    texts_of,
)

POPULATION = "?person wdt:P31 wd:Q5 ."

# Wikidata gives other names, DBpedia gives redirects with names of their own.
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
        group: Core's group of continents, A to D (``CONTINENTS``).
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
    iris = members(client, population, "person")[:limit]
    names = labels_of(client, iris, "names")
    dropped["person without an English name"] += len(iris) - len(names)
    iris = [iri for iri in iris if iri in names]
    found = column(client, iris, TITLE, "titles")
    titles = {iri: min(values) for iri, values in found.items()}
    aliases = texts_of(client, iris, ALIASES, "aliases")
    found = column(client, iris, "?person wdt:P21 ?value .", "P21")
    sexes = {iri: SEXES.get(min(values), "") for iri, values in found.items()}
    found = column(client, iris, "?person ff:frequency ?value .", "frequency")
    told = {iri: [frequency_of(value) for value in values] for iri, values in found.items()}
    frequencies = {iri: max(n or 0 for n in numbers) for iri, numbers in told.items()}
    dropped["frequency that is no number"] += sum(own.count(None) for own in told.values())
    facts: dict[str, dict[str, tuple[Value, ...]]] = {iri: {} for iri in iris}
    for prop in PROPERTIES:
        for iri, values in _values(client, iris, prop, dropped).items():
            facts[iri][prop] = values
    countries = {value.iri for known in facts.values() for value in known.get("P27", ())}
    continents = _continents(client, sorted(iri for iri in countries if iri))
    people = []
    for iri in iris:
        name = names[iri]
        others = tuple(sorted(aliases.get(iri, set()) - {name}))
        group, continent = _group(facts[iri].get("P27", ()), continents)
        people.append(
            Person(
                iri=iri,
                name=name,
                title=titles.get(iri, name),
                aliases=others,
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


def _values(
    client: SparqlClient, iris: Sequence[str], prop: str, dropped: Counter[str]
) -> dict[str, tuple[Value, ...]]:
    date = prop in DATES
    known = raw_values(client, iris, prop, typed=date)
    told = labelled(client, set().union(*known.values()), prop, date)
    found = {}
    for iri, values in known.items():
        named = {told[value] for value in values if value in told}
        untold = sum(value not in told for value in values)
        dropped["date that is no date" if date else "value without an English label"] += untold
        if named:
            found[iri] = tuple(sorted(named, key=lambda v: (v.year or 0, v.label, v.iri or "")))
    return found


def _continents(client: SparqlClient, countries: Sequence[str]) -> dict[str, list[str]]:
    known = column(client, countries, "?person wdt:P30 ?value .", "P30")
    found = sorted({v for values in known.values() for v in values})
    labels = labels_of(client, found, "labels of P30")
    return {iri: [labels.get(v, v) for v in sorted(values)] for iri, values in known.items()}


def _group(
    citizenships: Iterable[Value], continents: dict[str, list[str]]
) -> tuple[str, str | None]:
    labels = [label for c in citizenships for label in continents.get(c.iri or "", ())]
    group = most_voted(map(group_of, labels))
    return group, min((label for label in labels if group_of(label) == group), default=None)


# Core's cells of frequency and continent (2407.03572, section 4.2). The groups are Table 1's, as in
# the authors' released code: by the English label of the continent on Wikidata, where a country's
# continent may be Oceania, Insular Oceania, the Australian continent, or all of them. What no group
# lists, and a topic without any continent (NULL), is in the last.
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
    """The group that lists a continent, or whatever else groups topics, by its English label."""
    return next((group for group, labels in groups.items() if label in labels), rest)


def most_voted(votes: Iterable[str], rest: str = REST) -> str:
    """The group with most votes, of equal ones the first; without any vote, the rest.

    A vote is a country's continent, so that two countries of one continent weigh two. The paper
    does not say what happens to people of two continents.
    """
    counts = Counter(votes)
    return min(counts, key=lambda group: (-counts[group], group), default=rest)


def bin_of(frequency: int, edges: Sequence[int] = tuple(BINS.values())) -> int:
    """Index of the bin that a frequency is in: of the highest least frequency it reaches."""
    return sum(frequency >= edge for edge in edges) - 1
