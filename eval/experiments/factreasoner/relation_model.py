"""ROC curves of relation models for entailment and contradiction (2502.18573, Figures 6–10).

The data is FACTOR (2307.06908): a passage with its next sentence, and up to three false variants of
that sentence. FactReasoner's pairs are not documented. Ours are, per row:

- entailment: the premise with the true sentence in it, and the true sentence;
- contradiction: the same premise, and each false sentence;
- neutral: the premise of another, randomly drawn document, and the true sentence.

The negatives of a curve are both other kinds, or the opposite kind alone.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eval.experiments.experiment import (
    Experiment,
    Outcome,
    draw_names,
    drop_nulls,
    require_entries,
    require_non_negative,
)
from eval.experiments.factreasoner.relation_model_values import (
    JudgedPair,
    Pair,
    compute_curves,
    compute_measures,
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
        note="Area under the ROC curve; 0.5 is chance. Pairs of entailment and contradiction "
        "differ in a few words of the hypothesis.",
    ),
    Table(
        "Differences of AUROC",
        {**_ROWS, "against": "minus"},
        ["kind"],
        {"auroc": "AUROC"},
        where={"against": lambda name: name is not None},
        note="Two models on the same pairs.",
    ),
    Table(
        "Likeliest relation",
        _ROWS,
        ["kind"],
        {"called_so": "share"},
        note="Share of pairs whose likeliest relation is correct.",
    ),
    Table(
        "Thresholds",
        {**_ROWS, "kind": "Curve", "variant": "Probability"},
        metrics={"true_positive_rate": "true positives", "false_positive_rate": "false positives"},
        note="Share of positives and negatives with at least this probability.",
    ),
]
MAX_CORNERS = 400  # maximum number of points per plotted curve


def _roc_curves(file: ResultFile, folder: Path) -> Iterator[Plot]:
    pairs = [JudgedPair.model_validate(row) for row in rows_in(folder / "pairs.jsonl")]
    for (name, curve), lines in compute_curves(pairs).items():
        series = {"chance": [(0.0, 0.0, None), (1.0, 1.0, None)]}
        for model, (false, true) in lines.items():
            points = list(zip(false.tolist(), true.tolist(), strict=True))
            step = max(1, len(points) // MAX_CORNERS)
            series[model] = [(x, y, None) for x, y in [*points[:-1:step], points[-1]]]
        title = f"ROC of {curve.relation} against {curve.negatives}, {name}"
        labels = ("false positive rate", "true positive rate")
        yield Plot(title, "lines", series, *labels, top=1.02, square=True)


class FactorRow(Record):
    """A row of FACTOR, with its published field names."""

    full_prefix: str = ""
    doc_id: str | int
    completion: str = ""
    contradiction_0: str = ""
    contradiction_1: str = ""
    contradiction_2: str = ""
    turncated_prefixes: str | None = None

    @property
    def false_sentences(self) -> list[str]:
        sentences = (self.contradiction_0, self.contradiction_1, self.contradiction_2)
        return [text.strip() for text in sentences if text.strip()]


@dataclass(eq=False)
class RelationModel(Experiment):
    """Compute ROC curves of relation models on FACTOR.

    Args:
        factor: name to a FACTOR file (CSV, JSONL).
        relations: name to relation model, e.g. eval.models.encoder.Entailment with a checkpoint;
            null leaves one out.
        thresholds: probabilities for the table of true and false positive rates.
        documents: maximum number of documents per file, sampled at random; 0 for all.
        seed: seed of the sampling and the bootstrap.
    """

    name = "relation_model"
    page = Page(
        "Which relations does the model detect?",
        "Relation models on FACTOR (Figures 6–10 of arXiv 2502.18573). Entailment: a passage and "
        "its true sentence. Contradiction: the same passage and a sentence with a false detail. "
        "Neutral: the passage of another document. n counts documents; brackets are 95 % bootstrap "
        "intervals. Pairs on which a model failed are counted and excluded for all models.",
        TABLES,
        [_roc_curves],
        terminal={"variant": None},
    )
    in_chunks = False

    factor: dict[str, str]
    relations: dict[str, EntailmentModel | None]
    thresholds: list[float] = field(default_factory=lambda: [0.1, 0.3, 0.5, 0.7, 0.9])
    documents: int = 0
    seed: int = 0

    def __post_init__(self):
        self.relations = drop_nulls(self.relations)
        require_entries(factor=self.factor, relations=self.relations)
        require_non_negative(documents=self.documents)
        if not all(0 < threshold < 1 for threshold in self.thresholds):
            raise UserError(f"thresholds: expected values between 0 and 1, got {self.thresholds}")

    def measure(self, run: Run) -> Outcome:
        values, judged, skipped = [], [], Counter()
        for name, path in self.factor.items():
            pairs = self._pairs(path, skipped)
            by_model = {
                model: judge.relations([(pair.premise, pair.hypothesis) for pair in pairs])
                for model, judge in self.relations.items()
            }
            judged += [
                _judged(name, model, pair, row)
                for model, table in by_model.items()
                for pair, row in zip(pairs, np.asarray(table, dtype=float).tolist(), strict=True)
            ]
            values += compute_measures(pairs, by_model, self.thresholds, self.seed, name)
        return Outcome(values, {"pairs.jsonl": judged}, {"left_out": dict(skipped)})

    def _pairs(self, path: str, skipped: Counter) -> list[Pair]:
        rows = read_records(path, FactorRow)
        complete = [row for row in rows if row.completion.strip() and row.false_sentences]
        skipped["rows without a true or a false sentence"] += len(rows) - len(complete)
        rng = random.Random(self.seed)
        names = draw_names((str(row.doc_id) for row in complete), self.documents, rng)
        complete = [row for row in complete if str(row.doc_id) in names]
        if not complete:
            raise UserError(f"{path}: no row has a true and a false sentence")
        by_document: dict[str, list[str]] = {}
        for row in complete:
            by_document.setdefault(str(row.doc_id), []).append(_premise(row))
        pairs = []
        for row in complete:
            document, true, text = str(row.doc_id), row.completion.strip(), _premise(row)
            pairs.append(Pair(document, "entailment", text, true))
            pairs += [Pair(document, "contradiction", text, false) for false in row.false_sentences]
            other_documents = [name for name in by_document if name != document]
            if other_documents:
                other_premise = rng.choice(by_document[rng.choice(other_documents)])
                pairs.append(Pair(document, "neutral", other_premise, true))
        return pairs


def _premise(row: FactorRow) -> str:
    return f"{(row.turncated_prefixes or row.full_prefix).strip()} {row.completion.strip()}".strip()


def _judged(file: str, model: str, pair: Pair, row: Sequence[float]) -> JudgedPair:
    p = None if any(map(math.isnan, row)) else tuple(round(value, 6) for value in row)
    return JudgedPair(file=file, document=pair.document, label=pair.label, model=model, p=p)
