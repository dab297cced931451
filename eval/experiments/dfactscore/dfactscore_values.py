"""The values of the D-FActScore experiment, with bootstrap intervals over topics (names).

A result's ``kind`` is the source (``automatic``, ``file``, ``people``), and ``against`` the source
that the automatic verdicts are compared with.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from components.statistics import auroc, balanced_accuracy, bootstrap, nan_mean, pearson, spearman
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
    """The value of a text (``None`` excludes it) and its number of failures."""

    value: Callable[[JudgedText], float | None]
    failed: Callable[[JudgedText], int]


def _fails(*names: Name) -> Callable[[JudgedText], int]:
    return lambda text: failures(text, names)


def _failed_citations(text: JudgedText) -> int:
    return sum(sentence.failed for sentence in text.citations or [])


def _is_type(kind: str) -> Callable[[JudgedText], float | None]:
    def value(text: JudgedText) -> float | None:
        type_of_text = output_type(text) if text.responded else None
        return None if type_of_text is None else float(type_of_text == kind)

    return value


def _responding(value: Callable[[JudgedText], float | None]) -> Callable:
    return lambda text: value(text) if text.responded else None


FACTSCORE = Measure("factual_precision", "independent")
D_FACTSCORE = Measure("factual_precision", "grouped")
GAP = Measure("gap")
LINKED = Measure("linked_people")
VALUES: dict[Measure, TextValue] = {
    FACTSCORE: TextValue(lambda t: factual_precision(t, "independent"), _fails("independent")),
    D_FACTSCORE: TextValue(lambda t: factual_precision(t, "grouped"), _fails("grouped")),
    GAP: TextValue(gap, _fails("independent", "grouped")),
    Measure("factscore", "independent"): TextValue(
        lambda t: penalised(t, "independent"), _fails("independent")
    ),
    Measure("factscore", "grouped"): TextValue(
        lambda t: penalised(t, "grouped"), _fails("grouped")
    ),
    Measure("biographies"): TextValue(_responding(biographies), lambda t: t.failed + ungrouped(t)),
    Measure("entities"): TextValue(_responding(entities), _fails("independent")),
    LINKED: TextValue(_responding(linked_people), _fails("grouped")),
    Measure("claims"): TextValue(_responding(lambda t: len(t.claims)), _fails()),
    Measure("respond_ratio"): TextValue(
        lambda t: None if t.responded is None else float(t.responded), lambda t: 0
    ),
    Measure("citation_recall"): TextValue(citation_recall, _failed_citations),
    Measure("citation_precision"): TextValue(citation_precision, _failed_citations),
    **{
        Measure("output_type", name): TextValue(_is_type(name), _fails("independent", "grouped"))
        for name in TYPES
    },
}
# Measures whose values per text are compared between sources.
COMPARED = (
    FACTSCORE,
    D_FACTSCORE,
    GAP,
    Measure("biographies"),
    Measure("entities"),
    LINKED,
    Measure("citation_recall"),
)
_VERDICTS: tuple[Name, ...] = ("independent", "grouped")
_CORRELATIONS = {"pearson": pearson, "spearman": spearman}


def compute_values(texts: Sequence[JudgedText], views: Views | None, seed: int) -> list[dict]:
    """Compute the fields of the results, without shared fields."""
    rows = []
    sources = {
        name: [t for t in texts if t.source == name] for name in ("automatic", "file", "people")
    }
    for name, group in sources.items():
        rows += _means(name, group, seed)
    automatic = {text.id: text for text in sources["automatic"]}
    for name in ("file", "people"):
        pairs = [(automatic[text.id], text) for text in sources[name] if text.id in automatic]
        if pairs and len(pairs) < len(automatic):
            rows += _means(f"automatic on {name}'s texts", [ours for ours, _ in pairs], seed)
        rows += _comparison(name, pairs, seed)
    if views is not None:
        rows += _views(sources["automatic"], views, seed)
    return rows


def _parts(texts: Sequence[JudgedText]) -> Iterator[tuple[str, list[JudgedText]]]:
    parts = by_generator(texts)
    yield from parts.items()
    if len(parts) > 1:
        yield ALL, list(texts)


def _to_array(values: Iterable[float | None]) -> np.ndarray:
    return np.asarray([math.nan if value is None else float(value) for value in values])


# Means of one source


def _means(kind: str, texts: Sequence[JudgedText], seed: int) -> list[dict]:
    rows = []
    # Some released files have no titles after grouping; without a title, people were not linked.
    linked = {t.generator for t in texts if any(c.entity is not None for c in t.claims)}
    for generator, part in _parts(texts):
        columns = {name: _to_array(map(text.value, part)) for name, text in VALUES.items()}
        columns[LINKED][[text.generator not in linked for text in part]] = math.nan

        def statistics(chosen: np.ndarray, columns: dict = columns) -> dict[Measure, float]:
            return {measure: nan_mean(values[chosen]) for measure, values in columns.items()}

        topics = [text.topic for text in part]
        for measure, value in bootstrap(statistics, topics, seed=seed).items():
            failed = sum(map(VALUES[measure].failed, part))
            if value["value"] is not None or (failed and kind == "automatic"):
                n = len(set(compress(topics, ~np.isnan(columns[measure]))))
                rows.append(_row(measure, kind, generator, n, failed, value))
    return rows


def _row(
    measure: Measure, kind: str, generator: str, n: int, failed: int, value: Mapping, **more: object
) -> dict:
    key = {**measure._asdict(), "kind": kind, "generator": generator}
    return {**key, "n": n, "failed": failed, **value, **more}


# Two sources


def _comparison(
    source: str, both: Sequence[tuple[JudgedText, JudgedText]], seed: int
) -> list[dict]:
    """Compare the automatic verdicts with a source's.

    - ``balanced_accuracy``, variants ``independent`` and ``grouped``: over verdicts on claims;
      claims without an automatic verdict count as failed. ``several_people``: over texts, whether
      the supported claims have more than one title.
    - ``linked_alike``: share of the source's supported claims with the same title here; claims
      without an automatic verdict count as failed.
    - ``pearson_of_…``, ``spearman_of_…``: over the values per text.
    - ``citation_auroc``, ``citation_accuracy``: over the sentences' citations.
    """
    rows = []
    for generator, part in _parts([theirs for _, theirs in both]):
        by_id = {theirs.id: ours for ours, theirs in both}
        pairs = [(by_id[theirs.id], theirs) for theirs in part]
        table = _Table(pairs)
        values = bootstrap(table.statistics, [theirs.topic for theirs in part], seed=seed)
        for measure, value in values.items():
            if value["value"] is not None:
                n = len(set(compress([theirs.topic for theirs in part], table.entered[measure])))
                failed = table.failed.get(measure, 0)
                row = _row(measure, "automatic", generator, n, failed, value, against=source)
                rows.append(row)
    return rows


class _Table:
    """Counts of two sources on the same n texts, for resampling texts."""

    def __init__(self, pairs: Sequence[tuple[JudgedText, JudgedText]]):
        self.failed: dict[Measure, int] = {}
        self.entered: dict[Measure, np.ndarray] = {}  # included texts, shape (n,)
        self.cells: dict[Measure, np.ndarray] = {}  # (n, 2, 2): theirs, ours
        for name in _VERDICTS:
            self._verdicts(name, pairs)
        several = [(linked_people(ours), linked_people(theirs)) for ours, theirs in pairs]
        self.cells[Measure("balanced_accuracy", "several_people")] = np.asarray(
            [_cell([] if None in pair else [(pair[1] > 1, pair[0] > 1)]) for pair in several]
        )
        self.linked = np.asarray([self._linked(*pair) for pair in pairs])  # (n, 2): alike, all
        alike = Measure("linked_alike")
        self.failed[alike] = sum(
            sum(c.grouped is True and c.entity is not None for c in theirs.claims)
            for _, theirs in pairs
        ) - int(self.linked[:, 1].sum())
        self.entered |= {measure: cells.any(axis=(1, 2)) for measure, cells in self.cells.items()}
        self.entered[alike] = self.linked[:, 1] > 0
        self.values = {
            measure: np.stack(
                [_to_array(map(VALUES[measure].value, side)) for side in zip(*pairs, strict=True)]
            )
            for measure in COMPARED
        }
        for measure, values in self.values.items():
            for name in _CORRELATIONS:
                self.entered[_correlated(name, measure)] = ~np.isnan(values).any(axis=0)
        self.sentences = [self._sentences(*pair) for pair in pairs]
        cited = [s for ours, theirs in pairs if theirs.citations for s in ours.citations or []]
        for name in ("citation_auroc", "citation_accuracy"):
            self.failed[Measure(name)] = sum(s.recalled is None for s in cited)
            self.entered[Measure(name)] = np.asarray([len(cells) > 0 for cells in self.sentences])

    def _verdicts(self, name: Name, pairs: Sequence[tuple[JudgedText, JudgedText]]) -> None:
        cells, failed = [], 0
        for ours, theirs in pairs:
            claims, unmatched = matched(ours, theirs)
            judged = [(getattr(t, name), getattr(m, name)) for m, t in claims]
            due = [(t, m) for t, m in judged if t is not None]
            judged_pairs = [(t, m) for t, m in due if m is not None]
            failed += len(due) - len(judged_pairs) + unmatched
            cells.append(_cell(judged_pairs))
        self.cells[Measure("balanced_accuracy", name)] = np.asarray(cells)
        self.failed[Measure("balanced_accuracy", name)] = failed

    @staticmethod
    def _linked(ours: JudgedText, theirs: JudgedText) -> tuple[int, int]:
        judged = [(m, t) for m, t in matched(ours, theirs)[0] if m.grouped is not None]
        due = [(m.entity, t.entity) for m, t in judged if t.grouped and t.entity is not None]
        return sum(a == b for a, b in due), len(due)

    @staticmethod
    def _sentences(ours: JudgedText, theirs: JudgedText) -> np.ndarray:
        """Return their decision, our decision and our probability, shape (sentences, 3)."""
        if ours.citations is None or theirs.citations is None:
            return np.zeros((0, 3))
        pairs = zip(ours.citations, theirs.citations, strict=True)
        rows = [(t.recalled, m.recalled, m.p) for m, t in pairs if m.p is not None and m.text]
        return np.asarray(rows, dtype=float).reshape(-1, 3)

    def statistics(self, rows: np.ndarray) -> dict[Measure, float]:
        values = {
            measure: balanced_accuracy(cells[rows].sum(axis=0))
            for measure, cells in self.cells.items()
        }
        alike, due = self.linked[rows].sum(axis=0)
        values[Measure("linked_alike")] = alike / due if due else math.nan
        for measure, (ours, theirs) in self.values.items():
            complete = _complete_pairs(ours[rows], theirs[rows])
            for name, correlation in _CORRELATIONS.items():
                values[_correlated(name, measure)] = correlation(*complete)
        cited = np.concatenate([self.sentences[row] for row in rows])
        label = cited[:, 0] > 0
        values[Measure("citation_auroc")] = auroc(cited[:, 2], label)
        alike = label == (cited[:, 1] > 0)
        values[Measure("citation_accuracy")] = float(alike.mean()) if len(alike) else math.nan
        return values


def _correlated(correlation: str, measure: Measure) -> Measure:
    return measure._replace(metric=f"{correlation}_of_{measure.metric}")


def _cell(pairs: Sequence[tuple[bool, bool]]) -> np.ndarray:
    counts = np.zeros((2, 2))
    for theirs, ours in pairs:
        counts[int(theirs), int(ours)] += 1
    return counts


# Page views


def _views(texts: Sequence[JudgedText], views: Views, seed: int) -> list[dict]:
    """Analyse page views (section 5.3).

    Over texts with one biography and at least two retrieved people with page views:

    - ``most_viewed``: share whose person (the title with most supported claims) has the most-viewed
      page; ``most_viewed_by_chance``: the chance level.

    Our additions, over all texts with a person:

    - ``views_of_the_person``: mean of log10(1 + views) of the main person's page.
    - ``spearman_of_…``: correlation of D-FActScore, and of FActScore - D-FActScore, with it.
    """
    rows = []
    for generator, part in _parts([text for text in texts if text.responded]):
        columns = _view_columns(part, views)
        measures = {  # to the column that selects the texts, and ``against``
            Measure("most_viewed"): ("first", None),
            Measure("most_viewed_by_chance"): ("chance", None),
            Measure("views_of_the_person"): ("seen", None),
            _correlated("spearman", D_FACTSCORE): ("grouped", "views"),
            _correlated("spearman", GAP): ("gap", "views"),
        }

        def statistics(
            chosen: np.ndarray, columns: dict = columns, measures: dict = measures
        ) -> dict[Measure, float]:
            drawn = {name: values[chosen] for name, values in columns.items()}
            return {
                measure: nan_mean(drawn[name])
                if against is None
                else spearman(*_complete_pairs(drawn["seen"], drawn[name]))
                for measure, (name, against) in measures.items()
            }

        topics = [text.topic for text in part]
        for measure, value in bootstrap(statistics, topics, seed=seed).items():
            if value["value"] is not None:
                name, against = measures[measure]
                entered = ~np.isnan(columns[name])
                if against:
                    entered &= ~np.isnan(columns["seen"])
                # Texts without a person, or without views of the person.
                due = columns["due"] > 0 if name in ("first", "chance") else np.ones_like(entered)
                failed, n = int((due & ~entered).sum()), len(set(compress(topics, entered)))
                row = _row(measure, "automatic", generator, n, failed, value, against=against)
                rows.append(row)
    return rows


def _view_columns(texts: Sequence[JudgedText], views: Views) -> dict[str, np.ndarray]:
    people = [(main_person(text), views.candidates(text)) for text in texts]
    # The generator has a choice if it describes one of several retrieved people.
    due = [
        biographies(text) in (1, None) and len(pages) > 1
        for text, (_, pages) in zip(texts, people, strict=True)
    ]
    single = [
        person if biographies(text) == 1 else (None, [])
        for text, person in zip(texts, people, strict=True)
    ]
    return {
        "due": _to_array(due),
        "seen": _to_array([views.logarithm(title) for title, _ in people]),
        "first": _to_array([views.is_first(*person) for person in single]),
        "chance": _to_array([views.chance(*person) for person in single]),
        "grouped": _to_array(map(VALUES[D_FACTSCORE].value, texts)),
        "gap": _to_array(map(gap, texts)),
    }


def _complete_pairs(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known_both = ~np.isnan(left) & ~np.isnan(right)
    return left[known_both], right[known_both]
