"""``python -m eval runs``: list the runs below a folder, or compare two of them.

Reads the runs' folders only; writes nothing except the requested page.
"""

import csv
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from cli.printable import printable
from components.measures import SMALLER_IS_BETTER
from eval.report.comparison import compare
from eval.report.declare import TextTable
from eval.report.render import write_tables
from eval.report.runs import ListedRun, runs_table
from eval.report.tables import plain_table
from records import UserError, read_results

FIELDS = ("command", "domain", "metric", "state")
MAX_TEXTS = 20  # maximum number of changed texts in the terminal
# Files with one line per document or text.
_TEXT_FILES = ("scored.jsonl", "texts.jsonl")


def find_runs(folder: str | Path) -> list[ListedRun]:
    """Return all runs in a folder and below, oldest first.

    A run is a folder with ``results.json``, with a journal, or with the ``config.yaml`` of
    ``python -m train fit``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; pass one that contains runs, e.g. runs")
    runs = []
    for name, subfolders, files in os.walk(folder):
        subfolders[:] = [sub for sub in subfolders if sub != "wandb" and not sub.startswith(".")]
        path = Path(name)
        journals = [
            path / file
            for file in files
            if file.startswith(".") and file.endswith(".partial.jsonl")
        ]
        if "results.json" in files:
            runs.append(_finished(path))
        elif journals:
            runs += _unfinished(path, journals)
        elif "config.yaml" in files:
            runs += _training(path)
    return sorted(runs, key=lambda run: (run.written, str(run.folder)))


def parse_filters(arguments: Sequence[str]) -> dict[str, str]:
    """Parse the values of ``--where``: field to value."""
    filters = {}
    for argument in arguments:
        field, equals, value = argument.partition("=")
        if not (equals and value and field in FIELDS):
            keys = ", ".join(FIELDS)
            raise UserError(f"where: expected KEY=VALUE with KEY one of {keys}, got {argument!r}")
        filters[field] = value
    return filters


def matches_filters(run: ListedRun, filters: dict[str, str]) -> bool:
    """Whether a run matches; the first words of a command are enough."""
    results = run.file.results if run.file else []
    of_run = {
        "domain": {row.domain for row in results},
        "metric": {row.metric for row in results} | {run.measure},
        "state": {run.state},
    }
    command = filters.get("command", "")
    if command and not f"{run.command} ".startswith(f"{command} "):
        return False
    if "metric" in filters and "domain" in filters:
        pair = (filters["metric"], filters["domain"])
        if not any((row.metric, row.domain) == pair for row in results):
            return False
    return all(value in of_run[field] for field, value in filters.items() if field in of_run)


def _finished(folder: Path) -> ListedRun:
    path = folder / "results.json"
    written = path.stat().st_mtime
    try:
        file = read_results(path)
    except (UserError, UnicodeDecodeError, OSError) as error:
        return ListedRun(folder, "", written, "unreadable", figure=str(error))
    texts = next((_lines(folder / name) for name in _TEXT_FILES if (folder / name).is_file()), None)
    return ListedRun(folder, file.command, written, "finished", texts, file=file)


def _unfinished(folder: Path, journals: Sequence[Path]) -> list[ListedRun]:
    try:
        done = {name for path in journals for name in _finished_ids(path)}
        written = max(path.stat().st_mtime for path in journals)
    except FileNotFoundError:  # it finished in the meantime
        return [_finished(folder)] if (folder / "results.json").is_file() else []
    return [ListedRun(folder, "", written, "unfinished", len(done))]


def _finished_ids(journal: Path) -> Iterator[str]:
    # The last line may end within a character.
    with open(journal, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield from json.loads(line).get("documents", [])
            except ValueError:  # an incomplete last line: the process was killed while writing
                return


def _training(folder: Path) -> list[ListedRun]:
    """A training run, finished if its checkpoint was written after it started.

    Returns an empty list if ``config.yaml`` belongs to another program.
    """
    path = folder / "config.yaml"
    began = path.stat().st_mtime
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return []
    if not (isinstance(config, dict) and {"name", "model", "trainer"} <= config.keys()):
        return []
    if not isinstance(config["model"], dict):
        return []
    exported = Path(str(config.get("export_to") or f"checkpoints/{config['name']}"))
    exported /= "component.json"
    done = exported.is_file() and exported.stat().st_mtime >= began
    curves = folder / "metrics.csv"
    try:
        measure, figure = _best(curves, config) if curves.is_file() else (None, "")
    except (csv.Error, KeyError, TypeError, ValueError) as error:  # an edited file
        problem = f"{curves}: not training curves: {type(error).__name__}: {error}"
        command = f"train fit {config['name']}"
        return [ListedRun(folder, command, curves.stat().st_mtime, "unreadable", figure=problem)]
    return [
        ListedRun(
            folder,
            f"train fit {config['name']}",
            curves.stat().st_mtime if curves.is_file() else began,
            "finished" if done else "unfinished",
            figure=figure,
            measure=measure,
        )
    ]


def _best(curves: Path, config: dict) -> tuple[str | None, str]:
    with open(curves, encoding="utf-8", newline="", errors="replace") as file:
        # An incomplete last line is still being written.
        rows = list(csv.DictReader(line for line in file if line.endswith("\n")))
    options = config["model"].get("init_args")
    measure = str(options.get("monitor")) if isinstance(options, dict) else ""
    # With dev data from one source, training monitors that source's metric.
    for name in (measure, measure.replace("/macro/", "/")):
        points = [(float(row[name]), row["step"]) for row in rows if row.get(name)]
        points = [point for point in points if not math.isnan(point[0])]
        if points:
            smaller = name.rpartition("/")[2] in SMALLER_IS_BETTER
            value, step = (min if smaller else max)(points, key=lambda point: point[0])
            return name, f"{name} {value:.3f} at step {step}"
    return None, ""


def _lines(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def _format_table(table: TextTable, max_rows: int | None = None) -> str:
    lines = plain_table(table.head, table.rows[:max_rows]).split("\n") if table.rows else []
    return "\n".join([*map(printable, lines), *([""] if lines else []), table.note])


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        "python -m eval runs",
        "List the runs below a folder, oldest first, or compare two runs.",
        config=False,
    )
    parser.add_argument("folder", type=str, nargs="?", default="runs", help="folder to search")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="list only runs of this command (its first words are enough), domain, metric or state "
        "(finished, unfinished, unreadable); metric and domain also select the listed values; can "
        "be repeated",
    )
    parser.add_argument("--html", type=str | None, default=None, help="also write this HTML page")
    parser.add_argument(
        "--against",
        nargs=2,
        metavar=("A", "B"),
        default=None,
        help="folders of two runs: compare their results and configurations",
    )
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    arguments = parse(build_parser(), argv)
    page = Path(arguments.html) if arguments.html else None
    if arguments.against and arguments.where:
        raise UserError("where: filters the list of runs; remove it when using --against")
    if arguments.against:
        question = "How do two runs differ?"
        tables = compare(*map(Path, arguments.against))
        note = "A: {}; B: {}".format(*arguments.against)
    else:
        filters = parse_filters(arguments.where)
        runs = [run for run in find_runs(arguments.folder) if matches_filters(run, filters)]
        tables = [runs_table(runs, filters, page)]
        question, note = "Which runs are there?", f"Below {arguments.folder}"
        note = ", ".join([note, *(f"{field} {value}" for field, value in filters.items())])
    for table in tables:
        print(_format_table(table, MAX_TEXTS if table.title.endswith("changed") else None))
    if page is not None:
        write_tables(page, question, printable(note), tables)
        print(page)
    return 0
