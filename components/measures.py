"""Metrics of each component, used by ``train`` and ``eval``.

Every function returns ``{name: {"value": float | None, "ci95": [low, high] | None}}``. Intervals
are bootstrapped over groups (premises, references or topics), not over rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from components.calibration import expected_calibration_error
from components.checkpoint import RELATIONS
from components.statistics import (
    RESAMPLES,
    Measures,
    auroc,
    bootstrap,
    nan_mean,
    pearson,
    precision_recall_f1,
    spearman,
)
from components.words import align, is_subsequence, keep_targets, split_words
from records import LssExample

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

_ECE = {"ece", "ece_difference"}
SMALLER_IS_BETTER = {"loss", "mse", "brier", "ece", "perplexity", "bits_per_byte", "dpo_loss"}


def _bootstrap_both(
    statistics: Callable[[np.ndarray, np.ndarray], dict[str, float]],
    predicted: np.ndarray,
    against: np.ndarray | None,
    groups: Sequence[object],
    resamples: int,
) -> Measures:
    """Bootstrap statistics of a model and, with a second model, their differences.

    Differences are paired: both models use the same draws. ECE has no interval: repeated rows
    increase ECE, so a bootstrap interval would lie above the value, and exclude 0 for calibrated
    probabilities.
    """

    def both(rows: np.ndarray) -> dict[str, float]:
        values = statistics(predicted, rows)
        if against is None:
            return values
        other = statistics(against, rows)
        return values | {f"{name}_difference": values[name] - other[name] for name in values}

    measures = bootstrap(both, groups, resamples=resamples)
    return {n: m | {"ci95": None} if n in _ECE else m for n, m in measures.items()}


def unli_measures(
    predicted: np.ndarray,
    label: np.ndarray,
    groups: Sequence[object],
    resamples: int = RESAMPLES,
    against: np.ndarray | None = None,
) -> Measures:
    """Pearson, Spearman, mean squared error (the Brier score of soft labels) and ECE (no interval).

    All arrays are probabilities of shape (n,). ``against`` are a second model's, for paired
    differences (``pearson_difference``, …).
    """

    def statistics(predicted: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        p, y = predicted[rows], label[rows]
        return {
            "pearson": pearson(p, y),
            "spearman": spearman(p, y),
            "mse": float(np.mean((p - y) ** 2)),
            "ece": expected_calibration_error(p, y),
        }

    return _bootstrap_both(statistics, predicted, against, groups, resamples)


def relation_measures(
    predicted: np.ndarray,
    labels: Sequence[str],
    groups: Sequence[object],
    resamples: int = RESAMPLES,
    against: np.ndarray | None = None,
) -> Measures:
    """Accuracy, macro-F1, entailment AUROC, ECE (no interval) and Brier score.

    With any two-class row (``not_entailment``) only the entailment metrics are returned, and ECE is
    that of the entailment probability; otherwise that of the predicted class. The Brier score is
    the mean squared error of the entailment probability. ``predicted`` and, for paired differences,
    ``against`` have shape (n, 3), in the order entailment, neutral, contradiction.
    """
    entailed = np.asarray([label == "entailment" for label in labels])
    two_class = "not_entailment" in set(labels)
    gold = None if two_class else np.asarray([RELATIONS.index(label) for label in labels])

    def statistics(predicted: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        p, true = predicted[rows], entailed[rows]
        entailment_values = {
            "entailment_auroc": auroc(p[:, 0], true),
            "brier": float(np.mean((p[:, 0] - true) ** 2)),
        }
        if gold is None:
            return entailment_values | {"ece": expected_calibration_error(p[:, 0], true * 1.0)}
        g, y = p.argmax(axis=1), gold[rows]
        f1 = []
        for index in range(3):
            hit, wrong = np.sum((g == index) & (y == index)), np.sum((g == index) != (y == index))
            if hit + wrong:
                f1.append(2 * hit / (2 * hit + wrong))
        return {
            "accuracy": float(np.mean(g == y)),
            "macro_f1": float(np.mean(f1)),
            **entailment_values,
            "ece": expected_calibration_error(p.max(axis=1), (g == y) * 1.0),
        }

    return _bootstrap_both(statistics, predicted, against, groups, resamples)


def sentence_bleu_of(reference: str, text: str, blanks: bool = False) -> float:
    """metric(claim, LSS) of 2308.12157, section 6: BLEU of a text against a reference.

    NLTK's sentence BLEU, smoothing method 4, 0 for an empty text. ``blanks`` splits at white space
    like the released code, so that "Paris" and "Paris," differ; otherwise punctuation marks are
    separate words.
    """
    words, hypothesis = (
        side.split() if blanks else [word.text for word in split_words(side)]
        for side in (reference, text)
    )
    if not hypothesis:
        return 0.0
    # NLTK takes seconds to import.
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smooth = SmoothingFunction().method4
    return float(sentence_bleu([words], hypothesis, smoothing_function=smooth))


def word_f1(keep: Sequence[bool], gold: Sequence[bool]) -> float:
    """F1 of the kept words; 1 if both keep nothing."""
    return _keep_scores(keep, gold)[2]


def _keep_scores(keep: Sequence[bool], gold: Sequence[bool]) -> tuple[float, float, float]:
    hits = sum(k and g for k, g in zip(keep, gold, strict=True))
    return precision_recall_f1(hits, sum(keep), sum(gold))


def _word_scores(record: LssExample, text: str) -> list[tuple[float, float, float]]:
    words, golds, _ = keep_targets(record)
    kept = align(text, words)
    if kept is None:  # words not in the claim: all wrong
        return [(0.0, 0.0, 0.0)] * len(golds)
    return [_keep_scores(kept, gold) for gold in golds]


def bag_scores(references: Sequence[str], text: str) -> list[tuple[float, float, float]]:
    """Precision, recall and F1 over bags of words, one tuple per reference."""
    bag = Counter(word.text.lower() for word in split_words(text))
    golds = [Counter(word.text.lower() for word in split_words(gold)) for gold in references]
    return [precision_recall_f1((bag & gold).total(), bag.total(), gold.total()) for gold in golds]


@cache
def _rouge() -> RougeScorer:
    from rouge_score.rouge_scorer import RougeScorer  # imports NLTK

    return RougeScorer(["rougeL"])


def _rouge_l(gold: str, text: str) -> float:
    if is_invisible_to_rouge(gold, text):
        return math.nan
    return _rouge().score(gold, text)["rougeL"].fmeasure


def is_invisible_to_rouge(gold: str, text: str) -> bool:
    """Whether different texts have words, but ROUGE tokenises at least one to nothing."""
    both = (gold, text)
    return (
        gold != text
        and all(re.search(r"\w", t) for t in both)
        and not all(map(has_rouge_words, both))
    )


def has_rouge_words(text: str) -> bool:
    """Whether ``rouge-score`` finds a token: it only knows a to z and digits."""
    return re.search(r"[A-Za-z0-9]", text) is not None


def _lss_row(record: LssExample, text: str, star: bool) -> dict[str, float]:
    """Metrics of one prediction; NaN if the record has no reference for them."""
    texts = [a.lss_star if star else a.lss for a in record.annotations]
    references = [reference for reference in texts if reference is not None]
    scores = bag_scores(references, text) if star else _word_scores(record, text)
    columns = zip(*scores, strict=True) if scores else [()] * 3
    by_name = dict(zip(("word_precision", "word_recall", "word_f1"), columns, strict=True))
    row = {name: float(np.mean(v)) if v else math.nan for name, v in by_name.items()}
    same = [reference == text for reference in references]
    overlaps = {
        "rouge_l": [_rouge_l(gold, text) for gold in references],
        "bleu": [sentence_bleu_of(gold, text) for gold in references],
    }
    for name, values in overlaps.items():
        # Equal texts score 1, even without words (empty, other scripts).
        scored = [1.0 if equal else v for v, equal in zip(values, same, strict=True)]
        row[f"{name}_best"] = 1.0 if any(same) else float(np.max(scored)) if scored else math.nan
        row[f"{name}_mean"] = float(np.mean(scored)) if scored else math.nan
    return row | {"subsequence_share": float(is_subsequence(text, record.claim))}


def lss_measures(
    records: Sequence[LssExample],
    predicted: Sequence[str],
    star: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Measures:
    """Metrics of predicted LSS, or LSS* (``star``); intervals over references.

    - ``pearson_bleu_rating``, ``spearman_bleu_rating``: correlation of metric(claim, prediction) =
      BLEU with the mean human rating, over rated claims (2308.12157, section 6).
    - ``word_precision``, ``word_recall``, ``word_f1``: over the claim's words, mean over its
      aligned human LSS. For LSS*, which may have other words than the claim, over bags of words.
    - ``rouge_l_best``, ``bleu_best`` and ``…_mean``: against the closest human LSS of the claim,
      and the mean over all. ROUGE skips claims in scripts that it cannot tokenise.
    - ``subsequence_share``: share of predictions that are subsequences of their claim.
    """
    rows = [_lss_row(r, text, star) for r, text in zip(records, predicted, strict=True)]
    columns = {name: np.asarray([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    bleu = np.asarray(
        [sentence_bleu_of(r.claim, text) for r, text in zip(records, predicted, strict=True)]
    )
    ratings = [[a.rating for a in r.annotations if a.rating is not None] for r in records]
    rating = np.asarray([np.mean(values) if values else math.nan for values in ratings])

    def statistics(chosen: np.ndarray) -> dict[str, float]:
        rated = chosen[~np.isnan(rating[chosen])]
        return {
            "pearson_bleu_rating": pearson(bleu[rated], rating[rated]),
            "spearman_bleu_rating": spearman(bleu[rated], rating[rated]),
            **{name: nan_mean(column[chosen]) for name, column in columns.items()},
        }

    groups = [record.reference for record in records]
    return bootstrap(statistics, groups, seed=seed, resamples=resamples)


def target_measures(
    negative_log_likelihood: np.ndarray,
    tokens: np.ndarray,
    hits: np.ndarray,
    weight: np.ndarray,
    groups: Sequence[object],
    resamples: int = RESAMPLES,
) -> Measures:
    """Corpus-level perplexity and token accuracy of target texts (teacher forcing).

    All arrays have shape (n,): natural-log NLL summed over a target, its tokens, how many of them
    are the model's most likely (``hits``), and its weight (0 excludes it).
    """

    def statistics(rows: np.ndarray) -> dict[str, float]:
        total = (weight * tokens)[rows].sum()
        if not total:
            return {"perplexity": math.nan, "token_accuracy": math.nan}
        return {
            "perplexity": float(np.exp((weight * negative_log_likelihood)[rows].sum() / total)),
            "token_accuracy": float((weight * hits)[rows].sum() / total),
        }

    return bootstrap(statistics, groups, resamples=resamples)


def adversary_measures(
    negative_log_likelihood: np.ndarray,
    tokens: np.ndarray,
    size: np.ndarray,
    groups: Sequence[object],
    resamples: int = RESAMPLES,
) -> Measures:
    """Corpus-level perplexity and bits per byte of completions.

    All arrays have shape (n,): natural-log NLL summed over a completion and its end token, its
    tokens including the end token, and its UTF-8 bytes.
    """

    def statistics(rows: np.ndarray) -> dict[str, float]:
        nll = negative_log_likelihood[rows].sum()
        return {
            "perplexity": float(np.exp(nll / tokens[rows].sum())),
            "bits_per_byte": float(nll / math.log(2) / size[rows].sum()),
        }

    return bootstrap(statistics, groups, resamples=resamples)


def preference_measures(
    chosen: np.ndarray, rejected: np.ndarray, groups: Sequence[object], resamples: int = RESAMPLES
) -> Measures:
    """DPO loss, reward accuracy and reward margin (2305.18290, section 4).

    ``chosen`` and ``rejected`` are implicit rewards beta ln(pi / pi_ref) in nats, of shape (n,).
    ``reward_accuracy`` is the share of pairs with the larger reward for the chosen text; ties count
    as wrong.
    """
    margin = chosen - rejected
    loss = np.logaddexp(0, -margin)

    def statistics(rows: np.ndarray) -> dict[str, float]:
        return {
            "dpo_loss": float(loss[rows].mean()),
            "reward_accuracy": float((margin[rows] > 0).mean()),
            "reward_margin": float(margin[rows].mean()),
        }

    return bootstrap(statistics, groups, resamples=resamples)
