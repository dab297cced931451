"""One file a paper's table or figure; ``python -m eval experiment NAME``.

A file has a class with the experiment's options and ``run(output, config)``, and ``line(result)``,
what the terminal shows of a result, or ``tables(file)``, what it shows of all together.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from jsonargparse import ArgumentParser

from records import UserError

# Name to its class and what it shows.
EXPERIMENTS = {
    "decomposition": (
        "Decomposition",
        "DecompScore and factual precision by decomposer (2403.11903, section 3.2)",
    ),
    "dfactscore": (
        "DFActScore",
        "FActScore and D-FActScore of namesakes' biographies (2402.05629, sections 2 to 5)",
    ),
    "factreasoner": (
        "FactReasoner",
        "FactReasoner and other assessors on the same claims (2502.18573, Tables 3-27)",
    ),
    "informativeness": (
        "Informativeness",
        "order of bleached, common and specific claims (2407.03572, section 4.2)",
    ),
    "lss_generation": (
        "LssGeneration",
        "LSS by tagger, T5 and prompt; generators compared (2308.12157, Tables 2, 5 and 6)",
    ),
    "lss_metrics": (
        "LssMetrics",
        "metric(claim, LSS) and human ratings (2308.12157, section 6, Table 4)",
    ),
    "relation_model": (
        "RelationModel",
        "ROC curves of relation models on FACTOR (2502.18573, Figures 6-10)",
    ),
    "robustness": (
        "Robustness",
        "precision of adversarial texts with and without Core (2407.03572, section 5)",
    ),
}


def build_parser(name: str) -> ArgumentParser:
    """The options of an experiment."""
    module = import_module(f"eval.experiments.{name}")
    parser = ArgumentParser(
        prog=f"python -m eval experiment {name}",
        description=module.__doc__.splitlines()[0],
        exit_on_error=False,
    )
    parser.add_argument("--config", action="config", help="YAML with any of the options below")
    parser.add_argument("--output", type=str, required=True, help="folder for the run")
    parser.add_class_arguments(getattr(module, EXPERIMENTS[name][0]), "experiment")
    return parser


def main(argv: list[str]) -> int:
    """Run one experiment; returns the exit code."""
    name, *rest = argv or ["--help"]
    if name in {"-h", "--help"}:
        print("usage: python -m eval experiment NAME [options]\n")
        print("\n".join(f"  {key:16} {text}" for key, (_, text) in EXPERIMENTS.items()))
        return 0
    if name not in EXPERIMENTS:
        raise UserError(f"no experiment {name!r}; give one of: {', '.join(EXPERIMENTS)}")
    parser = build_parser(name)
    arguments = parser.parse_args(rest)
    config = json.loads(parser.dump(arguments, format="json", skip_unset=False))
    config.pop("config", None)
    output = Path(config.pop("output"))
    file = parser.instantiate(arguments).experiment.run(output, config["experiment"])
    module = import_module(f"eval.experiments.{name}")
    if hasattr(module, "tables"):
        print(module.tables(file))
    else:
        for text in filter(None, map(module.line, file.results)):
            print(text)
    print(output / "results.json")
    return 0
