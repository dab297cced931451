"""Client of Wikimedia's page-view service."""

from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, TypeAdapter

from clients.polite import PoliteClient, json_reply


class _Month(BaseModel):
    model_config = ConfigDict(strict=True)
    views: int


_MONTHS = TypeAdapter(list[_Month])


class PageViews(PoliteClient):
    """Queries page views of ``project``, e.g. ``en.wikipedia``, from Wikimedia's REST service."""

    def __init__(
        self,
        endpoint: str = "https://wikimedia.org/api/rest_v1",
        user_agent: str | None = None,
        cache_dir: str | Path | None = None,
        *,
        project: str = "en.wikipedia",
        **options: object,
    ):
        super().__init__(endpoint.rstrip("/"), user_agent, cache_dir, **options)
        self.project = project

    def views(self, title: str, start: str, end: str, family: str = "page views") -> int:
        """Return the views of a page by people (not bots) in whole months; 0 without data (404).

        ``start`` and ``end`` are the first and last day, ``YYYYMMDD``.
        """
        path = (
            f"metrics/pageviews/per-article/{self.project}/all-access/user/"
            f"{quote(title.replace(' ', '_'), safe='')}/monthly/{start}/{end}"
        )
        reply = self._answer(path, family, lambda: self._attempt(path), lambda r: len(r["items"]))
        return sum(item["views"] for item in reply["items"])

    def _attempt(self, path: str) -> dict:
        status, _, body = self._fetch("GET", f"{self.endpoint}/{path}")
        with json_reply(body) as reply:
            if status == 404 and reply.get("detail"):  # from the service, not a gateway
                return {"items": []}
            _MONTHS.validate_python(reply["items"])
        return reply
