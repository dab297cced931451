"""The values of the LSS generation experiment."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

import numpy as np

from components.measures import bag_scores, is_invisible_to_rouge, lss_measures
from components.statistics import Measures, bootstrap, nan_mean
from components.words import split_words
from eval.experiments.lss.lss_pairs import GroundedClaim
from eval.experiments.quantities import Quantity, estimate
from eval.models.lss import Subsequence
from eval.similarity import Measure
from eval.similarity.bleu import Bleu
from eval.similarity.kept_words import KeptWords
from eval.similarity.rouge import Rouge
from records import LssExample

HUMAN, CEILING = "another annotator", "most that the ratings' noise allows"
ROUGES: dict[str, Measure] = {"rouge_1_mean": Rouge("rouge1"), "rouge_2_mean": Rouge("rouge2")}
# metric(claim, LSS).
METRICS: dict[str, Measure] = {"bleu": Bleu(), "rouge_l": Rouge(), "kept_words": KeptWords()}


# Tables 2 and 6


def quality(
    examples: Sequence[LssExample], texts: Sequence[str], star: bool, seed: int
) -> Measures:
    """Compute ``lss_measures``, the other measures of Table 2 and ``exact_match``.

    - ``exact_match``: share of claims with human texts whose text has the same words in the same
      order as a human text, ignoring punctuation and case.
    - ``bag_precision``, ``bag_recall``, ``bag_f1``: over the words of both texts without order
      (section 5.2); a word that is not in the claim only reduces precision.
    - ``rouge_1_mean``, ``rouge_2_mean``.

    The last five are means over the human texts of a claim. Intervals are over references.
    """
    same = np.asarray(
        [
            float(any(_words(text) == _words(human) for human in humans)) if humans else math.nan
            for example, text in zip(examples, texts, strict=True)
            for humans in [human_texts(example, star)]
        ]
    )
    groups = [example.reference for example in examples]
    columns = {"exact_match": same} | _overlaps(examples, texts, star)

    def statistics(rows: np.ndarray) -> dict[str, float]:
        return {name: float(nan_mean(column[rows])) for name, column in columns.items()}

    return bootstrap(statistics, groups, seed=seed) | lss_measures(examples, texts, star, seed=seed)


def _overlaps(
    examples: Sequence[LssExample], texts: Sequence[str], star: bool
) -> dict[str, np.ndarray]:
    """Compute bags of words, ROUGE-1 and ROUGE-2, shape (n,) each; NaN without human texts."""
    names = ("bag_precision", "bag_recall", "bag_f1", *ROUGES)
    table = np.full((len(examples), len(names)), math.nan)
    for row, (example, text) in enumerate(zip(examples, texts, strict=True)):
        humans = human_texts(example, star)
        if humans:
            rouges = [rouge([(human, text) for human in humans]) for rouge in ROUGES.values()]
            # Equal texts have overlap 1, even without words or word pairs.
            equal = np.asarray([float(human == text) for human in humans])
            blind = [is_invisible_to_rouge(human, text) for human in humans]
            table[row, :3] = np.mean(bag_scores(humans, text), axis=0)
            table[row, 3:] = [np.where(blind, math.nan, np.fmax(r, equal)).mean() for r in rouges]
    return dict(zip(names, table.T, strict=True))


def human_texts(example: LssExample, star: bool) -> list[str]:
    texts = [a.lss_star if star else a.lss for a in example.annotations]
    return [text for text in texts if text is not None]


def hold_out_first_annotator(
    examples: Sequence[LssExample], star: bool
) -> tuple[list[LssExample], list[str]]:
    """Return claims with several annotators without the first one, and the first one's texts."""
    rest, texts = [], []
    for example in examples:
        annotations = [a for a in example.annotations if not star or a.lss_star is not None]
        if len(annotations) > 1:
            rest.append(example.model_copy(update={"annotations": annotations[1:]}))
            texts.append(annotations[0].lss_star if star else annotations[0].lss)
    return rest, texts


def ceiling(examples: Sequence[LssExample], seed: int) -> Measures:
    """Estimate the maximum correlation with mean ratings, given the disagreement of raters.

    √(1 - noise / Var(means)) (Spearman 1904). The noise is the mean over claims of σ² / k, k is the
    number of raters of a claim, and σ² the variance among raters of a claim, pooled over claims
    with several raters.

    Returns:
        ``pearson_bleu_rating`` with its interval over references; empty if no claim has several
        ratings.
    """
    rated = [
        (example.reference, [a.rating for a in example.annotations if a.rating is not None])
        for example in examples
    ]
    rated = [(reference, ratings) for reference, ratings in rated if ratings]
    count = np.asarray([len(ratings) for _, ratings in rated], dtype=float)
    if not (count > 1).any():
        return {}
    mean = np.asarray([np.mean(ratings) for _, ratings in rated])
    within = np.asarray([np.var(ratings) * len(ratings) for _, ratings in rated])

    def statistics(rows: np.ndarray) -> dict[str, float]:
        free = (count[rows] - 1).sum()
        variance = within[rows].sum() / free if free else math.nan
        total = np.var(mean[rows], ddof=1) if len(rows) > 1 else 0.0
        true = 1 - (variance / count[rows]).mean() / total if total else math.nan
        # Not max(), which returns 0 for NaN.
        return {"pearson_bleu_rating": float(np.sqrt(np.maximum(0.0, true)))}

    return bootstrap(statistics, [reference for reference, _ in rated], seed=seed)


def _words(text: str) -> list[str]:
    return [word.text.lower() for word in split_words(text) if word.text[0].isalnum()]


# By rating, which the paper does not have


def by_rating(
    examples: Sequence[LssExample], by_engine: Mapping[str, Sequence[str | None]], seed: int
) -> Iterator[dict]:
    """Yield the distribution of human ratings, and mean metric(claim, LSS) by rating.

    A row is an annotation with its rounded rating. ``human`` is that annotator's LSS; an engine's
    LSS of the claim is repeated for each annotation. ``n`` counts the references and ``failed`` the
    claims of that rating; the metric is ``rating_share`` or one of ``METRICS``.

    Args:
        examples: claims with annotations.
        by_engine: engine to one LSS per claim, ``None`` if it failed.
        seed: of the bootstrap.
    """
    rows = [(e, a) for e, example in enumerate(examples) for a in example.annotations if a.rating]
    if not rows:
        return
    references = [examples[e].reference for e, _ in rows]
    rating = np.asarray([round(a.rating) for _, a in rows])
    claims = [examples[e].claim for e, _ in rows]
    texts = {"human": [a.lss for _, a in rows]}
    texts |= {name: [lss[e] for e, _ in rows] for name, lss in by_engine.items()}
    tables = {source: _metrics_of(claims, lss) for source, lss in texts.items()}
    quantities, counts = [], {}
    for stars in sorted(set(rating.tolist())):
        rated, group = rating == stars, f"rating {stars}"
        counts[group] = len(set(compress(references, rated)))
        fields = {"metric": "rating_share", "kind": "human", "group": group}
        quantities.append(Quantity(fields, [rated]))
        for source, table in tables.items():
            answers = compress(zip(rows, texts[source], strict=True), rated)
            failed = {e for (e, _), text in answers if text is None}
            for metric, values in zip(METRICS, table.T, strict=True):
                fields = {"metric": metric, "kind": source, "group": group}
                column = np.where(rated, values, np.nan)
                quantities.append(Quantity(fields, [column], failed=len(failed)))
    for value in estimate(quantities, references, seed):
        yield value | {"n": counts[value["group"]]}


def _metrics_of(claims: Sequence[str], texts: Sequence[str | None]) -> np.ndarray:
    """Compute ``METRICS`` of each claim's LSS, shape (n, metrics); NaN without an LSS."""
    table = np.full((len(claims), len(METRICS)), math.nan)
    present = [index for index, text in enumerate(texts) if text is not None]
    pairs = [(claims[index], texts[index]) for index in present]
    for column, measure in enumerate(METRICS.values()):
        table[present, column] = measure(pairs)
    return table


# Table 5


def by_generator(
    claims: Mapping[str, Sequence[GroundedClaim]],
    subsequences: Mapping[str, Sequence[Subsequence | None]],
    seed: int,
) -> Iterator[dict]:
    """Compute mean metric(claim, LSS) by generator, and paired differences.

    A reference counts once per generator, with the mean over its claims. Differences are
    ``against`` the first generator, over common references.
    """
    generators = list(claims)
    references = sorted({claim.reference for listed in claims.values() for claim in listed})
    first, columns = generators[0], {}  # (metric, generator, against)
    for name in generators:
        texts = [None if lss is None else lss.text for lss in subsequences[name]]
        table = _metrics_of([claim.claim for claim in claims[name]], texts)
        by_reference: dict[str, list[int]] = {reference: [] for reference in references}
        for index, claim in enumerate(claims[name]):
            by_reference[claim.reference].append(index)
        means = np.asarray([nan_mean(table[indices]) for indices in by_reference.values()])
        for metric, values in zip(METRICS, means.T, strict=True):
            columns[metric, name, None] = values
            if name != first:
                columns[metric, name, first] = values - columns[metric, first, None]
    quantities = []
    for (metric, name, against), values in columns.items():
        sides = (name,) if against is None else (name, against)
        failed = sum(lss is None for side in sides for lss in subsequences[side])
        fields = {"metric": metric, "generator": name, "against": against}
        quantities.append(Quantity(fields, [values], failed=failed))
    yield from estimate(quantities, references, seed)
