"""The LSS experiments' tables, figures and pages, all from a run folder."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError

from components.words import align, split_words
from eval.experiments.decomposition.figures import Value, bars
from eval.experiments.lss.lss_metrics_values import table_rows
from eval.report.highlighted import Run, highlighted
from eval.report.tables import TextTable, markdown_table, number_with_interval, results_csv
from records import Result, ResultFile, first_fault, iter_rows, read_results, write_text
from records.types import Annotation, Record

# Shown with what every engine keeps: in all, and of one generator.
MAX_CLAIMS, MAX_OF_GENERATOR = 60, 30

# Metric's prefix to title, what it shows, and its columns: name to heading. In this order.
_TABLES = {
    "lss": (
        "Human and found LSS",
        "Words: over the claim’s words, the mean over its human LSS that are subsequences. Best: "
        "against the closest human LSS; mean: over all. Exact: the same words as one of them. "
        "Subsequences: share of texts that are one of their claim; of a language model’s answers "
        "the share that is none is counted before anything is done about it.",
        {
            "exact_match": "Exact",
            "word_f1": "Word F1",
            "pearson_bleu_rating": "Pearson of BLEU(claim, LSS) and rating",
            "word_precision": "Word precision",
            "word_recall": "Word recall",
            "rouge_l_mean": "ROUGE-L, mean",
            "rouge_l_best": "ROUGE-L, best",
            "bleu_mean": "BLEU, mean",
            "subsequence_share": "Subsequences",
            "answers_not_subsequence": "Answers that are none",
            "spearman_bleu_rating": "Spearman of the same",
        },
    ),
    "claims": (
        "Generators",
        "Mean metric(claim, LSS) of the claims of each generator; a reference counts once. "
        "Differences to the first generator are over the references that both have.",
        {
            "bleu": "BLEU(claim, LSS)",
            "bleu_difference": "difference",
            "rouge_l": "ROUGE-L(claim, LSS)",
            "rouge_l_difference": "difference",
            "kept_words": "Words kept",
            "kept_words_difference": "difference",
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


# Of the experiment ``lss_metrics``: what a row is of, and its measures.
_PLACE = ("metric", "form", "engine", "generator")
_CORRELATIONS = {
    "pearson": "Pearson with people",
    "pearson_difference": "less that of (reference, claim)",
    "pearson_over_shared": "less that of shared words",
    "spearman": "Spearman with people",
    "spearman_difference": "Spearman, difference to (reference, claim)",
    "spearman_over_shared": "Spearman, difference to shared words",
    "mean": "Mean score",
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
    """The first claims of a file, each with what all engines and annotators keep, and their number.

    Raises:
        UserError: a line that is no pair.
    """
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
    """What an experiment has: a table a prefix of ``_TABLES``, Table 4, and metrics by rating."""
    found = []
    for prefix in ("lss", "lss_star", "claims"):
        own = [row for row in results if row.metric.partition(":")[0] == prefix]
        if own:
            found.append(_wide(prefix, own))
    own = [row for row in results if row.metric.partition(":")[0] in _CORRELATIONS]
    if own:
        found.append(_correlations(own))
    for metric, title in _RATINGS.items():
        own = [row for row in results if row.metric == f"rating:{metric}"]
        if own:
            groups = list(dict.fromkeys(row.group for row in own))
            cells = {(row.kind, row.group): row for row in own}
            rows = [
                [who, *(_cell(cells.get((who, group))) for group in groups)]
                for who in dict.fromkeys(row.kind for row in own)
            ]
            head = ["LSS of", *(group.replace("=", " ") for group in groups)]
            found.append(TextTable(f"{title}, by human rating", "", head, rows))
    return found


def _correlations(own: Sequence[Result]) -> TextTable:
    """Table 4 of the experiment ``lss_metrics``."""
    rows = table_rows([row.model_dump() for row in own])
    several = len({row["generator"] for row in rows}) > 1
    names = [*_PLACE[: None if several else -1], "n", "failed"]
    measures = [m for m in _CORRELATIONS if any(row.get(m) is not None for row in rows)]
    cells = [
        [*(str(row.get(name, "–")) for name in names), *(_ends(row, m) for m in measures)]
        for row in rows
    ]
    head = [*names, *(_CORRELATIONS[measure] for measure in measures)]
    return TextTable("Metrics and people", _TABLE_4, head, cells)


def _ends(row: Mapping, measure: str) -> str:
    if row.get(measure) is None:
        return "–"
    value, *ends = (f"{row[measure + end]:.3f}" for end in _parts(row, measure))
    return f"{value} [{', '.join(ends)}]" if ends else value


def _parts(row: Mapping, measure: str) -> tuple[str, ...]:
    return ("",) if row.get(f"{measure}_low") is None else ("", "_low", "_high")


def _wide(prefix: str, own: Sequence[Result]) -> TextTable:
    title, note, columns = _TABLES[prefix]
    cells = {(row.kind, row.generator, row.metric.partition(":")[2]): row for row in own}
    used = [name for name in columns if any(name == metric for _, _, metric in cells)]
    rows = []
    for kind, generator in dict.fromkeys((row.kind, row.generator) for row in own):
        there = [cells.get((kind, generator, name)) for name in used]
        # What counts a language model's answers counts no references.
        present = [row for row in there if row]
        counted = [row for row in present if not row.metric.endswith("answers_not_subsequence")]
        most = max(counted or present, key=lambda row: row.n)
        name = kind if generator == "given" else generator
        rows.append([name, str(most.n), str(most.failed), *map(number_with_interval, there)])
    head = ["generator" if prefix == "claims" else "engine", "references", "failed"]
    return TextTable(title, note, [*head, *(columns[name] for name in used)], rows)


def _cell(row: Result | None) -> str:
    text = number_with_interval(row)
    return text if row is None else f"{text}, n = {row.n}"


def figures_of(results: Sequence[Result]) -> dict[str, tuple[str, str]]:
    """File name without its ending to a title and the SVG."""
    found = {}
    for metric, title in _RATINGS.items():
        own = [row for row in results if row.metric == f"rating:{metric}"]
        if own:
            groups = list(dict.fromkeys(row.group for row in own))
            svg = bars(_bars(own, groups, by="group"), [g.replace("=", " ") for g in groups], title)
            found[f"rating_{metric}"] = (f"{title}, by human rating", svg)
    own = [row for row in results if row.metric.startswith("claims:") and "_diff" not in row.metric]
    if own:
        groups = list(dict.fromkeys(row.generator for row in own))
        titles = _TABLES["claims"][2]
        named = {
            titles[row.metric.partition(":")[2]]: [r for r in own if r.metric == row.metric]
            for row in own
        }
        values = {
            title: _bars(rows, groups, by="generator")[rows[0].kind]
            for title, rows in named.items()
        }
        found["generators"] = ("Generators", bars(values, groups, "mean over references"))
    return found


def _bars(own: Iterable[Result], groups: Sequence[str], by: str) -> Mapping[str, list[Value]]:
    """Who to a value a group."""
    cells = {(row.kind, getattr(row, by)): row for row in own}
    return {
        kind: [
            (row.value, row.ci95) if (row := cells.get((kind, group))) else (None, None)
            for group in groups
        ]
        for kind in dict.fromkeys(kind for kind, _ in cells)
    }


def write_tables_and_figures(folder: Path) -> None:
    """Write ``tables.md``, ``tables.csv`` and ``figures/*.svg`` into a run folder."""
    results = read_results(folder / "results.json").results
    parts = ["Brackets hold 95 % bootstrap intervals over references.\n"]
    for table in tables_of(results):
        note = f"{table.note}\n\n" if table.note else ""
        parts.append(f"## {table.title}\n\n{note}{markdown_table(table.head, table.rows)}")
    write_text(folder / "tables.md", "\n".join(parts))
    write_text(folder / "tables.csv", results_csv(results))
    drawn = figures_of(results)
    for old in (folder / "figures").glob("*.svg"):  # of a run with other options
        if old.stem not in drawn:
            old.unlink()
    for name, (_, svg) in drawn.items():
        write_text(folder / "figures" / f"{name}.svg", svg)


# The page


def page_context(file: ResultFile, folder: Path) -> dict:
    """What the page's template shows."""
    claims, total = read_pairs(folder / "pairs.jsonl")
    return {
        "tables": tables_of(file.results),
        "images": {
            title: base64.b64encode(svg.encode("utf-8")).decode()
            for title, svg in figures_of(file.results).values()
        },
        "claims": claims,
        "total": total,
    }
