"""What a run says, in sentences: whether a defence held while an adversary was trained."""

from __future__ import annotations

from eval.experiments.optimise.lookup import Steps
from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.lookup import above_0
from eval.experiments.robustness.words import signed
from eval.report.declare import number
from records import Result

Pair = tuple[str, str]


def summary_of(own: Steps) -> list[tuple[str, str]]:
    """The answer, and a sentence a metric and adversary: what it is of, and what is said."""
    found = [("", headline(own))]
    found += [
        (f"{metric}, {adversary}", _of_pair(own, metric, adversary))
        for metric in own.metrics
        for adversary in own.adversaries
    ]
    return [*found, *((name, _texts(own, name)) for name in own.adversaries)]


def gamed(own: Steps, defence: str) -> list[Pair]:
    """Metrics and adversaries with some step whose gain over the start is above 0."""
    return [
        (metric, adversary)
        for metric in own.metrics
        for adversary in own.adversaries
        if above_0(own.most((metric, defence), adversary))
    ]


def headline(own: Steps) -> str:
    """The answer to the page's question."""
    without = gamed(own, NONE)
    every = [(metric, adversary) for metric in own.metrics for adversary in own.adversaries]
    if without:
        text = f"Without a defence {_told(own, NONE, without, every)}."
    elif not any(_measured(own, NONE, pair) for pair in every):
        lacking = _lacking(own, NONE, every)
        text = f"Whether training gained anything cannot be said: {lacking} an interval."
    else:
        text = (
            "Training gained nothing without a defence that can be told from none: at no step is "
            "the interval of a gain above 0, so there was nothing that a defence could stop"
        )
        unknown = sum(not _measured(own, NONE, pair) for pair in every)
        text += f", but {unknown} of {len(every)} pairs cannot be told" * bool(unknown)
        text += "."
    asked = without or every
    for defence in own.defences[1:]:
        through = gamed(own, defence)
        unknown = [pair for pair in asked if not _measured(own, defence, pair)]
        if through:
            text += f" {defence} did not hold: with it {_told(own, defence, through, every)}."
        elif unknown == asked:
            where = "where training gained, " if without else ""
            lacking = f"{where}{_lacking(own, defence, asked, 'gain with it')} an interval"
            text += f" Whether {defence} held cannot be said: {lacking}."
        elif without:
            but = f", but {len(unknown)} of the pairs that gained cannot be told" if unknown else ""
            text += f" {defence} held: with it no gain over the start is above 0 at any step{but}."
        else:
            text += f" With {defence} no gain is above 0 either, which does not show that it holds."
    return text


def _told(own: Steps, defence: str, pairs: list[Pair], every: list[Pair]) -> str:
    metric, adversary = max(pairs, key=lambda pair: own.most((pair[0], defence), pair[1]).value)
    most = own.most((metric, defence), adversary)
    return (
        f"{len(pairs)} of {len(every)} pairs of metric and adversary gain over the start of the "
        f"training (most: {metric}, {adversary}, {signed(most)} at step {most.variant})"
    )


def _measured(own: Steps, defence: str, pair: Pair) -> bool:
    said = _said(own, defence, pair)
    return True in said or None not in said


def _said(own: Steps, defence: str, pair: Pair) -> list[bool | None]:
    metric, adversary = pair
    rows = (own.gain((metric, defence), adversary, s) for s in own.adversaries[adversary][1:])
    return [above_0(row) for row in rows]


def _lacking(own: Steps, defence: str, pairs: list[Pair], what: str = "gain") -> str:
    said = [one for pair in pairs for one in _said(own, defence, pair)]
    return f"no {what} has" if set(said) == {None} else f"not every {what} has"


def _of_pair(own: Steps, metric: str, adversary: str) -> str:
    first, last = own.adversaries[adversary][0], own.adversaries[adversary][-1]
    ends = [own.get("factual_precision", (metric, NONE), adversary, s) for s in (first, last)]
    text = " to ".join("–" if row is None else number(row.value) for row in ends)
    text = f"precision from {text} (steps {first} to {last})"
    honest = own.get("factual_precision", (metric, NONE), own.against, None)
    if honest is not None and honest.value is not None:
        text += f", of {own.against} texts {number(honest.value)}"
    parts = [_defence(own, (metric, defence), adversary) for defence in own.defences]
    return "; ".join([text, *parts]) + "."


def _defence(own: Steps, place: Pair, adversary: str) -> str:
    most = own.most(place, adversary)
    with_it = "without a defence" if place[1] == NONE else f"with {place[1]}"
    if most is None:
        return f"{with_it} no gain was measured"
    told = f"{signed(most)} at step {most.variant}"
    if most.ci95 is None:
        return f"{with_it} {told}, without an interval"
    if above_0(most):
        return f"{with_it} it gains ({told})" + ": the defence does not hold" * (place[1] != NONE)
    if not _measured(own, place[1], (place[0], adversary)):
        return f"{with_it} no step is known to gain ({told}), and not every step could be judged"
    stopped = place[1] != NONE and above_0(own.most((place[0], NONE), adversary))
    return f"{with_it} no step gains ({told})" + ": the defence holds" * bool(stopped)


def _texts(own: Steps, adversary: str) -> str:
    steps = own.adversaries[adversary]
    ends = (steps[0], steps[-1])
    parts = []
    for name, metric in (
        ("texts that respond", "respond_ratio"),
        ("subclaims", "claims"),
        *((f"share of them that {defence} keeps", defence) for defence in own.defences[1:]),
    ):
        kept = metric in own.defences
        place = (own.metrics[0], metric if kept else NONE)
        what = "kept_share" if kept else metric
        parts.append(_change(name, *(own.get(what, place, adversary, s) for s in ends)))
    for name, metric in (("different texts", "distinct_share"), ("relevance", "relevance")):
        rows = [own.get(metric, (None, NONE), adversary, s) for s in ends]
        parts.append(_change(name, *rows))
    told = "; ".join(filter(None, parts))
    return f"from step {ends[0]} to {ends[1]}, under {own.metrics[0]}: {told}."


def _change(name: str, first: Result | None, last: Result | None) -> str:
    if first is None or last is None or first.value is None or last.value is None:
        return ""
    unit = "tenth" if first.metric == "claims" else "share"
    return f"{name} {number(first.value, unit)} to {number(last.value, unit)}"
