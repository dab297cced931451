"""Calibration on the dev split, and calibration error.

Temperature and a shift of entailment for classes (after Guo et al. 2017); Platt scaling for a
single logit (Platt 1999), which keeps the order of the predictions.
"""

import numpy as np
import scipy

LEAST_CALIBRATION_ROWS = 200


def probabilities(logits: np.ndarray, temperature: float = 1.0, shift: float = 0.0) -> np.ndarray:
    """Return class probabilities of shape (n, classes), or (n,) for a single logit.

    Logits of the same shape are divided by ``temperature``; then ``shift`` is added to the single
    logit, or to class 0.
    """
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    if scaled.ndim == 1:
        return scipy.special.expit(scaled + shift)
    scaled[:, 0] += shift
    return scipy.special.softmax(scaled, axis=1)


def fit_classes(logits: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Return the (temperature, shift) with the lowest negative log-likelihood.

    Temperature scaling (Guo et al. 2017) plus one shift of class 0, since datasets differ in their
    share of entailment. Temperature is in [0.05, 20], shift in [-20, 20]; the shift is 0 if class 0
    has no rows or all, since no finite shift is optimal.

    Args:
        logits: shape (n, classes); class 0 is entailment.
        target: class indices of shape (n,). The index ``classes`` means any class but 0 (a
            two-class row), with likelihood 1 - p(class 0). Or shares of these, of shape (n, classes
            + 1).
    """
    logits, target = np.asarray(logits, dtype=np.float64), np.asarray(target)
    shares = np.eye(logits.shape[1] + 1)[target] if target.ndim == 1 else target
    max_shift = 20.0 if 0 < shares[:, 0].sum() < len(target) else 0.0

    def loss(parameters: np.ndarray) -> float:
        scaled = logits / np.exp(parameters[0])
        scaled[:, 0] += parameters[1]
        log_p = scipy.special.log_softmax(scaled, axis=1)
        either = scipy.special.logsumexp(log_p[:, 1:], axis=1, keepdims=True)
        return float(-(shares * np.concatenate([log_p, either], axis=1)).sum(axis=1).mean())

    bounds = [(np.log(0.05), np.log(20)), (-max_shift, max_shift)]
    fitted = scipy.optimize.minimize(loss, x0=np.zeros(2), method="L-BFGS-B", bounds=bounds).x
    return float(np.exp(fitted[0])), float(fitted[1])


def fit_platt(logits: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Platt scaling of one logit: the (temperature, shift) with the lowest cross-entropy.

    ``p = sigmoid(logit / temperature + shift)``, temperature in [0.01, 20], so that the order of
    predictions is kept even if they are worse than their mean, shift in [-50, 50]. If all targets
    are 0 or all 1, no finite shift is optimal; then 1 and 0 are returned. Platt's smoothing applies
    to targets of 0 and 1 only and is omitted. Both arguments have shape (n,).
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

    Arguments as in :func:`reliability_bins`.
    """
    table = reliability_bins(predicted, observed, bins)
    gaps = [size * abs(p - y) for p, y, size in table]
    return float(sum(gaps) / len(predicted)) if len(predicted) else float("nan")


def reliability_bins(predicted: np.ndarray, observed: np.ndarray, bins: int = 15) -> np.ndarray:
    """Return mean predicted, mean observed and number of rows of equal-mass bins, shape (bins, 3).

    Rows with equal predictions share their mean outcome, so that bins do not depend on row order
    (e.g. for vote shares, or priors of 0.5).

    Args:
        predicted: probabilities, shape (n,).
        observed: outcomes in [0, 1], shape (n,).
        bins: maximum number of bins, by ascending prediction.
    """
    _, value_index, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    observed = (np.bincount(value_index, observed) / counts)[value_index]
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    table = [(predicted[part].mean(), observed[part].mean(), len(part)) for part in parts]
    return np.asarray(table, dtype=np.float64).reshape(-1, 3)
