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

from jsonargparse.typing import NonNegativeInt, PositiveInt
from pydantic import BaseModel, Field, ValidationError

from components.sentences import split_sentences
from eval.defences import Defence
from eval.experiments.experiment import Experiment, Outcome, draw_names, require_entries
from eval.experiments.optimise.optimise_page import PAGE
from eval.experiments.optimise.optimise_values import (
    Relevance as RelevanceCounts,
)
from eval.experiments.optimise.optimise_values import (
    best_of_values,
    distinct_values,
    gain_values,
    gold_cells,
    relevance_values,
    step_values,
)
from eval.experiments.robustness.robustness_cells import cells_of
from eval.experiments.robustness.robustness_grid import Grid, Row
from eval.experiments.robustness.robustness_texts import read_texts
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.stages import Relevance
from records import BadInput, Document, UserError, read_records, to_bad_input
from records.cleaning import clean


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
        defences: name to a change of the pipelines; ``none`` is always included.
        against: kind of the honest texts.
        best_of: numbers N: proxy and gold of the best of N texts of a topic, instead of values by
            step (best-of-N, Gao et al. 2210.10760); several texts per topic, and one step will do.
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
    defences: dict[str, Defence] = field(default_factory=dict)
    against: str = "normal"
    best_of: list[PositiveInt] = field(default_factory=list)
    relevance: Relevance | None = None
    topics: NonNegativeInt = 0
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        require_entries(metrics=self.metrics, adversaries=self.adversaries)

    def measure(self, run: Run) -> Outcome:
        """Score all texts under all metrics and defences.

        Writes ``texts.jsonl`` next to the results: texts, claims, verdicts, selections.
        """
        documents = self.documents()
        config = {name: run.config.get(name) for name in ("metrics", "defences")}
        rows = run.process("texts", partial(self._score, config), documents, Row)
        defences = self._grid().defences
        cells = cells_of(rows, defences)
        if self.best_of:
            values = list(best_of_values(cells, self.best_of, self.seed))
            return Outcome(values, {"texts.jsonl": rows}, {"against": self.against})
        cells |= gold_cells(rows)
        values = [
            *step_values(cells, defences, self.seed),
            *gain_values(cells, self.against),
            *distinct_values(rows, self.seed),
        ]
        if self.relevance is not None:
            judged = run.process("relevance", self._judge, documents, RelevanceCounts)
            values += relevance_values(rows, judged, self.seed)
        return Outcome(values, {"texts.jsonl": rows}, {"against": self.against})

    def _grid(self, config: dict | None = None) -> Grid:
        return Grid(self.metrics, self.defences, config=config)

    def _score(self, config: dict, documents: Sequence[Document]) -> list[Row]:
        return self._grid(config)(documents)

    def _judge(self, documents: Sequence[Document]) -> list[RelevanceCounts]:
        sentences = [split_sentences(clean(document.text).text) for document in documents]
        judged = self.relevance(documents, sentences)
        return [
            RelevanceCounts(
                id=document.id,
                relevant=sum(label == 1 for label in labels),
                irrelevant=sum(label == 0 for label in labels),
                failed=sum(label is None for label in labels),
            )
            for document, labels in zip(documents, judged, strict=True)
        ]

    def documents(self) -> list[Document]:
        """The texts that are scored: honest ones first, then each adversary's, step by step.

        An adversary's text has its adversary as its kind, and its step.
        """
        texts: dict[str, dict[int | None, list[Document]]] = {self.against: {None: self._honest()}}
        for adversary, step, document in self._written():
            texts.setdefault(adversary, {}).setdefault(step, []).append(document)
        for adversary, steps in texts.items():
            if adversary != self.against and len(steps) < 2 and not self.best_of:
                raise UserError(
                    f"adversaries: {adversary}: only step {min(steps)}; give the start and later "
                    "steps of its training"
                )
        all_topics = {d.topic for steps in texts.values() for some in steps.values() for d in some}
        topics = draw_names(all_topics, self.topics, random.Random(self.seed))
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
            print(f"skipped {skipped}" * bool(skipped), end="\n" * bool(skipped), file=sys.stderr)
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
