"""FActScore's aggregation as an ``evaluate`` module, loadable offline by path.

``evaluate.load("eval/metrics/factual_precision.py")`` from the repository's root.
"""

import datasets
import evaluate

from components.statistics import average
from eval.metrics.document import length_penalty, tally

_DESCRIPTION = """Factual precision (FActScore, arXiv 2305.14251, section 3): the mean over texts of
the share of supported claims, with and without the length penalty."""

_INPUTS = """
Args:
    predictions: one list per text: 1 for a supported claim, 0 otherwise, -1 for a failed claim.
    gamma: threshold of the length penalty in claims; 0 for none (default 10).
Returns:
    factual_precision, factscore: means over texts with at least one judged claim, or None.
    n: number of such texts. failed: number of failed claims.
"""


class FactualPrecision(evaluate.Metric):
    """Factual precision over lists of decisions."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="Min et al. 2023, arXiv 2305.14251",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": datasets.Sequence(datasets.Value("int32"))}),
        )

    def _compute(self, predictions, gamma=10) -> dict:
        tallies = [tally(decisions) for decisions in predictions]
        judged = [text for text in tallies if text.judged]
        plain = [text.supported / text.judged for text in judged]
        penalties = [length_penalty(text.judged + text.failed, gamma) for text in judged]
        penalised = [p * penalty for p, penalty in zip(plain, penalties, strict=True)]
        return {
            "factual_precision": average(plain),
            "factscore": average(penalised),
            "n": len(judged),
            "failed": sum(text.failed for text in tallies),
        }
