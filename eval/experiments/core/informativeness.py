"""Does w_Info order claims by the number of people they are true of? (Core, 2407.03572, section 3.)

Claims of several classes, from likely to rare, are scored as in Core: p(claim) = max_h p(claim | h)
over the bleached claims h about the topic. The AUROC of the first class against all others measures
"entailed by a bleached claim"; the AUROC of each pair measures the order of the other classes.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from pydantic import BaseModel, ConfigDict

from components.sentences import split_sentences
from components.statistics import auroc
from eval.experiments.experiment import Experiment, Outcome, require_non_negative
from eval.experiments.quantities import Quantity, estimate
from eval.report.declare import Figure, Page, Table
from eval.run.run import Run
from eval.select.judgements import likelihoods
from eval.select.weights import fill_topic, load_bleached
from eval.stages import UnliModel
from records import Claim, Document, UserError, read_records
from records.cleaning import clean

TABLES = [
    Table(title, {"kind": "Classes"}, ["variant", "against"], {metric: title}, note)
    for metric, title, note in (
        (
            "auroc",
            "AUROC",
            "Probability that a claim of the left class has a higher likelihood than one of the "
            "right class; 0.5 is chance. Classes are compared over all topics.",
        ),
        (
            "in_order",
            "Pairs in order",
            "Share of same-topic claim pairs of two classes whose likelihoods are in the expected "
            "order; ties count half.",
        ),
        ("likelihood", "Likelihood", "Mean likelihood of a class's claims."),
    )
]
FIGURES = [Figure("AUROC by classes", "kind", ["variant"], {"auroc": ""}, {"against": None})]


class TextFile(BaseModel):
    """A file of documents, optionally restricted to one ``kind``.

    Documents without ``claims`` are split into sentences; irrelevant claims (IR) are skipped.
    """

    model_config = ConfigDict(extra="forbid")

    file: str
    kind: str | None = None


class TopicClaims(BaseModel):
    """A topic's claims (class, topic, text) and their indices; ``id`` is the topic."""

    id: str
    places: list[int]
    rows: list[tuple[str, str, str]]


class JudgedTopic(BaseModel):
    """Each model's likelihoods of a topic's claims, in order."""

    topic: TopicClaims
    likelihoods: dict[str, list[float]]


@dataclass(eq=False)
class Informativeness(Experiment):
    """Evaluate the order of claim classes by likelihood.

    Args:
        claims: class to its claims, in the expected order, the likeliest class first.
        unli: model for p(claim | bleached claim).
        bleached: claims that are true of any topic, or a file of them.
        control: second model, reported as ``untrained`` with paired differences; null for none.
        per_topic: maximum number of claims per class and topic, sampled at random; 0 for all.
        domain: domain in the results.
        seed: seed of the sampling and the bootstrap.
    """

    name = "informativeness"
    page = Page(
        "Do likelihoods order claims by the number of people they are true of?",
        "Section 3 of Core (arXiv 2407.03572): a claim’s likelihood is its maximum over the "
        "bleached claims about its topic. The likeliest class is first. n counts topics; brackets "
        "are 95 % bootstrap intervals over topics. The difference to the untrained control is "
        "paired.",
        TABLES,
        FIGURES,
    )

    claims: dict[str, TextFile]
    unli: UnliModel
    bleached: list[str] | str
    control: UnliModel | None = None
    per_topic: int = 0
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        if len(self.claims) < 2:
            raise UserError("claims: expected at least two classes, each with a file")
        require_non_negative(per_topic=self.per_topic)
        self.models = {"trained": self.unli} | ({"untrained": self.control} if self.control else {})
        self.bleached = load_bleached(self.bleached)

    def measure(self, run: Run) -> Outcome:
        rows = [row for name in self.claims for row in self._rows(name)]
        scores = {name: np.zeros(len(rows)) for name in self.models}
        for judged in run.process("topics", self._judge, _by_topic(rows), JudgedTopic):
            for name, topic_likelihoods in judged.likelihoods.items():
                scores[name][judged.topic.places] = topic_likelihoods
        return Outcome(list(compute_values(list(self.claims), rows, scores, self.seed)))

    def _judge(self, topics: Sequence[TopicClaims]) -> list[JudgedTopic]:
        rows = [row for topic in topics for row in topic.rows]
        ends = np.cumsum([len(topic.rows) for topic in topics])[:-1]
        by_model = {
            name: np.split(max_likelihoods(model, self.bleached, rows), ends)
            for name, model in self.models.items()
        }
        return [
            JudgedTopic(
                topic=t, likelihoods={m: parts[i].tolist() for m, parts in by_model.items()}
            )
            for i, t in enumerate(topics)
        ]

    def _rows(self, name: str) -> list[tuple[str, str, str]]:
        by_topic: dict[str, dict[str, None]] = {}
        source = self.claims[name]
        for document in read_records(source.file, Document):
            if source.kind not in (None, document.kind):
                continue
            claims = document.claims
            text = clean(document.text).text
            texts = split_sentences(text) if claims is None else _relevant(claims)
            by_topic.setdefault(document.topic, {}).update(dict.fromkeys(texts))
        rng = random.Random(f"{self.seed}:{name}")
        rows = []
        for topic, texts in by_topic.items():
            n = min(self.per_topic or len(texts), len(texts))
            rows += [(name, topic, text) for text in rng.sample(list(texts), n)]
        if not rows:
            raise UserError(f"{source.file}: no claim of kind {source.kind!r} for class {name!r}")
        return rows


def _relevant(claims: Sequence[Claim]) -> list[str]:
    return [claim.text for claim in claims if claim.label != "IR" and claim.failed is None]


def _by_topic(rows: Sequence[tuple[str, str, str]]) -> list[TopicClaims]:
    by_topic: dict[str, list[int]] = {}
    for index, (_, topic, _) in enumerate(rows):
        by_topic.setdefault(topic, []).append(index)
    return [
        TopicClaims(id=topic, places=indices, rows=[rows[index] for index in indices])
        for topic, indices in by_topic.items()
    ]


def max_likelihoods(
    model: UnliModel, bleached: list[str], rows: Sequence[tuple[str, str, str]]
) -> np.ndarray:
    """Compute max_h p(claim | h) of every row, shape (n,)."""
    maxima = np.zeros(len(rows))
    for topic in _by_topic(rows):
        premises = fill_topic(bleached, topic.id)
        by_pair = likelihoods(model, [(h, text) for _, _, text in topic.rows for h in premises])
        for index, (_, _, text) in zip(topic.places, topic.rows, strict=True):
            maxima[index] = max(float(by_pair[h, text]) for h in premises)
    return maxima


def compute_values(
    classes: Sequence[str],
    rows: Sequence[tuple[str, str, str]],
    scores: Mapping[str, np.ndarray],
    seed: int,
) -> Iterator[dict]:
    """Yield the fields of the results, with bootstrap intervals over topics.

    - ``auroc``: the first class against all others, and every class against every later one.
    - ``in_order``: share of same-topic pairs of two classes in the expected order; ties count half.
    - ``likelihood``: mean likelihood of a class.

    Args:
        classes: class names, the likeliest first.
        rows: (class, topic, text).
        scores: likelihoods of each model, shape (n,); of two also their differences.
        seed: of the bootstrap.
    """
    topics = [topic for _, topic, _ in rows]
    kind = np.asarray([classes.index(name) for name, _, _ in rows])
    by_model = [list(_quantities(classes, kind, topics, score)) for score in scores.values()]
    quantities = [
        quantity._replace(fields={**quantity.fields, "variant": model})
        for model, of_model in zip(scores, by_model, strict=True)
        for quantity in of_model
    ]
    if len(scores) == 2:
        model, control = scores
        sides = {"variant": model, "against": control}
        quantities += [
            _difference(first, second, sides) for first, second in zip(*by_model, strict=True)
        ]
    yield from estimate(quantities, topics, seed)


def _quantities(
    classes: Sequence[str], kind: np.ndarray, topics: Sequence[str], score: np.ndarray
) -> Iterator[Quantity]:
    if len(classes) > 2:
        name = f"{classes[0]} > {' + '.join(classes[1:])}"
        yield Quantity({"metric": "auroc", "kind": name}, [score, kind == 0], auroc)
    for i, j in combinations(range(len(classes)), 2):
        name = f"{classes[i]} > {classes[j]}"
        is_first = np.where(np.isin(kind, (i, j)), kind == i, np.nan)
        yield Quantity({"metric": "auroc", "kind": name}, [score, is_first], auroc)
        counts = _pairs_in_order(kind, topics, score, i, j)
        yield Quantity({"metric": "in_order", "kind": name}, counts, _share)
    for i, name in enumerate(classes):
        of_class = np.where(kind == i, score, np.nan)
        yield Quantity({"metric": "likelihood", "kind": name}, [of_class], np.mean)


def _share(in_order: np.ndarray, pairs: np.ndarray) -> float:
    return in_order.sum() / pairs.sum()


def _difference(left: Quantity, right: Quantity, sides: Mapping[str, str]) -> Quantity:
    width = len(left.columns)

    def statistic(*columns: np.ndarray) -> float:
        return left.statistic(*columns[:width]) - right.statistic(*columns[width:])

    return Quantity({**left.fields, **sides}, [*left.columns, *right.columns], statistic)


def _pairs_in_order(
    kind: np.ndarray, topics: Sequence[str], score: np.ndarray, likelier: int, rarer: int
) -> list[np.ndarray]:
    """Count the ordered pairs and all pairs of two classes in the first row of each topic."""
    counts = np.full((2, len(kind)), np.nan)
    _, topic = np.unique(topics, return_inverse=True)
    order = np.argsort(topic, kind="stable")
    for indices in np.split(order, np.cumsum(np.bincount(topic))[:-1]):
        left, right = (score[indices[kind[indices] == k]] for k in (likelier, rarer))
        difference = left[:, None] - right[None, :]
        if difference.size:
            in_order = (difference > 0).sum() + 0.5 * (difference == 0).sum()
            counts[:, indices[0]] = in_order, difference.size
    return list(counts)
