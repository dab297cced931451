"""The output format of FactReasoner and its baselines (2502.18573)."""

import math
from collections.abc import Sequence

import numpy as np

from eval.metrics.document import f1_at_k, recall_at_k
from eval.metrics.probabilities import binary_entropy, e_measure, negative_log
from eval.report.judged_document import Judged
from records import Claim, Verdict

_FACTREASONER = {"supported": "S", "not_supported": "NS", "contradicted": "C", "undecided": "U"}


def factreasoner(rows: Sequence[Judged], assessor: str) -> list[dict]:
    """Return ``*_output.json`` of FactReasoner (labels S and NS only) or of its baselines."""
    return [_factreasoner_row(row, assessor == "factreasoner") for row in rows]


def _factreasoner_row(row: Judged, is_factreasoner: bool) -> dict:
    document, decided = row.scored.document, row.decided()
    passage_ids = {passage.id for passage in row.scored.passages}
    query = (document.model_extra or {}).get("input", document.topic)
    support = {c.id: _FACTREASONER[v.label] for c, v in decided}
    if is_factreasoner:
        support = {name: "S" if label == "S" else "NS" for name, label in support.items()}
    precision = row.score.precision
    results = {
        "factuality_score_per_atom": [
            {c.id: {"score": v.p, "support": support[c.id]}} for c, v in decided
        ],
        "factuality_score": precision,
        "recall_k": recall_at_k(row.score.supported, row.k),
        "f1_k": None if precision is None else f1_at_k(precision, row.score.supported, row.k),
        "num_atoms": len(row.claims),
        "num_contexts": len(row.scored.passages),
        "num_true_atoms": row.score.supported,
        "num_false_atoms": sum(label in ("NS", "C") for label in support.values()),
        "num_uniform_atoms": row.score.undecided,
        **(_of_posteriors(decided) if is_factreasoner else _WITHOUT_POSTERIORS),
        "predictions": support,
        "topic": document.topic,
        "query": query,
        "response": document.text,
        "elapsed_time": None,
        "num_failed": row.score.failed,
    }
    return {
        "input": query,
        "output": document.text,
        "topic": document.topic,
        "cat": [name for name in (document.bin, document.group) if name],
        "atoms": [
            {
                "id": claim.id,
                "text": claim.text,
                "original": claim.original or claim.text,
                "label": claim.label,
                # FactReasoner's readers reject a context that the file does not contain.
                "contexts": [name for name in claim.contexts or [] if name in passage_ids],
            }
            for claim, _ in row.claims
        ],
        "contexts": [
            {
                "id": passage.id,
                "title": passage.title,
                "text": passage.text,
                "link": passage.url or "",
                "snippet": getattr(passage, "snippet", ""),
                "synthetic_summary": getattr(passage, "synthetic_summary", ""),
                "probability": passage.prior,
            }
            for passage in row.scored.passages
        ],
        "results": results,
    }


_MEASURES = ("entropy", "norm_entropy", "avg_entropy", "avg_norm_entropy", "avg_prob")
_MEASURES += ("avg_logprob", "avg_explogprob")
_WITHOUT_POSTERIORS: dict = {**dict.fromkeys(_MEASURES), "marginals": []}


def _of_posteriors(decided: Sequence[tuple[Claim, Verdict]]) -> dict:
    """The released code's measures: ``entropy`` is Σ -P ln P (natural logarithm).

    ``norm_entropy`` is the sum of binary entropies in bits. P is clipped to [1e-6, 1 - 1e-6].
    """
    p = {claim.id: verdict.p for claim, verdict in decided if verdict.p is not None}
    if not p:
        return _WITHOUT_POSTERIORS
    clipped = np.clip(list(p.values()), 1e-6, 1 - 1e-6)
    logarithm = -negative_log(clipped)
    entropy, bits = e_measure(clipped) * math.log(10), binary_entropy(clipped)
    return {
        "entropy": entropy * len(p),
        "norm_entropy": bits * len(p),
        "avg_entropy": entropy,
        "avg_norm_entropy": bits,
        "avg_prob": float(clipped.mean()),
        "avg_logprob": logarithm,
        "avg_explogprob": math.exp(logarithm),
        "marginals": [{"variable": name, "probabilities": [1 - v, v]} for name, v in p.items()],
    }
