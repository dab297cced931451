"""``report.html``: a folder of ``score`` or of an experiment as one page that works offline.

Everything that the page shows is read from the run folder; texts in it were written by language
models and are escaped wherever they go. Equal run folders give equal bytes.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jsonargparse import ArgumentParser
from markupsafe import Markup
from plotly.offline import get_plotlyjs
from pydantic import BaseModel

from eval.report import (
    decomposition,
    dfactscore,
    factreasoner,
    informativeness,
    lss,
    relation_model,
    score,
)
from eval.report.plots import Points, appended_curve, precision_bars, training_curve
from eval.report.tables import (
    COMPONENTS,
    Table,
    bound,
    interval,
    kind_order,
    number,
    reached,
    strata_of,
    summarise,
    targets_of,
)
from eval.report.text_tables import unbroken
from records import Result, ResultFile, UserError, read_records, read_results, write_text
from records.types import Probability, Record, VerdictLabel

# Experiment, or ``score``, to what fills its page; its template has the same name.
PAGES = {
    "decomposition": decomposition,
    "dfactscore": dfactscore,
    "factreasoner": factreasoner,
    "informativeness": informativeness,
    "lss_generation": lss,
    "lss_metrics": lss,
    "relation_model": relation_model,
    "score": score,
}
MAX_DOCUMENTS = 30
REASONS = {
    "selected": "in the best selection",
    "uninformative": "says no more than a bleached claim, which holds for any topic",
    "irrelevant": "its sentence is not about the topic",
    "duplicate": "repeats a subclaim that was kept",
    "incoherent": "its sentence does not entail it and the coherence budget has no room",
    "failed": "nobody could judge whether its sentence is relevant",
}
SETTINGS = {
    "p": "p",
    "epsilon": "ε in nats",
    "weighting": "weighting",
    "bleached": "bleached claims",
    "gamma": "γ",
    "seed": "seed",
}
# The dev measure that each component is selected by, in the order of search.
_MEASURES = ("pearson", "macro_f1", "entailment_auroc", "word_f1", "perplexity")


class ClaimRow(BaseModel):
    """A subclaim of ``selections.jsonl``: what Core and the verifier said of it."""

    text: str
    label: VerdictLabel | None = None
    selected: bool
    weight: float
    document_entailment: Probability
    reason: Literal["selected", "uninformative", "irrelevant", "duplicate", "incoherent", "failed"]
    duplicate_of: str | None = None


class DocumentRow(Record):
    """A line of ``selections.jsonl``: a document with all of its subclaims."""

    id: str
    topic: str
    kind: str
    generator: str
    components: str
    claims: list[ClaimRow]


# What is read from the folder


def read_curve(rows: Iterable[Result]) -> dict[tuple[str, str], list[tuple[int, Result]]]:
    """The points of the curve: (generator, selection) to (number appended, result)."""
    series: dict[tuple[str, str], list[tuple[int, Result]]] = {}
    for row in rows:
        match = re.fullmatch(r"appended=(\d+)", row.group)
        wanted = row.metric == "factual_precision" and row.components == "trained"
        if match and wanted and row.value is not None:
            series.setdefault((row.generator, row.selection), []).append((int(match[1]), row))
    lines = {key: sorted(points, key=lambda point: point[0]) for key, points in series.items()}
    # One point is no curve.
    found = {key: points for key, points in lines.items() if len(points) > 1}
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] == "core")))


def read_documents(path: Path) -> list[DocumentRow]:
    """At most ``MAX_DOCUMENTS``: the first of each kind and components, then the second, …"""
    if not path.is_file() or not path.stat().st_size:
        return []
    ranked, seen = [], {}
    for row in read_records(path, DocumentRow):
        cell = (kind_order(row.kind), row.kind, row.components, row.generator)
        seen[cell] = rank = seen.get(cell, -1) + 1
        ranked.append((rank, cell, row))
    ranked.sort(key=lambda item: item[:2])
    chosen = sorted(ranked[:MAX_DOCUMENTS], key=lambda item: (item[1], item[0]))
    return [row for _, _, row in chosen]


def read_training(path: Path) -> dict[str, Points]:
    """Column to (step, value) of a CSV log; empty cells and values that are no number are gaps.

    Raises:
        UserError: a cell that cannot be read.
    """
    columns: dict[str, Points] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            for name, cell in row.items():
                if name in {None, "step", "epoch"} or not cell or not row.get("step"):
                    continue
                try:
                    point = float(row["step"]), float(cell)
                except ValueError:
                    raise UserError(f"{path}:{line}: {name}: not a number: {cell!r}") from None
                if all(map(math.isfinite, point)):
                    columns.setdefault(name, []).append(point)
    return columns


def _training_figure(columns: dict[str, Points]) -> go.Figure | None:
    losses = {name: columns[name] for name in ("train/loss", "dev/loss") if name in columns}
    known = [f"dev/{name}" for name in _MEASURES]
    others = sorted(name for name in columns if name.startswith("dev/") and name != "dev/loss")
    name = next((name for name in [*known, *others] if name in columns), None)
    if not losses and name is None:
        return None
    return training_curve(losses, (name, columns[name]) if name else None)


def settings_of(config: object, name: str) -> list[str]:
    """Every value that a setting has anywhere in the configuration, first the pipeline's."""
    found: list[str] = []
    if isinstance(config, dict):
        for key, value in config.items():
            if key == name and value is not None:
                found.append(str(value))
            found += settings_of(value, name)
    elif isinstance(config, list):
        for value in config:
            found += settings_of(value, name)
    return list(dict.fromkeys(found))


# The page


def build_report(run_folder: str | Path, document: str | None = None) -> Path:
    """Write ``report.html`` into a run folder.

    Args:
        run_folder: holds ``results.json`` and, as far as the run made them, ``scored.jsonl``, or
            ``selections.jsonl`` and ``training/*.csv``, or ``subclaims.jsonl`` and
            ``sentences.jsonl``. What is missing is left out with a sentence that says so.
        document: id of the document whose graph the factreasoner experiment's page draws; the
            first one if not given.

    Returns:
        The page's path.

    Raises:
        UserError: no such folder, no results in it, a file that does not follow its schema, or a
            document where the page shows none.
    """
    folder = Path(run_folder)
    if not (folder / "results.json").is_file():
        what = "has no results.json" if folder.is_dir() else "no such run folder"
        raise UserError(
            f"{folder}: {what}; run `python -m eval score --config … --documents … "
            f"--output {folder}`, or an experiment, first"
        )
    file = read_results(folder / "results.json")
    if not file.results:
        raise UserError(f"{folder / 'results.json'}: no results in it; run the experiment again")
    target = folder / "report.html"
    if document is not None and file.experiment != "factreasoner":
        raise UserError(
            f"document: the page of {file.experiment} draws no single one; leave it out"
        )
    if page := PAGES.get(file.experiment):
        chosen = {} if document is None else {"document": document}
        context = _origin(file) | page.page_context(file, folder, **chosen)
        write_text(target, _render(f"{file.experiment}.html.j2", context, scripts=[]))
        return target
    figures: dict[str, go.Figure] = {}
    context = _origin(file) | _context(file, folder, figures)
    context["figures"] = script_json({p: f.to_plotly_json() for p, f in figures.items()})
    scripts = [get_plotlyjs(), (Path(__file__).parent / "page.js").read_text(encoding="utf-8")]
    write_text(target, _render("template.html.j2", context | {"plots": set(figures)}, scripts))
    return target


def _origin(file: ResultFile) -> dict:
    """What every page says of where its numbers come from."""
    config = file.provenance.get("config") or {}
    return {
        "file": file,
        "settings": {label: settings_of(config, name) for name, label in SETTINGS.items()},
        "config": json.dumps(config, indent=2, ensure_ascii=False),
        "domains": sorted({row.domain for row in file.results}),
        "hashes": sorted({row.config_hash for row in file.results}),
    }


def _context(file: ResultFile, folder: Path, figures: dict[str, go.Figure]) -> dict:
    """What the template shows; plots are put into ``figures`` by the id of their place."""
    table, targets = Table(file.results), targets_of(file.provenance)
    curve = read_curve(file.results)
    for components in table.components:
        if table.has("factual_precision", "none", components):
            figures[f"precision-{components}"] = precision_bars(
                [
                    (
                        text.label,
                        *(
                            table.get("factual_precision", s, text, components)
                            for s in ("none", "core")
                        ),
                    )
                    for text in table.texts
                ]
            )
    if curve:
        figures["curve"] = appended_curve(curve)
    training, without = {}, []
    for index, path in enumerate(sorted((folder / "training").glob("*.csv"))):
        figure = _training_figure(read_training(path))
        if figure is None:
            without.append(path.stem)
        else:
            training[path.stem] = f"training-{index}"
            figures[f"training-{index}"] = figure
    config = file.provenance.get("config") or {}
    return {
        "table": table,
        "strata": strata_of(file.results),
        "targets": targets,
        "unseen": [kind for kind in targets if kind not in {text.kind for text in table.texts}],
        "summary": summarise(table, targets, curve),
        "documents": read_documents(folder / "selections.jsonl"),
        "unit": "" if settings_of(config, "weighting") == ["uniform"] else "nats",
        "training": training,
        "without": without,
    }


def _render(name: str, context: dict, scripts: list[str]) -> str:
    """A page: its template filled in. No other script than ``scripts`` runs in it."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "interval": interval, "bound": bound}
    environment.filters |= {"unbroken": unbroken}
    return environment.get_template(name).render(
        **context,
        components=COMPONENTS,
        reasons=REASONS,
        reached=reached,
        scripts=[Markup(script) for script in scripts],
        script_hashes=[_csp_hash(script) for script in scripts],
    )


def script_json(value: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _csp_hash(script: str) -> str:
    """A script's name in the page's security policy: no other script runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def main(argv: list[str]) -> int:
    """``python -m eval report --run FOLDER``; returns the exit code."""
    parser = ArgumentParser(prog="python -m eval report", description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=str, required=True, help="the run folder, e.g. runs/demo")
    parser.add_argument(
        "--document",
        type=str | None,
        default=None,
        help="whose graph the page of factreasoner draws",
    )
    arguments = parser.parse_args(argv)
    print(build_report(arguments.run, arguments.document))
    return 0
