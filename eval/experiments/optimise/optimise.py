"""Does a defence hold while an adversary is trained against the metric, or against the defence?

Core (2407.03572, section 5) tries a metric with adversaries that imitate; here an adversary was
trained by DPO to please one (``train/preference.py``), with the defence in the metric or without,
and its texts of several steps of that training are scored, step by step. Nothing is trained or
written here: ``train fit --export_steps`` leaves the steps, ``data_builders generations`` samples
them.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from jsonargparse.typing import NonNegativeInt
from pydantic import BaseModel, Field, ValidationError

from components.sentences import split_sentences
from eval.experiments.experiment import Experiment, Found, at_least_one, drawn
from eval.experiments.optimise.optimise_page import PAGE
from eval.experiments.optimise.optimise_values import (
    Judged,
    distinct,
    gains,
    of_steps,
    relevance,
)
from eval.experiments.robustness.robustness_grid import Grid, Row
from eval.experiments.robustness.robustness_texts import read_texts
from eval.experiments.robustness.robustness_values import cells_of
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.select.core import Relevance
from eval.stages import Selector
from records import BadInput, Document, UserError, read_records, to_bad_input


class _Written(BaseModel):
    """Who wrote a text, and when; a table's column may have the step as text."""

    adversary: str
    step: int = Field(ge=0)


@dataclass(eq=False)
class Optimise(Experiment):
    """The experiment.

    Args:
        metrics: name to a pipeline without a selector: the metric that was trained against, and
            any other, which shows whether a gain carries over.
        adversaries: name of a training, e.g. ``against the metric``, to its steps, each with files
            of the texts written at it; or files whose rows say ``adversary`` and ``step``. The
            first step is what the others are compared with.
        texts: files of honest texts on the same topics; rows of another kind are left out.
        defences: name to a selector; ``none`` is always there.
        against: kind of the honest texts.
        relevance: who judges whether a sentence is relevant, e.g.
            ``eval.select.relevance.Prompted``; null: nobody does.
        topics: at most so many topics, drawn by the seed; 0 for all.
        domain: named in the results.
        seed: seed of the draw and of the bootstrap.
    """

    name = "optimise"
    page = PAGE

    metrics: dict[str, Pipeline]
    adversaries: dict[str, dict[int, list[str]]] | list[str]
    texts: list[str] = field(default_factory=list)
    defences: dict[str, Selector] = field(default_factory=dict)
    against: str = "normal"
    relevance: Relevance | None = None
    topics: NonNegativeInt = 0
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        at_least_one(metrics=self.metrics, adversaries=self.adversaries)

    def measure(self, run: Run) -> Found:
        """Score all texts under all metrics and defences.

        Beside the results ``texts.jsonl``: every text with its claims, verdicts and selections.
        """
        documents = self.documents()
        score = partial(self._score, run.config.get("metrics"))
        rows = run.process("texts", score, documents, Row)
        cells = cells_of(rows)
        values = [
            *of_steps(cells, self.seed),
            *gains(cells, self.against, self.seed),
            *distinct(rows, self.seed),
        ]
        if self.relevance is not None:
            judged = run.process("relevance", self._judge, documents, Judged)
            values += relevance(rows, judged, self.seed)
        return Found(values, {"texts.jsonl": rows}, {"against": self.against})

    def _score(self, config: dict | None, documents: Sequence[Document]) -> list[Row]:
        return Grid(self.metrics, self.defences, config)(documents)

    def _judge(self, documents: Sequence[Document]) -> list[Judged]:
        sentences = [split_sentences(document.text) for document in documents]
        found = self.relevance(documents, sentences)
        return [
            Judged(
                id=document.id,
                relevant=sum(one == 1 for one in own),
                irrelevant=sum(one == 0 for one in own),
                failed=sum(one is None for one in own),
            )
            for document, own in zip(documents, found, strict=True)
        ]

    def documents(self) -> list[Document]:
        """The texts that are scored: honest ones first, then each adversary's, step by step.

        An adversary's text has its adversary as its kind, and its step.
        """
        texts: dict[str, dict[int | None, list[Document]]] = {self.against: {None: self._honest()}}
        for adversary, step, document in self._written():
            texts.setdefault(adversary, {}).setdefault(step, []).append(document)
        for adversary, steps in texts.items():
            if adversary != self.against and len(steps) < 2:
                raise UserError(
                    f"adversaries: {adversary}: only step {min(steps)}; give the start and later "
                    "steps of its training"
                )
        every = {d.topic for steps in texts.values() for some in steps.values() for d in some}
        topics = drawn(every, self.topics, random.Random(self.seed))
        return [
            _as(document, kind, step, number)
            for kind, steps in texts.items()
            for step in sorted(steps, key=lambda step: step or 0)
            for number, document in enumerate(steps[step], 1)
            if document.topic in topics
        ]

    def _honest(self) -> list[Document]:
        honest = []
        for path in self.texts:
            texts, skipped = read_texts(path, self.against, len(self.texts))
            print(skipped, end="\n" * bool(skipped), file=sys.stderr)
            honest += texts
        return honest

    def _written(self) -> Iterator[tuple[str, int, Document]]:
        if isinstance(self.adversaries, dict):
            for adversary, steps in self.adversaries.items():
                if adversary == self.against:
                    name = f"adversaries: {adversary}"
                    raise UserError(f"{name}: so honest texts are called; rename it")
                for step, paths in steps.items():
                    for path in paths:
                        for document in read_records(path, Document):
                            yield adversary, step, document
            return
        for path in self.adversaries:
            for number, document in enumerate(read_records(path, Document), 1):
                more = document.model_extra or {}
                place = {n: more[n] for n in ("adversary", "step") if more.get(n) is not None}
                try:
                    written = _Written.model_validate(place)
                except ValidationError as error:
                    fault = to_bad_input(f"{path}:{number}", error)
                    say = "or name both for the file: adversaries: {NAME: {STEP: [FILE]}}"
                    raise BadInput([f"{fault}; {say}"]) from None
                yield written.adversary, written.step, document


def _as(document: Document, kind: str, step: int | None, number: int) -> Document:
    place = kind if step is None else f"{kind}, step {step}"
    return document.model_copy(update={"id": f"{place}: {number}", "kind": kind, "step": step})
