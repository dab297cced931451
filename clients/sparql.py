"""Client of SPARQL endpoints: SPARQLWrapper's queries over the transport of the other clients.

Public endpoints (Wikidata's query service, DBpedia) have three failures with status 200: truncated
JSON, an error text inside the JSON, and rows missing beyond a limit. The first two are treated as
time-outs; the third is detected by counting.
"""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.response import addinfourl

from pydantic import ConfigDict, TypeAdapter
from SPARQLWrapper import JSON, POST, SPARQLWrapper
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
# Characters that SPARQL 1.1 allows in an IRI; others would invalidate the whole batch.
_IRI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")


class SparqlClient(PoliteClient):
    """Queries one endpoint, e.g. ``https://query.wikidata.org/sparql``.

    ``counted`` compares the number of rows with a COUNT query, for endpoints that omit rows
    silently, as DBpedia does beyond 10,000.
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
        """Return the rows of a SELECT query as variable → value, without unbound variables.

        The manifest counts requests by ``family``.

        Raises:
            RefusedError: the endpoint rejects the query as malformed.
            EndpointError: no complete answer after all retries.
        """
        ask = self._counted_rows if self.counted else self._attempt
        return self._answer(query, family, lambda: ask(query), len)

    def select_values(
        self,
        query: Callable[[str], str],
        iris: Sequence[str],
        family: str,
        dropped: Counter[str] | None = None,
    ) -> Iterator[dict[str, str]]:
        """Yield the rows of a query over many IRIs, a hundred per request, in order.

        A batch that the endpoint does not finish or rejects is split in halves, so one bad IRI does
        not affect others.

        Args:
            query: returns the query text for the content of ``VALUES ?x { … }``.
            iris: the IRIs.
            family: purpose of the query.
            dropped: counts invalid IRIs, and IRIs that the endpoint rejects.
        """
        dropped = Counter() if dropped is None else dropped
        good = [iri for iri in iris if _IRI.fullmatch(iri)]
        dropped["identifier that is no IRI"] += len(iris) - len(good)
        parts = list(chunks(good, VALUES_SIZE))
        for part in tqdm(parts, desc=family, unit="request", leave=False, disable=None):
            yield from self._select_by_halves(query, part, family, dropped)

    def _select_by_halves(
        self, query: Callable[[str], str], iris: list[str], family: str, dropped: Counter[str]
    ) -> Rows:
        try:
            return self.select(query(" ".join(f"<{iri}>" for iri in iris)), family)
        except RefusedError:
            if len(iris) == 1:
                dropped["identifier that the endpoint refuses"] += 1
                return []
        except EndpointError as error:
            if not error.unfinished or len(iris) == 1:
                raise
        half = len(iris) // 2
        first = self._select_by_halves(query, iris[:half], family, dropped)
        return first + self._select_by_halves(query, iris[half:], family, dropped)

    def _counted_rows(self, query: str) -> Rows:
        rows = self._attempt(query)
        head, select, body = query.partition("SELECT")
        counting = f"{head}SELECT (COUNT(*) AS ?n) WHERE {{ {{ {select}{body} }} }}"
        count = next((row.get("n") for row in self._attempt(counting)), None)
        if count != str(len(rows)):
            raise Transient(f"{len(rows)} rows received, {count} counted", unfinished=True)
        return rows

    def _attempt(self, query: str) -> Rows:
        wrapper = _Wrapper(self)
        wrapper.setQuery(query)
        with json_reply(wrapper.query().response.read()) as reply:
            return _ROWS.validate_python(
                [
                    {name: cell["value"] for name, cell in row.items()}
                    for row in reply["results"]["bindings"]
                ]
            )


class _Wrapper(SPARQLWrapper):
    """SPARQLWrapper with the transport of a client.

    Its own transport has a time-out per read only, no retries and no compression, loses the query
    at a redirect, and uses a proxy for loopback.
    """

    def __init__(self, client: SparqlClient):
        super().__init__(client.endpoint, returnFormat=JSON, agent=client.user_agent)
        self.setMethod(POST)  # a GET of 400 ids exceeds the limit of common servers
        self.setOnlyConneg(True)
        self.client = client

    def _query(self) -> tuple[addinfourl, str]:
        request = self._createRequest()
        url, headers = request.full_url, dict(request.header_items())
        status, info, body = self.client._fetch(
            "POST", url, request.data, headers, accepted=(200, 400, 414)
        )
        if status != 200:
            message = one_line(body.decode("utf-8", errors="replace"))
            raise RefusedError(f"{url} rejects the query: HTTP {status} {message}")
        return addinfourl(io.BytesIO(body), info, url, status), self.returnFormat
