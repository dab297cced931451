"""Does a defence hold while an adversary is trained against the metric, or against the defence?

Core (2407.03572, section 5) tries a metric with adversaries that imitate; here an adversary was
trained by DPO to please one (``train/preference.py``), with the defence in the metric or without,
and its texts of several steps of that training are scored. The texts of a step are an attack, with
a verdict as in ``eval/experiments/robustness``. Nothing is trained or written here: ``train fit
--export_steps`` leaves the steps, ``data_builders generations`` samples them.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from jsonargparse.typing import NonNegativeInt, PositiveInt
from pydantic import BaseModel, Field, ValidationError

from components.gold import add_label_gold
from components.sentences import split_sentences
from eval.defences import Defence
from eval.experiments.experiment import Experiment, Outcome, require_entries
from eval.experiments.optimise.optimise_page import PAGE
from eval.experiments.optimise.optimise_values import (
    RelevanceCounts,
    best_of_values,
    distinct_values,
    gold_cells,
    relevance_values,
)
from eval.experiments.robustness.robustness_cells import cells_of
from eval.experiments.robustness.robustness_grid import Grid, TextScores
from eval.experiments.robustness.robustness_texts import draw_topics, read_texts, report_unpaired
from eval.experiments.robustness.robustness_values import ladder_values, score_values
from eval.experiments.robustness.robustness_verdicts import (
    attack_values,
    attacks_of,
    ladders_of,
)
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.stages import Relevance
from records import BadInput, Document, read_records, to_bad_input
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
            of the texts written at it; or files whose rows say ``adversary`` and ``step``. A text
            needs a gold score, or labelled claims, for a verdict.
        texts: kind of honest texts to its files; rows of another kind are left out. The first kind
            is the ladder that an adversary's texts are compared with, on the same topics.
        defences: name to a change of the pipelines; ``none`` is always included.
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
    texts: dict[str, list[str]] = field(default_factory=dict)
    defences: dict[str, Defence] = field(default_factory=dict)
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
        for line in report_unpaired(documents, [*self.texts]) if self.texts else ():
            print(f"skipped {line}", file=sys.stderr)
        config = {name: run.config.get(name) for name in ("metrics", "defences")}
        rows = run.process("texts", partial(self._score, config), documents, TextScores)
        defences = self._grid().defences
        cells = cells_of(rows, defences)
        provenance = {"honest": [*self.texts]}
        if self.best_of:
            values = list(best_of_values(cells, self.best_of, self.seed))
            return Outcome(values, {"texts.jsonl": rows}, provenance)
        scores = score_values(cells | gold_cells(rows), defences, (), self.seed)
        values = [value for value in scores if value["variant"] is None]
        values += distinct_values(rows, self.seed)
        if self.texts:
            ladders = ladders_of(cells, [*self.texts], self.seed)
            attacks = attacks_of(cells, ladders)
            values += [*ladder_values(ladders), *attack_values(attacks, (), len(attacks))]
        if self.relevance is not None:
            judged = run.process("relevance", self._judge, documents, RelevanceCounts)
            values += relevance_values(rows, judged, self.seed)
        places = {d.kind: d.model_extra for d in documents if d.kind not in self.texts}
        for value in values:
            if value["kind"] in places:
                place = places[value["kind"]]
                value |= {"kind": place["adversary"], "variant": place["step"]}
        return Outcome(values, {"texts.jsonl": rows}, provenance)

    def _grid(self, config: dict | None = None) -> Grid:
        return Grid(self.metrics, self.defences, config=config)

    def _score(self, config: dict, documents: Sequence[Document]) -> list[TextScores]:
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

        The kind of an adversary's text names its adversary and step.
        """
        texts = {kind: list(self._honest(kind)) for kind in self.texts}
        steps: dict[str, dict[int, list[Document]]] = defaultdict(lambda: defaultdict(list))
        for adversary, step, document in self._written():
            place = {"adversary": adversary, "step": step}
            steps[adversary][step].append(document.model_copy(update=place))
        for adversary, by_step in steps.items():
            for step in sorted(by_step):
                texts[f"{adversary}, step {step}"] = by_step[step]
        documents = [
            document.model_copy(update={"id": f"{kind}: {number}", "kind": kind})
            for kind, of_kind in texts.items()
            for number, document in enumerate(of_kind, 1)
        ]
        ladder = next(iter(self.texts), "")
        topics = draw_topics(documents, ladder, None, self.topics, self.seed)
        return add_label_gold([d for d in documents if d.topic in topics], "labels")

    def _honest(self, kind: str) -> Iterator[Document]:
        for path in self.texts[kind]:
            texts, skipped = read_texts(path, kind, len(self.texts[kind]))
            print(f"skipped {skipped}" * bool(skipped), end="\n" * bool(skipped), file=sys.stderr)
            yield from texts

    def _written(self) -> Iterator[tuple[str, int, Document]]:
        if isinstance(self.adversaries, dict):
            for adversary, steps in self.adversaries.items():
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
