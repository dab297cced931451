"""What every text of another project has: a topic, who wrote it, its cell of Core's grid."""

import re

# VeriScore's `question` tells its extraction whether a text is an answer to one; `adversary` and
# `step` say of which training a text is, and how far that had come; `responds`, whether it says
# anything at all (``abstention.py``).
KEPT = (
    *("group", "bin", "kind", "generator", "question", "prompt_source", "adversary", "step"),
    "responds",
)
# The bins of FActScore's ``cat``, as it and FactReasoner spell them.
_FREQUENCIES = {"very rare", "rare", "medium", "frequent", "very frequent", "freq", "very freq"}
# FActScore's prompt, which is a sentence, and HALoGEN's, which is not.
_BIO = re.compile(r"Tell me a (?:bio|biography) of (.+)", re.DOTALL)
_ASKED = re.compile(r"Question: Tell me a (?:bio|biography) of (.+?)\.?", re.DOTALL)


def topic_of(row: dict) -> str | None:
    """Whom or what a text is about: its ``topic``, else what its prompt asks for.

    The prompt of a biography (``Tell me a bio of …``) gives the name in it.
    """
    if row.get("topic"):
        return row["topic"]
    asked = row.get("prompt") or row.get("question") or row.get("input")
    found = asked and (_ASKED.fullmatch(asked) or _BIO.fullmatch(asked))
    return found[1].strip() if found else asked


def kept_fields(row: dict) -> dict[str, object]:
    """The fields that a text keeps; FActScore's ``cat`` is its frequency and its region."""
    cat = row.get("cat") or []
    names = [cat] if isinstance(cat, str) else cat
    cell = {"bin" if name in _FREQUENCIES else "group": name for name in names}
    return cell | {name: row[name] for name in KEPT if row.get(name) is not None}


def document_of(row: dict, number: int, text: str, **more: object) -> dict:
    """The fields of a document.

    Args:
        row: of the other project.
        number: of the row in its file; names a document that has no ``id``.
        text: the document's.
        more: further fields.

    Raises:
        ValueError: nothing says what the text is about.
    """
    name = f"d{number}" if row.get("id") is None else str(row["id"])
    topic = topic_of(row)
    if not topic and "prompt_source" in row:  # VeriScore's texts that answer no question
        topic = name
    if not topic:
        raise ValueError("topic: field required; prompt, question or input would do")
    kept = kept_fields(row)
    if isinstance(row.get("model"), str) and row["model"]:  # VeriScore
        kept.setdefault("generator", row["model"])
    return {"id": name, "topic": topic, "text": text, **kept, **more}


def text_of(row: dict) -> str | None:
    """The text of a row of any project: FActScore's ``output``, VeriScore's ``response``, ours.

    adversarial-factuality's samples have ``output`` twice, as ``raw`` and as ``parsed``.
    """
    output = row.get("output")
    if isinstance(output, dict):
        return output.get("parsed") or output["raw"]
    texts = (output, row.get("response"), row.get("text"))
    return next((text for text in texts if isinstance(text, str)), None)


def plain_text(row: dict, number: int) -> dict | None:
    """A text of any project, or ours without its id or its topic."""
    text = text_of(row)
    if text is None:
        return None
    others = (row.get("output"), row.get("response"))
    ours = not any(isinstance(other, str | dict) for other in others)
    return (row if ours else {}) | document_of(row, number, text)


def to_generation(row: dict) -> dict:
    """A text of any project as a generation; one of ours as it is."""
    text = None if "text" in row else text_of(row)
    return row if text is None else {"topic": topic_of(row), "text": text, **kept_fields(row)}
