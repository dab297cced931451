"""Metrics × defences on the same texts, with every model asked once.

A metric is a pipeline, since FActScore, SAFE or FactReasoner differ in more than the verifier; a
defence is a selector. Metrics whose first stages are configured alike share what these stages give,
all share the defences' selections on it, and a verifier that judges claim by claim judges once
whatever is selected. Only verifiers that judge sets run again, on what each defence keeps.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from eval import stages
from eval.metrics.document import DocumentScore, score_document
from eval.pipeline import (
    ChunkCache,
    Pipeline,
    check_verdict_names,
    group_by_name,
    score_selected,
    select_claims,
    update_claims,
    usable_claims,
    verdicts_on_selected,
)
from eval.stages import Selection, Selector
from records import Claim, Document, UserError, Verdict

NONE = "none"


class Judged(BaseModel):
    """What one metric finds in a document, without and with each defence.

    Attributes:
        claims: all subclaims, and what ``failed`` to become one.
        selections: defence to one selection a claim that has not failed.
        verdicts: on all claims.
        again: defence to the verdicts of verifiers that judge sets, on the claims that it keeps.
        scores: one a named verdict, without (``none``) and with each defence.
    """

    claims: list[Claim]
    selections: dict[str, list[Selection]]
    verdicts: list[Verdict]
    again: dict[str, list[Verdict]]
    scores: list[DocumentScore]


class Row(BaseModel):
    """A document under every metric."""

    document: Document
    metrics: dict[str, Judged]


class CurveRow(Row):
    """The same of a text of a curve; ``clean`` and ``k`` are the document's."""

    curve: str


class Grid:
    """Scores documents under all metrics, without and with all defences.

    Args:
        metrics: name to pipeline, without a selector of its own.
        defences: name to selector; ``none`` is always there.
        config: ``metrics`` as the configuration has them, which tells equal stages; without it
            only stages that are one object are shared.
    """

    def __init__(
        self,
        metrics: Mapping[str, Pipeline],
        defences: Mapping[str, Selector],
        config: Mapping[str, Any] | None = None,
    ):
        for name, pipeline in metrics.items():
            if pipeline.select is not None:
                raise UserError(f"metrics: {name}: select: put selectors under defences")
        if NONE in defences:
            raise UserError(f"defences: {NONE} is always there; give the selector another name")
        self.metrics = metrics
        self.defences = defences
        self._config = config or {}

    def __call__(self, documents: Sequence[Document]) -> list[Row]:
        once = ChunkCache()
        found = {name: self._judge(name, documents, once) for name in self.metrics}
        return [
            Row(document=document, metrics={name: own[place] for name, own in found.items()})
            for place, document in enumerate(documents)
        ]

    def _judge(self, name: str, documents: Sequence[Document], once: ChunkCache) -> list[Judged]:
        pipeline = self.metrics[name]
        key = self.key(name)
        texts = (key("decompose"), key("revise"))
        place = (*texts, key("retrieve"))
        every = once(("claims", *texts), lambda: pipeline.claims(documents))
        claims = usable_claims(every)
        selections = {
            defence: once(
                ("select", defence, *texts),
                lambda s=select: stages.run_selector(s, documents, claims),
            )
            for defence, select in self.defences.items()
        }
        claims, passages = once(
            ("retrieve", *place),
            lambda c=claims: stages.run_retriever(pipeline.retrieve, documents, c),
        )
        every = update_claims(every, claims)
        verdicts: list[list[Verdict]] = [[] for _ in documents]
        sets: dict[str, list[list[Verdict]]] = {d: [[] for _ in documents] for d in self.defences}
        for number, verifier in enumerate(pipeline.verify):
            own = ("verify", key("verify", number), *place)
            judge = partial(stages.run_verifier, verifier, documents)
            _add(verdicts, once(own, lambda j=judge: j(claims, passages)))
            for defence in self.defences if verifier.judges_sets else ():
                kept = select_claims(claims, selections[defence])
                found = once((*own, defence), lambda j=judge, k=kept: j(k, passages))
                _add(sets[defence], found)
        check_verdict_names(verdicts)
        return [
            self._scored(
                document,
                pipeline.gamma,
                Judged(
                    claims=every[row],
                    selections={d: own[row] for d, own in selections.items()},
                    verdicts=verdicts[row],
                    again={d: own[row] for d, own in sets.items() if own[row]},
                    scores=[],
                ),
            )
            for row, document in enumerate(documents)
        ]

    def _scored(self, document: Document, gamma: float, own: Judged) -> Judged:
        scores = []
        for group in group_by_name(own.verdicts):
            scores.append(score_document(document, own.claims, group, None, gamma))
            for defence, selections in own.selections.items():
                verdicts = verdicts_on_selected(group, own.again.get(defence, []))
                scores.append(
                    score_selected(document, own.claims, verdicts, selections, gamma, defence)
                )
        return own.model_copy(update={"scores": scores})

    def key(self, name: str) -> Callable[..., Hashable]:
        """Equal for stages that are configured alike."""
        config = self._config.get(name) or {}
        config = config.get("init_args", config)
        pipeline = self.metrics[name]

        def key(stage: str, number: int | None = None) -> Hashable:
            told, part = config.get(stage), getattr(pipeline, stage)
            if number is not None:
                told, part = told and told[number], part[number]
            if stage not in config:
                return id(part)
            return json.dumps(told, sort_keys=True, default=str)

        return key


def _add(verdicts: list[list[Verdict]], found: Sequence[Sequence[Verdict]]) -> None:
    for own, more in zip(verdicts, found, strict=True):
        own.extend(more)
