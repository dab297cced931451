"""VeriScore's output format (2406.19276)."""

from collections.abc import Sequence

from eval.exports.judged_document import Judged
from records import Verdict, json_line

_VERISCORE = {
    "supported": "supported",
    "not_supported": "unsupported",
    "contradicted": "contradicted",
    "undecided": "inconclusive",
}


def veriscore(rows: Sequence[Judged], assessor: str) -> list[str]:
    """Write VeriScore's ``model_output/verification_*.jsonl``, with fields of earlier steps.

    Claims are identified by their text there, so only the first of several equal claims counts.
    """
    lines = []
    for row in rows:
        document = row.scored.document
        hits: dict[str, list[dict[str, str]]] = {}
        for claim, _ in row.claims:
            passages = row.evidence(claim)
            results = [{"title": p.title, "snippet": p.text, "link": p.url or ""} for p in passages]
            hits.setdefault(claim.text, results)
        decided: dict[str, Verdict] = {}
        for claim, verdict in row.decided():
            decided.setdefault(claim.text, verdict)
        lists = [[claim.text for claim in claims] for _, claims in row.by_sentence()]
        lines.append(
            {
                # A text without a question has its id as topic.
                "question": "" if document.topic == document.id else document.topic,
                "prompt_source": (document.model_extra or {}).get("prompt_source", ""),
                "response": document.text,
                "prompt_tok_cnt": None,
                "response_tok_cnt": None,
                "model": document.generator or "",
                "abstained": not row.score.responded,
                "claim_list": [texts or ["No verifiable claim."] for texts in lists],
                "all_claims": list(dict.fromkeys(text for texts in lists for text in texts)),
                "claim_search_results": hits,
                "claim_verification_result": [
                    {
                        "claim": text,
                        "search_results": _as_text(hits[text]),
                        "verification_result": _VERISCORE[verdict.label],
                    }
                    for text, verdict in decided.items()
                ],
                "num_failed": row.score.failed,
            }
        )
    return [json_line(line) for line in lines]


def _as_text(hits: Sequence[dict[str, str]]) -> str:
    return "\n\n".join(
        f"Search result {number}\nTitle: {hit['title']}\nLink: {hit['link']}\n"
        f"Content: {hit['snippet']}"
        for number, hit in enumerate(hits, 1)
    )
