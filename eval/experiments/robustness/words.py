"""What a robustness run says, in sentences: who is gamed by what, and what a defence does to it."""

from __future__ import annotations

from typing import NamedTuple

from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.lookup import CLEAN, ROOM, Lookup, above_0
from records import Result


class Said(NamedTuple):
    """A sentence and the metric that it is of, if any."""

    text: str
    metric: str = ""


def summary_of(own: Lookup, controls: Lookup) -> list[Said]:
    """The answer, one sentence a metric, and what the controls make of it."""
    return [
        Said(headline(own)),
        *(Said(_of_metric(own, metric), metric) for metric in own.metrics),
        Said(_of_controls(own, controls)),
    ]


# The answer


def absent(own: Lookup) -> bool:
    """Whether nothing is gamed without a defence, by texts or along a curve."""
    return not gamed_pairs(own, NONE) and not _overtaken(own)


def gamed_pairs(own: Lookup, defence: str) -> list[tuple[str, str]]:
    """Metrics and attacks whose gain is above 0 under a defence."""
    return [(m, a) for m in own.metrics for a in own.attacks if own.gamed((m, defence), a)]


def _overtaken(own: Lookup) -> list[tuple[str, str]]:
    above = filter(above_0, _along_curves(own))
    return list(dict.fromkeys((row.assessor, row.kind) for row in above))


def _along_curves(own: Lookup) -> list[Result]:
    rows = [
        own.get("gain", (metric, NONE), name, k)
        for metric in own.metrics
        for name, every in own.curves.items()
        for k in every
    ]
    return [row for row in rows if row is not None]


def headline(own: Lookup) -> str:
    """The answer to the page's question."""
    pairs, curves = gamed_pairs(own, NONE), _overtaken(own)
    if not own.attacks and not own.curves:
        return "The run has no adversarial texts and no curve, so it shows nothing about gaming."
    if absent(own):
        return _absent(own)
    if not pairs:
        names = _list(sorted({metric for metric, _ in curves}))
        return (
            f"Only along a curve: no attack scores above {own.against} texts without a defence, "
            f"but with enough sentences behind them corrupted texts overtake clean ones ({names})."
        )
    count = len({metric for metric, _ in pairs})
    text = (
        f"Yes: without a defence {count} of {_counted(own.metrics, 'metric')} "
        f"{'scores' if count == 1 else 'score'} adversarial texts above {own.against} ones "
        f"({_counted(pairs, 'gain')} above 0)."
    )
    for defence in own.defences[1:]:
        text += f" With {defence} {_left(own, defence, pairs)}{_dearest(own, defence)}."
    return text


def _left(own: Lookup, defence: str, pairs: list[tuple[str, str]]) -> str:
    said = [own.gamed((metric, defence), attack) for metric, attack in pairs]
    left, unknown = said.count(True), said.count(None)
    if unknown == len(said):
        return "none of them can be told"
    text = f"{left or 'none'} of them {'stays' if left < 2 else 'stay'} above 0"
    return text + f" and {unknown} cannot be told" * bool(unknown)


def _absent(own: Lookup) -> str:
    rows = [own.get("gain", (m, NONE), a) for m in own.metrics for a in own.attacks]
    known = [row for row in rows if row is not None and row.value is not None]
    largest = ""
    if known:
        most = max([row for row in known if row.ci95] or known, key=lambda row: row.value)
        largest = f" (the largest is {signed(most)}, {most.kind} texts under {most.assessor})"
    # A gain without an interval may be one: it is no sign that there is none.
    if all(above_0(row) is None for row in (rows if own.attacks else _along_curves(own))):
        why = "no gain has an interval, since there are too few topics"
        why = why if known or not own.attacks else "no gain could be measured"
        return f"Whether the score can be gamed cannot be told: {why}{largest}."
    rows += _along_curves(own)
    unknown = sum(above_0(row) is None for row in rows)
    text = "As far as can be told, the" if unknown else "The"
    text += f" phenomenon is absent: without a defence no gain is above 0{largest}"
    text += ". There is nothing that a defence could stop, so this run shows nothing about defences"
    full = [metric for metric in own.metrics if own.without_room(metric)]
    if full:
        means = f"{own.against} texts score above {ROOM} under {_list(full)}"
        text += f"; {means}, which leaves no room for a gain"
    return text + f"; {unknown} of {_counted(rows, 'gain')} cannot be told" * bool(unknown) + "."


def _dearest(own: Lookup, defence: str) -> str:
    rows = [own.get("cost", (metric, defence), own.against) for metric in own.metrics]
    known = [row for row in rows if row is not None and row.value is not None]
    if not known:
        return ""
    most = signed(max(known, key=lambda row: row.value))
    return f", at a cost of at most {most} on {own.against} texts"


# A metric


def _of_metric(own: Lookup, metric: str) -> str:
    parts = [_gains(own, metric), _honest(own, metric)]
    parts += [_of_curve(own, metric, name) for name in own.curves]
    return "; ".join(filter(None, parts)) + "."


def _gains(own: Lookup, metric: str) -> str:
    rows = {a: own.get("gain", (metric, NONE), a) for a in own.attacks}
    known = {a: row for a, row in rows.items() if row is not None and row.value is not None}
    if not known:
        return "no gain was measured"
    verbs = {
        True: "gamed by",
        False: "not gamed by",
        None: "no interval tells whether it is gamed by",
    }
    said = {verb: [a for a in known if own.gamed((metric, NONE), a) is verb] for verb in verbs}
    gamed = said[True]
    told = [
        f"{verbs[verb]} " + _list([f"{a} texts ({signed(known[a])})" for a in some])
        for verb, some in said.items()
        if some and (verb or not gamed)
    ]
    text = f"{_list(told)} without a defence"
    return text + "".join(_with(own, (metric, d), gamed) for d in own.defences[1:])


def _with(own: Lookup, place: tuple[str, str], gamed: list[str]) -> str:
    rows = [(a, own.get("gain", place, a)) for a in own.attacks]
    known = [(a, row) for a, row in rows if row is not None and row.value is not None]
    told = {a: (f"{a} ({r.value:+z.2f})", own.gamed(place, a)) for a, r in known}
    verbs = {False: "stops", True: "does not stop", None: "cannot be told of"}
    parts = []
    for said, verb in verbs.items():
        some = [text for a, (text, above) in told.items() if a in gamed and above is said]
        parts.append(f"{verb} {_list(some)}" * bool(some))
    new = [text for a, (text, above) in told.items() if a not in gamed and above]
    parts.append(f"is gamed by {_list(new)}" * bool(new))
    told = _list([part for part in parts if part])
    return f", {place[1]} {told}" if told else ""


def _honest(own: Lookup, metric: str) -> str:
    row = own.score((metric, NONE), own.against)
    if row is None or row.value is None:
        return ""
    text = f"{own.against} texts score {row.value:.2f}"
    if own.without_room(metric):
        text += f", which is above {ROOM} and leaves no room for a gain"
    false = own.get("supported_if_false", (metric, NONE), own.against)
    if false is not None and false.value is not None:
        text += f" and {100 * false.value:.0f} % of their false claims are called supported"
    costs = [(d, own.get("cost", (metric, d), own.against)) for d in own.defences[1:]]
    told = [f"{d} {r.value:+z.2f}" for d, r in costs if r is not None and r.value is not None]
    return text + (f", cost of {_list(told)}" if told else "")


def _of_curve(own: Lookup, metric: str, name: str) -> str:
    told, sizes = [], []
    for defence in own.defences:
        row = own.get("break_even", (metric, defence), name)
        clean = own.score((metric, defence), name, CLEAN)
        if row is None or clean is None or clean.value is None:
            continue
        how = "without a defence" if defence == NONE else f"with {defence}"
        when = "never" if row.value is None else f"at k = {row.value:g}"
        told.append(f"{when} {how}")
        sizes.append(row.n)
    if not told:
        return ""
    most = max(own.curves[name], default=0)
    least = f"n = {min(sizes)}" + " or more" * (len(set(sizes)) > 1)
    return f"corrupted texts overtake clean ones ({name}, k up to {most}, {least}) {_list(told)}"


# Controls


def _of_controls(own: Lookup, controls: Lookup) -> str:
    if not controls.rows:
        return "The run has no untrained control, so it does not show that training matters."
    pairs = gamed_pairs(own, NONE)
    told = [
        _of_defence(own, controls, defence, pairs)
        for defence in controls.defences
        if defence not in own.defences
    ]
    for metric in controls.metrics:
        if metric not in own.metrics:
            gains = {a: controls.gamed((metric, NONE), a) for a in controls.attacks}
            some = [attack for attack, above in gains.items() if above]
            said = f"is gamed by {_list(some)} as well" if some else "is not gamed"
            if all(above is None for above in gains.values()):
                said = "cannot be told of: no gain has an interval"
            told.append(f"The control metric {metric} {said}.")
    return " ".join(told)


def _of_defence(own: Lookup, controls: Lookup, defence: str, pairs: list[tuple[str, str]]) -> str:
    if not pairs:
        return f"There is no gain above 0 that the control {defence} could stop."
    stopped = {d: _stopped(own, d, pairs) for d in own.defences[1:]}
    here = _stopped(controls, defence, pairs)
    text = f"The control {defence} stops {here} of {_counted(pairs, 'gain')}"
    unknown = sum(controls.gamed((metric, defence), attack) is None for metric, attack in pairs)
    text += f" ({unknown} cannot be told)" * bool(unknown)
    text += _dearest(controls, defence)
    best = max(stopped.values(), default=0)
    if here < best:
        return f"{text}; the best defence stops {best}."
    if not here:
        return f"{text}; no defence stops one."
    cost = _cost(controls, defence)
    cheaper = [d for d, n in stopped.items() if n == best and _cost(own, d) < cost]
    if cheaper:
        than = "as many as" if here == best else "more than"
        return f"{text}: {than} {_list(cheaper)}, but at a higher cost."
    return f"{text}: it passes as well, so these gains show nothing about a defence."


def _stopped(found: Lookup, defence: str, pairs: list[tuple[str, str]]) -> int:
    return sum(found.gamed((metric, defence), attack) is False for metric, attack in pairs)


def _cost(found: Lookup, defence: str) -> float:
    rows = [found.get("cost", (metric, defence), found.against) for metric in found.metrics]
    return max((row.value for row in rows if row is not None and row.value is not None), default=0)


# Small steps


def signed(row: Result) -> str:
    """A value with its sign and interval."""
    ends = "" if row.ci95 is None else f" [{row.ci95[0]:+z.2f}, {row.ci95[1]:+z.2f}]"
    return f"{row.value:+z.2f}{ends}"


def _list(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _counted(things: list, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
