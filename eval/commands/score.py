"""``python -m eval score``: run the pipeline over a file of documents.

Scored documents are appended to a journal named after the configuration's hash, and language model
calls are cached next to it, so an interrupted run resumes. The results are written when all
documents are scored. Use one output folder per configuration. ``--failed`` and ``--exclude`` change
how scored documents are aggregated: a finished run is aggregated again from its verdicts.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from cli.printable import printable
from eval.commands import remarks
from eval.metrics.corpus import ALL, check_strata, expected_claims, summarise
from eval.metrics.document import named
from eval.pipeline import Pipeline, Scored
from eval.report import terminal
from eval.report.documents import cut
from eval.report.score import DOCUMENTS
from eval.report.tables import as_csv
from eval.run.on_ray import OnRay
from eval.run.run import CHUNK, OVERWRITE, Run, check_ids
from records import (
    Document,
    Result,
    ResultFile,
    UserError,
    read_records,
    sha256_text,
    write_text,
)

_COLUMNS = "{:14} {:20} {:5} {:22}"
# Options that may differ when a run is resumed or, if it is finished, aggregated again.
_CHANGEABLE = {
    *("config", "output", "overwrite", "documents", "chunk", "ray", "failed", "exclude"),
}
_SHOWN = "factual_precision"
_DOCUMENTS = (
    "file of documents or generations (JSONL, CSV, Parquet) with topic and text, or in the format "
    "of FActScore, D-FActScore, SAFE, VeriScore or FactReasoner"
)
_LABELS = (
    "meaning of label numbers, if the file does not state it, e.g. '{0: contradiction, "
    "1: entailment, 2: neutral}'"
)
_FORMAT = (
    "layout of the file, if its columns do not show it: a name in records/formats/formats.yaml, or "
    "a YAML file that declares layouts in the same way"
)


def build_parser() -> ArgumentParser:
    """The command's options; the pipeline's come from the stages' own signatures."""
    parser = command_parser(
        "python -m eval score",
        "Run the scoring pipeline over a file of documents. docs/scoring.md lists the stages; "
        "--pipeline.STAGE.help CLASS prints the options of a stage.",
    )
    parser.add_argument("--documents", type=str, required=True, help=_DOCUMENTS)
    parser.add_argument(
        "--fields",
        type=dict[str, str] | None,
        default=None,
        help="names of the fields in a file of another shape, e.g. '{text: answer, topic: title, "
        "passages: contexts}'; a.b is the field b in a",
    )
    parser.add_argument("--labels", type=dict[int, str] | None, default=None, help=_LABELS)
    parser.add_argument("--format", type=str | None, default=None, help=_FORMAT)
    parser.add_argument("--output", type=str, required=True, help="output folder")
    parser.add_argument("--overwrite", type=bool, default=False, help=OVERWRITE)
    parser.add_argument(
        "--limit",
        type=int | None,
        default=None,
        help="score only the first LIMIT documents, and print their cost and that of all documents",
    )
    parser.add_argument("--domain", type=str, default="texts", help="domain name in the results")
    parser.add_argument(
        "--k",
        type=int | None,
        default=None,
        help="K of recall@K and F1@K, the number of supported claims of a complete answer; by "
        "default the median number of claims of responding documents with claims",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    parser.add_argument(
        "--failed",
        type=Literal["excluded", "wrong"],
        default="excluded",
        help="whether failed claims are excluded from precision or count as not supported",
    )
    parser.add_argument(
        "--exclude",
        type=list[str | int] | str,
        default=[],
        help="documents that the results exclude: '[id, id]', or a file with one id per line",
    )
    parser.add_argument(
        "--chunk", type=int, default=CHUNK, help="documents that are scored and saved together"
    )
    parser.add_class_arguments(OnRay, "ray")
    parser.add_class_arguments(Pipeline, "pipeline")
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code, 1 if there are claims but all of them failed."""
    parser = build_parser()
    # `--pipeline.select none`, as the results call it, is YAML's null
    words = zip(argv, ["", *argv], strict=False)
    arguments = parse(
        parser,
        [
            "null" if word == "none" and option.startswith("--pipeline.") else word
            for word, option in words
        ],
    )
    if any(n is not None and n < 1 for n in (arguments.chunk, arguments.k, arguments.limit)):
        raise UserError("chunk, k, limit: expected at least 1")
    config = _deciding_options(parser, arguments)
    documents, total = _read_documents(arguments)
    for line in remarks.misspelt_fields(documents):
        print(f"warning: {printable(line)}", file=sys.stderr)
    excluded = _excluded_ids(arguments.exclude, documents)
    options = parser.instantiate(arguments)
    pipeline, files = options.pipeline, [arguments.documents]
    more = {"described": config["pipeline"], "overwrite": arguments.overwrite}
    run = Run("score", pipeline, config, arguments.output, files, options.ray, **more)
    scored = run.output / "scored.jsonl"
    with run:
        if file := run.read_finished(scored.name):
            with open(scored, encoding="utf-8") as lines:
                rows = [Scored.model_validate_json(line) for line in lines]
        else:
            work, chunk = pipeline.score, arguments.chunk
            rows = run.process("scored", work, documents, Scored, chunk, file=scored.name)
        rows = [row for row in rows if row.document.id not in excluded]
        write_text(run.output / "claims.csv", as_csv(list(_claim_cells(rows))))
        write_text(run.output / DOCUMENTS, as_csv(list(_document_cells(rows))))
        aggregation = {"failed": arguments.failed, "excluded": len(excluded)}
        aggregation["excluded_sha256"] = sha256_text(json.dumps(sorted(excluded)))
        file = _aggregate(run, file, rows, aggregation, arguments)
    _print_scores(file)
    if arguments.limit is not None and run.cost:
        print("\n".join(terminal.format_cost(run.cost, total)))
    paths = [run.output / name for name in ("claims.csv", DOCUMENTS, scored.name, "results.json")]
    notes = [*remarks.abstention_note(rows), *remarks.removal_notes(rows)]
    notes += [*remarks.empty_selection_note(rows), *remarks.pronoun_note(rows)]
    notes += [*remarks.failure_reasons(rows), *map(str, paths)]
    print(printable("\n".join(notes)))
    for line in remarks.evidence_warnings(pipeline, rows):
        print(f"warning: {printable(line)}", file=sys.stderr)
    if remarks.has_only_failures(rows):
        print(
            "error: no claim could be judged; see the `failed` lines for the reasons",
            file=sys.stderr,
        )
        return 1
    return 0


def _claim_cells(scored: Sequence[Scored]) -> Iterator[dict]:
    """One row per verdict, and per sentence that could not be decomposed."""
    for row in scored:
        passages = {passage.id: passage.text for passage in row.passages}
        claims = {claim.id: claim for claim in row.claims}
        for claim in row.claims:
            if claim.failed is not None:
                yield {"document": row.document.id, "claim": claim.text, "verdict": "failed"}
        for verdict in row.verdicts:
            evidence = [passages.get(name, name) for name in verdict.evidence or []]
            yield {
                "document": row.document.id,
                "claim": claims[verdict.claim].text,
                "assessor": named(verdict.assessor, verdict.name),
                "verdict": verdict.label,
                "p": verdict.p,
                "passage": cut(" ".join(evidence)),
            }


def _document_cells(scored: Sequence[Scored]) -> Iterator[dict]:
    """One row per document, assessor and selection."""
    for row in scored:
        for score in row.scores:
            yield {
                "document": row.document.id,
                "topic": row.document.topic,
                "assessor": named(score.assessor, score.name),
                "Core": score.selection,
                "claims": score.kept,
                "supported": score.supported,
                "contradicted": score.contradicted,
                "failed": score.failed,
                "precision": score.precision,
            }


def _deciding_options(parser: ArgumentParser, arguments: Namespace) -> dict:
    config = json.loads(parser.dump(arguments, format="json", skip_unset=False))
    absent = {key for key in ("limit", "fields", "labels", "format") if config[key] is None}
    return {key: value for key, value in config.items() if key not in absent | _CHANGEABLE}


def _print_scores(file: ResultFile) -> None:
    print("".join(f"{line}\n" for line in terminal.aggregation_notes(file)), end="")
    print(_COLUMNS.format("kind of text", "generator", "Core", "assessor").rstrip())
    rows = [r for r in file.results if (r.group, r.bin) == (ALL, ALL)]
    precisions = [r for r in rows if r.metric == _SHOWN]
    at_k = {_cell_of(r): r for r in rows if r.metric == "f1_at_k" and r.variant is None}
    for row in precisions:
        if row.variant is None:
            name = _COLUMNS.format(row.kind, row.generator, row.selection, row.assessor or "")
            bounds = terminal.format_bounds(row, precisions)
            f1 = at_k.get(_cell_of(row))
            if f1 is not None and f1.value is not None:
                bounds += f" F1@{file.provenance['k']} {f1.value:.3f}"
            print(printable(f"{name} precision {terminal.format_value(row)}{bounds}"))
    for row in file.provenance["usage"]:
        print(terminal.format_usage(row))


def _cell_of(row: Result) -> tuple[str | None, ...]:
    return row.kind, row.generator, row.selection, row.assessor


def _read_documents(arguments: Namespace) -> tuple[list[Document], int]:
    """Return the documents to score, and the number of documents in the file."""
    if unknown := set(arguments.fields or ()) - set(Document.model_fields):
        names = ", ".join(Document.model_fields)
        raise UserError(f"fields: expected names of {names}, got {', '.join(sorted(unknown))}")
    path, fields = arguments.documents, arguments.fields
    options = {"labels": arguments.labels, "format": arguments.format}
    all_rows = read_records(path, Document, fields, **options)
    rows = all_rows[: arguments.limit]
    check_ids(arguments.documents, enumerate(rows, 1))
    check_strata(rows)
    return rows, len(all_rows)


def _excluded_ids(exclude: list[str | int] | str, documents: list[Document]) -> set[str]:
    if isinstance(exclude, str):
        if not Path(exclude).is_file():
            raise UserError(f"exclude: {exclude}: no such file; pass '[id]' or a file of ids")
        exclude = Path(exclude).read_text(encoding="utf-8").split("\n")
    ids = {str(name).strip() for name in exclude} - {""}
    if unknown := sorted(ids - {document.id for document in documents}):
        raise UserError(f"exclude: no document has the id {unknown[0]!r}")
    return ids


def _aggregate(
    run: Run, file: ResultFile | None, rows: list[Scored], aggregation: dict, arguments: Namespace
) -> ResultFile:
    stored = {} if file is None else file.provenance  # its journals, which have the usage, are gone
    if stored.get("aggregation") == aggregation:
        return file
    k = arguments.k or expected_claims(rows)
    results = summarise(
        rows, run.key, arguments.domain, seed=arguments.seed, k=k, failed=arguments.failed
    )
    return run.finish(results, **(stored | {"k": k, "aggregation": aggregation}))
