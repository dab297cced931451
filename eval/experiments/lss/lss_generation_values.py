"""What the LSS generation experiment measures: subsequences against human ones, and generators."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from components.measures import bag_scores, is_invisible_to_rouge, lss_measures
from components.statistics import Measures, bootstrap, nan_mean
from components.words import split_words
from eval.experiments.lss.lss_pairs import GroundedClaim
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
    """``lss_measures`` with what else Table 2 has and ``exact_match``, intervals over references.

    - ``exact_match``: share of the claims with a human text whose text has the same words in the
      same order as one of these; marks and letter case do not count;
    - ``bag_precision``, ``bag_recall``, ``bag_f1``: of the words of both texts without their order,
      as section 5.2 has them: a word that the claim does not have costs precision, not all;
    - ``rouge_1_mean``, ``rouge_2_mean``.

    The last five are means over the human texts of a claim.
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
    """Bags of words, ROUGE-1 and ROUGE-2, shape (n,) each; NaN where there is no human text."""
    names = ("bag_precision", "bag_recall", "bag_f1", *ROUGES)
    table = np.full((len(examples), len(names)), math.nan)
    for row, (example, text) in enumerate(zip(examples, texts, strict=True)):
        humans = human_texts(example, star)
        if humans:
            rouges = [rouge([(human, text) for human in humans]) for rouge in ROUGES.values()]
            # Equal texts overlap whole, also where there is no word or no pair of words to count.
            equal = np.asarray([float(human == text) for human in humans])
            blind = [is_invisible_to_rouge(human, text) for human in humans]
            table[row, :3] = np.mean(bag_scores(humans, text), axis=0)
            table[row, 3:] = [np.where(blind, math.nan, np.fmax(r, equal)).mean() for r in rouges]
    return dict(zip(names, table.T, strict=True))


def human_texts(example: LssExample, star: bool) -> list[str]:
    found = [a.lss_star if star else a.lss for a in example.annotations]
    return [text for text in found if text is not None]


def one_against_the_rest(
    examples: Sequence[LssExample], star: bool
) -> tuple[list[LssExample], list[str]]:
    """The first annotator's texts, and the claims with the annotations of all others.

    Claims that one annotator alone has seen are left out.
    """
    rest, texts = [], []
    for example in examples:
        there = [a for a in example.annotations if not star or a.lss_star is not None]
        if len(there) > 1:
            rest.append(example.model_copy(update={"annotations": there[1:]}))
            texts.append(there[0].lss_star if star else there[0].lss)
    return rest, texts


def ceiling(examples: Sequence[LssExample], seed: int) -> Measures:
    """The correlation with mean ratings that nothing exceeds, since raters of a claim differ.

    Whoever knew what all raters would say of a claim in the mean would not know who rated it:
    √(1 - noise / Var(means)) (Spearman 1904), where the noise is the mean over claims of σ² / k, k
    is how many rated the claim, and σ² the variance among raters of one claim, pooled over claims
    that several rated.

    Returns:
        ``pearson_bleu_rating`` with its interval over references; nothing where no claim has
        several ratings.
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
        whole = np.var(mean[rows], ddof=1) if len(rows) > 1 else 0.0
        true = 1 - (variance / count[rows]).mean() / whole if whole else math.nan
        # Not max(), which takes 0 for the larger of it and NaN.
        return {"pearson_bleu_rating": float(np.sqrt(np.maximum(0.0, true)))}

    return bootstrap(statistics, [reference for reference, _ in rated], seed=seed)


def _words(text: str) -> list[str]:
    return [word.text.lower() for word in split_words(text) if word.text[0].isalnum()]


# By rating, which the paper does not have


def by_rating(
    examples: Sequence[LssExample], found: Mapping[str, Sequence[str | None]], seed: int
) -> dict[tuple[str, str, int], dict]:
    """How human ratings are spread, and what is kept of claims of each rating.

    A row is an annotation with a rating, rounded to a whole one. ``human`` is that annotator's own
    LSS; an engine's LSS of the claim stands once for each of its annotations.

    Args:
        examples: claims with their annotations.
        found: engine to one LSS a claim, ``None`` where there is none.

    Returns:
        Metric (``rating_share`` or one of ``METRICS``), who, and rating to the value, its
        interval over references, ``n`` references, and ``failed`` claims of that rating.
    """
    rows = [(e, a) for e, example in enumerate(examples) for a in example.annotations if a.rating]
    if not rows:
        return {}
    references = np.asarray([examples[e].reference for e, _ in rows])
    rating = np.asarray([round(a.rating) for _, a in rows])
    texts = {"human": [a.lss for _, a in rows]}
    texts |= {name: [own[e] for e, _ in rows] for name, own in found.items()}
    claims = [examples[e].claim for e, _ in rows]
    keys = [(metric, who) for who in texts for metric in METRICS]
    table = np.concatenate([_metrics_of(claims, own) for own in texts.values()], axis=1)
    ratings = sorted(set(rating.tolist()))

    def statistics(chosen: np.ndarray) -> dict[tuple[str, str, int], float]:
        found = {}
        for stars in ratings:
            own = chosen[rating[chosen] == stars]
            found["rating_share", "human", stars] = len(own) / len(chosen)
            for (metric, who), value in zip(keys, nan_mean(table[own]), strict=True):
                found[metric, who, stars] = value
        return found

    values = bootstrap(statistics, references, seed=seed)
    found = {}
    for (metric, who, stars), value in values.items():
        own = np.flatnonzero(rating == stars)
        failed = {rows[row][0] for row in own if texts[who][row] is None}
        counts = {"n": len(set(references[own].tolist())), "failed": len(failed)}
        found[metric, who, stars] = value | counts
    return found


def _metrics_of(claims: Sequence[str], texts: Sequence[str | None]) -> np.ndarray:
    """``METRICS`` of each claim's LSS, shape (n, metrics); NaN where there is none."""
    table = np.full((len(claims), len(METRICS)), math.nan)
    there = [place for place, text in enumerate(texts) if text is not None]
    pairs = [(claims[place], texts[place]) for place in there]
    for column, measure in enumerate(METRICS.values()):
        table[there, column] = measure(pairs)
    return table


# Table 5


def by_generator(
    claims: Mapping[str, Sequence[GroundedClaim]],
    found: Mapping[str, Sequence[Subsequence | None]],
    seed: int,
) -> Iterator[dict]:
    """Mean metric(claim, LSS) of each generator's claims, and paired differences.

    A reference counts once a generator, with the mean over its claims; a difference is over the
    references that both have claims for. Intervals over references.

    Args:
        claims: generator to its claims.
        found: generator to one LSS a claim.

    Yields:
        Fields of results: one of ``METRICS``, the generator, and what its difference is
        ``against``, which is the first one.
    """
    generators = list(claims)
    references = sorted({claim.reference for own in claims.values() for claim in own})
    first, columns = generators[0], {}  # metric, generator, and what it is against
    for name in generators:
        texts = [None if lss is None else lss.text for lss in found[name]]
        table = _metrics_of([claim.claim for claim in claims[name]], texts)
        of: dict[str, list[int]] = {reference: [] for reference in references}
        for place, claim in enumerate(claims[name]):
            of[claim.reference].append(place)
        own = np.asarray([nan_mean(table[places]) for places in of.values()])
        for place, metric in enumerate(METRICS):
            columns[metric, name, None] = own[:, place]
            if name != first:
                columns[metric, name, first] = own[:, place] - columns[metric, first, None]
    wide = np.stack(list(columns.values()), axis=1)  # (references, columns)

    def statistics(rows: np.ndarray) -> dict[tuple, float]:
        return dict(zip(columns, nan_mean(wide[rows]), strict=True))

    for key, value in bootstrap(statistics, references, seed=seed).items():
        metric, name, against = key
        sides = (name,) if against is None else (name, against)
        failed = sum(lss is None for side in sides for lss in found[side])
        counts = {"n": int((~np.isnan(columns[key])).sum()), "failed": failed}
        yield {"metric": metric, "generator": name, "against": against, **counts, **value}
