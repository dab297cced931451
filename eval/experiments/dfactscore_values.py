"""The values of the D-FActScore experiment, with bootstrap intervals over topics (names).

A result's ``kind`` is the source (``automatic``, ``file``, ``people``); ``automatic on people's
texts`` are the automatic values over the texts that people judged, where those are fewer. Metrics
of a source against another are named ``metric~source``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from components.statistics import (
    auroc,
    balanced_accuracy,
    bootstrap,
    mean_known,
    pearson,
    spearman,
)
from eval.experiments.dfactscore_texts import (
    TYPES,
    JudgedText,
    Name,
    biographies,
    by_generator,
    citation_precision,
    citation_recall,
    entities,
    factual_precision,
    failures,
    gap,
    linked_people,
    main_person,
    matched,
    output_type,
    penalised,
    ungrouped,
)
from eval.experiments.dfactscore_views import Views

ALL = "all"


# Metric to the value of a text; ``None`` where the text does not enter the mean.
VALUES: dict[str, Callable[[JudgedText], float | None]] = {
    "factual_precision:independent": lambda t: factual_precision(t, "independent"),
    "factual_precision:grouped": lambda t: factual_precision(t, "grouped"),
    "gap": gap,
    "factscore:independent": lambda t: penalised(t, "independent"),
    "factscore:grouped": lambda t: penalised(t, "grouped"),
    "biographies": lambda t: biographies(t) if t.responded else None,
    "entities": lambda t: entities(t) if t.responded else None,
    "linked_people": lambda t: linked_people(t) if t.responded else None,
    "claims": lambda t: len(t.claims) if t.responded else None,
    "respond_ratio": lambda t: float(t.responded),
    "citation_recall": lambda t: citation_recall(t) if t.responded else None,
    "citation_precision": lambda t: citation_precision(t) if t.responded else None,
}
# What is compared between sources text by text.
COMPARED = (
    "factual_precision:independent",
    "factual_precision:grouped",
    "gap",
    "biographies",
    "entities",
    "linked_people",
    "citation_recall",
)
CITATIONS = ("citation_auroc", "citation_accuracy")


def values_of(texts: Sequence[JudgedText], views: Views | None, seed: int) -> list[dict]:
    """The results' fields, without those that all of them share."""
    rows = []
    sources = {
        name: [t for t in texts if t.source == name] for name in ("automatic", "file", "people")
    }
    for name, own in sources.items():
        rows += _means(name, own, seed)
    automatic = {text.id: text for text in sources["automatic"]}
    for name in ("file", "people"):
        both = [(automatic[t.id], t) for t in sources[name] if t.id in automatic]
        if both and len(both) < len(automatic):
            rows += _means(f"automatic on {name}'s texts", [own for own, _ in both], seed)
        rows += _comparison(name, both, seed)
    if views is not None:
        rows += _views(sources["automatic"], views, seed)
    return rows


def _parts(texts: Sequence[JudgedText]) -> Iterator[tuple[str, list[JudgedText]]]:
    """The texts of each generator; all together where there are several."""
    parts = by_generator(texts)
    yield from parts.items()
    if len(parts) > 1:
        yield ALL, list(texts)


def _numbers(values: Iterable[float | None]) -> np.ndarray:
    """One value a text, NaN for none, shape (n,)."""
    return np.asarray([math.nan if value is None else float(value) for value in values])


# Means of one source


def _means(kind: str, texts: Sequence[JudgedText], seed: int) -> list[dict]:
    rows = []
    for generator, own in _parts(texts):
        columns = {metric: _numbers(map(value, own)) for metric, value in VALUES.items()}
        kinds = [output_type(text) if text.responded else None for text in own]
        for name in TYPES:
            shares = [math.nan if k is None else float(k == name) for k in kinds]
            columns[f"output_type:{name}"] = np.asarray(shares)

        def statistics(chosen: np.ndarray, columns: dict = columns) -> dict[str, float]:
            return {metric: mean_known(values[chosen]) for metric, values in columns.items()}

        topics = [text.topic for text in own]
        for metric, value in bootstrap(statistics, topics, seed=seed).items():
            lost = _failures(metric, own)
            if value["value"] is not None or (lost and kind == "automatic"):
                n = _topics(topics, columns[metric])
                rows.append(_row(metric, kind, generator, n, lost, value))
    return rows


def _topics(topics: Sequence[str], values: np.ndarray) -> int:
    """How many topics have a value."""
    return len({topic for topic, value in zip(topics, values, strict=True) if value == value})


def _failures(metric: str, texts: Sequence[JudgedText]) -> int:
    """What a metric lacks: sentences with their citations, or claims."""
    if metric.startswith("citation"):
        return sum(sentence.failed for text in texts for sentence in text.citations or [])
    if metric == "respond_ratio":
        return 0
    if metric == "biographies":
        return sum(text.failed + ungrouped(text) for text in texts)
    if metric == "claims":
        needed: Sequence[Name] = ()
    elif metric == "gap" or metric.startswith("output_type"):
        needed = ("independent", "grouped")
    elif metric == "entities" or metric.endswith(":independent"):
        needed = ("independent",)
    else:
        needed = ("grouped",)
    return sum(failures(text, needed) for text in texts)


def _row(metric: str, kind: str, generator: str, n: int, failed: int, value: Mapping) -> dict:
    own = {"metric": metric, "selection": "none", "kind": kind, "generator": generator}
    return {**own, "n": n, "failed": failed, **value}


# Two sources


def _comparison(
    source: str, both: Sequence[tuple[JudgedText, JudgedText]], seed: int
) -> list[dict]:
    """The automatic verdicts against a source's.

    - ``balanced_accuracy:independent``, ``…:grouped``: of the verdicts on claims of the same text;
      claims of the source that the automatic side lacks or has no verdict on count as failed;
    - ``balanced_accuracy:several_people``: of "more than one person is linked" (distinct titles of
      the supported claims), texts;
    - ``linked_alike``: share of the claims that the source finds supported whose person's title is
      the source's; of claims that have a verdict here, the others count as failed;
    - ``pearson:…``, ``spearman:…``: of the values of the texts;
    - ``citation_auroc``, ``citation_accuracy``: of the sentences' citations.
    """
    rows = []
    for generator, own in _parts([theirs for _, theirs in both]):
        ours = {theirs.id: mine for mine, theirs in both}
        pairs = [(ours[theirs.id], theirs) for theirs in own]
        table = _Table(pairs)
        found = bootstrap(table.statistics, [theirs.topic for theirs in own], seed=seed)
        for metric, value in found.items():
            if value["value"] is not None:
                there = zip(own, table.there(metric), strict=True)
                n = len({text.topic for text, enters in there if enters})
                lost = table.lost.get(metric, 0)
                rows.append(_row(f"{metric}~{source}", "automatic", generator, n, lost, value))
    return rows


class _Table:
    """What two sources say of the same texts, counted so that texts can be drawn again and again.

    Args:
        pairs: automatic and theirs, n texts.
    """

    def __init__(self, pairs: Sequence[tuple[JudgedText, JudgedText]]):
        self.lost: dict[str, int] = {}
        self.cells: dict[str, np.ndarray] = {}  # (n, 2, 2): theirs, ours
        for name in ("independent", "grouped"):
            self._verdicts(name, pairs)
        several = [(linked_people(mine), linked_people(theirs)) for mine, theirs in pairs]
        self.cells["several_people"] = np.asarray(
            [_cell([] if None in two else [(two[1] > 1, two[0] > 1)]) for two in several]
        )
        self.linked = np.asarray([self._linked(*two) for two in pairs])  # (n, 2): alike, all
        self.lost["linked_alike"] = sum(
            sum(c.grouped is True and c.entity is not None for c in theirs.claims)
            for _, theirs in pairs
        ) - int(self.linked[:, 1].sum())
        self.values = {
            metric: np.stack(
                [_numbers(map(VALUES[metric], side)) for side in zip(*pairs, strict=True)]
            )
            for metric in COMPARED
        }
        self.sentences = [self._sentences(*two) for two in pairs]
        cited = [s for mine, theirs in pairs if theirs.citations for s in mine.citations or []]
        self.lost |= dict.fromkeys(CITATIONS, sum(s.recalled is None for s in cited))

    def there(self, metric: str) -> np.ndarray:
        """Which texts enter a metric, shape (n,)."""
        kind, _, name = metric.partition(":")
        if kind == "balanced_accuracy":
            return self.cells[name].any(axis=(1, 2))
        if kind in ("pearson", "spearman"):
            return ~np.isnan(self.values[name]).any(axis=0)
        if metric in CITATIONS:
            return np.asarray([len(own) > 0 for own in self.sentences])
        return self.linked[:, 1] > 0

    def _verdicts(self, name: str, pairs: Sequence[tuple[JudgedText, JudgedText]]) -> None:
        cells, lost = [], 0
        for mine, theirs in pairs:
            claims, unmatched = matched(mine, theirs)
            judged = [(getattr(t, name), getattr(m, name)) for m, t in claims]
            due = [(t, m) for t, m in judged if t is not None]
            known = [(t, m) for t, m in due if m is not None]
            lost += len(due) - len(known) + unmatched
            cells.append(_cell(known))
        self.cells[name] = np.asarray(cells)
        self.lost[f"balanced_accuracy:{name}"] = lost

    @staticmethod
    def _linked(mine: JudgedText, theirs: JudgedText) -> tuple[int, int]:
        both = [(m, t) for m, t in matched(mine, theirs)[0] if m.grouped is not None]
        due = [(m.entity, t.entity) for m, t in both if t.grouped and t.entity is not None]
        return sum(a == b for a, b in due), len(due)

    @staticmethod
    def _sentences(mine: JudgedText, theirs: JudgedText) -> np.ndarray:
        """(cited sentences, 3): theirs, our decision, our probability."""
        if mine.citations is None or theirs.citations is None:
            return np.zeros((0, 3))
        two = zip(mine.citations, theirs.citations, strict=True)
        found = [(t.recalled, m.recalled, m.p) for m, t in two if m.p is not None and m.text]
        return np.asarray(found, dtype=float).reshape(-1, 3)

    def statistics(self, rows: np.ndarray) -> dict[str, float]:
        found = {
            f"balanced_accuracy:{name}": balanced_accuracy(cells[rows].sum(axis=0))
            for name, cells in self.cells.items()
        }
        alike, due = self.linked[rows].sum(axis=0)
        found["linked_alike"] = alike / due if due else math.nan
        for metric, (mine, theirs) in self.values.items():
            both = _both_known(mine[rows], theirs[rows])
            found[f"pearson:{metric}"] = pearson(*both)
            found[f"spearman:{metric}"] = spearman(*both)
        cited = np.concatenate([self.sentences[row] for row in rows])
        label = cited[:, 0] > 0
        found["citation_auroc"] = auroc(cited[:, 2], label)
        alike = label == (cited[:, 1] > 0)
        found["citation_accuracy"] = float(alike.mean()) if len(alike) else math.nan
        return found


def _cell(pairs: Sequence[tuple[bool, bool]]) -> np.ndarray:
    """Counts of (theirs, ours), shape (2, 2)."""
    counts = np.zeros((2, 2))
    for theirs, ours in pairs:
        counts[int(theirs), int(ours)] += 1
    return counts


# Page views


def _views(texts: Sequence[JudgedText], views: Views, seed: int) -> list[dict]:
    """The page-view analysis of section 5.3 (its details unconfirmed), over texts with a person.

    - ``most_viewed``: share of the texts whose main person (the title with most supported claims)
      has the most-viewed page of the people who share the name, where at least two have views;
      ``most_viewed_by_chance``: what drawing one of them gives;
    - ``views_of_the_person``: mean decimal logarithm of 1 + views of the main person's page;
    - ``spearman:grouped_and_views``, ``spearman:gap_and_views``: of these with D-FActScore and with
      FActScore - D-FActScore.
    """
    rows = []
    for generator, own in _parts([text for text in texts if text.responded]):
        columns = _view_columns(own, views)

        def statistics(chosen: np.ndarray, columns: dict = columns) -> dict[str, float]:
            drawn = {name: values[chosen] for name, values in columns.items()}
            return {
                "most_viewed": mean_known(drawn["first"]),
                "most_viewed_by_chance": mean_known(drawn["chance"]),
                "views_of_the_person": mean_known(drawn["seen"]),
                "spearman:grouped_and_views": spearman(
                    *_both_known(drawn["seen"], drawn["grouped"])
                ),
                "spearman:gap_and_views": spearman(*_both_known(drawn["seen"], drawn["gap"])),
            }

        topics = [text.topic for text in own]
        for metric, value in bootstrap(statistics, topics, seed=seed).items():
            if value["value"] is not None:
                known = columns["first" if metric.startswith("most") else "seen"]
                # Texts without a person, or whose person's views nobody gave.
                lost = int(np.isnan(known).sum())
                n = _topics(topics, known)
                rows.append(_row(metric, "automatic", generator, n, lost, value))
    return rows


def _view_columns(texts: Sequence[JudgedText], views: Views) -> dict[str, np.ndarray]:
    people = [(main_person(text), views.candidates(text)) for text in texts]
    return {
        "seen": _numbers([views.logarithm(title) for title, _ in people]),
        "first": _numbers([views.is_first(*person) for person in people]),
        "chance": _numbers([views.chance(*person) for person in people]),
        "grouped": _numbers(map(VALUES["factual_precision:grouped"], texts)),
        "gap": _numbers(map(gap, texts)),
    }


def _both_known(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of the texts that have both."""
    there = ~np.isnan(left) & ~np.isnan(right)
    return left[there], right[there]
