"""Similarity measures of a reference and a candidate; each is a :class:`Measure`."""

from eval.similarity.measure import Measure, Pair

__all__ = ["Measure", "Pair"]
