"""An adaptive attacker with exact gold: it composes texts from a bank of statements.

The bank has true, repeated, false, denied, … statements about each topic; whose facts each credits
is known (``data_builders ladders`` writes it), so every text has an exact gold score. Per topic the
cross-entropy method (Rubinstein 1999) searches for the text that scores best under a column among
those with gold F1 of at most ``MOST_GOLD``: texts are drawn from a distribution over statements,
which moves to the frequencies in the best tenth.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jsonargparse.typing import PositiveInt
from pydantic import BaseModel

from components.statistics import t_interval
from eval.experiments.robustness.robustness_cells import ALL, Value, fields_of
from records import Document, gold_scores, read_records
from records.types import Record

MOST_GOLD = 0.6
_ELITE = 0.1  # share of the texts of a round that the next one imitates
_KEEP = 0.3  # share of the former distribution in the next one

# Documents to their scores under one column; NaN if a text has no score.
Score = Callable[[Sequence[Document]], Sequence[float]]


class BankStatement(Record):
    """A statement about a topic.

    Attributes:
        credits: ids of the facts of the topic that it credits; none if it is false.
        kind: ``true``, ``reworded``, ``false``, ``denied``, ….
        k: number of facts of a complete answer about the topic.
    """

    topic: str
    text: str
    credits: list[str]
    kind: str
    k: int


@dataclass(frozen=True)
class BankAttack:
    """The search for the best text.

    Args:
        statements: files of statements with known credit.
        under: defences (``none`` for none) under which texts are searched, of each metric.
        metrics: metrics that are attacked; by default all pipelines.
        texts: number of texts that are scored per topic and column.
        rounds: rounds of the search.
        sentences: number of sentences of a text.
    """

    statements: list[str]
    under: list[str] = field(default_factory=lambda: ["none"])
    metrics: list[str] | None = None
    texts: PositiveInt = 4096
    rounds: PositiveInt = 16
    sentences: PositiveInt = 10

    def topics(self, drawn: Sequence[str]) -> list["BankTopic"]:
        """The statements of each topic that is scored."""
        rows = [row for path in self.statements for row in read_records(path, BankStatement)]
        banks: dict[str, list[BankStatement]] = {topic: [] for topic in sorted(drawn)}
        for row in rows:
            if row.topic in banks:
                banks[row.topic].append(row)
        return [BankTopic(id=topic, bank=bank) for topic, bank in banks.items() if bank]


class BankTopic(BaseModel):
    """A topic and its statements; the id is the topic."""

    id: str
    bank: list[BankStatement]


class BankText(BaseModel):
    """The best text of a topic, and how the search went.

    Attributes:
        document: the text; ``None`` if no text with a score and little enough gold was found.
        curve: number of scored texts, best score and its gold F1, after each round.
    """

    document: Document | None
    curve: list[tuple[int, float, float]]


def search(
    topics: Sequence[BankTopic], score: Score, options: BankAttack, kind: str, seed: int
) -> list[BankText]:
    """Search for the best text of each topic; the texts of a round are scored together."""
    draws = [np.random.default_rng(random.Random(f"{seed}:{t.id}").getrandbits(64)) for t in topics]
    shares = [np.full(len(topic.bank), 1 / len(topic.bank)) for topic in topics]
    size = max(1, options.texts // options.rounds)
    best: list[tuple[float, Document] | None] = [None] * len(topics)
    curves: list[list[tuple[int, float, float]]] = [[] for _ in topics]
    for number in range(options.rounds):
        choices = [
            draw.choice(len(share), (size, options.sentences), p=share)
            for draw, share in zip(draws, shares, strict=True)
        ]
        texts = [
            [
                _text(topic, row, f"{kind}: {topic.id}: {number} {n}", kind)
                for n, row in enumerate(rows)
            ]
            for topic, rows in zip(topics, choices, strict=True)
        ]
        scores = iter(score([text for of_topic in texts for text in of_topic]))
        for place, (of_topic, rows) in enumerate(zip(texts, choices, strict=True)):
            values = np.array([next(scores) for _ in of_topic], dtype=float)
            allowed = np.array([text.gold.f1 <= MOST_GOLD for text in of_topic])
            values = np.where(allowed & ~np.isnan(values), values, -np.inf)
            first = int(values.argmax())
            if values[first] > (best[place][0] if best[place] else -np.inf):
                best[place] = (float(values[first]), of_topic[first])
            elite = rows[np.argsort(-values, kind="stable")[: max(1, int(_ELITE * size))]]
            counts = np.bincount(elite.ravel(), minlength=len(shares[place]))
            shares[place] = _KEEP * shares[place] + (1 - _KEEP) * counts / counts.sum()
            if best[place]:
                value, document = best[place]
                curves[place].append(((number + 1) * size, value, document.gold.f1))
    return [
        BankText(document=pair and pair[1], curve=curve)
        for pair, curve in zip(best, curves, strict=True)
    ]


def _text(topic: BankTopic, choice: np.ndarray, name: str, kind: str) -> Document:
    statements = [topic.bank[index] for index in choice]
    gold = gold_scores([s.credits for s in statements], statements[0].k, "construction")
    text = " ".join(statement.text for statement in statements)
    fields = {"kind": kind, "generator": "bank", "family": "bank", "gold": gold}
    return Document(id=name, topic=topic.id, text=text, **fields)


def bank_curve_values(
    column: tuple[str, str], kind: str, curves: Sequence[Sequence[tuple[int, float, float]]]
) -> Iterator[Value]:
    """``bank_score`` and ``bank_gold`` of the best text so far, by number of scored texts."""
    metric, selection = column
    shared = {"assessor": metric, "selection": selection, "kind": kind, "generator": ALL}
    steps: Mapping[int, list[tuple[float, float]]] = {}
    for queries, value, gold in (point for curve in curves for point in curve):
        steps.setdefault(queries, []).append((value, gold))
    for queries in sorted(steps):
        values = np.array(steps[queries])
        for name, of_texts in zip(("bank_score", "bank_gold"), values.T, strict=True):
            row = shared | {"metric": name, "variant": queries, "failed": 0}
            yield row | fields_of(t_interval(of_texts))
