"""Columns that can only be evidence, and the shapes in which projects write evidence."""

import json
import re
from contextlib import suppress

# Names in snake case, most specific first: what was retrieved for the answer precedes the rest.
_RETRIEVED = re.compile(r"retriev(ed|al)_?\w*")
_EVIDENCE = re.compile(
    r"(\w+_)?(contexts?|passages?|knowledge|evidences?|documents?|docs|snippets?|chunks|ctxs)"
    r"|sources|search_results"
)
_NO_TEXT = re.compile(r"(\w+_)?(ids?|scores?|counts?|time)")
# Keys of a passage's text; a list of strings holds its sentences.
_TEXT_KEYS = (
    "text",
    "page_content",
    "content",
    "passage_text",
    "paragraph_text",
    "passage",
    "paragraph",
    "sentences",
    "snippet",
    "chunk",
    "search_context",
    "wiki_context",
    "context",
    "body",
    "document",
)
_TITLE_KEYS = ("title", "titles")
_ADDRESS = re.compile(r"(https?://|www\.)\S+|\S+\.(pdf|html?|docx?|txt|md)")


def is_evidence(column: str) -> bool:
    """Whether a column of this name can only hold evidence."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower()
    return bool(
        (_RETRIEVED.fullmatch(name) or _EVIDENCE.fullmatch(name)) and not _NO_TEXT.fullmatch(name)
    )


def evidence_passages(column: str, value: object) -> list[dict]:
    """Return passages with ``id`` and ``text`` (also ``title`` and other keys, if present).

    Args:
        column: the column's name, for messages.
        value: a text; a list of texts, of lists, of objects with a text, or of titles with their
            sentences (HotpotQA); or an object of parallel lists, as the Hub has them.
    """
    passages = list(_passages(column, value))
    if passages and all(_ADDRESS.fullmatch(str(p["text"]).strip()) for p in passages):
        raise ValueError(
            f"{column}: addresses without texts; remove the column or name the evidence with "
            "--fields '{passages: NAME}'"
        )
    return [{"id": f"p{index}"} | passage for index, passage in enumerate(passages)]


def _passages(column: str, value: object) -> list[dict]:
    if isinstance(value, str):
        return [{"text": text} for text in _texts(value)]
    if isinstance(value, dict):
        return _passages_of_object(column, value)
    if not isinstance(value, list | tuple):
        raise _unknown_shape(column, value)
    if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], list):
        return [{"title": value[0], "text": _joined(column, value[1])}]
    return [passage for item in value for passage in _passages(column, item)]


def _texts(value: str) -> list[str]:
    """Return the texts of a JSON list of texts that was written as one text, else the text."""
    with suppress(ValueError, RecursionError):
        texts = json.loads(value) if value[:1] == "[" else None
        if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
            return texts
    return [value]


def _passages_of_object(column: str, value: dict) -> list[dict]:
    key = next((key for key in _TEXT_KEYS if isinstance(value.get(key), str | list)), None)
    if key is None:
        raise _unknown_shape(column, value)
    texts, titles = value[key], next((value[key] for key in _TITLE_KEYS if key in value), None)
    if isinstance(texts, list) and not isinstance(titles, list):
        parallel = any(isinstance(other, list) for name, other in value.items() if name != key)
        texts = texts if parallel or titles is None else _joined(column, texts)
    if isinstance(texts, str):
        return [value | {"text": texts}]
    titles = titles if isinstance(titles, list) else [titles or ""] * len(texts)
    if len(titles) != len(texts):
        raise ValueError(f"{column}: has {len(titles)} titles and {len(texts)} texts")
    return [
        {"title": title, "text": _joined(column, text)}
        for title, text in zip(titles, texts, strict=True)
    ]


def _joined(column: str, sentences: object) -> str:
    if isinstance(sentences, str):
        return sentences
    if not isinstance(sentences, list) or not all(isinstance(part, str) for part in sentences):
        raise _unknown_shape(column, sentences)
    return " ".join(part.strip() for part in sentences)


def _unknown_shape(column: str, value: object) -> ValueError:
    shape = f"an object with {', '.join(map(str, value))}" if isinstance(value, dict) else value
    return ValueError(
        f"{column}: expected a text, or a list of texts or of objects with a text, got "
        f"{str(shape)[:80]}; write a tool's output as one string, e.g. with json.dumps, or name "
        "another column with --fields '{passages: NAME}'"
    )
