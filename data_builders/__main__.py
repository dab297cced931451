"""``python -m data_builders NAME --config FILE [--key value …]``: build one dataset.

``NAME`` is a name of ``BUILDERS`` or the class path of a custom builder.
"""

import ast
import inspect
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from pydoc import ErrorDuringImport, locate

from jsonargparse import ArgumentParser

from cli.command import CommandError, choose_command, run_command
from cli.parser import command_parser, function_parser, parse
from cli.printable import printable
from data_builders.builder import Builder, show_built, show_plan

# Command-line name to class path; imported on use.
BUILDERS = {
    "adversarial": "data_builders.written.adversarial.Adversarial",
    "ambigbio": "data_builders.written.ambigbio.ambigbio.AmbigBio",
    "attacks": "data_builders.written.attacks.attacks.Attacks",
    "bios": "data_builders.kb.bios.bios.Bios",
    "bleached": "data_builders.kb.bleached.Bleached",
    "claim_pairs": "data_builders.published.claim_pairs.ClaimPairs",
    "conflicts": "data_builders.published.conflicts.conflicts.Conflicts",
    "corruption": "data_builders.written.corruption.corruption.Corruption",
    "denied_pairs": "data_builders.written.denied_pairs.DeniedPairs",
    "dfactscore_labels": "data_builders.annotated.dfactscore.dfactscore_labels.DFActScoreLabels",
    "dfactscore_project": "data_builders.annotated.dfactscore.dfactscore_project.DFActScoreProject",
    "distant_lss": "data_builders.written.distant_lss.distant_lss.DistantLss",
    "framed_pairs": "data_builders.written.framed_pairs.FramedPairs",
    "generations": "data_builders.written.generations.Generations",
    "hard_pairs": "data_builders.written.hard_pairs.HardPairs",
    "knowledge": "data_builders.published.knowledge.knowledge.KnowledgeFile",
    "ladders": "data_builders.written.ladders.ladders.Ladders",
    "lead_conflicts": "data_builders.written.lead_conflicts.LeadConflicts",
    "lead_pairs": "data_builders.written.lead_pairs.LeadPairs",
    "leads": "data_builders.written.leads.leads.Leads",
    "longform": "data_builders.published.longform.longform.LongForm",
    "lss": "data_builders.annotated.lss.lss.Lss",
    "lss_project": "data_builders.annotated.lss.lss_project.LssProject",
    "pairs": "data_builders.published.pairs.pairs.Pairs",
    "preferences": "data_builders.written.preferences.Preferences",
    "probes": "data_builders.written.ladders.probes.Probes",
    "source_priors": "data_builders.published.source_priors.SourcePriors",
    "summaries": "data_builders.published.summaries.Summaries",
    "wafer": "data_builders.published.wafer.wafer.Wafer",
}
FETCH = {"fetch": "data_builders.fetch.fetch"}


def load_builder(name: str) -> type[Builder]:
    """Import a builder by its command-line name or its class path (``my_module.MyBuilder``)."""
    try:
        builder = locate(BUILDERS.get(name, name))
    except ErrorDuringImport as error:
        raise CommandError(f"{name}: cannot be imported: {error.value}") from None
    if not (inspect.isclass(builder) and issubclass(builder, Builder)):
        raise CommandError(f"{name}: not a subclass of data_builders.builder.Builder")
    return builder


def _summary(name: str) -> str:
    module, _, attribute = (BUILDERS | FETCH)[name].rpartition(".")
    tree = ast.parse(Path(find_spec(module).origin).read_text(encoding="utf-8"))
    builder = next(node for node in tree.body if getattr(node, "name", None) == attribute)
    return ast.get_docstring(builder).splitlines()[0]


def parser_of(name: str) -> ArgumentParser:
    """Build the parser of one builder, with an option for each constructor parameter."""
    parser = command_parser(f"python -m data_builders {name}")
    parser.add_argument(
        "--dry_run",
        action="store_true",
        help="print the planned requests and inputs without building",
    )
    parser.add_class_arguments(load_builder(name), None)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and build."""
    arguments = sys.argv[1:] if arguments is None else arguments
    class_paths = {name: name for name in arguments[:1] if "." in name}
    commands = BUILDERS | FETCH | class_paths
    name, rest = choose_command("python -m data_builders", commands, arguments, _summary)
    if name == "fetch":
        from data_builders.fetch import fetch

        fetching = function_parser("python -m data_builders fetch", fetch, positional=True)
        print(printable(fetch(**parse(fetching, rest).as_dict())))
        return 0
    parser = parser_of(name)
    config = parse(parser, rest)
    config.pop("config", None)
    dry_run = config.pop("dry_run")
    builder = load_builder(name)(**parser.instantiate(config).as_dict())
    if dry_run:
        builder.inputs()  # an error names those that are missing
        print(printable(show_plan(name, builder.plan())))
        return 0
    raw_options = json.loads(parser.dump(config, format="json", skip_unset=False))
    print(printable(show_built(name, builder.build(raw_options))))
    return 0


if __name__ == "__main__":
    run_command(main)
