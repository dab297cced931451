"""How much of a reference a candidate has: one file a measure, each a :class:`Measure`."""

from eval.similarity.measure import Measure, Pair

__all__ = ["Measure", "Pair"]
