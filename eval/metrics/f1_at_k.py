"""F1@K of SAFE and VeriScore as an ``evaluate`` module, loadable offline by path.

``evaluate.load("eval/metrics/f1_at_k.py")`` from the repository's root.
"""

import datasets
import evaluate

from components.statistics import average
from eval.metrics.document import f1_at_k, median_claims, recall_at_k, tally

_DESCRIPTION = """F1@K (SAFE, arXiv 2403.18802, section 5; VeriScore, 2406.19276, section 3.3): the
harmonic mean of factual precision and recall@K = min(supported / K, 1), averaged over texts. A text
without claims, as one that does not respond, has 0, or is skipped as in VeriScore's code."""

_INPUTS = """
Args:
    predictions: one list a text: 1 for a supported claim, 0 for another, -1 for one that failed.
    k: supported claims that a full answer has; by default the median number of claims of the texts
        that have any, of an even number of texts the larger of the two in the middle.
    abstentions: "zero" or "skip": what a text without claims counts.
Returns:
    f1_at_k, recall_at_k: means over texts but those of which every claim failed, and with "skip"
        those without claims; or None.
    k: as given or found. n: number of such texts. failed: claims that could not be judged.
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
            raise ValueError(f"abstentions: {abstentions!r}; give 'zero' or 'skip'")
        if k is not None and k < 1:
            raise ValueError(f"k: {k}; give 1 or more, or None for the median number of claims")
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
