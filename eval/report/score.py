"""The page of ``python -m eval score``: its metrics side by side, and documents to look into.

Everything is from the run folder. Texts are escaped by the template, which has no script.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from pydantic import ValidationError

from eval.metrics.document import Scored, named
from eval.report.comparison import TextScores
from eval.report.graph import Picture, picture_of
from eval.report.highlighted import Run, of_verdict
from eval.report.page import Page
from eval.report.tables import Cell, TextTable, cell, interval, number, strata_tables, unit_of
from eval.run.terminal import model_name
from eval.stages import Selection
from records import Claim, Passage, Result, ResultFile, Verdict, first_fault, iter_rows

# What the page shows of a large run; it says so where there is more.
MAX_DOCUMENTS = 50
MAX_CLAIMS = 60
MAX_PASSAGES = 20
MAX_CHARACTERS = 600
MAX_LINES = 6

# Titles, what stands below them, and metrics with the heading of their column.
TABLES = (
    (
        "Factual precision",
        "Supported / judged claims: as a mean over texts (macro), over all claims of all "
        "texts (micro), and as a mean with FActScore’s length penalty. Texts that name no kind "
        "are normal; their generator is given where they name none.",
        {
            "factual_precision": "Precision, macro",
            "factual_precision_micro": "Precision, micro",
            "factscore": "With length penalty",
        },
    ),
    (
        "How much is said",
        "Recall@K is supported claims / K, at most 1; F1@K its harmonic mean with precision. "
        "Texts that do not respond have 0 in both.",
        {
            "claims": "Claims a text",
            "recall_at_k": "Recall@K",
            "f1_at_k": "F1@K",
            "respond_ratio": "Texts that respond",
            "kept_share": "Claims that Core keeps",
            "empty_selection": "Texts with nothing left",
        },
    ),
    (
        "Verdicts",
        "Numbers of claims. Judged ones that are none of the next three are not supported; "
        "irrelevant and failed ones are not judged.",
        {
            "judged": "Judged",
            "supported": "Supported",
            "contradicted": "Contradicted",
            "undecided": "Undecided",
            "irrelevant": "Irrelevant",
        },
    ),
    (
        "Probabilities",
        "How sure the assessor is of its verdicts, as means over texts (E has logarithms of base "
        "10; entropy in bits; −log P in nats).",
        {
            "graded_precision": "Graded precision",
            "e_measure": "E-measure",
            "binary_entropy": "Entropy",
            "negative_log_p": "−log P",
        },
    ),
    (
        "Against the claims’ labels",
        "How right the assessor’s probabilities are, over the claims of all texts, and how far its "
        "precision is from that of the labels, as a mean over texts.",
        {
            "brier": "Brier score",
            "ece": "Calibration error",
            "precision_mae": "Error of precision",
        },
    ),
)
_SELECTIONS = {"none": "without Core", "core": "with Core"}
_FAILED = "n = {n}, {failed:,} failed"


@dataclass(frozen=True)
class Row:
    """The results of one kind of text, generator, assessor and selection, by metric."""

    kind: str
    generator: str
    assessor: str | None
    selection: str
    results: dict[str, Result]

    @property
    def texts(self) -> str:
        """What they are of."""
        return f"{self.kind} ({self.generator})"

    @property
    def failed(self) -> int:
        """Claims and sentences that failed; the same number stands in each of the results."""
        return max(result.failed for result in self.results.values())


def rows_of(results: Sequence[Result]) -> list[Row]:
    """A row a cell of the run, as the run has them; one assessor alone has no name."""
    found: dict[tuple, dict[str, Result]] = {}
    for result in results:
        if (result.group, result.bin) == ("all", "all"):
            key = (result.kind, result.generator, result.assessor, _SELECTIONS[result.selection])
            found.setdefault(key, {})[result.metric] = result
    return [Row(*key, own) for key, own in found.items()]


def tables_of(rows: Sequence[Row]) -> list[TextTable]:
    """Those of ``TABLES`` that the run has values for."""
    several = any(row.assessor for row in rows)
    found = []
    for title, note, names in TABLES:
        shown = {name: head for name, head in names.items() if any(name in r.results for r in rows)}
        verdicts = "judged" in shown
        lines: list[list[Cell | str]] = []
        for row in rows:
            assessor = [row.assessor or ""] if several else []
            said = "" if verdicts else _FAILED
            cells = [cell(row.results.get(n), unit_of(n), said) for n in shown]
            failed = [Cell(f"{row.failed:,}")] if verdicts else []
            lines.append([row.texts, *assessor, row.selection, *cells, *failed])
        head = ["Texts (generator)", *(["Assessor"] if several else []), "Claims", *shown.values()]
        head += ["Failed"] if verdicts else []
        found += [TextTable(title, note, head, lines)] if shown else []
    return found


def summarise(rows: Sequence[Row]) -> list[str]:
    """One sentence a kind of text and assessor, of the first ones."""
    found: dict[str, list[str]] = {}
    for row in rows:
        result = row.results.get("factual_precision")
        by = f" by {row.assessor}" if row.assessor else ""
        said = found.setdefault(f"{row.kind} texts ({row.generator}){by}", [])
        if result is not None and result.value is not None:
            value = f"{number(result.value)} {interval(result)}".strip()
            said.append(f"{value} {row.selection} (n = {result.n}, {row.failed:,} failed)")
        else:
            said.append(f"no value {row.selection} ({row.failed:,} failed)")
    lines = [f"Precision of {name}: {'; '.join(said)}." for name, said in found.items()]
    more = len(lines) - MAX_LINES
    return lines[:MAX_LINES] + ([f"{more} more are in the tables."] if more > 0 else [])


# Documents


@dataclass(frozen=True)
class Judgement:
    """What one assessor says of a claim.

    Attributes:
        evidence: numbers of the document's passages, or names of passages that it lacks.
        queries: what the assessor searched for.
        kept: the claim as the assessor highlights it, where it says which words are supported.
    """

    assessor: str
    label: str
    p: float | None
    evidence: list[str]
    reason: str | None
    queries: list[str]
    kept: list[Run]


@dataclass(frozen=True)
class ClaimView:
    """A claim with all that is known of it; ``sentence`` only where it is not the one before."""

    claim: Claim
    sentence: str | None
    selection: Selection | None
    duplicate_of: str | None
    judgements: list[Judgement]


@dataclass(frozen=True)
class DocumentView:
    """A document, cut to what a page can hold; ``left_out`` counts claims that are not shown.

    ``picture`` is the graph of a verifier that has one.
    """

    scored: Scored
    claims: list[ClaimView]
    left_out: int
    passages: list[tuple[str, Passage]]
    picture: Picture | None


def read_documents(path: Path) -> tuple[list[DocumentView], int]:
    """At most ``MAX_DOCUMENTS`` and the number of all.

    They are the first of each kind and generator, then the second, …, in the order of the run.
    """
    if not path.is_file() or not path.stat().st_size:
        return [], 0
    seen: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, dict]] = []
    total = 0
    for line, row in iter_rows(path):
        document = row["document"] if isinstance(row.get("document"), dict) else {}
        cell = (str(document.get("kind")), str(document.get("generator")))
        ranked.append((seen[cell], line, row))
        seen[cell] += 1
        total += 1
        if len(ranked) > 2 * MAX_DOCUMENTS:  # a large run is never held as a whole
            ranked = _first(ranked)
    chosen = sorted(_first(ranked), key=itemgetter(1))
    return [_view(_scored(row, f"{path}:{line}")) for _, line, row in chosen], total


def _first(ranked: list[tuple[int, int, dict]]) -> list[tuple[int, int, dict]]:
    return sorted(ranked, key=itemgetter(0, 1))[:MAX_DOCUMENTS]


def _all(path: Path) -> Iterator[Scored]:
    return (_scored(row, f"{path}:{line}") for line, row in iter_rows(path))


def _scored(row: dict, where: str) -> Scored:
    try:
        return Scored.model_validate(row)
    except ValidationError as error:
        raise first_fault(where, error) from None


def _view(scored: Scored) -> DocumentView:
    selections = {s.claim: s for s in scored.selections}
    texts = {claim.id: claim.text for claim in scored.claims}
    shown = scored.claims[:MAX_CLAIMS]
    judged: dict[str, list[Verdict]] = {}
    for verdict in [*scored.verdicts, *scored.core_verdicts]:
        judged.setdefault(verdict.claim, []).append(verdict)
    used = [name for c in shown for v in judged.get(c.id, []) for name in v.evidence or []]
    numbers = {name: str(place) for place, name in enumerate(dict.fromkeys(used), 1)}
    by_id = {passage.id: passage for passage in scored.passages}
    there = [(numbers[name], by_id[name]) for name in numbers if name in by_id]
    labels = {name: numbers[name] if name in by_id else name for name in numbers}
    before = None
    views = []
    for claim in shown:
        own = selections.get(claim.id)
        sentence = claim.source if claim.source != before and claim.source != claim.text else None
        before = claim.source
        views.append(
            ClaimView(
                claim=claim,
                sentence=sentence,
                selection=own,
                duplicate_of=texts.get(own.duplicate_of or "") if own else None,
                judgements=[_judgement(v, claim.text, labels) for v in judged.get(claim.id, [])],
            )
        )
    left_out = len(scored.claims) - len(shown)
    return DocumentView(scored, views, left_out, there[:MAX_PASSAGES], picture_of(scored))


def _judgement(verdict: Verdict, claim: str, labels: dict[str, str]) -> Judgement:
    more = verdict.model_extra or {}
    steps = more.get("steps") or []
    return Judgement(
        assessor=named(verdict.assessor, verdict.name),
        label=verdict.label.replace("_", " "),
        p=verdict.p,
        evidence=[labels[name] for name in verdict.evidence or []],
        reason=verdict.reason,
        queries=[
            str(step["query"]) for step in steps if isinstance(step, dict) and "query" in step
        ],
        kept=of_verdict(claim, more.get("kept")),
    )


# The page


class ScorePage(Page):
    """How much of it is supported?"""

    template = "report/score.html.j2"
    question = "How much of it is supported?"

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """The metrics of all texts."""
        return [*tables_of(rows_of(file.results)), *strata_tables(file.results)]

    def compared(self, folder: Path) -> Iterator[TextScores]:
        """The precision of each text by each assessor, without and with Core.

        A text without a verdict has one score for all of them.
        """
        path = folder / "scored.jsonl"
        every = (score for scored in _all(path) for score in scored.scores if score.assessor)
        names = list(dict.fromkeys(named(score.assessor, score.name) for score in every))
        for scored in _all(path):
            own = scored.document
            scores = {
                (name, score.selection): score.precision
                for score in scored.scores
                for name in ([named(score.assessor, score.name)] if score.assessor else names)
            }
            given = (own.kind or "normal", own.generator or "given")
            yield TextScores(own.id, own.topic, *given, own.text, scores)

    def context(self, file: ResultFile, folder: Path, document: str | None) -> dict:
        """A summary, models and costs, and documents."""
        rows = rows_of(file.results)
        documents, total = read_documents(folder / "scored.jsonl")
        models = [json.dumps(m, ensure_ascii=False) for m in file.provenance.get("models") or []]
        return {
            "summary": summarise(rows),
            "with_core": any(row.selection == _SELECTIONS["core"] for row in rows),
            "k": file.provenance.get("k"),
            "usage": [(model_name(u["model"]), u) for u in file.provenance.get("usage") or []],
            "models": models,
            "prompts": file.provenance.get("prompts") or {},
            "documents": documents,
            "total": total,
            "most": {"claims": MAX_CLAIMS, "passages": MAX_PASSAGES},
            "named": named,
            "cut": cut,
        }


def cut(text: str | None, most: int = MAX_CHARACTERS) -> str:
    """The beginning of a text, with dots where it goes on."""
    text = text or ""
    return text if len(text) <= most else text[:most].rstrip() + " …"
