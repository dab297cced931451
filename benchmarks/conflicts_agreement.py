"""Whether verdicts agree with labels where contexts disagree, and which verifier agrees more.

    python -m eval score --config configs/eval/small/factreasoner.yaml \\
      --documents data/kb_conflicts/documents_test.jsonl --output RUN
    python benchmarks/conflicts_agreement.py RUN/scored.jsonl --seen data/kb/relation_train.jsonl

Of every verifier of the run, over the claims that all of them judged: balanced accuracy, twice: an
undecided claim is half right, or it counts as not supported, as in every score; the Brier score of
its probabilities; and accuracy on the true claims alone, which is the paper's on ConflictBank
(2502.18573, section 4), where all are true and an assessor that always says yes has 1. Then the
differences from each of ``--against``. All with 95 % bootstrap intervals over topics, those of
differences paired.

``--seen`` leaves out the documents of topics that a relation model was trained on: files of pairs
whose ``person`` ends in the document's id.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.statistics import balanced_accuracy, bootstrap, confusion
from eval.pipeline import Scored
from records import read_records

_SAID = {"supported": 1.0, "undecided": 0.5}
# Baselines; ``majority.by_prior`` knows the priors of contexts, as FactReasoner does
AGAINST = ["majority.default", "majority.by_prior", "nli.default"]
# Of claims without a verdict
_FAILED = "failed"


def read(paths: list[Path], seen: list[Path]) -> tuple[list[Scored], int]:
    """The documents of some ``scored.jsonl``, and how many were left out."""
    known = set()
    for path in seen:
        with open(path, encoding="utf-8") as file:
            known |= {str(json.loads(line).get("person", "")).rsplit("/", 1)[-1] for line in file}
    rows = [row for path in paths for row in read_records(path, Scored)]
    kept = [row for row in rows if row.document.id not in known]
    return kept, len(rows) - len(kept)


def table(rows: list[Scored]) -> tuple[dict[str, np.ndarray], np.ndarray, list[str], int]:
    """What each verifier says of each claim, shape (claims, 2): support and probability.

    Returns:
        By verifier; the labels, shape (claims,); the claims' topics; the number of labelled claims
        that some verifier did not judge, which are left out.
    """
    names = list(dict.fromkeys((v.assessor, v.name) for row in rows for v in row.verdicts))
    said: dict[str, list] = {".".join(name): [] for name in names}
    labels, topics, left_out = [], [], 0
    for row in rows:
        found = {(v.assessor, v.name, v.claim): v for v in row.verdicts}
        for claim in row.claims:
            if claim.label not in ("S", "NS"):
                continue
            own = [found.get((*name, claim.id)) for name in names]
            if any(v is None or v.label == _FAILED for v in own):
                left_out += 1
                continue
            for column, verdict in zip(said.values(), own, strict=True):
                p = math.nan if verdict.p is None else verdict.p
                column.append((_SAID.get(verdict.label, 0.0), p))
            labels.append(claim.label == "S")
            topics.append(row.document.topic)
    return {k: np.array(v) for k, v in said.items()}, np.array(labels), topics, left_out


def figures(said: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Balanced accuracy, Brier score and accuracy on true claims of some claims."""
    strict = said[:, 0] == 1
    return {
        "balanced accuracy": balanced_accuracy(confusion(true, said[:, 0])),
        "undecided as not supported": balanced_accuracy(confusion(true, strict)),
        "Brier": float(np.mean((said[:, 1] - true) ** 2)),
        "accuracy on true": float(strict[true].mean()) if true.any() else math.nan,
    }


def line(name: str, found: dict[str, dict]) -> str:
    """Values with their intervals."""
    shown = []
    for metric, cell in found.items():
        value = "–" if cell["value"] is None else f"{cell['value']:.3f}"
        interval = "[{:.3f}, {:.3f}]".format(*cell["ci95"]) if cell["ci95"] else ""
        shown.append(f"{metric} {value} {interval}")
    return f"{name:40} " + "   ".join(shown)


def main() -> None:
    """Print a line a verifier, and a line a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="scored.jsonl of `eval score`")
    parser.add_argument("--seen", nargs="*", type=Path, default=[], help="files of training pairs")
    parser.add_argument("--against", nargs="*", default=AGAINST)
    options = parser.parse_args()
    rows, dropped = read(options.files, options.seen)
    said, true, topics, left_out = table(rows)
    print(
        f"{len(true)} claims ({int(true.sum())} true) of {len(set(topics))} topics, {left_out} "
        f"claims that somebody did not judge and {dropped} documents that were seen left out"
    )
    for name, own in said.items():
        found = bootstrap(lambda rows, own=own: figures(own[rows], true[rows]), topics)
        print(line(name, found))
    for other in (name for name in options.against if name in said):
        for name, own in said.items():
            if name in options.against:
                continue

            def difference(rows: np.ndarray, own=own, base=said[other]) -> dict[str, float]:
                one, two = figures(own[rows], true[rows]), figures(base[rows], true[rows])
                return {metric: one[metric] - two[metric] for metric in one}

            print(line(f"{name} − {other}", bootstrap(difference, topics)))


if __name__ == "__main__":
    run_command(main)
