"""Agreement of verdicts with labels on conflicting contexts, compared between verifiers.

    python -m eval score --config configs/eval/small/factreasoner.yaml \\
      --documents data/kb_conflicts/documents_test.jsonl --output RUN
    python benchmarks/conflicts_agreement.py RUN/scored.jsonl --seen data/kb/relation_train.jsonl

Prints for each verifier of the run, over the claims judged by all of them: balanced accuracy with
undecided claims as half right and as not supported (as in the scores), Brier score, and accuracy on
true claims, which is the paper's measure on ConflictBank (2502.18573, section 4). All claims are
true there, so an assessor that always supports has 1. Then prints the differences from each of
``--against``. Intervals are 95 % bootstrap intervals over topics, paired for differences.

``--seen`` excludes topics that a relation model was trained on: files of pairs whose ``person``
ends in the document's id.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.statistics import balanced_accuracy, bootstrap, confusion
from eval.pipeline import Scored
from records import read_records

_SUPPORT = {"supported": 1.0, "undecided": 0.5}
# Baselines; ``majority.by_prior`` uses the priors of contexts, as FactReasoner does.
AGAINST = ["majority.default", "majority.by_prior", "nli.default"]


def read(paths: list[Path], seen: list[Path]) -> tuple[list[Scored], int]:
    """The documents of several ``scored.jsonl`` files, and the number of excluded documents."""
    excluded = set()
    for path in seen:
        with open(path, encoding="utf-8") as file:
            people = [str(json.loads(line).get("person", "")) for line in file]
            excluded |= {person.rsplit("/", 1)[-1] for person in people}
    rows = [row for path in paths for row in read_records(path, Scored)]
    kept = [row for row in rows if row.document.id not in excluded]
    return kept, len(rows) - len(kept)


def table(rows: list[Scored]) -> tuple[dict[str, np.ndarray], np.ndarray, list[str], int]:
    """Verdicts and labels of the claims that all verifiers judged.

    Returns:
        Support and probability by verifier, shape (claims, 2); labels, shape (claims,); topics of
        the claims; number of skipped labelled claims.
    """
    names = list(dict.fromkeys((v.assessor, v.name) for row in rows for v in row.verdicts))
    verdict_values: dict[str, list] = {".".join(name): [] for name in names}
    labels, topics, skipped = [], [], 0
    for row in rows:
        verdict_of = {(v.assessor, v.name, v.claim): v for v in row.verdicts}
        for claim in row.claims:
            if claim.label not in ("S", "NS"):
                continue
            verdicts = [verdict_of.get((*name, claim.id)) for name in names]
            if any(v is None or v.label == "failed" for v in verdicts):
                skipped += 1
                continue
            for column, verdict in zip(verdict_values.values(), verdicts, strict=True):
                p = math.nan if verdict.p is None else verdict.p
                column.append((_SUPPORT.get(verdict.label, 0.0), p))
            labels.append(claim.label == "S")
            topics.append(row.document.topic)
    return {k: np.array(v) for k, v in verdict_values.items()}, np.array(labels), topics, skipped


def figures(values: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Balanced accuracy, Brier score and accuracy on true claims."""
    strict = values[:, 0] == 1
    return {
        "balanced accuracy": balanced_accuracy(confusion(true, values[:, 0])),
        "undecided as not supported": balanced_accuracy(confusion(true, strict)),
        "Brier": float(np.mean((values[:, 1] - true) ** 2)),
        "accuracy on true": float(strict[true].mean()) if true.any() else math.nan,
    }


def line(name: str, measures: dict[str, dict]) -> str:
    """Format values with intervals."""
    cells = []
    for metric, cell in measures.items():
        value = "–" if cell["value"] is None else f"{cell['value']:.3f}"
        interval = "[{:.3f}, {:.3f}]".format(*cell["ci95"]) if cell["ci95"] else ""
        cells.append(f"{metric} {value} {interval}")
    return f"{name:40} " + "   ".join(cells)


def main() -> None:
    """Print one line per verifier and per difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="scored.jsonl of `eval score`")
    parser.add_argument("--seen", nargs="*", type=Path, default=[], help="excluded training pairs")
    parser.add_argument("--against", nargs="*", default=AGAINST)
    options = parser.parse_args()
    rows, dropped = read(options.files, options.seen)
    values, true, topics, skipped = table(rows)
    print(
        f"{len(true)} claims ({int(true.sum())} true) of {len(set(topics))} topics; skipped "
        f"{skipped} claims without all verdicts and {dropped} documents on seen topics"
    )
    for name, column in values.items():
        measures = bootstrap(lambda rows, column=column: figures(column[rows], true[rows]), topics)
        print(line(name, measures))
    for baseline in (name for name in options.against if name in values):
        for name, column in values.items():
            if name in options.against:
                continue

            def difference(rows: np.ndarray, column=column, base=values[baseline]) -> dict:
                first, second = figures(column[rows], true[rows]), figures(base[rows], true[rows])
                return {metric: first[metric] - second[metric] for metric in first}

            print(line(f"{name} − {baseline}", bootstrap(difference, topics)))


if __name__ == "__main__":
    run_command(main)
