"""Scored documents as other projects write them, so that their scripts and tables can go on.

Each writes the verdicts of one assessor with one selection; field names are the projects' own.
What they have no room for stays out: a claim that failed has no decision there, and its number
stands in a field of ours, ``num_failed``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from eval.aggregate import DocumentScore, f1_at_k, recall_at_k, score_document
from eval.pipeline import Scored
from eval.stages import Selection
from records import Claim, Passage, Verdict, atomic_file, json_line

Format = Literal["factscore", "veriscore", "safe", "factreasoner"]


class Judged(NamedTuple):
    """A document with the verdicts of one assessor and one selection.

    Attributes:
        scored: all that is known of the document.
        score: the aggregation of the verdicts.
        claims: with their verdicts, those that were judged or failed in it.
        k: K of recall@K.
    """

    scored: Scored
    score: DocumentScore
    claims: list[tuple[Claim, Verdict]]
    k: int

    def decided(self) -> list[tuple[Claim, Verdict]]:
        """The claims that have a decision."""
        return [pair for pair in self.claims if pair[1].label not in ("failed", "irrelevant")]

    def evidence(self, claim: Claim) -> list[Passage]:
        """The passages that a claim was judged by, best first."""
        by_id = {passage.id: passage for passage in self.scored.passages}
        return [by_id[name] for name in claim.contexts or [] if name in by_id]

    def by_sentence(self) -> list[tuple[str, list[Claim]]]:
        """The source sentences, in the order of the text, each with its subclaims."""
        found: dict[int, tuple[str, list[Claim]]] = {}
        for claim in self.scored.claims:
            own = found.setdefault(claim.sentence, (claim.source or "", []))[1]
            if claim.failed is None:
                own.append(claim)
        return [found[index] for index in sorted(found)]


def write_formats(
    scored: Sequence[Scored], formats: Sequence[Format], output: Path, k: int
) -> list[Path]:
    """Write the files of other projects.

    Returns:
        The files, ``FORMAT.ASSESSOR.NAME[.core].json[l]``: one a format, assessor and selection.
    """
    paths = []
    views = list(
        dict.fromkeys((s.assessor, s.name, s.selection) for d in scored for s in d.scores if s.kept)
    )
    for name in formats:
        write, suffix = _WRITERS[name]
        for assessor, verdict, selection in views:
            rows = [_judged(document, assessor, verdict, selection, k) for document in scored]
            core = ".core" if selection == "core" else ""
            path = output / f"{name}.{assessor}.{verdict}{core}.{suffix}"
            with atomic_file(path) as file:
                for line in write(rows, assessor):
                    file.write(line + "\n")
            paths.append(path)
    return paths


def _judged(document: Scored, assessor: str, name: str, selection: str, k: int) -> Judged:
    kept: set[str] | None = None
    verdicts = document.verdicts
    if selection == "core":
        kept = _selected(document.selections)
        own = [v for v in document.core_verdicts if (v.assessor, v.name) == (assessor, name)]
        verdicts = own or verdicts
    by_claim = {v.claim: v for v in verdicts if (v.assessor, v.name) == (assessor, name)}
    claims = [
        (claim, by_claim[claim.id])
        for claim in document.claims
        if claim.id in by_claim and (kept is None or claim.id in kept)
    ]
    score = next(
        (
            s
            for s in document.scores
            if (s.assessor, s.name, s.selection) == (assessor, name, selection)
        ),
        None,
    ) or score_document(document.document, document.claims, [], kept)
    return Judged(document, score, claims, k)


def _selected(selections: Sequence[Selection]) -> set[str]:
    return {selection.claim for selection in selections if selection.selected}


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _factscore(rows: Sequence[Judged], assessor: str) -> list[str]:
    """FActScore's ``<in>_factscore_output.json``: one object for all texts.

    As there, a text without a single decision has ``null`` for them, whose mean is none.
    """
    decisions = [
        [{"atom": c.text, "is_supported": v.label == "supported"} for c, v in row.decided()] or None
        if row.score.responded
        else None
        for row in rows
    ]
    scores = [row.score.factscore for row in rows if row.score.factscore is not None]
    plain = [row.score.precision for row in rows if row.score.precision is not None]
    answered = [own for own in decisions if own is not None]
    return [
        json_line(
            {
                "score": _mean(scores),
                "respond_ratio": _mean([float(row.score.responded) for row in rows]),
                "decisions": decisions,
                "num_facts_per_response": _mean([len(own) for own in answered]),
                "init_score": _mean(plain),
                "num_failed": sum(row.score.failed for row in rows),
            }
        )
    ]


_VERISCORE = {
    "supported": "supported",
    "not_supported": "unsupported",
    "contradicted": "contradicted",
    "undecided": "inconclusive",
}


def _veriscore(rows: Sequence[Judged], assessor: str) -> list[str]:
    """VeriScore's ``model_output/verification_*.jsonl``, with the fields of the steps before it.

    A claim's text is its name there, so that of claims with the same text the first one counts.
    """
    lines = []
    for row in rows:
        document = row.scored.document
        found: dict[str, list[dict[str, str]]] = {}
        for claim, _ in row.claims:
            found.setdefault(claim.text, [_hit(p) for p in row.evidence(claim)])
        decided: dict[str, Verdict] = {}
        for claim, verdict in row.decided():
            decided.setdefault(claim.text, verdict)
        lists = [[claim.text for claim in own] for _, own in row.by_sentence()]
        lines.append(
            {
                # A text that answers no question has its id for a topic.
                "question": "" if document.topic == document.id else document.topic,
                "prompt_source": (document.model_extra or {}).get("prompt_source", ""),
                "response": document.text,
                "prompt_tok_cnt": None,
                "response_tok_cnt": None,
                "model": document.generator or "",
                "abstained": not row.score.responded,
                "claim_list": [own or ["No verifiable claim."] for own in lists],
                "all_claims": list(dict.fromkeys(text for own in lists for text in own)),
                "claim_search_results": found,
                "claim_verification_result": [
                    {
                        "claim": text,
                        "search_results": _as_text(found[text]),
                        "verification_result": _VERISCORE[verdict.label],
                    }
                    for text, verdict in decided.items()
                ],
                "num_failed": row.score.failed,
            }
        )
    return [json_line(line) for line in lines]


def _hit(passage: Passage) -> dict[str, str]:
    return {"title": passage.title, "snippet": passage.text, "link": passage.url or ""}


def _as_text(hits: Sequence[dict[str, str]]) -> str:
    return "\n\n".join(
        f"Search result {number}\nTitle: {hit['title']}\nLink: {hit['link']}\n"
        f"Content: {hit['snippet']}"
        for number, hit in enumerate(hits, 1)
    )


_SAFE = {"supported": "Supported", "irrelevant": "Irrelevant"}


def _safe(rows: Sequence[Judged], assessor: str) -> list[str]:
    """SAFE's result file (``eval/run_eval.py``): one object, without a second side.

    F1@K is 0 where nothing is supported, as SAFE's own is.
    """
    prompts = []
    for row in rows:
        document = row.scored.document
        statements = [_statement(claim, verdict) for claim, verdict in row.claims]
        facts = [(text, [c.original or c.text for c in own]) for text, own in row.by_sentence()]
        counts = {
            label: sum(s["annotation"] == label for s in statements)
            for label in ("Supported", "Irrelevant", "Not Supported")
        }
        precision, supported = row.score.precision, row.score.supported
        data = {
            "prompt": document.topic,
            "response": document.text,
            "num_claims": sum(len(own) for _, own in facts),
            "sentences_and_atomic_facts": facts,
            "all_atomic_facts": [
                {"sentence": sentence, "atomic_facts": own} for sentence, own in facts
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
    side = rows[0].scored.document.generator if rows else None
    whole = {"side_1": side or "", "side_2": "none", "per_prompt_data": prompts}
    return [json_line(whole | {"autoeval_configs": {"assessor": assessor}})]


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
            "revised_fact": claim.text,  # theirs is the answer that it stands in
            "is_relevant": extra.get("relevance_response", ""),
        },
        "rate_data": None if label == "Irrelevant" else rated,
        "annotation": label,
    }


def _searches(verdict: Verdict) -> dict:
    """What was searched for a claim; nothing where its assessor does not search."""
    steps = (verdict.model_extra or {}).get("steps", [])
    found = [{"query": step["query"], "result": step["result"] or ""} for step in steps]
    return {"google_searches": found} if found else {}


_FACTREASONER = {"supported": "S", "not_supported": "NS", "contradicted": "C", "undecided": "U"}


def _factreasoner(rows: Sequence[Judged], assessor: str) -> list[str]:
    """FactReasoner's ``*_output.json`` of its baselines, one object a line."""
    return [json_line(_factreasoner_row(row)) for row in rows]


def _factreasoner_row(row: Judged) -> dict:
    document, decided = row.scored.document, row.decided()
    support = {c.id: _FACTREASONER[v.label] for c, v in decided}
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
        # Of posteriors only, which a baseline has none of.
        "entropy": None,
        "norm_entropy": None,
        "avg_entropy": None,
        "avg_norm_entropy": None,
        "avg_prob": None,
        "avg_logprob": None,
        "avg_explogprob": None,
        "marginals": [],
        "predictions": support,
        "topic": document.topic,
        "query": document.topic,
        "response": document.text,
        "elapsed_time": None,
        "num_failed": row.score.failed,
    }
    return {
        "input": document.topic,
        "output": document.text,
        "topic": document.topic,
        "cat": [document.group] if document.group else [],
        "atoms": [
            {
                "id": claim.id,
                "text": claim.text,
                "original": claim.original or claim.text,
                "label": claim.label,
                "contexts": claim.contexts or [],
            }
            for claim, _ in row.claims
        ],
        "contexts": [
            {
                "id": passage.id,
                "title": passage.title,
                "text": passage.text,
                "link": passage.url or "",
                "snippet": "",
                "synthetic_summary": "",
                "probability": passage.prior,
            }
            for passage in row.scored.passages
        ],
        "results": results,
    }


_WRITERS: dict[Format, tuple[Callable[[Sequence[Judged], str], list[str]], str]] = {
    "factscore": (_factscore, "json"),
    "veriscore": (_veriscore, "jsonl"),
    "safe": (_safe, "json"),
    "factreasoner": (_factreasoner, "jsonl"),
}
