"""The values of the D-FActScore experiment, with bootstrap intervals over topics (names).

A result's ``kind`` is the source (``automatic``, ``file``, ``people``); ``automatic on people's
texts`` are the automatic values over the texts that people judged, where those are fewer. The
source that the automatic verdicts are compared with is ``against``.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from components.statistics import (
    auroc,
    balanced_accuracy,
    bootstrap,
    nan_mean,
    pearson,
    spearman,
)
from eval.experiments.dfactscore.page_views import Views
from eval.metrics.judged_texts import (
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

ALL = "all"


class Measure(NamedTuple):
    metric: str
    variant: str | None = None


class TextValue(NamedTuple):
    """How a text enters a mean.

    Attributes:
        value: of a text; ``None`` where it does not enter.
        lost: how many of its claims, sentences or citations the value lacks.
    """

    value: Callable[[JudgedText], float | None]
    lost: Callable[[JudgedText], int]


def _lacks(*names: Name) -> Callable[[JudgedText], int]:
    return lambda text: failures(text, names)


def _cited(text: JudgedText) -> int:
    return sum(sentence.failed for sentence in text.citations or [])


def _is(kind: str) -> Callable[[JudgedText], float | None]:
    def value(text: JudgedText) -> float | None:
        own = output_type(text) if text.responded else None
        return None if own is None else float(own == kind)

    return value


def _responding(value: Callable[[JudgedText], float | None]) -> Callable:
    return lambda text: value(text) if text.responded else None


FACTSCORE = Measure("factual_precision", "independent")
D_FACTSCORE = Measure("factual_precision", "grouped")
GAP = Measure("gap")
VALUES: dict[Measure, TextValue] = {
    FACTSCORE: TextValue(lambda t: factual_precision(t, "independent"), _lacks("independent")),
    D_FACTSCORE: TextValue(lambda t: factual_precision(t, "grouped"), _lacks("grouped")),
    GAP: TextValue(gap, _lacks("independent", "grouped")),
    Measure("factscore", "independent"): TextValue(
        lambda t: penalised(t, "independent"), _lacks("independent")
    ),
    Measure("factscore", "grouped"): TextValue(
        lambda t: penalised(t, "grouped"), _lacks("grouped")
    ),
    Measure("biographies"): TextValue(_responding(biographies), lambda t: t.failed + ungrouped(t)),
    Measure("entities"): TextValue(_responding(entities), _lacks("independent")),
    Measure("linked_people"): TextValue(_responding(linked_people), _lacks("grouped")),
    Measure("claims"): TextValue(_responding(lambda t: len(t.claims)), _lacks()),
    Measure("respond_ratio"): TextValue(
        lambda t: None if t.responded is None else float(t.responded), lambda t: 0
    ),
    Measure("citation_recall"): TextValue(citation_recall, _cited),
    Measure("citation_precision"): TextValue(citation_precision, _cited),
    **{
        Measure("output_type", name): TextValue(_is(name), _lacks("independent", "grouped"))
        for name in TYPES
    },
}
# What is compared between sources text by text.
COMPARED = (
    *(FACTSCORE, D_FACTSCORE, GAP),
    *map(Measure, ("biographies", "entities", "linked_people", "citation_recall")),
)
_VERDICTS: tuple[Name, ...] = ("independent", "grouped")
_CORRELATIONS = {"pearson": pearson, "spearman": spearman}


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
        columns = {name: _numbers(map(text.value, own)) for name, text in VALUES.items()}

        def statistics(chosen: np.ndarray, columns: dict = columns) -> dict[Measure, float]:
            return {measure: nan_mean(values[chosen]) for measure, values in columns.items()}

        topics = [text.topic for text in own]
        for measure, value in bootstrap(statistics, topics, seed=seed).items():
            lost = sum(map(VALUES[measure].lost, own))
            if value["value"] is not None or (lost and kind == "automatic"):
                n = _topics(topics, ~np.isnan(columns[measure]))
                rows.append(_row(measure, kind, generator, n, lost, value))
    return rows


def _topics(topics: Sequence[str], there: np.ndarray) -> int:
    return len({topic for topic, own in zip(topics, there, strict=True) if own})


def _row(
    measure: Measure, kind: str, generator: str, n: int, failed: int, value: Mapping, **more: object
) -> dict:
    place = {**measure._asdict(), "kind": kind, "generator": generator}
    return {**place, "n": n, "failed": failed, **value, **more}


# Two sources


def _comparison(
    source: str, both: Sequence[tuple[JudgedText, JudgedText]], seed: int
) -> list[dict]:
    """The automatic verdicts against a source's.

    - ``balanced_accuracy``, variants ``independent`` and ``grouped``: of the verdicts on claims of
      the same text; claims of the source that the automatic side lacks or has no verdict on count
      as failed; ``several_people``: of "more than one person is linked" (distinct titles of the
      supported claims), texts;
    - ``linked_alike``: share of the claims that the source finds supported whose person's title is
      the source's; of claims that have a verdict here, the others count as failed;
    - ``pearson_of_…``, ``spearman_of_…``: of the values of the texts;
    - ``citation_auroc``, ``citation_accuracy``: of the sentences' citations.
    """
    rows = []
    for generator, own in _parts([theirs for _, theirs in both]):
        ours = {theirs.id: mine for mine, theirs in both}
        pairs = [(ours[theirs.id], theirs) for theirs in own]
        table = _Table(pairs)
        found = bootstrap(table.statistics, [theirs.topic for theirs in own], seed=seed)
        for measure, value in found.items():
            if value["value"] is not None:
                n = _topics([theirs.topic for theirs in own], table.there[measure])
                lost = table.lost.get(measure, 0)
                row = _row(measure, "automatic", generator, n, lost, value, against=source)
                rows.append(row)
    return rows


class _Table:
    """What two sources say of the same texts, counted so that texts can be drawn again and again.

    Args:
        pairs: automatic and theirs, n texts.
    """

    def __init__(self, pairs: Sequence[tuple[JudgedText, JudgedText]]):
        self.lost: dict[Measure, int] = {}
        self.there: dict[Measure, np.ndarray] = {}  # which texts enter, shape (n,)
        self.cells: dict[Measure, np.ndarray] = {}  # (n, 2, 2): theirs, ours
        for name in _VERDICTS:
            self._verdicts(name, pairs)
        several = [(linked_people(mine), linked_people(theirs)) for mine, theirs in pairs]
        self.cells[Measure("balanced_accuracy", "several_people")] = np.asarray(
            [_cell([] if None in two else [(two[1] > 1, two[0] > 1)]) for two in several]
        )
        self.linked = np.asarray([self._linked(*two) for two in pairs])  # (n, 2): alike, all
        alike = Measure("linked_alike")
        self.lost[alike] = sum(
            sum(c.grouped is True and c.entity is not None for c in theirs.claims)
            for _, theirs in pairs
        ) - int(self.linked[:, 1].sum())
        self.there |= {measure: own.any(axis=(1, 2)) for measure, own in self.cells.items()}
        self.there[alike] = self.linked[:, 1] > 0
        self.values = {
            measure: np.stack(
                [_numbers(map(VALUES[measure].value, side)) for side in zip(*pairs, strict=True)]
            )
            for measure in COMPARED
        }
        for measure, values in self.values.items():
            for name in _CORRELATIONS:
                self.there[_of(name, measure)] = ~np.isnan(values).any(axis=0)
        self.sentences = [self._sentences(*two) for two in pairs]
        cited = [s for mine, theirs in pairs if theirs.citations for s in mine.citations or []]
        for name in ("citation_auroc", "citation_accuracy"):
            self.lost[Measure(name)] = sum(s.recalled is None for s in cited)
            self.there[Measure(name)] = np.asarray([len(own) > 0 for own in self.sentences])

    def _verdicts(self, name: Name, pairs: Sequence[tuple[JudgedText, JudgedText]]) -> None:
        cells, lost = [], 0
        for mine, theirs in pairs:
            claims, unmatched = matched(mine, theirs)
            judged = [(getattr(t, name), getattr(m, name)) for m, t in claims]
            due = [(t, m) for t, m in judged if t is not None]
            known = [(t, m) for t, m in due if m is not None]
            lost += len(due) - len(known) + unmatched
            cells.append(_cell(known))
        self.cells[Measure("balanced_accuracy", name)] = np.asarray(cells)
        self.lost[Measure("balanced_accuracy", name)] = lost

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

    def statistics(self, rows: np.ndarray) -> dict[Measure, float]:
        found = {
            measure: balanced_accuracy(cells[rows].sum(axis=0))
            for measure, cells in self.cells.items()
        }
        alike, due = self.linked[rows].sum(axis=0)
        found[Measure("linked_alike")] = alike / due if due else math.nan
        for measure, (mine, theirs) in self.values.items():
            both = _both_known(mine[rows], theirs[rows])
            for name, correlation in _CORRELATIONS.items():
                found[_of(name, measure)] = correlation(*both)
        cited = np.concatenate([self.sentences[row] for row in rows])
        label = cited[:, 0] > 0
        found[Measure("citation_auroc")] = auroc(cited[:, 2], label)
        alike = label == (cited[:, 1] > 0)
        found[Measure("citation_accuracy")] = float(alike.mean()) if len(alike) else math.nan
        return found


def _of(correlation: str, measure: Measure) -> Measure:
    return measure._replace(metric=f"{correlation}_of_{measure.metric}")


def _cell(pairs: Sequence[tuple[bool, bool]]) -> np.ndarray:
    """Counts of (theirs, ours), shape (2, 2)."""
    counts = np.zeros((2, 2))
    for theirs, ours in pairs:
        counts[int(theirs), int(ours)] += 1
    return counts


# Page views


def _views(texts: Sequence[JudgedText], views: Views, seed: int) -> list[dict]:
    """The page-view analysis of section 5.3.

    - ``most_viewed``: of the texts with one biography for which people of the name were retrieved,
      two or more whose pages have views: share of those whose person (the title with most
      supported claims) has the most-viewed page of these; ``most_viewed_by_chance``: what drawing
      one of them gives;

    and of our own, over all texts with a person:

    - ``views_of_the_person``: mean decimal logarithm of 1 + views of the main person's page;
    - ``spearman_of_…`` D-FActScore and FActScore - D-FActScore: with these, ``against`` views.
    """
    rows = []
    for generator, own in _parts([text for text in texts if text.responded]):
        columns = _view_columns(own, views)
        measures = {  # to the column that decides who enters, and what the value is against
            Measure("most_viewed"): ("first", None),
            Measure("most_viewed_by_chance"): ("chance", None),
            Measure("views_of_the_person"): ("seen", None),
            _of("spearman", D_FACTSCORE): ("grouped", "views"),
            _of("spearman", GAP): ("gap", "views"),
        }

        def statistics(
            chosen: np.ndarray, columns: dict = columns, measures: dict = measures
        ) -> dict[Measure, float]:
            drawn = {name: values[chosen] for name, values in columns.items()}
            return {
                measure: nan_mean(drawn[name])
                if against is None
                else spearman(*_both_known(drawn["seen"], drawn[name]))
                for measure, (name, against) in measures.items()
            }

        topics = [text.topic for text in own]
        for measure, value in bootstrap(statistics, topics, seed=seed).items():
            if value["value"] is not None:
                name, against = measures[measure]
                known = ~np.isnan(columns[name])
                if against:
                    known &= ~np.isnan(columns["seen"])
                # Texts without a person, or whose person's views nobody gave.
                due = columns["due"] > 0 if name in ("first", "chance") else np.ones_like(known)
                lost, n = int((due & ~known).sum()), _topics(topics, known)
                row = _row(measure, "automatic", generator, n, lost, value, against=against)
                rows.append(row)
    return rows


def _view_columns(texts: Sequence[JudgedText], views: Views) -> dict[str, np.ndarray]:
    people = [(main_person(text), views.candidates(text)) for text in texts]
    # Whom a text tells of is a choice where it tells of one, and several were to be had.
    due = [
        biographies(text) in (1, None) and len(pages) > 1
        for text, (_, pages) in zip(texts, people, strict=True)
    ]
    one = [
        person if biographies(text) == 1 else (None, [])
        for text, person in zip(texts, people, strict=True)
    ]
    return {
        "due": _numbers(due),
        "seen": _numbers([views.logarithm(title) for title, _ in people]),
        "first": _numbers([views.is_first(*person) for person in one]),
        "chance": _numbers([views.chance(*person) for person in one]),
        "grouped": _numbers(map(VALUES[D_FACTSCORE].value, texts)),
        "gap": _numbers(map(gap, texts)),
    }


def _both_known(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    there = ~np.isnan(left) & ~np.isnan(right)
    return left[there], right[there]
