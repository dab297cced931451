"""Pairs a second of the entailment engine against a plain loop, in the same run.

    python benchmarks/entailment.py --checkpoint checkpoints/small/relation
        --pairs data/kb/relation_test.jsonl

The baseline is what the papers' released code does: padded batches in the file's order, every pair,
repeated ones too, through transformers as it comes. The pairs are taken twice, as exclusion does
when it asks for both directions of claims that repeat.
"""

from __future__ import annotations

import argparse
import resource
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from eval.models.encoder import Entailment
from records import RelationPair, read_records


def baseline(checkpoint: str, pairs: list[tuple[str, str]], batch_size: int = 64) -> None:
    """Padded batches in order, without deduplication."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    for start in range(0, len(pairs), batch_size):
        premises, hypotheses = zip(*pairs[start : start + batch_size], strict=True)
        encoded = tokenizer(
            list(premises), list(hypotheses), padding=True, truncation=True, return_tensors="pt"
        )
        with torch.inference_mode():
            model(**encoded)


def main() -> None:
    """Print a line a method: seconds, pairs a second, peak memory so far."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True, help="a relation checkpoint")
    parser.add_argument("--pairs", required=True, help="relation pairs")
    options = parser.parse_args()
    rows = read_records(options.pairs, RelationPair)
    pairs = [(row.premise, row.hypothesis) for row in rows] * 2
    methods = {
        "engine": lambda: Entailment(options.checkpoint).relations(pairs),
        "plain loop": lambda: baseline(options.checkpoint, pairs),
    }
    for name, run in methods.items():
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name:12} {seconds:7.1f} s {len(pairs) / seconds:8.0f} pairs/s {memory:7.0f} MiB")


if __name__ == "__main__":
    main()
