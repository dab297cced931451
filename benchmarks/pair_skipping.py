"""What FactReasoner saves and loses when pairs that a cheap score calls unrelated are not asked.

    python benchmarks/pair_skipping.py data/kb_conflicts/documents_dev.jsonl \\
      --checkpoint checkpoints/small/relation

For each ``skip_below``: pairs asked, the share of all that is saved, the share of all relations
that are lost with it, and how far the posteriors move. All pairs are scored once, so that a line
more costs nothing; ``--cache`` keeps the answers for another call.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.encoding import Pair
from eval.models.encoder import Entailment
from eval.retrieve.given import Given
from eval.select.judgements import CachedJudgements
from eval.verify.factreasoner.graph import Graph
from eval.verify.factreasoner.inference import solve
from eval.verify.factreasoner.stage import FactReasoner
from records import Document, read_records


class Known(CachedJudgements):
    """Keeps how many pairs the last call asked."""

    asked = 0

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """As the model's, shape (n, 3)."""
        self.asked = len(pairs)
        return super().relations(pairs)


def posteriors(graphs: list[Graph]) -> np.ndarray:
    """P(true) of all claims, one after the other."""
    found = solve([graph.network() for graph in graphs])
    return np.concatenate([p.p[: len(g.plan.claims)] for p, g in zip(found, graphs, strict=True)])


def labels(p: np.ndarray) -> np.ndarray:
    """1 supported, 0 undecided, -1 contradicted: a claim that loses its relations is undecided."""
    return np.sign(np.round(p - 0.5, 9))


def relations(graphs: list[Graph]) -> int:
    """How many relations the graphs have."""
    return sum(len(graph.to_claims) + len(graph.between) for graph in graphs)


def main() -> None:
    """Print a line a version and threshold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=Path)
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--cache", default=None)
    parser.add_argument("--versions", nargs="*", type=int, default=[2, 3])
    parser.add_argument("--thresholds", nargs="*", type=float, default=[0.1, 0.2, 0.3, 0.4])
    options = parser.parse_args()
    documents = read_records(options.documents, Document)
    claims = [document.claims or [] for document in documents]
    claims, passages = Given()(documents, claims)
    model = Known(Entailment(options.checkpoint, cache=options.cache))
    for version in options.versions:
        whole = FactReasoner(model, versions=[version]).graphs(claims, passages)
        asked, p = model.asked, posteriors(whole)
        print(f"fr{version}: {asked:,} pairs, {relations(whole):,} relations, {len(p):,} claims")
        for threshold in options.thresholds:
            stage = FactReasoner(model, versions=[version], skip_below=threshold)
            graphs = stage.graphs(claims, passages)
            other = posteriors(graphs)
            print(
                f"  skip_below {threshold:.2f}: {model.asked:,} asked, "
                f"saved {1 - model.asked / asked:.1%}, "
                f"relations lost {1 - relations(graphs) / max(1, relations(whole)):.1%}, "
                f"mean |ΔP| {np.abs(p - other).mean():.4f}, "
                f"labels equal {np.mean(labels(p) == labels(other)):.1%}"
            )


if __name__ == "__main__":
    run_command(main)
