"""Read items from a Wikidata-shaped endpoint.

The queries use ``rdfs:label`` with a language filter instead of Wikidata's label service and list
their items in ``VALUES`` blocks, so they run unchanged on the embedded snapshot and on
``https://query.wikidata.org/sparql``. Patterns over ``?item`` define a domain, e.g. ``?item wdt:P31
wd:Q11424 .`` for films.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

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


def check_population(population: str) -> None:
    """Raise an error for patterns without the variable ``?item``."""
    if not re.search(r"\?item\b", population):
        raise UserError(
            f"population: {population!r} has no ?item; e.g. '?item wdt:P31 wd:Q11424 .' for films"
        )


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


def labels_of(client: SparqlClient, iris: Sequence[str], family: str) -> dict[str, str]:
    """Return English labels: of several, the first by language, then in alphabetical order."""
    body = f"{LABEL}\n  BIND(LCASE(LANG(?text)) AS ?lang) FILTER(?lang {IS_ENGLISH})"
    rows = rows_about(client, iris, body, family, variables="?text ?lang")
    labels: dict[str, str] = {}
    for _, iri, text in sorted((ENGLISH.index(r["lang"]), r["person"], r["text"]) for r in rows):
        labels.setdefault(iri, text)
    return labels


def frequency_of(text: str) -> int | None:
    """Parse a frequency; ``None`` for "unknown value" and other non-numbers."""
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        return None
    return number if number >= 0 else None
