"""Rows of RAGAS, DeepEval, LettuceDetect and HaluBench: a question, an answer, and evidence."""

from records.evidence import evidence_of
from records.formats.judged_claims import (
    NOT_SUPPORTED,
    SUPPORTED,
    claim_of,
    document_of_pair,
    required_text,
)
from records.formats.ragtruth import judge_spans
from records.formats.row_fields import document_of

# Names of the question and the answer.
_FORMS = (
    ("user_input", "response"),  # RAGAS
    ("input", "actual_output"),  # DeepEval
    ("input", "actualOutput"),  # DeepEval, as its API writes it
    ("question", "answer"),  # RAGAS before 0.2, HaluBench
)
_HALUBENCH = {"PASS": SUPPORTED, "FAIL": NOT_SUPPORTED}


def rag(row: dict, number: int) -> dict | None:
    """Read an answer with its passages, or without any.

    An answer of LettuceDetect or HaluBench (``label`` PASS or FAIL) is one claim.
    """
    if {"prompt", "answer", "labels"} <= row.keys():
        prompt, answer = required_text(row, "prompt"), required_text(row, "answer")
        group = row.get("dataset") or row.get("task_type")
        return document_of_pair(
            row, number, answer, prompt, judge_spans(row["labels"]), None, group
        )
    form = next((form for form in _FORMS if set(form) <= row.keys()), None)
    if form is None:
        return None
    question, answer = form
    passages = evidence_of(row)
    topic = {"topic": row.get("topic") or required_text(row, question)}
    document = document_of(row | topic, number, row[answer] or "")
    document |= {} if passages is None else {"passages": passages}
    if passages and row.get("label") in _HALUBENCH:
        judgement = _HALUBENCH[row["label"]]
        document["claims"] = [claim_of(document["text"], judgement, passages)]
    return document
