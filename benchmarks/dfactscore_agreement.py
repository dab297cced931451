"""Whether D-FActScore agrees with AmbigBio's own verdicts after grouping, both ways round.

    C=configs/eval/small/dfactscore.yaml
    python -m eval score --config $C --documents ONE.jsonl --output runs/ONE
    python -m eval score --config $C --documents OTHER.jsonl --output runs/OTHER
    python benchmarks/dfactscore_agreement.py runs/ONE/scored.jsonl runs/OTHER/scored.jsonl

The threshold of support is fitted on the one file (largest balanced accuracy of the verdicts after
grouping) and judged on the other; groups are linked anew at each threshold, by the probabilities of
all titles that the verdicts keep. Of the judged file are printed:

- balanced accuracy of the verdicts with ``is_supported``, after grouping and claim by claim;
- Spearman's correlation over documents of D-FActScore, FActScore and their difference;
- balanced accuracy of "more than one linked person" (distinct ``supporting_topic``);
- the share of the atoms supported in the file that are linked to their ``supporting_topic``;
- our means and the file's.

Beside it all claims as one group, and every claim as its own: what grouping adds. An atom of
``atoms_grouped`` is found by its text among the claims, which are those of ``atoms_independent``;
atoms and claims without a partner are counted. Intervals are the bootstrap's over documents, the
threshold held fixed. ``--half`` takes the documents whose topics a relation model has not seen.
"""

from __future__ import annotations

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
    """A document: ours and the file's, a row a claim.

    Attributes:
        support: probability of each title, shape (claims, titles).
        groups: labels of our groups.
        alone, grouped: the file's verdicts; of ``grouped`` NaN where the claim has no partner.
        topics: the file's ``supporting_topic`` after grouping.
        precisions: the file's FActScore and D-FActScore, over all its atoms.
        people: number of distinct titles that the file's atoms are linked to.
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
    """The documents of a ``scored.jsonl``, and what was left out."""
    texts, left_out = [], defaultdict(int)
    for row in read_records(path, Scored):
        atoms = row.document.model_extra.get("atoms_grouped") or []
        digest = hashlib.sha256(row.document.topic.encode()).hexdigest()
        if half is not None and int(digest, 16) % 2 != half:
            continue
        own = [v for v in row.verdicts if v.assessor == "dfactscore" and v.label != "failed"]
        # A title of which nothing was told could win at another threshold.
        own = [v for v in own if None not in (v.model_extra or {}).get("support", {}).values()]
        by_name = {name: {v.claim: v for v in own if v.name == name} for name in NAMES}
        claims = [c for c in row.claims if all(c.id in by_name[name] for name in NAMES)]
        left_out["claims that failed"] += len(row.claims) - len(claims)
        if not claims or not atoms:
            left_out["documents without claims or atoms"] += 1
            continue
        text = joined(claims, by_name, atoms)
        left_out["claims without an atom"] += int(np.isnan(text.grouped).sum())
        left_out["atoms without a claim"] += len(atoms) - int((~np.isnan(text.grouped)).sum())
        texts.append(text)
    return texts, left_out


NAMES = ("independent", "grouped")


def joined(claims: list, by_name: dict, atoms: list[dict]) -> Text:
    """Claims beside the atoms of the same text; of equal texts the first ones come together."""
    pool = defaultdict(list)
    for atom in atoms:
        pool[atom["atom"].strip()].append(atom)
    partners = [
        pool[text].pop(0) if pool[text] else None for text in (c.text.strip() for c in claims)
    ]
    support = [by_name["independent"][claim.id].model_extra["support"] for claim in claims]
    titles = list(support[0])
    alone = np.array([claim.label == "S" for claim in claims])
    verdicts = [np.nan if p is None else float(p["is_supported"]) for p in partners]
    return Text(
        support=np.array([[own[t] for t in titles] for own in support], dtype=float),
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
        right, labels: our and the file's verdicts after grouping, of claims with a partner.
        right_alone, labels_alone: the same claim by claim, of all claims.
        linked: of each claim that the file supports after grouping, whether the title is the same.
        scores: FActScore and D-FActScore: ours, then the file's.
        people: more than one linked person: ours, the file's.
    """

    right: np.ndarray
    labels: np.ndarray
    right_alone: np.ndarray
    labels_alone: np.ndarray
    linked: np.ndarray
    scores: tuple[float, float, float, float]
    people: tuple[bool, bool]


Grouping = Callable[[Text], list[str]]


def judged(text: Text, threshold: float, grouping: Grouping) -> Judged:
    """Link the groups and read the verdicts."""
    supported = text.support >= threshold  # NaN supports nothing
    groups = grouping(text)
    columns = link_groups(text.support, supported, groups)
    title = np.array([columns[group] for group in groups])
    own = supported[np.arange(len(title)), title]
    paired = ~np.isnan(text.grouped)
    pairs = zip(title, text.topics, strict=True)
    same = np.array([text.titles[column] == topic for column, topic in pairs])
    any_title = supported.any(axis=1)
    return Judged(
        right=own[paired],
        labels=text.grouped[paired] == 1,
        right_alone=any_title,
        labels_alone=text.alone,
        linked=same[text.grouped == 1],
        scores=(any_title.mean(), own.mean(), *text.precisions),
        people=(len(set(title[own])) > 1, text.people > 1),
    )


def figures(documents: list[Judged]) -> dict[str, float]:
    """All figures of some documents."""
    right, labels, right_alone, labels_alone, linked = (
        np.concatenate([getattr(d, name) for d in documents]) for name in Judged._fields[:5]
    )
    f, d, file_f, file_d = np.array([document.scores for document in documents]).T
    people = np.array([document.people for document in documents])
    return {
        "verdicts after grouping, balanced accuracy": balanced_accuracy(confusion(labels, right)),
        "verdicts claim by claim, balanced accuracy": balanced_accuracy(
            confusion(labels_alone, right_alone)
        ),
        "D-FActScore, Spearman": spearman(d, file_d),
        "FActScore, Spearman": spearman(f, file_f),
        "FActScore - D-FActScore, Spearman": spearman(f - d, file_f - file_d),
        "more than one linked person, balanced accuracy": balanced_accuracy(
            confusion(people[:, 1], people[:, 0])
        ),
        "linked title equals supporting_topic": float(linked.mean()),
        "mean FActScore": float(f.mean()),
        "mean FActScore of the file": float(file_f.mean()),
        "mean D-FActScore": float(d.mean()),
        "mean D-FActScore of the file": float(file_d.mean()),
    }


def fitted(texts: list[Text], grouping: Grouping) -> float:
    """The threshold with the largest balanced accuracy after grouping; of several the lowest."""

    def value(threshold: float) -> float:
        found = [judged(text, threshold, grouping) for text in texts]
        said, true = (np.concatenate([d[k] for d in found]) for k in (0, 1))
        return balanced_accuracy(confusion(true, said))

    return float(max(THRESHOLDS, key=value))


GROUPINGS: dict[str, Grouping] = {
    "our groups": lambda text: text.groups,
    "one group": lambda text: ["g"] * len(text.groups),
    "every claim by itself": lambda text: [str(k) for k in range(len(text.groups))],
}


def main() -> None:
    """Print the figures of both directions and all groupings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs=2, type=Path, help="two scored.jsonl of `eval score`")
    parser.add_argument("--half", type=int, choices=(0, 1), help="SHA-256 of the topic modulo 2")
    options = parser.parse_args()
    read_files = [read(path, options.half) for path in options.files]
    names = [path.parent.name for path in options.files]
    for fit, judge in ((0, 1), (1, 0)):
        texts, left_out = read_files[judge]
        counts = ", ".join(f"{count} {what}" for what, count in left_out.items())
        print(f"{names[fit]} → {names[judge]}: {len(texts)} documents; left out: {counts}")
        for kind, grouping in GROUPINGS.items():
            threshold = fitted(read_files[fit][0], grouping)
            found = [judged(text, threshold, grouping) for text in texts]
            pairs, claims = (
                sum(len(d.labels) for d in found),
                sum(len(d.labels_alone) for d in found),
            )
            print(f"  {kind}: threshold {threshold:.2f}, {pairs} atoms, {claims} claims")
            resampled = bootstrap(
                lambda rows, found=found: figures([found[row] for row in rows]), range(len(found))
            )
            for name, value in resampled.items():
                low, high = value["ci95"] or (float("nan"), float("nan"))
                shown = float("nan") if value["value"] is None else value["value"]
                print(f"    {name:48} {shown:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    run_command(main)
