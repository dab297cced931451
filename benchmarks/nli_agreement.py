"""Whether a verifier's verdicts agree with labels that the documents' claims already have.

    python -m eval score --config configs/eval/small/nli.yaml --documents ONE.jsonl --output ONE
    python -m eval score --config configs/eval/small/nli.yaml --documents OTHER.jsonl --output OTHER
    python benchmarks/nli_agreement.py ONE/scored.jsonl OTHER/scored.jsonl

A verifier that gives a probability needs a threshold. It is fitted on the one file (largest
balanced accuracy) and judged on the other, both ways round: balanced accuracy over the claims, and
Spearman's correlation over the documents of the share of claims that it supports with the share
that the labels support. Intervals are the bootstrap's over documents, the threshold held fixed.
Claims without a label or with a verdict that failed are counted and left out.

Beside it, on the same claims, word overlap: the share of the claim's stems that its best passage
has, each weighted by how few of the file's passages have it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.overlap import covered_share, stem_weights
from components.statistics import balanced_accuracy, bootstrap, confusion, spearman
from eval.pipeline import Scored
from records import Claim, UserError, read_records

# A document's probabilities and its labels, both of shape (claims,)
Judged = tuple[np.ndarray, np.ndarray]


def labelled(row: Scored, assessor: str) -> list[tuple[Claim, float]]:
    """The claims of a document that have a label and a probability, with that."""
    p = {v.claim: v.p for v in row.verdicts if v.assessor == assessor}
    return [
        (claim, p[claim.id])
        for claim in row.claims
        if claim.label in ("S", "NS") and p.get(claim.id) is not None
    ]


def judged(rows: list[Scored], assessor: str) -> tuple[list[Judged], int]:
    """Probabilities and labels of each document, and how many claims were left out."""
    found, left_out = [], 0
    for row in rows:
        pairs = [(p, claim.label == "S") for claim, p in labelled(row, assessor)]
        left_out += len(row.claims) - len(pairs)
        if pairs:
            values, labels = map(np.array, zip(*pairs, strict=True))
            found.append((values, labels))
    return found, left_out


def overlap(rows: list[Scored], assessor: str) -> list[Judged]:
    """Share of each claim's stems that its best passage has, weighted by rarity, and the labels.

    Of the same claims as :func:`judged`; 0 for one without a passage.
    """
    weight = stem_weights(f"{p.title} {p.text}" for row in rows for p in row.passages)
    found = []
    for row in rows:
        texts = [f"{p.title} {p.text}" for p in row.passages]
        pairs = [
            (max((covered_share(c.text, [t], weight) for t in texts), default=0.0), c.label == "S")
            for c, _ in labelled(row, assessor)
        ]
        if pairs:
            values, labels = map(np.array, zip(*pairs, strict=True))
            found.append((values, labels))
    return found


def rates(documents: list[Judged]) -> tuple[np.ndarray, np.ndarray]:
    """All probabilities and all labels of some documents, one after the other."""
    return tuple(np.concatenate(part) for part in zip(*documents, strict=True))


def fitted(documents: list[Judged]) -> float:
    """The threshold with the largest balanced accuracy; of several the highest."""
    p, label = rates(documents)
    order = np.argsort(-p, kind="stable")
    p, label = p[order], label[order]
    hits, alarms = np.cumsum(label) / label.sum(), np.cumsum(~label) / (~label).sum()
    last = np.append(p[1:] != p[:-1], True)  # a threshold takes all claims of one probability
    return float(p[np.argmax(np.where(last, hits - alarms, -1))])


def agreement(documents: list[Judged], threshold: float) -> float:
    """Balanced accuracy over the claims."""
    p, label = rates(documents)
    return balanced_accuracy(confusion(label, p >= threshold))


def correlation(documents: list[Judged], threshold: float) -> float:
    """Spearman's, over documents, of the share judged supported with the share labelled so."""
    shares = np.array([((p >= threshold).mean(), label.mean()) for p, label in documents])
    return float(spearman(*shares.T))


def report(name: str, fit: list[Judged], judge: list[Judged], left_out: int) -> None:
    """Print the figures of one direction."""
    threshold = fitted(fit)

    def measures(rows: np.ndarray) -> dict[str, float]:
        drawn = [judge[row] for row in rows]
        both = {"balanced accuracy": agreement, "Spearman": correlation}
        return {name: measure(drawn, threshold) for name, measure in both.items()}

    n = sum(len(p) for p, _ in judge)
    names = [f"{row:06}" for row in range(len(judge))]  # whose order is the documents'
    figures = [
        "{} {:.3f} [{:.3f}, {:.3f}]".format(what, one["value"], *one["ci95"])
        if one["ci95"]
        else f"{what} {'–' if one['value'] is None else format(one['value'], '.3f')}"
        for what, one in bootstrap(measures, names).items()
    ]
    print(
        f"{name}: {', '.join(figures)}, threshold {threshold:.3f}, "
        f"{n} claims of {len(judge)} documents, {left_out} claims left out"
    )


def main() -> None:
    """Print a line a direction and method.

    Raises:
        UserError: a file without claims of both labels, of which no threshold can be fitted.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs=2, type=Path, help="two scored.jsonl of `eval score`")
    parser.add_argument("--assessor", default="nli", help="whose verdicts")
    options = parser.parse_args()
    rows = [read_records(path, Scored) for path in options.files]
    names = [path.parent.name for path in options.files]
    verdicts = [judged(own, options.assessor) for own in rows]
    for path, (own, _) in zip(options.files, verdicts, strict=True):
        if len({label for _, labels in own for label in labels.tolist()}) < 2:
            raise UserError(
                f"{path}: not both S and NS among the labels of claims that {options.assessor} "
                "gives a probability; give another file or --assessor"
            )
    words = [overlap(own, options.assessor) for own in rows]
    for fit, judge in ((0, 1), (1, 0)):
        direction = f"{names[fit]} → {names[judge]}"
        report(f"{options.assessor:7} {direction}", verdicts[fit][0], *verdicts[judge])
        report(f"overlap {direction}", words[fit], words[judge], verdicts[judge][1])


if __name__ == "__main__":
    run_command(main)
