"""Calibration on the dev split, and the error it leaves.

A temperature for classes (Guo et al. 2017), Platt scaling for one logit (Platt 1999). Both keep the
order of the predictions.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, logsumexp, softmax


def probabilities(logits: np.ndarray, temperature: float = 1.0, shift: float = 0.0) -> np.ndarray:
    """Class probabilities of shape (n, classes), or of shape (n,) for a single logit.

    Args:
        logits: shape (n, classes) or (n,).
        temperature: divides the logits.
        shift: added to a single logit after that; classes have none.
    """
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    return expit(scaled + shift) if scaled.ndim == 1 else softmax(scaled, axis=1)


def fit_temperature(logits: np.ndarray, target: np.ndarray) -> float:
    """The temperature in [0.05, 20] with the least negative log-likelihood (Guo et al. 2017).

    Args:
        logits: shape (n, classes), class 0 being entailment.
        target: class indices of shape (n,). The index ``classes`` stands for any class but 0 (a
            two-class row), whose likelihood is 1 - p(class 0).
    """
    logits = np.asarray(logits, dtype=np.float64)

    def loss(log_temperature: float) -> float:
        log_p = log_softmax(logits / np.exp(log_temperature), axis=1)
        either = logsumexp(log_p[:, 1:], axis=1, keepdims=True)
        rows = np.arange(len(target))
        return float(-np.concatenate([log_p, either], axis=1)[rows, target].mean())

    found = minimize_scalar(loss, bounds=(np.log(0.05), np.log(20)), method="bounded")
    return float(np.exp(found.x))


def fit_platt(logits: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Platt scaling of one logit: the (temperature, shift) of the least cross-entropy.

    ``p = sigmoid(logit / temperature + shift)``, temperature in [0.01, 20], so that the order of
    the predictions stays even where they are worse than their mean.

    Args:
        logits: shape (n,).
        target: probabilities of shape (n,); Platt's own smoothing is for 0 and 1 only and left out.
    """
    logits = np.asarray(logits, dtype=np.float64)
    target = np.asarray(target, dtype=np.float64)

    def loss(slope_shift: np.ndarray) -> float:
        scaled = slope_shift[0] * logits + slope_shift[1]
        return float((np.logaddexp(0, scaled) - target * scaled).mean())

    bounds = [(0.05, 100), (-50, 50)]
    slope, shift = minimize(loss, x0=np.asarray([1.0, 0.0]), method="L-BFGS-B", bounds=bounds).x
    return 1 / float(slope), float(shift)


def expected_calibration_error(
    predicted: np.ndarray, observed: np.ndarray, bins: int = 15
) -> float:
    """ECE over equal-mass bins: mean of |mean predicted - mean observed|, weighted by bin size.

    Args:
        predicted: probabilities, shape (n,).
        observed: outcomes in [0, 1], shape (n,).
        bins: number of bins of (nearly) equal size.
    """
    table = reliability_bins(predicted, observed, bins)
    gaps = [size * abs(p - y) for p, y, size in table]
    return float(sum(gaps) / len(predicted)) if len(predicted) else float("nan")


def reliability_bins(predicted: np.ndarray, observed: np.ndarray, bins: int = 15) -> np.ndarray:
    """The points of a reliability plot: equal-mass bins by ascending prediction.

    Args:
        predicted: probabilities, shape (n,).
        observed: outcomes in [0, 1], shape (n,).
        bins: number of bins of (nearly) equal size; fewer where there are fewer rows.

    Returns:
        Mean predicted, mean observed and number of rows of each bin, shape (min(bins, n), 3).
    """
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    table = [(predicted[part].mean(), observed[part].mean(), len(part)) for part in parts]
    return np.asarray(table, dtype=np.float64).reshape(-1, 3)
