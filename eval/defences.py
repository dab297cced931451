"""Defences: changes to a pipeline that should keep it from being gamed.

A defence changes the evidence, the claims that are scored, the verifier, or how verdicts become a
score. Several defences are combined by :func:`stack`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from jsonargparse.typing import PositiveInt

from eval.metrics.document import DocumentScore
from eval.pipeline import Pipeline
from eval.stages import Retriever, RetrieverWrapper, Selector, Verifier
from records import UserError

ScoreName = Literal["precision", "factscore", "f1_at_k"]


@dataclass(frozen=True)
class Defence:
    """A change to a pipeline. A field that is not set leaves the pipeline as it is.

    Args:
        retrieve: replaces the retriever.
        wrap_retrieve: takes the retriever and returns one that uses it, for example
            ``eval.retrieve.titles.TopicPage``.
        select: replaces the selector; only the claims that it keeps are scored.
        verify: replaces the verifiers.
        verdict: name of the verdict to score, for example ``grouped`` of D-FActScore.
        score: share of supported claims (``precision``), with FActScore's length penalty
            (``factscore``), or F1@K (``f1_at_k``, SAFE, 2403.18802, section 5).
        k: K of F1@K, the number of supported claims of a complete answer.
    """

    retrieve: Retriever | None = None
    wrap_retrieve: Callable[[Retriever], RetrieverWrapper] | None = None
    select: Selector | None = None
    verify: list[Verifier] | None = None
    verdict: str | None = None
    score: ScoreName | None = None
    k: PositiveInt | None = None

    def __post_init__(self):
        if (self.score == "f1_at_k") != (self.k is not None):
            raise UserError("defences: `k` and `score: f1_at_k` must be set together")

    def patch(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with this defence."""
        retrieve = self.retrieve or pipeline.retrieve
        return Pipeline(
            decompose=pipeline.decompose,
            verify=self.verify or pipeline.verify,
            retrieve=self.wrap_retrieve(retrieve) if self.wrap_retrieve else retrieve,
            select=self.select or pipeline.select,
            revise=pipeline.revise,
            gamma=pipeline.gamma,
        )

    def value(self, score: DocumentScore) -> float | None:
        """The score of a text: in [0, 1]; ``None`` if nothing could be judged."""
        if self.k is not None:
            return score.at_k(self.k).f1
        return score.factscore if self.score == "factscore" else score.precision

    def settings(self) -> dict[str, object]:
        """The fields that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


NO_DEFENCE = Defence()


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
