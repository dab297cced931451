"""The sentence splitter of decomposers, verifiers and builders."""

import re
from collections.abc import Sequence
from itertools import pairwise

import nupunkt

# Content of [1], [2, 3], [4-6]; four digits are a year.
CITATION_NUMBERS = r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*"
# Line breaks before a citation are kept. The lookbehind avoids quadratic time in runs of blanks.
_CITATION = re.compile(rf"(?<![^\S\r\n])[^\S\r\n]*\[(?:{CITATION_NUMBERS}|citation needed)\]")
_BULLET = re.compile(r"^(?:[-*•–—]|\d{1,2}[.)]|\(\d{1,2}\))\s+(?=\S)")
# Markdown code fences, and heading marks with numbers.
_FENCE = re.compile(r"```\S*")
_HEADING = re.compile(r"#{1,6}\s+(?:\d{1,2}(?:\.\d{1,2})*[.)]?\s+)?")

# nupunkt was trained on legal texts, where "Art.", "Iowa." or "leg." rarely end a sentence.
# Also split after a lower-case word with a full stop before a capital, ...
_AFTER_LOWERCASE = re.compile(r"(?<![\w.])[a-z]{3,}[.!?][\"'”’)]*\s+(?=[\"'“‘(]*[A-Z])")
# ... and after any other word before words that only start sentences.
_BEFORE_OPENER = re.compile(
    r"(?<![\w.])(?:[A-Z][\w’'-]{2,}|\d{3,})[.!?][\"'”’)]*\s+"
    r"(?=(?:He|She|They|It|His|Her|Their|Its|This|These|There|However|Although|During|After)\s"
    r"|(?:However|Additionally|Later|Today|Currently),)"
)
# Abbreviations after which nupunkt and these rules split wrongly.
_ENDS_IN_TITLE = re.compile(
    r"(?:^|[\s(\"“])(?:Adm|Amb|Brig|Capt|Cdr|Cmdr|Col|Cpl|Dr|Fr|Gen|Gov|Hon|Insp|Lieut|Lt|Maj|Mme|Mr"
    r"|Mrs|Ms|Msgr|Prof|Pvt|Rep|Rev|Sen|Sgt|feat|incl|approx|vols?)\.$",
    re.IGNORECASE,
)


def remove_citations(text: str) -> str:
    """Remove citation numbers such as ``[1]`` or ``[2, 3]``."""
    return _CITATION.sub("", text)


def split_sentences(text: str, headings: bool = False) -> list[str]:
    """Return the sentences of a text, without blank ones, Markdown headings and list bullets.

    A line break ends a sentence. As in FActScore's splitter (2305.14251), a single word, or a piece
    that starts with a lower-case letter, is joined to the previous piece. ``headings`` are kept in
    evidence to name the subject of the following text.
    """
    pieces: list[str] = []
    for line in text.splitlines():
        line = _BULLET.sub("", line.strip())
        if not _FENCE.fullmatch(line) and (headings or not _is_heading(line)):
            pieces.extend(_pieces(line))
    return [sentence for sentence in pieces if any(char.isalnum() for char in sentence)]


def _is_heading(line: str) -> bool:
    prefix = _HEADING.match(line)
    return prefix is not None and len(_pieces(line[prefix.end() :])) < 2


def _pieces(line: str) -> list[str]:
    return _join_fragments(
        [piece for sentence in nupunkt.sent_tokenize(line) for piece in _split_further(sentence)]
    )


def _split_further(piece: str) -> list[str]:
    ends = {m.end() for rule in (_AFTER_LOWERCASE, _BEFORE_OPENER) for m in rule.finditer(piece)}
    bounds = [0, *sorted(ends), len(piece)]
    return [piece[i:j].strip() for i, j in pairwise(bounds)]


def _join_fragments(pieces: Sequence[str]) -> list[str]:
    sentences: list[str] = []
    for piece in pieces:
        previous = sentences[-1] if sentences else None
        if previous is not None and (
            piece[:1].islower()
            or len(piece.split()) == 1
            or len(previous.split()) == 1
            or _ENDS_IN_TITLE.search(previous)
        ):
            sentences[-1] = f"{previous} {piece}"
        elif piece:
            sentences.append(piece)
    return sentences
