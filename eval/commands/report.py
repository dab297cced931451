"""``python -m eval report``: a folder of ``score`` or of an experiment as one page.

The page, ``report.html``, works offline; what it shows is read from the run folder. With another
run's folder as ``--against``, ``comparison/report.html`` says which texts, or topics, changed.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from jsonargparse import ArgumentParser

from cli.printable import printable
from eval.commands.experiment import EXPERIMENTS
from eval.report.page import Page, write_comparison, write_page
from records import ResultFile, UserError, read_results


def page_of(name: str) -> Page:
    """How the results of an experiment, or of ``score``, are shown."""
    known = {key: f"eval.experiments.{page}" for key, (_, page, _) in EXPERIMENTS.items()}
    known["score"] = "eval.report.score.ScorePage"
    if name not in known:
        raise UserError(f"no page for the experiment {name!r}; there are: {', '.join(known)}")
    module, _, page = known[name].rpartition(".")
    return getattr(import_module(module), page)()


def _results(folder: Path) -> ResultFile:
    if not (folder / "results.json").is_file():
        what = "has no results.json" if folder.is_dir() else "no such run folder"
        raise UserError(
            f"{folder}: {what}; run `python -m eval score --config … --documents … "
            f"--output {folder}`, or an experiment, first"
        )
    file = read_results(folder / "results.json")
    if not file.results:
        raise UserError(f"{folder / 'results.json'}: no results in it; run the experiment again")
    return file


def build_comparison(run_folder: str | Path, against: str | Path) -> tuple[Path, list[str]]:
    """Write ``comparison/`` into a run folder: its texts' scores against those of another run.

    Returns:
        The page's path, and what was compared and found, a line each.
    """
    here, there = Path(run_folder), Path(against)
    file, other = _results(here), _results(there)
    if file.experiment != other.experiment:
        raise UserError(
            f"against: {there} is a run of {other.experiment}, {here} one of {file.experiment}; "
            "give two runs of one experiment"
        )
    return write_comparison(page_of(file.experiment), file, here, there)


def build_report(run_folder: str | Path, document: str | None = None) -> Path:
    """Write ``report.html`` into a run folder.

    Args:
        run_folder: holds ``results.json`` and what else the run wrote; what is missing is left out
            with a sentence that says so.
        document: id of the document whose graph the factreasoner experiment's page draws; the
            first one if not given.

    Returns:
        The page's path.
    """
    folder = Path(run_folder)
    file = _results(folder)
    page = page_of(file.experiment)
    if document is not None and not page.draws_documents:
        raise UserError(
            f"document: the page of {file.experiment} draws no single one; leave it out"
        )
    return write_page(page, file, folder, document)


def main(argv: list[str]) -> int:
    """``python -m eval report --run FOLDER``; returns the exit code."""
    parser = ArgumentParser(
        prog="python -m eval report",
        description="Write a folder of `score` or of an experiment as one page, report.html.",
        exit_on_error=False,
    )
    parser.add_argument("--run", type=str, required=True, help="the run folder, e.g. runs/demo")
    parser.add_argument(
        "--document",
        type=str | None,
        default=None,
        help="id of the document whose graph the page of factreasoner draws; the first one "
        "without it",
    )
    parser.add_argument(
        "--against",
        type=str | None,
        default=None,
        help="another run, which this one is compared with: text by text where the texts are the "
        "same, else (two models on the same topics) topic by topic",
    )
    arguments = parser.parse_args(argv)
    print(build_report(arguments.run, arguments.document))
    if arguments.against is not None:
        path, told = build_comparison(arguments.run, arguments.against)
        print(printable("\n".join([*told, str(path)])))
    return 0
