"""The people of the embedded snapshot with all facts, as the tests expect them of the builders."""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from components.english import MONTHS
from data_builders.kb.facts import bin_of, group_of, most_voted
from data_builders.kb.graph import ENGLISH, PREFIXES, WD, rows_about

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
LABEL = "?person rdfs:label ?text ."
ALIASES = (
    "{ ?person skos:altLabel ?text } UNION { ?person owl:sameAs ?other . ?other rdfs:label ?text }"
)
TITLE = (
    "?value0 schema:about ?person ; schema:isPartOf <https://en.wikipedia.org/> ; "
    "schema:name ?value ."
)


class Value(NamedTuple):
    """A value of a property: a date without IRI, or an item without year."""

    label: str
    iri: str | None
    year: int | None = None


@dataclass(frozen=True)
class Person:
    """A person of the snapshot."""

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
    def frequency_bin(self):
        return bin_of(self.frequency)


def load_people(client):
    """All people of the endpoint with an English name, sorted by IRI."""
    query = f"{PREFIXES}SELECT DISTINCT ?person WHERE {{ ?person wdt:P31 wd:Q5 . }}"
    iris = sorted({row["person"] for row in client.select(query)})
    names = labels(client, iris)
    titles, sexes, frequencies = (
        column(client, iris, body)
        for body in (TITLE, "?person wdt:P21 ?value .", "?person ff:frequency ?value .")
    )
    aliases = texts(client, iris, ALIASES)
    values = {prop: column(client, iris, f"?person wdt:{prop} ?value .") for prop in PROPERTIES}
    items = {v for prop in set(PROPERTIES) - set(DATES) for vs in values[prop].values() for v in vs}
    item_names = labels(client, sorted(items))
    continents = column(client, sorted(items), "?person wdt:P30 ?value .")
    continent_names = labels(client, sorted({v for vs in continents.values() for v in vs}))
    people = []
    for iri in names:
        facts = {}
        for prop in PROPERTIES:
            if prop in DATES:
                read = [date_of(text) for text in values[prop].get(iri, ())]
            else:
                read = [Value(item_names[item], item) for item in values[prop].get(iri, ())]
            if read:
                facts[prop] = tuple(sorted(read, key=lambda value: (value.year or 0, value.label)))
        places = [
            continent_names.get(continent, continent)
            for country in facts.get("P27", ())
            for continent in sorted(continents.get(country.iri, ()))
        ]
        group = most_voted(map(group_of, places))
        people.append(
            Person(
                iri,
                names[iri],
                min(titles.get(iri, [names[iri]])),
                tuple(sorted(aliases.get(iri, set()) - {names[iri]})),
                SEXES.get(min(sexes.get(iri, [""])), ""),
                facts,
                min((place for place in places if group_of(place) == group), default=None),
                group,
                max((int(float(text)) for text in frequencies.get(iri, ())), default=0),
            )
        )
    return people


def column(client, iris, body):
    """``?person`` to the values of ``?value``."""
    values = defaultdict(set)
    for row in rows_about(client, iris, body, "tests", variables="?value"):
        values[row["person"]].add(row["value"])
    return values


def texts(client, iris, body):
    """``?person`` to the values of ``?text`` in English."""
    english = defaultdict(set)
    for row in rows_about(client, iris, f"{body} BIND(LANG(?text) AS ?lang)", "tests"):
        if row["lang"].lower() in ENGLISH:
            english[row["person"]].add(row["text"])
    return english


def labels(client, iris):
    """IRI to its English name; the snapshot has at most one."""
    return {iri: min(names) for iri, names in sorted(texts(client, iris, LABEL).items())}


def date_of(text):
    """A day or a year after Christ, as the snapshot writes them."""
    year, month, day = re.fullmatch(r"(-?\d+)(?:-(\d\d)-(\d\d))?", text).groups(default="0")
    words = (day.lstrip("0"), MONTHS[int(month) - 1] if int(month) else "", text_of_year(int(year)))
    return Value(" ".join(filter(None, words)), None, int(year))


def text_of_year(year):
    return str(year) if year > 0 else f"{1 - year} BC"
