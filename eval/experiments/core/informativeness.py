"""Does w_Info order claims by the number of people they are true of? (Core, 2407.03572, section 3.)

Claims of several classes, from likely to rare, are scored as in Core: p(claim) = max_h p(claim | h)
over the bleached claims h about the topic. The AUROC of the first class against all others measures
"entailed by a bleached claim"; the AUROC of each pair measures the order of the other classes.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from pydantic import BaseModel, ConfigDict

from components.sentences import split_sentences
from components.statistics import auroc, bootstrap
from eval.experiments.experiment import Experiment, Outcome, require_non_negative
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


class Source(BaseModel):
    """A file of documents, optionally restricted to one ``kind``.

    Documents without ``claims`` are split into sentences; irrelevant claims (IR) are skipped.
    """

    model_config = ConfigDict(extra="forbid")

    file: str
    kind: str | None = None


class Topic(BaseModel):
    """A topic's claims (class, topic, text) and their indices; ``id`` is the topic."""

    id: str
    places: list[int]
    rows: list[tuple[str, str, str]]


class JudgedTopic(BaseModel):
    """Each model's likelihoods of a topic's claims, in order."""

    topic: Topic
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

    claims: dict[str, Source]
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
        classes, values = list(self.claims), []
        for name, score in scores.items():
            measures = compute_measures(classes, rows, [score], self.seed)
            values += _values(measures, variant=name)
        if len(scores) == 2:
            measures = compute_measures(classes, rows, list(scores.values()), self.seed)
            values += _values(measures, variant="trained", against="untrained")
        return Outcome(values)

    def _judge(self, topics: Sequence[Topic]) -> list[JudgedTopic]:
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


def _values(measures: dict, **shared: str) -> Iterator[dict]:
    for (metric, kind), (topics, value) in measures.items():
        yield {"metric": metric, "kind": kind, "n": topics, "failed": 0, **value, **shared}


def _relevant(claims: Sequence[Claim]) -> list[str]:
    return [claim.text for claim in claims if claim.label != "IR" and claim.failed is None]


def _by_topic(rows: Sequence[tuple[str, str, str]]) -> list[Topic]:
    by_topic: dict[str, list[int]] = {}
    for index, (_, topic, _) in enumerate(rows):
        by_topic.setdefault(topic, []).append(index)
    return [
        Topic(id=topic, places=indices, rows=[rows[index] for index in indices])
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


def compute_measures(
    classes: Sequence[str],
    rows: Sequence[tuple[str, str, str]],
    scores: Sequence[np.ndarray],
    seed: int,
) -> dict[tuple[str, str], tuple[int, dict]]:
    """Compute AUROC and ordered pairs, with bootstrap intervals over topics.

    - ``auroc``: the first class against all others, and every class against every later one.
    - ``in_order``: share of same-topic pairs of two classes in the expected order; ties count half.
    - ``likelihood``: mean likelihood of a class.

    Args:
        classes: class names, the likeliest first.
        rows: (class, topic, text).
        scores: likelihoods of one model, shape (n,), or of two for their differences.

    Returns:
        (metric, classes) to the number of topics and the value.
    """
    topics, topic = np.unique(np.asarray([t for _, t, _ in rows]), return_inverse=True)
    kind = np.asarray([classes.index(c) for c, _, _ in rows])
    pairs = list(combinations(range(len(classes)), 2))
    names = {(i, j): f"{classes[i]} > {classes[j]}" for i, j in pairs}
    first = f"{classes[0]} > {' + '.join(classes[1:])}"
    rows_of_topic = np.bincount(topic)
    ordered = [[_pairs_in_order(kind, topic, score, i, j) for i, j in pairs] for score in scores]

    def of_model(chosen: np.ndarray, score: np.ndarray, right: list[np.ndarray]) -> dict:
        k, s = kind[chosen], score[chosen]
        values = {}
        if len(classes) > 2:
            values["auroc", first] = auroc(s, k == 0)
        # A topic that is drawn twice counts its rows and pairs twice.
        drawn = np.bincount(topic[chosen], minlength=len(topics)) / rows_of_topic
        for (i, j), counts in zip(pairs, right, strict=True):
            two, name = (k == i) | (k == j), names[i, j]
            values["auroc", name] = auroc(s[two], k[two] == i)
            in_order, all_pairs = drawn @ counts
            values["in_order", name] = in_order / all_pairs if all_pairs else float("nan")
        for i, name in enumerate(classes):
            values["likelihood", name] = s[k == i].mean() if (k == i).any() else float("nan")
        return values

    def statistics(chosen: np.ndarray) -> dict:
        values = [of_model(chosen, s, o) for s, o in zip(scores, ordered, strict=True)]
        if len(values) == 1:
            return values[0]
        return {name: value - values[1][name] for name, value in values[0].items()}

    compared = {name: {classes[i], classes[j]} for (i, j), name in names.items()}
    compared |= {first: set(classes)} | {name: {name} for name in classes}
    topics_of = {name: {t for c, t, _ in rows if c == name} for name in classes}

    def topic_count(metric: str, name: str) -> int:
        sets = [topics_of[part] for part in compared[name]]
        return len(set.intersection(*sets) if metric == "in_order" else set.union(*sets))

    values = bootstrap(statistics, topic, seed=seed)
    return {name: (topic_count(*name), value) for name, value in values.items()}


def _pairs_in_order(
    kind: np.ndarray, topic: np.ndarray, score: np.ndarray, likelier: int, rarer: int
) -> np.ndarray:
    """Count the ordered pairs and all pairs of two classes per topic, shape (topics, 2)."""
    counts = np.zeros((topic.max() + 1, 2))
    order = np.argsort(topic, kind="stable")
    for number, indices in enumerate(np.split(order, np.cumsum(np.bincount(topic))[:-1])):
        left, right = (score[indices[kind[indices] == k]] for k in (likelier, rarer))
        difference = left[:, None] - right[None, :]
        counts[number] = (difference > 0).sum() + 0.5 * (difference == 0).sum(), difference.size
    return counts
