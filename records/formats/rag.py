"""Rows of RAGAS, DeepEval and LettuceDetect: a question, an answer, and what was retrieved."""

from records.formats.judged_claims import document_of_pair, passages_of, required_text
from records.formats.ragtruth import judge_spans
from records.formats.row_fields import document_of

# Names of the question, the answer and the passages.
_FORMS = (
    ("user_input", "response", ("retrieved_contexts", "reference_contexts")),  # RAGAS
    ("input", "actual_output", ("retrieval_context", "context")),  # DeepEval
    ("input", "actualOutput", ("retrievalContext", "context")),  # DeepEval, as its API writes it
    ("question", "answer", ("contexts", "context")),  # RAGAS before 0.2
)


def rag(row: dict, number: int) -> dict | None:
    """Read an answer with its passages, or without any; a LettuceDetect answer is one claim."""
    if {"prompt", "answer", "labels"} <= row.keys():
        prompt, answer = required_text(row, "prompt"), required_text(row, "answer")
        group = row.get("dataset") or row.get("task_type")
        return document_of_pair(
            row, number, answer, prompt, judge_spans(row["labels"]), None, group
        )
    form = next((form for form in _FORMS if {form[0], form[1]} <= row.keys()), None)
    if form is None:
        return None
    question, answer, contexts = form
    passages = next((row[name] for name in contexts if row.get(name)), None)
    more = {} if passages is None else {"passages": passages_of(passages)}
    topic = {"topic": row.get("topic") or required_text(row, question)}
    return document_of(row | topic, number, row[answer] or "", **more)
