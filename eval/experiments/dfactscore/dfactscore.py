"""Do biographies merge people who share a name? (Merging Facts, Crafting Fallacies, 2402.05629.)

Scores biographies of several generators by FActScore and D-FActScore on the same claims, with
biographies, entities, response ratio and citations (Tables 3, 4, 6), types of output (section 2.4),
and page views (section 5.3). Verdicts in the files and people's judgements are reported and
compared with the automatic verdicts. Scores have no length penalty, as in the paper except for one
cell; the results also have the penalized scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pydantic import BaseModel

from eval.experiments.dfactscore.dfactscore_values import compute_values
from eval.experiments.dfactscore.page_views import Views
from eval.experiments.experiment import (
    Experiment,
    Outcome,
    draw_names,
    require_entries,
    require_non_negative,
)
from eval.metrics.citations import Citations, CitedSentence
from eval.metrics.dfactscore_files import Files, read_texts, reported
from eval.metrics.document import Scored
from eval.metrics.judged_texts import (
    TYPES,
    JudgedText,
    factual_precision,
    from_file,
    from_pipeline,
    output_type,
    people_of,
)
from eval.pipeline import Pipeline
from eval.report.declare import Excerpt, Figure, Line, Page, Table, TextTable, number, rows_in
from eval.run.run import Run
from eval.stages import Decomposer, Retriever, Reviser, Verifier
from records import Document, ResultFile, UserError, read_records
from records.abstention import responds

_ROWS = {"generator": "Generator", "kind": "Source"}
_AGAINST = {**_ROWS, "against": "Against"}
_SOURCES = ("file", "people")
_VALUES = {
    ("factual_precision", "independent"): "FActScore",
    ("factual_precision", "grouped"): "D-FActScore",
    ("gap", None): "difference",
    ("biographies", None): "biographies",
    ("entities", None): "entities",
    ("linked_people", None): "linked people",
    ("respond_ratio", None): "respond ratio",
    ("citation_recall", None): "citation recall",
    ("citation_precision", None): "citation precision",
}
_VIEWS = {
    ("most_viewed", None): "describes the most-viewed person",
    ("most_viewed_by_chance", None): "by chance",
    ("views_of_the_person", None): "log10(1 + views)",
    ("spearman_of_factual_precision", "grouped"): "views and D-FActScore",
    ("spearman_of_gap", None): "views and difference",
}


def _reported(file: ResultFile, folder: Path) -> list[TextTable]:
    by_generator = file.provenance.get("reported") or {}
    columns = list(dict.fromkeys(name for values in by_generator.values() for name in values))
    rows = [[g, *(number(v.get(name)) for name in columns)] for g, v in by_generator.items()]
    note = "Values in the files, computed by their authors’ code."
    return [TextTable("As the files report", note, ["Generator", *columns], rows)] if rows else []


TABLES = [
    Table(
        "FActScore, D-FActScore, people and citations",
        _ROWS,
        ["metric", "variant"],
        heads=_VALUES,
        where={"against": None},
        note="Tables 3, 4 and 6 of the paper. automatic: this run’s verifier. file: verdicts in "
        "the file. Biographies: groups of claims. Entities: distinct pages if each claim is linked "
        "separately. Linked people: distinct pages of the groups, a lower bound of the "
        "biographies if the groups are unknown (released verdicts).",
    ),
    Table(
        "Types of output",
        _ROWS,
        ["variant"],
        {"output_type": "Share"},
        heads={name: name for name in TYPES},
        note="Shares of responding texts (section 2.4). Merged: one biography with claims about "
        "several people. Kept apart: several biographies, several people. Split: several "
        "biographies of one person. Nobody: no claim is supported.",
    ),
    Table(
        "Automatic verdicts against others",
        _AGAINST,
        ["metric", "variant"],
        {
            "balanced_accuracy": "balanced accuracy",
            "linked_alike": "title alike",
            "citation_auroc": "citations, AUROC",
            "citation_accuracy": "citations, accuracy",
        },
        where={"against": _SOURCES},
        note="Title alike: share of the claims supported by the other source that have the same "
        "page here. AUROC and accuracy: entailment of citations.",
    ),
    *(
        Table(
            f"{name.capitalize()} correlation with others, text by text",
            _AGAINST,
            ["metric", "variant"],
            {f"{name}_of_{metric}": metric.replace("_", " ") for metric, _ in _VALUES},
            where={"against": _SOURCES},
            note="Over the values per text.",
        )
        for name in ("pearson", "spearman")
    ),
    Table(
        "Page views",
        _ROWS,
        ["metric", "variant"],
        heads=_VIEWS,
        where={"against": (None, "views")},
        note="Section 5.3. First two columns: texts with one biography for which several people "
        "were retrieved; others: all texts whose person’s page has views. The last two columns "
        "are Spearman correlations.",
    ),
    _reported,
]
FIGURES = [
    Figure(
        "FActScore and D-FActScore by generator",
        "generator",
        ["variant", "kind"],
        {"factual_precision": ""},
        {"against": None},
        label="supported claims",
    ),
    Figure(
        "Types of output by generator",
        "variant",
        ["generator"],
        {"output_type": ""},
        {"kind": "automatic"},
        label="share of the texts",
    ),
]
_MARKS = {True: "✓", False: "✗", None: "?"}


def _excerpts(folder: Path) -> list[Excerpt]:
    texts = [JudgedText.model_validate(row) for row in rows_in(folder / "texts.jsonl")]
    judged = {text.source for text in texts}
    source = next((name for name in ("automatic", *_SOURCES) if name in judged), None)
    ranked = []
    for text in texts:
        pair = [factual_precision(text, name) for name in ("independent", "grouped")]
        if text.source == source and None not in pair and pair[0] > pair[1]:
            ranked.append((pair[1] - pair[0], text.id, pair, text))
    return [
        Excerpt(
            f"{text.topic}: {before:.2f} → {after:.2f} {output_type(text) or ''}",
            [
                Line(
                    f"{group}: {title or 'nobody'}",
                    [(claim.text, None)],
                    _MARKS[claim.grouped],
                    claim.grouped,
                    f"alone: {claim.alone}" if claim.alone not in (None, title) else "",
                )
                for group, title, claims in people_of(text)
                for claim in claims
            ],
            tag=text.generator,
        )
        for _, _, (before, after), text in sorted(ranked, key=lambda entry: entry[:2])
    ]


class JudgedBiography(BaseModel):
    scored: Scored
    citations: list[CitedSentence] | None


@dataclass(eq=False)
class DFActScore(Experiment):
    """Score biographies of ambiguous names by FActScore and D-FActScore.

    Args:
        documents: generator (or prompt) to its file, or to several files with the same texts
            (ALCE's generations, D-FActScore's output, ALCE's scores); or a list of files whose
            records have a ``generator``.
        decompose: decomposer; ``eval.decompose.given.Given`` uses the claims in the file. If it and
            ``verify`` are null, only verdicts of the files and of people are reported.
        verify: the D-FActScore verifier with ``independent`` and ``grouped`` verdicts.
        retrieve: retriever of the people's passages; by default the documents' passages are used.
        revise: makes claims self-contained.
        citations: judges citations; null skips them.
        people: files of people's judgements from ``data_builders dfactscore_labels``, for a
            project with the same ``documents``.
        views: page views: rows of ``title`` and ``views``, or ``names.jsonl`` of
            ``data_builders ambigbio --views``; null skips them.
        names: maximum number of names (topics), sampled at random; 0 for all.
        domain: domain in the results.
        seed: seed of the sampling and the bootstrap.
    """

    name = "dfactscore"
    page = Page(
        "Whose facts are these?",
        "Biographies of names that several people share (arXiv 2402.05629). In FActScore any "
        "person’s page may support a claim, in D-FActScore only the page of its group’s person. "
        "n counts names; brackets are 95 % bootstrap intervals over names. Failures are counted "
        "and excluded. There is no length penalty.",
        TABLES,
        FIGURES,
        texts=_excerpts,
        terminal={"metric": lambda name: not name.startswith("pearson_of_")},
    )

    documents: Files
    decompose: Decomposer | None = None
    verify: Verifier | None = None
    retrieve: Retriever | None = None
    revise: Reviser | None = None
    citations: Citations | None = None
    people: list[str] = field(default_factory=list)
    views: str | None = None
    names: int = 0
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        require_entries(documents=self.documents)
        require_non_negative(names=self.names)
        if (self.decompose is None) != (self.verify is None):
            raise UserError("decompose, verify: set both, or neither for the files' verdicts")
        if self.verify is None and (self.retrieve or self.revise or self.citations or self.views):
            raise UserError(
                "retrieve, revise, citations, views: need a verifier; set decompose and verify"
            )
        self.pipeline = (
            Pipeline(self.decompose, [self.verify], self.retrieve, revise=self.revise, gamma=0)
            if self.decompose is not None and self.verify is not None
            else None
        )

    def measure(self, run: Run) -> Outcome:
        views = Views(self.views) if self.views else None
        corpus = read_texts(self.documents)
        topics = draw_names((document.topic for document in corpus), self.names, Random(self.seed))
        documents = [document for document in corpus if document.topic in topics]
        judgements = self._judgements(corpus, documents)
        judged = (
            run.process("texts", self._judge, documents, JudgedBiography) if self.pipeline else []
        )
        texts = [from_pipeline(result.scored, result.citations) for result in judged]
        texts += [*filter(None, map(from_file, documents)), *judgements]
        if not texts:
            raise UserError("documents: no file has verdicts; set decompose and verify")
        names = {verdict.name for result in judged for verdict in result.scored.verdicts}
        if names and "grouped" not in names:
            raise UserError(
                "verify: no verdict named `grouped`; use eval.verify.dfactscore.stage.DFActScore"
            )
        file_values = reported(self.documents)
        return Outcome(
            compute_values(texts, views, self.seed),
            {"texts.jsonl": texts},
            {"reported": file_values} if file_values else {},
        )

    def _judgements(self, texts: Sequence[Document], drawn: Sequence[Document]) -> list[JudgedText]:
        ids = {document.id for document in texts}
        drawn_ids = {document.id for document in drawn}
        judgements: dict[str, JudgedText] = {}
        for path in self.people:
            for row in read_records(path, JudgedText):
                if row.id not in ids:
                    raise UserError(
                        f"{path}: text {row.id!r} is not in documents; use the `documents` of "
                        "the dfactscore_project"
                    )
                if row.id in judgements:
                    raise UserError(f"{path}: text {row.id!r} is judged twice; keep one row")
                judgements[row.id] = row
        return [row for row in judgements.values() if row.id in drawn_ids]

    def _judge(self, documents: Sequence[Document]) -> list[JudgedBiography]:
        answers = [document for document in documents if responds(document)]
        scored = {s.document.id: s for s in self.pipeline.score(answers)}
        none = {"claims": [], "selections": [], "passages": [], "verdicts": [], "scores": []}
        cited = self.citations(documents) if self.citations else [None] * len(documents)
        return [
            JudgedBiography(
                scored=scored.get(d.id) or Scored(document=d, **none), citations=sentences
            )
            for d, sentences in zip(documents, cited, strict=True)
        ]
