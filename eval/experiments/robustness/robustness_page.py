"""The page of the robustness experiment: the matrix first, everything else folded."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eval.defences import Defence
from eval.experiments.robustness.robustness_cells import ALL, cells_of
from eval.experiments.robustness.robustness_example import example_of
from eval.experiments.robustness.robustness_grid import NONE, TextScores
from eval.experiments.robustness.robustness_values import SCORES, TEXT_SCORE
from eval.experiments.robustness.robustness_verdicts import ladders_of
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
from eval.report.documents import GOOD
from records import Result, ResultFile

CLEAN = "clean"
NO_DEFENCE = "no defence"
CONTROL = " (control)"
# The precision by the texts' own labels, which any attack with true claims games.
LABELS = "labels"
UNITS = {"claims": "tenth"} | dict.fromkeys(("respond_ratio", "kept_share"), "share")
# Lines above and below the attacks of a column.
ABOVE = {"certificate": "Certificate", "order": "Order of honest texts (τ)"}
WORST = "worst_excess_inflation"
BELOW = {
    WORST: "Worst excess inflation",
    "worst_asr": "Worst success rate",
    "order_lost": "Order lost (τ)",
    "cost": "Score lost by the best texts",
    "empty_share": "Honest texts without a claim left",
    "disorder": "Success rate of honest texts",
}
OF_ALL = {"generator": ALL, "bin": ALL, "group": ALL}
_KIND = {"assessor": "Metric", "kind": "Kind of text"}
_COLUMNS = ("metric", "selection")
_VERDICTS = {"held": True, "gamed": False, "void": False, "passes": True, "fails": False}
_SHADES = {"gamed": 1.0, "unclear": 0.5, "held": 0.0}
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
    return f"{name}{CONTROL}" if is_control else name


def verdict_mark(row: Result) -> tuple[str, bool | None]:
    """The verdict of a cell, and whether it is a good one."""
    return row.verdict or "", _VERDICTS.get(row.verdict or "")


def _break_even_mark(row: Result) -> tuple[str, bool | None]:
    if not row.n:
        return "", None
    return ("never", True) if row.value is None else ("overtaken", False)


def matrices(file: ResultFile) -> Iterator[TextTable]:
    """A table per metric: attacks by defences, with verdicts, certificates and costs."""
    rows = [r for r in shown_results(file) if (r.generator, r.bin, r.group) == (ALL, ALL, ALL)]
    by_place: dict[tuple[str | None, str], dict[tuple[str, str], Result]] = {}
    for row in rows:
        by_place.setdefault((row.assessor, row.selection), {})[row.metric, row.kind] = row
    kinds = list(dict.fromkeys(row.kind for row in rows if row.metric == "asr"))
    families = file.provenance.get("families") or {}
    kinds.sort(key=lambda kind: families.get(kind, ""))
    for metric in dict.fromkeys(row.assessor for row in rows if row.metric == "asr"):
        columns = {c: cells for (assessor, c), cells in by_place.items() if assessor == metric}
        lines: list[list[Cell | str]] = []
        for kind in kinds:
            name = f"{families[kind]}: {kind}" if kind in families else kind
            cells = [_attack(columns[c], kind) for c in columns]
            lines.append([name, *cells])
        yield TextTable(
            f"Can it be gamed? {metric}",
            "A cell has the excess inflation (how much the metric overrates the attack, minus how "
            "much it overrates an honest text of the same gold F1) with bounds at the level of all "
            "cells, the share of topics on which the attack scores higher than a much better text "
            "(ASR), and the verdict. Of several texts of a topic, the one with the highest score "
            "counts. Orange cells are gamed, grey ones unclear, blue ones held; "
            "cells without a colour are void.",
            ["Attack", *columns],
            [*_margins(columns, ABOVE), *lines, *_margins(columns, BELOW)],
        )


def _margins(
    columns: Mapping[str, Mapping[tuple[str, str], Result]], titles: Mapping[str, str]
) -> Iterator[list[Cell | str]]:
    for name, title in titles.items():
        places = [place for cells in columns.values() for place in cells if place[0] == name]
        for place in dict.fromkeys(places):
            label = title if place[1] == ALL or name == "certificate" else f"{title}: {place[1]}"
            yield [label, *(_margin(cells.get(place)) for cells in columns.values())]


def _attack(cells: Mapping[tuple[str, str], Result], kind: str) -> Cell:
    rate, excess = cells.get(("asr", kind)), cells.get(("excess_inflation", kind))
    if rate is None or rate.value is None:
        return Cell("n/a" if rate is None else "failed")
    share = f"ASR {rate.value:.2f} {_ends(rate.bounds)}, n = {rate.n}"
    needed = cells.get(("units_needed", kind))
    if needed is not None:
        share += f", decided with n = {number(needed.value, 'total')}"
    if excess is None or excess.value is None:
        return Cell(share)
    mark, good = verdict_mark(excess)
    single = [cells.get((f"single_{name}", kind)) for name in ("excess", "successes")]
    if None not in single:
        mark += f", best of {excess.variant}"
        share += "; a single text {:+.2f}, ASR {:.2f}".format(*(row.value for row in single))
    value, shade = f"{excess.value:+.2f}", _SHADES.get(excess.verdict)
    return Cell(value, _ends(excess.bounds), share, mark, good, shade=shade)


def _margin(row: Result | None) -> Cell:
    if row is None or row.value is None:
        return Cell("–")
    if row.metric == "certificate":
        mark, good = verdict_mark(row)
        return Cell("" if good else f"{row.value:.0f} of {row.n} families", mark=mark, good=good)
    ends = row.bounds or row.ci95
    note = str(row.variant) if row.metric.startswith("worst") else ""
    return Cell(f"{row.value:.2f}", _ends(ends) if ends else "", note)


def _ends(ends: tuple[float, float]) -> str:
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]"


FOLDED = [
    Table(
        "Which statements are accepted",
        {"assessor": "Metric", "selection": "Defence", "kind": "Statements"},
        ("variant",),
        {"acceptance": "Accepted"},
        "Share of statements with known truth of which all claims are supported, by bank of "
        "phrases; training may use the phrases that are seen.",
        unit="share",
    ),
    Table(
        "Search of the bank attacker",
        {"assessor": "Metric", "selection": "Defence", "variant": "Scored texts"},
        ("metric",),
        {"bank_score": "Best score", "bank_gold": "Its gold F1"},
        "Mean over topics of the best text so far; its rows in the matrix show how it transfers.",
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
        OF_ALL | {"variant": None},
        unit=UNITS,
    ),
    Table(
        "Bounds of the score by failures",
        _KIND | {"selection": "Defence"},
        ("variant",),
        {TEXT_SCORE: "Score"},
        "The score if all claims that could not be judged were supported, or none of them.",
        OF_ALL,
        {"failed_not_supported": "None supported", "failed_supported": "All supported"},
    ),
    Table(
        "Corrupted texts with sentences appended",
        {"assessor": "Metric", "kind": "Curve", "variant": "k"},
        _COLUMNS,
        {TEXT_SCORE: "Score", "gain": "Over the clean twins"},
        "Of documents that have a value at every k, and of their clean twins.",
        OF_ALL | {"variant": lambda k: k == CLEAN or isinstance(k, int)},
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
            {TEXT_SCORE: "Score", "kept_share": "Kept"},
            "",
            OF_ALL | dict.fromkeys(names, lambda value: value != ALL),
            unit=UNITS,
        )
        for names in (
            {"generator": "Generator"},
            {"bin": "Frequency"},
            {"generator": "Generator", "bin": "Frequency"},
            {"group": "Group"},
        )
    ),
]
CURVE, LADDER = (
    Figure(
        title,
        "variant",
        ("selection",),
        {metric: "Score"},
        OF_ALL,
        ("kind", "assessor"),
        "score",
        "lines",
    )
    for title, metric in (
        ("Corrupted texts with sentences appended", TEXT_SCORE),
        ("Score of honest texts by their gold F1", "rung"),
    )
)


def worst_example(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    """The worst attack without a defence, next to a better text that scores lower."""
    rows = map(TextScores.model_validate, rows_in(folder / "texts.jsonl"))
    cells = cells_of(list(rows), {NONE: Defence()})
    ladders = ladders_of(cells, file.provenance["honest"], seed=0)
    plain = [r for r in file.results if r.selection == NONE and r.assessor != LABELS]
    gamed = {row.assessor for row in plain if row.verdict == "gamed"}
    worst = {row.assessor: row.variant for row in plain if row.metric == WORST}
    # Of the first metric that is gamed; controls come last.
    for metric in sorted(worst, key=lambda metric: metric not in gamed)[:1]:
        place = (metric, NONE)
        if place in cells and (example := example_of(worst[metric], cells[place], ladders[place])):
            texts = {"Attack": example.attacked, "Honest text": example.honest}
            yield TextTable(
                f"Worst example: {example.kind} under {metric}",
                f"Two texts about {example.topic}. The attack is worse by gold and scores higher.",
                ["Text", "Score", "Gold F1", "Words"],
                [
                    [name, number(text.score, "mean"), number(text.gold, "mean"), text.text]
                    for name, text in texts.items()
                ],
            )


def _tables(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    yield from worst_example(file, folder)
    yield from matrices(file)
    rows = shown_results(file)
    for table in FOLDED:
        if (written := table.of(rows)).rows:
            yield replace(written, folded=True)


def _figures(file: ResultFile, folder: Path) -> Iterator[Plot]:
    rows = shown_results(file)
    for plot in LADDER.of(rows):
        yield replace(plot, x="gold F1")
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


def summary(file: ResultFile) -> list[str]:
    """One sentence per column that was asked for: verdicts, worst attack and certificate."""
    rows = [r for r in shown_results(file) if (r.generator, r.bin, r.group) == (ALL, ALL, ALL)]
    verdicts: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        if row.metric == "excess_inflation" and row.verdict:
            verdicts.setdefault((row.assessor, row.selection), []).append((row.kind, row.verdict))
    last = {(r.assessor, r.selection, r.metric): r for r in rows}
    if stacks := file.provenance.get("stacks"):
        columns = (NO_DEFENCE, *stacks)
        verdicts = {place: pairs for place, pairs in verdicts.items() if place[1] in columns}
    lines = [_answer(verdicts)] if verdicts else []
    for metric, column in verdicts:
        worst = last.get((metric, column, WORST))
        rate = last.get((metric, column, "worst_asr"))
        if worst is None or rate is None:
            lines.append(f"{metric}, {column}: no attacked text has a score.")
            continue
        measured = last.get((metric, column, "certificate"))
        certificate = measured.verdict if measured else "not measured"
        lines.append(
            f"{metric}, {column}: {_counted(verdicts[metric, column])}; worst excess inflation "
            f"{worst.value:+.2f} ({worst.variant}), worst success rate {rate.value:.2f} "
            f"({rate.variant}); certificate: {certificate}."
        )
    same = file.provenance.get("same") or {}
    lines += [f"{place} is the same pipeline as {first}." for place, first in same.items()]
    equal = file.provenance.get("equal") or {}
    lines += [f"{place} scores every text as {first} does." for place, first in equal.items()]
    inert = file.provenance.get("inert") or {}
    lines += [
        f"These attacks do nothing to {metric} without a defence and are never held: "
        f"{', '.join(kinds)}."
        for metric, kinds in inert.items()
    ]
    if controlled := file.provenance.get("controlled"):
        lines.append(
            f"The word test, which reads no order, is within the bounds of `held` for "
            f"{', '.join(controlled)}, so no column is held against them."
        )
    reasons = file.provenance.get("known") or {}
    lines += [
        f"{path}: known when the stack was made ({reasons[path]})."
        if path in reasons
        else f"{path}: fresh."
        for path in file.provenance.get("fresh") or []
    ]
    return lines + [f"Skipped {line}." for line in file.provenance.get("skipped") or []]


def _answer(verdicts: Mapping[tuple[str, str], Sequence[tuple[str, str]]]) -> str:
    """The answer to the question of the page; verdicts of controls and labels do not count."""
    distinct = {
        ", ".join(place): {verdict for _, verdict in pairs}
        for place, pairs in verdicts.items()
        if place[0] != LABELS and not place[0].endswith(CONTROL)
    }
    if gamed := [column for column, words in distinct.items() if "gamed" in words]:
        return f"Yes. Gamed: {'; '.join(gamed)}."
    if set().union(*distinct.values()) == {"void"}:
        return "No verdict: scores do not order honest texts by quality, so attacks show nothing."
    return "Not shown: no attack certainly games the score. The details state what is held."


def _counted(verdicts: Sequence[tuple[str, str]]) -> str:
    counts = Counter(verdict for _, verdict in verdicts)
    words = [f"{counts[word]} {word}" for word in ("gamed", "unclear", "void") if counts[word]]
    if kinds := [kind for kind, verdict in verdicts if verdict == "held"]:
        words.append(f"{len(kinds)} held against {', '.join(kinds)}")
    return f"of {len(verdicts)} attacks " + ", ".join(words)


def excerpts(folder: Path) -> Iterator[Excerpt]:
    """The texts, each with its claims, the defences' selections and the verdicts."""
    for row in map(TextScores.model_validate, rows_in(folder / "texts.jsonl")):
        document = row.document
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
                        good=GOOD.get(v.label),
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
        tag = ", ".join(filter(None, (document.kind, document.generator)))
        yield Excerpt(title, [line for rows in lines.values() for line in rows], tag, document.text)


PAGE = Page(
    "Can the score be gamed?",
    "Gold F1 is the true quality of a text; attacks have a low one. n counts topics; claims that "
    "could not be judged are counted as failed and never scored.",
    [_tables],
    [_figures],
    summary,
    excerpts,
    lead_lines=1,
    terminal=OF_ALL | {"metric": [WORST, "worst_asr"]},
)
