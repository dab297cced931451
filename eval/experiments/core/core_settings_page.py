"""The tables, figure and page of the experiment that chooses Core's settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval.report.declare import Cell, Page, TextTable, cell
from eval.report.figures import Drawing, Line, lines
from eval.report.tables import by
from records import Result, ResultFile

# The halves of the topics, as results name them: the one that chooses first.
HALVES = ("tuning", "held back")
_TITLES = {"kept_share": "Kept share", "precision": "Precision with Core"}
_FIELDS = ("metric", "kind", "variant", "group")


def _page_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """The chosen setting on both halves, and all settings."""
    return [_chosen_table(file), _grid_table(file)]


def _page_figures(file: ResultFile, folder: Path) -> dict[str, Drawing]:
    """Kept share by ε, at the chosen p and threshold, where several ε were tried."""
    settings, chosen = _settings(file)
    one = settings[chosen]
    numbers = [
        number
        for number, other in enumerate(settings)
        if {**other, "epsilon": None} == {**one, "epsilon": None}
    ]
    numbers.sort(key=lambda number: settings[number]["epsilon"])
    if len(numbers) < 2:
        return {}
    found = by(file.results, *_FIELDS)
    series = {
        kind: _line([found.get(("kept_share", kind, n, HALVES[1])) for n in numbers], settings)
        for kind in _kinds(file)
    }
    title = "Kept share by ε, at the chosen p and threshold (held back)"
    drawn = lines(series, "ε in nats", "kept share", top=1.0)
    return {"by_epsilon": Drawing(title, drawn)}


def _settings(file: ResultFile) -> tuple[list[dict], int]:
    return file.provenance["settings"], file.provenance["chosen"]


def _kinds(file: ResultFile) -> list[str]:
    return list(dict.fromkeys(row.kind for row in file.results if row.metric == "kept_share"))


def _threshold(value: float | None) -> str:
    return "likeliest" if value is None else f"{value:g}"


def _told(setting: dict) -> str:
    threshold = _threshold(setting["entail_threshold"])
    return f"p = {setting['p']:g}, ε = {setting['epsilon']:g}, entailment: {threshold}"


def _counted(row: Result | None) -> Cell:
    return cell(row, note="n = {n}, {failed} failed" if row and row.failed else "n = {n}")


def _chosen_table(file: ResultFile) -> TextTable:
    settings, chosen = _settings(file)
    found = by(file.results, *_FIELDS)
    columns = [
        (title, metric, half, number)
        for metric, title in {"plain": "Precision without Core", **_TITLES}.items()
        for half in HALVES
        for number in [None if metric == "plain" else chosen]
    ]
    honest = file.provenance["honest"]
    rows = []
    for label, kind in [*((kind, kind) for kind in _kinds(file)), ("margin", honest)]:
        prefix = "margin_" if label == "margin" else ""
        rows.append(
            [
                label,
                *(
                    _counted(
                        found.get((prefix + metric.replace("plain", "precision"), kind, n, half))
                    )
                    for _, metric, half, n in columns
                ),
            ]
        )
    there = [
        place
        for place in range(1, len(columns) + 1)
        if any(row[place] != Cell("–") for row in rows)
    ]
    head = ["Texts", *(f"{title}, {half}" for title, _, half, _ in columns)]
    note = (
        f"{_told(settings[chosen])}: the largest margin in "
        f"{file.provenance['choose_by'].replace('_', ' ')} on the tuning half. The other half took "
        "no part in choosing. The margin is the honest texts’ value less the largest other one."
    )
    kept = [0, *there]
    return TextTable(
        "The chosen setting",
        note,
        [head[place] for place in kept],
        [[row[place] for place in kept] for row in rows],
        ["by_epsilon"],
    )


def _grid_table(file: ResultFile) -> TextTable:
    settings, _ = _settings(file)
    found = by(file.results, *_FIELDS)
    metric, honest = file.provenance["choose_by"], file.provenance["honest"]

    def margin(number: int, half: str) -> Result | None:
        return found.get((f"margin_{metric}", honest, number, half))

    def rank(number: int) -> tuple[bool, float]:
        row = margin(number, HALVES[0])
        return (row is None, 0.0 if row is None else -row.value)

    kinds = _kinds(file)
    rows = [
        [
            f"{settings[number]['p']:g}",
            f"{settings[number]['epsilon']:g}",
            _threshold(settings[number]["entail_threshold"]),
            *(cell(margin(number, half)) for half in HALVES),
            *(cell(found.get((metric, kind, number, HALVES[1]))) for kind in kinds),
        ]
        for number in sorted(range(len(settings)), key=rank)
    ]
    title = _TITLES[metric]
    head = ["p", "ε", "Entailment", *(f"Margin, {half}" for half in HALVES)]
    note = "The columns of the single kinds are of the half held back."
    return TextTable("All settings", note, [*head, *(f"{title}, {kind}" for kind in kinds)], rows)


def _line(rows: Sequence[Result | None], settings: Sequence[dict]) -> Line:
    own = [(settings[row.variant]["epsilon"], row) for row in rows if row is not None]
    return Line(
        points=[(epsilon, row.value) for epsilon, row in own],
        band=[(epsilon, *row.ci95) for epsilon, row in own if row.ci95],
        hints=[f"ε = {epsilon:g}: {cell(row)}" for epsilon, row in own],
    )


CoreSettingsPage = Page(
    "Which setting of Core lets honest texts pass and stops the others?",
    "",
    [_page_tables],
    [lambda file, folder: _page_figures(file, folder).values()],
)
