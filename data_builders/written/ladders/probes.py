"""``probes``: documents of one claim each, by which a column of a robustness table is certified."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from data_builders.builder import Made, Work
from data_builders.dataset import read_card
from data_builders.written.ladders.ladders import StatementBuilder, topic_document
from data_builders.written.ladders.statement_kinds import draw_statements
from records import Document

# Family of probes and bank of phrases to a kind of statement; ``plain`` has no phrases.
PROBES = {
    ("true single", "plain"): "true",
    ("true compound", "plain"): "compound",
    ("true reworded", "plain"): "reworded",
    ("true reworded", "seen"): "affirmed",
    ("true reworded", "unseen"): "affirmed",
    ("false negation", "seen"): "denied",
    ("false negation", "unseen"): "denied",
    ("false subject", "seen"): "subject",
    ("false subject", "unseen"): "subject",
    ("false number", "plain"): "number",
    ("false name", "plain"): "name",
    ("false part", "plain"): "part",
    ("false relation", "seen"): "relation",
    ("false relation", "unseen"): "relation",
    ("false frame", "seen"): "frame",
    ("false frame", "unseen"): "frame",
    ("false discourse", "seen"): "discourse",
    ("false discourse", "unseen"): "discourse",
    ("false hidden", "seen"): "hidden",
    ("false hidden", "unseen"): "hidden",
    ("bleached", "seen"): "bleached",
    ("bleached", "unseen"): "bleached",
    ("off topic", "plain"): "off topic",
}


@dataclass
class Probes(StatementBuilder):
    """Documents of one claim each, by family: true, false in one respect, bleached, off topic.

    Args:
        per_family: number of probes of each family and bank, spread evenly over the topics.
    """

    per_family: int = 216

    least: ClassVar = {"per_family": 1}

    def files(self) -> dict[str, dict[str, str]]:
        return {"probes": {"test": "probes.jsonl"}}

    def make(self, work: Work) -> Made:
        return Made({"probes.jsonl": self._rows()}, read_card("probes"))

    def _rows(self) -> Iterator[Document]:
        topics = self.topics()
        per_topic = math.ceil(self.per_family / len(topics))
        for (probe, bank), kind in PROBES.items():
            for topic in topics:
                rng = random.Random(f"{self.seed}:{topic.name}:{probe}:{bank}")
                other_topics = [other for other in topics if other != topic]
                claims = draw_statements(rng, topic, kind, bank, per_topic, other_topics)
                for number, claim in enumerate(claims):
                    yield topic_document(
                        topic,
                        f"{probe} {bank} {number}",
                        [claim],
                        kind="probe",
                        probe=probe,
                        bank=bank,
                        passages=[topic.page],
                    )
