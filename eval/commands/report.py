"""``python -m eval report``: render the folder of a ``score`` or experiment run as one page.

The page, ``report.html``, works offline and shows only the run folder's files.
"""

from pathlib import Path

from cli.parser import command_parser, parse
from eval.commands.experiment import EXPERIMENTS, experiment_class
from eval.report.declare import Page
from eval.report.render import write_page
from eval.report.score import PAGE
from records import ResultFile, UserError, read_results


def page_of(name: str) -> Page:
    """Return the page layout of an experiment or of ``score``."""
    if name == "score":
        return PAGE
    if name not in EXPERIMENTS:
        names = ", ".join([*EXPERIMENTS, "score"])
        raise UserError(f"no page for the experiment {name!r}; expected one of {names}")
    return experiment_class(name).page


def _results(folder: Path) -> ResultFile:
    if not (folder / "results.json").is_file():
        problem = "has no results.json" if folder.is_dir() else "no such run folder"
        raise UserError(
            f"{folder}: {problem}; run `python -m eval score --config … --documents … "
            f"--output {folder}`, or an experiment, first"
        )
    file = read_results(folder / "results.json")
    if not file.results:
        raise UserError(f"{folder / 'results.json'}: contains no results; run the experiment again")
    return file


def build_report(run_folder: str | Path) -> Path:
    """Write ``report.html``, its tables and figures into a run folder; returns the page's path."""
    folder = Path(run_folder)
    file = _results(folder)
    return write_page(page_of(file.experiment), file, folder)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = command_parser(
        "python -m eval report",
        "Render the folder of a `score` or experiment run as one page, report.html.",
        config=False,
    )
    parser.add_argument("--run", type=str, required=True, help="the run folder, e.g. runs/demo")
    print(build_report(parse(parser, argv).run))
    return 0
