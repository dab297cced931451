"""Effect of the decomposer on scores (A Closer Look at Claim Decomposition, 2403.11903).

Several decomposers split the same passages of several generators. Per decomposer and generator:
subclaims per passage, DecompScore and coherence by one or more judges (section 3.2;
``eval/metrics/decomposition.py``), DecompScore without duplicates, and with a verifier factual
precision over all subclaims and over those that their source sentence supports; with ``gamma`` also
FActScore with length penalty. Further outputs are the agreement of the judges, the correlation over
generators with ``reported`` values (Table 7), and the subclaims of all decomposers for example
sentences (Tables 8 and 9). With ``match``, subclaims are compared with human claims
(``eval/metrics/claim_matches.py``; after Claimify, 2502.10855).

In ``results.json`` a result's ``kind`` is the decomposer; the generator ``macro`` is the mean over
generators. Departures by default: no length penalty (paper: γ = 10 in FActScore, none in
DecompScore), and passages that do not respond are skipped (the paper keeps them, appendix A).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

from eval.decompose.given import Given
from eval.experiments.decomposition.decomposition_values import (
    ALL,
    MACRO,
    SUPPORTED,
    JudgedPassage,
    check_reported,
    values_of,
)
from eval.experiments.decomposition.people import alone, texts_of
from eval.experiments.experiment import (
    Experiment,
    Outcome,
    draw_names,
    read_by_generator,
    require_entries,
    require_non_negative,
)
from eval.experiments.named import Unverified
from eval.metrics.claim_matches import ClaimMatcher
from eval.metrics.decomposition import judge_by_source, same_claims
from eval.metrics.document import DocumentScore, Scored, score_document
from eval.pipeline import ChunkCache, Pipeline, group_by_name
from eval.report.declare import Excerpt, Figure, Line, Page, Table, rows_in
from eval.run.run import Run
from eval.stages import Decomposer, EntailmentModel, Retriever, Selection, Selector, Verifier
from records import Claim, Document, UserError, Verdict, read_records
from records.abstention import responds

_ROWS = {
    "metric": "Value",
    "kind": "Decomposer",
    "assessor": "Judge",
    "against": "Other judge",
    "variant": "Supported by",
    "selection": "Selection",
}
TABLES = [
    Table(
        "Subclaims and DecompScore",
        _ROWS,
        ["generator"],
        {
            "subclaims": "subclaims",
            "subclaims_distinct": "distinct subclaims",
            "decomp_score": "DecompScore",
            "decomp_score_distinct": "DecompScore without duplicates",
        },
        "Means over passages, of all subclaims and (DecompScore, section 3.2) of those that their "
        "source sentence supports. Distinct: subclaims that entail each other count once.",
        unit="mean",
    ),
    Table(
        "Coherence",
        _ROWS,
        ["generator"],
        {"coherence": "pooled", "coherence_per_passage": "mean over passages (Table 6)"},
        "Share of the subclaims that their source sentence supports.",
        unit="share",
    ),
    Table(
        "Human claims",
        _ROWS,
        ["generator"],
        {
            "claim_recall": "recall",
            "claim_precision": "precision",
            "claim_f1": "F1",
            "element_coverage": "coverage",
            "context_changes": "context changes",
        },
        "Recall: share of human claims that match a subclaim, one to one by meaning. Coverage: "
        "share that any subclaim entails (after 2502.10855, section 4.2). Context changes: share "
        "of subclaims supported by only one of the sentence’s two forms, decontextualised or "
        "original.",
        unit="share",
    ),
    Table(
        "Factual precision and FActScore",
        _ROWS,
        ["generator"],
        {
            "factual_precision": "precision",
            "factual_precision_supported_only": "precision of supported subclaims",
            "factscore": "FActScore",
            "factscore_supported_only": "FActScore of supported subclaims",
            "pearson_with_reported": "Pearson with reported values (Table 7)",
        },
        "Means over passages. FActScore is precision times exp(1 − γ/n) for passages with n < γ "
        "subclaims. Values of supported subclaims exclude passages without any.",
    ),
    Table(
        "Agreement of two judges",
        _ROWS,
        ["generator"],
        {
            "agreement": "subclaims decided alike",
            "kappa": "Cohen’s kappa",
            "pearson": "Pearson of passages",
            "spearman": "Spearman of passages",
            "pearson_of_means": "Pearson of DecompScores",
        },
        "Correlations are of the numbers of supported subclaims of the passages, and of the "
        "DecompScores of decomposers and generators.",
        unit={"agreement": "share"},
    ),
]
_SPLITS = ["metric", "assessor", "variant", "selection"]
FIGURES = [
    Figure(table.title, "generator", ["kind"], table.metrics, each=_SPLITS) for table in TABLES[:4]
]


def _excerpts(folder: Path) -> Iterator[Excerpt]:
    excerpts: dict[str, tuple[str, list[Line]]] = {}
    for row in rows_in(folder / "sentences.jsonl"):
        lines = excerpts.setdefault(row["id"], (row["text"], []))[1]
        for claim in row["subclaims"]:
            labels = claim.get("support", {}).items()
            notes = [f"{name}: {label.replace('_', ' ')}" for name, label in labels]
            notes += [f"failed: {claim['failed']}"] if claim.get("failed") else []
            lines.append(Line(row["decomposer"], [(claim["text"], None)], note=", ".join(notes)))
        if not row["subclaims"]:
            lines.append(Line(row["decomposer"], note="no subclaims"))
    return (Excerpt(text, lines) for text, lines in excerpts.values())


@dataclass(eq=False)
class Decomposition(Experiment):
    """The experiment.

    Args:
        documents: generator to its file of passages; or files whose records have a ``generator``.
        decomposers: name to decomposer. With ``eval.decompose.given.Given``, passages without its
            claims are skipped for all decomposers, and counted in the provenance.
        judges: name to the verifier that judges subclaims by their source sentence, e.g.
            eval.verify.nli.NLI or eval.verify.factscore.FActScore. Two or more are compared.
        entailment: finds duplicate subclaims; null: no DecompScore without duplicates.
        entail_threshold: minimum probability of ``entailment``; null: the argmax.
        verify: verifiers for factual precision; empty: not computed.
        retrieve: retriever for the verifiers; null: the documents' passages.
        select: Core; factual precision is then computed with and without it.
        sentences: file of example sentences, shown with the subclaims of every decomposer.
        topics: maximum number of random topics; 0 for all.
        domain: domain name in the results.
        seed: of the sampling and the bootstrap.
        abstentions: handling of passages that do not respond
            (:func:`records.abstention.responds`): ``leave_out`` or ``keep``. Empty passages are
            always skipped.
        gamma: threshold of FActScore's length penalty, in subclaims; 0 for none.
        match: matches subclaims with human claims (the documents' ``claims``), e.g.
            eval.metrics.claim_matches.ByEntailment; passages without claims are skipped.
        texts: ``whole`` passages, or ``sentences``: each sentence with human claims is a passage,
            decontextualised if available (Factcheck-Bench's ``decontext``); the original sentence
            is then judged as well.
        reported: metric (``factscore``, ``subclaims``, …) to generator to its published value;
            correlated over generators with the values of the run.
    """

    name = "decomposition"
    page = Page(
        "How much does the decomposer affect the scores?",
        "The same passages split into subclaims by several decomposers (arXiv 2403.11903). n "
        "counts topics; brackets hold 95 % bootstrap intervals over topics. Failed decompositions "
        "and judgements are reported next to a value and excluded from it. "
        f"Generator {MACRO}: mean over generators; {ALL}: all passages.",
        TABLES,
        FIGURES,
        texts=_excerpts,
        terminal={"generator": (MACRO, ALL)},
    )

    documents: dict[str, str] | list[str]
    decomposers: dict[str, Decomposer]
    judges: dict[str, Verifier]
    entailment: EntailmentModel | None = None
    entail_threshold: float | None = None
    verify: list[Verifier] = field(default_factory=list)
    retrieve: Retriever | None = None
    select: Selector | None = None
    sentences: str | None = None
    topics: int = 0
    domain: str = "biographies"
    seed: int = 0
    abstentions: Literal["leave_out", "keep"] = "leave_out"
    gamma: float = 0
    reported: dict[str, dict[str, float]] | None = None
    match: ClaimMatcher | None = None
    texts: Literal["whole", "sentences"] = "whole"

    def __post_init__(self):
        require_entries(documents=self.documents, decomposers=self.decomposers)
        require_non_negative(topics=self.topics)
        if not self.judges:
            raise UserError(
                "judges: set at least one, e.g. {nli: {class_path: eval.verify.nli.NLI}}"
            )
        if self.entail_threshold is not None and not 0 < self.entail_threshold <= 1:
            raise UserError(
                f"entail_threshold: expected a value in (0, 1], got {self.entail_threshold}"
            )
        if self.gamma < 0 or (self.gamma and not self.verify):
            raise UserError(
                f"gamma: expected 0, or a positive number with `verify`, got {self.gamma:g}"
            )
        self.reported = self.reported or {}

    def measure(self, run: Run) -> Outcome:
        documents, left_out = self._read()
        metrics = ["subclaims", *SUPPORTED, *(["factual_precision"] if self.verify else [])]
        names = list(dict.fromkeys(document.generator for document in documents))
        check_reported(self.reported, [*metrics, *(["factscore"] if self.gamma else [])], names)
        judged = {
            name: run.process(name, partial(self._judge, name, True), documents, JudgedPassage)
            for name in self.decomposers
        }
        files = {
            "subclaims.jsonl": [_row(name, row) for name, rows in judged.items() for row in rows],
            "sentences.jsonl": self._side_by_side(run),
        }
        values = values_of(judged, self.seed, self.reported, self.gamma > 0)
        return Outcome(values, files, {"left_out": left_out})

    def _read(self) -> tuple[list[Document], dict[str, int]]:
        documents = read_by_generator(self.documents, _read_file)
        for name in sorted({document.generator for document in documents} & {MACRO, ALL}):
            raise UserError(f"documents: the generator name {name!r} is reserved; rename it")
        topics = draw_names(
            (document.topic for document in documents), self.topics, Random(self.seed)
        )
        documents = [document for document in documents if document.topic in topics]
        kept, left_out = [], Counter({"no response": 0, "no given claims": 0})
        if self.texts == "sentences":
            sentences = [list(alone([document])) for document in documents]
            if without := sentences.count([]):
                left_out["no claims of people"] += without
            documents = [sentence for group in sentences for sentence in group]
        givers = [d for d in self.decomposers.values() if isinstance(d, Given)]
        if self.abstentions == "keep":
            documents = [document.model_copy(update={"responds": True}) for document in documents]
        for document in documents:
            if not responds(document):
                left_out["no response"] += 1
            elif self.match is not None and not document.claims:
                left_out["no claims of people"] += 1
            elif not all(giver.has(document) for giver in givers):
                left_out["no given claims"] += 1
            else:
                kept.append(document)
        if not kept:
            raise UserError(
                f"documents: all {len(documents)} passages were skipped ({dict(left_out)})"
            )
        return kept, dict(left_out)

    def _judge(
        self, name: str, verified: bool, documents: Sequence[Document]
    ) -> list[JudgedPassage]:
        decomposer, verify = self.decomposers[name], self.verify if verified else []
        parts = (decomposer, verify or [Unverified()], self.retrieve if verify else None)
        cache = ChunkCache()
        pipeline = Pipeline(*parts, self.select if verify else None, gamma=self.gamma)
        scored = pipeline.score(documents, cache)
        claims = [[claim for claim in text.claims if claim.failed is None] for text in scored]
        support = {
            name: judge_by_source(judge, documents, claims) for name, judge in self.judges.items()
        }
        classes: list = [None] * len(scored)
        if self.entailment is not None:
            classes = same_claims(self.entailment, claims, self.entail_threshold)
        filtered = {}
        for judge, verdicts in support.items():
            pipeline = Pipeline(*parts, partial(_select_supported, verdicts))
            rows = pipeline.score(documents, cache, unselected=False)
            filtered[judge] = [_scores_of_kept(text, self.gamma) for text in rows]
        matches: list = [None] * len(scored)
        if self.match is not None and all(document.claims for document in documents):
            matches = self.match([[c.text for c in subs] for subs in claims], texts_of(documents))
        written = self._judge_as_written(documents, claims)
        return [
            JudgedPassage(
                scored=text,
                support={name: verdicts[row] for name, verdicts in support.items()},
                classes=classes[row],
                filtered={name: scores[row] for name, scores in filtered.items()},
                matches=matches[row],
                written=written[row],
            )
            for row, text in enumerate(scored)
        ]

    def _judge_as_written(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[dict[str, list[Verdict]]]:
        answers: list[dict[str, list[Verdict]]] = [{} for _ in documents]
        places = [place for place, doc in enumerate(documents) if hasattr(doc, "as_written")]
        docs = [documents[place] for place in places]
        as_is = [
            [c.model_copy(update={"source": documents[place].as_written}) for c in claims[place]]
            for place in places
        ]
        for name, judge in self.judges.items() if docs else ():
            for place, verdicts in zip(places, judge_by_source(judge, docs, as_is), strict=True):
                answers[place][name] = verdicts
        return answers

    def _side_by_side(self, run: Run) -> list[dict]:
        documents = read_records(self.sentences, Document) if self.sentences else []
        rows = []
        for name, decomposer in self.decomposers.items():
            usable = documents
            if isinstance(decomposer, Given):
                usable = [document for document in documents if decomposer.has(document)]
            work = partial(self._judge, name, False)
            judged = run.process(f"sentences of {name}", work, usable, JudgedPassage)
            rows += [_row(name, passage) for passage in judged]
        return rows


def _read_file(path: str, name: str | None) -> Iterator[Document]:
    for record in read_records(path, Document):
        generator = name or record.generator or "given"
        update = {"id": f"{generator}/{record.id}", "generator": generator}
        yield record.model_copy(update=update)


def _select_supported(
    support: Sequence[Sequence[Verdict]], *_: Sequence[object]
) -> list[list[Selection]]:
    return [
        [_selection(verdict.claim, verdict.label == "supported") for verdict in row]
        for row in support
    ]


def _selection(claim: str, selected: bool) -> Selection:
    reason = "selected" if selected else "incoherent"
    return Selection(claim=claim, selected=selected, weight=1.0, reason=reason)


def _scores_of_kept(text: Scored, gamma: float) -> list[DocumentScore]:
    # As if the selected claims were all claims of the text.
    ids = {selection.claim for selection in text.selections if selection.selected}
    kept = [claim for claim in text.claims if claim.id in ids]
    verdicts = [v for v in (*text.verdicts, *text.core_verdicts) if v.claim in ids]
    groups = group_by_name(verdicts) if verdicts else []
    return [score_document(True, kept, group, None, gamma) for group in groups]


def _row(decomposer: str, row: JudgedPassage) -> dict:
    document = row.scored.document
    support = {
        verdict.claim: {name: verdicts[place].label for name, verdicts in row.support.items()}
        for place, verdict in enumerate(next(iter(row.support.values())))
    }
    return {
        "id": document.id,
        "topic": document.topic,
        "generator": document.generator or "given",
        "decomposer": decomposer,
        "text": document.text,
        "subclaims": [
            {
                "text": claim.text,
                "sentence": claim.sentence,
                "failed": claim.failed,
                "support": support.get(claim.id, {}),
            }
            for claim in row.scored.claims
        ],
    }
