"""The page of the robustness experiment: the matrix first, everything else folded."""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from eval.experiments.robustness.robustness_cells import ALL
from eval.experiments.robustness.robustness_grid import NONE, Row
from eval.experiments.robustness.robustness_values import SCORES, TEXT_SCORE
from eval.report.declare import (
    Cell,
    Excerpt,
    Figure,
    Line,
    Page,
    Plot,
    Table,
    TextTable,
    number,
    rows_in,
)
from records import Result, ResultFile

CLEAN = "clean"
NO_DEFENCE = "no defence"
UNITS = {"claims": "tenth"} | dict.fromkeys(("respond_ratio", "kept_share"), "share")
# Margins below the matrix of a metric.
MARGINS = {
    "worst_asr": "Worst case",
    "cost": "Score lost by honest texts",
    "honest_order": "Honest pairs in gold order",
    "generator_order": "Order of generators",
    "empty_share": "Honest texts without a claim left",
}
_OF_ALL = {"generator": ALL, "bin": ALL, "group": ALL}
_KIND = {"assessor": "Metric", "kind": "Kind of text"}
_COLUMNS = ("metric", "selection")
_GOOD = {"supported": True, "not_supported": False, "contradicted": False}
_VERDICTS = {"held": True, "reduces": True, "gamed": False}
# The dev measure that each component is selected by, in the order of search.
_MEASURES = ("pearson", "macro_f1", "entailment_auroc", "word_f1", "perplexity")


def shown_results(file: ResultFile) -> list[Result]:
    """The results with the labels of the page: one name for all scores, controls marked."""
    names = ("assessor", "selection", "against")
    rows = []
    for row in file.results:
        update = {name: _label(file, getattr(row, name)) for name in names if getattr(row, name)}
        is_score = row.metric in SCORES.values()
        update["metric"] = TEXT_SCORE if is_score else row.metric
        rows.append(row.model_copy(update=update))
    return rows


def _label(file: ResultFile, name: str) -> str:
    if name == NONE:
        return NO_DEFENCE
    controls = file.provenance.get("controls") or []
    is_control = any(name == control or name.startswith(f"{control}.") for control in controls)
    return f"{name} (control)" if is_control else name


def verdict_mark(row: Result) -> tuple[str, bool | None]:
    """The verdict of a gain, and whether it is a good one."""
    word = row.verdict or ""
    return word + ", unpaired" * (row.variant == "unpaired"), _VERDICTS.get(word)


def _break_even_mark(row: Result) -> tuple[str, bool | None]:
    if not row.n:
        return "", None
    return ("never", True) if row.value is None else ("overtaken", False)


def _matrices(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    """A heat map per metric: attacks by defences, with success rate and verdict."""
    rows = [r for r in shown_results(file) if (r.generator, r.bin, r.group) == (ALL, ALL, ALL)]
    rates = [row for row in rows if row.metric == "asr"]
    gains = {(r.assessor, r.selection, r.kind): r for r in rows if r.metric == "gain"}
    margins = {(r.assessor, r.selection, r.metric): r for r in rows if r.metric in MARGINS}
    kinds = list(dict.fromkeys(row.kind for row in rates))
    for metric in dict.fromkeys(row.assessor for row in rates):
        cells = {(r.kind, r.selection): r for r in rates if r.assessor == metric}
        # Defences do not apply to a text metric: it has one column
        columns = list(dict.fromkeys(column for _, column in cells))
        lines: list[list[Cell | str]] = []
        for kind in kinds:
            lines.append([kind])
            for column in columns:
                rate = cells.get((kind, column))
                lines[-1].append(_heat(rate, gains.get((metric, column, kind))))
        for name, title in MARGINS.items():
            values = [margins.get((metric, column, name)) for column in columns]
            if any(values):
                lines.append([title, *(_margin(value, name) for value in values)])
        yield TextTable(
            f"Attack success rate: {metric}",
            "Share of topics on which an attacked text that is worse by gold F1 scores higher than "
            "the honest text (ties ½). Below each rate the verdict on the mean gain, corrected for "
            "all cells of all metrics.",
            ["Attack", *columns],
            lines,
        )


def _heat(rate: Result | None, gain: Result | None) -> Cell:
    if rate is None or rate.value is None:
        return Cell("n/a")
    low, high = rate.ci95
    verdict = (gain and gain.verdict) or "n/a"
    return Cell(
        f"{rate.value:.2f}",
        f"[{low:.2f}, {high:.2f}]",
        "" if rate.n >= 10 else f"n = {rate.n}",
        verdict,
        _VERDICTS.get(verdict),
        shade=rate.value,
    )


def _margin(row: Result | None, name: str) -> Cell:
    if row is None or row.value is None:
        return Cell("n/a")
    note = str(row.variant) if name == "worst_asr" else ""
    ends = "" if row.ci95 is None else f"[{row.ci95[0]:.2f}, {row.ci95[1]:.2f}]"
    return Cell(f"{row.value:.2f}", ends, note)


FOLDED = [
    Table(
        "Texts that an adaptive attacker picks",
        {"kind": "Attacker"},
        ("metric", "variant"),
        {"gold_gain": "Gain by gold F1", "picked_share": "Share of its texts"},
        "Its rows in the matrix show how they transfer; a random text is the control.",
        _OF_ALL,
    ),
    Table(
        "Gain of attacks",
        _KIND,
        _COLUMNS,
        {"gain": "Gain", "rise": "Rise", "shift": "Shift"},
        "Score of the attacked texts minus that of the honest ones, mean over topics; brackets "
        "hold each cell's own 95 % t interval, which is not corrected. Rise: of texts that are "
        "better by gold. Shift: of texts that are equal by gold.",
        _OF_ALL | {"variant": [None, "unpaired"], "against": None},
        mark=verdict_mark,
    ),
    Table(
        "Effect of defences",
        _KIND,
        _COLUMNS,
        {"effect": "Effect"},
        "Gain without the defence minus gain with it, corrected as a family of its own.",
        _OF_ALL,
        mark=verdict_mark,
    ),
    Table(
        "Success rate on texts that are worse in precision and recall",
        _KIND,
        ("selection",),
        {"asr_both": "Rate"},
        "F1@K resembles gold by design; these pairs are worse by both of its parts.",
        _OF_ALL,
        unit="mean",
    ),
    Table(
        "Break-even",
        {"assessor": "Metric", "kind": "Curve"},
        ("selection",),
        {"break_even": "Break-even"},
        "The smallest k at which corrupted texts with k adversarial sentences score higher than "
        "their clean twins on average; at 0 the metric does not see that they are corrupted.",
        unit="total",
        mark=_break_even_mark,
    ),
    Table(
        "Scores by kind of text",
        _KIND,
        _COLUMNS,
        {
            TEXT_SCORE: "Score",
            "claims": "Subclaims",
            "kept_share": "Kept",
            "respond_ratio": "Texts that respond",
        },
        "Mean over texts of precision, of F1@K for a defence that scores so, or of a text metric.",
        _OF_ALL | {"variant": None},
        unit=UNITS,
    ),
    Table(
        "Bounds of the score by failures",
        _KIND | {"selection": "Defence"},
        ("variant",),
        {TEXT_SCORE: "Score"},
        "The score if all claims that could not be judged were supported, or none of them.",
        _OF_ALL,
        {"failed_not_supported": "None supported", "failed_supported": "All supported"},
    ),
    Table(
        "Corrupted texts with sentences appended",
        {"assessor": "Metric", "kind": "Curve", "variant": "k"},
        _COLUMNS,
        {TEXT_SCORE: "Score", "gain": "Over the clean twins"},
        "Of documents that have a value at every k, and of their clean twins.",
        _OF_ALL | {"variant": lambda k: k == CLEAN or isinstance(k, int)},
    ),
    Table(
        "Verdicts against known labels",
        _KIND,
        ("metric",),
        {"supported_if_true": "True claims", "supported_if_false": "False claims"},
        "Share of the claims labelled true, and of those labelled false, called supported.",
        unit="share",
    ),
    Table(
        "Agreement of metrics, defences and labels",
        {"assessor": "Metric", "selection": "Defence", "against": "With"},
        metrics={"pearson": "Pearson", "label_correlation": "Correlation with labels"},
        note="Pearson's correlation of the scores of honest texts.",
    ),
    *(
        Table(
            f"By {' and '.join(names.values()).lower()}",
            names | _KIND,
            _COLUMNS,
            {TEXT_SCORE: "Score", "gain": "Gain", "kept_share": "Kept"},
            note,
            _OF_ALL | dict.fromkeys(names, lambda value: value != ALL),
            unit=UNITS,
        )
        for names, note in (
            ({"generator": "Generator"}, "A gain compares its texts with all honest ones."),
            ({"bin": "Frequency"}, "Attacked and honest texts on topics of one frequency."),
            (
                {"generator": "Generator", "bin": "Frequency"},
                "A generator's texts with all honest ones on topics of one frequency.",
            ),
            ({"group": "Group"}, "Attacked and honest texts on topics of one group."),
        )
    ),
]
CURVE = Figure(
    "Corrupted texts with sentences appended",
    "variant",
    ("selection",),
    {TEXT_SCORE: "Score"},
    _OF_ALL,
    ("kind", "assessor"),
    "score",
    "lines",
)


def _tables(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    yield from _matrices(file, folder)
    rows = shown_results(file)
    for table in FOLDED:
        if (written := table.of(rows)).rows:
            yield replace(written, folded=True)


def _figures(file: ResultFile, folder: Path) -> Iterator[Plot]:
    rows = shown_results(file)
    for plot in CURVE.of([*rows, *_clean_lines(rows)]):
        yield replace(plot, x="adversarial sentences appended (k)")
    for path in sorted((folder / "training").glob("*.csv")):
        yield from _training(path)


def _clean_lines(rows: Sequence[Result]) -> Iterator[Result]:
    scores = [row for row in rows if row.metric == TEXT_SCORE]
    for row in (row for row in scores if row.variant == CLEAN):
        name = f"{row.selection}, clean twins"
        for k in {r.variant for r in scores if r.kind == row.kind and isinstance(r.variant, int)}:
            yield row.model_copy(update={"variant": k, "selection": name})


def _training(path: Path) -> Iterator[Plot]:
    with open(path, encoding="utf-8", newline="") as log:
        rows = [row for row in csv.DictReader(log) if row.get("step")]
    columns = {name: [r for r in rows if r[name]] for name in (rows[0] if rows else ())}
    preferred = [f"dev/{name}" for name in _MEASURES]
    rest = sorted(name for name in columns if name.startswith("dev/") and name != "dev/loss")
    measure = [name for name in (*preferred, *rest) if columns.get(name)][:1]
    for label, names in (("loss", ["train/loss", "dev/loss"]), ("".join(measure), measure)):
        series = {
            name: [(float(row["step"]), float(row[name]), None) for row in columns[name]]
            for name in names
            if columns.get(name)
        }
        if series:
            yield Plot(f"Training of {path.stem}: {label}", "lines", series, "step", label)


def _summary(file: ResultFile) -> list[str]:
    """One sentence per metric: verdicts and worst case without a defence and with the best one."""
    rows = [r for r in shown_results(file) if (r.generator, r.bin, r.group) == (ALL, ALL, ALL)]
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        if row.metric == "gain" and row.verdict:
            verdicts.setdefault((row.assessor, row.selection), Counter())[row.verdict] += 1
    worst = {(r.assessor, r.selection): r for r in rows if r.metric == "worst_asr"}
    lines = []
    for metric in dict.fromkeys(assessor for assessor, _ in verdicts):
        columns = [column for assessor, column in verdicts if assessor == metric]
        real = [c for c in columns if c != NO_DEFENCE and not c.endswith("(control)")]
        best = min(real, key=lambda c: _worst(worst.get((metric, c))), default=None)
        parts = [
            f"{column}: {_counted(verdicts[metric, column])}{_rate(worst.get((metric, column)))}"
            for column in (NO_DEFENCE, best)
            if column in columns
        ]
        lines.append(f"{metric}. " + "; ".join(parts) + ".")
    skewed = file.provenance.get("skewed") or []
    if skewed:
        lines.append(
            f"The gains of {', '.join(skewed)} are skewed on fewer than 20 topics: the level of "
            "their verdicts is not guaranteed."
        )
    return lines + [f"Skipped {line}." for line in file.provenance.get("skipped") or []]


def _worst(row: Result | None) -> float:
    return math.inf if row is None or row.value is None else row.value


def _counted(counts: Counter[str]) -> str:
    words = (f"{counts[word]} {word}" for word in ("gamed", "held", "unclear") if counts[word])
    return f"of {counts.total()} attacks " + ", ".join(words)


def _rate(row: Result | None) -> str:
    return "" if row is None else f", worst success rate {row.value:.2f} ({row.variant})"


def signed(row: Result) -> str:
    """A difference with its sign and interval."""
    if row.value is None:
        return "not measured"
    ends = "" if row.ci95 is None else f" [{row.ci95[0]:+z.2f}, {row.ci95[1]:+z.2f}]"
    return f"{row.value:+z.2f}{ends}"


def excerpts(folder: Path) -> Iterator[Excerpt]:
    """The texts, each with its claims, the defences' selections and the verdicts."""
    for row in map(Row.model_validate, rows_in(folder / "texts.jsonl")):
        document, step = row.document, (row.document.model_extra or {}).get("step")
        lines: dict[tuple[str, str], list[Line]] = {}
        for metric, judged in row.metrics.items():
            for claim in judged.claims:
                reasons = [
                    f"{defence}: {selection.reason}"
                    for defence, selections in judged.selections.items()
                    for selection in selections
                    if selection.claim == claim.id
                ]
                first = Line("", [(claim.text, None)], note=claim.failed or ", ".join(reasons))
                lines.setdefault((claim.id, claim.text), [first]).extend(
                    Line(
                        metric,
                        mark=v.label,
                        good=_GOOD.get(v.label),
                        note="" if v.p is None else f"p = {v.p:.2f}",
                    )
                    for v in judged.verdicts[NONE]
                    if v.claim == claim.id
                )
        scores = [
            f"{metric} {number(score.precision, 'mean')}"
            for metric, judged in row.metrics.items()
            for score in judged.scores
            if score.selection == NONE
        ]
        title = f"{document.topic}: {', '.join(scores)}"
        tag = (
            f"{document.kind}, {document.generator}" if step is None else f"{document.kind} {step}"
        )
        yield Excerpt(title, [line for rows in lines.values() for line in rows], tag, document.text)


PAGE = Page(
    "Can the score be gamed?",
    "Attacked texts are not better than the honest ones by gold. n counts topics; claims that "
    "could not be judged are counted as failed and never scored.",
    [_tables],
    [_figures],
    _summary,
    excerpts,
    terminal=_OF_ALL | {"metric": ["gain", "worst_asr"], "against": None},
)
