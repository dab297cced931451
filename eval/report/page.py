"""A run folder as tables, figures, and one page that works offline.

What a page shows is read from the run folder; texts in it were written by language models and are
escaped wherever they go. Equal run folders give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval.report.comparison import (
    TextScores,
    changed_rows,
    compare,
    comparison_tables,
    summary,
)
from eval.report.figures import Drawing, inline
from eval.report.table_files import slug, table_files
from eval.report.tables import (
    Cell,
    TextTable,
    as_csv,
    interval,
    markdown,
    number,
    results_csv,
    terminal,
    unbroken,
    unit_of,
)
from records import Result, ResultFile, UserError, write_text

_TEMPLATES = Path(__file__).parents[1]
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
        script: below ``eval``; the only script that may run in the page.
    """

    template: str
    question: str
    counted = "n counts topics; brackets hold 95 % bootstrap intervals over topics."
    draws_documents = False
    script: str | None = None

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

    def compared(self, folder: Path) -> Iterator[TextScores]:
        """The scores of each text, which another run's are compared with."""
        raise UserError(
            "against: runs of this experiment are not compared text by text; `python -m eval runs "
            "--against A B` sets their results side by side"
        )

    def in_terminal(self, row: Result) -> bool:
        """Whether a result is told when the run ends; all are in the file."""
        return True

    def told(self, file: ResultFile) -> str:
        """What the terminal shows when the run ends."""
        return terminal([row for row in file.results if self.in_terminal(row)])


def write_tables_and_figures(page: Page, file: ResultFile, folder: Path) -> dict[str, Drawing]:
    """Write a run's tables and figures into its folder; returns the figures, for its page.

    ``tables.md`` holds all tables, ``tables.csv`` all results; ``tables/`` each table as CSV and as
    LaTeX, ``figures/`` each figure as SVG and the numbers in it as CSV.
    """
    tables = [*page.tables(file, folder), *page.appendix(file, folder)]
    write_text(folder / "tables.md", markdown(tables, page.counted))
    write_text(folder / "tables.csv", results_csv(file.results))
    _write_all(folder / "tables", table_files(tables))
    files = {}
    drawn = page.figures(file, folder)
    for name, drawing in drawn.items():
        files[f"{name}.svg"] = drawing.svg
        if drawing.rows:
            files[f"{name}.csv"] = as_csv(drawing.rows)
    _write_all(folder / "figures", files)
    return drawn


def _write_all(folder: Path, files: Mapping[str, str]) -> None:
    if folder.is_symlink():
        raise UserError(f"{folder}: a link, whose files would be deleted; remove the link")
    for old in folder.glob("*"):
        if old.name not in files and old.suffix in {".svg", ".csv", ".tex"}:
            old.unlink()
    for name, text in files.items():
        write_text(folder / name, text)


def write_page(
    page: Page,
    file: ResultFile,
    folder: Path,
    document: str | None = None,
    drawn: Mapping[str, Drawing] | None = None,
) -> Path:
    """Write ``report.html`` into a run folder.

    Args:
        page: what is shown of the run.
        file: its results.
        folder: holds what the run wrote; what is missing is left out with a sentence that says so.
        document: id of the document whose graph is drawn; the first one if not given.
        drawn: the page's figures, where they are drawn already.

    Returns:
        The page's path.
    """
    drawn = page.figures(file, folder) if drawn is None else drawn
    tables = page.tables(file, folder)
    beside = {name for table in tables for name in table.figures}
    context = {
        "question": page.question,
        "sections": _sections(tables),
        "drawings": {name: (d.title, inline(d.svg)) for name, d in drawn.items()},
        "others": [name for name in drawn if name not in beside],
        "script": _script(page.script),
    }
    context |= _origin(file) | page.context(file, folder, document)
    write_text(folder / "report.html", _environment().get_template(page.template).render(context))
    return folder / "report.html"


def write_comparison(
    page: Page, file: ResultFile, folder: Path, other: Path
) -> tuple[Path, list[str]]:
    """Write ``comparison/`` into a run folder: its texts' scores against those of another run.

    Holds ``report.html``, ``tables.md``, ``tables/`` and ``changed.csv``, each text whose score is
    another one.

    Returns:
        The page's path, and what was compared and found, a line each.
    """
    found = compare(page.compared(folder), page.compared(other))
    tables = comparison_tables(found)
    told = {"here": str(folder), "there": str(other), "summary": summary(found)}
    told |= {"unit": found.unit}
    place = folder / "comparison"
    write_text(place / "tables.md", markdown(tables, " ".join(told["summary"])))
    _write_all(place / "tables", table_files(tables))
    write_text(place / "changed.csv", as_csv(changed_rows(found)))
    shown = {"question": "What changed?", "sections": _sections(tables), "drawings": {}}
    context = shown | {"others": [], "script": None} | _origin(file) | told
    template = _environment().get_template("report/comparison.html.j2")
    write_text(place / "report.html", template.render(context))
    return place / "report.html", told["summary"]


def write_tables(path: Path, question: str, note: str, tables: Sequence[TextTable]) -> None:
    """Write a page of tables that are of no single run."""
    shown = {"question": question, "note": note, "sections": _sections(tables)}
    shown |= {"left_out": {}, "drawings": {}, "others": [], "script": None}
    write_text(path, _environment().get_template("report/runs.html.j2").render(shown))


def _sections(tables: Sequence[TextTable]) -> list[tuple[TextTable, list[TextTable]]]:
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
    environment.filters |= {"unit": unit_of, "csp_hash": _csp_hash, "slug": slug}
    environment.tests["cell"] = lambda value: isinstance(value, Cell)
    return environment


def _script(name: str | None) -> Markup | None:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8")) if name else None


def _csp_hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _origin(file: ResultFile) -> dict:
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
