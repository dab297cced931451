"""``python -m eval runs``: the runs below a folder, one a line, or two of them side by side.

What is told is read from the runs' folders, and nothing is written but the page that is asked for.
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
# A line each is a document, of ``score`` and some experiments, and a text, of the others.
MAX_TEXTS = 20  # that changed, in the terminal
_TEXTS = ("scored.jsonl", "texts.jsonl")


def find_runs(folder: str | Path) -> list[ListedRun]:
    """All runs in a folder and below, the last written last.

    A run is a folder with ``results.json``, with the journal of a run without them, or with the
    ``config.yaml`` of ``python -m train fit``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give one that holds runs, e.g. runs")
    found = []
    for place, below, files in os.walk(folder):
        below[:] = [name for name in below if name != "wandb" and not name.startswith(".")]
        here = Path(place)
        journals = [here / name for name in files if _is_journal(name)]
        if "results.json" in files:
            found.append(_finished(here))
        elif journals:
            found += _unfinished(here, journals)
        elif "config.yaml" in files:
            found += _training(here)
    return sorted(found, key=lambda run: (run.written, str(run.folder)))


def parse_filters(given: Sequence[str]) -> dict[str, str]:
    """What ``--where`` asks for: field to value."""
    found = {}
    for one in given:
        field, equals, value = one.partition("=")
        if not (equals and value and field in FIELDS):
            raise UserError(f"where: {one!r}; give KEY=VALUE, KEY one of: {', '.join(FIELDS)}")
        found[field] = value
    return found


def matches_filters(run: ListedRun, picked: dict[str, str]) -> bool:
    """Whether a run is what was asked for; of a command its first words are enough."""
    results = run.file.results if run.file else []
    of_run = {
        "domain": {row.domain for row in results},
        "metric": {row.metric for row in results} | {run.measure},
        "state": {run.state},
    }
    command = picked.get("command", "")
    if command and not f"{run.command} ".startswith(f"{command} "):
        return False
    if "metric" in picked and "domain" in picked:
        both = (picked["metric"], picked["domain"])
        if not any((row.metric, row.domain) == both for row in results):
            return False
    return all(value in of_run[field] for field, value in picked.items() if field in of_run)


def _is_journal(name: str) -> bool:
    return name.startswith(".") and name.endswith(".partial.jsonl")


def _finished(folder: Path) -> ListedRun:
    path = folder / "results.json"
    written = path.stat().st_mtime
    try:
        file = read_results(path)
    except (UserError, UnicodeDecodeError, OSError) as error:
        return ListedRun(folder, "", written, "unreadable", figure=str(error))
    texts = next((_lines(folder / name) for name in _TEXTS if (folder / name).is_file()), None)
    return ListedRun(folder, file.command, written, "finished", texts, file=file)


def _unfinished(folder: Path, journals: Sequence[Path]) -> list[ListedRun]:
    try:
        done = {name for path in journals for name in _done(path)}
        written = max(path.stat().st_mtime for path in journals)
    except FileNotFoundError:  # it finished just now
        return [_finished(folder)] if (folder / "results.json").is_file() else []
    return [ListedRun(folder, "", written, "unfinished", len(done))]


def _done(journal: Path) -> Iterator[str]:
    # The last line may be torn inside a character, too.
    with open(journal, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield from json.loads(line).get("documents", [])
            except ValueError:  # torn: the process was killed while it wrote
                return


def _training(folder: Path) -> list[ListedRun]:
    """A training's run; none where ``config.yaml`` is another program's.

    It is finished when its checkpoint folder was written after it began.
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
        told = f"{curves}: no curves of a training: {type(error).__name__}: {error}"
        command = f"train fit {config['name']}"
        return [ListedRun(folder, command, curves.stat().st_mtime, "unreadable", figure=told)]
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
        # A line without its end is being written, and half a number is another one.
        rows = list(csv.DictReader(line for line in file if line.endswith("\n")))
    options = config["model"].get("init_args")
    measure = str(options.get("monitor")) if isinstance(options, dict) else ""
    # Of dev data from one source, training monitors that source's.
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


def _told(table: TextTable, most: int | None = None) -> str:
    lines = plain_table(table.head, table.rows[:most]).split("\n") if table.rows else []
    return "\n".join([*map(printable, lines), *([""] if lines else []), table.note])


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        "python -m eval runs",
        "List the runs below a folder, the last written last, or set two side by side.",
        config=False,
    )
    parser.add_argument("folder", type=str, nargs="?", default="runs", help="where to look")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="only runs of this command (its first words are enough), domain, metric or state "
        "(finished, unfinished, unreadable); metric and domain also say which figures are told; "
        "may be given several times",
    )
    parser.add_argument("--html", type=str | None, default=None, help="also write a page here")
    parser.add_argument(
        "--against",
        nargs=2,
        metavar=("A", "B"),
        default=None,
        help="two runs' folders: their results side by side, and which configuration keys differ",
    )
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    arguments = parse(build_parser(), argv)
    page = Path(arguments.html) if arguments.html else None
    if arguments.against and arguments.where:
        raise UserError("where: narrows the list of runs; leave it out with --against")
    if arguments.against:
        question = "How do two runs differ?"
        tables = compare(*map(Path, arguments.against))
        note = "A: {}; B: {}".format(*arguments.against)
    else:
        picked = parse_filters(arguments.where)
        runs = [run for run in find_runs(arguments.folder) if matches_filters(run, picked)]
        tables = [runs_table(runs, picked, page)]
        question, note = "Which runs are there?", f"Below {arguments.folder}"
        note = ", ".join([note, *(f"{field} {value}" for field, value in picked.items())])
    for table in tables:
        print(_told(table, MAX_TEXTS if table.title.endswith("changed") else None))
    if page is not None:
        write_tables(page, question, printable(note), tables)
        print(page)
    return 0
