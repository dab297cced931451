"""``python -m eval score``: run the pipeline over a file of documents.

A killed run goes on where it was: scored documents are appended to a file that carries the
configuration's hash, language models' answers are kept beside it, and the outputs are written when
all are done. A folder holds the results of one configuration.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser

from eval.commands.dry_run import dry_run, model_name
from eval.formats import Format, write_formats
from eval.metrics.corpus import ALL, expected_claims, summarise
from eval.pipeline import Pipeline, Scored
from eval.run.inside import identities, prompts
from eval.run.journal import CHUNK, keep_answers, resumably, usage
from eval.run.provenance import config_hash, inputs, provenance
from records import (
    Document,
    Result,
    ResultFile,
    UserError,
    read_records,
    read_results,
    write_jsonl,
    write_results,
)

_DOCUMENTS = (
    "file of documents or generations (JSONL, CSV, Parquet): ours, or as FActScore, SAFE, "
    "VeriScore and FactReasoner write them"
)


def score_resumably(
    pipeline: Pipeline, documents: Sequence[Document], journal: Path, chunk: int = CHUNK
) -> list[Scored]:
    """Score documents chunk by chunk, keeping what is done in ``journal``.

    Args:
        pipeline: what scores.
        documents: with unique ids.
        journal: the JSONL file of finished documents; its name must depend on everything that
            changes the answer.
        chunk: documents a chunk.

    Returns:
        One :class:`Scored` a document, in order.
    """
    rows = resumably(pipeline, pipeline.score, documents, journal, chunk)
    return [Scored.model_validate(row) for row in rows]


def build_parser() -> ArgumentParser:
    """The command's options; the pipeline's come from the stages' own signatures."""
    parser = ArgumentParser(
        prog="python -m eval score",
        description="Run the scoring pipeline over a file of documents; docs/scoring.md lists the "
        "stages that --pipeline.STAGE.help CLASS tells more of.",
        exit_on_error=False,
    )
    parser.add_argument("--config", action="config", help="YAML with any of the options below")
    parser.add_argument("--documents", type=str, required=True, help=_DOCUMENTS)
    parser.add_argument("--output", type=str, required=True, help="folder for the outputs")
    parser.add_argument("--domain", type=str, default="biographies", help="named in the results")
    parser.add_argument(
        "--k",
        type=int | None,
        default=None,
        help="K of recall@K and F1@K: the supported claims that a full answer has; by default the "
        "median number of claims of the responding documents",
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
    parser.add_class_arguments(Pipeline, "pipeline")
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.chunk < 1 or (arguments.k is not None and arguments.k < 1):
        raise UserError("chunk and k: give at least 1")
    shown = json.loads(parser.dump(arguments, format="json", skip_unset=False))
    for key in ("config", "output", "documents", "chunk", "dry_run", "formats"):
        shown.pop(key, None)
    documents = read_records(arguments.documents, Document)
    pipeline = parser.instantiate(arguments).pipeline
    digests = inputs([shown, arguments.documents]) | prompts(pipeline)
    key = config_hash(shown, digests)
    output = Path(arguments.output)
    keep_answers(pipeline, output)
    if arguments.dry_run:
        print(dry_run(pipeline, documents))
        return 0
    journal = output / f".scored.{key[:16]}.partial.jsonl"
    if not _finished(output, key, journal):
        scored = score_resumably(pipeline, documents, journal, arguments.chunk)
        k = arguments.k or expected_claims(scored)
        results = ResultFile(
            experiment="score",
            provenance=provenance(shown, digests)
            | {"k": k, "usage": usage(pipeline, journal), "config_hash": key}
            | {"models": identities(pipeline), "prompts": prompts(pipeline)},
            results=summarise(scored, key, arguments.domain, seed=arguments.seed, k=k),
        )
        write_jsonl(output / "scored.jsonl", scored)
        write_results(output / "results.json", results)
    # What killed runs left as well.
    for leftover in [*output.glob(".scored.*"), *output.glob(".results.json.*")]:
        leftover.unlink()
    file = read_results(output / "results.json")
    for row in file.results:
        if row.metric.split(":")[0] == "factual_precision" and row.group == ALL:
            print(_line(row))
    for used in file.provenance["usage"]:
        print(_used(used))
    paths = [output / "scored.jsonl", output / "results.json"]
    if arguments.formats:
        rows = _read_scored(output / "scored.jsonl")
        paths += write_formats(rows, arguments.formats, output, file.provenance["k"])
    print("\n".join(map(str, paths)))
    return 0


def _read_scored(path: Path) -> list[Scored]:
    with open(path, encoding="utf-8") as file:
        return [Scored.model_validate_json(line) for line in file]


def _finished(output: Path, key: str, journal: Path) -> bool:
    """Whether the folder holds this configuration's results already.

    Raises:
        UserError: it holds those of another one, whole or begun.
    """
    begun = [path for path in sorted(output.glob(".scored.*.partial.jsonl")) if path != journal]
    # A run that ended before its first documents were done left nothing that could be mixed.
    others = [path for path in begun if path.stat().st_size]
    if others:
        raise UserError(
            f"{output}: holds a run of another configuration or other documents that is not "
            f"finished; give another --output, or delete {others[0]}"
        )
    if not (output / "results.json").is_file():
        return False
    file = read_results(output / "results.json")
    if file.experiment != "score" or file.provenance.get("config_hash") != key:
        raise UserError(
            f"{output}: holds the results of another configuration or other documents; give "
            f"another --output, or delete {output / 'results.json'}"
        )
    return (output / "scored.jsonl").is_file()


def _line(row: Result) -> str:
    """A result for the terminal."""
    value = "–" if row.value is None else f"{row.value:.3f}"
    interval = "" if row.ci95 is None else f" [{row.ci95[0]:.3f}, {row.ci95[1]:.3f}]"
    assessor = row.metric.partition(":")[2]
    return (
        f"{row.kind:14} {row.generator:20} {row.selection:5} {assessor:22} "
        f"precision {value}{interval} n={row.n} failed={row.failed}"
    )


def _used(row: dict) -> str:
    """What a language model was used for, for the terminal."""
    cost = f", cost {row['cost']:,.2f}" if "cost" in row else ""
    return (
        f"{model_name(row['model'])}: {row['answers']:,} answers ({row['failed']:,} failed), "
        f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens{cost}"
    )
