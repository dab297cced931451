"""The LSS experiments' tables, figures and pages, all from a run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError

from components.words import align, split_words
from eval.experiments.lss.lss_metrics_values import ALL, REFERENCE, SHARED
from eval.report.figures import Drawing, Value, bars
from eval.report.highlighted import Run, highlighted
from eval.report.page import Page
from eval.report.tables import TextTable, by, cell, pivot
from records import Result, ResultFile, first_fault, iter_rows
from records.types import Annotation, Record

# Shown with what every engine keeps: in all, and of one generator.
MAX_CLAIMS, MAX_OF_GENERATOR = 60, 30
LENGTH = "length_share"
ANSWERS = "answers_not_subsequence"  # counts a language model's answers, not references

# Variant to title, what it shows, and its columns: metric and whether it is a difference to the
# heading. In this order.
_TABLES = {
    "lss": (
        "Human and found LSS",
        "Words: over the claim’s words, the mean over its human LSS that are subsequences; a text "
        "with another word has 0. Bags: over the words of both texts without their order, as the "
        "paper’s Table 2; the mean over all human LSS, as ROUGE-1 and ROUGE-2. Best: "
        "against the closest human LSS; mean: over all. Exact: the same words as one of them. "
        "Subsequences: share of texts that are one of their claim; of a language model’s answers "
        "the share that is none is counted before anything is done about it.",
        {
            ("exact_match", False): "Exact",
            ("word_f1", False): "Word F1",
            ("bag_precision", False): "Precision, bags",
            ("bag_recall", False): "Recall, bags",
            ("bag_f1", False): "F1, bags",
            ("rouge_1_mean", False): "ROUGE-1, mean",
            ("rouge_2_mean", False): "ROUGE-2, mean",
            ("pearson_bleu_rating", False): "Pearson of BLEU(claim, LSS) and rating",
            ("word_precision", False): "Word precision",
            ("word_recall", False): "Word recall",
            ("rouge_l_mean", False): "ROUGE-L, mean",
            ("rouge_l_best", False): "ROUGE-L, best",
            ("bleu_mean", False): "BLEU, mean",
            ("subsequence_share", False): "Subsequences",
            (ANSWERS, False): "Answers that are none",
            ("spearman_bleu_rating", False): "Spearman of the same",
        },
    ),
    "claims": (
        "Generators",
        "Mean metric(claim, LSS) of the claims of each generator; a reference counts once. "
        "Differences to the first generator are over the references that both have.",
        {
            ("bleu", False): "BLEU(claim, LSS)",
            ("bleu", True): "difference",
            ("rouge_l", False): "ROUGE-L(claim, LSS)",
            ("rouge_l", True): "difference",
            ("kept_words", False): "Words kept",
            ("kept_words", True): "difference",
        },
    ),
}
_TABLES["lss_star"] = ("Human and found LSS*", _TABLES["lss"][1], _TABLES["lss"][2])
_RATINGS = {
    "rating_share": "Share of the annotations",
    "kept_words": "Share of the claim’s words that is kept",
    "bleu": "BLEU(claim, LSS)",
    "rouge_l": "ROUGE-L(claim, LSS)",
}


# What a row of Table 4 is of, and its measures: metric and what a difference is to.
_CORRELATIONS = {
    ("pearson", None): "Pearson with people",
    ("pearson", REFERENCE): "less that of (reference, claim)",
    ("pearson", SHARED): "less that of shared words",
    ("spearman", None): "Spearman with people",
    ("spearman", REFERENCE): "Spearman, difference to (reference, claim)",
    ("spearman", SHARED): "Spearman, difference to shared words",
    ("mean", None): "Mean score",
}
_TABLE_4 = (
    "Each metric in three forms, against people: correlation over the claims that both have, and "
    "what the LSS adds, from the same draws of references. n counts references; failed counts "
    "claims without a score, which the value leaves out: differences are over the claims that have "
    "both."
)


class PairRow(Record):
    """A line of ``pairs.jsonl``: a claim with what one engine found of it.

    ``keep`` has one bool a word of ``split_words(claim)``.
    """

    reference: str
    claim: str
    id: str | None = None
    engine: str | None = None
    generator: str | None = None
    lss: str | None = None
    lss_star: str | None = None
    keep: list[bool] | None = None
    rating: float | None = None
    scores: dict[str, float | None] = Field(default_factory=dict)
    annotations: list[Annotation] = Field(default_factory=list)


@dataclass
class Shown:
    """A claim of the page, and rows of who keeps what of it and how that scores."""

    claim: str
    reference: str
    generator: str | None
    rows: list[tuple[str, list[Run], dict[str, float | None]]] = field(default_factory=list)


# The claims


def _text_or_runs(claim: str, text: str | None, keep: Sequence[bool] | None) -> list[Run]:
    if keep is not None and len(keep) == len(split_words(claim)):
        return highlighted(claim, keep)
    return [("no answer" if text is None else text or "nothing", None)]


def read_pairs(path: Path) -> tuple[list[Shown], int]:
    """The first claims of a file with what engines and annotators keep, and their number."""
    if not path.is_file() or not path.stat().st_size:
        return [], 0
    found: dict[tuple, Shown] = {}
    every: set[tuple] = set()
    shown: Counter[str | None] = Counter()
    for line, row in iter_rows(path):
        try:
            pair = PairRow.model_validate(row)
        except ValidationError as error:
            raise first_fault(f"{path}:{line}", error) from None
        key = (pair.reference, pair.claim, pair.generator)
        every.add(key)
        if key not in found:
            if len(found) == MAX_CLAIMS or shown[pair.generator] == MAX_OF_GENERATOR:
                continue
            shown[pair.generator] += 1
            found[key] = Shown(pair.claim, pair.reference, pair.generator)
            found[key].rows += [(who, runs, {}) for who, runs in _human_rows(pair)]
        found[key].rows += [(who, runs, pair.scores) for who, runs in _engine_rows(pair)]
    return list(found.values()), len(every)


def _human_rows(pair: PairRow) -> Iterator[tuple[str, list[Run]]]:
    words = split_words(pair.claim)
    for number, one in enumerate(pair.annotations, 1):
        rating = "" if one.rating is None else f", rating {one.rating:g}"
        yield (
            f"annotator {number}{rating}",
            _text_or_runs(pair.claim, one.lss, align(one.lss, words)),
        )


def _engine_rows(pair: PairRow) -> Iterator[tuple[str, list[Run]]]:
    name = pair.engine or "LSS"
    if pair.keep is not None or pair.lss is not None or pair.lss_star is None:
        yield name, _text_or_runs(pair.claim, pair.lss, pair.keep)
    if pair.lss_star is not None:
        yield f"{name}, LSS*", [(pair.lss_star or "nothing", None)]


# Tables and figures


def tables_of(results: Sequence[Result]) -> list[TextTable]:
    """What an experiment has: a table a variant of ``_TABLES``, Table 4, and metrics by rating."""
    variants = ("lss", "lss_star", "claims")
    found = [_wide(name, [row for row in results if row.variant == name]) for name in variants]
    found.append(_table_4([row for row in results if row.assessor is not None]))
    for metric, title in _RATINGS.items():
        own = _rated(results, metric)
        heads, rows = pivot(own, ["kind"], ["group"], {(row.group,): row.group for row in own})
        lines = [[*who, *map(_counted, cells)] for who, cells in rows]
        head, figures = ["LSS of", *heads], [f"rating_{metric}"]
        found.append(TextTable(f"{title}, by human rating", "", head, lines, figures))
    found.append(_lengths([row for row in results if row.variant == LENGTH]))
    return [table for table in found if table.rows]


def _rated(results: Sequence[Result], metric: str) -> list[Result]:
    return [row for row in results if (row.variant, row.metric) == ("rating", metric)]


def _lengths(own: Sequence[Result]) -> TextTable:
    heads, rows = pivot(own, ["kind"], ["group"], {(row.group,): row.group for row in own})
    heads = ["mean" if head == "all" else head for head in heads]
    lines = [[*who, str(max(c.n for c in cells if c)), *map(cell, cells)] for who, cells in rows]
    note = (
        "Words in the LSS by words in the claim: share of the claims in each class, and the mean. "
        "0 is an empty LSS, 1 the whole claim. drop: LSS that are the whole claim eliminated; "
        "repeat: pairs repeated until the tenths are equally full."
    )
    return TextTable(
        "Length of LSS", note, ["file", "references", *heads], lines, ["lengths"] if lines else []
    )


def _counted(row: Result | None) -> str:
    return str(cell(row)) if row is None else f"{cell(row)}, n = {row.n}"


def _table_4(own: Sequence[Result]) -> TextTable:
    """Table 4 of the experiment ``lss_metrics``; columns without a value are left out."""
    known = {(row.metric, row.against) for row in own if row.value is not None}
    columns = {key: head for key, head in _CORRELATIONS.items() if key in known}
    names = {"assessor": "metric", "variant": "form", "kind": "engine"}
    if len({row.generator for row in own}) > 1:
        names["generator"] = "generator"
    heads, found = pivot(own, list(names), ["metric", "against"], columns)
    rows = []
    for place, cells in found:
        first = next((row for row in cells if row and row.metric == "pearson"), None)
        counts = [str(first.n), str(first.failed)] if first else ["–", "–"]
        rows.append([*place, *counts, *map(cell, cells)])
    head = [*names.values(), "n", "failed", *heads]
    return TextTable("Metrics and people", _TABLE_4, head, rows)


def _wide(name: str, own: Sequence[Result]) -> TextTable:
    title, note, columns = _TABLES[name]
    first = next((row.against for row in own if row.against is not None), "")
    keys = {(m, first if difference else None): head for (m, difference), head in columns.items()}
    heads, found = pivot(own, ["kind", "generator"], ["metric", "against"], keys)
    rows = []
    for (kind, generator), cells in found:
        present = [row for row in cells if row]
        counted = [row for row in present if row.metric != ANSWERS]
        most = max(counted or present, key=lambda row: row.n)
        who = kind if generator == "given" else generator
        shown = [cell(c, note="n = {n}" if c and c.n != most.n else "") for c in cells]
        rows.append([who, str(most.n), str(most.failed), *shown])
    head = ["generator" if name == "claims" else "engine", "references", "failed", *heads]
    return TextTable(title, note, head, rows, ["generators"] if name == "claims" else [])


def figures_of(results: Sequence[Result]) -> dict[str, Drawing]:
    """What is kept at each rating, lengths, and generators side by side (Table 5, Figure 3)."""
    found = {}
    for metric, title in _RATINGS.items():
        own = _rated(results, metric)
        if own:
            svg = _drawn(own, "kind", "group", title)
            found[f"rating_{metric}"] = Drawing(f"{title}, by human rating", svg)
    own = [row for row in results if (row.variant, row.metric) == (LENGTH, LENGTH)]
    if own:
        svg = _drawn(own, "kind", "group", "share of the claims")
        found["lengths"] = Drawing("Words in the LSS by words in the claim", svg)
    own = [row for row in results if row.variant == "claims" and row.against is None]
    if own:
        groups = list(dict.fromkeys(row.generator for row in own))
        columns = _TABLES["claims"][2]
        drawn = _bars(own, groups, "metric", "generator")
        values = {columns[metric, False]: row for metric, row in drawn.items()}
        found["generators"] = Drawing("Generators", bars(values, groups, "mean over references"))
    own = [r for r in results if (r.metric, r.against) == ("pearson", None) and r.generator != ALL]
    if own:
        title = "Highest correlation with people, by generator"
        found["generators_pearson"] = Drawing(title, _highest(own))
    return found


def _drawn(own: Sequence[Result], name: str, group: str, label: str) -> str:
    groups = list(dict.fromkeys(getattr(row, group) for row in own))
    return bars(_bars(own, groups, name, group), groups, label)


def _highest(own: Sequence[Result]) -> str:
    groups = list(dict.fromkeys(row.generator for row in own))
    values: dict[str, list[Value]] = {}
    hints: dict[str, list[str]] = {}
    for form, engine in dict.fromkeys((row.variant, row.kind) for row in own):
        name = form if form == REFERENCE else f"{form}, {engine}"
        for group in groups:
            mine = [r for r in own if (r.variant, r.kind, r.generator) == (form, engine, group)]
            known = [row for row in mine if row.value is not None]
            best = max(known, key=lambda row: row.value, default=None)
            values.setdefault(name, []).append((best.value, best.ci95) if best else (None, None))
            hints.setdefault(name, []).append(f"{best.assessor}: {cell(best)}" if best else "")
    return bars(values, groups, "Pearson with people, best metric", hints)


def _bars(
    own: Sequence[Result], groups: Sequence[str], name: str, group: str
) -> Mapping[str, list[Value]]:
    cells = by(own, name, group)
    return {
        one: [
            (row.value, row.ci95) if (row := cells.get((one, own_group))) else (None, None)
            for own_group in groups
        ]
        for one in dict.fromkeys(one for one, _ in cells)
    }


class LssPage(Page):
    """What of a claim is supported?"""

    template = "experiments/lss/lss.html.j2"
    question = "What of a claim is supported?"
    counted = "Brackets hold 95 % bootstrap intervals over references."

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """Engines, generators, ratings, and metrics against people."""
        return tables_of(file.results)

    def figures(self, file: ResultFile, folder: Path) -> dict[str, Drawing]:
        """Ratings and generators."""
        return figures_of(file.results)

    def context(self, file: ResultFile, folder: Path, document: str | None) -> dict:
        """The first claims with what is kept of them."""
        claims, total = read_pairs(folder / "pairs.jsonl")
        return {"claims": claims, "total": total}

    def in_terminal(self, row: Result) -> bool:
        """Without ratings; of Table 4 Pearson's correlations over all generators."""
        if row.assessor is not None:
            return row.metric == "pearson" and row.generator == ALL
        return row.group == "all"
