"""SAFE's output format (2403.18802)."""

from collections.abc import Sequence

from eval.exports.judged_document import Judged
from eval.metrics.document import f1_at_k
from records import Claim, Verdict, json_line

_SAFE = {"supported": "Supported", "irrelevant": "Irrelevant"}


def safe(rows: Sequence[Judged], assessor: str) -> list[str]:
    """Write SAFE's result file (``eval/run_eval.py``): one object, with one side only."""
    prompts = []
    for row in rows:
        document = row.scored.document
        statements = [_statement(claim, verdict) for claim, verdict in row.claims]
        facts = [(text, [c.original or c.text for c in cs]) for text, cs in row.by_sentence()]
        counts = {
            label: sum(s["annotation"] == label for s in statements)
            for label in ("Supported", "Irrelevant", "Not Supported")
        }
        precision, supported = row.score.precision, row.score.supported
        data = {
            "prompt": document.topic,
            "response": document.text,
            "num_claims": sum(len(texts) for _, texts in facts),
            "sentences_and_atomic_facts": facts,
            "all_atomic_facts": [
                {"sentence": sentence, "atomic_facts": texts} for sentence, texts in facts
            ],
            "checked_statements": statements,
            "revised_fact_jsonified_all": [s["relevance_data"] for s in statements],
            "past_steps_jsonified_all": [_searches(verdict) for _, verdict in row.claims],
            **counts,
            f"f1_{row.k}": f1_at_k(precision or 0.0, supported, row.k),
            "num_failed": row.score.failed,
        }
        prompts.append(
            {
                "prompt": document.topic,
                "side1_response": document.text,
                "side2_response": "",
                "side1_posthoc_eval_data": data,
            }
        )
    generators = sorted({row.scored.document.generator or "" for row in rows} - {""})
    sides = {"side_1": ", ".join(generators), "side_2": "none", "per_prompt_data": prompts}
    return [json_line(sides | {"autoeval_configs": {"assessor": assessor}})]


def _statement(claim: Claim, verdict: Verdict) -> dict:
    extra = verdict.model_extra or {}
    failed = verdict.label == "failed"
    label = None if failed else _SAFE.get(verdict.label, "Not Supported")
    rated = {"response": extra.get("response", ""), "answer": label}
    return {
        "sentence": claim.source or "",
        "atomic_fact": claim.original or claim.text,
        "self_contained_atomic_fact": claim.text,
        "relevance_data": {
            "atomic_fact": claim.original or claim.text,
            "revised_fact": claim.text,  # in SAFE the answer that contains it
            "is_relevant": extra.get("relevance_response", ""),
        },
        "rate_data": None if label == "Irrelevant" else rated,
        "annotation": label,
    }


def _searches(verdict: Verdict) -> dict:
    steps = (verdict.model_extra or {}).get("steps", [])
    searches = [{"query": step["query"], "result": step["result"] or ""} for step in steps]
    return {"google_searches": searches} if searches else {}
