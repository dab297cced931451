"""Reading a model's decision out of its answer: labels, True and False, Yes and No.

The released codes accept one form, e.g. the first square brackets (SAFE, VERIFY) or the text before
the first full stop (VeriScore), and count other answers as a further verdict. Here any marked label
counts, the last one decides, and an answer that leaves a choice open counts as no answer.
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
# Chinese and Japanese brackets; those with numbers are citations: 【4:0†source】.
_WIDE = re.compile(r"[［【「]([^［【「］】」\d†]*)[］】」]")
_WIDE_MARKS = str.maketrans({"：": ": ", "，": ", ", "。": ". ", "（": " (", "）": ") "})
# Tags that some models and servers leave around an answer.
_TAGS = re.compile(r"</?answer>|</s>|<\|\w+\|>", re.IGNORECASE)
# Text before a label: "Therefore, the final answer is: …".
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
# "only partly [Supported]" is not one of the requested labels.
_IN_PART = re.compile(
    r"\b(?:partially|partly|mostly|largely|somewhat|hardly|barely|scarcely|half|nearly|almost)$"
)
_IN_PART_AFTER = re.compile(
    r"\W*(?:partially|partly|mostly|largely|somewhat|in part)\b", re.IGNORECASE
)
# "It is unclear whether it is …", "Nothing shows that it is …", "I don't think it is …",
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
# "[Supported] if the STATEMENT is …" explains a label and does not choose it.
_CONDITION = re.compile(r"\W*(?:if|only if|when|otherwise|unless)\b", re.IGNORECASE)
_FIRST_SENTENCE = re.compile(r".*?[.!](?=\s|$)")
_BETWEEN_WORDS = r"\s\-–—:;,.!?()<>{}|/#•="
_WORD = re.compile(rf"[^{_BETWEEN_WORDS}]*[^{_BETWEEN_WORDS}'’][^{_BETWEEN_WORDS}]*")
_NEAR = 500  # characters before a mark that can change its meaning
_CLAUSE_END = re.compile(r"[,;:(–—]|\s-\s")
_RESERVATION = re.compile(
    r"\b(?:but|though|although|however|except|unless|if|or|partially|partly|in part|unsure)\b"
)
_BETWEEN_CHOICES = re.compile(r"(?:or|and|vs)?", re.ASCII)
# "True or False?" (the question, or an open choice), "partly true".
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
# "2. [Supported]", "- Claim 2: Supported", "| 2 | Supported |", '"2": "Supported"'; a count
# such as "2 of 5 claims are [Supported]" is not the label of a claim.
_NUMBERED = re.compile(
    r"^\W*(?:claims?\W+)?(\d{1,9})\b(?!\W*\d| +(?:(?:out )?of|claims?)\b)\W*?((?:\[|\b[a-z]).*)$",
    re.IGNORECASE,
)
# Start of the next item of a list on one line, e.g. JSON.
_NEXT = re.compile(
    r"[,{]\s*(?=\"\d+\"\s*:|\"?claim\W{1,4}\d+)|(?<=\])[,;]?\s+(?=\d+[.):])", re.IGNORECASE
)
_BLOCK = re.compile(r"`{3,}(?:[\w+-]+[ \t\r]*\n)?(.*?)`{3,}", re.DOTALL)


class _Mention(NamedTuple):
    """A mention of a label, or of something similar, in an answer."""

    start: int
    end: int
    label: str | None  # None for text that is similar to a label
    led: bool  # the words before it announce the answer
    alone: bool  # it is alone on its line


def read_label(text: str, labels: Mapping[str, str], repeated: str = "") -> str | None:
    """Return the label that an answer decides for; ``None`` if it does not decide.

    A label is marked by square brackets, ``###`` or a LaTeX box, or is alone on a line, possibly
    after words like "final answer:". At the start of the answer and after such words, it may also
    precede a comma, a colon, a dash or a bracket, unless a reservation or another label follows.
    The last mention decides, but not if it is another word ("[Partly supported]"), next to another
    label ("[Supported] or [Contradicted]"), followed by an incomplete mark, or after an answer that
    was announced or alone on its line. A conditional mention ("[Supported] if …") is ignored.

    Args:
        text: the model's answer.
        labels: the labels in lower case, e.g. ``{"not supported": "not_supported"}``.
        repeated: text that the model may repeat, such as the claim; marks in it are ignored.
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
    if broken_off or _is_choice(text, mentions) or _only_mentioned(mentions):
        return None
    return last.label


def cut_next_question(text: str, opening: str, read: Callable[[str], object]) -> str:
    """Cut an answer before a further question that the model wrote itself.

    Args:
        text: the model's answer.
        opening: regular expression for the start of a question, e.g. ``Claim:``.
        read: returns ``None`` for text without an answer, such as the repeated question.
    """
    starts = [match.start() for match in re.finditer(rf"^{opening}", text, re.MULTILINE)]
    return next((text[:end] for end in starts if read(text[:end]) is not None), text)


def read_by_number(text: str, read: Callable[[str], T | None]) -> list[tuple[int, T, str]]:
    """Return (number, value, line) for each item of a numbered list in an answer, in order.

    ``read`` parses the text after a number, or returns ``None``.
    """
    items = []
    for line in _NEXT.sub("\n", text).splitlines():
        item = _NUMBERED.match(line)
        value = read(item[2]) if item else None
        if value is not None:
            items.append((int(item[1]), value, line.strip()))
    return items


def read_code_block(text: str) -> str | None:
    """Return the first markdown code block on one line; ``None`` if there is none."""
    block = _BLOCK.search(text)
    return " ".join(block.group(1).split()) or None if block else None


def read_true_or_false(text: str) -> bool | None:
    """Return whether an answer is true or false; ``None`` if it is neither.

    As in FActScore's released code (``factscore/factscorer.py``), the word that occurs decides, or
    of both the one whose first occurrence is later. Departures: only whole words count, without a
    repeated question ("True or False?"). "**Not** true" and "untrue" are false. An answer without
    either word gives ``None``; the released code takes it as true unless it contains "not",
    "cannot", "unknown" or "information". Undecided phrases ("It is unclear whether it is true",
    "partly true") do not count. If an answer opens with one of the words ("False. The true year is
    1901."), that word decides.
    """
    text = _OPEN.sub("", text.lower())
    opening = _OPENS_WITH.match(text)
    if opening:
        return opening[1] == "true"
    first: dict[bool, int] = {}
    for match in _TRUTH.finditer(_EMPHASIS.sub("", text)):
        first.setdefault((match[2] == "true") != bool(match[1]), match.start())
    return max(first, key=first.__getitem__) if first else None


def read_yes_or_no(text: str) -> bool | None:
    """Return whether the first word of an answer is yes or no; ``None`` if it is neither."""
    match = _FIRST_WORD.match(text.lower())
    return match[1] == "yes" if match else None


def _is_choice(text: str, mentions: Sequence[_Mention]) -> bool:
    if len(mentions) < 2:
        return False
    other, last = mentions[-2:]
    between = text[other.end : last.start]
    together = "\n" not in between or _BETWEEN_CHOICES.fullmatch(_plain(between)) is not None
    return together and other.label != last.label and not last.led


def _only_mentioned(mentions: Sequence[_Mention]) -> bool:
    *earlier, last = mentions
    return not (last.led or last.alone) and any(
        (mention.led or mention.alone) and mention.label != last.label for mention in earlier
    )


def _mentions(text: str, labels: Mapping[str, str]) -> list[_Mention]:
    mentions = []
    start = 0
    for line in text.splitlines(keepends=True):
        marks = [mark for mark in _MARKED.finditer(line) if not line[mark.end() :].startswith("(")]
        marked = [_mention(mark, line, start, labels) for mark in marks]
        # Other marked words matter only next to a label: "[Partly] [Supported]".
        if any(is_similar for _, is_similar in marked):
            mentions += [m for m, _ in marked if m.led or not _CONDITION.match(text, m.end)]
        if not marks:
            mentions += _alone(line, start, labels)
        start += len(line)
    return mentions


def _alone(line: str, start: int, labels: Mapping[str, str]) -> list[_Mention]:
    first = _FIRST_SENTENCE.match(line)
    ends = [len(line), first.end() if first else len(line)]
    n_sentences = len(ends)  # the rest are ends of clauses
    ends += [end.start() for end in _CLAUSE_END.finditer(line)]
    # Words are split once, since a repetitive model writes thousands of clauses in a line.
    word_ends = [word.end() for word in _WORD.finditer(line)]
    words = _plain(line).split(" ")
    last = _last_places(words, labels)
    # A lead has three words; one more word detects longer text.
    longest = max(len(name.split()) for name in labels) + 4
    for i, end in enumerate(ends):
        count = bisect_right(word_ends, end)
        content = " ".join(words[max(0, count - longest) : count])
        name = _without_lead(content)
        label, led = labels.get(name), name != content
        if not label or (i >= n_sentences and not (led or start == 0)):
            continue
        rest = count if i >= n_sentences else len(word_ends)
        if rest < len(word_ends) and (last[None] >= rest or _DENIED.match(line, end)):
            continue
        if any(last[text] >= rest for text, value in labels.items() if value != label):
            continue
        return [_Mention(start, start + len(line.rstrip("\n")), label, led, alone=True)]
    return []


def _last_places(words: Sequence[str], labels: Mapping[str, str]) -> dict[str | None, int]:
    text, places = " ".join(words), {}
    for name in [None, *labels]:
        pattern = _RESERVATION if name is None else re.compile(rf"\b{re.escape(name)}\b")
        start = max((match.start() for match in pattern.finditer(text)), default=None)
        places[name] = -1 if start is None else text.count(" ", 0, start)
    return places


def _mention(
    mark: re.Match[str], line: str, start: int, labels: Mapping[str, str]
) -> tuple[_Mention, bool]:
    near = line[max(0, mark.start() - _NEAR) : mark.start()]
    before = _plain(near)
    sentence = _plain(re.split(r"[.!?]\s", near)[-1])  # "She was not well. [Supported]"
    content = _without_lead(_plain(mark.group(1) or mark.group(2) or ""))
    is_similar = any(label in content for label in labels)
    clause = re.split(r"[.,;:!?]", near)[-1]
    if _NEGATION.search(sentence):
        content = f"not {content}"
    elif (
        _IN_PART.search(before)
        or _IN_PART_AFTER.match(line, mark.end())
        or _DOUBTED.search(_plain(clause))
        or _DENIED.match(line, mark.end())
    ):
        content = f"perhaps {content}"
    span = (start + mark.start(), start + mark.end())
    alone = not (_WORD.search(line, 0, mark.start()) or _WORD.search(line, mark.end()))
    return _Mention(*span, labels.get(content), bool(_LEAD.search(before)), alone), is_similar


def _without_lead(text: str) -> str:
    words = text.split(" ")
    for size in range(len(words) - 1, 0, -1):
        if _LEAD.search(" ".join(words[max(0, size - 3) : size])):  # a lead has at most three words
            return " ".join(words[size:])
    return text


def _plain(text: str) -> str:
    return " ".join(word.lower().strip("'’") for word in _WORD.findall(text))
