"""``framed_pairs``: texts that state a sentence or take it back, to judge a text's own claims.

A judge that reads one claim cannot see a frame in another sentence. Here the premise is a text of
true statements with a frame of the bank ``seen`` or a harmless ``twin`` (``attacks/frames.yaml``),
and the hypothesis is one of its statements.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, get_args

from data_builders.builder import Builder, Made, Work
from data_builders.evenness import pair_card
from data_builders.written.attacks.discourse import frame_statements
from data_builders.written.attacks.frames import DiscourseForm
from records import RelationPair, UserError, group_of, read_records


@dataclass
class FramedPairs(Builder):
    """Statements with texts that state them (entailment) or take them back (``not_entailment``).

    Args:
        pairs: files of relation pairs whose ``group`` is the topic; only pairs with label
            ``entailment`` are used.
        sentences: maximum number of statements of a text.
        texts: texts per topic and bank, each in a form drawn at random.
    """

    pairs: list[str]
    sentences: int = 5
    texts: int = 2

    reads = ("pairs",)
    least: ClassVar = {"sentences": 1, "texts": 1}

    def files(self) -> dict[str, dict[str, str]]:
        return {"relation": {"train": "relation_train.jsonl"}}

    def make(self, work: Work) -> Made:
        statements: dict[str, set[str]] = defaultdict(set)
        for path in self.pairs:
            for pair in read_records(path, RelationPair)[: self.limit]:
                if pair.label == "entailment" and pair.hypothesis.startswith(group_of(pair)):
                    statements[group_of(pair)].add(pair.hypothesis)
        rows = [row for topic in sorted(statements) for row in self._rows(topic, statements[topic])]
        if not rows:
            raise UserError("pairs: no entailed statement begins with its group")
        card, details = pair_card("framed_pairs", rows)
        return Made({"relation_train.jsonl": rows}, card, details=details)

    def _rows(self, topic: str, statements: set[str]) -> Iterator[RelationPair]:
        rng = random.Random(f"{self.seed}:{topic}")
        for _ in range(self.texts):
            size = rng.randint(1, min(len(statements), self.sentences))
            texts = rng.sample(sorted(statements), size)
            form = rng.choice(get_args(DiscourseForm))
            # Probes measure `seen`, so further frames for training are in banks of their own.
            more = rng.choice(("", "more_", "more_"))
            for bank, label in (("seen", "not_entailment"), ("twin", "entailment")):
                yield RelationPair(
                    premise=frame_statements(form, f"{more}{bank}", texts, topic, rng)[1],
                    hypothesis=rng.choice(texts),
                    label=label,
                    source=f"framed/{form} {bank}",
                    group=topic,
                )
