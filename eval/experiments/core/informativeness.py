"""Does w_Info order claims by how many people they hold for? (Core, 2407.03572, section 3.)

Claims of several classes, from what is true of anyone to what is true of few, are scored as Core
scores them: p(claim) = max_h p(claim | h) over the bleached claims h about the topic. The AUROC of
the first class against the others is that of "entailed by a bleached claim"; the AUROC of each
further pair says whether the other classes are in order as well.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from pydantic import BaseModel, ConfigDict

from components.sentences import split_sentences
from components.statistics import auroc, bootstrap
from eval.experiments.experiment import Experiment, Found, natural
from eval.report.declare import Figure, Page, Table
from eval.run.run import Run
from eval.select.judgements import likelihoods
from eval.select.weights import fill_topic, load_bleached
from eval.stages import UnliModel
from records import Claim, Document, UserError, read_records

TABLES = [
    Table(title, {"kind": "Classes"}, ["variant", "against"], {metric: title}, note)
    for metric, title, note in (
        (
            "auroc",
            "AUROC",
            "Probability that a claim of the left class is called likelier than one of the right; "
            "0.5 is chance. Classes are compared over all topics.",
        ),
        (
            "in_order",
            "Pairs in order",
            "Share of the pairs of claims of one topic, one of each class, whose likelihoods are "
            "in the expected order; ties are half.",
        ),
        ("likelihood", "Likelihood", "Mean likelihood of a class's claims."),
    )
]
FIGURES = [Figure("AUROC by classes", "kind", ["variant"], {"auroc": ""}, {"against": None})]


class Source(BaseModel):
    """A file of documents, of which those of one ``kind`` are read, or all.

    A document without ``claims`` is split into sentences; irrelevant claims (IR) are left out.
    """

    model_config = ConfigDict(extra="forbid")

    file: str
    kind: str | None = None


class Topic(BaseModel):
    """A topic's claims (class, topic, text) and their places among all; ``id`` is its name."""

    id: str
    places: list[int]
    rows: list[tuple[str, str, str]]


class JudgedTopic(BaseModel):
    """What each model says of a topic's claims, in their order."""

    topic: Topic
    likelihoods: dict[str, list[float]]


@dataclass(eq=False)
class Informativeness(Experiment):
    """The experiment.

    Args:
        claims: class to where its claims are, in the expected order, the likeliest class first.
        unli: the model that judges p(claim | bleached claim).
        bleached: claims that hold for any topic, or a file of them.
        control: a second model on the same claims; its results are marked ``untrained`` and the
            paired difference (``unli`` less ``control``) is given beside. None for no control.
        per_topic: at most this many claims of a class a topic, drawn at random; 0 for all.
        domain: named in the results.
        seed: of the draw and of the bootstrap.
    """

    name = "informativeness"
    page = Page(
        "Do likelihoods order claims by whom they hold for?",
        "After section 3 of Core (arXiv 2407.03572): a claim’s likelihood is the largest one given "
        "any bleached claim about its topic. Classes stand with the likeliest first. n counts "
        "topics; brackets hold 95 % bootstrap intervals over topics. The difference to the "
        "untrained control is paired.",
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
            raise UserError("claims: give at least two classes, each with its file")
        natural(per_topic=self.per_topic)
        self.models = {"trained": self.unli} | ({"untrained": self.control} if self.control else {})
        self.bleached = load_bleached(self.bleached)

    def measure(self, run: Run) -> Found:
        rows = [row for name in self.claims for row in self._rows(name)]
        scores = {name: np.zeros(len(rows)) for name in self.models}
        for one in run.process("topics", self._judge, _by_topic(rows), JudgedTopic):
            for name, own in one.likelihoods.items():
                scores[name][one.topic.places] = own
        classes, values = list(self.claims), []
        for name, score in scores.items():
            found = measures_of(classes, rows, [score], self.seed)
            values += _values(found, variant=name)
        if len(scores) == 2:
            found = measures_of(classes, rows, list(scores.values()), self.seed)
            values += _values(found, variant="trained", against="untrained")
        return Found(values)

    def _judge(self, topics: Sequence[Topic]) -> list[JudgedTopic]:
        rows = [row for topic in topics for row in topic.rows]
        ends = np.cumsum([len(topic.rows) for topic in topics])[:-1]
        found = {
            name: np.split(max_likelihoods(model, self.bleached, rows), ends)
            for name, model in self.models.items()
        }
        return [
            JudgedTopic(topic=t, likelihoods={name: own[i].tolist() for name, own in found.items()})
            for i, t in enumerate(topics)
        ]

    def _rows(self, name: str) -> list[tuple[str, str, str]]:
        found: dict[str, dict[str, None]] = {}
        source = self.claims[name]
        for document in read_records(source.file, Document):
            if source.kind not in (None, document.kind):
                continue
            given = document.claims
            texts = split_sentences(document.text) if given is None else _relevant(given)
            found.setdefault(document.topic, {}).update(dict.fromkeys(texts))
        rng = random.Random(f"{self.seed}:{name}")
        rows = []
        for topic, texts in found.items():
            most = self.per_topic or len(texts)
            rows += [(name, topic, text) for text in rng.sample(list(texts), min(most, len(texts)))]
        if not rows:
            raise UserError(f"{source.file}: no claim of kind {source.kind!r} for class {name!r}")
        return rows


def _values(found: dict, **shared: str) -> Iterator[dict]:
    for (metric, kind), (topics, value) in found.items():
        yield {"metric": metric, "kind": kind, "n": topics, "failed": 0, **value, **shared}


def _relevant(claims: Sequence[Claim]) -> list[str]:
    return [claim.text for claim in claims if claim.label != "IR" and claim.failed is None]


def _by_topic(rows: Sequence[tuple[str, str, str]]) -> list[Topic]:
    places: dict[str, list[int]] = {}
    for place, (_, topic, _) in enumerate(rows):
        places.setdefault(topic, []).append(place)
    return [
        Topic(id=topic, places=own, rows=[rows[place] for place in own])
        for topic, own in places.items()
    ]


def max_likelihoods(
    model: UnliModel, bleached: list[str], rows: Sequence[tuple[str, str, str]]
) -> np.ndarray:
    """max_h p(claim | h) of every row, shape (n,)."""
    found = np.zeros(len(rows))
    for topic in _by_topic(rows):
        premises = fill_topic(bleached, topic.id)
        asked = likelihoods(model, [(h, text) for _, _, text in topic.rows for h in premises])
        for place, (_, _, text) in zip(topic.places, topic.rows, strict=True):
            found[place] = max(float(asked[h, text]) for h in premises)
    return found


def measures_of(
    classes: Sequence[str],
    rows: Sequence[tuple[str, str, str]],
    scores: Sequence[np.ndarray],
    seed: int,
) -> dict[tuple[str, str], tuple[int, dict]]:
    """AUROC and pairs in order, with bootstrap intervals over topics.

    - ``auroc``: the first class against all others, and every class against every later one.
    - ``in_order``: share of same-topic pairs of two classes in the expected order, ties half.
    - ``likelihood``: mean likelihood of a class.

    Args:
        classes: the likeliest first.
        rows: class, topic and text.
        scores: likelihoods of one model, shape (n,), or of two: then all values are differences.

    Returns:
        Metric and classes to the number of topics and the value.
    """
    topics, topic = np.unique(np.asarray([t for _, t, _ in rows]), return_inverse=True)
    kind = np.asarray([classes.index(c) for c, _, _ in rows])
    pairs = list(combinations(range(len(classes)), 2))
    names = {(i, j): f"{classes[i]} > {classes[j]}" for i, j in pairs}
    first = f"{classes[0]} > {' + '.join(classes[1:])}"
    rows_of_topic = np.bincount(topic)
    ordered = [[_pairs_in_order(kind, topic, score, i, j) for i, j in pairs] for score in scores]

    def of_one(chosen: np.ndarray, score: np.ndarray, right: list[np.ndarray]) -> dict:
        k, s = kind[chosen], score[chosen]
        found = {}
        if len(classes) > 2:
            found["auroc", first] = auroc(s, k == 0)
        # A topic that is drawn twice has twice its rows, and twice its pairs.
        drawn = np.bincount(topic[chosen], minlength=len(topics)) / rows_of_topic
        for (i, j), counts in zip(pairs, right, strict=True):
            two, name = (k == i) | (k == j), names[i, j]
            found["auroc", name] = auroc(s[two], k[two] == i)
            in_order, all_pairs = drawn @ counts
            found["in_order", name] = in_order / all_pairs if all_pairs else float("nan")
        for i, name in enumerate(classes):
            found["likelihood", name] = s[k == i].mean() if (k == i).any() else float("nan")
        return found

    def statistics(chosen: np.ndarray) -> dict:
        found = [of_one(chosen, s, o) for s, o in zip(scores, ordered, strict=True)]
        if len(found) == 1:
            return found[0]
        return {name: value - found[1][name] for name, value in found[0].items()}

    compared = {name: {classes[i], classes[j]} for (i, j), name in names.items()}
    compared |= {first: set(classes)} | {name: {name} for name in classes}
    having = {name: {t for c, t, _ in rows if c == name} for name in classes}

    def entered(metric: str, name: str) -> int:
        own = [having[one] for one in compared[name]]
        return len(set.intersection(*own) if metric == "in_order" else set.union(*own))

    values = bootstrap(statistics, topic, seed=seed)
    return {name: (entered(*name), value) for name, value in values.items()}


def _pairs_in_order(
    kind: np.ndarray, topic: np.ndarray, score: np.ndarray, likelier: int, rarer: int
) -> np.ndarray:
    """Per topic the pairs of two classes in order, and all of them: shape (topics, 2)."""
    found = np.zeros((topic.max() + 1, 2))
    order = np.argsort(topic, kind="stable")
    for number, own in enumerate(np.split(order, np.cumsum(np.bincount(topic))[:-1])):
        left, right = (score[own[kind[own] == k]] for k in (likelier, rarer))
        more = left[:, None] - right[None, :]
        found[number] = (more > 0).sum() + 0.5 * (more == 0).sum(), more.size
    return found
