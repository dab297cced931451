"""``python -m eval experiment NAME``: one of the papers' experiments."""

import json
import shlex
import time
from importlib import import_module
from pathlib import Path

from jsonargparse import ArgumentParser
from jsonargparse.typing import PositiveInt

from cli.command import choose_command
from cli.parser import command_parser, parse
from cli.printable import printable
from components.code import describe_code
from eval.experiments.experiment import Experiment
from eval.report.terminal import format_cost
from eval.run.on_ray import OnRay
from eval.run.run import OVERWRITE, LimitReached
from records import UserError

# Name of the experiment and its module to its folder below eval.experiments, its class and a
# description. Classes are imported on demand, so --help is fast.
EXPERIMENTS = {
    "agreement": ("agreement", "Agreement", "verdicts and human labels (after 2404.10774)"),
    "core_settings": ("core", "CoreSettings", "p, ε and threshold of Core (2407.03572, section 3)"),
    "decomposition": ("decomposition", "Decomposition", "DecompScore by decomposer (2403.11903)"),
    "dfactscore": (
        "dfactscore",
        "DFActScore",
        "D-FActScore of namesakes' biographies (2402.05629)",
    ),
    "factreasoner": ("factreasoner", "FactReasoner", "FactReasoner and baselines (2502.18573)"),
    "informativeness": ("core", "Informativeness", "bleached and specific claims (2407.03572)"),
    "lss_generation": ("lss", "LssGeneration", "LSS by tagger, T5 and prompt (2308.12157)"),
    "lss_lengths": ("lss", "LssLengths", "length of LSS by length of claim (2308.12157, Figure 2)"),
    "lss_metrics": ("lss", "LssMetrics", "metric(claim, LSS) and human ratings (2308.12157)"),
    "optimise": ("optimise", "Optimise", "precision while an adversary is trained by DPO"),
    "relation_model": ("factreasoner", "RelationModel", "ROC curves on FACTOR (2502.18573)"),
    "robustness": (
        "robustness",
        "Robustness",
        "adversarial texts with and without Core (2407.03572)",
    ),
}


def experiment_class(name: str) -> type[Experiment]:
    """Import the class of an experiment."""
    folder, kind, _ = EXPERIMENTS[name]
    return getattr(import_module(f"eval.experiments.{folder}.{name}"), kind)


def build_parser(name: str) -> ArgumentParser:
    """Build the options of an experiment."""
    kind = experiment_class(name)
    description = import_module(kind.__module__).__doc__.splitlines()[0]
    parser = command_parser(f"python -m eval experiment {name}", description)
    parser.add_argument("--output", type=str, required=True, help="output folder")
    parser.add_argument("--overwrite", type=bool, default=False, help=OVERWRITE)
    parser.add_argument(
        "--save_to",
        type=str,
        help="also write the main tables with command, commit, date and time to this JSON file "
        "(docs/results/README.md)",
    )
    if kind.in_chunks:
        parser.add_argument(
            "--limit",
            type=PositiveInt | None,
            default=None,
            help="process only LIMIT documents, keep them for the next run, and print their cost "
            "and that of all documents of the same part of the experiment",
        )
        parser.add_class_arguments(OnRay, "ray")
    parser.add_class_arguments(kind, "experiment")
    return parser


def main(argv: list[str]) -> int:
    """Run one experiment; returns the exit code."""
    texts = {name: text for name, (*_, text) in EXPERIMENTS.items()}
    name, rest = choose_command("python -m eval experiment", texts, argv)
    parser = build_parser(name)
    arguments = parse(parser, rest)
    config = json.loads(parser.dump(arguments, format="json", skip_unset=False))
    output = Path(arguments.output)
    options = parser.instantiate(arguments)
    experiment = options.experiment
    ray, limit = options.get("ray", OnRay()), options.get("limit")
    if arguments.save_to is not None and describe_code([])["changed"] is not False:
        raise UserError("--save_to: the code is not that of a commit; commit it first")
    is_new, started = not output.exists(), time.perf_counter()
    try:
        file = experiment.run(output, config["experiment"], ray, limit, arguments.overwrite)
    except LimitReached as reached:
        name = " ".join(reached.part.split())
        print(printable("\n".join([f"part {name!r}", *format_cost(reached.cost, reached.total)])))
        return 0
    seconds = round(time.perf_counter() - started) if is_new else None
    from eval.report.render import terminal_summary, write_page  # matplotlib takes time to import
    from eval.report.saved import save_results

    if arguments.save_to is not None:
        command = shlex.join(["python", "-m", "eval", "experiment", *argv])
        save_results(Path(arguments.save_to), experiment.page, file, output, command, seconds)
    print(printable(terminal_summary(experiment.page, file)))
    print(output / "results.json")
    print(write_page(experiment.page, file, output))
    return 0
