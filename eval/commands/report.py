"""``python -m eval report``: a folder of ``score`` or of an experiment as one page.

The page, ``report.html``, works offline; what it shows is read from the run folder. With another
run's folder as ``--against``, ``comparison/report.html`` says which texts, or topics, changed.
"""

from pathlib import Path

from cli.parser import command_parser, parse
from cli.printable import printable
from eval.commands.experiment import EXPERIMENTS, experiment_class
from eval.report.comparison import write_comparison
from eval.report.declare import Page
from eval.report.render import write_page
from eval.report.score import PAGE
from records import ResultFile, UserError, read_results


def page_of(name: str) -> Page:
    """How the results of an experiment, or of ``score``, are shown."""
    if name == "score":
        return PAGE
    if name not in EXPERIMENTS:
        raise UserError(
            f"no page for the experiment {name!r}; there are: {', '.join([*EXPERIMENTS, 'score'])}"
        )
    return experiment_class(name).page


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


def build_report(run_folder: str | Path) -> Path:
    """Write ``report.html``, its tables and its figures into a run folder.

    Args:
        run_folder: holds ``results.json`` and what else the run wrote; what is missing is left out.

    Returns:
        The page's path.
    """
    folder = Path(run_folder)
    file = _results(folder)
    return write_page(page_of(file.experiment), file, folder)


def build_comparison(run_folder: str | Path, against: str | Path) -> tuple[Path, list[str]]:
    """Write ``comparison/`` into a run folder: its results and texts' scores against another run.

    Returns:
        The page's path, and what was compared, a line each.
    """
    here, there = Path(run_folder), Path(against)
    file, other = _results(here), _results(there)
    if file.experiment != other.experiment:
        raise UserError(
            f"against: {there} is a run of {other.experiment}, {here} one of {file.experiment}; "
            "give two runs of one experiment"
        )
    return write_comparison(here, there)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = command_parser(
        "python -m eval report",
        "Write a folder of `score` or of an experiment as one page, report.html.",
        config=False,
    )
    parser.add_argument("--run", type=str, required=True, help="the run folder, e.g. runs/demo")
    parser.add_argument(
        "--against",
        type=str | None,
        default=None,
        help="another run, which this one is compared with: results, and scores text by text where "
        "the texts are the same, else (two models on the same topics) topic by topic",
    )
    arguments = parse(parser, argv)
    print(build_report(arguments.run))
    if arguments.against is not None:
        path, told = build_comparison(arguments.run, arguments.against)
        print(printable("\n".join([*told, str(path)])))
    return 0
