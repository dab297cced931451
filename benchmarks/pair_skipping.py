"""Cost and accuracy of FactReasoner when pairs with a low cheap score are skipped.

    python benchmarks/pair_skipping.py data/kb_conflicts/documents_dev.jsonl \\
      --checkpoint checkpoints/small/relation

Prints for each ``skip_below``: queried pairs, share of pairs saved, share of relations lost, and
change of the posteriors. All pairs are scored only once, so more thresholds are free; ``--cache``
stores the scores for later runs.
"""

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


class CountingModel(CachedJudgements):
    """Counts the pairs of the last call."""

    queried = 0

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.queried = len(pairs)
        return super().relations(pairs)


def posteriors(graphs: list[Graph]) -> np.ndarray:
    """P(true) of the claims of all documents, concatenated."""
    solved = solve([graph.network() for graph in graphs])
    return np.concatenate([p.p[: len(g.plan.claims)] for p, g in zip(solved, graphs, strict=True)])


def labels(p: np.ndarray) -> np.ndarray:
    """1 supported, 0 undecided (e.g. without relations), -1 contradicted."""
    return np.sign(np.round(p - 0.5, 9))


def relations(graphs: list[Graph]) -> int:
    """Number of relations of the graphs."""
    return sum(len(graph.to_claims) + len(graph.between) for graph in graphs)


def main() -> None:
    """Print one line per version and threshold."""
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
    model = CountingModel(Entailment(options.checkpoint, cache=options.cache))
    for version in options.versions:
        full = FactReasoner(model, versions=[version]).graphs(claims, passages)
        pairs, p = model.queried, posteriors(full)
        print(f"fr{version}: {pairs:,} pairs, {relations(full):,} relations, {len(p):,} claims")
        for threshold in options.thresholds:
            stage = FactReasoner(model, versions=[version], skip_below=threshold)
            graphs = stage.graphs(claims, passages)
            p_skipped = posteriors(graphs)
            print(
                f"  skip_below {threshold:.2f}: {model.queried:,} queried, "
                f"saved {1 - model.queried / pairs:.1%}, "
                f"relations lost {1 - relations(graphs) / max(1, relations(full)):.1%}, "
                f"mean |ΔP| {np.abs(p - p_skipped).mean():.4f}, "
                f"labels equal {np.mean(labels(p) == labels(p_skipped)):.1%}"
            )


if __name__ == "__main__":
    run_command(main)
