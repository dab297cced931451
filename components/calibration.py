"""Calibration on the dev split, and the error it leaves.

A temperature and a shift of entailment for classes (after Guo et al. 2017), Platt scaling for one
logit (Platt 1999), which keeps the order of the predictions.
"""

import numpy as np
import scipy


def probabilities(logits: np.ndarray, temperature: float = 1.0, shift: float = 0.0) -> np.ndarray:
    """Class probabilities of shape (n, classes), or of shape (n,) for a single logit.

    Args:
        logits: shape (n, classes) or (n,).
        temperature: divides the logits.
        shift: added after that to a single logit, or to class 0.
    """
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    if scaled.ndim == 1:
        return scipy.special.expit(scaled + shift)
    scaled[:, 0] += shift
    return scipy.special.softmax(scaled, axis=1)


def fit_classes(logits: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """The (temperature, shift) with the least negative log-likelihood.

    Temperature scaling (Guo et al. 2017) and, since sources differ in how much they entail, one
    shift of class 0.

    Args:
        logits: shape (n, classes), class 0 being entailment.
        target: class indices of shape (n,). The index ``classes`` stands for any class but 0 (a
            two-class row), whose likelihood is 1 - p(class 0). Or shares of these, of shape
            (n, classes + 1).

    Returns:
        A temperature in [0.05, 20] and a shift in [-20, 20]; without a row of class 0, or with no
        other, the shift is 0, as no finite one would be the best.
    """
    logits, target = np.asarray(logits, dtype=np.float64), np.asarray(target)
    shares = np.eye(logits.shape[1] + 1)[target] if target.ndim == 1 else target
    reach = 20.0 if 0 < shares[:, 0].sum() < len(target) else 0.0

    def loss(parameters: np.ndarray) -> float:
        scaled = logits / np.exp(parameters[0])
        scaled[:, 0] += parameters[1]
        log_p = scipy.special.log_softmax(scaled, axis=1)
        either = scipy.special.logsumexp(log_p[:, 1:], axis=1, keepdims=True)
        return float(-(shares * np.concatenate([log_p, either], axis=1)).sum(axis=1).mean())

    bounds = [(np.log(0.05), np.log(20)), (-reach, reach)]
    found = scipy.optimize.minimize(loss, x0=np.zeros(2), method="L-BFGS-B", bounds=bounds).x
    return float(np.exp(found[0])), float(found[1])


def fit_platt(logits: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Platt scaling of one logit: the (temperature, shift) of the least cross-entropy.

    ``p = sigmoid(logit / temperature + shift)``, temperature in [0.01, 20], so that the order of
    the predictions stays even where they are worse than their mean.

    Args:
        logits: shape (n,).
        target: probabilities of shape (n,); Platt's own smoothing is for 0 and 1 only and left out.

    Returns:
        The temperature and the shift, in [-50, 50]; 1 and 0 where all targets are 0, or all 1:
        no finite shift would be the best, and all hypotheses would become as likely.
    """
    logits = np.asarray(logits, dtype=np.float64)
    target = np.asarray(target, dtype=np.float64)
    if not 0 < target.sum() < len(target):
        return 1.0, 0.0

    def loss(slope_shift: np.ndarray) -> float:
        scaled = slope_shift[0] * logits + slope_shift[1]
        return float((np.logaddexp(0, scaled) - target * scaled).mean())

    bounds = [(0.05, 100), (-50, 50)]
    slope, shift = scipy.optimize.minimize(
        loss, x0=np.asarray([1.0, 0.0]), method="L-BFGS-B", bounds=bounds
    ).x
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

    Rows of one prediction share their mean outcome: where several bins are of them, as of a vote's
    shares or of priors of 0.5, it is not the rows' order that says which outcome is in which bin.

    Args:
        predicted: probabilities, shape (n,).
        observed: outcomes in [0, 1], shape (n,).
        bins: number of bins of (nearly) equal size; fewer where there are fewer rows.

    Returns:
        Mean predicted, mean observed and number of rows of each bin, shape (min(bins, n), 3).
    """
    _, place, times = np.unique(predicted, return_inverse=True, return_counts=True)
    observed = (np.bincount(place, observed) / times)[place]
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    table = [(predicted[part].mean(), observed[part].mean(), len(part)) for part in parts]
    return np.asarray(table, dtype=np.float64).reshape(-1, 3)
