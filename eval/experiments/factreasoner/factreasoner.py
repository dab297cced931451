"""FactReasoner against other assessors on the same claims and evidence (2502.18573, Tables 3–27).

Every set of documents goes through the same decomposition and retrieval, and all assessors judge
the same claims by the same passages. For each set and source of evidence there is a table of the
assessors (Tables 3, 5–7, 9–19): numbers of supported, contradicted and undecided claims, Pr, R@K,
F1@K and the E-measure, against labels F1 of the class supported and MAE, each as mean ± standard
deviation; and one-sided paired t-tests between assessors (Tables 4, 20–27), Holm-corrected beside.
``relations`` swaps the relation model (Table 8).

In ``results.json`` a result's ``domain`` is the set and its ``group`` the source of evidence. There
is no length penalty.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial

from eval.experiments.experiment import Experiment, Found, at_least_one
from eval.experiments.factreasoner.factreasoner_values import values_of
from eval.experiments.named import Named, NoEvidence
from eval.metrics.corpus import expected_claims
from eval.metrics.document import Scored
from eval.pipeline import Pipeline
from eval.report.declare import Page, Table
from eval.retrieve.links import unread_pages
from eval.run.run import Run, check_ids
from eval.stages import Decomposer, EntailmentModel, Retriever, Reviser, Verifier
from records import Document, ResultFile, UserError, read_records

# Pairs of a document are many: a kill loses little.
CHUNK = 16


# The evidence of documents that bring their passages.
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
                "#S, #NS, #C and #U are the numbers of claims of a document that are supported, "
                "not supported, contradicted and undecided. E is Eq. 1 with the logarithm of base "
                "10 (0.1505 where all P = 0.5). A document that does not respond has 0 in R@K and "
                "F1@K, and is left out of F1@K, responding.",
            ),
            (
                "Against labels",
                _AGAINST_LABELS,
                "Against the claims’ labels, positive is supported: means over documents, or over "
                "the claims of all documents (micro, balanced accuracy). Where all claims are "
                "true, accuracy is the share that is called supported.",
            ),
            (
                "Probabilities",
                _PROBABILITIES,
                "Of assessors that give probabilities: means over documents; Brier and ECE against "
                "the claims’ labels, over the claims of all documents, Brier of texts over those "
                "of a document. Graded Pr is the mean P. E is as low where all P = 0 as where all "
                "are 1; −ln P tells them apart.",
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
        note="p is that of the one-sided paired t-test over documents that A is better than B, "
        "Holm’s the one corrected over all lines of a metric, set and source of evidence; of "
        "balanced accuracy and Brier, over the claims that both judged, there is an interval only. "
        "failed counts documents of which one of the two has no value (it could judge no claim; "
        "F1: none is true or called supported), or claims that one of them could not judge.",
    ),
]


def _k(file: ResultFile) -> list[str]:
    return [f"K of {place}: {k}" for place, k in (file.provenance.get("k") or {}).items()]


@dataclass(eq=False)
class FactReasoner(Experiment):
    """The experiment.

    Args:
        documents: name of a set to its file: ours, FactReasoner's own (``atoms``, ``contexts``), or
            any other that ``score`` reads.
        assessors: name to verifier, e.g. eval.verify.factreasoner.stage.FactReasoner,
            eval.verify.factscore.FActScore, eval.verify.majority.Majority,
            eval.verify.with_knowledge.WithKnowledge.
        decompose: texts to claims; the documents' own claims, with their labels, by
            eval.decompose.given.Given.
        revise: claims to claims that stand alone; without it they stay as they are.
        retrieve: name to source of evidence, each of which has tables of its own; without any the
            documents' own passages are used. The paper has ``k: 3`` for
            eval.retrieve.wikipedia_search.WikipediaSearch and 5 for eval.retrieve.serper.Serper,
            with eval.retrieve.links.PagesOfLinks around the latter for the pages that it finds, and
            eval.retrieve.cut.Cut around each for at most 4,000 characters a page.
        relations: name to relation model. Assessors with an ``entailment`` judge once with each of
            them in its place, and are called "assessor (relation model)"; none leaves them their
            own.
        no_evidence: one rule for all assessors about claims of which nothing was found, so that all
            have the same denominator. ``undecided``, the paper's: what an assessor could not judge
            counts as undecided (FactReasoner 2 and 3 judge it by the other claims' contexts);
            ``failed``: nobody judges it. By default each has its own: FactReasoner judges it, the
            others fail.
        challengers: names of assessors that are tested to be better than all others; by default
            every assessor is tested against every other.
        k: K of recall@K and F1@K; by default each set's median number of claims.
        seed: of the bootstrap.
    """

    name = "factreasoner"
    page = Page(
        "FactReasoner and other assessors",
        "The same claims, judged by several assessors on the same evidence (arXiv 2502.18573). n "
        "counts documents; brackets hold 95 % bootstrap intervals over topics; sd: the standard "
        "deviation over documents. failed counts claims that could not be judged; they are in no "
        "value. There is no length penalty.",
        TABLES,
        summary=_k,
        documents=True,
        terminal={"variant": None, "against": None, "metric": tuple(_SCORES)},
    )

    documents: dict[str, str]
    assessors: dict[str, Verifier]
    decompose: Decomposer
    revise: Reviser | None = None
    retrieve: dict[str, Retriever] = field(default_factory=dict)
    relations: dict[str, EntailmentModel] = field(default_factory=dict)
    no_evidence: NoEvidence | None = None
    challengers: list[str] = field(default_factory=list)
    k: int | None = None
    seed: int = 0

    def __post_init__(self):
        at_least_one(documents=self.documents, assessors=self.assessors)
        for name in self.challengers:
            if name not in self.assessors:
                raise UserError(
                    f"challengers: {name!r} is no assessor ({', '.join(self.assessors)})"
                )
        if self.k is not None and self.k < 1:
            raise UserError(f"k: {self.k}; give at least 1")

    def measure(self, run: Run) -> Found:
        """Judge every set by every source of evidence.

        Beside the results ``scored.jsonl``: every document of every set, with its verdicts.
        """
        challengers = [name for own, name, _ in self._variants() if own in self.challengers]
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
                values += [shared | row for row in values_of(scored, k, challengers, self.seed)]
                for line in unread_pages(passage for one in scored for passage in one.passages):
                    print(f"warning: {domain}, {group}: {line}", file=sys.stderr)
                names = {"set": domain, "evidence": group}
                rows += [names | one.model_dump(mode="json", exclude_none=True) for one in scored]
        return Found(values, {"scored.jsonl": rows}, {"k": ks})

    def _score(self, group: str, documents: Sequence[Document]) -> list[Scored]:
        verify = [Named(name, own, self.no_evidence) for _, name, own in self._variants()]
        retrieve = self.retrieve.get(group)
        pipeline = Pipeline(self.decompose, verify, retrieve, revise=self.revise, gamma=0)
        return pipeline.score(documents)

    def _variants(self) -> Iterator[tuple[str, str, Verifier]]:
        """The assessors, once with each relation model where they have one.

        Each with its own name and the name that it has in the run.
        """
        for name, verifier in self.assessors.items():
            if not self.relations or not hasattr(verifier, "entailment"):
                yield name, name, verifier
                continue
            for relation, model in self.relations.items():
                twin = copy(verifier)
                twin.entailment = model
                yield name, f"{name} ({relation})", twin


def _generator(documents: Sequence[Document]) -> str:
    found = Counter(document.generator or "given" for document in documents)
    return next(iter(found)) if len(found) == 1 else "several"
