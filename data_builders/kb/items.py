"""Things of any domain and their values from a Wikidata-shaped SPARQL endpoint.

``facts.py`` knows people; here a domain is whatever patterns over ``?item`` describe, e.g.
``?item wdt:P31 wd:Q11424 .`` for films.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from clients.sparql import SparqlClient
from data_builders.kb.facts import LABEL, PREFIXES, Value, parse_date, texts_of
from records import UserError

POPULATION = "?item wdt:P31 wd:Q5 ."


def check_population(population: str) -> None:
    """Refuse patterns that cannot select anything.

    Raises:
        UserError: no ``?item`` in them.
    """
    if "?item" not in population:
        raise UserError(
            f"population: {population!r} has no ?item; e.g. '?item wdt:P31 wd:Q11424 .' for films"
        )


def load_items(client: SparqlClient, population: str, dropped: Counter[str]) -> dict[str, str]:
    """IRI to English name of everything that the patterns select, sorted by IRI.

    Names that several items share are left out: a statement about one would be about all.
    """
    query = f"{PREFIXES}SELECT DISTINCT ?item WHERE {{ {population} }}"
    iris = sorted({row["item"] for row in client.select(query, "population")})
    names = labels_of(client, iris, "names")
    dropped["item without an English name"] += len(iris) - len(names)
    bearers = Counter(names.values())
    alone = {iri: names[iri] for iri in iris if iri in names and bearers[names[iri]] == 1}
    dropped["item whose name others share"] += len(names) - len(alone)
    return alone


def labels_of(client: SparqlClient, iris: Sequence[str], family: str) -> dict[str, str]:
    """English labels, of several the first by the alphabet."""
    return {iri: min(texts) for iri, texts in texts_of(client, iris, LABEL, family).items()}


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

    def query(block: str) -> str:
        return (
            f"{PREFIXES}SELECT DISTINCT ?item ?value ?type WHERE {{\n"
            f"  VALUES ?item {{ {block} }}\n"
            f"  ?item wdt:{prop} ?value . BIND(STR(DATATYPE(?value)) AS ?type)\n}}"
        )

    known: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in client.select_values(query, iris, prop):
        known[row["item"]].add((row["value"], row.get("type", "")))
    single = {iri: min(values) for iri, values in known.items() if len(values) == 1}
    dropped[f"item with several values of {prop}"] += len(known) - len(single)
    if date:
        found = {iri: parse_date(*value) for iri, value in single.items()}
    else:
        distinct = sorted({value for value, _ in single.values()})
        labels = labels_of(client, distinct, f"labels of {prop}")
        found = {
            iri: Value(labels[value], value) if value in labels else None
            for iri, (value, _) in single.items()
        }
    told = {iri: value for iri, value in found.items() if value is not None}
    dropped[f"value of {prop} without an English label, or no date"] += len(found) - len(told)
    return told
