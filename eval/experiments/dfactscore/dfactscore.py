"""Do biographies merge people who share a name? (Merging Facts, Crafting Fallacies, 2402.05629.)

Biographies of several generators are scored by FActScore and by D-FActScore in one run on the same
claims: with the numbers of biographies and of entities, the share that responds, citation recall
and precision (Tables 3, 4 and 6: generators, or prompts, side by side), the types of output
(section 2.4), and, where page views are given, whether a generator tells of the most-viewed person
(section 5.3). Where a file brings its authors' verdicts (AmbigBio's) or people judged the texts,
their values stand beside and how far both agree; without a verifier they stand alone, and no model
is needed.

FActScore and D-FActScore are without length penalty, as the paper reports them but for one cell;
those with it are in the results as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pydantic import BaseModel

from eval.experiments.dfactscore.dfactscore_values import values_of
from eval.experiments.dfactscore.page_views import Views
from eval.experiments.experiment import (
    Experiment,
    Found,
    at_least_one,
    drawn,
    natural,
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
    ("most_viewed", None): "tells most of the most-viewed person",
    ("most_viewed_by_chance", None): "by chance",
    ("views_of_the_person", None): "log10(1 + views)",
    ("spearman_of_factual_precision", "grouped"): "views and D-FActScore",
    ("spearman_of_gap", None): "views and difference",
}


def _reported(file: ResultFile, folder: Path) -> list[TextTable]:
    heads = file.provenance.get("reported") or {}
    columns = list(dict.fromkeys(name for own in heads.values() for name in own))
    rows = [[who, *(number(own.get(name)) for name in columns)] for who, own in heads.items()]
    note = "The values that stand in the files, by their authors’ codes; not computed here."
    return [TextTable("As the files report", note, ["Generator", *columns], rows)] if rows else []


TABLES = [
    Table(
        "FActScore, D-FActScore, people and citations",
        _ROWS,
        ["metric", "variant"],
        heads=_VALUES,
        where={"against": None},
        note="Tables 3, 4 and 6 of the paper. automatic: this run’s verifier. file: the verdicts "
        "that the texts came with. Biographies: groups of claims. Entities: distinct pages where "
        "each claim is linked by itself. Linked people: distinct pages of the groups, the least "
        "number of biographies where the groups are not told (released verdicts).",
    ),
    Table(
        "Types of output",
        _ROWS,
        ["variant"],
        {"output_type": "Share"},
        heads={name: name for name in TYPES},
        note="Shares of the texts that respond (section 2.4). Merged: one biography whose claims "
        "only several people’s pages support. Kept apart: several biographies, several people. "
        "Split: several biographies of one person. Nobody: no claim is supported.",
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
        note="Title alike: share of the claims that are supported there whose page is the same "
        "here. AUROC and accuracy are of the citations’ entailment.",
    ),
    *(
        Table(
            f"{name.capitalize()} correlation with others, text by text",
            _AGAINST,
            ["metric", "variant"],
            {f"{name}_of_{metric}": metric.replace("_", " ") for metric, _ in _VALUES},
            where={"against": _SOURCES},
            note="Of the values of the texts.",
        )
        for name in ("pearson", "spearman")
    ),
    Table(
        "Page views",
        _ROWS,
        ["metric", "variant"],
        heads=_VIEWS,
        where={"against": (None, "views")},
        note="Section 5.3. The first two columns: of texts with one biography where several people "
        "of the name were retrieved; the others: of all whose person’s page has views. The last "
        "two columns are Spearman correlations.",
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


def _losers(folder: Path) -> list[Excerpt]:
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
        for _, _, (before, after), text in sorted(ranked, key=lambda own: own[:2])
    ]


class Judged(BaseModel):
    """A text with all that was found out about it; ``citations`` is null without a judge."""

    scored: Scored
    citations: list[CitedSentence] | None


@dataclass(eq=False)
class DFActScore(Experiment):
    """The experiment.

    Args:
        documents: generator (or prompt) to its file of texts, or to several files about the same
            texts (ALCE's generations, D-FActScore's output, ALCE's scores); or files whose records
            name their ``generator`` themselves. AmbigBio's files, our builder's, or any documents.
        decompose: texts to claims; ``eval.decompose.given.Given`` takes those of the file. Null,
            with ``verify``: nothing is judged, the verdicts of the files and of people are shown.
        verify: the D-FActScore verifier; its verdicts are ``independent`` and ``grouped``.
        retrieve: finds the people's passages; without it the documents' own are used.
        revise: claims to claims that stand alone.
        citations: judges citations; null leaves them out.
        people: files of people's judgements, as ``data_builders dfactscore_labels`` writes them
            for a project of the same ``documents``.
        views: page views: rows of ``title`` and ``views``, or the ``names.jsonl`` of
            ``data_builders ambigbio --views``; null leaves them out.
        names: at most this many names (topics), drawn at random; 0 for all.
        domain: named in the results.
        seed: of the draw and of the bootstrap.
    """

    name = "dfactscore"
    page = Page(
        "Whose facts are these?",
        "Biographies of names that several people share (arXiv 2402.05629). FActScore asks of each "
        "claim whether anyone’s page supports it, D-FActScore whether the page of the person does "
        "whom the claims around it are about. n counts names; brackets hold 95 % bootstrap "
        "intervals over names. What could not be judged is counted next to a value and is never "
        "inside it. There is no length penalty in the tables.",
        TABLES,
        FIGURES,
        texts=_losers,
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
        at_least_one(documents=self.documents)
        natural(names=self.names)
        if (self.decompose is None) != (self.verify is None):
            raise UserError("decompose, verify: give both, or neither for the files' own verdicts")
        if self.verify is None and (self.retrieve or self.revise or self.citations or self.views):
            raise UserError(
                "retrieve, revise, citations, views: need a verifier; give decompose and verify "
                "as well"
            )
        self.pipeline = (
            Pipeline(self.decompose, [self.verify], self.retrieve, revise=self.revise, gamma=0)
            if self.decompose is not None and self.verify is not None
            else None
        )

    def measure(self, run: Run) -> Found:
        views = Views(self.views) if self.views else None
        every = read_texts(self.documents)
        topics = drawn((document.topic for document in every), self.names, Random(self.seed))
        documents = [document for document in every if document.topic in topics]
        judgements = self._judgements(every, documents)
        judged = run.process("texts", self._judge, documents, Judged) if self.pipeline else []
        texts = [from_pipeline(one.scored, one.citations) for one in judged]
        texts += [*filter(None, map(from_file, documents)), *judgements]
        if not texts:
            raise UserError("documents: no file has verdicts; give decompose and verify")
        names = {verdict.name for one in judged for verdict in one.scored.verdicts}
        if names and "grouped" not in names:
            raise UserError(
                "verify: no verdict named `grouped`; give eval.verify.dfactscore.stage.DFActScore"
            )
        heads = reported(self.documents)
        return Found(
            values_of(texts, views, self.seed),
            {"texts.jsonl": texts},
            {"reported": heads} if heads else {},
        )

    def _judgements(self, every: Sequence[Document], drawn: Sequence[Document]) -> list[JudgedText]:
        known = {document.id for document in every}
        wanted = {document.id for document in drawn}
        found: dict[str, JudgedText] = {}
        for path in self.people:
            for text in read_records(path, JudgedText):
                if text.id not in known:
                    raise UserError(
                        f"{path}: text {text.id!r} is none of the documents; give the same "
                        "`documents` as dfactscore_project had"
                    )
                if text.id in found:
                    raise UserError(f"{path}: text {text.id!r} is judged twice; keep one row")
                found[text.id] = text
        return [text for text in found.values() if text.id in wanted]

    def _judge(self, documents: Sequence[Document]) -> list[Judged]:
        answers = [document for document in documents if responds(document)]
        scored = {one.document.id: one for one in self.pipeline.score(answers)}
        none = {"claims": [], "selections": [], "passages": [], "verdicts": [], "scores": []}
        cited = self.citations(documents) if self.citations else [None] * len(documents)
        return [
            Judged(scored=scored.get(d.id) or Scored(document=d, **none), citations=own)
            for d, own in zip(documents, cited, strict=True)
        ]
