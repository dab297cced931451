"""metric(claim, LSS) as an ``evaluate`` module, loadable offline by path.

``evaluate.load("eval/metrics/lss_score.py")`` from the repository's root.
"""

import datasets
import evaluate
import numpy as np

from components.measures import lss_measures
from components.statistics import nan_mean
from eval.similarity.bleu import Bleu
from eval.similarity.kept_words import KeptWords
from eval.similarity.rouge import Rouge
from records import Annotation, LssExample

_DESCRIPTION = """metric(claim, LSS) (arXiv 2308.12157, section 6): similarity of a claim and
its longest supported subsequence by BLEU, ROUGE-L and share of words; with human ratings, their
correlation with BLEU."""

_INPUTS = """
Args:
    predictions: one LSS or LSS* per claim.
    references: the claims.
    ratings: optional human ratings of the claims from 1 to 5.
Returns:
    bleu, rougeL, kept_words: means over claims. n: number of claims. failed: number of claims
    without one of the three values.
    pearson, spearman: correlation of BLEU with the ratings; None without ratings.
"""


class LssScore(evaluate.Metric):
    """Faithfulness of claims from their longest supported subsequences."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="Mittal et al. 2023, arXiv 2308.12157",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references, ratings=None) -> dict:
        pairs = list(zip(references, predictions, strict=True))
        measures = {"bleu": Bleu(), "rougeL": Rouge(), "kept_words": KeptWords()}
        scores = np.asarray([measure(pairs) for measure in measures.values()])  # (measures, n)
        means = zip(measures, nan_mean(scores.T).tolist(), strict=True)
        means_by_name = {name: None if np.isnan(mean) else mean for name, mean in means}
        failed = int(np.isnan(scores).any(axis=0).sum())
        agreement = {"pearson": None, "spearman": None}
        if ratings is not None:
            if len(ratings) != len(pairs):
                raise ValueError(
                    f"ratings: expected one per claim ({len(pairs)}) or None, got {len(ratings)}"
                )
            valid = [row for row, score in enumerate(scores[0]) if not np.isnan(score)]
            kept, rated = [pairs[row] for row in valid], [ratings[row] for row in valid]
            examples = [
                LssExample(
                    reference=claim, claim=claim, annotations=[Annotation(lss=lss, rating=rating)]
                )
                for (claim, lss), rating in zip(kept, rated, strict=True)
            ]
            measured = lss_measures(examples, [lss for _, lss in kept], resamples=0)
            agreement = {n: measured[f"{n}_bleu_rating"]["value"] for n in agreement}
        return means_by_name | agreement | {"n": len(pairs), "failed": failed}
