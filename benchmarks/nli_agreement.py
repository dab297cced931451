"""Agreement of a verifier's verdicts with existing labels of the claims.

    python -m eval score --config configs/eval/small/nli.yaml --documents ONE.jsonl --output ONE
    python -m eval score --config configs/eval/small/nli.yaml --documents OTHER.jsonl --output OTHER
    python benchmarks/nli_agreement.py ONE/scored.jsonl OTHER/scored.jsonl

The decision threshold of the verifier's probability is fitted on one file (largest balanced
accuracy) and evaluated on the other, in both directions: balanced accuracy over claims, and
Spearman's correlation over documents between the predicted and the labelled share of supported
claims. Intervals are bootstrap intervals over documents with a fixed threshold. Claims without a
label or with a failed verdict are skipped and counted.

The baseline on the same claims is word overlap: the share of the claim's stems in its best passage,
weighted by rarity among the file's passages.
"""

import argparse
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.overlap import covered_share, stem_weights
from components.statistics import balanced_accuracy, bootstrap, confusion, spearman
from eval.pipeline import Scored
from records import Claim, UserError, read_records

# Probabilities and labels of a document, both of shape (claims,).
Judged = tuple[np.ndarray, np.ndarray]


def labelled(row: Scored, assessor: str) -> list[tuple[Claim, float]]:
    """The claims of a document with a label and a probability, and the probability."""
    p = {v.claim: v.p for v in row.verdicts if v.assessor == assessor}
    claims = [claim for claim in row.claims if claim.label in ("S", "NS")]
    return [(claim, p[claim.id]) for claim in claims if p.get(claim.id) is not None]


def judged(rows: list[Scored], assessor: str) -> tuple[list[Judged], int]:
    """Probabilities and labels of each document, and the number of skipped claims."""
    judged_documents, skipped = [], 0
    for row in rows:
        pairs = [(p, claim.label == "S") for claim, p in labelled(row, assessor)]
        skipped += len(row.claims) - len(pairs)
        if pairs:
            values, labels = map(np.array, zip(*pairs, strict=True))
            judged_documents.append((values, labels))
    return judged_documents, skipped


def overlap(rows: list[Scored], assessor: str) -> list[Judged]:
    """Rarity-weighted share of each claim's stems in its best passage, and the labels.

    For the claims of :func:`judged`; 0 without passages.
    """
    weight = stem_weights(f"{p.title} {p.text}" for row in rows for p in row.passages)
    judged_documents = []
    for row in rows:
        texts = [f"{p.title} {p.text}" for p in row.passages]
        pairs = [
            (max((covered_share(c.text, [t], weight) for t in texts), default=0.0), c.label == "S")
            for c, _ in labelled(row, assessor)
        ]
        if pairs:
            values, labels = map(np.array, zip(*pairs, strict=True))
            judged_documents.append((values, labels))
    return judged_documents


def rates(documents: list[Judged]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenated probabilities and labels of several documents."""
    return tuple(np.concatenate(part) for part in zip(*documents, strict=True))


def fitted(documents: list[Judged]) -> float:
    """The highest threshold with the largest balanced accuracy."""
    p, label = rates(documents)
    order = np.argsort(-p, kind="stable")
    p, label = p[order], label[order]
    hits, alarms = np.cumsum(label) / label.sum(), np.cumsum(~label) / (~label).sum()
    last = np.append(p[1:] != p[:-1], True)  # equal probabilities share a threshold
    return float(p[np.argmax(np.where(last, hits - alarms, -1))])


def agreement(documents: list[Judged], threshold: float) -> float:
    """Balanced accuracy over the claims."""
    p, label = rates(documents)
    return balanced_accuracy(confusion(label, p >= threshold))


def correlation(documents: list[Judged], threshold: float) -> float:
    """Spearman's correlation over documents of predicted and labelled share of support."""
    shares = np.array([((p >= threshold).mean(), label.mean()) for p, label in documents])
    return float(spearman(*shares.T))


def report(name: str, fit_documents: list[Judged], documents: list[Judged], skipped: int) -> None:
    """Print the measures of one direction."""
    threshold = fitted(fit_documents)

    def measures(rows: np.ndarray) -> dict[str, float]:
        drawn = [documents[row] for row in rows]
        both = {"balanced accuracy": agreement, "Spearman": correlation}
        return {name: measure(drawn, threshold) for name, measure in both.items()}

    n = sum(len(p) for p, _ in documents)
    names = [f"{row:06}" for row in range(len(documents))]  # sorted as the documents
    figures = [
        "{} {:.3f} [{:.3f}, {:.3f}]".format(measure_name, value["value"], *value["ci95"])
        if value["ci95"]
        else f"{measure_name} {'–' if value['value'] is None else format(value['value'], '.3f')}"
        for measure_name, value in bootstrap(measures, names).items()
    ]
    print(
        f"{name}: {', '.join(figures)}, threshold {threshold:.3f}, "
        f"{n} claims of {len(documents)} documents, {skipped} claims skipped"
    )


def main() -> None:
    """Print one line per direction and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs=2, type=Path, help="two scored.jsonl of `eval score`")
    parser.add_argument("--assessor", default="nli", help="assessor whose verdicts are evaluated")
    options = parser.parse_args()
    rows = [read_records(path, Scored) for path in options.files]
    names = [path.parent.name for path in options.files]
    verdicts = [judged(scored, options.assessor) for scored in rows]
    for path, (scored, _) in zip(options.files, verdicts, strict=True):
        if len({label for _, labels in scored for label in labels.tolist()}) < 2:
            raise UserError(
                f"{path}: expected both labels S and NS among claims with a probability of "
                f"{options.assessor}; use another file or --assessor"
            )
    words = [overlap(scored, options.assessor) for scored in rows]
    for fit, judge in ((0, 1), (1, 0)):
        direction = f"{names[fit]} → {names[judge]}"
        report(f"{options.assessor:7} {direction}", verdicts[fit][0], *verdicts[judge])
        report(f"overlap {direction}", words[fit], words[judge], verdicts[judge][1])


if __name__ == "__main__":
    run_command(main)
