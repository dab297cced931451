"""Pairs a second of the entailment engine against a plain loop: same weights, pairs and threads.

    python -m data_builders corruption --config configs/data/small/corruption.yaml \\
      --adversarial '[data/kb/generations_test.jsonl, data/kb/generations_dev.jsonl]' \\
      --kinds '[uninformative]' --output runs/bench/corruption
    python benchmarks/entailment.py --checkpoint checkpoints/small/relation

Two workloads: ``short``, what two defences of the robustness experiment (``deduplicated`` and
``core``) ask about its texts, document by document; and ``long``, claims against whole pages. The
baseline is what the papers' released code does: padded batches in the order of asking, every pair,
also repeated ones, in float32, through transformers as it comes.

The engine deduplicates, sorts by length (batches of one length, no padding) and computes in
bfloat16; ``float32`` shows what the first two bring. *Of the limit* is the arithmetic of the
distinct pairs (2 FLOP a weight and token, and attention) over the measured speed of a large matrix
product in that precision: the rest is lost to everything else.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from itertools import islice, permutations, product
from pathlib import Path

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
from records import Document, Passage, read_records, write_json

DEFENCES = 2
TEXTS = ("profiles", "padded", "generations_test", "generations_dev")
ROWS = 64  # of a batch, as many as the engine's


def short_pairs(data: Path, curves: Path, most: int) -> list[Pair]:
    """What Core asks for exclusion, topic by topic, once for each defence."""
    files = [data / f"{name}.jsonl" for name in TEXTS] + [curves]
    documents = [document for file in files for document in read_records(file, Document)]
    documents.sort(key=lambda document: document.topic)
    asked = (
        pair
        for claims in Sentences()(documents)
        for _ in range(DEFENCES)
        for pair in permutations(dict.fromkeys(claim.text for claim in claims), 2)
    )
    return list(islice(asked, most))


def long_pairs(data: Path, most: int) -> list[Pair]:
    """Claims of the texts against whole pages, as a verifier without sentences asks."""
    pages = read_records(data / "passages.jsonl", Passage)
    pages.sort(key=lambda page: -len(page.text))
    documents = read_records(data / "profiles.jsonl", Document)
    claims = [claim.text for own in Sentences()(documents) for claim in own]
    chosen = product(pages[: max(1, most // 20)], claims[:20])
    return list(islice(((page.text, claim) for page, claim in chosen), most))


def plain(
    engine: Entailment,
    tokenizer: PreTrainedTokenizerBase,
    model: PreTrainedModel,
    pairs: Sequence[Pair],
) -> np.ndarray:
    """Padded batches in order, without deduplication, in float32; shape (n, 3)."""
    component = engine.component
    rows, windows = windows_of(
        pairs, component.chunk_words, component.focus_words, component.mark_new
    )
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


def peak(dtype: torch.dtype) -> float:
    """FLOP a second of a large matrix product."""
    size = 1536
    left, right = torch.randn(size, size, dtype=dtype), torch.randn(size, size, dtype=dtype)
    torch.mm(left, right)
    seconds = min(timed(lambda: torch.mm(left, right))[1] for _ in range(10))
    return 2 * size**3 / seconds


def timed(run: Callable[[], object]) -> tuple[object, float]:
    """What a run gives, and its seconds."""
    start = time.perf_counter()
    found = run()
    return found, time.perf_counter() - start


class Watched(Entailment):
    """Counts the arithmetic that is asked for, and the time of encoding."""

    flop = 0.0
    encoding = 0.0

    def _encode(self, inputs: Sequence[Pair]) -> list:
        rows, seconds = timed(lambda: super(Watched, self)._encode(inputs))
        self.encoding += seconds
        config = self._model.config
        layers, width = config.num_hidden_layers, config.hidden_size
        weights = layers * (4 * width**2 + 2 * width * config.intermediate_size)
        for row in rows:
            length = len(row.features["input_ids"])
            self.flop += 2 * length * weights + 4 * layers * width * length**2
        return rows


def compared(checkpoint: str, pairs: list[Pair]) -> dict[str, float]:
    """The figures of one workload, as they are printed."""
    engine = Entailment(checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    plain(engine, tokenizer, model, pairs[:1])  # as for the engine, before the clock starts
    reference, seconds = timed(lambda: plain(engine, tokenizer, model, pairs))
    print(f"{len(pairs):,} pairs, {len(set(pairs)):,} distinct")
    print(f"  {'plain loop':22} {seconds:7.1f} s {len(pairs) / seconds:8.0f} pairs/s")
    found: dict[str, float] = {
        "pairs": len(pairs),
        "distinct": len(set(pairs)),
        "plain_seconds": seconds,
    }
    for dtype in ("float32", "bfloat16"):
        row = of_engine(checkpoint, pairs, dtype, reference)
        row["speedup"] = seconds / row["seconds"]
        print(
            f"  {f'engine, {dtype}':22} {row['seconds']:7.1f} s "
            f"{len(pairs) / row['seconds']:8.0f} pairs/s {row['speedup']:5.1f} times, "
            f"labels equal {row['equal_labels']:.2%}, |Δp| mean {row['moved_mean']:.4f} most "
            f"{row['moved_most']:.4f}, {row['of_limit']:.0%} of the limit, encoding "
            f"{row['encoding_share']:.0%}",
            flush=True,
        )
        found |= {f"{dtype}_{name}": value for name, value in row.items()}
    return found


def of_engine(
    checkpoint: str, pairs: list[Pair], dtype: str, reference: np.ndarray
) -> dict[str, float]:
    """Time and agreement of the engine in a precision."""
    engine = Watched(checkpoint, dtype=dtype)
    engine.relations(pairs[:1])  # the weights are read before the clock starts
    engine.flop = engine.encoding = 0.0
    answers, seconds = timed(lambda: engine.relations(pairs))
    moved = np.abs(answers - reference).max(axis=1)
    return {
        "seconds": seconds,
        "equal_labels": float(np.mean(answers.argmax(1) == reference.argmax(1))),
        "moved_mean": float(moved.mean()),
        "moved_most": float(moved.max()),
        "of_limit": engine.flop / peak(getattr(torch, dtype)) / seconds,
        "encoding_share": engine.encoding / seconds,
    }


def main() -> None:
    """Print the figures of both workloads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--data", type=Path, default=Path("data/kb"))
    parser.add_argument(
        "--curves", type=Path, default=Path("runs/bench/corruption/curve_uninformative.jsonl")
    )
    parser.add_argument("--short", type=int, default=20_000, help="pairs of the experiment")
    parser.add_argument("--long", type=int, default=2_000, help="pairs of claims and pages")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, default=None, help="also write the figures there")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    workloads = {
        "short": short_pairs(options.data, options.curves, options.short),
        "long": long_pairs(options.data, options.long),
    }
    found = {}
    for name, pairs in workloads.items():
        print(f"{name}: ", end="")
        found[name] = compared(options.checkpoint, pairs)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    run_command(main)
