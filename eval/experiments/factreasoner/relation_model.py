"""How well does a relation model tell entailment and contradiction? (2502.18573, Figures 6–10.)

ROC curves on FACTOR (2307.06908): a passage with the sentence that goes on, and up to three false
ones that were made from it by small changes. FactReasoner's code does not say what its pairs were;
ours are, for each row:

- entailment: the premise with the true sentence in it, and the true sentence;
- contradiction: the same premise, and each false sentence;
- neutral: the premise of another document, drawn with the seed, and the true sentence.

The curve of entailment takes p(entailment) as its score and that of contradiction p(contradiction);
each against both other kinds together, and against the opposite kind alone, which shares all but a
few words with it.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from eval.experiments.experiment import Experiment, Found, at_least_one, drawn, natural
from eval.experiments.factreasoner.relation_model_values import (
    JudgedPair,
    Pair,
    curves_of,
    measures_of,
)
from eval.report.declare import Page, Plot, Table, rows_in
from eval.run.run import Run
from eval.stages import EntailmentModel
from records import ResultFile, UserError, read_records
from records.types import Record

_ROWS = {"domain": "File", "assessor": "Model"}
TABLES = [
    Table(
        "AUROC",
        _ROWS,
        ["kind"],
        {"auroc": "AUROC"},
        where={"against": None},
        note="Area under the ROC curve, 0.5 is chance. A curve against the opposite kind alone has "
        "pairs that differ in a few words of the hypothesis.",
    ),
    Table(
        "Differences of AUROC",
        {**_ROWS, "against": "less that of"},
        ["kind"],
        {"auroc": "AUROC"},
        where={"against": lambda name: name is not None},
        note="Of two models on the same pairs.",
    ),
    Table(
        "Likeliest relation",
        _ROWS,
        ["kind"],
        {"called_so": "share"},
        note="Share of the pairs of a kind whose likeliest relation it is.",
    ),
    Table(
        "Thresholds",
        {**_ROWS, "kind": "Curve", "variant": "Probability"},
        metrics={
            "true_positive_rate": "true positives",
            "false_positive_rate": "false positives",
        },
        note="Share of the positives, and of the negatives, at or above a probability.",
    ),
]
MAX_CORNERS = 400  # of a curve in a drawing


def _roc_curves(file: ResultFile, folder: Path) -> Iterator[Plot]:
    pairs = [JudgedPair.model_validate(row) for row in rows_in(folder / "pairs.jsonl")]
    for (name, curve), lines in curves_of(pairs).items():
        series = {"chance": [(0.0, 0.0, None), (1.0, 1.0, None)]}
        for model, (false, true) in lines.items():
            points = list(zip(false.tolist(), true.tolist(), strict=True))
            step = max(1, len(points) // MAX_CORNERS)
            series[model] = [(x, y, None) for x, y in [*points[:-1:step], points[-1]]]
        title = f"ROC of {curve.relation} against {curve.negatives}, {name}"
        labels = ("false positive rate", "true positive rate")
        yield Plot(title, "lines", series, *labels, top=1.02, square=True)


class FactorRow(Record):
    """A row of FACTOR, by its published field names.

    Attributes:
        turncated_prefixes: the prefix as FACTOR's own evaluation reads it, where the file has it.
    """

    full_prefix: str = ""
    doc_id: str | int
    completion: str = ""
    contradiction_0: str = ""
    contradiction_1: str = ""
    contradiction_2: str = ""
    turncated_prefixes: str | None = None

    @property
    def false_ones(self) -> list[str]:
        """The false sentences that are there."""
        every = (self.contradiction_0, self.contradiction_1, self.contradiction_2)
        return [text.strip() for text in every if text.strip()]


@dataclass(eq=False)
class RelationModel(Experiment):
    """The experiment.

    Args:
        factor: name to a FACTOR file (CSV, JSONL).
        relations: name to relation model, e.g. eval.models.encoder.Entailment with a checkpoint.
        premise: ``passage`` is the prefix with the true sentence behind it, ``completion`` the
            true sentence alone (the entailment pairs are then two equal texts).
        thresholds: probabilities for the table of true and false positive rates.
        documents: at most this many documents of a file, drawn at random; 0 for all.
        seed: of the draws and of the bootstrap.
    """

    name = "relation_model"
    page = Page(
        "Which relations does the model see?",
        "Relation models on FACTOR (Figures 6–10 of arXiv 2502.18573). Entailment: a passage and "
        "its own true sentence. Contradiction: the same passage and a sentence that was made false "
        "by a small change. Neutral: the passage of another document. n counts documents; brackets "
        "hold 95 % bootstrap intervals over documents. A pair that a model failed on is left out "
        "for all models and counted.",
        TABLES,
        [_roc_curves],
        terminal={"variant": None},
    )
    in_chunks = False

    factor: dict[str, str]
    relations: dict[str, EntailmentModel]
    premise: Literal["passage", "completion"] = "passage"
    thresholds: list[float] = field(default_factory=lambda: [0.1, 0.3, 0.5, 0.7, 0.9])
    documents: int = 0
    seed: int = 0

    def __post_init__(self):
        at_least_one(factor=self.factor, relations=self.relations)
        natural(documents=self.documents)
        if not all(0 < threshold < 1 for threshold in self.thresholds):
            raise UserError(f"thresholds: {self.thresholds}; give probabilities between 0 and 1")

    def measure(self, run: Run) -> Found:
        values, judged, left_out = [], [], Counter()
        for name, path in self.factor.items():
            pairs = self._pairs(path, left_out)
            found = {
                model: judge.relations([(pair.premise, pair.hypothesis) for pair in pairs])
                for model, judge in self.relations.items()
            }
            judged += [
                _judged(name, model, pair, row)
                for model, table in found.items()
                for pair, row in zip(pairs, np.asarray(table, dtype=float).tolist(), strict=True)
            ]
            values += measures_of(pairs, found, self.thresholds, self.seed, name)
        return Found(values, {"pairs.jsonl": judged}, {"left_out": dict(left_out)})

    def _pairs(self, path: str, left_out: Counter) -> list[Pair]:
        rows = read_records(path, FactorRow)
        whole = [row for row in rows if row.completion.strip() and row.false_ones]
        left_out["rows without a true or a false sentence"] += len(rows) - len(whole)
        rng = random.Random(self.seed)
        names = drawn((str(row.doc_id) for row in whole), self.documents, rng)
        whole = [row for row in whole if str(row.doc_id) in names]
        if not whole:
            raise UserError(f"{path}: no row has a true and a false sentence")
        by_document: dict[str, list[str]] = {}
        for row in whole:
            by_document.setdefault(str(row.doc_id), []).append(self._premise(row))
        pairs = []
        for row in whole:
            own, true, text = str(row.doc_id), row.completion.strip(), self._premise(row)
            pairs.append(Pair(own, "entailment", text, true))
            pairs += [Pair(own, "contradiction", text, false) for false in row.false_ones]
            others = [name for name in by_document if name != own]
            if others:
                foreign = rng.choice(by_document[rng.choice(others)])
                pairs.append(Pair(own, "neutral", foreign, true))
        return pairs

    def _premise(self, row: FactorRow) -> str:
        true = row.completion.strip()
        if self.premise == "completion":
            return true
        return f"{(row.turncated_prefixes or row.full_prefix).strip()} {true}".strip()


def _judged(file: str, model: str, pair: Pair, row: Sequence[float]) -> JudgedPair:
    p = None if any(map(math.isnan, row)) else tuple(round(value, 6) for value in row)
    return JudgedPair(file=file, document=pair.document, label=pair.label, model=model, p=p)
