"""A polite client of SPARQL endpoints.

Public ones (Wikidata's query service, DBpedia) answer in three ways that look like success and are
none: the JSON of a 200 answer is cut, an error text stands inside it, or rows beyond a limit are
left out without a word. The first two count as time-outs here, the third is found by counting.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlencode

from pydantic import ConfigDict, TypeAdapter
from tqdm import tqdm

from clients.polite import (
    EndpointError,
    PoliteClient,
    RefusedError,
    Transient,
    chunks,
    json_reply,
    one_line,
)

Rows = list[dict[str, str]]
_ROWS = TypeAdapter(Rows, config=ConfigDict(strict=True))

VALUES_SIZE = 100
_ACCEPT = {"Accept": "application/sparql-results+json"}
# What SPARQL 1.1 allows between < and >; anything else would make the whole batch malformed.
_IRI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")


class SparqlClient(PoliteClient):
    """Asks one endpoint; the other ``options`` are those of ``PoliteClient``.

    Args:
        endpoint: URL that takes SPARQL queries by POST, e.g.
            ``https://query.wikidata.org/sparql``.
        counted: ask for the number of rows beside the rows and compare; for endpoints that leave
            rows out silently, as DBpedia does beyond 10,000.
    """

    def __init__(
        self,
        endpoint: str,
        user_agent: str | None = None,
        cache_dir: str | Path | None = None,
        *,
        counted: bool = False,
        **options: object,
    ):
        super().__init__(endpoint, user_agent, cache_dir, **options)
        self.counted = counted

    def select(self, query: str, family: str = "query") -> Rows:
        """Answer a SELECT query.

        Args:
            query: the SPARQL text.
            family: what the query is for; the manifest counts requests by it.

        Returns:
            One dict a row, variable to value; a variable that is unbound in a row is absent.

        Raises:
            RefusedError: the endpoint calls the query malformed.
            EndpointError: no whole answer after all retries.
        """
        ask = self._whole if self.counted else self._attempt
        return self._answer(query, family, lambda: ask(query), len)

    def select_values(
        self,
        query: Callable[[str], str],
        iris: Sequence[str],
        family: str,
        dropped: Counter[str] | None = None,
    ) -> Iterator[dict[str, str]]:
        """Ask the same of many IRIs, a hundred at a time.

        A batch that the endpoint does not finish, or calls malformed, is asked again in halves, so
        that one bad IRI costs no other its answer.

        Args:
            query: makes the query's text from what stands in ``VALUES ?x { … }``.
            iris: what is asked about.
            family: what it is for.
            dropped: counts the IRIs that are none or that the endpoint refuses alone.

        Yields:
            The rows, in the order of the IRIs' batches.

        Raises:
            EndpointError: no whole answer about a single IRI.
        """
        dropped = Counter() if dropped is None else dropped
        good = [iri for iri in iris if _IRI.fullmatch(iri)]
        dropped["identifier that is no IRI"] += len(iris) - len(good)
        parts = list(chunks(good, VALUES_SIZE))
        for part in tqdm(parts, desc=family, unit="request", leave=False, disable=None):
            yield from self._halved(query, part, family, dropped)

    def _halved(
        self, query: Callable[[str], str], iris: list[str], family: str, dropped: Counter[str]
    ) -> Rows:
        try:
            return self.select(query(" ".join(f"<{iri}>" for iri in iris)), family)
        except RefusedError:
            if len(iris) == 1:
                dropped["identifier that the endpoint refuses"] += 1
                return []
        except EndpointError as error:
            if not error.too_much or len(iris) == 1:
                raise
        half = len(iris) // 2
        first = self._halved(query, iris[:half], family, dropped)
        return first + self._halved(query, iris[half:], family, dropped)

    def _whole(self, query: str) -> Rows:
        rows = self._attempt(query)
        head, select, body = query.partition("SELECT")
        counting = f"{head}SELECT (COUNT(*) AS ?n) WHERE {{ {{ {select}{body} }} }}"
        said = next((row.get("n") for row in self._attempt(counting)), None)
        if said != str(len(rows)):
            raise Transient(f"{len(rows)} rows came, {said} were counted", too_much=True)
        return rows

    def _attempt(self, query: str) -> Rows:
        # By POST: a GET of some 400 ids is already too long for common servers.
        status, _, body = self._fetch(
            "POST", self.endpoint, urlencode({"query": query}), _ACCEPT, known=(200, 400, 414)
        )
        if status != 200:
            said = one_line(body.decode("utf-8", errors="replace"))
            raise RefusedError(f"{self.endpoint} refuses the query: HTTP {status} {said}")
        with json_reply(body) as found:
            return _ROWS.validate_python(
                [
                    {name: cell["value"] for name, cell in row.items()}
                    for row in found["results"]["bindings"]
                ]
            )
