"""Pairs per second of the entailment engine and of a plain loop with the same weights and threads.

    python -m data_builders corruption --config configs/data/small/corruption.yaml \\
      --documents '[data/lead_pairs/texts_test.jsonl]' --source_kind normal \\
      --adversarial '{uninformative: [data/lead_pairs/texts_test.jsonl]}' \\
      --output runs/bench/corruption
    python benchmarks/entailment.py --checkpoint checkpoints/small/relation

Two workloads: ``short``, the queries of two defences of the robustness experiment (``deduplicated``
and ``core``), document by document; and ``long``, claims against the longest leads. The baseline
does what the papers' released code does: padded batches in input order, with repeated pairs, in
float32, through plain transformers.

The engine deduplicates, sorts by length (no padding) and computes in bfloat16 where that is
faster; ``float32`` isolates the first two. *Of the limit* is the FLOP/s for the distinct pairs
(2 FLOP per weight and token, plus attention) over the measured FLOP/s of a large matrix product in
the same precision. Seconds are the median of ``--repeats`` runs, with the fastest and the slowest.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice, permutations, product
from pathlib import Path
from statistics import median

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from cli.command import run_command
from components.encoding import Pair
from components.windows import best_windows, windows_of
from eval.decompose.sentences import Sentences
from eval.models.encoder import Entailment
from eval.stages import run_decomposer
from records import Document, Passage, read_records, write_json
from records.abstention import clean_document
from train.cli import default_precision

DEFENCES = 2
TEXTS = ("texts_test", "texts_dev")
LEADS = Path("data/leads/passages_test.jsonl")
ROWS = 64  # batch size, as in the engine


def short_pairs(data: Path, curves: Path, limit: int) -> list[Pair]:
    """Core's queries for exclusion, topic by topic, once per defence."""
    files = [data / f"{name}.jsonl" for name in TEXTS] + [curves]
    documents = [document for file in files for document in read_records(file, Document)]
    documents.sort(key=lambda document: document.topic)
    pairs = (
        pair
        for claims in run_decomposer(Sentences(), list(map(clean_document, documents)))
        for _ in range(DEFENCES)
        for pair in permutations(dict.fromkeys(claim.text for claim in claims), 2)
    )
    return list(islice(pairs, limit))


def long_pairs(data: Path, leads: Path, limit: int) -> list[Pair]:
    """Claims against the longest leads, as queried by a verifier without sentence selection."""
    pages = read_records(leads, Passage)
    pages.sort(key=lambda page: -len(page.text))
    documents = read_records(data / "texts_test.jsonl", Document)
    claims = [claim.text for document_claims in Sentences()(documents) for claim in document_claims]
    chosen = product(pages[: max(1, limit // 20)], claims[:20])
    return list(islice(((page.text, claim) for page, claim in chosen), limit))


def run_plain_loop(
    engine: Entailment,
    tokenizer: PreTrainedTokenizerBase,
    model: PreTrainedModel,
    pairs: Sequence[Pair],
) -> np.ndarray:
    """Run padded batches in input order, without deduplication, in float32; shape (n, 3)."""
    component = engine.component
    options = component.chunk_words, component.focus_words, component.mark_new
    rows, windows = windows_of(pairs, *options)
    logits = []
    for start in range(0, len(windows), ROWS):
        premises, hypotheses = zip(*windows[start : start + ROWS], strict=True)
        encoded = tokenizer(
            list(premises),
            list(hypotheses),
            padding=True,
            truncation="only_first",
            max_length=component.max_length,
            return_tensors="pt",
        )
        with torch.inference_mode():
            logits.append(model(**encoded).logits.double().numpy())
    answers = np.asarray(engine._read(np.concatenate(logits), []))
    return answers[best_windows(answers[:, 0], rows)]


def peak_flops(dtype: torch.dtype) -> float:
    """FLOP/s of a large matrix product."""
    size = 1536
    left, right = torch.randn(size, size, dtype=dtype), torch.randn(size, size, dtype=dtype)
    torch.mm(left, right)
    seconds = min(time_run(lambda: torch.mm(left, right))[1] for _ in range(10))
    return 2 * size**3 / seconds


def time_runs(run: Callable[[], object], repeats: int) -> tuple[object, list[float]]:
    """The result of the last of some runs, and the seconds of each in order of size."""
    results = [time_run(run) for _ in range(repeats)]
    return results[-1][0], sorted(seconds for _, seconds in results)


def time_run(run: Callable[[], object]) -> tuple[object, float]:
    """The result of a run and its seconds."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


class MeteredEngine(Entailment):
    """Counts FLOP and the time of encoding."""

    flop = 0.0
    encoding = 0.0

    def _encode(self, inputs: Sequence[Pair]) -> list:
        rows, seconds = time_run(lambda: super(MeteredEngine, self)._encode(inputs))
        self.encoding += seconds
        config = self._model.config
        layers, width = config.num_hidden_layers, config.hidden_size
        weights = layers * (4 * width**2 + 2 * width * config.intermediate_size)
        for row in (row for windows in rows for row in windows):
            length = len(row.features["input_ids"])
            self.flop += 2 * length * weights + 4 * layers * width * length**2
        return rows


def compare(checkpoint: str, pairs: list[Pair], repeats: int) -> dict[str, float]:
    """Measure and print one workload."""
    engine = Entailment(checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    run_plain_loop(engine, tokenizer, model, pairs[:1])  # warm up, as for the engine
    plain_runs = partial(run_plain_loop, engine, tokenizer, model, pairs)
    reference, plain = time_runs(plain_runs, repeats)
    seconds = median(plain)
    print(f"{len(pairs):,} pairs, {len(set(pairs)):,} distinct")
    print(
        f"  {'plain loop':22} {seconds:7.1f} s {len(pairs) / seconds:8.0f} pairs/s "
        f"({plain[0]:.1f} to {plain[-1]:.1f} s)"
    )
    results = {"pairs": len(pairs), "distinct": len(set(pairs)), "plain_seconds": plain}
    # Elsewhere bfloat16 is slower than float32.
    for dtype in ("float32",) if default_precision() == "32-true" else ("float32", "bfloat16"):
        row = measure_engine(checkpoint, pairs, dtype, reference, repeats)
        row["speedup"] = seconds / row["seconds"]
        print(
            f"  {f'engine, {dtype}':22} {row['seconds']:7.1f} s "
            f"{len(pairs) / row['seconds']:8.0f} pairs/s {row['speedup']:5.1f} times "
            f"({row['runs'][0]:.1f} to {row['runs'][-1]:.1f} s), "
            f"labels equal {row['equal_labels']:.2%}, |Δp| mean {row['moved_mean']:.4f} most "
            f"{row['moved_most']:.4f}, {row['of_limit']:.0%} of the limit, encoding "
            f"{row['encoding_share']:.0%}",
            flush=True,
        )
        results |= {f"{dtype}_{name}": value for name, value in row.items()}
    return results


def measure_engine(
    checkpoint: str, pairs: list[Pair], dtype: str, reference: np.ndarray, repeats: int
) -> dict:
    """Time and agreement of the engine in one precision."""
    engine = MeteredEngine(checkpoint, dtype=dtype)
    engine.relations(pairs[:1])  # load the weights before timing
    engine.flop = engine.encoding = 0.0
    answers, runs = time_runs(lambda: engine.relations(pairs), repeats)
    seconds = median(runs)
    moved = np.abs(answers - reference).max(axis=1)
    return {
        "seconds": seconds,
        "runs": runs,
        "equal_labels": float(np.mean(answers.argmax(1) == reference.argmax(1))),
        "moved_mean": float(moved.mean()),
        "moved_most": float(moved.max()),
        "of_limit": engine.flop / repeats / peak_flops(getattr(torch, dtype)) / seconds,
        "encoding_share": engine.encoding / sum(runs),
    }


def main() -> None:
    """Measure both workloads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--data", type=Path, default=Path("data/lead_pairs"))
    curves = Path("runs/bench/corruption/curve_uninformative.jsonl")
    parser.add_argument("--curves", type=Path, default=curves)
    parser.add_argument("--pages", type=Path, default=LEADS)
    parser.add_argument("--short", type=int, default=20_000, help="number of short pairs")
    parser.add_argument("--long", type=int, default=500, help="number of long pairs")
    parser.add_argument("--repeats", type=int, default=5, help="runs, of which the median counts")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, default=None, help="JSON file for the results")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    workloads = {
        "short": short_pairs(options.data, options.curves, options.short),
        "long": long_pairs(options.data, options.pages, options.long),
    }
    results = {}
    for name, pairs in workloads.items():
        print(f"{name}: ", end="")
        results[name] = compare(options.checkpoint, pairs, options.repeats)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    run_command(main)
