"""The pipeline: decompose documents into claims, revise, select, retrieve, verify, score.

Start reading here. Each stage is a callable over a batch of documents (``eval/stages.py``); YAML
selects it by ``class_path``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from eval import stages
from eval.metrics.document import DEFAULT_GAMMA, DocumentScore, Penalty, Scored, score_document
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Decomposer, Retriever, Reviser, Selection, Selector, Verifier
from records import Claim, Document, Passage, UserError, Verdict
from records.abstention import clean_document
from records.cleaning import clean
from records.removed import removed_statements, statements_by_length
from records.stage_outputs import class_path_of

T = TypeVar("T")
# One object, so that pipelines share its output.
_OWN_PASSAGES = GivenPassages()


class ChunkCache:
    """Outputs of stages on one chunk of documents, so that each of them runs once."""

    def __init__(self):
        self._outputs: dict[tuple, tuple[tuple, Any]] = {}

    def __call__(self, compute: Callable[[], T], output: str, *made_by: object) -> T:
        """Return an output by its name and the stages that decide it, which are kept alive."""
        key = (output, *map(id, made_by))
        if key not in self._outputs:
            self._outputs[key] = (made_by, compute())
        return self._outputs[key][1]


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
        removed: ``unsupported`` counts what tables, headings, questions and comments state, which
            cleaning removes, as claims that are not supported, and a claim of more than 30 words
            that is not supported as several (``records/removed.py``).
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
        removed: Literal["dropped", "unsupported"] = "dropped",
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
        self.retrieve = retrieve or _OWN_PASSAGES
        self.select = select
        self.revise = revise
        self.penalty_of = penalty_of
        self.gamma = Penalty(gamma, penalty_of == "kept")
        self.removed = removed

    def score(
        self,
        documents: Sequence[Document],
        cache: ChunkCache | None = None,
        unselected: bool = True,
    ) -> list[Scored]:
        """Score each document, without Core and, if a selector is set, with Core.

        Texts are cleaned and tested for an abstention here; stages see the cleaned texts.

        Args:
            documents: the batch.
            cache: outputs of stages on these documents, shared by pipelines with the same stages.
            unselected: whether to score all claims, too, if a selector is set. Without this, a
                verifier of claim sets runs on the kept claims only.
        """
        cache = cache or ChunkCache()
        cleaned = cache(lambda: list(map(clean_document, documents)), "documents")
        texts = (self.decompose, self.revise)
        all_claims = cache(lambda: self.claims(cleaned), "claims", *texts)
        claims, select, retrieve = usable_claims(all_claims), self.select, self.retrieve
        selections: list[list[Selection]] = [[] for _ in documents]
        if select is not None:
            selections = cache(
                lambda: stages.run_selector(select, cleaned, claims), "select", *texts, select
            )
        claims, passages = cache(
            lambda: stages.run_retriever(retrieve, cleaned, claims), "retrieve", *texts, retrieve
        )
        run = partial(self._run_verifiers, cache, cleaned, passages)
        kept = select_claims(claims, selections)
        if select is None:
            verdicts, core_verdicts = run(claims, self.verify), [[] for _ in documents]
        else:
            of_sets = [verifier for verifier in self.verify if verifier.judges_sets]
            on_all = self.verify if unselected else [v for v in self.verify if v not in of_sets]
            verdicts, core_verdicts = run(claims, on_all), run(kept, of_sets, select)
        all_claims = update_claims(all_claims, claims)
        columns = (documents, cleaned, all_claims, selections, passages, verdicts, core_verdicts)
        return [self._scored(unselected, *row) for row in zip(*columns, strict=True)]

    def claims(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """Decompose and revise documents; returns failed claims too."""
        claims = stages.run_decomposer(self.decompose, documents)
        if self.revise is None:
            return claims
        revised = stages.run_reviser(self.revise, documents, usable_claims(claims))
        return update_claims(claims, revised)

    def _run_verifiers(
        self,
        cache: ChunkCache,
        documents: Sequence[Document],
        passages: list[list[Passage]],
        claims: list[list[Claim]],
        verifiers: Sequence[Verifier],
        *selector: Selector,
    ) -> list[list[Verdict]]:
        verdicts: list[list[Verdict]] = [[] for _ in documents]
        for verifier in verifiers:
            judge = partial(stages.run_verifier, verifier, documents, claims, passages)
            evidence = (self.decompose, self.revise, self.retrieve)
            judged = cache(judge, "verify", *evidence, verifier, *selector)
            for row, new in zip(verdicts, judged, strict=True):
                row.extend(new)
        check_verdict_names(verdicts)
        return verdicts

    def _scored(
        self,
        unselected: bool,
        document: Document,
        cleaned: Document,
        claims: list[Claim],
        selections: list[Selection],
        passages: list[Passage],
        verdicts: list[Verdict],
        core_verdicts: list[Verdict],
    ) -> Scored:
        scores = []
        for group in group_by_name(verdicts if unselected else [*verdicts, *core_verdicts]):
            more = self._more_unsupported(document, claims, group)
            if unselected or self.select is None:
                score = score_document(cleaned.responds, claims, group, None, self.gamma)
                scores.append(score.with_unsupported(more))
            if self.select is not None:
                kept = verdicts_on_selected(group, core_verdicts)
                score = self._score_selected(cleaned.responds, claims, kept, selections)
                scores.append(score.with_unsupported(more))
        return Scored(
            document=document,
            claims=claims,
            selections=selections,
            passages=passages,
            verdicts=verdicts,
            core_verdicts=core_verdicts,
            scores=scores,
            removed=clean(document.text).removed,
        )

    def _more_unsupported(
        self, document: Document, claims: Sequence[Claim], verdicts: Sequence[Verdict]
    ) -> int:
        """Number of statements without a verdict that count as claims that are not supported."""
        if self.removed == "dropped":
            return 0
        supported = {verdict.claim for verdict in verdicts if verdict.label == "supported"}
        rejected = [claim for claim in claims if claim.id not in supported]
        within = sum(statements_by_length(claim.text) - 1 for claim in rejected)
        return removed_statements(document.text) + within

    def _score_selected(
        self,
        responded: bool,
        claims: Sequence[Claim],
        verdicts: Sequence[Verdict],
        selections: Sequence[Selection],
    ) -> DocumentScore:
        selected = {s.claim for s in selections if s.selected}
        unjudged = sum(s.reason == "failed" for s in selections)
        score = score_document(responded, claims, verdicts, selected, self.gamma, unjudged)
        if getattr(self.select, "repeats", None) != "unsupported":
            return score
        repeated = sum(s.reason == "duplicate" for s in selections)
        return score.model_copy(update={"repeated": repeated})


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
