"""Do metrics agree better with people when they see the LSS? (2308.12157, section 6, Table 4.)

Of each claim with its reference every metric is taken in three forms: metric(reference, claim),
metric(claim, LSS) and metric(claim, LSS*). The LSS are people's own, where the file has them, and
those of any engines; the words that the reference has are a control that learned nothing. Each form
is correlated with the mean human rating of the claim (Pearson, Spearman), with intervals over
references, and what the LSS adds to metric(reference, claim) is given as a paired difference.

In ``results.json`` a result's ``kind`` is the engine whose LSS it is. References of any length are
read whole: the engines and metrics with a limited input read windows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from components.words import keep_targets
from eval.experiments.experiment import (
    Experiment,
    Found,
    at_least_one,
    by_generator,
    drawn,
    given,
    natural,
)
from eval.experiments.lss.lss_metrics_values import (
    ALL,
    HUMAN,
    LSS,
    NO_LSS,
    REFERENCE,
    SHARED,
    STAR,
    Column,
    values_of,
)
from eval.experiments.lss.lss_pairs import (
    ABOUT,
    QUESTION,
    ClaimPair,
    Judgement,
    Measured,
    by_people,
    distinct,
    excerpts,
    read_pairs,
)
from eval.models.lss import LssModel, SharedWords, subsequences_of
from eval.report.declare import Figure, Page, Table
from eval.run.run import CHUNK, Run
from eval.similarity import Measure
from eval.similarity.kept_words import kept_share
from records import UserError

TABLES = [
    Table(
        "Metrics and people",
        {"assessor": "Metric", "variant": "Form", "kind": "Engine", "generator": "Generator"},
        columns=["metric", "against"],
        metrics={
            "pearson": "Pearson with people",
            "spearman": "Spearman with people",
            "mean": "Mean score",
        },
        note="Table 4. Each metric in three forms, against people: correlation over the claims "
        "that both have, and what the LSS adds to another form, from the same draws of references. "
        "failed counts claims without a score, which the value leaves out: differences are over "
        "the claims that have both.",
    )
]
FIGURES = [
    Figure(
        "Highest correlation with people, by generator",
        "generator",
        ["variant", "kind"],
        {"pearson": ""},
        where={"against": None, "generator": lambda name: name != ALL},
        label="Pearson with people, best metric",
    )
]


@dataclass(eq=False)
class LssMetrics(Experiment):
    """The experiment.

    Args:
        pairs: generator to its file of references and claims; or files whose rows may name their
            ``generator`` (or ``system``) themselves. LSS records, WiCE's token rows, or rows of
            ``reference`` and ``claim`` alone.
        metrics: name to metric, e.g. eval.similarity.bleu.Bleu; here and below null leaves out one
            that a configuration names.
        lss: name to what finds LSS, e.g. eval.models.encoder.LssTagger with a checkpoint. People's
            own LSS, where the files have them, are ``human``.
        lss_star: name to what writes LSS*; an engine of the same name as one of ``lss`` shares its
            rows.
        target: what scores are correlated with: ``rating``, the mean rating of the claim; or
            ``factual``, the share of raters who judged it true (XSum's summaries, section 6.2); or
            ``kept_words``, the mean share of its words that people keep, where nobody gave either
            (WiCE); people's own LSS are then no engine, for they would be compared with themselves.
        control: also take the words of the claim that the reference has for an LSS, as
            ``shared words`` (:class:`eval.models.lss.SharedWords`).
        references: at most this many references, drawn at random; 0 for all.
        domain: named in the results.
        seed: of the draw and of the bootstrap.
    """

    name = "lss_metrics"
    page = Page(
        QUESTION,
        ABOUT,
        TABLES,
        FIGURES,
        texts=excerpts,
        terminal={"metric": "pearson", "generator": ALL},
    )

    pairs: dict[str, str] | list[str]
    metrics: dict[str, Measure | None]
    lss: dict[str, LssModel | None] = field(default_factory=dict)
    lss_star: dict[str, LssModel | None] = field(default_factory=dict)
    target: Literal["rating", "factual", "kept_words"] = "rating"
    control: bool = True
    references: int = 0
    domain: str = "wafer"
    seed: int = 0

    def __post_init__(self):
        for name in ("metrics", "lss", "lss_star"):
            setattr(self, name, given(getattr(self, name)))
        at_least_one(pairs=self.pairs, metrics=self.metrics)
        natural(references=self.references)
        for name in sorted({*self.lss, *self.lss_star} & {NO_LSS, HUMAN, SHARED}):
            raise UserError(f"lss: {name!r} is a name of the experiment's own; take another")

    def measure(self, run: Run) -> Found:
        pairs = self._read()
        target = np.asarray([_target(pair, self.target) for pair in pairs])
        if np.isnan(target).all():
            raise UserError(
                f"target: no pair has a {self.target}; take rating, factual or kept_words, "
                "whichever people gave, or experiment lss_generation for means without any"
            )
        measured = run.process("pairs", self._measure, pairs, Measured, CHUNK)
        found = values_of(
            _columns(measured),
            target,
            [one.pair.group for one in measured],
            [one.pair.generator for one in measured],
            self.seed,
        )
        return Found(found, {"pairs.jsonl": [row for one in measured for row in _rows(one)]})

    def _read(self) -> list[ClaimPair]:
        found = by_generator(self.pairs, read_pairs)
        groups = drawn((pair.group for pair in found), self.references, random.Random(self.seed))
        return distinct([pair for pair in found if pair.group in groups])

    def _measure(self, pairs: Sequence[ClaimPair]) -> list[Measured]:
        found: list[dict[str, Judgement]] = [{NO_LSS: Judgement()} for _ in pairs]
        for own, pair in zip(found, pairs, strict=True):
            if pair.annotations and self.target != "kept_words":
                own[HUMAN] = by_people(pair)
        questions = [(pair.claim, pair.reference) for pair in pairs]
        for name, engine in self._engines.items():
            for own, answer in zip(found, subsequences_of(engine, questions), strict=True):
                own[name] = Judgement(lss=answer.text, keep=answer.keep) if answer else Judgement()
        for name, engine in self.lss_star.items():
            for own, answer in zip(found, subsequences_of(engine, questions), strict=True):
                star = {"lss_star": answer.text if answer else None}
                own[name] = own.get(name, Judgement()).model_copy(update=star)
        jobs = [self._jobs(pair, own) for pair, own in zip(pairs, found, strict=True)]
        for metric, measure in self.metrics.items():
            asked = [texts for own in jobs for each in own.values() for texts in each]
            scores = iter(measure(asked).tolist())
            for own, answers in zip(jobs, found, strict=True):
                for (engine, form), each in own.items():
                    values = [next(scores) for _ in each]
                    known = bool(values) and not any(map(math.isnan, values))
                    mean = float(np.mean(values)) if known else None
                    answers[engine].scores.setdefault(form, {})[metric] = mean
        return [Measured(pair=p, engines=own) for p, own in zip(pairs, found, strict=True)]

    @property
    def _engines(self) -> dict[str, LssModel]:
        return self.lss | ({SHARED: SharedWords()} if self.control else {})

    def _jobs(self, pair: ClaimPair, found: dict[str, Judgement]) -> Jobs:
        jobs: Jobs = {(NO_LSS, REFERENCE): [(pair.reference, pair.claim)]}
        if HUMAN in found:
            stars = [a.lss_star for a in pair.annotations if a.lss_star is not None]
            jobs[HUMAN, LSS] = [(pair.claim, a.lss) for a in pair.annotations]
            if stars:
                jobs[HUMAN, STAR] = [(pair.claim, star) for star in stars]
        for name in self._engines:
            text = found[name].lss
            jobs[name, LSS] = [] if text is None else [(pair.claim, text)]
        for name in self.lss_star:
            text = found[name].lss_star
            jobs[name, STAR] = [] if text is None else [(pair.claim, text)]
        return jobs


# Engine and form to the (reference, candidate) pairs that its score is the mean of.
Jobs = dict[tuple[str, str], list[tuple[str, str]]]


def _columns(measured: Sequence[Measured]) -> list[Column]:
    names: dict[tuple[str, str, str], None] = {}
    for one in measured:
        for engine, found in one.engines.items():
            for form, scores in found.scores.items():
                names.update({(engine, metric, form): None for metric in scores})
    columns = []
    for engine, metric, form in names:
        own = [one.engines.get(engine, Judgement()).scores.get(form, {}) for one in measured]
        cells = [math.nan if scores.get(metric) is None else scores[metric] for scores in own]
        due = np.asarray([metric in scores for scores in own])
        columns.append(Column(engine, metric, form, np.asarray(cells), due))
    return columns


def _target(pair: ClaimPair, target: str) -> float:
    """What the scores of a pair are correlated with; NaN where nobody said."""
    if target == "rating":
        found = [a.rating for a in pair.annotations if a.rating is not None]
    elif target == "factual":
        found = [] if pair.factual is None else [pair.factual]
    else:
        words, kept, _ = keep_targets(pair.example()) if pair.annotations else ([], [], 0)
        found = [share for keep in kept if not math.isnan(share := kept_share(words, keep))]
    return float(np.mean(found)) if found else math.nan


def _rows(one: Measured) -> list[dict]:
    pair = one.pair
    rating = _target(pair, "rating")
    plain = _named(one.engines[NO_LSS])
    shared = {
        "rating": None if math.isnan(rating) else rating,
        "annotations": [a.model_dump(mode="json") for a in pair.annotations],
    }
    return [
        {
            "id": pair.id,
            "engine": engine,
            "generator": pair.generator,
            "reference": pair.reference,
            "claim": pair.claim,
            "lss": found.lss,
            "keep": found.keep,
            "lss_star": found.lss_star,
            "scores": plain | _named(found),
            **shared,
        }
        for engine, found in one.engines.items()
        if engine != NO_LSS
    ]


def _named(found: Judgement) -> dict[str, float | None]:
    return {m + form: v for form, scores in found.scores.items() for m, v in scores.items()}
