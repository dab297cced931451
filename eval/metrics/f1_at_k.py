"""F1@K of SAFE and VeriScore as an ``evaluate`` module, loadable offline by path.

``evaluate.load("eval/metrics/f1_at_k.py")`` from the repository's root.
"""

import datasets
import evaluate

from components.statistics import average
from eval.metrics.document import f1_at_k, median_claims, recall_at_k, tally

_DESCRIPTION = """F1@K (SAFE, arXiv 2403.18802, section 5; VeriScore, 2406.19276, section 3.3): the
harmonic mean of factual precision and recall@K = min(supported / K, 1), averaged over texts. Texts
without claims have 0, or are skipped as in VeriScore's code."""

_INPUTS = """
Args:
    predictions: one list per text: 1 for a supported claim, 0 otherwise, -1 for a failed claim.
    k: expected number of supported claims; default: the upper median number of claims of the texts
        with claims.
    abstentions: handling of texts without claims: "zero" or "skip".
Returns:
    f1_at_k, recall_at_k: means over texts without those whose claims all failed, or None.
    k: the K used. n: number of texts in the means. failed: number of failed claims.
"""


class F1AtK(evaluate.Metric):
    """F1@K over lists of decisions."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="Wei et al. 2024, arXiv 2403.18802; Song et al. 2024, arXiv 2406.19276",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": datasets.Sequence(datasets.Value("int32"))}),
        )

    def _compute(self, predictions, k=None, abstentions="zero") -> dict:
        if abstentions not in ("zero", "skip"):
            raise ValueError(f"abstentions: expected 'zero' or 'skip', got {abstentions!r}")
        if k is not None and k < 1:
            raise ValueError(f"k: expected at least 1 or None, got {k}")
        k = k or median_claims(map(len, predictions))
        counted = [text for text in predictions if len(text) or abstentions == "zero"]
        tallies = [tally(decisions) for decisions in counted]
        scored = [text for text in tallies if text.scored]
        pairs = [(text.supported / max(text.judged, 1), text.supported) for text in scored]
        return {
            "f1_at_k": average(
                [f1_at_k(precision, supported, k) for precision, supported in pairs]
            ),
            "recall_at_k": average([recall_at_k(supported, k) for _, supported in pairs]),
            "k": k,
            "n": len(scored),
            "failed": sum(text.failed for text in tallies),
        }
