"""Read a model's answer in the published forms, or in JSON; anything else is no answer.

A label stands in square brackets (SAFE, VERIFY), between ``###`` (VeriScore), alone on a line, or
at the start of the answer (VeriScore, Factcheck-GPT); a query in a code block (SAFE); True or False
anywhere (FActScore); Yes or No at the start (MiniCheck). The released codes accept one form each
and count other answers as a further verdict. Here each form is read, and the last label decides.
"""

import json
import re
from collections.abc import Callable, Mapping

# Special tokens that some models and servers leave in an answer.
_SPECIAL = re.compile(r"</?s>|<\|\w+\|>")
# The closing marks of ###Supported### may open the next label.
_MARKED = re.compile(r"\[([^\[\]]+)\]|(?<!#)#{2,}+([^#\n]+)(?=#{2})")
_DECORATION = re.compile(r"[*`\"“”]")
_CITATION = re.compile(r"\s*\[\d+(?:\s*,\s*\d+)*\]")
_LEAD = (
    r"(?:.*\b(?:answer|decision|verdict|label|output|relation(?:ship)?)(?:\s(?:is|should be))?\W+)"
)
_DOUBT = (
    r"\b(?:no|not|cannot|\w+n['’]t|never|neither|nor|none|nothing|if|when|whether|unless|otherwise"
    r"|unclear|or|between|wrong|incorrect|false|impossible|hard|unlikely|far from|would|but|though"
    r"|although|however|except|partially|partly|mostly|largely|in part|hardly|barely|almost)\b"
)
_DOUBTED = re.compile(_DOUBT, re.IGNORECASE)
_DOUBTED_AFTER = re.compile(rf"[^\w.!]*(?:\?|(?:(?:is|was|only)\s)?{_DOUBT})", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.,;:!?]|\b(?:so|thus|hence|therefore|but|because)\b", re.IGNORECASE)
_NEAR = 200  # characters before a label that can change its meaning
_BLOCK = re.compile(r"`{3,}(?:[\w+-]+[ \t\r]*\n)?(.*?)`{3,}", re.DOTALL)
_TRUTH = re.compile(r"(\bnot\s|n['’]t\s|\bun|\b)(true|false)\b")
_OPENS_WITH = re.compile(r"\W*(true|false)\b(?!\s(?!(?:because|since|as)\b)\w)")
_FIRST_WORD = re.compile(r"\W*(yes|no)\b(?!\s*(?:/|or\b|and\b)\s*(?:yes|no)\b)")


def read_label(text: str, labels: Mapping[str, str], repeated: str = "") -> str | None:
    """Return the label that an answer decides for; ``None`` if it does not decide.

    The last marked label decides. Without marked labels, the labels decide that are alone on a
    line, announced ("Final answer: …") or at the start of the answer, if they agree. A label is
    skipped if its clause negates or doubts it. Two different marked labels on the last line, a
    changed label ("[Partly supported]"), and a mark that is cut off decide nothing.

    Args:
        text: the model's answer.
        labels: the labels in lower case, e.g. ``{"not supported": "not_supported"}``.
        repeated: text that the model may repeat, such as the claim; marks in it are ignored.
    """
    if repeated and _MARKED.search(repeated):
        text = text.replace(repeated, " ")
    text = strip_special_tokens(text).strip()
    fields = read_json(text)
    if isinstance(fields, dict):
        texts = [str(value).lower() for value in fields.values()]
        values = {labels[value] for value in texts if value in labels}
        return values.pop() if len(values) == 1 else None
    text = _CITATION.sub("", _DECORATION.sub("", text)).replace("_", " ")
    lines = text.splitlines()
    marked = [_marked_labels(line, labels) for line in lines]
    if any(marked):
        last = next(found_labels for found_labels in reversed(marked) if found_labels)
        is_cut = text.rfind("[") > text.rfind("]")
        return last[-1] if len(set(last)) == 1 and not is_cut else None
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    bare = re.compile(rf"\W*({_LEAD}?)({names})\b(.*)", re.IGNORECASE)
    matches = [match for line in lines if (match := bare.match(line))]
    decided = {
        labels[match[2].lower()] if _is_decision(match[3], names) else None
        for match in matches
        if match[1] or match.string == lines[0] or not match[3].strip(" .")
    }
    return decided.pop() if len(decided) == 1 else None


def _marked_labels(line: str, labels: Mapping[str, str]) -> list[str | None]:
    decided = []
    for mark in _MARKED.finditer(line):
        content = (mark[1] or mark[2]).strip(" .:").lower()
        clause = _CLAUSE_END.split(line[max(0, mark.start() - _NEAR) : mark.start()])[-1]
        is_doubted = _DOUBTED.search(clause) or _DOUBTED_AFTER.match(line, mark.end())
        if any(label in content for label in labels) and not is_doubted:
            decided.append(labels.get(content))
    return decided


def _is_decision(rest: str, names: str) -> bool:
    """Whether the rest of a label's line is empty or a reason, without doubt or another label."""
    reason = re.split(r"[.!](?:\s|$)", rest.strip())[0]
    is_reason = not reason or reason[0] in ",:;(–—-"
    if not is_reason or _DOUBTED_AFTER.match(reason):
        return False
    return not re.search(rf"\b(?:{names})\b", reason, re.IGNORECASE)


def cut_next_question(text: str, opening: str, read: Callable[[str], object]) -> str:
    """Cut an answer before a further question that the model wrote itself.

    Args:
        text: the model's answer.
        opening: regular expression for the start of a question, e.g. ``Claim:``.
        read: returns ``None`` for text without an answer, such as the repeated question.
    """
    starts = [match.start() for match in re.finditer(rf"^{opening}", text, re.MULTILINE)]
    return next((text[:end] for end in starts if read(text[:end]) is not None), text)


def strip_special_tokens(text: str) -> str:
    """Remove tokens such as ``</s>`` that some servers leave in an answer."""
    return _SPECIAL.sub("", text)


def read_json(text: str) -> object:
    """Return the JSON object or list that an answer, or its first code block, consists of.

    ``None`` if there is none. Text before and after a code block is ignored.
    """
    block = _BLOCK.search(text)
    content = (block[1] if block else text).strip()
    try:
        value = json.loads(content, strict=False) if content[:1] in tuple("[{") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def read_code_block(text: str) -> str | None:
    """Return the first markdown code block on one line; ``None`` if there is none."""
    block = _BLOCK.search(text)
    return " ".join(block[1].split()) or None if block else None


def read_true_or_false(text: str) -> bool | None:
    """Return whether an answer is true or false; ``None`` if it is neither.

    As in FActScore's released code (``factscore/factscorer.py``), the word that occurs decides, or
    of both the one whose first occurrence is later. Departures: a word that opens the answer
    decides ("False. The true year is 1901."); "not true" is false; words in doubt ("It is unclear
    whether it is true") do not count. An answer without either word gives ``None``; the released
    code takes it as true unless it contains "not", "cannot", "unknown" or "information".
    """
    text = _DECORATION.sub("", re.sub(r"true\s*(?:or|/)\s*false\??", "", text.lower()))
    opening = _OPENS_WITH.match(text)
    if opening:
        return opening[1] == "true"
    first: dict[bool, int] = {}
    for match in _TRUTH.finditer(text):
        clause = _CLAUSE_END.split(text[max(0, match.start() - _NEAR) : match.start()])[-1]
        if not _DOUBTED.search(clause):
            first.setdefault((match[2] == "true") != bool(match[1]), match.start())
    return max(first, key=first.__getitem__) if first else None


def read_yes_or_no(text: str) -> bool | None:
    """Return whether the first word of an answer is yes or no; ``None`` if it is neither."""
    match = _FIRST_WORD.match(text.lower())
    return match[1] == "yes" if match else None
