"""Calibration: one temperature on the logits, fitted on the dev split, and the error it leaves."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax


def probabilities(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Class probabilities of shape (n, classes), or of shape (n,) for a single logit."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    return expit(scaled) if scaled.ndim == 1 else softmax(scaled, axis=1)


def fit_temperature(logits: np.ndarray, target: np.ndarray) -> float:
    """The temperature in [0.05, 20] with the least negative log-likelihood (Guo et al. 2017).

    Args:
        logits: shape (n, classes) with class indices as target, or (n,) with probabilities.
        target: shape (n,).
    """
    logits = np.asarray(logits, dtype=np.float64)

    def loss(log_temperature: float) -> float:
        scaled = logits / np.exp(log_temperature)
        if logits.ndim == 1:
            positive, negative = -np.logaddexp(0, -scaled), -np.logaddexp(0, scaled)
            return float(-(target * positive + (1 - target) * negative).mean())
        return float(-log_softmax(scaled, axis=1)[np.arange(len(target)), target].mean())

    found = minimize_scalar(loss, bounds=(np.log(0.05), np.log(20)), method="bounded")
    return float(np.exp(found.x))


def expected_calibration_error(
    predicted: np.ndarray, observed: np.ndarray, bins: int = 15
) -> float:
    """ECE over equal-mass bins: mean of |mean predicted - mean observed|, weighted by bin size.

    Args:
        predicted: probabilities, shape (n,).
        observed: outcomes in [0, 1], shape (n,).
        bins: number of bins of (nearly) equal size.
    """
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    gaps = [len(part) * abs(predicted[part].mean() - observed[part].mean()) for part in parts]
    return float(sum(gaps) / len(predicted)) if len(predicted) else float("nan")
