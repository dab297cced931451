"""Agreement of D-FActScore with AmbigBio's verdicts after grouping, in both directions.

    C=configs/eval/small/dfactscore.yaml
    python -m eval score --config $C --documents ONE.jsonl --output runs/ONE
    python -m eval score --config $C --documents OTHER.jsonl --output runs/OTHER
    python benchmarks/dfactscore_agreement.py runs/ONE/scored.jsonl runs/OTHER/scored.jsonl

The threshold of support is fitted on one file (largest balanced accuracy of the verdicts after
grouping) and evaluated on the other. Groups are linked again at each threshold, by the
probabilities of all titles in the verdicts. Prints for the evaluated file:

- balanced accuracy of the verdicts against ``is_supported``, after grouping and claim by claim;
- Spearman's correlation over documents of D-FActScore, FActScore and their difference;
- balanced accuracy of "more than one linked person" (distinct ``supporting_topic``);
- the share of atoms supported in the file that are linked to their ``supporting_topic``;
- our means and those of the file.

Baselines for grouping are all claims as one group and each claim as a group. Atoms of
``atoms_grouped`` are matched by text to the claims, which are those of ``atoms_independent``;
unmatched atoms and claims are counted. Intervals are bootstrap intervals over documents with a
fixed threshold. ``--half`` selects documents whose topics a relation model has not seen.
"""

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cli.command import run_command
from components.statistics import balanced_accuracy, bootstrap, confusion, spearman
from eval.pipeline import Scored
from eval.verify.dfactscore.linking import link_groups
from records import read_records

THRESHOLDS = np.linspace(0.02, 0.98, 49)


class Text(NamedTuple):
    """Our results and those of the file for a document, one row per claim.

    Attributes:
        support: probability of each title, shape (claims, titles).
        groups: our group labels.
        alone, grouped: verdicts of the file; ``grouped`` is NaN for an unmatched claim.
        topics: ``supporting_topic`` of the file after grouping.
        precisions: FActScore and D-FActScore of the file, over all its atoms.
        people: number of distinct titles linked to the file's atoms.
    """

    support: np.ndarray
    groups: list[str]
    titles: list[str]
    alone: np.ndarray
    grouped: np.ndarray
    topics: list[str | None]
    precisions: tuple[float, float]
    people: int


def read(path: Path, half: int | None) -> tuple[list[Text], dict[str, int]]:
    """The documents of a ``scored.jsonl``, and counts of what was skipped."""
    texts, skipped = [], defaultdict(int)
    for row in read_records(path, Scored):
        atoms = row.document.model_extra.get("atoms_grouped") or []
        digest = hashlib.sha256(row.document.topic.encode()).hexdigest()
        if half is not None and int(digest, 16) % 2 != half:
            continue
        kept = [v for v in row.verdicts if v.assessor == "dfactscore" and v.label != "failed"]
        # A title without a probability could win at another threshold.
        kept = [v for v in kept if None not in (v.model_extra or {}).get("support", {}).values()]
        by_name = {name: {v.claim: v for v in kept if v.name == name} for name in NAMES}
        claims = [c for c in row.claims if all(c.id in by_name[name] for name in NAMES)]
        skipped["claims that failed"] += len(row.claims) - len(claims)
        if not claims or not atoms:
            skipped["documents without claims or atoms"] += 1
            continue
        text = match_atoms(claims, by_name, atoms)
        skipped["claims without an atom"] += int(np.isnan(text.grouped).sum())
        skipped["atoms without a claim"] += len(atoms) - int((~np.isnan(text.grouped)).sum())
        texts.append(text)
    return texts, skipped


NAMES = ("independent", "grouped")


def match_atoms(claims: list, by_name: dict, atoms: list[dict]) -> Text:
    """Match claims to atoms of the same text; equal texts are matched in order."""
    pool = defaultdict(list)
    for atom in atoms:
        pool[atom["atom"].strip()].append(atom)
    texts = [claim.text.strip() for claim in claims]
    partners = [pool[text].pop(0) if pool[text] else None for text in texts]
    support = [by_name["independent"][claim.id].model_extra["support"] for claim in claims]
    titles = list(support[0])
    alone = np.array([claim.label == "S" for claim in claims])
    verdicts = [np.nan if p is None else float(p["is_supported"]) for p in partners]
    return Text(
        support=np.array([[scores[t] for t in titles] for scores in support], dtype=float),
        groups=[by_name["grouped"][claim.id].group for claim in claims],
        titles=titles,
        alone=alone,
        grouped=np.array(verdicts),
        topics=[p and p["supporting_topic"] for p in partners],
        precisions=(alone.mean(), np.mean([atom["is_supported"] for atom in atoms])),
        people=len({atom["supporting_topic"] for atom in atoms} - {None}),
    )


class Judged(NamedTuple):
    """A document judged at a threshold.

    Attributes:
        right, labels: our verdicts and those of the file after grouping, for matched claims.
        right_alone, labels_alone: the same claim by claim, for all claims.
        linked: whether the titles are equal, for each claim that the file supports after grouping.
        scores: our FActScore and D-FActScore, then those of the file.
        people: whether more than one person is linked: ours, the file's.
    """

    right: np.ndarray
    labels: np.ndarray
    right_alone: np.ndarray
    labels_alone: np.ndarray
    linked: np.ndarray
    scores: tuple[float, float, float, float]
    people: tuple[bool, bool]


Grouping = Callable[[Text], list[str]]


def judge(text: Text, threshold: float, grouping: Grouping) -> Judged:
    """Link the groups and compute the verdicts."""
    supported = text.support >= threshold  # False for NaN
    groups = grouping(text)
    columns = link_groups(text.support, supported, groups)
    title = np.array([columns[group] for group in groups])
    is_supported = supported[np.arange(len(title)), title]
    paired = ~np.isnan(text.grouped)
    pairs = zip(title, text.topics, strict=True)
    is_same_title = np.array([text.titles[column] == topic for column, topic in pairs])
    any_title = supported.any(axis=1)
    return Judged(
        right=is_supported[paired],
        labels=text.grouped[paired] == 1,
        right_alone=any_title,
        labels_alone=text.alone,
        linked=is_same_title[text.grouped == 1],
        scores=(any_title.mean(), is_supported.mean(), *text.precisions),
        people=(len(set(title[is_supported])) > 1, text.people > 1),
    )


def figures(documents: list[Judged]) -> dict[str, float]:
    """All measures over several documents."""
    right, labels, right_alone, labels_alone, linked = (
        np.concatenate([getattr(d, name) for d in documents]) for name in Judged._fields[:5]
    )
    f, d, file_f, file_d = np.array([document.scores for document in documents]).T
    people = np.array([document.people for document in documents])
    alone = balanced_accuracy(confusion(labels_alone, right_alone))
    several = balanced_accuracy(confusion(people[:, 1], people[:, 0]))
    return {
        "verdicts after grouping, balanced accuracy": balanced_accuracy(confusion(labels, right)),
        "verdicts claim by claim, balanced accuracy": alone,
        "D-FActScore, Spearman": spearman(d, file_d),
        "FActScore, Spearman": spearman(f, file_f),
        "FActScore - D-FActScore, Spearman": spearman(f - d, file_f - file_d),
        "more than one linked person, balanced accuracy": several,
        "linked title equals supporting_topic": float(linked.mean()),
        "mean FActScore": float(f.mean()),
        "mean FActScore of the file": float(file_f.mean()),
        "mean D-FActScore": float(d.mean()),
        "mean D-FActScore of the file": float(file_d.mean()),
    }


def fit_threshold(texts: list[Text], grouping: Grouping) -> float:
    """The lowest threshold with the largest balanced accuracy after grouping."""

    def value(threshold: float) -> float:
        documents = [judge(text, threshold, grouping) for text in texts]
        predicted, true = (np.concatenate([d[k] for d in documents]) for k in (0, 1))
        return balanced_accuracy(confusion(true, predicted))

    return float(max(THRESHOLDS, key=value))


GROUPINGS: dict[str, Grouping] = {
    "our groups": lambda text: text.groups,
    "one group": lambda text: ["g"] * len(text.groups),
    "every claim by itself": lambda text: [str(k) for k in range(len(text.groups))],
}


def main() -> None:
    """Print the measures of both directions and all groupings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs=2, type=Path, help="two scored.jsonl of `eval score`")
    parser.add_argument("--half", type=int, choices=(0, 1), help="SHA-256 of the topic modulo 2")
    options = parser.parse_args()
    read_files = [read(path, options.half) for path in options.files]
    names = [path.parent.name for path in options.files]
    for fit, judge in ((0, 1), (1, 0)):
        texts, skipped = read_files[judge]
        counts = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
        print(f"{names[fit]} → {names[judge]}: {len(texts)} documents; skipped: {counts}")
        for kind, grouping in GROUPINGS.items():
            threshold = fit_threshold(read_files[fit][0], grouping)
            documents = [judge(text, threshold, grouping) for text in texts]
            pairs = sum(len(document.labels) for document in documents)
            claims = sum(len(document.labels_alone) for document in documents)
            print(f"  {kind}: threshold {threshold:.2f}, {pairs} atoms, {claims} claims")
            resampled = bootstrap(
                lambda rows, documents=documents: figures([documents[row] for row in rows]),
                range(len(documents)),
            )
            for name, value in resampled.items():
                low, high = value["ci95"] or (float("nan"), float("nan"))
                point = float("nan") if value["value"] is None else value["value"]
                print(f"    {name:48} {point:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    run_command(main)
