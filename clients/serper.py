"""Client of Serper (serper.dev), which returns Google search results as JSON."""

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

# Results per credit; Google returns at most a hundred.
RESULTS = 10
MAX_RESULTS = 100

_EVIDENCE_PARTS = ("answerBox", "knowledgeGraph", "organic")
_NO_CREDIT = re.compile(r"credit", re.IGNORECASE)

Reply = dict[str, Any]


class SerperClient(PoliteClient):
    """Queries Serper, which allows concurrent queries.

    Args:
        api_key_env: environment variable with the key; not read if all answers are cached.
        base_url: of the service.
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
            raise UserError("base_url: expected an https URL, because the key is sent there")
        self.base_url = base_url.rstrip("/")
        super().__init__(f"{self.base_url}/search", "factfoundry", **options)
        self.api_key_env = api_key_env

    def search(self, query: str, results: int = RESULTS) -> Reply:
        """Return the parts of a results page that contain evidence."""
        key = self._key()
        body = json.dumps({"q": query, "gl": "us", "hl": "en", "num": results})
        return self._attempts(lambda: self._attempt(body, key))

    def _key(self) -> str:
        key = api_key(self.api_key_env)
        if not key:
            raise UserError(
                f"set Serper's key in the environment variable {self.api_key_env} (or another "
                "one with api_key_env)"
            )
        return key

    def _attempt(self, body: str, key: str) -> Reply:
        headers = {"X-API-KEY": key, "Content-Type": "application/json"}
        status, _, raw = self._fetch(
            "POST", self.endpoint, body, headers, accepted=(200, 400, 401, 403), secret=key
        )
        with json_reply(raw) as reply:
            message = one_line(reply.get("message", ""))
        if status in {401, 403}:
            raise UserError(
                f"{self.endpoint} rejects the key: HTTP {status} {message}; check the "
                f"environment variable {self.api_key_env}"
            )
        if status == 400 and _NO_CREDIT.search(message):
            raise UserError(f"{self.endpoint}: {message}; add credits and resume")
        if status == 400:
            raise RefusedError(f"{self.endpoint} rejects the query: {message}")
        if not isinstance(reply.get("organic"), list):
            raise Transient("the answer has no results")
        return {part: reply[part] for part in _EVIDENCE_PARTS if part in reply}
