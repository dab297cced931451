"""``lss``: a dataset of longest supported subsequences from human annotations.

2308.12157, section 4: annotations of a pair are merged, compared and voted on; an adjudicator
decides open pairs; pairs are split by reference. Training balances lengths (``train``).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tqdm import tqdm

from data_builders.annotated.labelstudio_exports import project_pages
from data_builders.annotated.lss.lss_answers import read_answers
from data_builders.annotated.lss.lss_tasks import FORM, to_task
from data_builders.annotated.lss.votes import By, Vote, merge_gold, vote
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card, read_card
from data_builders.splits import SPLITS, by_split, drawn_splits, tied_groups
from eval.metrics.lss_agreement import Repeats, agreement, as_markdown, merge
from records import Annotation, LssExample, UserError
from records.types import group_of

# Every annotation has all of these, since rows of a file share their columns.
COLUMNS = ("lss", "lss_star", "rating", "annotator", "unrelated", "difficult", "adjudicated")
RECORD_FIELDS = {
    "reference",
    "claim",
    "annotations",
    "id",
    "keep",
    "split",
    "votes",
    "voters",
    "decided",
}


@dataclass
class Lss(Builder):
    """Longest supported subsequences from human annotations: merged, voted on, split.

    Args:
        output: folder of the dataset.
        annotations: Label Studio exports (``.json``), the published table (``.csv``), or files of
            LSS records. Annotations of the same pair are merged across files.
        adjudications: files of the same kinds whose annotations override the others, e.g. the
            export of the project in ``adjudicate/``.
        repeats: which answers of one annotator to the same pair count: ``latest`` or ``all``.
        vote_by: vote on single ``words`` (ours), or on ``whole`` LSS: the most common LSS wins if
            two or more annotators wrote it, whether or not it is a subsequence of the claim,
            otherwise the pair is open (2308.12157, section 4.1).
            A pair with a word that exactly half of the annotators keep is open too. Open pairs are
            in ``adjudicate.jsonl`` and not in gold.
        shares: references of train, dev and test. Rows with a ``split`` keep it.
        limit: use only the first N pairs, for a trial.
        seed: seed of the split.
    """

    annotations: list[str]
    adjudications: list[str] = field(default_factory=list)
    repeats: Repeats = "latest"
    vote_by: By = "words"
    shares: tuple[int, int, int] = (8, 1, 1)

    reads = ("annotations", "adjudications")
    least: ClassVar = {"shares": 0}

    def files(self) -> dict[str, dict[str, str]]:
        kinds = {kind: by_split(kind) for kind in ("lss", "gold")}
        return kinds | {"": {"adjudicate": "adjudicate.jsonl"}}

    def make(self, work: Work) -> Made:
        dropped = work.dropped
        examples = self._read(dropped)
        table = agreement(examples)
        votes = [
            vote(example, self.vote_by)
            for example in tqdm(examples, desc="votes", unit="pair", disable=None)
        ]
        notes = Counter(decision.decided for decision in votes)
        unaligned = sum(decision.unaligned for decision in votes)
        table["alignment"] = {
            "annotations": sum(len(example.annotations) for example in examples),
            "no_subsequence": unaligned,
            "pairs_decided": dict(sorted(notes.items())),
        }
        still_open = [e for e, v in zip(examples, votes, strict=True) if v.is_open]
        dropped["gold: a tie, to be adjudicated"] += notes["tie"]
        dropped["gold: no annotation is a subsequence of the claim"] += notes["unaligned"]
        pages = {"agreement.json": json.dumps(table, indent=2, ensure_ascii=False) + "\n"}
        if still_open:
            tasks = [to_task(example, "predictions") for example in still_open]
            pages |= project_pages(FORM, tasks, "adjudicate/")
        files = self._rows(examples, votes)
        files["adjudicate.jsonl"] = [_row(e, _extras(still_open)) for e in still_open]
        return Made(files, _card(table), pages)

    def _read(self, dropped: Counter[str]) -> list[LssExample]:
        answers = [e for path in self.annotations for e in read_answers(path, dropped)]
        for path in self.adjudications:
            for example in read_answers(path, dropped):
                final = [
                    a.model_copy(update={"adjudicated": True, "annotator": None})
                    for a in example.annotations
                ]
                answers.append(example.model_copy(update={"annotations": final}))
        examples = merge(answers, dropped, self.repeats)[: self.limit]
        if not examples:
            raise UserError("annotations: no usable pair; check that the export is not empty")
        return examples

    def _rows(self, examples: Sequence[LssExample], votes: Sequence[Vote]) -> dict[str, list[dict]]:
        split_of = self._splits(examples)
        extras = _extras(examples)
        files: dict[str, list[dict]] = defaultdict(list)
        for example, decision in zip(examples, votes, strict=True):
            split = split_of[group_of(example)]
            files[f"lss_{split}.jsonl"].append(_row(example, extras))
            if not decision.is_open:
                single = example.model_copy(update={"annotations": [merge_gold(example, decision)]})
                voted = {
                    "votes": decision.counts,
                    "voters": decision.voters,
                    "decided": decision.decided,
                }
                files[f"gold_{split}.jsonl"].append({**_row(single, extras), **voted})
        return dict(files)

    def _splits(self, examples: Sequence[LssExample]) -> dict[str, str]:
        named: dict[str, str] = {}
        for example in examples:
            split = (example.model_extra or {}).get("split")
            if split in SPLITS:
                first = named.setdefault(group_of(example), split)
                if first != split:
                    raise UserError(
                        f"{group_of(example)[:60]!r}: rows of one reference have `split` {first} "
                        f"and {split}; use one split per reference, or remove `split`"
                    )
        unnamed = [example for example in examples if group_of(example) not in named]
        if not unnamed:
            return named
        tied = tied_groups(unnamed, self.shares)
        drawn = drawn_splits(tied.values(), self.shares, self.seed)
        return named | {group: drawn[name] for group, name in tied.items()}


def _extras(examples: Sequence[LssExample]) -> list[str]:
    return sorted({name for e in examples for name in e.model_extra or {}} - RECORD_FIELDS)


def _row(example: LssExample, extras: Sequence[str]) -> dict:
    values = example.model_dump(mode="json", exclude={"annotations"})
    return {
        "id": example.id,
        "reference": example.reference,
        "claim": example.claim,
        "annotations": [_answer(annotation) for annotation in example.annotations],
        "keep": example.keep,
        **{name: values.get(name) for name in extras},
    }


def _answer(annotation: Annotation) -> dict:
    values = annotation.model_dump(mode="json")
    flags = {flag: bool(values.get(flag)) for flag in ("unrelated", "difficult", "adjudicated")}
    return {**{name: values.get(name) for name in COLUMNS}, **flags}


def _card(table: dict) -> Card:
    alignment = table["alignment"]
    decided = ", ".join(f"{n} {how}" for how, n in alignment["pairs_decided"].items())
    return read_card(
        "lss",
        pairs=table["pairs"],
        agreement=as_markdown(table),
        no_subsequence=alignment["no_subsequence"],
        annotations=alignment["annotations"],
        decided=decided,
    )
