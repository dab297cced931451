"""A run folder as tables, figures, and one page that works offline.

What a page shows is read from the run folder; texts in it were written by language models and are
escaped wherever they go. Equal run folders give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval.report.figures import Drawing, inline
from eval.report.tables import (
    Cell,
    TextTable,
    interval,
    markdown,
    number,
    results_csv,
    terminal,
    unbroken,
    unit_of,
)
from records import Result, ResultFile, write_text

_TEMPLATES = Path(__file__).parents[1]
_SCRIPT = Path(__file__).parent / "page.js"
MAX_RESULTS = 1000  # listed one by one
# Settings that every page names, as the configuration calls them.
_SETTINGS = {
    "p": "p",
    "epsilon": "ε in nats",
    "weighting": "weighting",
    "bleached": "bleached claims",
    "gamma": "γ",
    "seed": "seed",
}


class Page:
    """What is shown of the runs of one kind.

    Attributes:
        template: below ``eval``; it extends ``report/base.html.j2``.
        question: its title.
        counted: what stands above ``tables.md``.
        draws_documents: whether ``document`` chooses what is drawn.
        filtered: whether the page lets its reader choose documents; only then a script runs in it.
    """

    template: str
    question: str
    counted = "n counts topics; brackets hold 95 % bootstrap intervals over topics."
    draws_documents = False
    filtered = False

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """All tables, in reading order."""
        raise NotImplementedError

    def appendix(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """What only ``tables.md`` shows as tables."""
        return []

    def figures(self, file: ResultFile, folder: Path) -> dict[str, Drawing]:
        """Name of a file, without its ending, to its drawing."""
        return {}

    def context(self, file: ResultFile, folder: Path, document: str | None) -> dict:
        """What else the template shows."""
        return {}

    def in_terminal(self, row: Result) -> bool:
        """Whether a result is told when the run ends; all are in the file."""
        return True

    def told(self, file: ResultFile) -> str:
        """What the terminal shows when the run ends."""
        return terminal([row for row in file.results if self.in_terminal(row)])


def write_tables_and_figures(page: Page, file: ResultFile, folder: Path) -> None:
    """Write ``tables.md``, ``tables.csv`` and ``figures/*.svg`` into a run folder."""
    tables = [*page.tables(file, folder), *page.appendix(file, folder)]
    write_text(folder / "tables.md", markdown(tables, page.counted))
    write_text(folder / "tables.csv", results_csv(file.results))
    drawn = page.figures(file, folder)
    for old in (folder / "figures").glob("*.svg"):  # of a run with other options
        if old.stem not in drawn:
            old.unlink()
    for name, drawing in drawn.items():
        write_text(folder / "figures" / f"{name}.svg", drawing.svg)


def write_page(page: Page, file: ResultFile, folder: Path, document: str | None = None) -> Path:
    """Write ``report.html`` into a run folder.

    Args:
        page: what is shown of the run.
        file: its results.
        folder: holds what the run wrote; what is missing is left out with a sentence that says so.
        document: id of the document whose graph is drawn; the first one if not given.

    Returns:
        The page's path.
    """
    drawn = page.figures(file, folder)
    tables = page.tables(file, folder)
    beside = {name for table in tables for name in table.figures}
    context = {
        "question": page.question,
        "sections": _sections(tables),
        "drawings": {name: (d.title, inline(d.svg)) for name, d in drawn.items()},
        "others": [name for name in drawn if name not in beside],
        "script": Markup(_SCRIPT.read_text(encoding="utf-8")) if page.filtered else None,
    }
    context |= _origin(file) | page.context(file, folder, document)
    write_text(folder / "report.html", _environment().get_template(page.template).render(context))
    return folder / "report.html"


def _sections(tables: Sequence[TextTable]) -> list[tuple[TextTable, list[TextTable]]]:
    """Tables with those that are within them."""
    found: list[tuple[TextTable, list[TextTable]]] = []
    for table in tables:
        if table.within:
            found[-1][1].append(table)
        else:
            found.append((table, []))
    return found


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "interval": interval, "unbroken": unbroken}
    environment.filters |= {"unit": unit_of, "csp_hash": _csp_hash}
    environment.tests["cell"] = lambda value: isinstance(value, Cell)
    return environment


def _csp_hash(script: str) -> str:
    """A script's name in the page's security policy: no other script runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _origin(file: ResultFile) -> dict:
    """What every page says of where its numbers come from."""
    config = file.provenance.get("config") or {}
    # Those of single groups last: they may be many.
    whole = sorted(file.results, key=lambda row: (row.group, row.bin) != ("all", "all"))
    return {
        "file": file,
        "settings": {label: settings_of(config, name) for name, label in _SETTINGS.items()},
        "config": json.dumps(config, indent=2, ensure_ascii=False),
        "domains": sorted({row.domain for row in file.results}),
        "hashes": sorted({row.config_hash for row in file.results}),
        "rows": whole[:MAX_RESULTS],
        "left_out": {k: v for k, v in (file.provenance.get("left_out") or {}).items() if v},
    }


def settings_of(config: object, name: str) -> list[str]:
    """Every value that a setting has anywhere in the configuration, first the pipeline's."""
    found: list[str] = []
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key == name and value is not None:
                found.append(str(value))
            found += settings_of(value, name)
    elif isinstance(config, list):
        for value in config:
            found += settings_of(value, name)
    return list(dict.fromkeys(found))
