"""The sentence splitter of decomposers, verifiers and builders."""

import re
from collections.abc import Sequence
from itertools import pairwise

import nupunkt

from components.english import OPENERS

# Content of [1], [2, 3], [4-6]; four digits are a year.
CITATION_NUMBERS = r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*"
# Line breaks before a citation are kept. The lookbehind avoids quadratic time in runs of blanks.
_BLANKS = r"(?<![^\S\r\n])[^\S\r\n]*"
_ADDRESS = r"\(https?:[^()\s]*\)"
_CITATION = re.compile(
    rf"{_BLANKS}\[\[\d+\]\]{_ADDRESS}"
    rf"|{_BLANKS}\[(?:{CITATION_NUMBERS}|\^[\w-]{{1,20}}(?!\]:)|\d{{1,3}}[†:][^\[\]\n]{{1,60}}"
    rf"|(?i:note|nb|n|fn|ref|source|doc|web|cite)s?[ :.]*{CITATION_NUMBERS}"
    rf"|(?:citation|clarification|page) needed|[a-z]+\?)\](?:{_ADDRESS})?"
    # A footnote's letter follows a word or a mark; "[a]" elsewhere is a word of a quotation.
    r"|(?:(?<=[\w.,;:!?)\]])|(?<=\S[\"”’]))\[[a-z]\](?!\w)"
    # Assistants write 【4:0†source】, or "cite" between private characters.
    rf"|{_BLANKS}【[^【】\n]{{1,80}}】|{_BLANKS}\ue200[^\ue201\n]{{1,200}}\ue201"
)
_FOOTNOTE = re.compile(r"^\[\^[\w-]{1,20}\]:.*$", re.MULTILINE)
_LINK = re.compile(rf"(?<!!)\[([^\[\]\n]{{1,200}})\]{_ADDRESS}")
_EMPHASIS = re.compile(
    r"(\*{2,3})(?=[^\s*])(.{1,500}?)\1(?!\*)"
    r"|(?<![\w*])(\*|__)(?=[^\s*])([^*]{1,500}?)(?<=\S)\3(?![\w*])"
)
_BULLET = re.compile(r"^(?:[-*•–—>]|\d{1,2}\)|\(\d{1,2}\))\s+(?=\S)")
_NUMBER = re.compile(r"^(\d{1,2})\.\s+(?=\S)")
_TABLE_ROW = re.compile(r"\|.*\||(?=.*-\|)[\s|:-]+|.+ \| .+")
_BOLD_LINE = re.compile(r"(?:\d{1,2}\.\s+)?(\*\*\*|\*\*|__)(?!\s)((?:(?!\1).)+)\1:?")
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
# An ordinal in a name ("the 17. President", "am 3. Mai"), unless a sentence's first word follows.
_ENDS_IN_ORDINAL = re.compile(
    r"\b(?:the|of|an?|his|her|its|their|de[rnms]|die|das|i[mn]|am|[bv]eim|vom|zum|zur|ab|bis)"
    r"\s+\d{1,2}\.$",
    re.IGNORECASE,
)
_ENDS_IN_NUMBER = re.compile(r"(?:^|\s)\d{1,2}\.$")
_CLUB = re.compile(r"(?:[A-Z]{2,4}|[A-Z][a-z]?[A-Z]{1,2}|\w*[Ll]iga|Division|Klasse)\b")
_OPENER = re.compile(
    rf"(?:{OPENERS}|When|We|I|You|However|Although|But|And|Later|Today|Der|Die|Das|Er|Sie|Es|Im|Nach)\b"
)
# A question or exclamation in quotation marks, and its speaker.
_QUOTED = re.compile(r"[\"“„«»'‘].*[?!…][\"”“»«'’]$")
_SPEECH = (
    r"(?:said|says|ask(?:ed|s)|repli(?:ed|es)|answer(?:ed|s)|exclaim(?:ed|s)|shout(?:ed|s)"
    r"|cri(?:ed|es)|call(?:ed|s)|yell(?:ed|s)|whisper(?:ed|s)|mutter(?:ed|s)|murmured|wrote|writes|add(?:ed|s)|told"
    r"|wonder(?:ed|s)|continued|remarked|demand(?:ed|s)|insisted|scream(?:ed|s)|[ie]nquire[ds]"
    r"|respond(?:ed|s)|declare[ds]|announced|laughed|sang|warn(?:ed|s)|observed|commented|repeated"
    r"|protested|begged|joked|recalled|sighed|snapped|pleaded)\b"
)
_SPEAKER = re.compile(rf"(?:[^\W\d_][\w.'’-]*\s+){{1,4}}?{_SPEECH}")
_INTRODUCED = re.compile(rf"{_SPEECH}[^\"“„«‘]{{0,30}}[,:]\s*[\"“„«‘]")
_LAST_SENTENCE = re.compile(r".*[.!?…]['\"”’)\]]*(?=\s|$)", re.DOTALL)


def remove_citations(text: str) -> str:
    """Remove citation marks such as ``[1]``, ``[^1]`` or ``【4:0†source】``, and link addresses."""
    return _LINK.sub(r"\1", _CITATION.sub("", _FOOTNOTE.sub("", text)))


def split_sentences(text: str, headings: bool = False) -> list[str]:
    """Return the sentences of a text, without blank ones, Markdown headings, tables and list marks.

    A number at the start of a line is a list's only if another line has the number before or after
    it ("1. FC Köln" is a name). A line break ends a sentence. As in FActScore's splitter
    (2305.14251), a single word, or a piece that starts with a lower-case letter, is joined to the
    previous piece. ``headings`` and tables are kept in evidence.
    """
    pieces: list[str] = []
    lines = [line.strip() for line in text.splitlines()]
    numbers = {int(match[1]) for line in lines if (match := _NUMBER.match(line))}
    # Rows of tables without outer lines are next to the row that ends the head ("---|---").
    tables = any("-|" in line or "- |" in line for line in lines)
    for number, line in enumerate(lines):
        underlined = re.fullmatch(r"={3,}|-{3,}", "".join(lines[number + 1 : number + 2]))
        if not headings and (
            _is_heading(line, underlined is not None)
            or (_TABLE_ROW.fullmatch(line) and (tables or line.startswith("|")))
        ):
            continue
        if (match := _NUMBER.match(line)) and numbers & {int(match[1]) - 1, int(match[1]) + 1}:
            line = line[match.end() :]
        line = _EMPHASIS.sub(r"\2\4", _BULLET.sub("", line))
        if not _FENCE.fullmatch(line):
            pieces.extend(_pieces(line))
    return [sentence for sentence in pieces if any(char.isalnum() for char in sentence)]


def _is_heading(line: str, underlined: bool) -> bool:
    bold = _BOLD_LINE.fullmatch(line)
    if bold or underlined:
        return not re.search(r"[.!?…][\"”’)]*$", bold[2] if bold else line)
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
            or _continues(previous, piece)
        ):
            sentences[-1] = f"{previous} {piece}"
        elif piece:
            sentences.append(piece)
    return sentences


def _continues(previous: str, piece: str) -> bool:
    if _ENDS_IN_NUMBER.search(previous):
        named = _CLUB.match(piece) or _ENDS_IN_ORDINAL.search(previous)
        return bool(named) and not _OPENER.match(piece)
    # 'She asked, "Why?" Bo left.' has its speaker already.
    quoted = _QUOTED.search(previous) and not _INTRODUCED.search(previous)
    return bool(quoted and _SPEAKER.match(piece))


def last_whole_sentence(text: str) -> str:
    """Truncate a text after its last complete sentence, else after its last complete line."""
    whole = _LAST_SENTENCE.match(text)
    return whole.group() if whole else text.rpartition("\n")[0] or text
