"""``ladders``: honest texts of known quality about each topic, and statements with their credit.

A ladder is six texts per topic, of whose K statements 0, 20, … 100 % are true and state different
facts, so that gold F1 is that share. Three ladders differ in the words of the statements:
rewordings (``ladder``), true twins of the phrases of attacks on the judge (``affirmed``), and
the first wording, which is the closest to the topic's page (``quoted``, a control).
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import read_card
from data_builders.evenness import shared_runs
from data_builders.written.attacks.phrases import Bank
from data_builders.written.claims.clauses import as_sentence
from data_builders.written.claims.validity import SentenceClaim, join_sentences
from data_builders.written.ladders.lead_topics import (
    FalseVersion,
    K,
    Statement,
    StatementTopic,
    lead_topics,
)
from data_builders.written.ladders.statement_kinds import (
    affirm,
    compound,
    draw_statements,
    state,
)
from data_builders.written.leads.false_values import article_files
from records import Document, gold_scores

RUNGS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
LADDERS = ("ladder", "affirmed", "quoted")
RELATED = 0.8  # share of false statements whose words are those of the page
COMPOUNDS = 0.15  # share of the ladder ``affirmed``
# Number of the bank attacker's statements per topic, by kind.
STATEMENTS = {
    "true": 10,
    "reworded": 4,
    "false": 4,
    "denied": 2,
    "subject": 2,
    "frame": 2,
    "compound": 2,
    "bleached": 2,
    "vague": 2,
}


class Rung(NamedTuple):
    """The statements of a text: each with a false version, or ``None`` where it is true."""

    statements: list[Statement]
    false: list[FalseVersion | None]


@dataclass
class StatementBuilder(Builder):
    """Base class of builders that write the statements of people.

    Args:
        leads: output of ``leads``.
        split: whose people are read; texts for a training must not be about test people.
    """

    leads: str = "data/leads"
    split: Literal["dev", "test"] = "test"

    reads: ClassVar = ("leads",)

    def inputs(self) -> list[str]:
        return article_files(self.leads, self.split)

    def plan(self) -> list[Step]:
        return [Step("statements", self.leads, self.limit, "topics")]

    def topics(self) -> list[StatementTopic]:
        return lead_topics(self.leads, self.split, self.seed)[: self.limit]


@dataclass
class Ladders(StatementBuilder):
    """Honest texts of known quality about each topic, and statements with their credit.

    Args:
        bank: phrases of the ladder ``affirmed``; its ``seen`` phrases may be trained on.
    """

    bank: Bank = "unseen"

    def files(self) -> dict[str, dict[str, str]]:
        return {name: {"test": f"{name}.jsonl"} for name in (*LADDERS, "complete", "statements")}

    def make(self, work: Work) -> Made:
        topics = self.topics()
        files: dict[str, list] = {f"{name}.jsonl": [] for name in (*LADDERS, "complete")}
        runs: dict[str, list[float]] = defaultdict(list)
        for topic in topics:
            for rung in RUNGS:
                rng = random.Random(f"{self.seed}:{topic.name}:{rung}")
                drawn = _draw(rng, topic, rung)
                for name in LADDERS:
                    claims = getattr(self, f"_{name}")(rng, topic, drawn)
                    document = _rung_document(topic, name, rung, list(claims))
                    files[f"{name}.jsonl"].append(document)
                    runs[name].append(shared_runs(document.text, topic.page.text))
                if rung == 1:
                    complete = _with_versions(files["ladder.jsonl"][-1], drawn.statements)
                    files["complete.jsonl"].append(complete)
        files["statements.jsonl"] = [row for t in topics for row in _bank_rows(self.seed, t)]
        figures = {
            "topics": len(topics),
            "shared_five_word_runs": {n: round(float(np.mean(v)), 3) for n, v in runs.items()},
        }
        pages = {"statistics.json": json.dumps(figures, indent=2) + "\n"}
        return Made(files, read_card("ladders", k=K, bank=self.bank), pages)

    def _ladder(
        self, rng: random.Random, topic: StatementTopic, rung: Rung
    ) -> Iterator[SentenceClaim]:
        for statement, false in zip(*rung, strict=True):
            text = rng.choice(statement.wordings) if false is None else false.text
            yield state(statement, false, text)

    def _quoted(
        self, rng: random.Random, topic: StatementTopic, rung: Rung
    ) -> Iterator[SentenceClaim]:
        for statement, false in zip(*rung, strict=True):
            text = statement.text if false is None else false.text
            yield state(statement, false, text)

    def _affirmed(
        self, rng: random.Random, topic: StatementTopic, rung: Rung
    ) -> Iterator[SentenceClaim]:
        true = [s for s, false in zip(*rung, strict=True) if false is None]
        for statement, false in zip(*rung, strict=True):
            other_true = [s for s in true if s != statement]
            if other_true and rng.random() < COMPOUNDS:
                stated = state(statement, false, false.text if false else statement.text)
                yield compound(rng, topic, stated, rng.choice(other_true))
            else:
                yield affirm(rng, topic, statement, false, self.bank)


def _draw(rng: random.Random, topic: StatementTopic, rung: float) -> Rung:
    drawn = sorted(rng.sample(range(len(topic.statements)), K))
    statements = [topic.statements[index] for index in drawn]
    true = set(rng.sample(range(K), round(rung * K)))
    false = [None if n in true else _draw_false(rng, s) for n, s in enumerate(statements)]
    return Rung(statements, false)


def _draw_false(rng: random.Random, statement: Statement) -> FalseVersion:
    """A false version, of which most are words of the page in a wrong relation, if possible."""
    related = [version for version in statement.false if version.changed == "relation"]
    exchanged = [version for version in statement.false if version.changed != "relation"]
    return rng.choice(related if related and rng.random() < RELATED else exchanged)


def topic_document(
    topic: StatementTopic, name: str, sentence_claims: Sequence[SentenceClaim], **fields: Any
) -> Document:
    """A document about a topic; each sentence is a claim."""
    text = join_sentences(sentence_claims)
    return Document(
        id=f"{topic.name} {name}",
        topic=topic.name,
        text=text.text,
        claims=text.claims,
        generator="ladders",
        group=topic.group,
        **fields,
    )


def _rung_document(
    topic: StatementTopic, kind: str, rung: float, sentence_claims: Sequence[SentenceClaim]
) -> Document:
    gold = gold_scores([claim.rests_on for claim in sentence_claims], K, "construction")
    return topic_document(topic, f"{kind} {rung}", sentence_claims, kind=kind, rung=rung, gold=gold)


def _with_versions(document: Document, statements: Sequence[Statement]) -> Document:
    """The claims with the versions that attacks use."""
    claims = [
        claim.model_copy(update=statement.versions(claim.text))
        for claim, statement in zip(document.claims, statements, strict=True)
    ]
    return document.model_copy(update={"claims": claims})


def _bank_rows(seed: int, topic: StatementTopic) -> Iterator[dict[str, Any]]:
    rng = random.Random(f"{seed}:{topic.name}:bank")
    number = 0
    for kind, most in STATEMENTS.items():
        for claim in draw_statements(rng, topic, kind, "seen", most):
            yield {
                "id": f"{topic.name} {number}",
                "topic": topic.name,
                "text": as_sentence(claim.text),
                "credits": list(claim.rests_on),
                "kind": kind,
                "k": K,
            }
            number += 1
