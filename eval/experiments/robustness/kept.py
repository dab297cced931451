"""What defences keep of each kind of text, held against targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from eval.experiments.robustness.cells import shown
from eval.experiments.robustness.lookup import Lookup
from eval.report.declare import Cell, TextTable
from records import Result


def kept_table(own: Lookup, controls: Lookup, targets: Sequence[dict]) -> TextTable:
    """Shares by metric and kind; a control is held against the targets of the defences as well."""
    title = "What a defence keeps"
    others = [d for d in controls.defences if d not in own.defences]
    rows = []
    met: dict[tuple[str, int], list[bool | None]] = defaultdict(list)
    for metric in own.precisions:
        for kind in own.kinds:
            cells = []
            for defence in (*own.defences[1:], *others):
                found = controls if defence in others else own
                row = found.get("kept_share", (metric, defence), kind)
                aimed = [
                    (place, target)
                    for place, target in enumerate(targets)
                    if target["kind"] == kind
                    and (target["selection"] == defence or defence in others)
                ]
                cells.append(_kept_cell(row, [target for _, target in aimed]))
                for place, target in aimed:
                    met[defence, place].append(reached(target, row))
            if any(cell.value != "–" for cell in cells):
                rows.append([metric, kind, *cells])
    if not rows:
        return TextTable(title, "Left out: the run has no defence.")
    head = ["Metric", "Kind of text", *own.defences[1:], *(f"{d} (control)" for d in others)]
    note = "Mean share of a text’s subclaims that a defence selects." + _told(targets, met, others)
    return TextTable(title, note, head, rows)


def _told(
    targets: Sequence[dict],
    met: Mapping[tuple[str, int], list[bool | None]],
    controls: Sequence[str],
) -> str:
    if not targets:
        return " No target was set."
    own = [met.get((target["selection"], place), []) for place, target in enumerate(targets)]
    whole = sum(bool(said) and all(said) for said in own)
    text = f" {whole} of {len(targets)} targets are reached under every metric."
    for said, target in zip(own, targets, strict=True):
        if all(one is None for one in said):
            text += (
                f" The target for {target['kind']} texts under {target['selection']} "
                f"({bound(target)}) has no value: the run has no such text or defence."
            )
    for control in controls:
        theirs = [met.get((control, place), []) for place in range(len(targets))]
        count = sum(bool(said) and all(said) for said in theirs)
        text += f" The control {control} reaches {count} of them"
        text += ", so they show nothing." if count >= whole > 0 else "."
    return text


def _kept_cell(row: Result | None, targets: Sequence[dict]) -> Cell:
    found = shown(row)
    if not targets or row is None or row.value is None:
        return found
    said = all(reached(target, row) for target in targets)
    bounds = "; ".join(dict.fromkeys(bound(target) for target in targets))
    mark = f"{'reached' if said else 'missed'}: {bounds}"
    return Cell(found.value, found.interval, found.note, mark, said)


def bound(target: dict) -> str:
    """A target in words, e.g. ``at most 10 %``."""
    words = {"at_most": "at most", "at_least": "at least"}
    return ", ".join(
        f"{words[k]} {100 * target[k]:g} %" for k in words if target.get(k) is not None
    )


def reached(target: dict, row: Result | None) -> bool | None:
    """Whether a value lies within a target's bounds; ``None`` of no value."""
    if row is None or row.value is None:
        return None
    low, high = target.get("at_least"), target.get("at_most")
    return (low is None or row.value >= low) and (high is None or row.value <= high)
