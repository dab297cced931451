"""``python -m eval score``: run the pipeline over a file of documents.

A killed run goes on where it was: scored documents are appended to a file that carries the
configuration's hash, and the outputs are written when all are done.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser

from eval.pipeline import Pipeline, Scored
from eval.provenance import config_hash, inputs, provenance
from eval.summary import summarise
from records import (
    Document,
    JsonlAppender,
    ResultFile,
    UserError,
    read_records,
    write_jsonl,
    write_results,
)

# What a chunk loses when killed; stages batch across the documents of a chunk.
CHUNK = 128


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
    ids = [document.id for document in documents]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise UserError(f"document id {twice!r} occurs more than once; ids must be unique")
    with JsonlAppender(journal, key="id") as done:
        todo = [document for document in documents if document.id not in done.done]
        for start in range(0, len(todo), chunk):
            scored = pipeline.score(todo[start : start + chunk])
            done.append({"id": s.document.id, "scored": s.model_dump(mode="json")} for s in scored)
        return [Scored.model_validate(done.done[i]["scored"]) for i in ids]


def build_parser() -> ArgumentParser:
    """The command's options; the pipeline's come from the stages' own signatures."""
    parser = ArgumentParser(
        prog="python -m eval score", description=__doc__.splitlines()[0], exit_on_error=False
    )
    parser.add_argument("--config", action="config", help="YAML with any of the options below")
    parser.add_argument("--documents", type=str, required=True, help="documents or generations")
    parser.add_argument("--output", type=str, required=True, help="folder for the outputs")
    parser.add_argument("--domain", type=str, default="biographies", help="named in the results")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    parser.add_class_arguments(Pipeline, "pipeline")
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    shown = json.loads(parser.dump(arguments, format="json", skip_none=False))
    for key in ("config", "output", "documents"):
        shown.pop(key, None)
    documents = read_records(arguments.documents, Document)
    digests = inputs([shown, arguments.documents])
    key = config_hash(shown, digests)
    output = Path(arguments.output)
    pipeline = parser.instantiate(arguments).pipeline
    journal = output / f".scored.{key[:16]}.partial.jsonl"
    scored = score_resumably(pipeline, documents, journal)
    write_jsonl(output / "scored.jsonl", scored)
    results = ResultFile(
        experiment="score",
        provenance=provenance(shown, digests),
        results=summarise(scored, key, arguments.domain, seed=arguments.seed),
    )
    write_results(output / "results.json", results)
    journal.unlink()
    for row in results.results:
        if row.metric == "factual_precision":
            value = "–" if row.value is None else f"{row.value:.3f}"
            print(f"{row.kind:14} {row.generator:20} {row.selection:5} precision {value} n={row.n}")
    print(f"{output / 'scored.jsonl'}\n{output / 'results.json'}")
    return 0
