"""How the results of robustness are shown: tables, figures, a sentence for each metric, texts."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from eval.experiments.robustness.robustness_grid import NONE, Row
from eval.experiments.robustness.robustness_values import ALL, SCORES, cells_of, with_k
from eval.report.declare import (
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
_OF_ALL = {"generator": ALL, "bin": ALL, "group": ALL}
_GAINS = {"variant": [None, "unpaired"]}
_KIND = {"assessor": "Metric", "kind": "Kind of text"}
_COLUMNS = ("metric", "selection")
_GOOD = {"supported": True, "not_supported": False, "contradicted": False}
# The dev measure that each component is selected by, in the order of search.
_MEASURES = ("pearson", "macro_f1", "entailment_auroc", "word_f1", "perplexity")


def shown_results(file: ResultFile) -> list[Result]:
    """The results as tables name them: scores alike, controls marked."""
    names = ("assessor", "selection", "against")
    rows = []
    for row in file.results:
        update = {name: _label(file, getattr(row, name)) for name in names if getattr(row, name)}
        update["metric"] = "score" if row.metric in SCORES else row.metric
        rows.append(row.model_copy(update=update))
    return rows


def _label(file: ResultFile, name: str) -> str:
    if name == NONE:
        return NO_DEFENCE
    for control in file.provenance.get("controls") or []:
        # A metric with several verdicts has their names behind its own, and by F1@K that.
        if name == control or name.startswith((f"{control}.", with_k(control, ""))):
            return f"{name} (control)"
    return name


def gain_mark(row: Result) -> tuple[str, bool | None]:
    """Whether a metric is gamed: the interval of the gain is above 0."""
    if row.metric != "gain":
        return "", None
    gamed = None if row.ci95 is None else row.ci95[0] > 0
    word = {True: "gamed", False: "not gamed", None: "no interval"}[gamed]
    return word + ", unpaired" * (row.variant == "unpaired"), None if gamed is None else not gamed


def _break_even_mark(row: Result) -> tuple[str, bool | None]:
    if not row.n:
        return "", None
    return ("never", True) if row.value is None else ("overtaken", False)


TABLES = [
    Table(
        "Gain of attacks",
        _KIND,
        _COLUMNS,
        {"gain": "Gain", "rise": "Rise"},
        "Score of the attack’s texts minus that of the honest ones, paired by the honest text that "
        "they were made of, or by topic where at least two topics have both. Gamed: the interval "
        "is above 0. Rise: the same of texts that are better than the honest ones.",
        _OF_ALL | _GAINS | {"against": lambda name: name != CLEAN},
        mark=gain_mark,
    ),
    Table(
        "Cost on honest texts",
        {"assessor": "Metric"},
        _COLUMNS,
        {
            "cost": "Cost",
            "label_correlation": "Correlation with labels",
            "generator_order": "Order of generators",
        },
        "Score without a defence minus that with it; Pearson’s correlation of the texts’ precision "
        "with the share of claims that are labelled supported; Spearman’s of the generators’ means "
        "with and without the defence.",
        _OF_ALL,
    ),
    Table(
        "Break-even",
        {"assessor": "Metric", "kind": "Curve"},
        ("selection",),
        {"break_even": "Break-even"},
        "The least k at which corrupted texts with k adversarial sentences are above their clean "
        "twins in the mean; at 0 the metric does not see that they are corrupted.",
        unit="total",
        mark=_break_even_mark,
    ),
    Table(
        "Score by kind of text",
        _KIND,
        _COLUMNS,
        {"score": "Score", "claims": "Subclaims", "respond_ratio": "Texts that respond"},
        "Mean share of supported subclaims, without FActScore’s length penalty; or F1@K where the "
        "metric says so, its recall the supported subclaims by K, at most 1.",
        _OF_ALL | {"variant": None},
        unit=UNITS,
    ),
    Table(
        "Bounds of the score by failures",
        _KIND | {"selection": "Defence"},
        ("variant",),
        {"score": "Score"},
        "The score if all claims that could not be judged were supported, or none of them.",
        _OF_ALL,
        {"failed_not_supported": "None supported", "failed_supported": "All supported"},
    ),
    Table(
        "Corrupted texts with sentences appended",
        {"assessor": "Metric", "kind": "Curve", "variant": "k"},
        _COLUMNS,
        {"score": "Score", "gain": "Over the clean twins"},
        "Of documents that have a value at every k, and of their clean twins.",
        _OF_ALL | {"variant": lambda k: k == CLEAN or isinstance(k, int)},
    ),
    Table(
        "Verdicts against known labels",
        _KIND,
        ("metric",),
        {"supported_if_true": "True claims", "supported_if_false": "False claims"},
        "Share of claims that are called supported, of those labelled true and of those labelled "
        "false. A metric that does not tell false from true shows nothing about gaming.",
        unit="share",
    ),
    Table(
        "Agreement of metrics and of defences",
        {"assessor": "Metric", "selection": "Defence", "against": "With"},
        metrics={"pearson": "Pearson"},
        note="Pearson’s correlation of the precision of honest texts: of two metrics under one "
        "defence, or of one metric under two.",
    ),
    *(
        Table(
            f"By {name.lower()}",
            {field: name, **_KIND},
            _COLUMNS,
            {"score": "Score", "gain": "Gain", "rise": "Rise", "kept_share": "Kept"},
            note,
            _GAINS | {field: lambda value: value != ALL},
            unit=UNITS,
            mark=gain_mark,
        )
        for field, name, note in (
            ("generator", "Generator", "A gain is that of its texts over all honest ones."),
            ("bin", "Frequency", "Attacks and honest texts on topics of one frequency."),
            ("group", "Group", "Attacks and honest texts on topics of one group."),
        )
    ),
]
CURVE = Figure(
    "Corrupted texts with sentences appended",
    "variant",
    ("selection",),
    {"score": "Score"},
    _OF_ALL,
    ("kind", "assessor"),
    "score",
    "lines",
)


def _tables(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    rows = shown_results(file)
    for table in (TABLES[0], _kept(file), *TABLES[1:]):
        if (written := table.of(rows)).rows:
            yield written


def _kept(file: ResultFile) -> Table:
    targets = file.provenance.get("targets") or []

    def mark(row: Result) -> tuple[str, bool | None]:
        bounds = [
            (target["at_least"], target["at_most"])
            for target in targets
            if target["kind"] == row.kind
            and (target["selection"] == row.selection or row.selection.endswith(" (control)"))
        ]
        if not bounds or row.value is None:
            return "", None
        reached = all(low <= row.value <= high for low, high in bounds)
        words = ", ".join(f"{100 * low:g} to {100 * high:g} %" for low, high in bounds)
        return f"{'reached' if reached else 'missed'}: {words}", reached

    title, note = "What a defence keeps", "Mean share of a text’s subclaims that it selects."
    shown = {"kept_share": "Kept"}
    return Table(title, _KIND, ("selection",), shown, note, _OF_ALL, unit="share", mark=mark)


def _figures(file: ResultFile, folder: Path) -> Iterator[Plot]:
    rows = shown_results(file)
    for plot in CURVE.of([*rows, *_clean_lines(rows)]):
        yield replace(plot, x="adversarial sentences appended (k)")
    yield from _distributions(file, folder)
    for path in sorted((folder / "training").glob("*.csv")):
        yield from _training(path)


def _clean_lines(rows: Sequence[Result]) -> Iterator[Result]:
    scores = [row for row in rows if row.metric == "score"]
    for row in (row for row in scores if row.variant == CLEAN):
        name = f"{row.selection}, clean twins"
        for k in {r.variant for r in scores if r.kind == row.kind and isinstance(r.variant, int)}:
            yield row.model_copy(update={"variant": k, "selection": name})


def _distributions(file: ResultFile, folder: Path) -> Iterator[Plot]:
    cells = cells_of([Row.model_validate(row) for row in rows_in(folder / "texts.jsonl")])
    for field in ("kind", "generator", "bin"):
        plots: dict[str, dict[str, list]] = {}
        for (metric, defence), texts in cells.items():
            points = plots.setdefault(_label(file, metric), {})[_label(file, defence)] = []
            for text in texts:
                group = getattr(text.document, field)
                if group is not None and not math.isnan(text.value):
                    kind = text.document.kind
                    name = group if field == "kind" else f"{kind}: {group}"
                    points.append((name, text.value, None))
        for metric, series in plots.items():
            groups = {name for points in series.values() for name, *_ in points}
            if len(groups) > (field != "kind"):
                title = f"Precision of the texts by {field} ({metric})"
                yield Plot(title, "boxes", series, y="precision of a text", top=1)


def _training(path: Path) -> Iterator[Plot]:
    with open(path, encoding="utf-8", newline="") as log:
        rows = [row for row in csv.DictReader(log) if row.get("step")]
    columns = {name: [r for r in rows if r[name]] for name in (rows[0] if rows else ())}
    known = [f"dev/{name}" for name in _MEASURES]
    others = sorted(name for name in columns if name.startswith("dev/") and name != "dev/loss")
    measure = [name for name in (*known, *others) if columns.get(name)][:1]
    for label, names in (("loss", ["train/loss", "dev/loss"]), ("".join(measure), measure)):
        series = {
            name: [(float(row["step"]), float(row[name]), None) for row in columns[name]]
            for name in names
            if columns.get(name)
        }
        if series:
            yield Plot(f"Training of {path.stem}: {label}", "lines", series, "step", label)


def signed(row: Result) -> str:
    """A difference with its sign and interval."""
    if row.value is None:
        return "not measured"
    ends = "" if row.ci95 is None else f" [{row.ci95[0]:+z.2f}, {row.ci95[1]:+z.2f}]"
    return f"{row.value:+z.2f}{ends}"


def _summary(file: ResultFile) -> list[str]:
    gains: dict[str, list[str]] = {}
    for row in shown_results(file):
        whole = (row.generator, row.bin, row.group) == (ALL, ALL, ALL)
        if row.metric in ("gain", "rise") and whole and row.against != CLEAN:
            defence = "" if row.selection == NO_DEFENCE else f"with {row.selection} "
            name = f"{row.assessor}: {row.kind} texts {row.metric}"
            gains.setdefault(name, []).append(f"{defence}{signed(row)}")
    skipped = [f"Left out: {line}." for line in file.provenance.get("skipped") or []]
    return [f"{name} {'; '.join(parts)}." for name, parts in gains.items()] + skipped


def excerpts(folder: Path) -> Iterator[Excerpt]:
    """The texts, each with its claims, what the defences make of them, and the verdicts."""
    for row in map(Row.model_validate, rows_in(folder / "texts.jsonl")):
        document, step = row.document, (row.document.model_extra or {}).get("step")
        lines: dict[tuple[str, str], list[Line]] = {}
        for metric, judged in row.metrics.items():
            for claim in judged.claims:
                decided = [
                    f"{defence}: {selection.reason}"
                    for defence, selections in judged.selections.items()
                    for selection in selections
                    if selection.claim == claim.id
                ]
                first = Line("", [(claim.text, None)], note=claim.failed or ", ".join(decided))
                lines.setdefault((claim.id, claim.text), [first]).extend(
                    Line(
                        metric,
                        mark=v.label,
                        good=_GOOD.get(v.label),
                        note="" if v.p is None else f"p = {v.p:.2f}",
                    )
                    for v in judged.verdicts
                    if v.claim == claim.id
                )
        scores = [
            f"{metric} ({score.selection}) {number(score.precision, 'mean')}"
            for metric, judged in row.metrics.items()
            for score in judged.scores
        ]
        title = f"{document.topic}: {', '.join(scores)}"
        tag = (
            f"{document.kind}, {document.generator}" if step is None else f"{document.kind} {step}"
        )
        yield Excerpt(title, [line for own in lines.values() for line in own], tag, document.text)


PAGE = Page(
    "Can the score be gamed?",
    "n counts topics; brackets hold 95 % bootstrap intervals over topics; what could not be judged "
    "is counted as failed and never scored.",
    [_tables],
    [_figures],
    _summary,
    excerpts,
    terminal=_OF_ALL | {"metric": ["gain", "rise"], "against": lambda name: name != CLEAN},
)
