"""Common fields of other projects' texts: topic, generator, group and frequency bin."""

import re

# `question` selects VeriScore's extraction prompt for answers; `adversary` and `step` name the
# training run and step of a text; for `responds` see ``abstention.py``.
KEPT_FIELDS = (
    *("group", "bin", "kind", "generator", "question", "prompt_source", "adversary", "step"),
    "responds",
)
# The bins of FActScore's ``cat``, in the spellings of FActScore and FactReasoner.
_FREQUENCIES = {"very rare", "rare", "medium", "frequent", "very frequent", "freq", "very freq"}
# Prompts of FActScore and HALoGEN.
_BIO = re.compile(r"Tell me a (?:bio|biography) of (.+)", re.DOTALL)
_QUESTION_BIO = re.compile(r"Question: Tell me a (?:bio|biography) of (.+?)\.?", re.DOTALL)


def topic_of(row: dict) -> str | None:
    """Return what a text is about: its ``topic``, else its prompt.

    For biography prompts (``Tell me a bio of …``) this is the name.
    """
    topic = row.get("topic") or (isinstance(meta := row.get("meta"), dict) and meta.get("topic"))
    if topic:
        return topic
    prompt = row.get("prompt") or row.get("question") or row.get("input")
    match = prompt and (_QUESTION_BIO.fullmatch(prompt) or _BIO.fullmatch(prompt))
    return match[1].strip() if match else prompt


def kept_fields(row: dict) -> dict[str, object]:
    """Return the fields to keep; FActScore's ``cat`` is split into ``bin`` and ``group``."""
    cat = row.get("cat") or []
    names = [cat] if isinstance(cat, str) else cat
    cell = {"bin" if name in _FREQUENCIES else "group": name for name in names}
    return cell | {name: row[name] for name in KEPT_FIELDS if row.get(name) is not None}


def document_of(row: dict, number: int, text: str, **more: object) -> dict:
    """Return the fields of a document; ``number`` is the id of rows without one."""
    name = row.get("id", row.get("id_"))
    name = f"d{number}" if name is None else str(name)
    topic = topic_of(row)
    if not topic and "prompt_source" in row:  # VeriScore's texts without a question
        topic = name
    if not topic:
        raise ValueError(
            f"topic: field required (or prompt, question, input); the row has {', '.join(row)}; "
            "name it with --fields '{topic: NAME}'"
        )
    kept = kept_fields(row)
    if isinstance(row.get("model"), str) and row["model"]:  # VeriScore
        kept.setdefault("generator", row["model"])
    return {"id": name, "topic": topic, "text": text, **kept, **more}


def text_of(row: dict) -> str | None:
    """Return the text of a row: FActScore's ``output``, VeriScore's ``response`` or our ``text``.

    adversarial-factuality has ``output`` with ``raw`` and ``parsed``, and for ExpertQA's questions
    ``generation`` (with ``meta.topic``).
    """
    output = row.get("output", row.get("generation"))
    if isinstance(output, dict):
        return output.get("parsed") or output["raw"]
    texts = (output, row.get("response"), row.get("text"))
    return next((text for text in texts if isinstance(text, str)), None)


def plain_text(row: dict, number: int) -> dict | None:
    """Read a text of any project, or ours without id or topic."""
    text = text_of(row)
    if text is None:
        return None
    foreign_texts = (row.get("output"), row.get("generation"), row.get("response"))
    ours = not any(isinstance(foreign, str | dict) for foreign in foreign_texts)
    return (row if ours else {}) | document_of(row, number, text)


def to_generation(row: dict) -> dict:
    """Convert a text of any project into a generation."""
    text = None if "text" in row else text_of(row)
    return row if text is None else {"topic": topic_of(row), "text": text, **kept_fields(row)}
