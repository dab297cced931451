"""Do metrics correlate better with people if they use the LSS? (2308.12157, section 6, Table 4.)

Each metric is computed in three forms: metric(reference, claim), metric(claim, LSS) and
metric(claim, LSS*). Each form is correlated with the mean human rating of the claim, with intervals
over references. Differences to metric(reference, claim) are paired. In ``results.json`` a result's
``kind`` is the engine of the LSS.
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
    Outcome,
    draw_names,
    drop_nulls,
    read_by_generator,
    require_entries,
    require_non_negative,
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
    compute_values,
)
from eval.experiments.lss.lss_pairs import (
    ABOUT,
    QUESTION,
    ClaimPair,
    Judgement,
    Measured,
    excerpts,
    make_ids_unique,
    merge_annotations,
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
        note="Table 4. Correlation of each metric in three forms with people, and paired "
        "differences between forms, from the same bootstrap draws of references. failed counts "
        "claims without a score, which are excluded; differences are over claims with both scores.",
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
    """Correlate metrics with human ratings, with and without LSS.

    Args:
        pairs: generator to its file of references and claims; or a list of files whose rows may
            have a ``generator`` (or ``system``). LSS records, WiCE's token rows, or rows of
            ``reference`` and ``claim``.
        metrics: name to metric, e.g. eval.similarity.bleu.Bleu; here and below null removes an
            entry of the configuration.
        lss: name to LSS model, e.g. eval.models.encoder.LssTagger with a checkpoint. People's LSS
            in the files are ``human``.
        lss_star: name to model for LSS*; an engine with the same name in ``lss`` shares its rows.
        target: correlate scores with ``rating``, the mean rating of the claim; ``factual``, the
            share of raters who judged it true (XSum, section 6.2); or ``kept_words``, the mean
            share of words that people keep (e.g. WiCE), which excludes people's LSS as an engine.
        control: add the untrained engine ``shared words``, which keeps the words that the reference
            contains (:class:`eval.models.lss.SharedWords`).
        references: maximum number of references, sampled at random; 0 for all.
        domain: domain in the results.
        seed: seed of the sampling and the bootstrap.
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
            setattr(self, name, drop_nulls(getattr(self, name)))
        require_entries(pairs=self.pairs, metrics=self.metrics)
        require_non_negative(references=self.references)
        for name in sorted({*self.lss, *self.lss_star} & {NO_LSS, HUMAN, SHARED}):
            raise UserError(f"lss: {name!r} is a reserved name; use another one")

    def measure(self, run: Run) -> Outcome:
        pairs = self._read()
        target = np.asarray([target_of(pair, self.target) for pair in pairs])
        if np.isnan(target).all():
            raise UserError(
                f"target: no pair has a {self.target}; use rating, factual or kept_words, or run "
                "experiment lss_generation, which needs no target"
            )
        measured = run.process("pairs", self.score_pairs, pairs, Measured, CHUNK)
        values = compute_values(
            score_columns(measured),
            target,
            [row.pair.group for row in measured],
            [row.pair.generator for row in measured],
            self.seed,
        )
        return Outcome(values, {"pairs.jsonl": [line for row in measured for line in _rows(row)]})

    def _read(self) -> list[ClaimPair]:
        pairs = read_by_generator(self.pairs, read_pairs)
        groups = draw_names(
            (pair.group for pair in pairs), self.references, random.Random(self.seed)
        )
        return make_ids_unique([pair for pair in pairs if pair.group in groups])

    def score_pairs(self, pairs: Sequence[ClaimPair]) -> list[Measured]:
        """Score each pair in all forms."""
        judgements: list[dict[str, Judgement]] = [{NO_LSS: Judgement()} for _ in pairs]
        for by_engine, pair in zip(judgements, pairs, strict=True):
            if pair.annotations and self.target != "kept_words":
                by_engine[HUMAN] = merge_annotations(pair)
        questions = [(pair.claim, pair.reference) for pair in pairs]
        for name, engine in self._engines.items():
            answers = subsequences_of(engine, questions)
            for by_engine, lss in zip(judgements, answers, strict=True):
                by_engine[name] = Judgement(lss=lss.text, keep=lss.keep) if lss else Judgement()
        for name, engine in self.lss_star.items():
            answers = subsequences_of(engine, questions)
            for by_engine, lss in zip(judgements, answers, strict=True):
                star = {"lss_star": lss.text if lss else None}
                by_engine[name] = by_engine.get(name, Judgement()).model_copy(update=star)
        jobs = [self._jobs(pair, rows) for pair, rows in zip(pairs, judgements, strict=True)]
        for metric, measure in self.metrics.items():
            text_pairs = [texts for forms in jobs for form in forms.values() for texts in form]
            scores = iter(measure(text_pairs).tolist())
            for forms, by_engine in zip(jobs, judgements, strict=True):
                for (engine, form), texts in forms.items():
                    values = [next(scores) for _ in texts]
                    complete = bool(values) and not any(map(math.isnan, values))
                    mean = float(np.mean(values)) if complete else None
                    by_engine[engine].scores.setdefault(form, {})[metric] = mean
        return [Measured(pair=p, engines=rows) for p, rows in zip(pairs, judgements, strict=True)]

    @property
    def _engines(self) -> dict[str, LssModel]:
        return self.lss | ({SHARED: SharedWords()} if self.control else {})

    def _jobs(self, pair: ClaimPair, by_engine: dict[str, Judgement]) -> Jobs:
        jobs: Jobs = {(NO_LSS, REFERENCE): [(pair.reference, pair.claim)]}
        if HUMAN in by_engine:
            stars = [a.lss_star for a in pair.annotations if a.lss_star is not None]
            jobs[HUMAN, LSS] = [(pair.claim, a.lss) for a in pair.annotations]
            if stars:
                jobs[HUMAN, STAR] = [(pair.claim, star) for star in stars]
        for name in self._engines:
            text = by_engine[name].lss
            jobs[name, LSS] = [] if text is None else [(pair.claim, text)]
        for name in self.lss_star:
            text = by_engine[name].lss_star
            jobs[name, STAR] = [] if text is None else [(pair.claim, text)]
        return jobs


# Engine and form to (reference, candidate) pairs; the score is the mean over them.
Jobs = dict[tuple[str, str], list[tuple[str, str]]]


def score_columns(measured: Sequence[Measured]) -> list[Column]:
    """Return one column per engine, metric and form."""
    names: dict[tuple[str, str, str], None] = {}
    for row in measured:
        for engine, judgement in row.engines.items():
            for form, scores in judgement.scores.items():
                names.update({(engine, metric, form): None for metric in scores})
    columns = []
    for engine, metric, form in names:
        by_metric = [row.engines.get(engine, Judgement()).scores.get(form, {}) for row in measured]
        cells = [math.nan if scores.get(metric) is None else scores[metric] for scores in by_metric]
        due = np.asarray([metric in scores for scores in by_metric])
        columns.append(Column(engine, metric, form, np.asarray(cells), due))
    return columns


def target_of(pair: ClaimPair, target: str) -> float:
    """Return what the scores of a pair are correlated with; NaN if unknown."""
    if target == "rating":
        values = [a.rating for a in pair.annotations if a.rating is not None]
    elif target == "factual":
        values = [] if pair.factual is None else [pair.factual]
    else:
        words, kept, _ = keep_targets(pair.example()) if pair.annotations else ([], [], 0)
        values = [share for keep in kept if not math.isnan(share := kept_share(words, keep))]
    return float(np.mean(values)) if values else math.nan


def _rows(measured: Measured) -> list[dict]:
    pair = measured.pair
    rating = target_of(pair, "rating")
    plain = _named_scores(measured.engines[NO_LSS])
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
            "lss": judgement.lss,
            "keep": judgement.keep,
            "lss_star": judgement.lss_star,
            "scores": plain | _named_scores(judgement),
            **shared,
        }
        for engine, judgement in measured.engines.items()
        if engine != NO_LSS
    ]


def _named_scores(judgement: Judgement) -> dict[str, float | None]:
    return {m + form: v for form, scores in judgement.scores.items() for m, v in scores.items()}
