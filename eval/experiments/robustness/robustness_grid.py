"""Every metric with every defence on the same texts, with each model call made once.

A metric is a pipeline and a defence is a patch of it (``eval/defences.py``). Stages with the same
configuration run once per chunk of documents, whichever metrics and defences use them. A verifier
that judges claims one by one runs once on all claims; one that judges sets of claims runs again on
the claims that each selector keeps.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar

from pydantic import BaseModel

from eval.defences import NO_DEFENCE, Defence, stack
from eval.metrics.document import DocumentScore, Scored
from eval.metrics.text_metric import TextMetric, text_scores
from eval.pipeline import ChunkCache, Pipeline
from eval.stages import Selection
from records import Claim, Document, UserError, Verdict

T = TypeVar("T", Pipeline, Defence)
_STAGES = (
    "decompose",
    "revise",
    "retrieve",
    "wrap_retrieve",
    "select",
    "select_for",
    "verify",
)
NONE = "none"


class JudgedByMetric(BaseModel):
    """What one metric returns for a document, without and with each defence.

    Attributes:
        claims: all subclaims, including failed ones.
        selections: defence to its selections, one per claim that has not failed.
        verdicts: defence (``none`` included) to its verdicts; a defence that does not change the
            evidence, the verifier or the claims of a set verifier has no entry.
        scores: one per defence and named verdict.
    """

    claims: list[Claim]
    selections: dict[str, list[Selection]]
    verdicts: dict[str, list[Verdict]]
    scores: list[DocumentScore]


class TextScores(BaseModel):
    """A document under every metric.

    Attributes:
        text_scores: score by each text metric, rescaled to [0, 1]; ``None`` if it failed.
    """

    document: Document
    metrics: dict[str, JudgedByMetric]
    text_scores: dict[str, float | None] = {}


class CurveRow(TextScores):
    """A document of a corruption curve."""

    curve: str


class Grid:
    """Scores documents under all metrics, without and with all defences.

    Args:
        metrics: name to pipeline, without a selector.
        defences: name to defence.
        members: name of each column, such as a stack, to the names of its defences.
        text_metrics: name to a metric that scores whole texts.
        config: options of the experiment; stages with equal options are shared. Without it only
            stages that are the same object are shared.

    Attributes:
        pipelines: metric to column to patched pipeline.
    """

    def __init__(
        self,
        metrics: Mapping[str, Pipeline],
        defences: Mapping[str, Defence],
        members: Mapping[str, Sequence[str]] | None = None,
        text_metrics: Mapping[str, TextMetric] | None = None,
        config: Mapping[str, Any] | None = None,
    ):
        for name, pipeline in metrics.items():
            if pipeline.select is not None:
                raise UserError(f"metrics: {name}: select: move the selector to `defences`")
        self.members = {NONE: ()} | dict(members or {name: (name,) for name in defences})
        if NONE in defences or len(self.members) == len(members or defences):
            raise UserError(f"defences: {NONE!r} is always included; rename yours")
        first: dict[str, Any] = {}
        of_metrics, of_defences = ((config or {}).get(n) or {} for n in ("metrics", "defences"))
        parts_by_name = {
            n: _share_stages(part, of_defences.get(n), first) for n, part in defences.items()
        }
        self.defences = {
            name: stack(name, {n: parts_by_name[n] for n in parts}) if parts else NO_DEFENCE
            for name, parts in self.members.items()
        }
        shared = {n: _share_stages(m, of_metrics.get(n), first) for n, m in metrics.items()}
        wrapped = ChunkCache()
        self.pipelines = {
            metric: {
                name: defence.patch(pipeline, metric, wrapped)
                for name, defence in self.defences.items()
            }
            for metric, pipeline in shared.items()
        }
        self.text_metrics = text_metrics or {}

    def __call__(self, documents: Sequence[Document]) -> list[TextScores]:
        cache = ChunkCache()
        judged = {name: self._judge(name, documents, cache) for name in self.pipelines}
        by_text = {n: text_scores(n, m, documents) for n, m in self.text_metrics.items()}
        return [
            TextScores(
                document=document,
                metrics={name: rows[number] for name, rows in judged.items()},
                text_scores={name: scores[number] for name, scores in by_text.items()},
            )
            for number, document in enumerate(documents)
        ]

    def _judge(
        self, name: str, documents: Sequence[Document], cache: ChunkCache
    ) -> list[JudgedByMetric]:
        columns = {
            column: pipeline.score(documents, cache, unselected=False)
            for column, pipeline in self.pipelines[name].items()
        }
        return [
            self._judged({column: rows[number] for column, rows in columns.items()})
            for number in range(len(documents))
        ]

    def _judged(self, columns: Mapping[str, Scored]) -> JudgedByMetric:
        verdicts = {c: [*scored.verdicts, *scored.core_verdicts] for c, scored in columns.items()}
        return JudgedByMetric(
            claims=columns[NONE].claims,
            selections={c: scored.selections for c, scored in columns.items() if scored.selections},
            verdicts={
                column: rows
                for column, rows in verdicts.items()
                if column == NONE or rows != verdicts[NONE]
            },
            scores=[
                score.model_copy(update={"selection": column})
                for column, scored in columns.items()
                for score in self._scores(column, scored)
            ],
        )

    def _scores(self, column: str, scored: Scored) -> list[DocumentScore]:
        verdict = self.defences[column].verdict
        # A text without claims has one score, without the name of a verdict.
        scores = [s for s in scored.scores if verdict in (None, s.name) or not s.assessor]
        if not scores:
            names = ", ".join(score.name for score in scored.scores)
            raise UserError(f"defences: {column}: verdict: {verdict!r} is not one of {names}")
        return scores

    def same_columns(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Metric and defence of columns that have the stages of an earlier column, and it.

        A stack that replaces all stages of two metrics makes one column of them. A metric without
        defence is left out only with all of its columns, since these are compared with it.
        """
        first: dict[Hashable, tuple[str, str]] = {}
        same = {}
        for metric, pipelines in self.pipelines.items():
            for column, pipeline in pipelines.items():
                defence = self.defences[column]
                used = (pipeline.decompose, pipeline.revise, pipeline.retrieve, pipeline.select)
                scoring = (pipeline.gamma, pipeline.removed, defence.verdict)
                options = (*scoring, defence.score, defence.k)
                key = (*map(id, (*used, *pipeline.verify)), options)
                place = first.setdefault(key, (metric, column))
                if place != (metric, column):
                    same[metric, column] = place
            if len([place for place in same if place[0] == metric]) < len(pipelines):
                same.pop((metric, NONE), None)
        return same


def _share_stages(user: T, options: Mapping[str, Any] | None, first: dict[str, Any]) -> T:
    """A pipeline or defence whose stages are the first ones with equal options."""

    def share(stage: Any, config: Any) -> Any:
        if isinstance(stage, list):
            return [share(each, of_each) for each, of_each in zip(stage, config, strict=True)]
        if isinstance(stage, dict):
            return {name: share(each, config[name]) for name, each in stage.items()}
        return first.setdefault(json.dumps(config, sort_keys=True, default=str), stage)

    shared = copy(user)
    options = (options or {}).get("init_args", options) or {}
    for name in _STAGES:
        if options.get(name) is not None:
            object.__setattr__(shared, name, share(getattr(user, name), options[name]))
    return shared
