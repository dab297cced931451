"""FactReasoner against other assessors on the same claims and evidence (2502.18573, Tables 3–27).

A table compares the assessors for each set of documents and source of evidence (Tables 3, 5–7,
9–19), each measure as mean ± standard deviation. One-sided paired t-tests compare pairs of
assessors (Tables 4, 20–27). ``relations`` swaps the relation model (Table 8). In ``results.json`` a
result's ``domain`` is the set and its ``group`` the source of evidence. There is no length penalty.
"""

import sys
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial

from eval.experiments.experiment import Experiment, Outcome, require_entries
from eval.experiments.factreasoner.factreasoner_values import compute_values
from eval.experiments.named import LabelWithoutEvidence, Named
from eval.metrics.corpus import expected_claims
from eval.metrics.document import Scored
from eval.pipeline import Pipeline
from eval.report.declare import Page, Table
from eval.report.terminal import unread_pages
from eval.run.run import Run, check_ids
from eval.stages import Decomposer, EntailmentModel, Retriever, Reviser, Verifier
from records import Document, ResultFile, UserError, read_records

# Documents per chunk; small, since a document has many pairs.
CHUNK = 16


# Name of the evidence if the documents have passages.
GIVEN = "given"
_ROWS = {"domain": "Set", "group": "Evidence"}
_SCORES = {
    "supported": "#S",
    "not_supported": "#NS",
    "contradicted": "#C",
    "undecided": "#U",
    "precision": "Pr",
    "recall_at_k": "R@K",
    "f1_at_k": "F1@K",
    "f1_at_k_responding": "F1@K, responding",
    "e_measure": "E",
}
_AGAINST_LABELS = {
    "f1": "F1",
    "f1_micro": "F1, micro",
    "accuracy": "accuracy",
    "accuracy_micro": "accuracy, micro",
    "balanced_accuracy": "balanced accuracy",
    "precision_mae": "MAE of Pr",
}
_PROBABILITIES = {
    "graded_precision": "graded Pr",
    "e_measure": "E",
    "binary_entropy": "entropy, bits",
    "negative_log_p": "−ln P, nats",
    "brier_of_texts": "Brier of texts",
    "brier": "Brier",
    "ece": "ECE",
}
TABLES = [
    *(
        Table(
            title,
            {**_ROWS, "assessor": "Assessor", "variant": ""},
            metrics=metrics,
            where={"against": None, "variant": (None, "sd")},
            unit=dict.fromkeys(list(_SCORES)[:4], "tenth"),
            note=note,
        )
        for title, metrics, note in (
            (
                "Scores",
                _SCORES,
                "#S, #NS, #C and #U are the numbers of supported, not supported, contradicted and "
                "undecided claims per document. E is Eq. 1 with the logarithm to base 10 (0.1505 "
                "if all P = 0.5). A document that does not respond has 0 in R@K and F1@K, and is "
                "excluded from F1@K, responding.",
            ),
            (
                "Against labels",
                _AGAINST_LABELS,
                "Against the claims’ labels; supported is the positive class. Means over "
                "documents, or over the claims of all documents (micro, balanced accuracy). If all "
                "claims are true, accuracy is the share of supported claims.",
            ),
            (
                "Probabilities",
                _PROBABILITIES,
                "For assessors with probabilities: means over documents. Brier and ECE are against "
                "the claims’ labels, over the claims of all documents; Brier of texts is over the "
                "claims of a document. Graded Pr is the mean P. E is equally low for all P = 0 and "
                "all P = 1; −ln P distinguishes them.",
            ),
        )
    ),
    Table(
        "Tests",
        {"metric": "Metric", **_ROWS, "assessor": "A", "against": "B"},
        columns=["variant"],
        metrics=_SCORES | _AGAINST_LABELS | _PROBABILITIES,
        heads={None: "A − B", "p": "p", "p_holm": "Holm’s p"},
        where={"against": lambda name: name is not None},
        unit={"p": "p", "p_holm": "p"},
        note="p: one-sided paired t-test over documents that A is better than B. Holm’s p: "
        "corrected over all lines of a metric, set and source of evidence. Balanced accuracy and "
        "Brier are over claims that both judged and have only an interval. failed counts documents "
        "without a value of A or B, or claims that A or B could not judge.",
    ),
]


def _k_lines(file: ResultFile) -> list[str]:
    return [f"K of {name}: {k}" for name, k in (file.provenance.get("k") or {}).items()]


@dataclass(eq=False)
class FactReasoner(Experiment):
    """Compare FactReasoner with other assessors on the same claims and evidence.

    Args:
        documents: set name to file: our format, FactReasoner's (``atoms``, ``contexts``), or any
            other that ``score`` reads.
        assessors: name to verifier, e.g. eval.verify.factreasoner.stage.FactReasoner,
            eval.verify.factscore.FActScore, eval.verify.majority.Majority,
            eval.verify.with_knowledge.WithKnowledge.
        decompose: decomposer; eval.decompose.given.Given uses the documents' labelled claims.
        revise: makes claims self-contained; by default claims are unchanged.
        retrieve: name to retriever, each with separate tables; by default the documents' passages.
            The paper uses ``k: 3`` for eval.retrieve.wikipedia_search.WikipediaSearch and 5 for
            eval.retrieve.serper.Serper within eval.retrieve.links.PagesOfLinks, each within
            eval.retrieve.cut.Cut for at most 4,000 characters per page.
        relations: name to relation model. Assessors with an ``entailment`` judge once per relation
            model, as "assessor (relation model)"; by default they keep their model.
        no_evidence: common rule for claims without evidence, so that all assessors have the same
            denominator. ``undecided`` (the paper's): failed claims count as undecided, and
            FactReasoner 2 and 3 judge them by other claims' contexts. ``failed``: all assessors
            fail. By default FactReasoner judges them and the others fail.
        challengers: assessors that are tested to be better than all others; by default all ordered
            pairs of assessors are tested.
        k: K of recall@K and F1@K; by default each set's median number of claims.
        seed: seed of the bootstrap.
    """

    name = "factreasoner"
    page = Page(
        "FactReasoner and other assessors",
        "The same claims, judged by several assessors on the same evidence (arXiv 2502.18573). n "
        "counts documents; brackets are 95 % bootstrap intervals over topics; sd is the standard "
        "deviation over documents. failed counts claims that could not be judged, which are "
        "excluded. There is no length penalty.",
        TABLES,
        summary=_k_lines,
        documents=True,
        terminal={"variant": None, "against": None, "metric": tuple(_SCORES)},
    )

    documents: dict[str, str]
    assessors: dict[str, Verifier]
    decompose: Decomposer
    revise: Reviser | None = None
    retrieve: dict[str, Retriever] = field(default_factory=dict)
    relations: dict[str, EntailmentModel] = field(default_factory=dict)
    no_evidence: LabelWithoutEvidence | None = None
    challengers: list[str] = field(default_factory=list)
    k: int | None = None
    seed: int = 0

    def __post_init__(self):
        require_entries(documents=self.documents, assessors=self.assessors)
        for name in self.challengers:
            if name not in self.assessors:
                options = ", ".join(self.assessors)
                raise UserError(f"challengers: expected one of {options}, got {name!r}")
        if self.k is not None and self.k < 1:
            raise UserError(f"k: expected at least 1, got {self.k}")

    def measure(self, run: Run) -> Outcome:
        """Judge every set with every source of evidence; also writes ``scored.jsonl``."""
        challengers = [name for base, name, _ in self._variants() if base in self.challengers]
        values, rows, ks = [], [], {}
        for domain, path in self.documents.items():
            documents = read_records(path, Document)
            check_ids(path, enumerate(documents, 1))
            for group in self.retrieve or [GIVEN]:
                part = f"{domain}\n{group}"
                score = partial(self._score, group)
                scored = run.process(part, score, documents, Scored, CHUNK)
                k = ks[domain if group == GIVEN else f"{domain}, {group}"] = (
                    self.k or expected_claims(scored)
                )
                shared = {"domain": domain, "group": group, "generator": _generator(documents)}
                fields = compute_values(scored, k, challengers, self.seed)
                values += [shared | row for row in fields]
                for line in unread_pages(passage for text in scored for passage in text.passages):
                    print(f"warning: {domain}, {group}: {line}", file=sys.stderr)
                names = {"set": domain, "evidence": group}
                rows += [names | text.model_dump(mode="json", exclude_none=True) for text in scored]
        return Outcome(values, {"scored.jsonl": rows}, {"k": ks})

    def _score(self, group: str, documents: Sequence[Document]) -> list[Scored]:
        verify = [Named(name, verifier, self.no_evidence) for _, name, verifier in self._variants()]
        retrieve = self.retrieve.get(group)
        pipeline = Pipeline(self.decompose, verify, retrieve, revise=self.revise, gamma=0)
        return pipeline.score(documents)

    def _variants(self) -> Iterator[tuple[str, str, Verifier]]:
        """Yield (assessor, name in the run, verifier) for each relation model."""
        for name, verifier in self.assessors.items():
            if not self.relations or not hasattr(verifier, "entailment"):
                yield name, name, verifier
                continue
            for relation, model in self.relations.items():
                twin = copy(verifier)
                twin.entailment = model
                yield name, f"{name} ({relation})", twin


def _generator(documents: Sequence[Document]) -> str:
    names = {document.generator or "given" for document in documents}
    return names.pop() if len(names) == 1 else "several"
