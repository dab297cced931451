"""Every metric with every defence on the same texts, with each model call made once.

A metric is a pipeline and a defence is a patch of it (``eval/defences.py``). Stages with the same
configuration run once per chunk of documents, whichever metrics and defences use them. A verifier
that judges claims one by one runs once on all claims; one that judges sets of claims runs again on
the claims that each selector keeps.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from pydantic import BaseModel

from eval import stages
from eval.defences import NO_DEFENCE, Defence, stack
from eval.metrics.document import DocumentScore, score_document
from eval.metrics.text_metric import TextMetric, text_scores
from eval.pipeline import (
    ChunkCache,
    Pipeline,
    check_verdict_names,
    group_by_name,
    score_selected,
    select_claims,
    update_claims,
    usable_claims,
)
from eval.stages import Selection
from records import Claim, Document, UserError, Verdict

NONE = "none"


class Judged(BaseModel):
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


class Row(BaseModel):
    """A document under every metric.

    Attributes:
        text_scores: score by each text metric, rescaled to [0, 1]; ``None`` if it failed.
    """

    document: Document
    metrics: dict[str, Judged]
    text_scores: dict[str, float | None] = {}


class CurveRow(Row):
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
        self.defences = {
            name: stack(name, {part: defences[part] for part in parts}) if parts else NO_DEFENCE
            for name, parts in self.members.items()
        }
        self.pipelines = {
            metric: {
                name: defence.patch(pipeline, metric) for name, defence in self.defences.items()
            }
            for metric, pipeline in metrics.items()
        }
        self.text_metrics = text_metrics or {}
        self._parts = defences
        self._config = config or {}

    def __call__(self, documents: Sequence[Document]) -> list[Row]:
        cache = ChunkCache()
        judged = {name: self._judge(name, documents, cache) for name in self.pipelines}
        by_text = {n: text_scores(n, m, documents) for n, m in self.text_metrics.items()}
        return [
            Row(
                document=document,
                metrics={name: rows[number] for name, rows in judged.items()},
                text_scores={name: scores[number] for name, scores in by_text.items()},
            )
            for number, document in enumerate(documents)
        ]

    def _judge(self, name: str, documents: Sequence[Document], cache: ChunkCache) -> list[Judged]:
        outputs = {column: self._run(name, column, documents, cache) for column in self.defences}
        judged = []
        for number, document in enumerate(documents):
            columns = {
                column: [part[number] for part in parts] for column, parts in outputs.items()
            }
            first = columns[NONE][2]
            judged.append(
                Judged(
                    claims=columns[NONE][0],
                    selections={c: chosen for c, (_, chosen, _) in columns.items() if chosen},
                    verdicts={
                        column: verdicts
                        for column, (_, _, verdicts) in columns.items()
                        if column == NONE or verdicts != first
                    },
                    scores=[
                        score
                        for column, (claims, chosen, verdicts) in columns.items()
                        for score in self._scores(name, column, document, claims, chosen, verdicts)
                    ],
                )
            )
        return judged

    def _run(
        self, name: str, column: str, documents: Sequence[Document], cache: ChunkCache
    ) -> tuple[list[list[Claim]], list[list[Selection]], list[list[Verdict]]]:
        pipeline, key = self.pipelines[name][column], self.key(name, column)
        texts = (key("decompose"), key("revise"))
        place = (*texts, key("retrieve"))
        all_claims = cache(("claims", *texts), lambda: pipeline.claims(documents))
        claims, select = usable_claims(all_claims), pipeline.select
        selections: list[list[Selection]] = [[] for _ in documents]
        if select is not None:
            selections = cache(
                ("select", key("select"), *texts),
                lambda: stages.run_selector(select, documents, claims),
            )
        claims, passages = cache(
            ("retrieve", *place), lambda: stages.run_retriever(pipeline.retrieve, documents, claims)
        )
        kept = select_claims(claims, selections) if select is not None else claims
        parts = []
        for number, verifier in enumerate(pipeline.verify):
            is_again = select is not None and verifier.judges_sets
            suffix = (key("select"),) if is_again else ()
            judge = partial(
                stages.run_verifier, verifier, documents, kept if is_again else claims, passages
            )
            parts.append(cache(("verify", key("verify", number), *place, *suffix), judge))
        verdicts = (
            parts[0]
            if len(parts) == 1
            else [list(chain.from_iterable(rows)) for rows in zip(*parts, strict=True)]
        )
        check_verdict_names(verdicts)
        return update_claims(all_claims, claims), selections, verdicts

    def _scores(
        self,
        name: str,
        column: str,
        document: Document,
        claims: Sequence[Claim],
        selections: Sequence[Selection],
        verdicts: Sequence[Verdict],
    ) -> list[DocumentScore]:
        pipeline, verdict = self.pipelines[name][column], self.defences[column].verdict
        scores = []
        for group in group_by_name([v for v in verdicts if verdict in (None, v.name)]):
            if pipeline.select is None:
                score = score_document(document, claims, group, None, pipeline.gamma)
                scores.append(score.model_copy(update={"selection": column}))
            else:
                score = score_selected(document, claims, group, selections, pipeline, column)
                scores.append(score)
        return scores

    def same_columns(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Metric and defence of columns that have the configuration of an earlier column, and it.

        A stack that replaces all stages of two metrics makes one column of them.
        """
        first: dict[Hashable, tuple[str, str]] = {}
        same = {}
        for metric, pipelines in self.pipelines.items():
            for column, pipeline in pipelines.items():
                key, defence = self.key(metric, column), self.defences[column]
                stages_of = [key(name) for name in ("decompose", "revise", "retrieve", "select")]
                stages_of += [key("verify", number) for number in range(len(pipeline.verify))]
                options = (pipeline.gamma, defence.verdict, defence.score, defence.k)
                place = first.setdefault((*stages_of, *options), (metric, column))
                if place != (metric, column):
                    same[metric, column] = place
        return same

    def key(self, metric: str, column: str = NONE) -> Callable[..., Hashable]:
        """A function from a stage (and a verifier's number) to a key; equal stages, equal keys."""

        def key(stage: str, number: int | None = None) -> Hashable:
            if stage == "retrieve":
                return (part_key("retrieve", number), part_key("wrap_retrieve", number))
            if stage == "select" and metric in (self.defences[column].select_for or {}):
                return (part_key("select_for", number), metric)
            return part_key(stage, number)

        def part_key(field: str, number: int | None) -> Hashable:
            setters = [
                part
                for part in self.members[column]
                if getattr(self._parts[part], field, None) is not None
            ]
            if setters:
                config = _options(self._config, "defences", setters[0])
                value = getattr(self._parts[setters[0]], field)
            else:
                config = _options(self._config, "metrics", metric)
                value = getattr(self.pipelines[metric][NONE], field, None)
            options = config.get(field)
            if number is not None:
                options, value = options and options[number], value[number]
            if field not in config:
                return value if value is None else id(value)
            return json.dumps(options, sort_keys=True, default=str)

        return key


def _options(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    options = (config.get(kind) or {}).get(name) or {}
    return options.get("init_args", options)
