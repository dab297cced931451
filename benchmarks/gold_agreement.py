"""Agreement of estimated gold scores with gold scores that are known by construction.

    python -m data_builders attacks --config configs/data/small/attacks.yaml
    python benchmarks/gold_agreement.py data/attacks/{normal,trivia}.jsonl \\
        --checkpoint checkpoints/small/relation_2 --pages data/leads/passages_test.jsonl

Prints Pearson's correlation of the gold F1 over all texts of the files, that within kinds, and the
mean by kind. The correlation within kinds is that of the differences to the means of the kinds of
which gold varies: an estimate that only tells kinds apart has 0. The means show what it misses.
"""

import argparse
from collections import defaultdict

import numpy as np

from cli.command import run_command
from components.statistics import pearson
from data_builders.written.claims.fact_gold import FactGold
from eval.models.encoder import Entailment
from records import Document, UserError, read_records


def main(arguments: list[str] | None = None) -> None:
    """Estimate the gold scores of the files' texts and print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", help="files of texts with gold by construction")
    parser.add_argument("--checkpoint", required=True, help="relation model")
    parser.add_argument("--pages", nargs="+", required=True)
    parser.add_argument("--cache", help="SQLite file for the model's answers")
    options = parser.parse_args(arguments)
    documents = [d for path in options.texts for d in read_records(path, Document) if d.gold]
    if not documents:
        raise UserError(f"{options.texts[0]}: no text has `gold`; build them with `attacks`")
    model = Entailment(options.checkpoint, cache=options.cache)
    estimate = FactGold(model, options.pages)
    estimated = estimate([(document.topic, document.text) for document in documents])
    kinds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for document, gold in zip(documents, estimated, strict=True):
        if gold is not None:
            kinds[document.kind or "normal"].append((gold.f1, document.gold.f1))
    pairs = np.array([pair for kind in kinds.values() for pair in kind]).reshape(-1, 2)
    print(f"n {len(pairs)}, not estimated {len(documents) - len(pairs)}")
    print(f"Pearson's r of gold F1: {pearson(*pairs.T):.3f}")
    centred = [np.array(values) - np.mean(values, axis=0) for values in kinds.values()]
    varied = [rows for rows in centred if np.ptp(rows[:, 1]) > 0]
    within = pearson(*np.concatenate(varied).T) if varied else np.nan
    print(f"Within kinds: {within:.3f}, {len(varied)} kinds of which gold varies")
    for kind, values in kinds.items():
        means = np.mean(values, axis=0)
        print(f"{kind}: estimated {means[0]:.2f}, known {means[1]:.2f}, n {len(values)}")


if __name__ == "__main__":
    run_command(main)
