"""``lss``: a dataset of longest supported subsequences from people's annotations.

2308.12157, section 4: annotations of a pair are put together, compared, voted on, what they leave
open goes to an adjudicator, and the pairs are balanced and split by reference.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tqdm import tqdm

from data_builders.annotated.labelstudio_exports import project_pages
from data_builders.annotated.lss.lss_agreement import agreement, as_markdown
from data_builders.annotated.lss.lss_tasks import FORM, to_task
from data_builders.annotated.lss.sources import Repeats, merge, read_answers
from data_builders.annotated.lss.votes import By, OnTie, Vote, gold, length_class, vote
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from data_builders.splits import SPLITS, by_split, drawn_splits, tied_groups
from records import Annotation, LssExample, UserError
from records.types import group_of

# All rows of a file have the same columns; these stand in every annotation.
COLUMNS = ("lss", "lss_star", "rating", "annotator", "unrelated", "difficult", "adjudicated")
OWN = {"reference", "claim", "annotations", "id", "keep", "split", "votes", "voters", "decided"}


@dataclass
class Lss(Builder):
    """Longest supported subsequences from people's annotations: merged, voted on, split.

    Args:
        output: folder of the dataset.
        annotations: exports of Label Studio (``.json``), the published table (``.csv``), or files
            of LSS records. Annotations of the same pair are put together across files.
        adjudications: files of the same kinds, whose annotations override the others, e.g. the
            export of the project in ``adjudicate/``.
        repeats: whether only the ``latest`` of several answers of one annotator to the same pair
            counts, or ``all``, as the published table has them.
        vote_by: single ``words`` (ours), or ``whole`` LSS, of which the commonest wins if two or
            more annotators wrote it (2308.12157, section 4.1) and which leave a pair open else.
        on_tie: what becomes of a word that exactly half of the annotators keep: ``open`` writes the
            pair to ``adjudicate.jsonl`` and leaves it out of the gold; ``keep``, ``remove``.
        unrelated: whether pairs that more than half of the annotators call unrelated stay.
        balance: classes of train that are cut to like sizes: gold ratings (``rating``), or shares
            of the claim's words that gold keeps (``length``: none, up to a third, up to two thirds,
            less than all, all).
        balance_factor: a class keeps at most this many times the pairs of the smallest class.
        shares: references of train, dev and test. Rows that name their ``split`` keep it.
        limit: only the first so many pairs, for a trial.
        seed: of the split and of what balancing leaves out.
    """

    annotations: list[str]
    adjudications: list[str] = field(default_factory=list)
    repeats: Repeats = "latest"
    vote_by: By = "words"
    on_tie: OnTie = "open"
    unrelated: Literal["keep", "drop"] = "keep"
    balance: Literal["none", "rating", "length"] = "none"
    balance_factor: float = 1.0
    shares: tuple[int, int, int] = (8, 1, 1)

    reads = ("annotations", "adjudications")
    least: ClassVar = {"balance_factor": 1, "shares": 0}

    def faults(self) -> Iterable[str]:
        if self.vote_by == "whole" and self.on_tie != "open":
            yield f"on_tie: {self.on_tie} is about words; with whole LSS leave it open"

    def files(self) -> dict[str, dict[str, str]]:
        kinds = {kind: by_split(kind) for kind in ("lss", "gold")}
        return kinds | {"": {"adjudicate": "adjudicate.jsonl"}}

    def make(self, work: Work) -> Made:
        dropped = work.dropped
        examples = self._read(dropped)
        table = agreement(examples)
        votes = [
            vote(example, self.on_tie, self.vote_by)
            for example in tqdm(examples, desc="votes", unit="pair", disable=None)
        ]
        notes = Counter(decision.decided for decision in votes)
        unaligned = sum(decision.unaligned for decision in votes)
        table["alignment"] = {
            "annotations": sum(len(example.annotations) for example in examples),
            "no_subsequence": unaligned,
            "pairs_decided": dict(sorted(notes.items())),
        }
        still_open = [e for e, v in zip(examples, votes, strict=True) if v.keep is None]
        dropped["gold: a tie, to be adjudicated"] += notes["tie"]
        dropped["gold: no annotation is a subsequence of the claim"] += notes["unaligned"]
        pages = {"agreement.json": json.dumps(table, indent=2, ensure_ascii=False) + "\n"}
        if still_open:
            tasks = [to_task(example, "predictions") for example in still_open]
            pages |= project_pages(FORM, tasks, "adjudicate/")
        files = self._rows(examples, votes, dropped)
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
        if self.unrelated == "drop":
            kept = [example for example in examples if not _is_unrelated(example)]
            dropped["pair whose reference is unrelated"] += len(examples) - len(kept)
            examples = kept
        if not examples:
            raise UserError("annotations: not one usable pair; see that the export is not empty")
        return examples

    def _rows(
        self, examples: Sequence[LssExample], votes: Sequence[Vote], dropped: Counter[str]
    ) -> dict[str, list[dict]]:
        split_of = self._splits(examples)
        left_out = self._unbalanced(examples, votes, split_of, dropped)
        extras = _extras(examples)
        files: dict[str, list[dict]] = defaultdict(list)
        for place, (example, decision) in enumerate(zip(examples, votes, strict=True)):
            if place in left_out:
                continue
            split = split_of[group_of(example)]
            files[f"lss_{split}.jsonl"].append(_row(example, extras))
            if decision.keep is not None:
                single = example.model_copy(update={"annotations": [gold(example, decision)]})
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
            own = (example.model_extra or {}).get("split")
            if own in SPLITS:
                first = named.setdefault(group_of(example), own)
                if first != own:
                    raise UserError(
                        f"{group_of(example)[:60]!r}: rows of one reference say `split` {first} "
                        f"and {own}; give each reference one split, or leave `split` out"
                    )
        others = [example for example in examples if group_of(example) not in named]
        if not others:
            return named
        tied = tied_groups(others, self.shares)
        drawn = drawn_splits(tied.values(), self.shares, self.seed)
        return named | {group: drawn[name] for group, name in tied.items()}

    def _unbalanced(
        self,
        examples: Sequence[LssExample],
        votes: Sequence[Vote],
        split_of: dict[str, str],
        dropped: Counter[str],
    ) -> set[int]:
        """Places of the pairs of train that balancing leaves out.

        Every class of train is cut, by a seeded draw, to ``balance_factor`` times the size of the
        smallest class that has a pair at all. Dev and test keep the proportions that people found.
        """
        if self.balance == "none":
            return set()
        classes: dict[str, list[int]] = defaultdict(list)
        left_out = set()
        for place, (example, decision) in enumerate(zip(examples, votes, strict=True)):
            if split_of[group_of(example)] != "train":
                continue
            name = _class_of(example, decision, self.balance)
            if name is None:
                left_out.add(place)
            else:
                classes[name].append(place)
        dropped["train: no class to balance by"] += len(left_out)
        most = int(self.balance_factor * min(map(len, classes.values()), default=0))
        for name, places in sorted(classes.items()):
            rng = random.Random(f"{self.seed}:balance:{name}")
            away = set(places) - set(rng.sample(places, min(most, len(places))))
            dropped[f"train: balanced away from class {name}"] += len(away)
            left_out |= away
        return left_out


def _class_of(example: LssExample, decision: Vote, balance: str) -> str | None:
    if decision.keep is None:
        return None
    if balance == "length":
        return length_class(decision)
    rating = gold(example, decision).rating
    return None if rating is None else f"rating {int(rating)}"  # 3.5 is not yet a 4


def _is_unrelated(example: LssExample) -> bool:
    flags = [bool((a.model_extra or {}).get("unrelated")) for a in example.annotations]
    return 2 * sum(flags) > len(flags)


def _extras(examples: Sequence[LssExample]) -> list[str]:
    return sorted({name for e in examples for name in e.model_extra or {}} - OWN)


def _row(example: LssExample, extras: Sequence[str]) -> dict:
    own = example.model_dump(mode="json", exclude={"annotations"})
    return {
        "id": example.id,
        "reference": example.reference,
        "claim": example.claim,
        "annotations": [_answer(annotation) for annotation in example.annotations],
        "keep": example.keep,
        **{name: own.get(name) for name in extras},
    }


def _answer(annotation: Annotation) -> dict:
    own = annotation.model_dump(mode="json")
    flags = {flag: bool(own.get(flag)) for flag in ("unrelated", "difficult", "adjudicated")}
    return {**{name: own.get(name) for name in COLUMNS}, **flags}


def _card(table: dict) -> Card:
    alignment = table["alignment"]
    decided = ", ".join(f"{n} {how}" for how, n in alignment["pairs_decided"].items())
    text = TEXT + (
        f"\n## Agreement\n\n{table['pairs']} pairs have several annotations.\n\n"
        f"{as_markdown(table)}\n\n{alignment['no_subsequence']} of {alignment['annotations']} "
        "annotations are no subsequence of their claim's words; they are in `lss` all the same and "
        f"do not vote. Pairs by how they were decided: {decided}.\n"
    )
    return Card(
        pretty_name="Longest supported subsequences, annotated",
        license="other",
        task_categories=("token-classification",),
        tags=("factuality", "faithfulness", "lss"),
        text=text,
    )


TEXT = """\
Claims, references and the longest subsequence of the claim's words that the reference supports
(2308.12157), as people annotated them.

- `lss`: every pair with each annotation: `lss`, `lss_star` (the same as a good sentence), `rating`
  (1 to 5), the annotator, and flags.
- `gold`: one annotation a pair. Of each word the majority decides (or of whole LSS, with `vote_by:
  whole`); `votes` counts how many keep a word, of `voters`, and `decided` says how: `single` (one
  annotator), `unanimous`, `majority` (by words it may be an LSS that nobody wrote) or
  `adjudicated`. `lss_star` is that of the annotation nearest to the vote, `rating` the median.
- `adjudicate.jsonl` and `adjudicate/`: pairs without gold, where words tie, all whole LSS differ
  or no annotation is a subsequence, and a Label Studio project of them; give its export as
  `adjudications`.
- `agreement.json`: every two annotations of a pair compared, and every three.

All pairs of a reference stay in one split. Only train is balanced, if at all; `manifest.json`
counts what that leaves out. Judgments are about the reference as it stands, not about the truth of
the claim. The licence is that of the annotations and the texts.
"""
