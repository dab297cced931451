"""Reading what a model decided out of the text of its answer: labels, True and False, Yes and No.

The released codes look for one form, e.g. the first square brackets (SAFE, VERIFY) or the text
before the first full stop (VeriScore), and what does not fit becomes a verdict of its own. Here a
label counts wherever it is marked as one, the last one decides, and an answer that leaves a choice
open is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# [Supported], ###Supported###; closing marks may open the next one.
_MARKED = re.compile(r"\[([^\[\]]*)\]|#{2,}[ \t]*([^#\n]+?)[ \t]*(?=#{2})")
_LATEX_TEXT = re.compile(r"\\(?:text|math)\w*\{([^{}]*)\}")
_LATEX_BOX = re.compile(r"\\f?boxed\{([^{}]*)\}")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_CITATION = re.compile(r"\[\d+(?:\s*[,–-]\s*\d+)*\]")
_QUOTES = re.compile(r"[*`\"“”$]")
# What leads to a label: "Therefore, the final answer is: …".
_LEAD = re.compile(r"\b(?:answer|decision|verdict|label|rating|conclusion|judge?ment)\b( is| as)?$")
_NEGATION = re.compile(
    r"(?:\b(?:not|cannot|never|neither|nor)|n['’]t)(?: (?:be|fully|entirely|directly|clearly))*$"
)
_FIRST_SENTENCE = re.compile(r".*?[.!](?=\s|$)")
_BETWEEN_CHOICES = re.compile(r"(?:or|and|vs)?", re.ASCII)
# "True or False?": the question itself, or a choice that is left open.
_OPEN = re.compile(r"\btrue or false\b|\bneither true nor false\b")
_TRUTH = re.compile(r"((?:\b(?:can)?not|n['’]t) (?:\w+ )?|\bun|\b)(true|false)\b")
_FIRST_WORD = re.compile(r"\W*(yes|no)\b")
# "2. [Supported]", "- Claim 2: Supported", "| 2 | Supported |", '"2": "Supported"'.
_NUMBERED = re.compile(
    r"^\W*(?:claims?\W+)?(\d{1,9})\b(?!\W*\d)\W*?((?:\[|\b[a-z]).*)$", re.IGNORECASE
)
# Where a list in one line, as of JSON, has its next item.
_NEXT = re.compile(
    r"[,{]\s*(?=\"\d+\"\s*:|\"?claim\W{1,4}\d+)|(?<=\])[,;]?\s+(?=\d+[.):])", re.IGNORECASE
)
_BLOCK = re.compile(r"```(?:\w+\n)?(.*?)```", re.DOTALL)


class _Mention(NamedTuple):
    """A place of an answer that names a label, or something like one.

    Attributes:
        label: what it stands for; ``None`` where it is like a label but none.
        led: the words before it announce the answer.
    """

    start: int
    end: int
    label: str | None
    led: bool


def read_label(text: str, labels: Mapping[str, str]) -> str | None:
    """The label that an answer ends up with; ``None`` where it does not say.

    A label is marked by square brackets, by ``###``, by a LaTeX box, or stands alone on a line, if
    need be after words like "final answer:". The last one decides, unless it is not one of the
    labels ("[Partly supported]"), another one stands beside it ("[Supported] or [Contradicted]"),
    or the text breaks off in a later mark.

    Args:
        text: the model's answer.
        labels: the labels in small letters, e.g. ``{"not supported": "not_supported"}``.
    """
    text = _LATEX_BOX.sub(r"[\1]", _LATEX_TEXT.sub(r"\1", text))
    text = _QUOTES.sub("", _CITATION.sub("", text)).replace("_", " ")
    text = _BRACKETS.sub(lambda mark: mark.group().replace("\n", " "), text)
    mentions = _mentions(text, labels)
    if not mentions:
        return None
    last = mentions[-1]
    rest = text[last.end :]
    broken_off = rest.rfind("[") > rest.rfind("]")
    return None if broken_off or _is_choice(text, mentions) else last.label


def read_by_number(text: str, read: Callable[[str], T | None]) -> list[tuple[int, T, str]]:
    """Each number of a list that an answer gives a value, with the value and its line, in order.

    Args:
        text: the model's answer.
        read: gives the value of what stands behind a number, or ``None``.
    """
    found = []
    for line in _NEXT.sub("\n", text).splitlines():
        item = _NUMBERED.match(line)
        value = read(item[2]) if item else None
        if value is not None:
            found.append((int(item[1]), value, line.strip()))
    return found


def read_code_block(text: str) -> str | None:
    """What stands in the first markdown code block, on one line; ``None`` without any."""
    block = _BLOCK.search(text)
    return " ".join(block.group(1).split()) or None if block else None


def true_or_false(text: str) -> bool | None:
    """What an answer says of a fact; ``None`` where it says neither.

    As FActScore's released code reads it (``factscore/factscorer.py``): the word that occurs, or
    of both the one whose first occurrence is later. It departs from there in three things. Only
    whole words count, without the question that an answer may repeat ("True or False?"). "Not true"
    and "untrue" say false. And an answer without either word is no answer; the released code
    takes it for true unless it has one of "not", "cannot", "unknown", "information".
    """
    first: dict[bool, int] = {}
    for match in _TRUTH.finditer(_OPEN.sub("", text.lower())):
        said = (match[2] == "true") != bool(match[1])
        first.setdefault(said, match.start())
    return max(first, key=first.__getitem__) if first else None


def yes_or_no(text: str) -> bool | None:
    """What the first word of an answer says; ``None`` where it is another one."""
    match = _FIRST_WORD.match(text.lower())
    return match[1] == "yes" if match else None


def _is_choice(text: str, mentions: Sequence[_Mention]) -> bool:
    """Whether the last label stands beside another one, and nothing says that it is the answer."""
    if len(mentions) < 2:
        return False
    other, last = mentions[-2:]
    between = text[other.end : last.start]
    together = "\n" not in between or _BETWEEN_CHOICES.fullmatch(_plain(between)) is not None
    return together and other.label != last.label and not last.led


def _mentions(text: str, labels: Mapping[str, str]) -> list[_Mention]:
    found = []
    start = 0
    for line in text.splitlines(keepends=True):
        inside = [mark for mark in _MARKED.finditer(line) if not line[mark.end() :].startswith("(")]
        own = [_mention(mark, line, start, labels) for mark in inside]
        # Other words in marks say something only beside a label: "[Partly] [Supported]".
        if any(like for _, like in own):
            found.extend(mention for mention, _ in own)
        if not inside:
            found.extend(_alone(line, start, labels))
        start += len(line)
    return found


def _alone(line: str, start: int, labels: Mapping[str, str]) -> list[_Mention]:
    """A label that is a whole line or its first sentence."""
    first = _FIRST_SENTENCE.match(line)
    for piece in (line, first.group() if first else line):
        content = _plain(piece)
        label = labels.get(_without_lead(content))
        if label:
            led = _without_lead(content) != content
            return [_Mention(start, start + len(line.rstrip("\n")), label, led)]
    return []


def _mention(
    mark: re.Match[str], line: str, start: int, labels: Mapping[str, str]
) -> tuple[_Mention, bool]:
    """What a mark says, and whether it is a label or something like one."""
    before = _plain(line[: mark.start()])
    content = _without_lead(_plain(mark.group(1) or mark.group(2) or ""))
    if _NEGATION.search(before):
        content = f"not {content}"
    place = (start + mark.start(), start + mark.end())
    mention = _Mention(*place, labels.get(content), bool(_LEAD.search(before)))
    return mention, any(label in content for label in labels)


def _without_lead(text: str) -> str:
    words = text.split(" ")
    for size in range(len(words) - 1, 0, -1):
        if _LEAD.search(" ".join(words[max(0, size - 2) : size])):  # it has two words at most
            return " ".join(words[size:])
    return text


def _plain(text: str) -> str:
    """In small letters, without punctuation except inside words."""
    words = re.split(r"[\s\-–—:;,.!?()<>{}|/#>•=]+", text.lower())
    return " ".join(word.strip("'’") for word in words if word.strip("'’"))
