"""Reading what a model decided out of the text of its answer: labels, True and False, Yes and No.

The released codes look for one form, e.g. the first square brackets (SAFE, VERIFY) or the text
before the first full stop (VeriScore), and what does not fit becomes a verdict of its own. Here a
label counts wherever it is marked as one, the last one decides, and an answer that leaves a choice
open is no answer.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# [Supported], ###Supported###; closing marks may open the next one.
_MARKED = re.compile(r"\[([^\[\]]*)\]|(?<!#)#{2,}+([^#\n]+)(?=#{2})")
_LATEX_TEXT = re.compile(r"\\(?:text|math)\w*\{([^{}]*)\}")
_LATEX_BOX = re.compile(r"\\f?boxed\{([^{}]*)\}")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_CITATION = re.compile(r"\[\d+(?:\s*[,–-]\s*\d+)*\]")
_QUOTES = re.compile(r"[*`\"“”$✅❌✔✓✘✗\ufe0f]")
# Brackets of Chinese and Japanese; in those with numbers stand citations: 【4:0†source】.
_WIDE = re.compile(r"[［【「]([^［【「］】」\d†]*)[］】」]")
_WIDE_MARKS = str.maketrans({"：": ": ", "，": ", ", "。": ". ", "（": " (", "）": ") "})
# What some models and servers leave around an answer.
_TAGS = re.compile(r"</?answer>|</s>|<\|\w+\|>", re.IGNORECASE)
# What leads to a label: "Therefore, the final answer is: …".
_LEAD = re.compile(
    r"\b(?:answer|decision|verdict|label|rating|conclusion|judge?ment|assessment|classification"
    r"|determination)\b( is| as| (?:would|should|must) be)?$"
)
_NEGATION = re.compile(
    r"(?:\b(?:not|cannot|never|neither|nor)|n['’]t)"
    r"(?: (?:to be|be|been|(?!only)\w+ly|well|at all|yet|enough|in fact|appear|seem|considered"
    r"|deemed|said to be|(?:regarded|qualify|count) as|(?:marked|rated|labell?ed)(?: as)?"
    r"|\w+(?:ed|ly) or))*$"
)
# "only partly [Supported]" is another label than those that were asked for.
_IN_PART = re.compile(
    r"\b(?:partially|partly|mostly|largely|somewhat|hardly|barely|scarcely|half|nearly|almost)$"
)
_IN_PART_BEHIND = re.compile(
    r"\W*(?:partially|partly|mostly|largely|somewhat|in part)\b", re.IGNORECASE
)
# "It is unclear whether it is …", "There is no evidence that it is …", "I don't think it is …",
# "It cannot be verified as …", "This does not mean that it is …", "It would be wrong to call it …".
_MORE = r"(?:[ \"“]+(?!(?:so|hence|thus|therefore|then|but)\b)[\w'’-]+)"
_NOT = r"(?:not|cannot|\w+n['’]t)"
_DOUBT = (
    rf"\b(?:(?:if|whether|unless|unclear){_MORE}{{0,6}}?"
    rf"|(?:nothing|none|(?:no|{_NOT} (?:\w+ )?enough|insufficient) \w+){_MORE}{{0,4}}?"
    rf" (?:that|to (?:say|call|deem|mark)|makes?|suggests?|shows?|proves?|indicates?|says?)"
    rf"{_MORE}{{0,4}}?"
    rf"|{_NOT} (?:think|believe|say|(?:confirm|verify) that){_MORE}{{0,4}}?"
    rf"|{_NOT} (?:be |been )?(?:proven|(?:\w+ed|known|shown|proven|said) (?:as|to be))"
    rf"|{_NOT} (?:know|state|show|prove|mean|imply) (?:that )?(?:it|this|the \w+) is"
    rf"|(?:hard|impossible|wrong|incorrect|unlikely|doubtful|{_NOT} (?:accurate|possible|correct"
    rf"|sure|certain|clear|the case)) (?:that|to){_MORE}{{0,5}}?|far from)"
)
_DOUBTED = re.compile(rf"{_DOUBT}$")
# "Supported: No", "Is it [Supported]? No.", {"supported": false}, "[Supported] is not the answer"
_DENIED = re.compile(
    r"\W*\b(?:no|false)\b\s*(?:[^\w\s'’-]|$)"
    r"|#* +(?:(?:is|was|does|did|would|could|should)(?:(?: \w+ly)? not|n['’]t)\b|can(?:not|['’]t)\b"
    r"|(?:is|was|would be|seems) (?:wrong|incorrect|false)\b)",
    re.IGNORECASE,
)
# "[Supported] if the STATEMENT is …": what a label means, not which one it is.
_CONDITION = re.compile(r"\W*(?:if|only if|when|otherwise|unless)\b", re.IGNORECASE)
_FIRST_SENTENCE = re.compile(r".*?[.!](?=\s|$)")
_BETWEEN_WORDS = r"\s\-–—:;,.!?()<>{}|/#•="
_WORD = re.compile(rf"[^{_BETWEEN_WORDS}]*[^{_BETWEEN_WORDS}'’][^{_BETWEEN_WORDS}]*")
_NEAR = 500  # characters before a mark that can change what it says
_CLAUSE_END = re.compile(r"[,;:(–—]|\s-\s")
_RESERVATION = re.compile(
    r"\b(?:but|though|although|however|except|unless|if|or|partially|partly|in part|unsure)\b"
)
_BETWEEN_CHOICES = re.compile(r"(?:or|and|vs)?", re.ASCII)
# "True or False?": the question itself, or a choice that is left open; "partly true".
_OPEN = re.compile(
    r"\btrue\s*(?:or|/)\s*false\b|\bneither true nor false\b"
    r"|\b(?:partially|partly|mostly|largely|somewhat|hardly|barely|half)"
    r"[ -](?:true|false)\b"
    rf"|{_DOUBT}[ \"“*]+(?:true|false)\b(?: or (?:false|true|not)\b)?"
)
_OPENS_WITH = re.compile(
    r"\W*(?:(?:output|answer)\W+)?(true|false)\b(?!-\w| (?!(?:because|since|as)\b)\w)"
)
_TRUTH = re.compile(
    r"((?:\b(?:can)?not|n['’]t) (?:be |(?:appear|seem) to be )?(?:\w+ )?|\bun|\b)"
    r"['‘]?(true|false)\b"
)
_EMPHASIS = re.compile(r"[*_`\"“”]")
_FIRST_WORD = re.compile(r"\W*(yes|no)\b(?!\s*(?:/|or\b|and\b)\s*(?:yes|no)\b)")
# "2. [Supported]", "- Claim 2: Supported", "| 2 | Supported |", '"2": "Supported"'; a sum such as
# "2 of 5 claims are [Supported]" is of no claim.
_NUMBERED = re.compile(
    r"^\W*(?:claims?\W+)?(\d{1,9})\b(?!\W*\d| +(?:(?:out )?of|claims?)\b)\W*?((?:\[|\b[a-z]).*)$",
    re.IGNORECASE,
)
# Where a list in one line, as of JSON, has its next item.
_NEXT = re.compile(
    r"[,{]\s*(?=\"\d+\"\s*:|\"?claim\W{1,4}\d+)|(?<=\])[,;]?\s+(?=\d+[.):])", re.IGNORECASE
)
_BLOCK = re.compile(r"`{3,}(?:[\w+-]+[ \t\r]*\n)?(.*?)`{3,}", re.DOTALL)


class _Mention(NamedTuple):
    """A place of an answer that names a label, or something like one.

    Attributes:
        label: what it stands for; ``None`` where it is like a label but none.
        led: the words before it announce the answer.
        alone: it has its line for itself.
    """

    start: int
    end: int
    label: str | None
    led: bool
    alone: bool


def read_label(text: str, labels: Mapping[str, str], repeated: str = "") -> str | None:
    """The label that an answer ends up with; ``None`` where it does not say.

    A label is marked by square brackets, by ``###``, by a LaTeX box, or stands alone on a line, if
    need be after words like "final answer:". At the start of the answer, and after such words, it
    may also stand before a comma, a colon, a dash or a bracket, unless a reservation or another
    label follows. The last one decides, unless it is not one of the labels ("[Partly supported]"),
    another one stands beside it ("[Supported] or [Contradicted]"), the text breaks off in a later
    mark, or it stands in a sentence behind an answer that is announced or alone on its line. One
    that says when it would be given ("[Supported] if …") is none.

    Args:
        text: the model's answer.
        labels: the labels in small letters, e.g. ``{"not supported": "not_supported"}``.
        repeated: a text that the model may repeat, such as the claim; a mark in it is no label.
    """
    if repeated and _MARKED.search(repeated):
        text = text.replace(repeated, " ")
    text = _WIDE.sub(r"[\1]", _TAGS.sub("", text)).translate(_WIDE_MARKS)
    text = _LATEX_BOX.sub(r"[\1]", _LATEX_TEXT.sub(r"\1", text))
    text = _QUOTES.sub("", _CITATION.sub("", text)).replace("_", " ")
    text = _BRACKETS.sub(lambda mark: mark.group().replace("\n", " "), text)
    mentions = _mentions(text, labels)
    if not mentions:
        return None
    last = mentions[-1]
    rest = text[last.end :]
    broken_off = rest.rfind("[") > rest.rfind("]")
    if broken_off or _is_choice(text, mentions) or _only_told(mentions):
        return None
    return last.label


def cut_next_question(text: str, opening: str, read: Callable[[str], object]) -> str:
    """An answer up to where the model asks itself the next question.

    A model that goes on with a text writes the prompt's pattern again behind its answer.

    Args:
        text: the model's answer.
        opening: how a line of the prompt opens a question, e.g. ``Claim:``.
        read: gives ``None`` for a text that is no answer yet, such as the question repeated.
    """
    starts = [match.start() for match in re.finditer(rf"^{opening}", text, re.MULTILINE)]
    return next((text[:end] for end in starts if read(text[:end]) is not None), text)


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


def read_true_or_false(text: str) -> bool | None:
    """What an answer says of a fact; ``None`` where it says neither.

    As FActScore's released code reads it (``factscore/factscorer.py``): the word that occurs, or
    of both the one whose first occurrence is later. It departs from there in five things. Only
    whole words count, without the question that an answer may repeat ("True or False?"). "**Not**
    true" and "untrue" say false. And an answer without either word is no answer; the released code
    takes it for true unless it has one of "not", "cannot", "unknown", "information". What leaves it
    open ("It cannot be said whether it is true", "partly true") is no such word, and where an
    answer opens with one ("False. The true year is 1901.") that one counts.
    """
    text = _OPEN.sub("", text.lower())
    opening = _OPENS_WITH.match(text)
    if opening:
        return opening[1] == "true"
    first: dict[bool, int] = {}
    for match in _TRUTH.finditer(_EMPHASIS.sub("", text)):
        said = (match[2] == "true") != bool(match[1])
        first.setdefault(said, match.start())
    return max(first, key=first.__getitem__) if first else None


def read_yes_or_no(text: str) -> bool | None:
    """What the first word of an answer says; ``None`` where it is another one."""
    match = _FIRST_WORD.match(text.lower())
    return match[1] == "yes" if match else None


def _is_choice(text: str, mentions: Sequence[_Mention]) -> bool:
    if len(mentions) < 2:
        return False
    other, last = mentions[-2:]
    between = text[other.end : last.start]
    together = "\n" not in between or _BETWEEN_CHOICES.fullmatch(_plain(between)) is not None
    return together and other.label != last.label and not last.led


def _only_told(mentions: Sequence[_Mention]) -> bool:
    *others, last = mentions
    return not (last.led or last.alone) and any(
        (one.led or one.alone) and one.label != last.label for one in others
    )


def _mentions(text: str, labels: Mapping[str, str]) -> list[_Mention]:
    found = []
    start = 0
    for line in text.splitlines(keepends=True):
        inside = [mark for mark in _MARKED.finditer(line) if not line[mark.end() :].startswith("(")]
        own = [_mention(mark, line, start, labels) for mark in inside]
        # Other words in marks say something only beside a label: "[Partly] [Supported]".
        if any(like for _, like in own):
            told = [m for m, _ in own if m.led or not _CONDITION.match(text, m.end)]
            found.extend(told)
        if not inside:
            found.extend(_alone(line, start, labels))
        start += len(line)
    return found


def _alone(line: str, start: int, labels: Mapping[str, str]) -> list[_Mention]:
    first = _FIRST_SENTENCE.match(line)
    ends = [len(line), first.end() if first else len(line)]
    wholes = len(ends)  # the others are ends of clauses
    ends += [end.start() for end in _CLAUSE_END.finditer(line)]
    # A model that repeats itself writes thousands of clauses in a line, so its words are read once.
    word_ends = [word.end() for word in _WORD.finditer(line)]
    words = _plain(line).split(" ")
    last = _last_places(words, labels)
    most = max(len(name.split()) for name in labels) + 4  # a lead has three, and one is too many
    for place, end in enumerate(ends):
        count = bisect_right(word_ends, end)
        content = " ".join(words[max(0, count - most) : count])
        own = _without_lead(content)
        label, led = labels.get(own), own != content
        if not label or (place >= wholes and not (led or start == 0)):
            continue
        rest = count if place >= wholes else len(word_ends)
        if rest < len(word_ends) and (last[None] >= rest or _DENIED.match(line, end)):
            continue
        if any(last[name] >= rest for name, other in labels.items() if other != label):
            continue
        return [_Mention(start, start + len(line.rstrip("\n")), label, led, alone=True)]
    return []


def _last_places(words: Sequence[str], labels: Mapping[str, str]) -> dict[str | None, int]:
    text, found = " ".join(words), {}
    for name in [None, *labels]:
        pattern = _RESERVATION if name is None else re.compile(rf"\b{re.escape(name)}\b")
        start = max((match.start() for match in pattern.finditer(text)), default=None)
        found[name] = -1 if start is None else text.count(" ", 0, start)
    return found


def _mention(
    mark: re.Match[str], line: str, start: int, labels: Mapping[str, str]
) -> tuple[_Mention, bool]:
    near = line[max(0, mark.start() - _NEAR) : mark.start()]
    before = _plain(near)
    sentence = _plain(re.split(r"[.!?]\s", near)[-1])  # "She was not well. [Supported]"
    content = _without_lead(_plain(mark.group(1) or mark.group(2) or ""))
    like = any(label in content for label in labels)
    clause = re.split(r"[.,;:!?]", near)[-1]
    if _NEGATION.search(sentence):
        content = f"not {content}"
    elif (
        _IN_PART.search(before)
        or _IN_PART_BEHIND.match(line, mark.end())
        or _DOUBTED.search(_plain(clause))
        or _DENIED.match(line, mark.end())
    ):
        content = f"perhaps {content}"
    place = (start + mark.start(), start + mark.end())
    alone = not (_WORD.search(line, 0, mark.start()) or _WORD.search(line, mark.end()))
    return _Mention(*place, labels.get(content), bool(_LEAD.search(before)), alone), like


def _without_lead(text: str) -> str:
    words = text.split(" ")
    for size in range(len(words) - 1, 0, -1):
        if _LEAD.search(" ".join(words[max(0, size - 3) : size])):  # it has three words at most
            return " ".join(words[size:])
    return text


def _plain(text: str) -> str:
    return " ".join(word.lower().strip("'’") for word in _WORD.findall(text))
