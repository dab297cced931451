"""Factual precision after Core as an ``evaluate`` module, loadable offline by path.

``evaluate.load("eval/metrics/core_precision.py")`` from the repository's root.
"""

import datasets
import evaluate

from components.statistics import average
from eval.metrics.document import score_document
from eval.models.encoder import Entailment, Unli
from eval.select.core import Core
from records import Claim, Document, Verdict
from records.abstention import responds

_DESCRIPTION = """Factual precision over the subclaims that Core selects (arXiv 2407.03572,
section 3): informative, distinct subclaims that their source sentences entail; and the precision
over all subclaims."""

_INPUTS = """
Args:
    predictions: one list per text: 1 for a supported claim, 0 otherwise, -1 for a failed claim.
    claims: the texts of these claims.
    sentences: the source sentence of each claim.
    topics: topic of each text.
    relation: folder of a relation checkpoint.
    unli: folder of a UNLI checkpoint; not needed with uniform weights.
    Other options are passed to eval.select.core.Core, e.g. bleached, weighting, p, epsilon.
Returns:
    factual_precision: mean over texts that respond and have a judged claim, or None.
    core_precision: the same over the claims that Core selects. A text without selected claims has
        0; texts without a claim that Core judged or without a judged selected claim are excluded.
    kept_share: mean share of selected claims among those that Core could judge.
    n: number of texts of the first mean.
    failed: number of failed claims.
"""
_LABELS = {1: "supported", 0: "not_supported", -1: "failed"}


class CorePrecision(evaluate.Metric):
    """Factual precision with and without Core, from claims and decisions."""

    def _info(self) -> evaluate.MetricInfo:
        several = datasets.Sequence(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="Jiang et al. 2024, arXiv 2407.03572",
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(datasets.Value("int32")),
                    "claims": several,
                    "sentences": several,
                    "topics": datasets.Value("string"),
                }
            ),
        )

    def _compute(
        self, predictions, claims, sentences, topics, relation, unli=None, **options
    ) -> dict:
        core = Core(Entailment(relation), Unli(unli) if unli else None, **options)
        rows = zip(claims, sentences, strict=True)
        claim_lists = [
            [
                Claim(id=f"c{place}", text=text, source=source)
                for place, (text, source) in enumerate(zip(*row, strict=True))
            ]
            for row in rows
        ]
        documents = [
            Document(id=str(place), topic=topic, text=" ".join(text_sentences) or topic)
            for place, (topic, text_sentences) in enumerate(zip(topics, sentences, strict=True))
        ]
        plain, kept, shares = [], [], []
        failed = 0
        for document, group, decisions, selections in zip(
            documents, claim_lists, predictions, core(documents, claim_lists), strict=True
        ):
            verdicts = [
                Verdict(claim=claim.id, assessor="given", label=_LABELS[decision])
                for claim, decision in zip(group, decisions, strict=True)
            ]
            selected = {s.claim for s in selections if s.selected}
            unjudged = sum(s.reason == "failed" for s in selections)
            whole = score_document(responds(document), group, verdicts, None, 0)
            core_only = score_document(responds(document), group, verdicts, selected, 0, unjudged)
            failed += whole.failed
            if whole.judged and whole.responded:
                plain.append(whole.precision)
                shares += [len(selected) / judged] if (judged := len(group) - unjudged) else []
                kept += [] if core_only.precision is None else [core_only.precision]
        return {
            "factual_precision": average(plain),
            "core_precision": average(kept),
            "kept_share": average(shares),
            "n": len(plain),
            "failed": failed,
        }
