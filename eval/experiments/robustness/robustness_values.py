"""What a grid of metrics and defences says about gaming: gain, cost, curve, agreement.

Source: Core (2407.03572), section 5 with Table 2, section 5.3 with Figure 4, section 5.4 with Table
4. All values are means over texts of factual precision, or of F1@K (SAFE, 2403.18802, section 5),
under one metric and one defence; intervals are over topics.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from components.statistics import Ratio, difference, pearson, ratio, spearman
from eval.experiments.robustness.robustness_grid import NONE, Judged, Row
from eval.experiments.robustness.robustness_texts import twin_of
from eval.metrics.document import DocumentScore, f1_at_k
from eval.metrics.probabilities import labelled_precision
from records import Document

Value = dict[str, Any]
By = Literal["generator", "bin", "group"]
ALL = "all"
# Names of a mean score in the results: that of a metric, and that of the same with K.
SCORES = ("factual_precision", "f1_at_k")
# What is left of a difference of equal means is the rounding of their sums, and no gain.
_ROUNDING = 1e-12


class Text(NamedTuple):
    """A text with its score by one metric under one defence.

    Attributes:
        k: of F1@K; ``None`` where the score is precision.
    """

    document: Document
    score: DocumentScore
    k: int | None = None

    @property
    def value(self) -> float:
        """The score: NaN where nothing could be judged; of a refusal NaN, and F1@K 0."""
        found = self.score.precision if self.k is None else self.score.at_k(self.k).f1
        return math.nan if found is None else found

    def bound(self, supported: bool) -> float:
        """The score if all claims that failed were supported, or none."""
        total = self.score.judged + self.score.failed
        if not self.score.responded or not total:
            return self.value
        count = self.score.supported + supported * self.score.failed
        return count / total if self.k is None else f1_at_k(count / total, count, self.k)


# Metric (with the name of its verdict, where it has several) and defence to the texts' scores.
Cells = dict[tuple[str, str], list[Text]]


def cells_of(rows: Sequence[Row], k: int | None = None) -> Cells:
    """The scores of all texts by metric and defence; a text without verdicts is in all of them.

    With ``k`` each metric stands there a second time, by F1@K in the place of precision.
    """
    found: Cells = defaultdict(list)
    for metric in rows[0].metrics if rows else ():
        names = names_of(row.metrics[metric] for row in rows)
        for row in rows:
            for score in row.metrics[metric].scores:
                own = (score.assessor, score.name)
                for name in [own] if own in names or not names else names:
                    label = label_of(metric, name, names)
                    found[label, score.selection].append(Text(row.document, score))
    if k:
        for (label, defence), texts in list(found.items()):
            found[with_k(label, k), defence] = [text._replace(k=k) for text in texts]
    return dict(found)


def with_k(metric: str, k: int | str) -> str:
    """The name of a metric by F1@K; with an empty K what all such names begin with."""
    return f"{metric}, F1@{k}"


def by_k(texts: Sequence[Text]) -> bool:
    """Whether the texts of a cell are scored by F1@K."""
    return any(text.k is not None for text in texts)


def names_of(judged: Iterable[Judged]) -> list[tuple[str, str]]:
    """The assessors and their named verdicts that a metric gives."""
    return list(dict.fromkeys((s.assessor, s.name) for j in judged for s in j.scores if s.kept))


def label_of(metric: str, own: tuple[str, str], names: Sequence[tuple[str, str]]) -> str:
    """The metric's name; of a metric with several verdicts with theirs."""
    if len(names) < 2:
        return metric
    several = len({assessor for assessor, _ in names}) > 1
    return ".".join([metric, *([own[0]] if several else []), own[1]])


def strata(texts: Sequence[Text], by: Sequence[By]) -> Iterator[tuple[Value, list[Text]]]:
    """All texts, and those of each generator, bin and group that there are several of."""
    yield {"generator": ALL}, list(texts)
    for field in by:
        own: dict[str, list[Text]] = defaultdict(list)
        for text in texts:
            if (name := getattr(text.document, field)) is not None:
                own[name].append(text)
        if len(own) > 1:
            for name in sorted(own):
                yield {"generator": ALL} | {field: name}, own[name]


# Texts by kind


def of_texts(cells: Cells, by: Sequence[By], seed: int) -> Iterator[Value]:
    """``factual_precision`` and ``claims``, ``respond_ratio``, with a defence ``kept_share``.

    By F1@K only ``f1_at_k``. Beside each score its bounds, as ``variant``: what it would be if
    every claim that could not be judged were supported, or none.
    """
    for (metric, defence), texts in cells.items():
        for kind, own in by_kind(texts).items():
            for stratum, some in strata(own, by):
                shared = {"assessor": metric, "selection": defence, "kind": kind} | stratum
                shared["failed"] = sum(text.score.failed for text in some)
                for name, (variant, column) in _columns(some, defence).items():
                    yield (
                        shared
                        | {"metric": name.split(":")[0], "variant": variant}
                        | mean(column, some, seed)
                    )


def _columns(texts: Sequence[Text], defence: str) -> dict[str, tuple[str | None, np.ndarray]]:
    scores = [text.score for text in texts]
    name = SCORES[by_k(texts)]
    found = {name: (None, np.array([text.value for text in texts]))}
    if any(score.failed for score in scores):
        for variant, said in (("failed_supported", True), ("failed_not_supported", False)):
            column = np.array([text.bound(said) for text in texts])
            found[f"{name}:{variant}"] = (variant, column)
    if by_k(texts):
        return found  # the claims are those of the precision
    found["claims"] = (None, _column(s.kept if s.responded else None for s in scores))
    if defence == NONE:
        found["respond_ratio"] = (None, _column(float(s.responded) for s in scores))
    else:
        found["kept_share"] = (None, _column(s.kept_share for s in scores))
    return found


# Gain and cost


def gains(
    cells: Cells, against: str, rising: Collection[str], by: Sequence[By], seed: int
) -> Iterator[Value]:
    """``gain`` of each kind of text against ``against``, and whether the metric is ``gamed`` by it.

    Texts that say which honest text they were made of (``clean``) are paired with it: the mean of
    the differences. Else the mean over topics of the difference of the two kinds' means on a topic,
    where at least two topics have both; else the difference of the means of all (``variant`` is
    ``unpaired``). The metric is gamed (1) where the interval is above 0. A stratum of generators is
    that of the attack; a stratum of topics is that of both sides. Of the kinds in ``rising``, which
    are better than the honest texts, the same is a ``rise``, and nothing is gamed.
    """
    for (metric, defence), texts in cells.items():
        kinds = by_kind(texts)
        honest = kinds.pop(against, [])
        for kind, own in kinds.items():
            for stratum, some in strata(own, by):
                field = next((f for f in ("bin", "group") if f in stratum), None)
                base = [t for t in honest if _is(t, field, stratum)]
                paired, (value, ci95, n) = gain(some, base, seed)
                shared = {"assessor": metric, "selection": defence, "kind": kind} | stratum
                shared |= {"against": against, "variant": None if paired else "unpaired", "n": n}
                shared["failed"] = sum(text.score.failed for text in (*some, *base))
                if kind in rising:
                    yield shared | {"metric": "rise", "value": value, "ci95": ci95}
                else:
                    yield from gained(shared, value, ci95)


def gained(shared: Value, value: float | None, ci95: tuple[float, float] | None) -> Iterator[Value]:
    """``gain`` and whether the metric is ``gamed``, with the fields that both share."""
    yield shared | {"metric": "gain", "value": value, "ci95": ci95}
    gamed = None if ci95 is None else float(ci95[0] > 0)
    yield shared | {"metric": "gamed", "value": gamed, "ci95": None}


def gain(attack: Sequence[Text], honest: Sequence[Text], seed: int) -> tuple[bool, Ratio]:
    """Whether topics or texts were paired, and the mean difference of the score."""
    texts = {t.document.id: t for t in honest}
    pairs = [(t, texts[name]) for t in attack if (name := _made_of(t)) in texts]
    pairs = [(t, of) for t, of in pairs if not math.isnan(t.value - of.value)]
    topics = [one.document.topic for one, _ in pairs]
    if len({*topics}) > 1:
        differences = np.array([one.value - of.value for one, of in pairs])
        return True, _told(ratio(differences, np.ones(len(pairs)), topics, seed))
    first, second = _by_topic(attack), _by_topic(honest)
    shared = sorted(first.keys() & second.keys())
    if len(shared) > 1:
        differences = np.array([np.mean(first[t]) - np.mean(second[t]) for t in shared])
        return True, _told(ratio(differences, np.ones(len(shared)), shared, seed))
    sides = [[(t, v) for t, own in side.items() for v in own] for side in (first, second)]
    values = [np.array([v for _, v in side]) for side in sides]
    value, ci95, n = difference(*values, *([t for t, _ in side] for side in sides), seed)
    n = min(n, len(first.keys() | second.keys()))  # a topic of both sides is one
    return False, _told(Ratio(value, ci95, n))


def costs(cells: Cells, against: str, by: Sequence[By], seed: int) -> Iterator[Value]:
    """What each defence does to honest texts.

    - ``cost``: mean over texts of the score without it minus the score with it;
    - ``label_correlation``: Pearson's correlation of the texts' precision with that of their labels
      (S against NS), where they have any, also without a defence; not of F1@K;
    - ``generator_order``: Spearman's correlation of the generators' mean score with and without
      it, of three generators or more.
    """
    for (metric, defence), texts in cells.items():
        own = by_kind(texts).get(against, [])
        shared = {"assessor": metric, "selection": defence, "kind": against}
        if not by_k(own):
            yield from _label_correlation(own, shared, seed)
        if defence == NONE or not own:
            continue
        without = {t.document.id: t for t in by_kind(cells[metric, NONE]).get(against, [])}
        for stratum, some in strata(own, by):
            column = np.array([without[t.document.id].value - t.value for t in some])
            row = shared | stratum | {"metric": "cost", "against": NONE}
            yield row | {"failed": sum(t.score.failed for t in some)} | mean(column, some, seed)
        yield from _order(own, without, shared)


def _label_correlation(texts: Sequence[Text], shared: Value, seed: int) -> Iterator[Value]:
    pairs = [(t, t.value, labelled_precision(t.document.claims or [])) for t in texts]
    pairs = [(t, one, other) for t, one, other in pairs if other is not None and one == one]
    if len(pairs) < 3:
        return
    found = correlation([(one, other) for _, one, other in pairs])
    topics = len({t.document.topic for t, _, _ in pairs})
    yield shared | {
        "metric": "label_correlation",
        "against": "labels",
        "generator": ALL,
        "n": topics,
        "failed": sum(t.score.failed for t, _, _ in pairs),
        "value": found,
        "ci95": fisher(found, topics),
    }


def _order(texts: Sequence[Text], without: Mapping[str, Text], shared: Value) -> Iterator[Value]:
    means: dict[str, list[tuple[float, float]]] = defaultdict(list)
    topics = set()
    for text in texts:
        pair = (without[text.document.id].value, text.value)
        if text.document.generator is not None and not any(map(math.isnan, pair)):
            means[text.document.generator].append(pair)
            topics.add(text.document.topic)
    if len(means) > 2:
        columns = np.array([np.mean(own, axis=0) for own in means.values()])
        value = float(spearman(columns[:, 0], columns[:, 1]))
        yield shared | {
            "metric": "generator_order",
            "against": NONE,
            "generator": ALL,
            "n": len(topics),
            "failed": sum(text.score.failed for text in texts),
            "value": None if math.isnan(value) else value,
            "ci95": None,
        }


# The curve


def curve(name: str, cells: Cells, seed: int) -> Iterator[Value]:
    """Corrupted texts with k adversarial sentences behind, against their clean twins (section 5.3).

    Documents count whose clean twin and whose text at every k have a score.

    - ``factual_precision``, or ``f1_at_k``, by ``variant``: ``clean``, or k;
    - ``gain`` at k against ``clean``;
    - ``break_even``: the least k at which the corrupted texts are above the clean ones in the mean;
      no value where none is.
    """
    for (metric, defence), texts in cells.items():
        by_document: dict[str, dict[object, Text]] = defaultdict(dict)
        for text in texts:
            twin, k = twin_of(text.document)
            by_document[twin][k] = text
        every = sorted({k for own in by_document.values() for k in own if k is not None})
        whole = [
            own
            for own in by_document.values()
            if all(k in own and not math.isnan(own[k].value) for k in (None, *every))
        ]
        shared = {"assessor": metric, "selection": defence, "kind": name, "generator": ALL}
        shared["failed"] = sum(t.score.failed for own in whole for t in own.values())
        clean = np.array([own[None].value for own in whole])
        least = None
        for k in (None, *every):
            told = [own[k] for own in whole]
            column = np.array([text.value for text in told])
            row = shared | {"variant": "clean" if k is None else k}
            yield row | {"metric": SCORES[by_k(texts)]} | mean(column, told, seed)
            if k is not None:
                own = mean(column - clean, told, seed)
                yield row | {"metric": "gain", "against": "clean"} | own
                if least is None and own["value"] is not None and own["value"] > 0:
                    least = k
        topics = len({own[None].document.topic for own in whole})
        row = shared | {"metric": "break_even", "against": "clean", "n": topics}
        yield row | {"value": least, "ci95": None}


# Small steps


def by_kind(texts: Iterable[Text]) -> dict[str, list[Text]]:
    """Kind to its texts, in the texts' order."""
    found: dict[str, list[Text]] = defaultdict(list)
    for text in texts:
        found[text.document.kind or "normal"].append(text)
    return dict(found)


def _made_of(text: Text) -> str | None:
    name = (text.document.model_extra or {}).get("clean")
    return name if isinstance(name, str) else None


def _is(text: Text, field: str | None, stratum: Value) -> bool:
    return field is None or getattr(text.document, field) == stratum[field]


def _by_topic(texts: Sequence[Text]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for text in texts:
        if not math.isnan(text.value):
            found[text.document.topic].append(text.value)
    return found


def _column(values: Iterable[float | None]) -> np.ndarray:
    return np.array([math.nan if value is None else float(value) for value in values])


def mean(column: np.ndarray, texts: Sequence[Text], seed: int) -> Value:
    """Value, interval and number of topics, of the rows that have a value."""
    there = ~np.isnan(column)
    topics = [text.document.topic for text, known in zip(texts, there, strict=True) if known]
    value, ci95, n = _told(ratio(column[there], np.ones(there.sum()), topics, seed))
    return {"value": value, "ci95": ci95, "n": n}


def _told(found: Ratio) -> Ratio:
    value, ci95, n = found
    low, high = (0.0 if abs(end) < _ROUNDING else end for end in ci95 or (0.0, 0.0))
    rounded = 0.0 if value is not None and abs(value) < _ROUNDING else value
    return Ratio(rounded, None if ci95 is None else (low, high), n)


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    columns = np.array(pairs)
    value = float(pearson(columns[:, 0], columns[:, 1]))
    return None if math.isnan(value) else value


def fisher(value: float | None, n: int) -> tuple[float, float] | None:
    """Fisher's interval of a correlation of ``n`` topics."""
    if value is None or n < 4 or abs(value) >= 1:
        return None
    middle, half = math.atanh(value), 1.959964 / math.sqrt(n - 3)
    return math.tanh(middle - half), math.tanh(middle + half)
