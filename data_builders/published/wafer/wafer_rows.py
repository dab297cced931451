"""Read WAFER's rows, and checks of claims and references."""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from components.sentences import split_sentences
from records import BadInput, iter_rows

FAILED = "{Failed verification}"
MARK = "[CIT]"

_MARKUP = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|==|\||</?\w+[^>]*>|https?://|www\.|\[\d+\]|\[CIT|citation needed|&\w+;"
)
_MARKS_AFTER_STOP = re.compile(r"([.!?][\"'”’)]*)((?:\s*\[CIT\])+)")
# Chunk names of the authors' script (UUID or hash) have no order.
_HASH = re.compile(r"[0-9a-fA-F-]{32,}")
_LIST_MARK = re.compile(r"[*#•·–—-]\s|\(?\d{1,2}[.)]\s|[:;]")
_ERROR_PAGE = re.compile(
    r"\b404 (?:error|not found)|error 404|page (?:was |could )?not (?:be )?found|access denied|"
    r"(?:enable|requires?) javascript|javascript is disabled|are you a robot|verify you are human|"
    r"domain (?:is|may be) for sale|no longer available|page (?:you requested|cannot be displayed)|"
    r"enable cookies|403 forbidden|internal server error",
    re.IGNORECASE,
)
_ENGLISH = frozenset(
    {
        "the",
        "of",
        "and",
        "to",
        "in",
        "a",
        "is",
        "was",
        "for",
        "on",
        "that",
        "with",
        "by",
        "as",
        "at",
        "from",
        "it",
        "his",
        "her",
        "he",
        "she",
        "this",
        "are",
        "an",
        "be",
        "or",
        "not",
        "has",
        "had",
        "have",
        "were",
        "which",
        "their",
        "its",
        "they",
        "you",
        "we",
        "i",
        "but",
    }
)


def citation_rows(path: str | Path) -> Iterator[tuple[str, dict]]:
    """Yield the rows of a WAFER file with their locations; a ``.tar.gz`` is streamed."""
    if not str(path).lower().endswith((".tar.gz", ".tgz", ".tar")):
        yield from ((f"{path}:{number}", row) for number, row in iter_rows(path, any_text=True))
        return
    try:
        with tarfile.open(path, mode="r|*") as archive:
            for member in archive:
                if not member.isfile() or not member.name.endswith((".jsonl", ".json")):
                    continue
                for number, line in enumerate(archive.extractfile(member), 1):
                    where = f"{path}/{member.name}:{number}"
                    if line.strip():
                        yield where, _parse_object(line, where)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BadInput([f"{path}: file: cannot be read ({error})"]) from None


def _parse_object(line: bytes, where: str) -> dict:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput([f"{where}: json: {error}; the line may be truncated"]) from None
    if not isinstance(row, dict):
        raise BadInput([f"{where}: json: expected an object"])
    return row


def read_citation(row: dict, where: str) -> dict:
    """Parse one WAFER row.

    Returns:
        ``claim`` (the marked sentence without the mark), ``marks`` (their number), ``failed``,
        ``reference`` (the page's passages in the order of their chunks), ``url`` and the titles.
    """
    for field, kind in (("id", (str, int)), ("input", str), ("output", list), ("meta", dict)):
        if not isinstance(row.get(field), kind):
            raise BadInput([f"{where}: {field}: missing, or not of WAFER's type"])
    outputs = [output for output in row["output"] if isinstance(output, dict)]
    if not outputs or not all(isinstance(o.get("answer"), str) for o in outputs):
        raise BadInput([f"{where}: output: answer: expected an address or {FAILED!r}"])
    meta = row["meta"]
    lists = [("meta: sentences", meta.get("sentences"))]
    lists += [("output: provenance", output.get("provenance")) for output in outputs]
    for field, value in lists:
        if not isinstance(value, list | None):
            raise BadInput([f"{where}: {field}: expected a list, got {str(value)[:60]!r}"])
    marked = [s for s in meta.get("sentences") or [] if isinstance(s, str) and MARK in s]
    sentence = marked[-1] if marked else _marked_sentence(row["input"])
    cited = next((o for o in outputs if _texts(o)), outputs[0])
    passages = _texts(cited)
    provenance = [p for p in cited.get("provenance") or [] if isinstance(p, dict)]
    address = cited["answer"] if cited["answer"] != FAILED else ""
    return {
        "id": str(row["id"]),
        "claim": strip_mark(sentence) if sentence else None,
        "marks": sentence.count(MARK) if sentence else 0,
        "failed": any(output["answer"] == FAILED for output in outputs),
        "reference": " ".join(passages) or None,
        "url": address or next((str(p["url"]) for p in provenance if p.get("url")), ""),
        "chunks": [p["chunk_id"] for p in provenance if p.get("chunk_id") is not None],
        "reference_title": next((str(p["title"]) for p in provenance if p.get("title")), ""),
        "title": str(meta.get("wikipedia_title") or ""),
        "section": str(meta.get("wikipedia_section") or ""),
        "featured": bool(meta.get("featured")),
    }


def _texts(output: dict) -> list[str]:
    pieces = [p for p in output.get("provenance") or [] if isinstance(p, dict) and p.get("text")]
    pieces.sort(key=lambda passage: chunk_number(passage.get("chunk_id")))
    return list(dict.fromkeys(" ".join(str(p["text"]).split()) for p in pieces))


def chunk_number(chunk: object) -> int:
    """Return the last number in a chunk's id, 0 without one (18 digits at most, for SQLite)."""
    if _HASH.fullmatch(str(chunk)):
        return 0
    return int((re.findall(r"\d+", str(chunk)) or ["0"])[-1][:18])


def _marked_sentence(text: str) -> str | None:
    # Move marks before the full stop: the splitter would assign them to the next sentence.
    text = _MARKS_AFTER_STOP.sub(r" \2\1", text.split("[SEP]")[-1])
    return next((s for s in split_sentences(text) if MARK in s), None)


def strip_mark(sentence: str) -> str:
    mark = re.escape(MARK)
    sentence = re.sub(rf"(?:\s*{mark})+\s*(?=[.,;:!?)]|$)", "", sentence)
    return " ".join(re.sub(rf"\s*{mark}\s*", " ", sentence).split())


def is_fragment(claim: str, title: str) -> bool:
    """Return whether a claim is a part of a sentence, a list item or only a title."""
    first = next((letter for letter in claim if letter.isalnum()), "")
    opening = claim[0].isalnum() or claim[0] in "\"'“‘(«$£€"
    if not opening or first.islower() or _LIST_MARK.match(claim) or claim[-1] in ",;:-–—(":
        return True
    return claim.rstrip(".") == title or sum(word[0].islower() for word in claim.split()) < 3


def has_markup(claim: str) -> bool:
    """Return whether a claim has wiki or HTML markup, a URL or a citation mark."""
    return bool(_MARKUP.search(claim))


def is_error_page(reference: str) -> bool:
    return bool(_ERROR_PAGE.search(reference))


def english_share(reference: str) -> float:
    words = [word.strip(".,;:\"'()").lower() for word in reference.split()]
    return sum(word in _ENGLISH for word in words) / max(1, len(words))
