"""The flow: documents to claims, revised, selected, with passages, to verdicts, to scores.

Read this first. Each stage is a callable over the whole batch (``eval/stages.py``); YAML picks one
by ``class_path``.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from jsonargparse import ArgumentParser, get_loader

from eval import stages
from eval.metrics.document import DEFAULT_GAMMA, DocumentScore, Scored, score_document
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Decomposer, Retriever, Reviser, Selection, Selector, Verifier
from records import Claim, Document, Passage, UserError, Verdict
from records.stage_outputs import class_path_of

T = TypeVar("T")


class Pipeline:
    """Decompose, revise, select, retrieve, verify, aggregate.

    Args:
        decompose: texts to claims.
        verify: one or more verifiers, each of another name; all judge the same claims and passages.
        retrieve: claims to evidence; without it the documents' own passages are used, all of them
            for a claim that has no ``contexts``.
        select: Core; without it every claim is scored once.
        revise: claims to claims that stand alone; without it they stay as they are.
        gamma: threshold of FActScore's length penalty, in subclaims before Core; 0 for none.
    """

    def __init__(
        self,
        decompose: Decomposer,
        verify: list[Verifier],
        retrieve: Retriever | None = None,
        select: Selector | None = None,
        revise: Reviser | None = None,
        gamma: float = DEFAULT_GAMMA,
    ):
        if not verify:
            raise UserError("verify: an empty list judges nothing; give one verifier or more")
        for verifier in verify:
            if select is not None and not hasattr(verifier, "judges_sets"):
                raise UserError(
                    f"verify: {class_path_of(verifier)} does not say `judges_sets`: true if its "
                    "verdict on a claim depends on the other claims, else false"
                )
        self.decompose = decompose
        self.verify = verify
        self.retrieve = retrieve or GivenPassages()
        self.select = select
        self.revise = revise
        self.gamma = gamma

    def score(self, documents: Sequence[Document]) -> list[Scored]:
        """Score documents, with and without Core where a selector is set.

        Returns:
            One :class:`Scored` a document, in order.
        """
        every = self.claims(documents)
        claims = usable_claims(every)
        selections: list[list[Selection]] = [[] for _ in documents]
        if self.select is not None:
            selections = stages.run_selector(self.select, documents, claims)
        claims, passages = stages.run_retriever(self.retrieve, documents, claims)
        every = update_claims(every, claims)
        verdicts, core_verdicts = self._judge(documents, claims, selections, passages)
        return [
            Scored(
                document=document,
                claims=every[row],
                selections=selections[row],
                passages=passages[row],
                verdicts=verdicts[row],
                core_verdicts=core_verdicts[row],
                scores=self._scores(
                    document, every[row], selections[row], verdicts[row], core_verdicts[row]
                ),
            )
            for row, document in enumerate(documents)
        ]

    def claims(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """Decompose and revise; what failed on the way is among them."""
        every = stages.run_decomposer(self.decompose, documents)
        if self.revise is None:
            return every
        return update_claims(
            every, stages.run_reviser(self.revise, documents, usable_claims(every))
        )

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
            for row, found in enumerate(stages.run_verifier(verifier, documents, claims, passages)):
                verdicts[row].extend(found)
            if self.select is not None and verifier.judges_sets:
                for row, found in enumerate(
                    stages.run_verifier(verifier, documents, kept, passages)
                ):
                    core_verdicts[row].extend(found)
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
                own = verdicts_on_selected(group, core_verdicts)
                scores.append(score_selected(document, claims, own, selections, self.gamma))
        return scores


# What the pipeline does between its stages, for whoever runs them with several selectors


class ChunkCache:
    """Remembers what was computed for a chunk of documents: stages that are shared run once."""

    def __init__(self):
        self._found: dict[Hashable, Any] = {}

    def __call__(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._found:
            self._found[key] = compute()
        return self._found[key]


def usable_claims(claims: Sequence[Sequence[Claim]]) -> list[list[Claim]]:
    """The claims that have not failed."""
    return [[claim for claim in own if claim.failed is None] for own in claims]


def update_claims(
    every: Sequence[Sequence[Claim]], changed: Sequence[Sequence[Claim]]
) -> list[list[Claim]]:
    """All claims, those that a stage gave back in their new form."""
    rows = []
    for own, new in zip(every, changed, strict=True):
        by_id = {claim.id: claim for claim in new}
        rows.append([by_id.get(claim.id, claim) for claim in own])
    return rows


def select_claims(
    claims: Sequence[Sequence[Claim]], selections: Sequence[Sequence[Selection]]
) -> list[list[Claim]]:
    """The claims that were selected."""
    chosen = [{s.claim for s in own if s.selected} for own in selections]
    return [
        [claim for claim in own if claim.id in ids] for own, ids in zip(claims, chosen, strict=True)
    ]


def check_verdict_names(verdicts: Sequence[Sequence[Verdict]]) -> None:
    """Of two verifiers of the same name a claim would count twice."""
    for own in verdicts:
        times = Counter((v.claim, v.assessor, v.name) for v in own)
        (_, assessor, name), most = (times.most_common(1) or [(("", "", ""), 0)])[0]
        if most > 1:
            raise UserError(
                f"verify: two verifiers give verdicts named {assessor}.{name}; score with each in "
                "a run of its own"
            )


def group_by_name(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Verdicts grouped by assessor and name, in order; one empty group for a text without any."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.assessor, verdict.name), []).append(verdict)
    return list(groups.values()) or [[]]


def verdicts_on_selected(group: Sequence[Verdict], selected: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that score the selected claims.

    Args:
        group: one assessor's verdicts of one name, on all claims.
        selected: verdicts of assessors that judged the selected claims as a set.

    Returns:
        Those among ``selected`` of the same assessor and name, else ``group``.
    """
    key = (group[0].assessor, group[0].name) if group else ("", "default")
    return [v for v in selected if (v.assessor, v.name) == key] or list(group)


def score_selected(
    document: Document,
    claims: Sequence[Claim],
    verdicts: Sequence[Verdict],
    selections: Sequence[Selection],
    gamma: float,
    selection: str = "core",
) -> DocumentScore:
    """A document's score by the claims that a selector kept."""
    selected = {s.claim for s in selections if s.selected}
    unjudged = sum(s.reason == "failed" for s in selections)
    return score_document(document, claims, verdicts, selected, gamma, unjudged, selection)


def read_pipeline(path: str) -> tuple[Pipeline, dict]:
    """The pipeline of a configuration file of ``python -m eval score``, and what it says."""
    said = "give a configuration as for `python -m eval score`"
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; {said}")
    try:
        given = get_loader("yaml")(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no YAML: {' '.join(str(error).split())}; {said}") from None
    if not isinstance(given, dict) or "pipeline" not in given:
        raise UserError(f"{path}: holds no `pipeline`; {said}")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Pipeline, "pipeline")
    known = parser.parse_object({"pipeline": given["pipeline"]})
    shown = json.loads(parser.dump(known, format="json", skip_unset=False))["pipeline"]
    return parser.instantiate(known).pipeline, shown
