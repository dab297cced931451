"""The tables of a robustness run, all from its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eval.experiments.robustness.cells import note_of, shown
from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.kept import kept_table
from eval.experiments.robustness.lookup import CLEAN, UNPAIRED, WHOLE, Lookup, Stratum, above_0
from eval.report.declare import Cell, TextTable, number
from eval.report.tables import named_apart, plain_table
from records import Result

NO_DEFENCE = "No defence"
_STRATA = {"generator": "generator", "bin": "frequency", "group": "group"}


def tables_of(own: Lookup, controls: Lookup, targets: Sequence[dict]) -> list[TextTable]:
    """All tables, in reading order."""
    curves = curve_names(own)
    found = [_gains(own, "Gain, cost and break-even", _NOTE, curves), _controls(controls)]
    found += [kept_table(own, controls, targets), _precision(own)]
    found += [_curves(own, curve) for curve in own.curves]
    found += [_truth(own, controls), _labels(own), _agreement(own), *_strata(own)]
    return found


def curve_names(own: Lookup) -> list[str]:
    """Names of the curves' drawings, in the curves' order."""
    return named_apart(f"curve {name}" for name in own.curves)


# The first table


_NOTE = (
    "Gain: score of the attack’s texts (precision, or F1@K where the metric says so) minus that of "
    "the honest ones, paired by topic where at least two topics have both, or with the honest text "
    "that it was made of; gamed: its interval is above 0. Rise: the same of texts that are better. "
    "Cost: score of honest texts without the defence minus that with it. Break-even: the least k "
    "at which corrupted texts with k adversarial sentences behind are above their clean twins in "
    "the mean; at 0, without any, the metric does not see that they are corrupted. In the drawing: "
    "bands are 95 % intervals, dashed lines the clean twins, a star the break-even."
)


def _gains(own: Lookup, title: str, note: str, figures: Sequence[str] = ()) -> TextTable:
    texts = f"{own.against} texts"
    lines = [(f"gain of {attack} texts", "gain", attack, _short_gain) for attack in own.attacks]
    lines += [(f"rise of {kind} texts", "rise", kind, _short_signed) for kind in own.rising]
    lines.append((f"precision of {texts}", "factual_precision", own.against, _short))
    lines.append((f"F1@K of {texts}", "f1_at_k", own.against, _short))
    lines.append((f"cost on {texts}", "cost", own.against, _short_signed))
    lines += [(f"break-even of {curve}", "break_even", curve, _break_even) for curve in own.curves]
    rows = []
    for metric in own.metrics:
        for name, what, kind, cell_of in lines:
            found = [own.get(what, (metric, defence), kind) for defence in own.defences]
            if any(row is not None and (row.n or row.failed) for row in found):
                cells = [replace(cell_of(row), note="") for row in found]
                rows.append([metric, name, *cells, _sizes(found)])
    head = ["Metric", "What", *_heads(own), "n (not judged)"]
    return TextTable(title, note, head, rows, figures)


def _sizes(rows: Sequence[Result | None]) -> str:
    known = [row for row in rows if row is not None]
    topics = _range([row.n for row in known])
    failed = _range([row.failed for row in known])
    unpaired = any(row.variant == UNPAIRED for row in known)
    return topics + f" ({failed})" * (failed != "0") + ", unpaired" * unpaired


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _short(row: Result | None) -> Cell:
    return shown(row, ".2f")


def _short_signed(row: Result | None) -> Cell:
    return shown(row, "+z.2f")


def _short_gain(row: Result | None) -> Cell:
    return gain_cell(row, "+z.2f")


def _heads(own: Lookup) -> list[str]:
    return [NO_DEFENCE if defence == NONE else defence for defence in own.defences]


def gain_cell(row: Result | None, as_: str = "+z.3f") -> Cell:
    """A gain with its mark: gamed where its interval is above 0."""
    if row is None:
        return Cell("–")
    gamed = above_0(row)
    mark = {True: "gamed", False: "not gamed", None: "no interval"}[gamed]
    found = shown(row, as_)
    note = "unpaired, " * (row.variant == UNPAIRED) + found.note
    return Cell(found.value, found.interval, note, mark, None if gamed is None else not gamed)


def _break_even(row: Result | None) -> Cell:
    if row is None:
        return Cell("–")
    if not row.n:
        return Cell("–", note=note_of(row))
    if row.value is None:
        return Cell("∞", note=note_of(row), mark="never", good=True)
    return Cell(f"{row.value:g}", note=note_of(row), mark="overtaken", good=False)


def terminal_table(own: Lookup) -> str:
    """Gains for a terminal: metric, attack and defence with interval and mark."""
    head = ["metric", "attack", "defence", "gain", "95 %", "", "n"]
    rows = []
    for metric in own.metrics:
        for attack in own.attacks:
            for defence in own.defences:
                row = own.get("gain", (metric, defence), attack)
                if row is not None:
                    cell = gain_cell(row)
                    n = f"n={row.n} failed={row.failed}"
                    line = [metric, attack, defence, cell.value, cell.interval, cell.mark, n]
                    rows.append(line)
    return plain_table(head, rows) if rows else ""


# Controls


def _controls(controls: Lookup) -> TextTable:
    title = "Untrained controls"
    if not controls.rows:
        return TextTable(title, "Left out: the run has no control (option controls).")
    note = (
        "The same of metrics and defences with untrained components. What they pass as well shows "
        "nothing: a defence that keeps little stops a gain, and shows it in its cost."
    )
    return _gains(controls, title, note)


# Texts by kind


def _precision(own: Lookup) -> TextTable:
    rows = []
    for metric in own.metrics:
        for kind in own.kinds:
            cells = [_bounded(own, (metric, defence), kind) for defence in own.defences]
            more = [shown(own.get(n, (metric, NONE), kind)) for n in ("claims", "respond_ratio")]
            rows.append([metric, kind, *cells, *more])
    note = (
        "Mean share of supported subclaims, without FActScore’s length penalty; or F1@K where the "
        "metric says so, its recall the supported subclaims by K, at most 1. Where something "
        "failed, bounds: all failures counted as not supported, and as supported."
    )
    head = ["Metric", "Kind of text", *_heads(own), "Subclaims", "Texts that respond"]
    return TextTable("Score by kind of text", note, head, rows, ["by_kind"])


def _bounded(own: Lookup, place: tuple[str, str], kind: str, at: Stratum = WHOLE) -> Cell:
    found = shown(own.score(place, kind, stratum=at))
    names = ("failed_not_supported", "failed_supported")
    ends = [own.score(place, kind, name, at) for name in names]
    if any(end is None or end.value is None for end in ends):
        return found
    bounds = " to ".join(number(end.value) for end in ends)
    return Cell(found.value, found.interval, f"bounds {bounds}; {found.note}")


# Curves


def _curves(own: Lookup, curve: str) -> TextTable:
    rows = []
    for metric in own.metrics:
        for variant in (CLEAN, *own.curves[curve]):
            name = "clean twin" if variant == CLEAN else f"k = {variant}"
            cells = [_curve_cell(own, (metric, d), curve, variant) for d in own.defences]
            rows.append([metric, name, *cells])
    note = (
        "Score of corrupted texts with k adversarial sentences behind, of documents "
        "that have a value at every k; behind it the difference to the clean twins. Brackets: 95 % "
        "intervals over topics."
    )
    title = f"Corrupted texts with sentences behind: {curve}"
    return TextTable(title, note, ["Metric", "Text", *_heads(own)], rows)


def _curve_cell(own: Lookup, place: tuple[str, str], curve: str, variant: str | int) -> Cell:
    found = shown(own.score(place, curve, variant))
    gain = own.get("gain", place, curve, variant)
    if variant == CLEAN or gain is None or gain.value is None:
        return found
    more = shown(gain, "+z.3f")
    mark = f"{more.value} {more.interval}".strip()
    return Cell(found.value, found.interval, found.note, mark, False if above_0(gain) else None)


# Against labels, and each other


def _truth(own: Lookup, controls: Lookup) -> TextTable:
    title = "Verdicts against known labels"
    rows = []
    for found in (own, controls):
        for metric in found.metrics:
            for kind in own.kinds:
                names = ("supported_if_true", "supported_if_false")
                cells = [shown(found.get(name, (metric, NONE), kind)) for name in names]
                if any(cell.value != "–" for cell in cells):
                    rows.append([metric, kind, *cells])
    if not rows:
        return TextTable(title, "Left out: no claim of the texts has a label (S or NS).")
    note = (
        "Share of claims that are called supported, of those labelled true and of those labelled "
        "false, over the claims of all texts of a kind. A metric that does not tell false from "
        "true shows nothing about gaming."
    )
    return TextTable(title, note, ["Metric", "Kind of text", "True claims", "False claims"], rows)


def _labels(own: Lookup) -> TextTable:
    title = "Honest texts against labels, and their generators’ order"
    rows = []
    for metric in own.metrics:
        for name, head in (
            ("label_correlation", "correlation with labelled precision"),
            ("generator_order", "order of generators kept (Spearman)"),
        ):
            cells = [shown(own.get(name, (metric, d), own.against)) for d in own.defences]
            if any(cell.value != "–" for cell in cells):
                rows.append([metric, head, *cells])
    if not rows:
        why = "no honest text has labels, and there are fewer than three generators."
        return TextTable(title, f"Left out: {why}")
    note = (
        "Pearson’s correlation of the texts’ precision with the share of claims that are labelled "
        "supported, and Spearman’s of the generators’ means with and without a defence."
    )
    return TextTable(title, note, ["Metric", "What", *_heads(own)], rows)


def _agreement(own: Lookup) -> TextTable:
    title = "Agreement of metrics and of defences"
    rows = [
        [str(row.assessor), _name(row.selection), _name(str(row.against)), shown(row)]
        for row in own.rows
        if row.metric == "pearson"
    ]
    if not rows:
        return TextTable(title, "Left out: there are no two metrics or defences with three texts.")
    note = (
        f"Pearson’s correlation of the precision of {own.against} texts: of two metrics under one "
        "defence, or of one metric under two."
    )
    return TextTable(title, note, ["Metric", "Defence", "With", "Pearson"], rows)


def _name(defence: str) -> str:
    return NO_DEFENCE if defence == NONE else defence


# Strata


def _strata(own: Lookup) -> list[TextTable]:
    found = []
    for field, title in _STRATA.items():
        rows = [line for at in own.strata(field) for line in _of_stratum(own, at)]
        if rows:
            heads = _heads(own)
            head = ["Topics", "Metric", "Kind of text", *(f"score: {d}" for d in heads)]
            head += [*(f"gain: {d}" for d in heads), *(f"kept: {d}" for d in heads[1:])]
            head[0] = title.capitalize()
            found.append(TextTable(f"By {title}", "", head, rows, within=True))
    if not found:
        return []
    note = (
        "The same of some texts alone. A generator’s gain is that of its texts over all honest "
        "ones; of a frequency or a group both sides are of its topics."
    )
    figures = ["by_generator", "by_bin"]
    return [TextTable("By generator, frequency and group", note, figures=figures), *found]


def _of_stratum(own: Lookup, at: Stratum) -> list[list[Cell | str]]:
    name = next(part for part in at if part != "all")
    rows = []
    for metric in own.metrics:
        for kind in own.kinds:
            places = [(metric, defence) for defence in own.defences]
            cells = [_bounded(own, place, kind, at) for place in places]
            if all(cell.value == "–" and not cell.note for cell in cells):
                continue
            cells += [gain_cell(own.get("gain", p, kind, stratum=at)) for p in places]
            cells += [shown(own.get("kept_share", p, kind, stratum=at)) for p in places[1:]]
            rows.append([name, metric, kind, *cells])
    return rows
