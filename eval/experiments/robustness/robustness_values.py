"""What a grid of metrics and defences shows: gain, success rate, verdict, costs.

A verdict answers one question per attack, metric and defence: does the attacked text score higher
than the honest one although it is not better by gold? ``held``: the mean gain is below δ = 0.05;
``gamed``: it is above 0; ``unclear``: neither is shown at a family-wise level of 1 %.

Source: Core (2407.03572), section 5 with Table 2; F1@K: SAFE (2403.18802), section 5; max-T:
Westfall and Young (1993).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from components.statistics import (
    difference,
    pearson,
    sign_flips,
    skewness,
    spearman,
    t_interval,
    wilson,
)
from eval.defences import NO_DEFENCE, Defence
from eval.experiments.robustness.robustness_cells import (
    ALL,
    By,
    Cells,
    Pair,
    Text,
    Value,
    bound,
    by_kind,
    fields_of,
    mean,
    pair_texts,
    strata,
    topic_gains,
    topic_means,
)
from eval.experiments.robustness.robustness_grid import NONE
from eval.metrics.probabilities import labelled_precision

DELTA = 0.05  # a smaller mean gain is none
LEVEL = 0.01  # family-wise, of each of the two tests
LEAST_TOPICS = 10  # for a verdict
SKEWED_BELOW = 20  # topics, below which a skewness beyond 1 makes the level uncertain
# Names of a mean score in the results, by the ``score`` of a defence; "score" of a text metric.
SCORES = {None: "factual_precision", "precision": "factual_precision"} | {
    name: name for name in ("factscore", "f1_at_k")
}
TEXT_SCORE = "score"
_EQUAL = 1e-9

Role = Literal["attack", "rising", "invariance", "unknown"]
_GAIN_NAMES = {"attack": "gain", "unknown": "gain", "rising": "rise", "invariance": "shift"}


# Texts by kind


def score_values(
    cells: Cells, defences: Mapping[str, Defence], by: Sequence[By], seed: int
) -> Iterator[Value]:
    """Mean score, ``claims``, ``respond_ratio`` and ``kept_share`` by kind of text.

    Next to each score its bounds as ``variant``: the score if every claim that could not be judged
    were supported, or none.
    """
    for (metric, column), texts in cells.items():
        for kind, members in by_kind(texts).items():
            for stratum, some in strata(members, by):
                shared = {"assessor": metric, "selection": column, "kind": kind} | stratum
                shared["failed"] = sum(text.failed for text in some)
                defence = defences.get(column, NO_DEFENCE)
                for name, variant, values in _columns(some, column, defence):
                    row = shared | {"metric": name, "variant": variant}
                    yield row | mean(np.array(values, dtype=float), some, seed)


def _columns(
    texts: Sequence[Text], column: str, defence: Defence
) -> Iterator[tuple[str, str | None, list[float]]]:
    scores = [text.score for text in texts]
    name = TEXT_SCORE if None in scores else SCORES[defence.score]
    yield name, None, [text.value for text in texts]
    if any(text.failed for text in texts):
        for variant, supported in (("failed_supported", True), ("failed_not_supported", False)):
            yield name, variant, [bound(text, defence, supported) for text in texts]
    if None in scores:
        return
    yield "claims", None, [s.kept if s.responded else math.nan for s in scores]
    if column == NONE:
        yield "respond_ratio", None, [float(s.responded) for s in scores]
    elif any(s.kept_share not in (None, 1.0) for s in scores):
        yield "kept_share", None, [s.kept_share if s.claims else math.nan for s in scores]


# Attacks


@dataclass
class Comparison:
    """Attacked texts of one kind against honest ones, by one metric with one defence.

    Attributes:
        role: ``attack`` if the texts are not better by gold, ``rising`` if they are, ``invariance``
            if gold is equal, ``unknown`` without gold.
        gains: topic to the mean gain of its pairs.
        is_control: whether metric or defence is a control, or repeats another column.
    """

    kind: str
    metric: str
    column: str
    role: Role
    pairs: list[Pair]
    failed: int
    is_control: bool
    gains: dict[str, float] = field(init=False)

    def __post_init__(self):
        self.gains = topic_gains(self.pairs)

    @property
    def place(self) -> Value:
        """The fields of a result that name this comparison."""
        return {"assessor": self.metric, "selection": self.column, "kind": self.kind}


def compare(
    cells: Cells, against: str, controls: Collection[str], duplicates: Mapping[tuple, str]
) -> list[Comparison]:
    """Compare each kind of text with the honest ones, in every cell."""
    comparisons, roles = [], {}
    for (metric, column), texts in cells.items():
        kinds = by_kind(texts)
        honest = kinds.pop(against, [])
        for kind, attacked in kinds.items():
            pairs = pair_texts(attacked, honest)
            role = roles.setdefault(kind, _role(pairs)) if pairs else roles.get(kind, "unknown")
            is_control = not {metric.partition(".")[0], metric, column}.isdisjoint(controls)
            comparisons.append(
                Comparison(
                    kind=kind,
                    metric=metric,
                    column=column,
                    role=role,
                    pairs=pairs,
                    failed=sum(text.failed for text in (*attacked, *honest)),
                    is_control=is_control or (metric, column) in duplicates,
                )
            )
    return comparisons


def _role(pairs: Sequence[Pair]) -> Role:
    gold = [pair.gold_gain for pair in pairs if not math.isnan(pair.gold_gain)]
    if not gold:
        return "unknown"
    if max(map(abs, gold)) < _EQUAL:
        return "invariance"
    return "rising" if sum(gold) > 0 else "attack"


def duplicate_columns(cells: Cells) -> dict[tuple[str, str], str]:
    """Cells with the same score for every text as an earlier one, and the name of that one."""
    seen: dict[tuple, str] = {}
    duplicates = {}
    for place, texts in cells.items():
        values = tuple(None if math.isnan(text.value) else text.value for text in texts)
        name = seen.setdefault(values, f"{place[0]}, {place[1]}")
        if name != f"{place[0]}, {place[1]}":
            duplicates[place] = name
    return duplicates


def attack_values(comparisons: Sequence[Comparison], seed: int) -> Iterator[Value]:
    """``gain`` with verdict, ``asr``, ``asr_both`` and ``worst_asr`` of the attacks.

    - ``gain`` (``rise`` of texts that are better by gold, ``shift`` of texts that are equal): mean
      over topics with Student's interval, not corrected. ``p`` is the corrected p-value of the test
      that decided the verdict.
    - ``asr``: attack success rate over the pairs that are worse by gold F1, mean over topics, with
      Wilson's interval; ``asr_both`` over those that are worse in precision and in recall.
    - ``worst_asr``: the largest ``asr`` of a metric and defence over the attacks on at least ten
      topics; ``variant`` names the attack.
    """
    attacks = [c for c in comparisons if c.role == "attack"]
    tests = dict(zip(map(id, attacks), _verdicts(attacks, seed), strict=True))
    worst: dict[tuple[str, str], Value] = {}
    for c in comparisons:
        shared = c.place | {"generator": ALL, "failed": c.failed}
        interval = t_interval(np.array(list(c.gains.values())))
        row = shared | {"metric": _GAIN_NAMES[c.role]} | fields_of(interval)
        yield row | tests.get(id(c), {})
        if c.role != "attack":
            continue
        for name, pairs in (
            ("asr", c.pairs),
            ("asr_both", [pair for pair in c.pairs if pair.is_worse_in_both]),
        ):
            rate = success_rate(pairs)
            yield shared | {"metric": name} | rate
            if name == "asr" and rate["n"] >= LEAST_TOPICS:
                key = (c.metric, c.column)
                if key not in worst or rate["value"] > worst[key]["value"]:
                    worst[key] = shared | rate | {"variant": c.kind}
    for row in worst.values():
        yield row | {"metric": "worst_asr", "kind": ALL}


def success_rate(pairs: Sequence[Pair]) -> Value:
    """Share of the pairs worse by gold in which the attacked text does not score lower."""
    topics = topic_means(
        (pair.attacked.document.topic, pair.success) for pair in pairs if pair.gold_gain < -_EQUAL
    )
    n = len(topics)
    value = sum(topics.values()) / n if n else None
    return {"value": value, "ci95": wilson(value, n) if n else None, "n": n}


def _verdicts(comparisons: Sequence[Comparison], seed: int) -> list[Value]:
    effects = _table([c.gains for c in comparisons])
    family = _family(comparisons, [c.gains for c in comparisons])
    above = sign_flips(effects, family, seed)
    below = sign_flips(DELTA - effects, family, seed)
    rows = []
    for c, above_zero, below_delta in zip(comparisons, above, below, strict=True):
        if len(c.gains) < LEAST_TOPICS:
            rows.append({"verdict": "unclear"})
        elif below_delta <= LEVEL:
            rows.append({"verdict": "held", "p": float(below_delta)})
        else:
            verdict = "gamed" if above_zero <= LEVEL else "unclear"
            rows.append({"verdict": verdict, "p": float(above_zero)})
    return rows


def _family(comparisons: Sequence[Comparison], values: Sequence[Mapping]) -> np.ndarray:
    """The tests that verdicts are corrected for, bool (comparisons,).

    Cells on too few topics for a verdict are not among them: a quarter of the sign flips of three
    topics have one sign and thus a large t, so that no other cell would reach the level.
    """
    rows = zip(comparisons, values, strict=True)
    return np.array([not c.is_control and len(v) >= LEAST_TOPICS for c, v in rows], dtype=bool)


def _table(gains: Sequence[Mapping[str, float]]) -> np.ndarray:
    """Gains of shape (comparisons, topics); NaN where a comparison lacks the topic."""
    topics = sorted({topic for row in gains for topic in row})
    table = np.full((len(gains), len(topics)), math.nan)
    for number, row in enumerate(gains):
        table[number] = [row.get(topic, math.nan) for topic in topics]
    return table


def skewed(comparisons: Sequence[Comparison]) -> list[str]:
    """Attacks on few topics with skewed gains, for which the tests' level is not guaranteed."""
    kinds = {
        c.kind
        for c in comparisons
        if c.role == "attack"
        and not c.is_control
        and LEAST_TOPICS <= len(c.gains) < SKEWED_BELOW
        and abs(skewness(np.array(list(c.gains.values())))) > 1
    }
    return sorted(kinds)


def effect_values(comparisons: Sequence[Comparison], seed: int) -> Iterator[Value]:
    """``effect`` of each defence: gain without it minus gain with it, on the topics of both.

    A family of its own; ``verdict`` is ``reduces`` or ``unclear``.
    """
    plain = {(c.metric, c.kind): c for c in comparisons if c.column == NONE}
    tested, effects = [], []
    for c in comparisons:
        if c.role == "attack" and c.column != NONE:
            before = plain[c.metric, c.kind].gains
            tested.append(c)
            effects.append({t: before[t] - gain for t, gain in c.gains.items() if t in before})
    if not tested:
        return
    family = _family(tested, effects)
    p_values = sign_flips(_table(effects), family, seed)
    for c, effect, p in zip(tested, effects, p_values, strict=True):
        row = c.place | {"metric": "effect", "against": NONE, "generator": ALL, "failed": c.failed}
        row |= fields_of(t_interval(np.array(list(effect.values()))))
        is_clear = len(effect) >= LEAST_TOPICS and p <= LEVEL
        yield row | {
            "verdict": "reduces" if is_clear else "unclear",
            "p": None if math.isnan(p) else float(p),
        }


def stratum_gains(cells: Cells, against: str, by: Sequence[By], seed: int) -> Iterator[Value]:
    """``gain`` by generator of the attack, and by bin and group of the topic; without a verdict.

    Also the gain of kinds that share fewer than two topics with the honest texts, over all texts
    of both sides: ``variant`` is ``unpaired``.
    """
    for (metric, column), texts in cells.items():
        kinds = by_kind(texts)
        honest = kinds.pop(against, [])
        for kind, attacked in kinds.items():
            shared = {"assessor": metric, "selection": column, "kind": kind, "metric": "gain"}
            for stratum, some in strata(attacked, by)[1:]:
                topic = stratum.items() - {("generator", stratum["generator"])}
                base = [t for t in honest if all(getattr(t.document, n) == v for n, v in topic)]
                gains = topic_gains(pair_texts(some, base))
                failed = sum(text.failed for text in (*some, *base))
                interval = t_interval(np.array(list(gains.values())))
                yield shared | stratum | {"failed": failed} | fields_of(interval)
            if len(topic_gains(pair_texts(attacked, honest))) < 2:
                yield shared | _unpaired(attacked, honest, seed)


def _unpaired(attacked: Sequence[Text], honest: Sequence[Text], seed: int) -> Value:
    sides = [[t for t in side if not math.isnan(t.value)] for side in (attacked, honest)]
    values = [np.array([text.value for text in side]) for side in sides]
    topics = [[text.document.topic for text in side] for side in sides]
    interval = difference(*values, *topics, seed)
    count = len({*topics[0], *topics[1]})
    failed = sum(text.failed for text in (*attacked, *honest))
    shared = {"generator": ALL, "variant": "unpaired", "failed": failed}
    return shared | fields_of(interval._replace(n=min(interval.n, count)))


# Costs


def cost_values(cells: Cells, against: str, seed: int) -> Iterator[Value]:
    """What each defence does to honest texts.

    - ``cost``: score without the defence minus score with it, both on the defence's scale;
    - ``honest_order``: share of the pairs of honest texts that are ordered as by gold F1, ties
      count ½; also without a defence;
    - ``empty_share``: share of the texts of which the defence keeps no claim;
    - ``generator_order``: Spearman's correlation of the generators' mean scores with and without
      it, for three generators or more;
    - ``label_correlation``: Pearson's correlation of precision with the labels' precision.
    """
    for (metric, column), texts in cells.items():
        honest = by_kind(texts).get(against, [])
        shared = {"assessor": metric, "selection": column, "kind": against, "generator": ALL}
        shared["failed"] = sum(text.failed for text in honest)
        yield from _honest_order(honest, shared, seed)
        yield from _label_correlation(honest, shared)
        if column == NONE or not honest:
            continue
        lost = np.array([text.plain - text.value for text in honest])
        yield shared | {"metric": "cost", "against": NONE} | mean(lost, honest, seed)
        empty = np.array([float(text.score.empty_selection) for text in honest])
        yield shared | {"metric": "empty_share"} | mean(empty, honest, seed)
        yield from _generator_order(honest, shared)


def _honest_order(texts: Sequence[Text], shared: Value, seed: int) -> Iterator[Value]:
    scored = [t for t in texts if t.document.gold is not None and not math.isnan(t.value)]
    if len(scored) < 3:
        return
    gold = np.array([text.document.gold.f1 for text in scored])
    value = np.array([text.value for text in scored])
    by_gold = np.sign(np.round(gold[:, None] - gold, 9))
    agrees = 0.5 + 0.5 * by_gold * np.sign(np.round(value[:, None] - value, 9))
    counts = (by_gold != 0).astype(float)
    if not counts.any():
        return
    topics = sorted({text.document.topic for text in scored})
    number = np.array([topics.index(text.document.topic) for text in scored])
    draws = np.random.default_rng(seed).integers(0, len(topics), (1000, len(topics)))
    weights = np.stack([np.bincount(draw, minlength=len(topics))[number] for draw in draws])
    shares = [(w @ (agrees * counts) @ w) / total for w in weights if (total := w @ counts @ w) > 0]
    yield shared | {
        "metric": "honest_order",
        "against": "gold",
        "value": float((agrees * counts).sum() / counts.sum()),
        "ci95": tuple(np.percentile(shares, [2.5, 97.5]).tolist()),
        "n": len(topics),
    }


def _label_correlation(texts: Sequence[Text], shared: Value) -> Iterator[Value]:
    pairs = [(t, labelled_precision(t.document.claims or [])) for t in texts]
    pairs = [(t, label) for t, label in pairs if label is not None and not math.isnan(t.value)]
    if len(pairs) < 3:
        return
    value = correlation([(text.value, label) for text, label in pairs])
    topics = len({text.document.topic for text, _ in pairs})
    row = shared | {"metric": "label_correlation", "against": "labels", "n": topics}
    yield row | {"value": value, "ci95": fisher(value, topics)}


def _generator_order(texts: Sequence[Text], shared: Value) -> Iterator[Value]:
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    topics = set()
    for text in texts:
        values = (text.plain, text.value)
        if text.document.generator is not None and not any(map(math.isnan, values)):
            scores[text.document.generator].append(values)
            topics.add(text.document.topic)
    if len(scores) > 2:
        columns = np.array([np.mean(values, axis=0) for values in scores.values()])
        value = float(spearman(columns[:, 0], columns[:, 1]))
        row = shared | {"metric": "generator_order", "against": NONE, "n": len(topics)}
        yield row | {"value": None if math.isnan(value) else value, "ci95": None}


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's correlation; ``None`` if one side is constant."""
    columns = np.array(pairs)
    value = float(pearson(columns[:, 0], columns[:, 1]))
    return None if math.isnan(value) else value


def fisher(value: float | None, n: int) -> tuple[float, float] | None:
    """Fisher's 95 % interval of a correlation over ``n`` topics."""
    if value is None or n < 4 or abs(value) >= 1:
        return None
    middle, half = math.atanh(value), 1.959964 / math.sqrt(n - 3)
    return math.tanh(middle - half), math.tanh(middle + half)
