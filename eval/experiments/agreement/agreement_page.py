"""The agreement experiment's tables, calibration plots and page, all from its run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from components.calibration import reliability_bins
from eval.experiments.agreement.agreement_values import (
    ALL,
    ALWAYS,
    BUT_ONE,
    EQUAL,
    HALF,
    MACRO,
    OVERLAP,
    SOURCES,
    WRONG,
    JudgedClaim,
)
from eval.report.declare import Cell, Page, TextTable, cell
from eval.report.figures import Drawing, Line, lines
from eval.report.tables import by, pivot
from records import Result, ResultFile, read_records

BINS = 10
_COLUMNS = {
    ("auroc", None): "AUROC",
    ("auroc", EQUAL): "AUROC at equal overlap",
    ("balanced_accuracy", None): "balanced accuracy, own verdicts",
    ("balanced_accuracy", HALF): "by the other half's threshold",
    ("balanced_accuracy", SOURCES): "by the other sources' threshold",
    ("balanced_accuracy", WRONG): "failures count as wrong",
    ("balanced_accuracy", BUT_ONE): "by all people but one",
    ("f1_unsupported", None): "F1 of not supported",
    ("f1_unsupported", WRONG): "F1, failures count as wrong",
    ("ece", None): "ECE",
    ("brier", None): "Brier score",
    ("pearson_votes", None): "Pearson with people's votes",
    ("coverage", None): "coverage",
}
_BEYOND = {
    key: head
    for key, head in _COLUMNS.items()
    if key[0] in ("auroc", "balanced_accuracy") and key[1] not in (EQUAL, BUT_ONE)
}
_NOTE = (
    "An AUROC of an assessor without probabilities is that of its verdicts. Overlap has no "
    "verdicts of its own: they are by the other half's threshold."
)
_PEOPLE = (
    " By all people but one: what the majority of the others said is the label, and that one, “a "
    "person”, stands beside."
)


def tables_of(
    results: Sequence[Result], drawn: Sequence[str], claims: Sequence[JudgedClaim] = ()
) -> list[TextTable]:
    """The tables of every set, in the order of the results.

    Args:
        drawn: the sets that have a calibration plot.
        claims: what was judged, to be counted.
    """
    found = []
    for place, kind in enumerate(dict.fromkeys(row.kind for row in results), 1):
        own = [row for row in results if row.kind == kind]
        figures = [figure_name(place)] if kind in drawn else []
        labels = Counter(claim.label for claim in claims if claim.set == kind)
        found += [_whole(kind, own, figures, labels), _beyond(kind, own)]
        found += [*_by_source(kind, own), *_by_word(kind, own)]
    return [table for table in found if table.rows]


def _whole(
    kind: str, rows: Sequence[Result], figures: Sequence[str], labels: Counter[str | None]
) -> TextTable:
    own = [row for row in rows if row.group == ALL and row.against is None]
    heads, lines_ = pivot(own, ["assessor"], ["metric", "variant"], _COLUMNS)
    failed = by([row for row in own if row.metric == "coverage"], "assessor")
    body = [
        [name, *map(cell, cells), str(failed[name].failed) if name in failed else "–"]
        for (name,), cells in lines_
    ]
    head = ["assessor", *heads, "claims failed"]
    sizes = f"{own[0].n if own else 0} units"
    if labels:
        sizes += f" with {labels['S'] + labels['NS']:,} labelled claims, {labels['S']:,} supported"
    note = f"{sizes}. {_NOTE}"
    note += _PEOPLE if any(row.variant == BUT_ONE for row in own) else ""
    return TextTable(kind, note, head, body, figures)


def _beyond(kind: str, rows: Sequence[Result]) -> TextTable:
    own = [row for row in rows if row.group in (ALL, MACRO) and row.against == OVERLAP]
    heads, lines_ = pivot(own, ["assessor", "group"], ["metric", "variant"], _BEYOND)
    body = [[_called(*place), *map(_marked, cells)] for place, cells in lines_]
    note = "The assessor minus overlap, on the claims that both judged."
    return TextTable(f"{kind}: beyond word overlap", note, ["assessor", *heads], body)


def _called(assessor: str, group: str) -> str:
    return assessor if group == ALL else f"{assessor}, mean over sources"


def verdict_on(row: Result) -> str:
    """What the interval of a difference to overlap says."""
    if row.ci95 is None or row.ci95[0] <= 0 <= row.ci95[1]:
        return "not told apart"
    return "above overlap" if row.ci95[0] > 0 else "below overlap"


def _marked(row: Result | None) -> Cell:
    found = cell(row)
    if row is None:
        return found
    said = verdict_on(row)
    good = {"above overlap": True, "below overlap": False}.get(said)
    return Cell(found.value, found.interval, found.note, said, good)


def _by_source(kind: str, rows: Sequence[Result]) -> Iterator[TextTable]:
    sources = dict.fromkeys(row.group for row in rows if row.group not in (ALL, MACRO))
    if not sources:
        return
    columns = {(name,): name for name in sources} | {(MACRO,): "mean over sources"}
    sizes = {row.group: row.n for row in rows if row.group in sources}
    note = f"Units: {', '.join(f'{name} {n:,}' for name, n in sizes.items())}."
    for metric, variant in _BEYOND:
        own = [r for r in rows if (r.metric, r.variant, r.against) == (metric, variant, None)]
        heads, lines_ = pivot(own, ["assessor"], ["group"], columns)
        title = f"{kind} by source: {_BEYOND[metric, variant]}"
        body = [[name, *map(cell, cells)] for (name,), cells in lines_]
        yield TextTable(title, note, ["assessor", *heads], body)


def _by_word(kind: str, rows: Sequence[Result]) -> Iterator[TextTable]:
    own = [r for r in rows if r.metric == "called_supported" and r.assessor != ALWAYS]
    words = {(word,): word for word in sorted({row.variant for row in own})}
    heads, lines_ = pivot(own, ["assessor"], ["variant"], words)
    body = [[name, *(cell(c, "share") for c in cells)] for (name,), cells in lines_]
    title = f"{kind}: share called supported, by people's own words"
    yield TextTable(title, "", ["assessor", *heads], body)
    against = [r for r in rows if r.metric == "auroc" and str(r.variant).startswith("against ")]
    against = [row for row in against if row.assessor != ALWAYS]
    words = {(row.variant,): f"supported {row.variant}" for row in against}
    heads, lines_ = pivot(against, ["assessor"], ["variant"], words)
    body = [[name, *map(cell, cells)] for (name,), cells in lines_]
    yield TextTable(f"{kind}: AUROC by people's own words", "", ["assessor", *heads], body)


def in_words(results: Sequence[Result]) -> list[str]:
    """A sentence a set and assessor: how far it is from word overlap."""
    found = []
    areas = [r for r in results if (r.metric, r.group, r.variant) == ("auroc", ALL, None)]
    known = by(areas, "kind", "assessor", "against")
    for row in areas:
        if row.against is None:
            continue
        own, other = known[row.kind, row.assessor, None], known.get((row.kind, OVERLAP, None))
        said = {
            "above overlap": "It is above word overlap",
            "below overlap": "It is below word overlap",
        }.get(verdict_on(row), "It cannot be told apart from word overlap")
        overlap = "" if other is None else f" ({cell(other)})"
        difference = f"{row.value:+.3f}".replace("-", "−")
        found.append(
            f"{row.kind}: {row.assessor} has an AUROC of {cell(own)}. {said}{overlap}: "
            f"{difference} {cell(row).interval}".rstrip()
            + "."
        )
    return found


# Figures


def figure_name(place: int) -> str:
    """Of a set's calibration plot, by the set's place among the sets."""
    return f"{place:02}_calibration"


def figures_of(claims: Sequence[JudgedClaim]) -> dict[str, Drawing]:
    """Set to its calibration plot, where an assessor gives probabilities.

    The points are bins of equally many claims: mean probability, and share that is supported.
    """
    found = {}
    for kind in dict.fromkeys(claim.set for claim in claims):
        own = [claim for claim in claims if claim.set == kind and claim.label in ("S", "NS")]
        series, rows = {}, []
        for name in dict.fromkeys(name for claim in own for name in claim.verdicts):
            said = [(c.verdicts.get(name), c.label == "S") for c in own]
            judged = [(v, y) for v, y in said if v and v.label not in ("failed", "irrelevant")]
            known = [(v.p, y) for v, y in judged if v.p is not None]
            if len(known) < BINS:
                continue
            p, y = (np.asarray(column, dtype=float) for column in zip(*known, strict=True))
            bins = reliability_bins(p, y, BINS).tolist()
            hints = [f"{name}: p = {a:.2f}, supported {b:.2f}, n = {n:g}" for a, b, n in bins]
            series[name] = Line([(a, b) for a, b, _ in bins], (), hints)
            names = ("p", "supported", "n")
            rows += [{"assessor": name} | dict(zip(names, one, strict=True)) for one in bins]
        if series:
            series["as it should be"] = Line([(0.0, 0.0), (1.0, 1.0)])
            ticks = [0, 0.25, 0.5, 0.75, 1]
            labels = ("probability that it is supported", "share that people call supported")
            svg = lines(series, *labels, width=4.4, top=1.02, ticks=ticks)
            found[kind] = Drawing(f"Calibration, {kind}", svg, rows)
    return found


def _page_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """Measures, differences to overlap, sources, and words, set by set."""
    claims = _claims(folder)
    return tables_of(file.results, list(figures_of(claims)), claims)


def _page_figures(file: ResultFile, folder: Path) -> dict[str, Drawing]:
    """The calibration plots."""
    kinds = list(dict.fromkeys(row.kind for row in file.results))
    drawn = figures_of(_claims(folder))
    places = {kind: figure_name(place) for place, kind in enumerate(kinds, 1)}
    return {places[kind]: drawing for kind, drawing in drawn.items() if kind in places}


def _claims(folder: Path) -> list[JudgedClaim]:
    there = (folder / "claims.jsonl").is_file()
    return read_records(folder / "claims.jsonl", JudgedClaim) if there else []


AgreementPage = Page(
    "Do the verdicts agree with people, and more than word overlap does?",
    "",
    [_page_tables],
    [lambda file, folder: _page_figures(file, folder).values()],
)
