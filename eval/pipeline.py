"""The pipeline: decompose documents into claims, revise, select, retrieve, verify, score.

Start reading here. Each stage is a callable over a batch of documents (``eval/stages.py``); YAML
selects it by ``class_path``.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, TypeVar

from eval import stages
from eval.metrics.document import DEFAULT_GAMMA, DocumentScore, Penalty, Scored, score_document
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Decomposer, Retriever, Reviser, Selection, Selector, Verifier
from records import Claim, Document, Passage, UserError, Verdict
from records.cleaning import clean
from records.stage_outputs import class_path_of

T = TypeVar("T")


class Pipeline:
    """Decompose, revise, select, retrieve, verify, aggregate.

    Args:
        decompose: maps texts to claims.
        verify: one or more verifiers with distinct names; all judge the same claims and passages.
        retrieve: finds evidence for claims; null uses the documents' passages, all of them for a
            claim without ``contexts``.
        select: Core; null scores every claim once.
        revise: makes claims self-contained; null keeps them unchanged.
        gamma: threshold of FActScore's length penalty, in subclaims; 0 disables it.
        penalty_of: ``all`` counts the subclaims before Core; ``kept`` those that are scored after
            it, and a text that does not respond has a ``factscore`` of 0, as in the released code
            of 2407.03572.
    """

    def __init__(
        self,
        decompose: Decomposer,
        verify: list[Verifier],
        retrieve: Retriever | None = None,
        select: Selector | None = None,
        revise: Reviser | None = None,
        gamma: float = DEFAULT_GAMMA,
        penalty_of: Literal["all", "kept"] = "all",
    ):
        if not verify:
            raise UserError("verify: expected at least one verifier")
        for verifier in verify:
            if select is not None and not hasattr(verifier, "judges_sets"):
                raise UserError(
                    f"verify: {class_path_of(verifier)} lacks `judges_sets`; set it to true if "
                    "the verdict on a claim depends on the other claims, else to false"
                )
        self.decompose = decompose
        self.verify = verify
        self.retrieve = retrieve or GivenPassages()
        self.select = select
        self.revise = revise
        self.gamma = Penalty(gamma, penalty_of == "kept")

    def score(self, documents: Sequence[Document]) -> list[Scored]:
        """Score each document, without Core and, if a selector is set, with Core."""
        all_claims = self.claims(documents)
        claims = usable_claims(all_claims)
        selections: list[list[Selection]] = [[] for _ in documents]
        if self.select is not None:
            selections = stages.run_selector(self.select, documents, claims)
        claims, passages = stages.run_retriever(self.retrieve, documents, claims)
        all_claims = update_claims(all_claims, claims)
        verdicts, core_verdicts = self._judge(documents, claims, selections, passages)
        columns = (documents, all_claims, selections, verdicts, core_verdicts)
        scores = [self._scores(*row) for row in zip(*columns, strict=True)]
        return [
            Scored(
                document=document,
                claims=all_claims[i],
                selections=selections[i],
                passages=passages[i],
                verdicts=verdicts[i],
                core_verdicts=core_verdicts[i],
                scores=scores[i],
                removed=clean(document.text).removed,
            )
            for i, document in enumerate(documents)
        ]

    def claims(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """Decompose and revise documents; returns failed claims too."""
        claims = stages.run_decomposer(self.decompose, documents)
        if self.revise is None:
            return claims
        revised = stages.run_reviser(self.revise, documents, usable_claims(claims))
        return update_claims(claims, revised)

    def _judge(
        self,
        documents: Sequence[Document],
        claims: list[list[Claim]],
        selections: list[list[Selection]],
        passages: list[list[Passage]],
    ) -> tuple[list[list[Verdict]], list[list[Verdict]]]:
        kept = select_claims(claims, selections)
        verdicts: list[list[Verdict]] = [[] for _ in documents]
        core_verdicts: list[list[Verdict]] = [[] for _ in documents]
        for verifier in self.verify:
            judged = stages.run_verifier(verifier, documents, claims, passages)
            for row, new in zip(verdicts, judged, strict=True):
                row.extend(new)
            if self.select is not None and verifier.judges_sets:
                judged = stages.run_verifier(verifier, documents, kept, passages)
                for row, new in zip(core_verdicts, judged, strict=True):
                    row.extend(new)
        check_verdict_names(verdicts)
        return verdicts, core_verdicts

    def _scores(
        self,
        document: Document,
        claims: list[Claim],
        selections: list[Selection],
        verdicts: list[Verdict],
        core_verdicts: list[Verdict],
    ) -> list[DocumentScore]:
        scores = []
        for group in group_by_name(verdicts):
            scores.append(score_document(document, claims, group, None, self.gamma))
            if self.select is not None:
                kept = verdicts_on_selected(group, core_verdicts)
                scores.append(score_selected(document, claims, kept, selections, self))
        return scores


class ChunkCache:
    """Caches the outputs of stages for one chunk of documents, so that shared stages run once."""

    def __init__(self):
        self._values: dict[Hashable, Any] = {}

    def __call__(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._values:
            self._values[key] = compute()
        return self._values[key]


def usable_claims(claims: Sequence[Sequence[Claim]]) -> list[list[Claim]]:
    """Return the claims that have not failed."""
    return [[claim for claim in row if claim.failed is None] for row in claims]


def update_claims(
    claims: Sequence[Sequence[Claim]], changed: Sequence[Sequence[Claim]]
) -> list[list[Claim]]:
    """Return all claims, with those in ``changed`` replaced by id."""
    rows = []
    for row, changed_row in zip(claims, changed, strict=True):
        by_id = {claim.id: claim for claim in changed_row}
        rows.append([by_id.get(claim.id, claim) for claim in row])
    return rows


def select_claims(
    claims: Sequence[Sequence[Claim]], selections: Sequence[Sequence[Selection]]
) -> list[list[Claim]]:
    """Return the selected claims."""
    selected = [{s.claim for s in row if s.selected} for row in selections]
    rows = zip(claims, selected, strict=True)
    return [[claim for claim in row if claim.id in ids] for row, ids in rows]


def check_verdict_names(verdicts: Sequence[Sequence[Verdict]]) -> None:
    """Check that no two verifiers have the same name, which would count a claim twice."""
    for row in verdicts:
        times = Counter((v.claim, v.assessor, v.name) for v in row)
        (_, assessor, name), count = (times.most_common(1) or [(("", "", ""), 0)])[0]
        if count > 1:
            raise UserError(
                f"verify: two verifiers return verdicts named {assessor}.{name}; use one run for "
                "each of them"
            )


def group_by_name(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Group verdicts by assessor and name, in order; one empty group if there are none."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.assessor, verdict.name), []).append(verdict)
    return list(groups.values()) or [[]]


def verdicts_on_selected(group: Sequence[Verdict], selected: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts in ``selected`` of the same assessor and name, or else ``group``.

    ``group`` has verdicts of one assessor and name on all claims; ``selected`` has those of
    assessors that judged the selected claims as a set.
    """
    key = (group[0].assessor, group[0].name) if group else ("", "default")
    return [v for v in selected if (v.assessor, v.name) == key] or list(group)


def score_selected(
    document: Document,
    claims: Sequence[Claim],
    verdicts: Sequence[Verdict],
    selections: Sequence[Selection],
    pipeline: Pipeline,
    selection: str = "core",
) -> DocumentScore:
    """Score a document by the claims that the selector of a pipeline kept."""
    selected = {s.claim for s in selections if s.selected}
    unjudged = sum(s.reason == "failed" for s in selections)
    score = score_document(
        document, claims, verdicts, selected, pipeline.gamma, unjudged, selection
    )
    if getattr(pipeline.select, "repeats", None) != "unsupported":
        return score
    return score.model_copy(update={"repeated": sum(s.reason == "duplicate" for s in selections)})
