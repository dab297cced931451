"""The sentence splitter of decomposers, verifiers and builders."""

import re
from collections.abc import Sequence
from itertools import pairwise

import nupunkt

from components.english import OPENERS
from records.cleaning import FINITE_VERB

_EMPHASIS = re.compile(
    r"(\*{2,3})(?=[^\s*])(.{1,500}?)\1(?!\*)"
    r"|(?<![\w*])(\*|__)(?=[^\s*])([^*]{1,500}?)(?<=\S)\3(?![\w*])"
)
_BULLET = re.compile(r"^(?:[-*•–—>]|\d{1,2}\)|\(\d{1,2}\))\s+(?=\S)")
_NUMBER = re.compile(r"^(\d{1,2})\.\s+(?=\S)")

# nupunkt was trained on legal texts, where "Art.", "Iowa." or "leg." rarely end a sentence.
# Also split after a lower-case word with a full stop before a capital, ...
_AFTER_LOWERCASE = re.compile(r"(?<![\w.])[a-z]{3,}[.!?][\"'”’)]*\s+(?=[\"'“‘(]*[A-Z])")
# ... and after any other word before words that only start sentences.
_BEFORE_OPENER = re.compile(
    r"(?<![\w.])(?:[A-Z][\w’'-]{2,}|Co|Jr|Sr|\d{3,})[.!?][\"'”’)]*\s+"
    r"(?=(?:He|She|They|It|His|Her|Their|Its|This|These|There|However|Although|During|After)\s"
    r"|(?:However|Additionally|Later|Today|Currently),)"
)
# A blank is missing ("1934.She"), but not in "Node.js", "J.R.Smith" or "Booking.Com".
_WITHOUT_BLANK = re.compile(
    r"(?:\b(?:[a-z]{2}|[A-Z][a-z]{3})[a-z]+|(?<!\.)\b\d{2,}|\))[.!?]"
    r"(?=(?:A|I|(?!(?:Com|Net|Org)\b)[A-Z][a-z’'-]+),?\s)"
    r"|\b[A-Z][a-z]{2,}[.!?](?=(?:He|She|They|It|His|Her|In|The)\s)"
)
# A time of day ends a sentence before a word that is not its zone, day or place.
_AFTER_TIME = re.compile(
    r"\d\s?[ap]\.m\.\s+(?=[A-Z][a-z])"
    r"(?!(?:Eastern|Central|Mountain|Pacific|Atlantic|Greenwich|Standard|Daylight|Local|Mon|Tue|Wed"
    r"|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b)"
)
# Full stops of other scripts need no blank; one before a digit or in a quotation is skipped.
_FULL_STOP = re.compile(r"[।॥。｡．！？؟۔።።։]+[\"'”’)」』）】]*(?=\s*[^\s\d,，、と」』”’）])\s*")
# Abbreviations after which nupunkt and these rules split wrongly.
_ENDS_IN_TITLE = re.compile(
    r"(?:^|[\s(\"“])(?:Adm|Amb|Brig|Capt|Cdr|Cmdr|Col|Cpl|Dr|Fr|Gen|Gov|Hon|Insp|Lieut|Lt|Maj|Mme|Mr"
    r"|Mrs|Ms|Msgr|Prof|Pvt|Rep|Rev|Sen|Sgt|Asst|Assoc|Dept|Supt|Bros|feat|incl|approx"
    r"|vols?|ca|cf|chap|eds|esp|illus|pp|pseud|transl?|viz|vs|(?-i:Ft|Mt|Ste?|[bcdpv]))\.$"
    r"|\([a-z]{2,6}\.$",
    re.IGNORECASE,
)
# An ordinal in a name ("the 17. President", "am 3. Mai"), unless a sentence's first word follows.
_ENDS_IN_ORDINAL = re.compile(
    r"\b(?:the|(?<!age )of|an?|his|her|its|their|de[rnms]|die|das|i[mn]|am|[bv]eim|vom|zum|zur|ab"
    r"|bis)\s+\d{1,2}\.$",
    re.IGNORECASE,
)
# "J. Phys. Chem.": words of journals' names.
_ENDS_IN_JOURNAL = re.compile(
    r"\b(?:Acad|Am|Ann|Appl|Astron|Biol|Bot|Bull|Chem|Comput|Econ|Eng|Exp|Geol|Hist|Int|Lett|Math|Med"
    r"|Nat|Natl|Opt|Philos|Phys|Proc|Psychol|Res|Rev|Sci|Soc|Theor|Trans|Zool)\.$"
)
# "Yahoo! Japan": the next piece has no verb.
_ENDS_IN_EXCLAIMED_NAME = re.compile(r"\s[A-Z][\w’'-]*!$")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\s)\d{1,2}\.$")
_CLUB = re.compile(r"(?:[A-Z]{2,4}|[A-Z][a-z]?[A-Z]{1,2}|\w*[Ll]iga|Division|Klasse)\b")
_OPENER = re.compile(
    rf"(?:{OPENERS}|When|We|I|You|However|Although|But|And|Later|Today|Der|Die|Das|Er|Sie|Es|Im|Nach)\b"
)
_WORD = re.compile(r"[^\s।॥。｡．！？؟۔።։]+")
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


_ENDS = (_AFTER_LOWERCASE, _BEFORE_OPENER, _WITHOUT_BLANK, _AFTER_TIME, _FULL_STOP)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, without blank ones, list marks and emphasis.

    A number at the start of a line is a list's only if another line has the number before or after
    it ("1. FC Köln" is a name). A line break ends a sentence. As in FActScore's splitter
    (2305.14251), a single word, or a piece that starts with a lower-case letter, is joined to the
    previous piece. Headings and tables stay; :func:`records.cleaning.clean` removes those of an
    answer.
    """
    pieces: list[str] = []
    lines = [line.strip() for line in text.splitlines()]
    numbers = {int(match[1]) for line in lines if (match := _NUMBER.match(line))}
    for line in lines:
        if (match := _NUMBER.match(line)) and numbers & {int(match[1]) - 1, int(match[1]) + 1}:
            line = line[match.end() :]
        pieces.extend(_pieces(_EMPHASIS.sub(r"\2\4", _BULLET.sub("", line))))
    return [sentence for sentence in pieces if any(char.isalnum() for char in sentence)]


def _pieces(line: str) -> list[str]:
    return _join_fragments(
        [piece for sentence in nupunkt.sent_tokenize(line) for piece in _split_further(sentence)]
    )


def _split_further(piece: str) -> list[str]:
    ends = {m.end() for rule in _ENDS for m in rule.finditer(piece)}
    bounds = [0, *sorted(ends), len(piece)]
    return [piece[i:j].strip() for i, j in pairwise(bounds)]


def _join_fragments(pieces: Sequence[str]) -> list[str]:
    sentences: list[str] = []
    for piece in pieces:
        previous = sentences[-1] if sentences else None
        if previous is not None and (
            piece[:1].islower()
            or _WORD.fullmatch(piece)
            or _WORD.fullmatch(previous)
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
    if _ENDS_IN_EXCLAIMED_NAME.search(previous):
        return not FINITE_VERB.search(piece[:1].lower() + piece[1:])
    if _ENDS_IN_JOURNAL.search(previous):
        return not _OPENER.match(piece)
    # 'She asked, "Why?" Bo left.' has its speaker already.
    quoted = _QUOTED.search(previous) and not _INTRODUCED.search(previous)
    return bool(quoted and _SPEAKER.match(piece))


def last_whole_sentence(text: str) -> str:
    """Truncate a text after its last complete sentence, else after its last complete line."""
    whole = _LAST_SENTENCE.match(text)
    return whole.group() if whole else text.rpartition("\n")[0] or text
