"""Page views of the people whom a name may mean (2402.05629, section 5.3)."""

import math
from pathlib import Path

from eval.metrics.judged_texts import JudgedText
from records import BadInput, UserError, iter_rows


class Views:
    """Views of pages, and which people share a name.

    Args:
        path: rows of ``title`` and ``views``; or the ``names.jsonl`` of ``data_builders ambigbio``,
            whose ``candidates`` have both. In the former case a column ``name`` says who shares it.

    Raises:
        BadInput: a row that has neither, or views that are no number.
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
            raise BadInput([f"{where}: title: field required; or candidates with titles"])
        if not isinstance(name, str | None):
            raise BadInput([f"{where}: name: a text required: {name!r}; or leave it out"])
        if page.get("views") in (None, ""):
            return
        try:
            views = float(page["views"])
        except (TypeError, ValueError, OverflowError):
            views = -1.0
        # Averages a month are given too; no number is neither from 0 on nor finite.
        if not 0 <= views < math.inf:
            raise BadInput([f"{where}: views: no number from 0 on: {page['views']!r}"])
        self.views[page["title"]] = views
        if name is not None:
            self.names.setdefault(name, []).append(page["title"])

    def candidates(self, text: JudgedText) -> list[str]:
        """The retrieved titles with views; where the name's people are known, those of them."""
        own = self.names.get(text.topic, self.views)
        return [title for title in text.titles if title in self.views and title in own]

    def logarithm(self, title: str | None) -> float | None:
        """Decimal logarithm of 1 + views."""
        return math.log10(1 + self.views[title]) if title in self.views else None

    def is_first(self, title: str | None, candidates: list[str]) -> float | None:
        """Whether a page is the most viewed of two or more; ``None`` where nobody can tell."""
        if title not in self.views or len(candidates) < 2 or title not in candidates:
            return None
        return float(self.views[title] == max(self.views[name] for name in candidates))

    def chance(self, title: str | None, candidates: list[str]) -> float | None:
        """What drawing one of the candidates gives, where :meth:`is_first` can tell."""
        if self.is_first(title, candidates) is None:
            return None
        views = [self.views[name] for name in candidates]
        return views.count(max(views)) / len(views)
