"""Sentences of a text: the splitter that decomposers, verifiers and builders share."""

import re
from collections.abc import Sequence
from itertools import pairwise

import nupunkt

# What stands in [1], [2, 3], [4-6]; four digits are an editor's year.
CITATION_NUMBERS = r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*"
# They are not part of what is claimed. A line break before them ends a sentence all the same.
# Blanks count from the first one on: a search from each would take the square of their number.
_CITATION = re.compile(rf"(?<![^\S\r\n])[^\S\r\n]*\[(?:{CITATION_NUMBERS}|citation needed)\]")
_BULLET = re.compile(r"^(?:[-*•–—]|\d{1,2}[.)]|\(\d{1,2}\))\s+(?=\S)")
# A code fence of Markdown, and the mark of a heading with its number: nothing is claimed by them.
_FENCE = re.compile(r"```\S*")
_HEADING = re.compile(r"#{1,6}\s+(?:\d{1,2}(?:\.\d{1,2})*[.)]?\s+)?")

# nupunkt learned from legal texts: "Art.", "Iowa." or "leg." hardly ever end a sentence there.
# After an ordinary word in small letters a full stop and a capital do end it, ...
_SMALL = re.compile(r"(?<![\w.])[a-z]{3,}[.!?][\"'”’)]*\s+(?=[\"'“‘(]*[A-Z])")
# ... and after any other word where the next one only ever opens a sentence.
_ANY = re.compile(
    r"(?<![\w.])(?:[A-Z][\w’'-]{2,}|\d{3,})[.!?][\"'”’)]*\s+"
    r"(?=(?:He|She|They|It|His|Her|Their|Its|This|These|There|However|Although|During|After)\s"
    r"|(?:However|Additionally|Later|Today|Currently),)"
)
# What nupunkt and these rules then cut too much.
_ENDS_IN_TITLE = re.compile(
    r"(?:^|[\s(\"“])(?:Adm|Amb|Brig|Capt|Cdr|Cmdr|Col|Cpl|Dr|Fr|Gen|Gov|Hon|Insp|Lieut|Lt|Maj|Mme|Mr"
    r"|Mrs|Ms|Msgr|Prof|Pvt|Rep|Rev|Sen|Sgt|feat|incl|approx|vols?)\.$",
    re.IGNORECASE,
)


def remove_citations(text: str) -> str:
    """The text without the numbers of its citations, ``[1]`` or ``[2, 3]``."""
    return _CITATION.sub("", text)


def split_sentences(text: str, headings: bool = False) -> list[str]:
    """The sentences of a text, without blank ones, Markdown's headings and the bullets of lists.

    A line break ends a sentence. As in FActScore's splitter (2305.14251) a piece that is a single
    word, or that begins with a small letter, is no sentence and stays with what is before it.

    Args:
        headings: keep them, for what is read as evidence: they say whom the rest is about.
    """
    found: list[str] = []
    for line in text.splitlines():
        line = _BULLET.sub("", line.strip())
        if not _FENCE.fullmatch(line) and (headings or not _is_heading(line)):
            found.extend(_pieces(line))
    return [sentence for sentence in found if any(char.isalnum() for char in sentence)]


def _is_heading(line: str) -> bool:
    mark = _HEADING.match(line)
    return mark is not None and len(_pieces(line[mark.end() :])) < 2


def _pieces(line: str) -> list[str]:
    return _joined([p for whole in nupunkt.sent_tokenize(line) for p in _cut(whole)])


def _cut(piece: str) -> list[str]:
    ends = {m.end() for rule in (_SMALL, _ANY) for m in rule.finditer(piece)}
    places = [0, *sorted(ends), len(piece)]
    return [piece[i:j].strip() for i, j in pairwise(places)]


def _joined(pieces: Sequence[str]) -> list[str]:
    sentences: list[str] = []
    for piece in pieces:
        before = sentences[-1] if sentences else None
        if before is not None and (
            piece[:1].islower()
            or len(piece.split()) == 1
            or len(before.split()) == 1
            or _ENDS_IN_TITLE.search(before)
        ):
            sentences[-1] = f"{before} {piece}"
        elif piece:
            sentences.append(piece)
    return sentences
