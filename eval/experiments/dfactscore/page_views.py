"""Page views of the people who share a name (2402.05629, section 5.3)."""

import math
from pathlib import Path

from eval.metrics.judged_texts import JudgedText
from records import BadInput, UserError, iter_rows


class Views:
    """Page views, and the pages of people who share a name.

    Args:
        path: rows of ``title``, ``views`` and optionally the shared ``name``; or the
            ``names.jsonl`` of ``data_builders ambigbio``, whose ``candidates`` have both.
    """

    def __init__(self, path: str | Path):
        self.views: dict[str, float] = {}
        self.names: dict[str, list[str]] = {}
        for number, row in iter_rows(path):
            listed = row["candidates"] if isinstance(row.get("candidates"), list) else [row]
            for page in listed:
                page = page if isinstance(page, dict) else {}
                self._add(page, row.get("name"), f"{path}:{number}")
        if not self.views:
            raise UserError(f"{path}: no page has views; build the names with --views")

    def _add(self, page: dict, name: str | None, where: str) -> None:
        if not isinstance(page.get("title"), str):
            raise BadInput([f"{where}: expected 'title' or 'candidates' with titles"])
        if not isinstance(name, str | None):
            raise BadInput([f"{where}: field 'name': expected a string, got {name!r}"])
        if page.get("views") in (None, ""):
            return
        try:
            views = float(page["views"])
        except (TypeError, ValueError, OverflowError):
            views = -1.0
        # Floats are valid, since views may be monthly averages.
        if not 0 <= views < math.inf:
            raise BadInput([f"{where}: views: expected a number >= 0, got {page['views']!r}"])
        self.views[page["title"]] = views
        if name is not None:
            self.names.setdefault(name, []).append(page["title"])

    def candidates(self, text: JudgedText) -> list[str]:
        """Return the retrieved titles with views, of the name's people if those are known."""
        pages = self.names.get(text.topic, self.views)
        return [title for title in text.titles if title in self.views and title in pages]

    def logarithm(self, title: str | None) -> float | None:
        """Return log10(1 + views)."""
        return math.log10(1 + self.views[title]) if title in self.views else None

    def is_first(self, title: str | None, candidates: list[str]) -> float | None:
        """Return whether a page is the most viewed of at least two; ``None`` if unknown."""
        if title not in self.views or len(candidates) < 2 or title not in candidates:
            return None
        return float(self.views[title] == max(self.views[name] for name in candidates))

    def chance(self, title: str | None, candidates: list[str]) -> float | None:
        """Return the chance level of :meth:`is_first`; ``None`` if that is unknown."""
        if self.is_first(title, candidates) is None:
            return None
        views = [self.views[name] for name in candidates]
        return views.count(max(views)) / len(views)
