"""DecompScore as an ``evaluate`` module, loadable offline by path.

``evaluate.load("eval/metrics/decomp_score.py")`` from the repository's root.
"""

import datasets
import evaluate

from eval.metrics.document import tally

_DESCRIPTION = """DecompScore (arXiv 2403.11903, section 3.2): the mean over passages of the number
of subclaims that the sentences they came from support. No length penalty."""

_INPUTS = """
Args:
    predictions: one list per passage: 1 for a subclaim that its source sentence supports, 0
        otherwise, -1 for a failed subclaim.
Returns:
    decomp_score: supported subclaims per passage. subclaims: judged subclaims per passage.
    coherence: share of supported subclaims among the judged subclaims of all passages.
    coherence_per_passage: mean over passages of that share (Table 6), without passages that have no
        judged subclaim.
    The values above are None if undefined.
    n: number of passages, without those whose subclaims all failed.
    failed: number of failed subclaims, excluded from all values.
"""


class DecompScore(evaluate.Metric):
    """DecompScore over lists of decisions."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="Wanner et al. 2024, arXiv 2403.11903",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": datasets.Sequence(datasets.Value("int32"))}),
        )

    def _compute(self, predictions) -> dict:
        tallies = [tally(decisions) for decisions in predictions]
        scored = [text for text in tallies if text.scored]
        supported, judged = (sum(getattr(t, k) for t in scored) for k in ("supported", "judged"))
        shares = [text.supported / text.judged for text in scored if text.judged]
        return {
            "decomp_score": supported / len(scored) if scored else None,
            "coherence": supported / judged if judged else None,
            "coherence_per_passage": sum(shares) / len(shares) if shares else None,
            "subclaims": judged / len(scored) if scored else None,
            "n": len(scored),
            "failed": sum(text.failed for text in tallies),
        }
