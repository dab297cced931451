"""``python -m eval score``: run the pipeline over a file of documents.

A killed run goes on where it was: scored documents are appended to a file that carries the
configuration's hash, language models' answers are kept beside it, and the outputs are written when
all are done. A folder holds the results of one configuration.
"""

import json
import sys
from argparse import Namespace

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from cli.printable import printable
from eval.commands.remarks import (
    abstention_note,
    evidence_warnings,
    failure_reasons,
    has_only_failures,
    misspelt_fields,
)
from eval.exports import Format, write_formats
from eval.metrics.corpus import ALL, check_strata, expected_claims, summarise
from eval.pipeline import Pipeline, Scored
from eval.run import terminal
from eval.run.on_ray import OnRay
from eval.run.run import CHUNK, Run, check_ids
from records import Document, Result, ResultFile, UserError, read_records

_DOCUMENTS = (
    "file of documents or generations (JSONL, CSV, Parquet): ours, with topic and text, or as "
    "FActScore, D-FActScore, SAFE, VeriScore and FactReasoner write them"
)


def build_parser() -> ArgumentParser:
    """The command's options; the pipeline's come from the stages' own signatures."""
    parser = command_parser(
        "python -m eval score",
        "Run the scoring pipeline over a file of documents; docs/scoring.md lists the stages that "
        "--pipeline.STAGE.help CLASS tells more of.",
    )
    parser.add_argument("--documents", type=str, required=True, help=_DOCUMENTS)
    parser.add_argument("--output", type=str, required=True, help="folder for the outputs")
    parser.add_argument(
        "--limit", type=int | None, default=None, help="score only the first so many documents"
    )
    parser.add_argument("--domain", type=str, default="biographies", help="named in the results")
    parser.add_argument(
        "--k",
        type=int | None,
        default=None,
        help="K of recall@K and F1@K: the supported claims that a full answer has; by default the "
        "median number of claims of the responding documents that have any",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    parser.add_argument(
        "--formats",
        type=list[Format],
        default=[],
        help="also write the verdicts as these projects do, e.g. '[factscore, safe]': factscore, "
        "dfactscore, veriscore, safe, factreasoner",
    )
    parser.add_argument(
        "--chunk", type=int, default=CHUNK, help="documents that are scored and kept together"
    )
    parser.add_argument(
        "--dry_run",
        action="store_true",
        help="ask no language model and no server, but say how many calls and tokens it would take",
    )
    parser.add_class_arguments(OnRay, "ray")
    parser.add_class_arguments(Pipeline, "pipeline")
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 1 where no claim could be judged of those there."""
    parser = build_parser()
    arguments = parse(parser, argv)
    if any(n is not None and n < 1 for n in (arguments.chunk, arguments.k, arguments.limit)):
        raise UserError("chunk, k and limit: give at least 1")
    shown = json.loads(parser.dump(arguments, format="json", skip_unset=False))
    for key in ("config", "output", "documents", "chunk", "ray", "dry_run", "formats"):
        shown.pop(key, None)
    if arguments.limit is None:
        del shown["limit"]
    documents = read_records(arguments.documents, Document)[: arguments.limit]
    check_ids(arguments.documents, enumerate(documents, 1))
    check_strata(documents)
    for line in misspelt_fields(documents):
        print(f"warning: {printable(line)}", file=sys.stderr)
    made = parser.instantiate(arguments)
    pipeline, files = made.pipeline, [arguments.documents]
    run = Run(
        "score", pipeline, shown, arguments.output, files, made.ray, described=shown["pipeline"]
    )
    if arguments.dry_run:
        from eval.commands.dry_run import estimate_score  # slow import

        print(estimate_score(pipeline, documents, arguments.chunk))
        return 0
    scored = run.output / "scored.jsonl"
    with run:
        if file := run.read_finished(scored.name):
            with open(scored, encoding="utf-8") as lines:
                rows = [Scored.model_validate_json(line) for line in lines]
        else:
            file, rows = _score(run, pipeline, documents, arguments)
    print(_HEAD)
    for row in file.results:
        if (row.metric, row.group, row.bin) == ("factual_precision", ALL, ALL):
            print(printable(_line(row)))
    for row in file.provenance["usage"]:
        print(terminal.format_usage(row))
    paths = [scored, run.output / "results.json"]
    if arguments.formats:
        paths += write_formats(rows, arguments.formats, run.output, file.provenance["k"])
    print(printable("\n".join([*abstention_note(rows), *failure_reasons(rows), *map(str, paths)])))
    for line in evidence_warnings(pipeline, rows):
        print(f"warning: {printable(line)}", file=sys.stderr)
    if has_only_failures(rows):
        print("error: no claim could be judged; the lines `failed` say why", file=sys.stderr)
        return 1
    return 0


def _score(
    run: Run, pipeline: Pipeline, documents: list[Document], arguments: Namespace
) -> tuple[ResultFile, list[Scored]]:
    work, chunk = pipeline.score, arguments.chunk
    scored = run.process("scored", work, documents, Scored, chunk, file="scored.jsonl")
    k = arguments.k or expected_claims(scored)
    found = summarise(scored, run.key, arguments.domain, seed=arguments.seed, k=k)
    return run.finish(found, k=k), scored


_COLUMNS = "{:14} {:20} {:5} {:22}"
_HEAD = _COLUMNS.format("kind of text", "generator", "Core", "assessor").rstrip()


def _line(row: Result) -> str:
    name = _COLUMNS.format(row.kind, row.generator, row.selection, row.assessor or "")
    return f"{name} precision {terminal.format_value(row)}"
