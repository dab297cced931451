"""Defences: changes to a pipeline that should keep it from being gamed.

A defence changes the evidence, the claims that are scored, the verifier, or how verdicts become a
score. Several defences are combined by :func:`stack`. :class:`PipelineScore` is what an adversary
optimises: one number per text.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import yaml
from jsonargparse.typing import PositiveInt

from cli.parser import command_parser
from cli.shipped import find_shipped, with_shipped
from components.sentences import split_sentences
from eval.metrics.document import DocumentScore
from eval.metrics.text_metric import TextMetric
from eval.pipeline import ChunkCache, Pipeline
from eval.stages import Relevance, Retriever, RetrieverWrapper, Selector, Verifier
from records import Document, UserError
from records.cleaning import clean

ScoreName = Literal["precision", "factscore", "f1_at_k"]


@dataclass(frozen=True)
class Defence:
    """A change to a pipeline. A field that is not set leaves the pipeline as it is.

    Args:
        retrieve: replaces the retriever.
        wrap_retrieve: takes the retriever and returns one that uses it, for example
            ``eval.retrieve.titles.TopicPage``.
        select: replaces the selector; only the claims that it keeps are scored.
        select_for: selectors of single metrics, by name, instead of ``select``, for example SAFE's
            relevance before Core.
        verify: replaces the verifiers.
        verdict: name of the verdict to score, for example ``grouped`` of D-FActScore.
        score: share of supported claims (``precision``), with FActScore's length penalty
            (``factscore``), or F1@K (``f1_at_k``, SAFE, 2403.18802, section 5).
        k: K of F1@K, the number of supported claims of a complete answer.
        removed: ``unsupported`` counts what cleaning removes and states something as claims that
            are not supported.
        config: a configuration of ``eval score``, for example ``configs/eval/small/robust.yaml``,
            whose retriever, selector and verifiers replace those of the pipeline.
    """

    retrieve: Retriever | None = None
    wrap_retrieve: Callable[[Retriever], RetrieverWrapper] | None = None
    select: Selector | None = None
    select_for: dict[str, Selector] | None = None
    verify: list[Verifier] | None = None
    verdict: str | None = None
    score: ScoreName | None = None
    k: PositiveInt | None = None
    removed: Literal["dropped", "unsupported"] | None = None
    config: str | None = None

    def __post_init__(self):
        if self.config is not None:
            pipeline = read_pipeline(self.config)
            for name in ("retrieve", "select", "verify"):
                object.__setattr__(self, name, getattr(self, name) or getattr(pipeline, name))
        if (self.score == "f1_at_k") != (self.k is not None):
            raise UserError("defences: `k` and `score: f1_at_k` must be set together")

    def patch(
        self, pipeline: Pipeline, metric: str = "", wrapped: ChunkCache | None = None
    ) -> Pipeline:
        """The pipeline of a metric with this defence.

        Args:
            pipeline: the metric.
            metric: its name.
            wrapped: retrievers that were wrapped for other pipelines.
        """
        retrieve, wrap = self.retrieve or pipeline.retrieve, self.wrap_retrieve
        if wrap is not None:
            inner, wrapped = retrieve, wrapped or ChunkCache()
            retrieve = wrapped(lambda: wrap(inner), "wrapped", wrap, inner)
        return Pipeline(
            decompose=pipeline.decompose,
            verify=self.verify or pipeline.verify,
            retrieve=retrieve,
            select=(self.select_for or {}).get(metric, self.select) or pipeline.select,
            revise=pipeline.revise,
            gamma=pipeline.gamma.gamma,
            penalty_of=pipeline.penalty_of,
            removed=self.removed or pipeline.removed,
        )

    def value(self, score: DocumentScore) -> float | None:
        """The score of a text: in [0, 1]; ``None`` if nothing could be judged."""
        if self.k is not None:
            return score.at_k(self.k).f1
        return score.factscore if self.score == "factscore" else score.precision

    def settings(self) -> dict[str, object]:
        """The fields that are set."""
        names = [field.name for field in fields(self) if field.name != "config"]
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


NO_DEFENCE = Defence()


def read_pipeline(config: str) -> Pipeline:
    """The pipeline of a configuration of ``eval score``."""
    parser = command_parser("defences: config", config=False)
    parser.add_class_arguments(Pipeline, "pipeline")
    try:
        options = yaml.safe_load(Path(find_shipped(config)).read_text(encoding="utf-8"))["pipeline"]
    except (OSError, KeyError, TypeError, yaml.YAMLError) as error:
        raise UserError(
            f"{config}: expected a configuration of `eval score` with "
            f"`pipeline` ({type(error).__name__})"
        ) from None
    parsed = with_shipped(parser.parse_object({"pipeline": options}))
    return parser.instantiate(parsed).pipeline


def stack(name: str, parts: Mapping[str, Defence]) -> Defence:
    """Combine defences into one.

    Raises:
        UserError: two of them set the same field.
    """
    settings: dict[str, object] = {}
    setters: dict[str, str] = {}
    for part, defence in parts.items():
        for field, value in defence.settings().items():
            if field in settings:
                raise UserError(
                    f"stacks: {name}: {setters[field]} and {part} both set `{field}`; use one"
                )
            settings[field], setters[field] = value, part
    return Defence(**settings)


def combine(
    defences: Mapping[str, Defence],
    stacks: Mapping[str, Sequence[str]],
    leave_one_out: Sequence[str],
) -> dict[str, tuple[str, ...]]:
    """Name every defence, stack and stack without one part.

    Returns:
        Name to the names of its single defences: ``robust - page`` is ``robust`` without ``page``.
    """
    for name in leave_one_out:
        if name not in stacks:
            raise UserError(f"leave_one_out: {name!r} is not a stack; stacks: {', '.join(stacks)}")
    for name, parts in stacks.items():
        unknown = [part for part in parts if part not in defences]
        if unknown or name in defences:
            problem = f"{unknown[0]!r} is not a defence" if unknown else "is also a defence"
            raise UserError(f"stacks: {name}: {problem}; defences: {', '.join(defences)}")
    members = {name: (name,) for name in defences} | {n: tuple(p) for n, p in stacks.items()}
    for name in leave_one_out:
        for part in stacks[name]:
            rest = tuple(other for other in stacks[name] if other != part)
            members[f"{name} - {part}"] = rest
    return members


class PipelineScore(TextMetric):
    """A pipeline's score of a text, without or with defences.

    Args:
        pipeline: the metric; with a selector, only the claims that it keeps are scored.
        defences: name to defence, as in ``experiment robustness``.
        against: names of the defences to apply together; none by default.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        defences: dict[str, Defence] | None = None,
        against: list[str] | None = None,
    ):
        defences, against = defences or {}, against or []
        if unknown := [name for name in against if name not in defences]:
            raise UserError(
                f"against: {unknown[0]!r} is not one of {', '.join(defences) or 'none'}"
            )
        self.defences, self.against = defences, against
        self.defence = stack("against", {name: defences[name] for name in against})
        self.pipeline = self.defence.patch(pipeline)

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        """One score per text; ``None`` if it abstains or if no claim could be judged."""
        return [None if s is None else self.defence.value(s) for s in self.judge(documents)]

    def judge(self, documents: Sequence[Document]) -> list[DocumentScore | None]:
        """The counts behind each score; ``None`` for a text that abstains."""
        judged: list[DocumentScore | None] = []
        for scored in self.pipeline.score(documents, unselected=False):
            scores = scored.scores
            if scored.claims:
                scores = [s for s in scores if self.defence.verdict in (None, s.name)]
            if len(scores) != 1:  # a text without claims has one, without a verdict's name
                names = ", ".join(sorted({verdict.name for verdict in scored.verdicts}))
                raise UserError(f"pipeline: verdicts {names}; set `verdict` in a defence to one")
            judged.append(scores[0] if scores[0].responded else None)
        return judged


class ThreePartReward(PipelineScore):
    """Precision, detail and relevance, the parts of the reward of 2508.05618, section 3.1.

    R = F / (T + 1) + ``detail`` ln(1 + F) + ``quality`` Q with F supported of T judged claims. The
    paper's Q is 1 if a language model prefers the text to that of a reference model. Here it is the
    share of the text's sentences that ``relevance`` finds relevant.

    Args:
        pipeline, defences, against: as in :class:`PipelineScore`; the score of a defence is unused.
        relevance: judges sentences, e.g. ``eval.select.relevance.Prompted``; null leaves Q out.
        detail: weight of the number of supported claims.
        quality: weight of the relevance.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        defences: dict[str, Defence] | None = None,
        against: list[str] | None = None,
        relevance: Relevance | None = None,
        detail: float = 0.01,
        quality: float = 0.1,
    ):
        super().__init__(pipeline, defences, against)
        self.relevance, self.detail, self.quality = relevance, detail, quality
        self.range = (0.0, 1 + quality + detail * math.log(1001))  # of at most 1,000 claims

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        """One reward per text; ``None`` if nothing could be judged."""
        labels: Sequence[Sequence[int | None]] = [[0]] * len(documents)
        if self.relevance is not None:
            labels = self.relevance(
                documents, [split_sentences(clean(d.text).text) for d in documents]
            )
        rewards: list[float | None] = []
        for score, row in zip(self.judge(documents), labels, strict=True):
            relevant = [label for label in row if label is not None]
            if score is None or score.precision is None or not relevant:
                rewards.append(None)
                continue
            precision = score.supported / (score.judged + 1)
            detail = self.detail * math.log1p(score.supported)
            rewards.append(precision + detail + self.quality * sum(relevant) / len(relevant))
        return rewards
