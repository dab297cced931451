"""Does a defence hold while an adversary is trained against the metric, or against the defence?

Core (2407.03572, section 5) tries a metric with adversaries that imitate; here an adversary was
trained by DPO to please one (``train/preference.py``), with the defence in the metric or without,
and its texts of several steps of that training are scored, step by step. Nothing is trained or
written here: ``train fit --export_steps`` leaves the steps, ``data_builders generations`` samples
them.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from pydantic import BaseModel, NonNegativeInt, ValidationError

from components.sentences import split_sentences
from eval.experiments.experiment import Experiment, Found, at_least_one, drawn, natural
from eval.experiments.optimise.page import PAGE
from eval.experiments.optimise.values import Judged, distinct, gains, of_steps, relevance, step_of
from eval.experiments.robustness.grid import Grid, Row
from eval.experiments.robustness.values import cells_of
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.select.core import Relevance
from eval.stages import Selector
from records import BadInput, Document, UserError, first_fault, read_records


class _Written(BaseModel):
    """Who wrote a text, and when; a table's column may have the step as text."""

    adversary: str
    step: NonNegativeInt


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

    def __init__(
        self,
        metrics: dict[str, Pipeline],
        adversaries: dict[str, dict[int, list[str]]] | list[str],
        texts: list[str] = [],  # noqa: B006 (jsonargparse shows it in --help)
        defences: dict[str, Selector] = {},  # noqa: B006
        against: str = "normal",
        relevance: Relevance | None = None,
        topics: int = 0,
        domain: str = "biographies",
        seed: int = 0,
    ):
        at_least_one(metrics=metrics, adversaries=adversaries)
        natural(topics=topics)
        self.metrics = metrics
        self.adversaries = adversaries
        self.texts = texts
        self.defences = defences
        self.against = against
        self.relevance = relevance
        self.topics = topics
        self.domain = domain
        self.seed = seed

    def measure(self, run: Run) -> Found:
        """Score all texts under all metrics and defences.

        Beside the results ``texts.jsonl``: every text with its claims, verdicts and selections.
        """
        documents = self.documents()
        score = partial(self._score, run.config.get("metrics"))
        rows = run.documents("texts", score, documents, Row)
        cells = cells_of(rows)
        values = [
            *of_steps(cells, self.seed),
            *gains(cells, self.against, self.seed),
            *distinct(rows, self.seed),
        ]
        if self.relevance is not None:
            judged = run.documents("relevance", self._judge, documents, Judged)
            values += relevance(rows, judged, self.seed)
        counts = Counter((d.kind, step_of(d)) for d in documents)
        told = {
            "against": self.against,
            "texts": [[*place, number] for place, number in counts.items()],
        }
        return Found(values, {"texts.jsonl": rows}, told)

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

        Raises:
            BadInput: a row without adversary or step.
        """
        found = {(self.against, None): self._honest()} | self._written()
        every = {document.topic for own in found.values() for document in own}
        topics = drawn(every, self.topics, random.Random(self.seed))
        return [
            _as(document, kind, step, number)
            for (kind, step), own in found.items()
            for number, document in enumerate(own, 1)
            if document.topic in topics
        ]

    def _honest(self) -> list[Document]:
        found = []
        for path in self.texts:
            read = read_records(path, Document)
            own = [document for document in read if document.kind in (None, self.against)]
            if not own:
                raise UserError(f"{path}: no text of kind {self.against!r}")
            if len(own) < len(read):
                left = f"{len(read) - len(own)} texts that are not {self.against}"
                print(f"{path}: left out: {left}", file=sys.stderr)
            found += own
        return found

    def _written(self) -> dict[tuple[str, int], list[Document]]:
        found: dict[str, dict[int, list[Document]]] = {}
        for adversary, step, document in self._read():
            found.setdefault(adversary, {}).setdefault(step, []).append(document)
        for adversary, steps in found.items():
            if adversary == self.against:
                raise UserError(f"adversaries: {adversary}: so honest texts are called; rename it")
            if len(steps) < 2:
                raise UserError(
                    f"adversaries: {adversary}: only step {min(steps)}; give the start and later "
                    "steps of its training"
                )
        return {(name, step): found[name][step] for name in found for step in sorted(found[name])}

    def _read(self) -> Iterator[tuple[str, int, Document]]:
        if isinstance(self.adversaries, dict):
            for adversary, steps in self.adversaries.items():
                if not steps:
                    raise UserError(f"adversaries: {adversary}: no text; give files of its steps")
                for step, paths in steps.items():
                    if not paths:
                        raise UserError(f"adversaries: {adversary}: {step}: no text; give files")
                    for path in paths:
                        for document in read_records(path, Document):
                            yield adversary, step, document
            return
        for path in self.adversaries:
            for place, document in enumerate(read_records(path, Document), 1):
                more = document.model_extra or {}
                told = {n: more[n] for n in ("adversary", "step") if more.get(n) is not None}
                try:
                    written = _Written.model_validate(told)
                except ValidationError as error:
                    fault = first_fault(f"{path}:{place}", error)
                    say = "or name both for the file: adversaries: {NAME: {STEP: [FILE]}}"
                    raise BadInput([f"{fault}; {say}"]) from None
                yield written.adversary, written.step, document


def _as(document: Document, kind: str, step: int | None, number: int) -> Document:
    place = kind if step is None else f"{kind}, step {step}"
    return document.model_copy(update={"id": f"{place}: {number}", "kind": kind, "step": step})
