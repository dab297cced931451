"""Tables, figures and an offline HTML page of a run folder.

Rendering needs the experiment's declaration (``eval/report/declare.py``), ``results.json`` and the
run folder::

    TABLES = [
        # A row for each decomposer (and judge, if there are several), a column per generator.
        Table(
            "DecompScore",
            rows={"kind": "Decomposer", "assessor": "Judge"},
            columns=["generator"],
            metrics={"decomp_score": "DecompScore"},
            unit="mean",
            note="Mean number of supported subclaims of a passage.",
        ),
        # A row for each engine, a column for each metric; ``where`` chooses the results.
        Table(
            "Human and found LSS",
            rows={"kind": "Engine"},
            metrics={"exact_match": "Exact", "word_f1": "Word F1"},
            where={"variant": "lss", "group": "all"},
        ),
        # A column for each value of two fields: "AUROC", "AUROC, against overlap".
        Table(
            "Agreement",
            rows={"kind": "Set", "assessor": "Assessor"},
            columns=["metric", "against"],
            metrics={"auroc": "AUROC"},
        ),
    ]
    FIGURES = [
        # Bars: a group for each generator, in it a bar for each decomposer; a plot for each judge.
        Figure("DecompScore", x="generator", series=["kind"], each=["assessor"],
               metrics={"decomp_score": "DecompScore"}),
        # Lines over a number, a line for each kind of text.
        Figure("Kept share by ε", "variant", ["kind"], {"kept_share": ""}, kind="lines"),
    ]

    class MyExperiment(Experiment):
        page = Page("How much …?", "What is measured. n counts topics; …", TABLES, FIGURES)

A table or figure can also be a function of the results file and the run folder that returns
:class:`~eval.report.declare.TextTable` or :class:`~eval.report.declare.Plot` objects.
``Table.of(rows)`` and ``Figure.of(rows)`` render modified results.

Untrusted text is escaped. The output of equal run folders is byte-identical.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eval.report.declare import Cell, Excerpt, Figure, Page, Table, TextTable, interval, number
from eval.report.documents import cut, documents_of
from eval.report.svg import Drawing, draw, inline
from eval.report.tables import (
    as_csv,
    markdown,
    named_apart,
    results_csv,
    slug,
    table_files,
    terminal,
    unbroken,
)
from eval.report.terminal import format_usage
from records import ResultFile, UserError, write_text

_TEMPLATES = Path(__file__).parents[1]
MAX_RESULTS = 1000  # listed one by one
MAX_EXCERPTS = 60


def write_page(page: Page, file: ResultFile, folder: Path) -> Path:
    """Write a run's tables, figures and page into its folder.

    ``tables.md`` holds all tables, ``tables.csv`` all results; ``tables/`` each table as CSV and as
    LaTeX, ``figures/`` each figure as SVG and the numbers in it as CSV.

    Args:
        page: the declaration.
        file: its results.
        folder: the run folder; missing files are skipped.

    Returns:
        The page's path, ``report.html``.
    """
    tables = list(tables_of(page, file, folder))
    write_text(folder / "tables.md", markdown(tables, page.about))
    write_text(folder / "tables.csv", results_csv(file.results))
    write_files(folder / "tables", table_files(tables))
    drawn = list(_drawings(page, file, folder))
    names = named_apart(drawing.title for drawing in drawn)
    files = {}
    for name, drawing in zip(names, drawn, strict=True):
        files |= {f"{name}.svg": drawing.svg, f"{name}.csv": as_csv(drawing.rows)}
    write_files(folder / "figures", files)
    context = {
        "question": page.question,
        "note": page.about,
        "summary": page.summary(file),
        "lead_lines": page.lead_lines,
        "tables": tables,
        "drawings": [(drawing.title, inline(drawing.svg)) for drawing in drawn],
        "texts": _first_texts(page, folder),
    }
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "interval": interval, "unbroken": unbroken}
    environment.filters |= {"slug": slug, "cut": cut, "usage": format_usage}
    environment.tests["cell"] = lambda value: isinstance(value, Cell)
    template = environment.get_template("report/base.html.j2")
    write_text(folder / "report.html", template.render(context | _origin(file)))
    return folder / "report.html"


def tables_of(page: Page, file: ResultFile, folder: Path) -> Iterator[TextTable]:
    """Yield the tables of a run, without declared tables that are empty."""
    for table in page.tables:
        drawn = [table.of(file.results)] if isinstance(table, Table) else table(file, folder)
        yield from (part for part in drawn if part.rows or not isinstance(table, Table))


def terminal_summary(page: Page, file: ResultFile) -> str:
    """Return the terminal output at the end of a run."""
    rows = terminal(page.terminal_results(file.results))
    return "\n".join([*page.summary(file), *filter(None, [rows])])


def _drawings(page: Page, file: ResultFile, folder: Path) -> Iterator[Drawing]:
    for figure in page.figures:
        plots = figure.of(file.results) if isinstance(figure, Figure) else figure(file, folder)
        yield from map(draw, plots)


def _first_texts(page: Page, folder: Path) -> tuple[list[Excerpt], int]:
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Excerpt]] = []
    documents = documents_of(folder / "scored.jsonl") if page.documents else ()
    for place, text in enumerate(chain(documents, page.texts(folder))):
        if seen[text.tag] < MAX_EXCERPTS:
            ranked.append((seen[text.tag], place, text))
        seen[text.tag] += 1
    first = sorted(ranked, key=lambda entry: entry[:2])[:MAX_EXCERPTS]
    return [text for _, _, text in sorted(first, key=lambda entry: entry[1])], seen.total()


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder and delete outdated .svg, .csv and .tex files."""
    if folder.is_symlink():
        raise UserError(
            f"{folder}: is a symbolic link, whose files would be deleted; remove the link"
        )
    for old in folder.glob("*"):
        if old.name not in files and old.suffix in {".svg", ".csv", ".tex"}:
            old.unlink()
    for name, text in files.items():
        write_text(folder / name, text)


def _origin(file: ResultFile) -> dict:
    # Groups and bins last.
    whole = sorted(file.results, key=lambda row: (row.group, row.bin) != ("all", "all"))
    return {
        "file": file,
        "config": json.dumps(file.provenance.get("config") or {}, indent=2, ensure_ascii=False),
        "domains": sorted({row.domain for row in file.results}),
        "hashes": sorted({row.config_hash for row in file.results}),
        "rows": whole[:MAX_RESULTS],
        "left_out": {k: v for k, v in (file.provenance.get("left_out") or {}).items() if v},
    }
