"""Quality of longest supported subsequences (LSS), and LSS of generators' claims (2308.12157).

Tables 2, 6 and 7: LSS and LSS* by engine against human LSS. Table 5: mean metric(claim, LSS) by
generator. Our additions: the distribution of human ratings, and the kept words by rating.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from components.statistics import Measures
from eval.experiments.experiment import (
    Experiment,
    Outcome,
    drop_nulls,
    require_entries,
    require_non_negative,
)
from eval.experiments.lss.lss_generation_values import (
    CEILING,
    HUMAN,
    by_generator,
    by_rating,
    ceiling,
    hold_out_first_annotator,
    quality,
)
from eval.experiments.lss.lss_pairs import ABOUT, QUESTION, GroundedClaim, excerpts
from eval.models.lss import LssModel, Subsequence, subsequences_of
from eval.prompting.prompted_lss import PromptedLss
from eval.report.declare import Figure, Page, Table
from eval.run.parts import find_parts
from eval.run.run import Run
from records import LssExample, UserError, read_records

ANSWERS = "answers_not_subsequence"  # n counts answers of a language model, not references
_RATINGS = {
    "rating_share": "Share of the annotations",
    "kept_words": "Share of kept words",
    "bleu": "BLEU(claim, LSS)",
    "rouge_l": "ROUGE-L(claim, LSS)",
}
_GENERATORS = {
    "bleu": "BLEU(claim, LSS)",
    "rouge_l": "ROUGE-L(claim, LSS)",
    "kept_words": "Words kept",
}
TABLES = [
    *(
        Table(
            title,
            {"kind": "Engine"},
            metrics={
                "exact_match": "Exact",
                "word_f1": "Word F1",
                "bag_precision": "Precision, bags",
                "bag_recall": "Recall, bags",
                "bag_f1": "F1, bags",
                "rouge_1_mean": "ROUGE-1, mean",
                "rouge_2_mean": "ROUGE-2, mean",
                "pearson_bleu_rating": "Pearson of BLEU(claim, LSS) and rating",
                "word_precision": "Word precision",
                "word_recall": "Word recall",
                "rouge_l_mean": "ROUGE-L, mean",
                "rouge_l_best": "ROUGE-L, best",
                "bleu_mean": "BLEU, mean",
                "subsequence_share": "Subsequences",
                "spearman_bleu_rating": "Spearman of the same",
            },
            where={"variant": variant},
            note="Words: over the claim’s words, mean over the human LSS that are subsequences; 0 "
            "for texts with other words. Bags: over the words of both texts without order, as in "
            "Table 2 of the paper; mean over all human LSS, like ROUGE-1 and ROUGE-2. Best: "
            "against the closest human LSS; mean: over all. Exact: the same words as a human LSS. "
            "Subsequences: share of texts that are subsequences of their claim.",
        )
        for variant, title in (("lss", "Human and found LSS"), ("lss_star", "Human and found LSS*"))
    ),
    Table(
        "Answers of language models that are not a subsequence",
        {"kind": "Engine", "variant": "Output"},
        metrics={ANSWERS: "Share"},
        note="Counted before any correction; n counts answers.",
    ),
    Table(
        "Generators",
        {"generator": "Generator", "kind": "Engine"},
        columns=["metric", "against"],
        metrics=_GENERATORS,
        where={"variant": "claims"},
        note="Table 5. Mean metric(claim, LSS) by generator; each reference counts once. "
        "Differences to the first generator are over common references.",
    ),
    *(
        Table(
            f"{title}, by human rating",
            {"kind": "LSS of"},
            columns=["group"],
            metrics={metric: title},
            where={"variant": "rating"},
        )
        for metric, title in _RATINGS.items()
    ),
]
FIGURES = [
    Figure(
        "By human rating", "group", ["kind"], _RATINGS, where={"variant": "rating"}, each=["metric"]
    ),
    Figure(
        "Generators",
        "generator",
        ["metric"],
        _GENERATORS,
        where={"variant": "claims", "against": None},
        label="mean over references",
    ),
]


@dataclass(frozen=True)
class _Output:
    annotated: list[Subsequence | None]
    claims: dict[str, list[Subsequence | None]]


_Outputs = dict[str, _Output]


@dataclass(eq=False)
class LssGeneration(Experiment):
    """Evaluate engines for LSS, and compare generators by their LSS.

    Args:
        engines: name to LSS model, e.g. eval.models.encoder.LssTagger with a checkpoint; null
            removes an engine of the configuration.
        annotations: files of human LSS that no engine was trained on (Table 2, ratings).
        star_engines: name to model for LSS* (Table 6).
        claims: generator to a file of its claims with references (Table 5); differences are to the
            first generator.
        judge: the engine for Table 5; by default the first.
        rows: maximum number of rows per file, from the start; 0 for all.
        domain: domain in the results.
        seed: seed of the bootstrap.
    """

    name = "lss_generation"
    page = Page(QUESTION, ABOUT, TABLES, FIGURES, texts=excerpts, terminal={"group": "all"})
    in_chunks = False

    engines: dict[str, LssModel | None]
    annotations: list[str] = field(default_factory=list)
    star_engines: dict[str, LssModel | None] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    judge: str = ""
    rows: int = 0
    domain: str = "wafer"
    seed: int = 0

    def __post_init__(self):
        self.engines, self.star_engines = drop_nulls(self.engines), drop_nulls(self.star_engines)
        require_entries(engines=self.engines)
        require_non_negative(rows=self.rows)
        if not self.annotations and not self.claims:
            raise UserError("annotations, claims: expected at least one file")
        if self.star_engines and not self.annotations:
            raise UserError("star_engines: LSS* are compared with human LSS*; set annotations")
        if self.judge and self.judge not in self.engines:
            options = ", ".join(self.engines)
            raise UserError(f"judge: expected one of {options}, got {self.judge!r}")
        self.judge = self.judge or next(iter(self.engines))

    def measure(self, run: Run) -> Outcome:
        examples = self._read(self.annotations, LssExample)
        claims = {name: self._read([path], GroundedClaim) for name, path in self.claims.items()}
        outputs = {
            name: _query(engine, examples, claims if name == self.judge else {})
            for name, engine in self.engines.items()
        }
        starred = {name: _query(engine, examples, {}) for name, engine in self.star_engines.items()}
        values = [
            *self._quality(examples, outputs, star=False),
            *self._quality(examples, starred, star=True),
            *self._counts(),
            *self._ratings(examples, outputs),
            *self._generators(claims, outputs),
        ]
        return Outcome(values, {"pairs.jsonl": _pairs(examples, outputs, starred, claims)})

    def _read(self, paths: Sequence[str], record: type) -> list:
        rows = [row for path in paths for row in read_records(path, record)[: self.rows or None]]
        if paths and not rows:
            raise UserError(f"{', '.join(paths)}: the files have no rows")
        return rows

    def _quality(
        self, examples: Sequence[LssExample], outputs: _Outputs, star: bool
    ) -> Iterator[dict]:
        if not examples or not outputs:
            return
        table = "lss_star" if star else "lss"
        for name, output in outputs.items():
            answers = zip(examples, output.annotated, strict=True)
            pairs = [(example, lss.text) for example, lss in answers if lss]
            judged, texts = [e for e, _ in pairs], [text for _, text in pairs]
            values = quality(judged, texts, star, self.seed) if judged else {}
            yield from _rows(values, table, name, judged, len(examples) - len(judged))
        rest, texts = hold_out_first_annotator(examples, star)
        if rest:
            yield from _rows(quality(rest, texts, star, self.seed), table, HUMAN, rest, 0)
        if maximum := ceiling(examples, self.seed):
            rated = [e for e in examples if any(a.rating is not None for a in e.annotations)]
            yield from _rows(maximum, table, CEILING, rated, 0)

    def _counts(self) -> Iterator[dict]:
        for table, engines in (("lss", self.engines), ("lss_star", self.star_engines)):
            for name, engine in engines.items():
                counts = Counter()
                for part in find_parts(engine):
                    counts.update(part.counts if isinstance(part, PromptedLss) else {})
                if counts["answers"]:
                    n = counts["answers"] - counts["failed"]
                    value = counts["not_subsequence"] / n if n else None
                    yield {
                        "metric": ANSWERS,
                        "variant": table,
                        "kind": name,
                        "value": value,
                        "n": n,
                        "failed": counts["failed"],
                        "ci95": None,
                    }

    def _ratings(self, examples: Sequence[LssExample], outputs: _Outputs) -> Iterator[dict]:
        texts = {
            name: [None if lss is None else lss.text for lss in output.annotated]
            for name, output in outputs.items()
        }
        for value in by_rating(examples, texts, self.seed):
            yield {"variant": "rating", **value}

    def _generators(
        self, claims: dict[str, list[GroundedClaim]], outputs: _Outputs
    ) -> Iterator[dict]:
        if claims:
            for value in by_generator(claims, outputs[self.judge].claims, self.seed):
                yield {"variant": "claims", "kind": self.judge, **value}


def _query(
    engine: LssModel, examples: Sequence[LssExample], claims: dict[str, list[GroundedClaim]]
) -> _Output:
    rows = [*examples, *(claim for listed in claims.values() for claim in listed)]
    answers = subsequences_of(engine, [(row.claim, row.reference) for row in rows])
    start, by_generator = len(examples), {}
    for name, listed in claims.items():
        by_generator[name] = answers[start : start + len(listed)]
        start += len(listed)
    return _Output(answers[: len(examples)], by_generator)


def _rows(
    values: Measures, table: str, kind: str, judged: Sequence[LssExample], failed: int
) -> Iterator[dict]:
    n = len({example.reference for example in judged})
    if not values:  # report that every row failed
        values = {"exact_match": {"value": None, "ci95": None}}
    for name, value in values.items():
        yield {"metric": name, "variant": table, "kind": kind, "n": n, "failed": failed, **value}


def _pairs(
    examples: Sequence[LssExample],
    outputs: _Outputs,
    starred: _Outputs,
    claims: dict[str, list[GroundedClaim]],
) -> Iterator[dict]:
    for star, engines in ((False, outputs), (True, starred)):
        for engine, output in engines.items():
            for example, lss in zip(examples, output.annotated, strict=True):
                yield _pair(example, lss, engine, star) | {
                    "annotations": [a.model_dump(mode="json") for a in example.annotations]
                }
            for generator, answers in output.claims.items():
                for claim, lss in zip(claims[generator], answers, strict=True):
                    yield _pair(claim, lss, engine, star) | {"generator": generator}


def _pair(
    row: LssExample | GroundedClaim, lss: Subsequence | None, engine: str, star: bool
) -> dict:
    text = None if lss is None else lss.text
    return {
        "id": row.id,
        "reference": row.reference,
        "claim": row.claim,
        "engine": engine,
        "lss": None if star else text,
        "lss_star": text if star else None,
        "keep": None if lss is None else lss.keep,
    }
