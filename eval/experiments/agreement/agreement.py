"""Agreement of verdicts with human labels, compared with word overlap.

Verifiers judge sets of claims with evidence and human labels. Controls are word overlap (the share
of a claim's IDF-weighted stems that occur in its evidence; IDF from the set's evidence) and an
assessor that labels every claim supported. Metrics: balanced accuracy by source and its mean
(LLM-AggreFact, 2404.10774), AUROC, F1 of the not-supported class, calibration, coverage, and the
paired difference to overlap. Thresholds are fitted on other data: the other half of the units, or
the other sources. If a set contains the number of votes, each person is judged against the others.

In ``results.json`` a result's ``kind`` is the set and its ``group`` the source.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from components.calibration import reliability_bins
from components.overlap import covered_share, stem_weights
from eval.decompose.given import Given
from eval.experiments.agreement.agreement_values import (
    ALL,
    ALWAYS,
    BUT_ONE,
    EQUAL,
    HALF,
    MACRO,
    OVERLAP,
    PERSON,
    SOURCES,
    WRONG,
    ClaimVerdict,
    ComparedClaim,
    values_of,
)
from eval.experiments.agreement.sets import (
    LEVELS,
    LabelledSet,
    Level,
    finer_of,
    people_of,
    read_sets,
    share_of,
    unit_of,
)
from eval.experiments.experiment import (
    Experiment,
    Outcome,
    draw_names,
    require_entries,
    require_non_negative,
)
from eval.experiments.named import Named, Unverified
from eval.metrics.document import Scored
from eval.pipeline import Pipeline
from eval.report.declare import Page, Plot, Table, rows_in
from eval.run.run import Run
from eval.stages import Retriever, Verifier
from records import Document, Result, ResultFile, UserError

_MEASURES = {
    ("auroc", None): "AUROC",
    ("auroc", EQUAL): "AUROC at equal overlap",
    ("balanced_accuracy", None): "balanced accuracy, verdicts",
    ("balanced_accuracy", HALF): "by the other half's threshold",
    ("balanced_accuracy", SOURCES): "by the other sources' threshold",
    ("balanced_accuracy", WRONG): "failures count as wrong",
    ("balanced_accuracy", BUT_ONE): "by all people but one",
    ("f1_unsupported", None): "F1 of not supported",
    ("f1_unsupported", WRONG): "F1, failures count as wrong",
    ("ece", None): "ECE",
    ("brier", None): "Brier score",
    ("pearson_votes", None): "Pearson with people's votes",
    ("coverage", None): "coverage",
}
_ROWS = {"kind": "Set", "assessor": "Assessor"}


def _above_overlap(row: Result) -> tuple[str, bool | None]:
    if row.ci95 is None or row.ci95[0] <= 0 <= row.ci95[1]:
        return "no difference", None
    return ("above overlap", True) if row.ci95[0] > 0 else ("below overlap", False)


TABLES = [
    Table(
        "Against people's labels",
        _ROWS,
        columns=["metric", "variant"],
        heads=_MEASURES,
        where={"group": ALL, "against": None},
        note="For an assessor without probabilities, AUROC is computed from its verdicts. Verdicts "
        "of overlap use the other half's threshold. By all people but one: the label is the "
        f"majority of the other people, and the remaining person, “{PERSON}”, is an assessor.",
    ),
    Table(
        "Beyond word overlap",
        {**_ROWS, "group": "Source"},
        columns=["metric", "variant"],
        heads=_MEASURES,
        where={"group": (ALL, MACRO), "against": OVERLAP},
        mark=_above_overlap,
        note="Assessor minus overlap, on the claims that both judged.",
    ),
    *(
        Table(
            f"{title} by source",
            {**_ROWS, "variant": "Threshold"},
            columns=["group"],
            metrics={metric: title},
            where={"group": lambda name: name != ALL, "against": None},
            note=f"{MACRO}: the mean over sources.",
        )
        for metric, title in (("auroc", "AUROC"), ("balanced_accuracy", "Balanced accuracy"))
    ),
    Table(
        "Share called supported, by fine-grained human label",
        _ROWS,
        columns=["variant"],
        metrics={"called_supported": "share"},
        where={"assessor": lambda name: name != ALWAYS},
        unit="share",
    ),
    Table(
        "AUROC of supported against fine-grained human labels",
        _ROWS,
        columns=["variant"],
        metrics={"auroc": "AUROC"},
        where={
            "assessor": lambda name: name != ALWAYS,
            "variant": lambda name: str(name).startswith("against "),
        },
    ),
]
_BINS = 10


def _calibration(file: ResultFile, folder: Path) -> Iterator[Plot]:
    # One plot per set, for assessors with probabilities; bins of equal size.
    by_set: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    for row in rows_in(folder / "claims.jsonl"):
        claim = ComparedClaim.model_validate(row)
        for name, verdict in claim.verdicts.items() if claim.label in ("S", "NS") else ():
            if verdict.p is not None and verdict.label not in ("failed", "irrelevant"):
                pairs = by_set.setdefault(claim.set, {}).setdefault(name, [])
                pairs.append((verdict.p, claim.label == "S"))
    for kind, assessors in by_set.items():
        series = {
            name: [(p, share, None) for p, share, _ in reliability_bins(*columns, _BINS).tolist()]
            for name, pairs in assessors.items()
            if len(pairs) >= _BINS
            for columns in [np.asarray(pairs, dtype=float).T]
        }
        if series:
            series["perfect calibration"] = [(0.0, 0.0, None), (1.0, 1.0, None)]
            labels = ("probability that it is supported", "share that people call supported")
            yield Plot(f"Calibration, {kind}", "lines", series, *labels, top=1.02, square=True)


@dataclass(eq=False)
class Agreement(Experiment):
    """The experiment.

    Args:
        sets: name of a set to its file, or files: LLM-AggreFact, AttributionBench, WiCE, VitaminC,
            HealthVer, Factcheck-Bench (responses or stances), Climate-FEVER, AVeriTeC, RAGTruth
            ([response.jsonl, source_info.jsonl]), FaithBench, QAGS, ExpertQA, FActScore's labels,
            AmbigBio, NLI sets, or documents in this repository's format with labelled claims.
        assessors: name to verifier, e.g. eval.verify.nli.NLI, eval.verify.minicheck.MiniCheck,
            eval.verify.factscore.FActScore; if empty, only word overlap is evaluated.
        retrieve: retriever for documents without passages (FActScore's labels).
        levels: which labels of a set are used: of single passages, of claims with all evidence, of
            citations; ``relevance``: whether a passage is about the claim
            (eval.verify.similar.Similar); ``checkworthiness``: whether a claim is a fact
            (eval.verify.selected.Selected). The first level of a set has the set's name, for the
            others the level is appended.
        units: maximum number of random units (articles, questions, topics) per set; 0 for all.
        seed: of the sampling, the halves and the bootstrap.
        labels: the meaning of numbers as labels in sets that do not state it, e.g.
            ``{0: not_entailment, 1: entailment}``.
        format: a YAML file that declares the columns of further sets (docs/records.md).
    """

    name = "agreement"
    page = Page(
        "Do the verdicts agree with people, and better than word overlap?",
        "Verdicts against the labels of people. Balanced accuracy by source and its mean are "
        "LLM-AggreFact's metrics (arXiv 2404.10774). overlap is the share of a claim's "
        "IDF-weighted word stems that occur in its evidence; always supported labels every claim "
        "supported. Thresholds are fitted on other claims. n counts units (articles, questions, "
        "topics); brackets hold 95 % bootstrap intervals over units.",
        TABLES,
        [_calibration],
        terminal={
            "metric": ("auroc", "balanced_accuracy", "coverage"),
            "group": (ALL, MACRO),
            "variant": None,
        },
    )
    domain = "people's labels"

    sets: dict[str, str | list[str]]
    assessors: dict[str, Verifier] = field(default_factory=dict)
    retrieve: Retriever | None = None
    levels: list[Level] = field(default_factory=lambda: list(LEVELS))
    units: int = 0
    seed: int = 0
    labels: dict[int, str] | None = None
    format: str | None = None

    def __post_init__(self):
        require_entries(sets=self.sets, levels=self.levels)
        require_non_negative(units=self.units)
        taken = {OVERLAP, ALWAYS, PERSON} & set(self.assessors)
        if taken:
            raise UserError(f"assessors: {min(taken)!r} is the name of a control; rename it")

    def measure(self, run: Run) -> Outcome:
        values, rows, left_out = [], [], Counter()
        for dataset in self._read(left_out):
            claims = self._judged(run, dataset)
            rows += claims
            values += [{"kind": dataset.name} | v for v in values_of(claims, self.seed)]
        return Outcome(values, {"claims.jsonl": rows}, {"left_out": dict(left_out)})

    def _read(self, left_out: Counter) -> list[LabelledSet]:
        sets = []
        for name, files in self.sets.items():
            paths = [files] if isinstance(files, str) else files
            options = {"labels": self.labels, "format": self.format}
            sets += read_sets(name, paths, self.levels, left_out, options)
        for dataset in sets:
            _check_sources(dataset)
        return sets

    def _drawn(self, dataset: LabelledSet) -> list[Document]:
        chosen = draw_names(map(unit_of, dataset.documents), self.units, random.Random(self.seed))
        return [d for d in dataset.documents if unit_of(d) in chosen]

    def _judged(self, run: Run, dataset: LabelledSet) -> list[ComparedClaim]:
        judged = run.process(dataset.name, self._score, self._drawn(dataset), Scored)
        return rows_of(dataset.name, judged)

    def _score(self, documents: Sequence[Document]) -> list[Scored]:
        verify = [Named(name, verifier) for name, verifier in self.assessors.items()]
        scored: dict[str, Scored] = {}
        for retrieve, has_passages in ((None, True), (self.retrieve, False)):
            pipeline = Pipeline(Given(), verify or [Unverified()], retrieve)
            part = [document for document in documents if bool(document.passages) == has_passages]
            scored |= {text.document.id: text for text in pipeline.score(part)}
        return [scored[document.id] for document in documents]


def rows_of(name: str, scored: Sequence[Scored]) -> list[ComparedClaim]:
    """Return one row per claim, with its overlap and all verdicts.

    An assessor with several verdicts per claim becomes several assessors, "assessor: name".
    """
    weight = stem_weights(passage.text for text in scored for passage in text.passages)
    names: dict[str, dict[str, None]] = {}
    for text in scored:
        for verdict in text.verdicts:
            names.setdefault(verdict.assessor, {})[verdict.name] = None
    rows = []
    for text in scored:
        document = text.document
        by_id = {passage.id: passage.text for passage in text.passages}
        by_claim: dict[str, dict[str, ClaimVerdict]] = {}
        for v in text.verdicts:
            called = v.assessor if len(names[v.assessor]) == 1 else f"{v.assessor}: {v.name}"
            by_claim.setdefault(v.claim, {})[called] = ClaimVerdict(label=v.label, p=v.p)
        for claim in text.claims:
            texts = [by_id[context] for context in claim.contexts or [] if context in by_id]
            overlap = round(covered_share(claim.text, texts, weight), 6) if texts else None
            rows.append(
                ComparedClaim(
                    set=name,
                    document=document.id,
                    claim=claim.id,
                    text=claim.text,
                    source=document.group or ALL,
                    unit=unit_of(document),
                    label=claim.label,
                    finer=finer_of(claim),
                    share=share_of(claim),
                    people=people_of(claim),
                    overlap=overlap,
                    verdicts=by_claim.get(claim.id, {}),
                )
            )
    return rows


def _check_sources(dataset: LabelledSet) -> None:
    for name in sorted({document.group for document in dataset.documents} & {ALL, MACRO}):
        raise UserError(f"{dataset.name}: the source name {name!r} is reserved; rename it")
