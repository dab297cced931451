"""A client of Serper (serper.dev), which gives Google's page of results as JSON."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from clients.polite import (
    PoliteClient,
    RefusedError,
    Transient,
    api_key,
    check_address,
    check_key_name,
    is_local,
    json_reply,
    one_line,
)
from records import UserError

# One credit is good for so many results; Google gives no more than a hundred.
RESULTS = 10
MAX_RESULTS = 100

_PARTS = ("answerBox", "knowledgeGraph", "organic")
_NO_CREDIT = re.compile(r"credit", re.IGNORECASE)

Reply = dict[str, Any]


class SerperClient(PoliteClient):
    """Asks Serper; its etiquette allows several queries at a time.

    Args:
        api_key_env: environment variable that holds the key; it is read with the first query, so
            that a run whose answers are kept needs none.
        base_url: of the service.
        options: those of ``PoliteClient``.
    """

    def __init__(
        self,
        api_key_env: str = "SERPER_API_KEY",
        base_url: str = "https://google.serper.dev",
        **options: object,
    ):
        check_key_name(api_key_env)
        check_address("base_url", base_url)
        if urlsplit(base_url).scheme != "https" and not is_local(base_url):
            raise UserError("base_url: give the https address of the service; the key goes there")
        self.base_url = base_url.rstrip("/")
        super().__init__(f"{self.base_url}/search", "factfoundry", **options)
        self.api_key_env = api_key_env

    def search(self, query: str, results: int = RESULTS) -> Reply:
        """The parts of the page of results that hold evidence.

        Raises:
            RefusedError: the service calls the query wrong.
            EndpointError: no whole answer after all retries.
        """
        key = self._key()
        body = json.dumps({"q": query, "gl": "us", "hl": "en", "num": results})
        return self._attempts(lambda: self._attempt(body, key))

    def _key(self) -> str:
        key = api_key(self.api_key_env)
        if not key:
            raise UserError(
                f"set Serper's key in the environment variable {self.api_key_env} (or name another "
                "variable with api_key_env)"
            )
        return key

    def _attempt(self, body: str, key: str) -> Reply:
        headers = {"X-API-KEY": key, "Content-Type": "application/json"}
        status, _, raw = self._fetch(
            "POST", self.endpoint, body, headers, known=(200, 400, 401, 403), secret=key
        )
        with json_reply(raw) as reply:
            said = one_line(reply.get("message", ""))
        if status in {401, 403}:
            raise UserError(
                f"{self.endpoint} does not accept the key: HTTP {status} {said}; see to the "
                f"environment variable {self.api_key_env}"
            )
        if status == 400 and _NO_CREDIT.search(said):
            raise UserError(f"{self.endpoint}: {said}; add credits, then start again")
        if status == 400:
            raise RefusedError(f"{self.endpoint} refuses the query: {said}")
        if not isinstance(reply.get("organic"), list):
            raise Transient("the answer has no results in it")
        return {part: reply[part] for part in _PARTS if part in reply}
