"""The measures each component is judged by; door 1 and door 3 report through these.

Every function returns ``{name: {"value": float | None, "ci95": [low, high] | None}}``. Intervals
are bootstrapped over groups (premises, references or topics), not over rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score import rouge_scorer
from scipy.stats import pearsonr, rankdata, spearmanr

from components.calibration import expected_calibration_error
from components.checkpoint import RELATIONS
from components.words import align, is_subsequence, split_words

Measures = dict[str, dict]
RESAMPLES = 1000


def bootstrap(
    statistics: Callable[[np.ndarray], dict[str, float]],
    groups: Sequence[object],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Measures:
    """Values on all rows with 95 % percentile intervals over resampled groups.

    Args:
        statistics: maps row indices of shape (m,), with repeats, to named values.
        groups: group of each row, n of them; whole groups are drawn with replacement.
        seed: of the draws.
        resamples: number of draws; 0 for no intervals.

    Returns:
        Per name ``value`` and ``ci95`` (low and high, in the value's unit), ``None`` where there
        is none.
    """
    _, inverse = np.unique(np.asarray([str(g) for g in groups]), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(inverse))[:-1])
    values = statistics(np.arange(len(inverse)))
    generator = np.random.default_rng(seed)
    draws: dict[str, list[float]] = {name: [] for name in values}
    for _ in range(resamples if len(members) > 1 else 0):
        drawn = generator.integers(0, len(members), len(members))
        found = statistics(np.concatenate([members[index] for index in drawn]))
        for name, value in found.items():
            if math.isfinite(value):
                draws[name].append(value)
    result = {}
    for name, value in values.items():
        interval = np.percentile(draws[name], [2.5, 97.5]).tolist() if draws[name] else None
        finite = math.isfinite(value)
        result[name] = {
            "value": float(value) if finite else None,
            "ci95": interval if finite else None,
        }
    return result


def _correlation(kind: Callable, left: np.ndarray, right: np.ndarray) -> float:
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return float("nan")
    return float(kind(left, right)[0])


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve by ranks; NaN when one class is absent.

    Args:
        scores: shape (n,), larger for positives.
        positive: bools of shape (n,).
    """
    count = int(positive.sum())
    if count == 0 or count == len(positive):
        return float("nan")
    ranks = rankdata(scores)
    return float(
        (ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(positive) - count))
    )


def unli_measures(
    predicted: np.ndarray, label: np.ndarray, groups: Sequence[object], resamples: int = RESAMPLES
) -> Measures:
    """Pearson, Spearman, mean squared error (the Brier score of soft labels) and ECE.

    Args:
        predicted, label: probabilities, both of shape (n,).
    """

    def statistics(rows: np.ndarray) -> dict[str, float]:
        p, y = predicted[rows], label[rows]
        return {
            "pearson": _correlation(pearsonr, p, y),
            "spearman": _correlation(spearmanr, p, y),
            "mse": float(np.mean((p - y) ** 2)),
            "ece": expected_calibration_error(p, y),
        }

    return bootstrap(statistics, groups, resamples=resamples)


def relation_measures(
    predicted: np.ndarray,
    labels: Sequence[str],
    groups: Sequence[object],
    resamples: int = RESAMPLES,
) -> Measures:
    """Accuracy, macro-F1, entailment AUROC, ECE and Brier score.

    With any two-class row (``not_entailment``) only the entailment measures are given, and ECE is
    that of the entailment probability; otherwise ECE is that of the predicted class's probability.
    The Brier score is the entailment probability's mean squared error in both.

    Args:
        predicted: probabilities of shape (n, 3) in the order entailment, neutral, contradiction.
    """
    entailed = np.asarray([label == "entailment" for label in labels])
    score = predicted[:, 0]
    two_class = "not_entailment" in set(labels)
    gold = None if two_class else np.asarray([RELATIONS.index(label) for label in labels])
    guess = predicted.argmax(axis=1)

    def statistics(rows: np.ndarray) -> dict[str, float]:
        found = {
            "entailment_auroc": auroc(score[rows], entailed[rows]),
            "brier": float(np.mean((score[rows] - entailed[rows]) ** 2)),
        }
        if gold is None:
            return found | {"ece": expected_calibration_error(score[rows], entailed[rows] * 1.0)}
        g, y = guess[rows], gold[rows]
        f1 = []
        for index in range(3):
            hit, wrong = np.sum((g == index) & (y == index)), np.sum((g == index) != (y == index))
            if hit + wrong:
                f1.append(2 * hit / (2 * hit + wrong))
        return {
            "accuracy": float(np.mean(g == y)),
            "macro_f1": float(np.mean(f1)),
            **found,
            "ece": expected_calibration_error(predicted[rows].max(axis=1), (g == y) * 1.0),
        }

    return bootstrap(statistics, groups, resamples=resamples)


def sentence_bleu_of(claim: str, lss: str) -> float:
    """metric(claim, LSS) of 2308.12157, section 5: BLEU of the LSS's words against the claim's.

    NLTK's sentence BLEU, smoothing method 4, 0 for an empty LSS.
    """
    hypothesis = [word.text for word in split_words(lss)]
    if not hypothesis:
        return 0.0
    reference = [word.text for word in split_words(claim)]
    smooth = SmoothingFunction().method4
    return float(sentence_bleu([reference], hypothesis, smoothing_function=smooth))


def word_f1(keep: Sequence[bool], gold: Sequence[bool]) -> float:
    """F1 of the kept words; 1 when both keep nothing."""
    hit = sum(k and g for k, g in zip(keep, gold, strict=True))
    total = sum(keep) + sum(gold)
    return 2 * hit / total if total else 1.0


def lss_measures(
    claims: Sequence[str],
    predicted: Sequence[str],
    gold_keeps: Sequence[list[list[bool]]],
    gold_texts: Sequence[list[str]],
    ratings: Sequence[float | None],
    groups: Sequence[object],
    resamples: int = RESAMPLES,
) -> Measures:
    """Measures of predicted LSS.

    Args:
        claims, predicted: the claim and the predicted LSS as text.
        gold_keeps: per claim, the aligned annotations' keep decisions (may be empty).
        gold_texts: per claim, the annotations' LSS as text.
        ratings: mean human rating 1-5 of each claim, ``None`` where the source has none.

    Word F1 and ROUGE-L are the mean over the annotations of a claim. ``subsequence_share`` is the
    share of predictions that are subsequences of the claim.
    """
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    bleu = np.asarray([sentence_bleu_of(c, p) for c, p in zip(claims, predicted, strict=True)])
    rating = np.asarray([np.nan if r is None else r for r in ratings], dtype=float)
    f1, rouge, inside = [], [], []
    for claim, guess, keeps, texts in zip(claims, predicted, gold_keeps, gold_texts, strict=True):
        kept = align(guess, split_words(claim))
        inside.append(float(is_subsequence(guess, claim)))
        # Words that the claim does not have count as wrong: no F1 for a made-up subsequence.
        scores = [word_f1(kept, gold) if kept is not None else 0.0 for gold in keeps]
        f1.append(np.mean(scores) if scores else np.nan)
        pairs = [
            1.0 if not (t or guess) else scorer.score(t, guess)["rougeL"].fmeasure for t in texts
        ]
        rouge.append(np.mean(pairs) if pairs else np.nan)
    columns = {"word_f1": np.asarray(f1), "rouge_l": np.asarray(rouge)}
    share = np.asarray(inside)

    def statistics(rows: np.ndarray) -> dict[str, float]:
        rated = rows[~np.isnan(rating[rows])]
        means = {
            name: float(np.mean(column[rows][~np.isnan(column[rows])]))
            if np.any(~np.isnan(column[rows]))
            else float("nan")
            for name, column in columns.items()
        }
        return {
            "pearson_bleu_rating": _correlation(pearsonr, bleu[rated], rating[rated]),
            "spearman_bleu_rating": _correlation(spearmanr, bleu[rated], rating[rated]),
            **means,
            "subsequence_share": float(share[rows].mean()),
        }

    return bootstrap(statistics, groups, resamples=resamples)


def adversary_measures(
    negative_log_likelihood: np.ndarray,
    tokens: np.ndarray,
    size: np.ndarray,
    groups: Sequence[object],
    resamples: int = RESAMPLES,
) -> Measures:
    """Corpus-level perplexity and bits per byte of the completions.

    Args:
        negative_log_likelihood: natural-log NLL summed over a completion and its end token, (n,).
        tokens: completion tokens with the end token, (n,).
        size: UTF-8 bytes of the completion, (n,).
    """

    def statistics(rows: np.ndarray) -> dict[str, float]:
        nll = negative_log_likelihood[rows].sum()
        return {
            "perplexity": float(np.exp(nll / tokens[rows].sum())),
            "bits_per_byte": float(nll / math.log(2) / size[rows].sum()),
        }

    return bootstrap(statistics, groups, resamples=resamples)
