"""Removal of the parts of an answer that make no claims: layout, code, sources and offers.

The rules of :data:`NORMAL_KINDS` apply to claims and evidence, too: the same text from a PDF, a web
page and a model is the same afterwards.

Chat models write more than sentences. One step removes the rest before a text is decomposed or
tested for an abstention, and counts the removed words by kind. A line that states a fact (three
words with a finite verb, from a capital letter on) is kept inside any part but a model's reasoning.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

# Content of [1], [2, 3], [4-6]; four digits are a year.
CITATION_NUMBERS = r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*"
# Line breaks before a citation are kept. The lookbehind avoids quadratic time in runs of blanks.
_BLANKS = r"(?<![^\S\r\n])[^\S\r\n]*"
_ADDRESS_START = r"(?:https?://|www\.|(?<![\w.@/-])(?:[\w-]+\.)+[a-z]{2,}/)"
_ADDRESS = rf"{_ADDRESS_START}(?:[^\s<>()\[\]]|\([^\s()]*\))+(?<![.,;:!?])"
_TARGET = r"\((?:https?:|www\.)(?:[^()\s]|\([^()\s]*\))*(?: \"[^\"\n]*\")?\)"
_CITATION = (
    rf"{_BLANKS}\[\[\d+\]\]{_TARGET}"
    rf"|{_BLANKS}\[(?:{CITATION_NUMBERS}|\^[\w-]{{1,20}}(?!\]:)|\d{{1,3}}[†:][^\[\]\n]{{1,60}}"
    rf"|(?i:note|nb|n|fn|ref|source|doc|web|cite)s?[ :.]*{CITATION_NUMBERS}"
    rf"|(?:citation|clarification|page) needed|[a-z]+\?)\](?:{_TARGET})?"
    # A footnote's letter follows a word or a mark; "[a]" elsewhere is a word of a quotation.
    r"|(?:(?<=[\w.,;:!?)\]])|(?<=\S[\"”’]))\[[a-z]\](?!\w)"
    # Assistants write 【4:0†source】, or "cite" between private characters.
    rf"|{_BLANKS}【[^【】\n]{{1,80}}】|{_BLANKS}\ue200[^\ue201\n]{{1,200}}\ue201"
)
_TAGS = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?(?:_content)?|reflection|scratchpad)\b[^<>]*"
_MARK = r"(?:[-*•–—>]|\[\^?\w{1,3}\]:?|\(?\d{1,2}[.)])"
_LINE = rf"^[^\S\n]*(?:{_MARK}[^\S\n]+)?"
_CODE = (
    r"^[^\S\n]*(?P<fence>```|~~~)(?P<language>[\w+#-]*)[^\S\n]*\n"
    r"(?P<code>(?s:.*?))(?:^[^\S\n]*(?P=fence)[^\S\n]*$|\Z)"
)
_BLOCK = r"(?:li|[uod]l|d[td]|p|div|br|hr|h[1-6]|tr|table|thead|tbody|section|article|blockquote)"
_INLINE = (
    r"(?:a|abbr|answer|b|body|cite|code|em|final(?:_answer)?|font|html|i|img|mark|output|q|response"
    r"|result|s|small|span|strong|su[bp]|t[dh]|u)"
)
# A heading such as "Sources:" and the entries of its list, or entries in the heading's line.
_SOURCES = (
    r"^[^\S\n]*(?:#+ )?[*_]*(?i:(?:key |main |my |online |useful |external )?(?:sources?(?:\(s\))?"
    r"|references?|citations?|links|bibliography)(?: (?:used|cited|consulted|and further reading))?"
    r"|works cited|further reading|see also)[*_]*"
    r"(?::[*_]*[^\S\n]+\S[^\n]*|:?[*_]*[^\S\n]*$(?:(?:\n[^\S\n]*(?=\n))*"
    rf"\n[^\S\n]*(?:{_MARK}[^\S\n]|[^\n]*{_ADDRESS_START})[^\n]*"
    r"|\n[^\S\n]*(?!#|\*\*)\S[^\n]*)*)"
)
_ADDRESS_LINE = rf"{_LINE}(?:[^\n:]{{1,60}}:[^\S\n]*)?<?{_ADDRESS}>?[^\S\n.]*$"
# "She founded https://…" keeps the address, as after any word in lower case.
_ADDRESS_IN_SENTENCE = (
    rf"{_BLANKS}\((?:[Ss]ee|[Ss]ource|[Vv]ia)?:? ?<?{_ADDRESS}>?\)|{_BLANKS}<{_ADDRESS}>"
    rf"|(?<![a-z] )(?<![a-z]: ){_ADDRESS}"
)
_SPEAKER = (
    r"^[^\S\n]*(?:#+ )?[*_]*(?:User|Human|Customer|Client|Me|You|Assistant|Agent|AI|Bot"
    r"|ChatGPT|Model|System|Speaker \d|Q|A|Question|Answer|Response)[*_]*:[*_]*[^\S\n]*"
    r"|<\|\w{1,20}\|>(?:system|user|assistant)?"
)
# Lines in pipes, lines around a row of hyphens ("---|---"), two or more lines with tabs.
_TABLE = (
    r"^[^\S\n]*\|[^\n]*\|[^\S\n]*(?:\n|\Z)"
    r"|^(?=[^\n]*\|)[^\n]*\n[^\S\n]*(?=[^\n]*-)(?=[^\n]*\|)[-:| \t]+(?:\n(?=[^\n]*\|)[^\n]*)*"
    rf"|(?:^(?![^\S\n]*{_MARK}\t)(?=[^\n]*\S\t+\S)[^\n]*(?:\n+|\Z)){{2,}}"
)
_AUXILIARY = (
    r"(?:[Aa]re|[Ii]s|[Ww]as|[Ww]ere|[Dd]o|[Dd]oes|[Dd]id|[Hh]as|[Hh]ave|[Hh]ad|[Cc]an|[Cc]ould"
    r"|[Ww]ill|[Ww]ould|[Ss]hall|[Ss]hould|[Mm]ay|[Mm]ight)\b"
)
# The rest of a sentence; none ends after an initial or a short title.
_REST = r"(?:[^.!?\n]|(?<=\b[A-Z])\.|(?<=\b(?:Dr|Mr|Ms|St|Jr))\.|(?<=\bMrs)\.|\.(?=\w)){0,300}"
_START = rf"(?:{_LINE}[*_]{{0,2}}|(?<=[.!?] )|(?<=[.!?][\"”)] ))"
_QUESTION = (
    rf"{_START}(?:(?:And|But|So|Also|Now|Then),? )?"
    r"(?:(?:[Ww]ho(?:m|se)?|[Ww]hich|[Ww]h(?:at|ere|en|y)[’']s|[Ww]hat about"
    r"|[Ww]ant|[Nn]eed|[Aa]nything else|[Aa]ny (?:other|more|further) questions|[Cc]urious)\b"
    rf"|(?:[Ww]hat|[Hh]ow)(?: \w+){{0,3}}? {_AUXILIARY}|[Ww]h(?:en|ere|y) {_AUXILIARY}"
    rf"|{_AUXILIARY}(?! you know\b))(?=[ ’'?]){_REST}\?+[^\S\n]*"
)
_OFFER = (
    rf"{_START}(?:(?:I )?[Hh]ope (?:this|that|it|you)\b|(?:[Pp]lease |[Jj]ust )?(?:[Ll]et me know"
    r"|[Ff]eel free|[Dd]o(?:n[’']t| not) hesitate)\b"
    r"|(?:[Pp]lease )?(?:[Tt]ell|[Gg]ive|[Ss]how) me\b"
    r"|(?:[Ss]orry|(?:[Mm]y )?[Aa]pologies) (?:for|about) [^,.!?\n]*(?=[.!\n]|$)"
    r"|[Ii]f (?:you|there)\b(?=[^.!?\n]*\b(?:let me|ask|free|hesitate|I can|I could|I[’']\w+)\b)"
    r"|I(?:[’'][dm]| would| am)(?: be)?(?: always| more than)? (?:happy|glad|here to help)\b"
    r"|[Hh]appy to (?:help|assist)\b|[Tt]hank(?:s| you)\b|You(?:[’']re| are) welcome\b"
    r"|Have an? (?:great|nice|good|wonderful) \w+(?=[.!])"
    r"|I can (?:also )?(?:help|provide|tell you|give you|share|write)\b)"
    # An offer that may state something is kept.
    rf"(?!{_REST}(?:\d|, (?:who|which|where)\b|\b(?:was|were|won|died|born)\b))"
    rf"{_REST}(?:[.!?]+|$)[^\S\n]*"
)
# What the writer does not know; a sentence that may also state something is kept.
_REFUSAL = (
    rf"{_START}(?:(?:Unfortunately|However|Sorry|Regrettably),? )?"
    r"I(?: (?:can(?:not|[’']t)|could(?: not|n[’']t)) (?:answer|be sure|confirm|determine|find"
    r"|guarantee|locate|overstate|provide|recall|remember|say|share|tell|verify)"
    r"| (?:only|just) (?:know|have|recall|remember)| know (?:only|(?:very )?little|nothing)"
    r"|(?: do(?: not|n[’']t)| did(?: not|n[’']t)) (?:find|have|know|recall|remember)"
    r"|(?: am|[’']m) (?:not (?:able|aware|certain|familiar|sure)|unable|unsure)"
    r"| have no (?:access|data|details?|information|knowledge|records?))\b"
    rf"(?!{_REST}(?:\d|[,;:]|\b(?:although|because|but|since|so|that|though|who)\b))"
    rf"{_REST}(?:[.!]+|$)[^\S\n]*"
)
_HEADING = (
    r"^[^\S\n]{0,9}(?:#{1,6}[^\S\n]+(?:\d{1,2}(?:\.\d{1,2})*[.)]?[^\S\n]+)?(?P<title>[^\n]+)"
    rf"|(?:{_MARK}[^\S\n]+)?(?P<bold>\*{{2,3}}|__)(?!\s)(?P<name>(?:(?!(?P=bold))[^\n])+)(?P=bold):?"
    r"|(?=[^\n]*\w)(?P<underlined>[^\n]+)\n[^\S\n]*(?:={3,}|-{3,}))[^\S\n]*$"
)
# A participle with its preposition ("Works published in 1910") is no finite verb.
FINITE_VERB = re.compile(
    r"^(?:He|She|They|It|His|Her|Their|Its) \w|\b(?:is|was|are|were|has|had|became|began|born|died"
    r"|gave|grew|held|led|left|lives|made|plays|remains|sang|serves|taught|took|went|won|works"
    r"|wrote|(?!retrieved|accessed)[a-z]{3,}ed (?!by|with|in|from|as|for|on))\b"
)

Replacement = str | Callable[[re.Match[str]], str]
Rule = tuple[str, re.Pattern[str], Replacement]
# Kinds of changes that keep the words of a text; they apply to answers, claims and evidence.
NORMAL_KINDS = ("superscripts", "entities", "signs", "line_breaks")
_RAISED_SIGNS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_RAISED = str.maketrans("0123456789+-−–", f"{_RAISED_SIGNS}⁻⁻")
_LOWERED = str.maketrans(_RAISED_SIGNS, "0123456789+-")
_RAISED_TAG = (
    r"(?i)<sup\b[^<>]*>(?:<[^<>]*>){0,4}\s*([\d+−–-]{1,6}|[a-z]{1,2})\s*(?:<[^<>]*>){0,4}</sup>"
)
# A power of ten or two, a unit or a variable; any other raised number is a footnote's mark.
_RAISED_NUMBER = (
    r"(?P<base>(?<![\d.,])(?:10|2)|(?<![^\W\d_])(?:[kcdmnµ]?m|mi|ft|yd|mc|[A-Za-z]))?"
    rf"(?P<raised>[{_RAISED_SIGNS}]+)"
)
# Signs of PDF and web texts: soft hyphens, zero-width spaces, ligatures, full-width letters.
_INVISIBLE = "[\u00ad\u200b\u2060\ufeff]|(?<=[A-Za-z0-9])[\u200c\u200d]"
_COMPATIBLE = "[\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+"
_LOOKALIKES = str.maketrans("АВЕКМНОРСТХаеорсухіјѕ", "ABEKMHOPCTXaeopcyxijs")
_MIXED_WORD = r"\b(?=\w*[A-Za-z])\w*[АВЕКМНОРСТХаеорсухіјѕ]\w*"
_BLOCK_OF_LINES = rf"^(?!#)[^\n]+(?:\n(?![^\S\n]*(?:{_MARK}\s|#|\|))[^\n\t|]+)+"
_MIN_WIDTH, _MAX_WIDTH = 30, 130
_MIN_WORDS = 4
_FILLED = 0.85  # least share of the width that a line with the next word takes
_COMPOUND = re.compile(r"\b(?:anti|co|ex|half|non|post|pre|self|well)-$", re.IGNORECASE)


def _raise_number(match: re.Match) -> str:
    raised = match[1].translate(_RAISED)
    return (
        raised if raised[0] in _RAISED_SIGNS or len(raised) > 1 else ""
    )  # "th" or a note's letter


def _keep_power(match: re.Match) -> str:
    base, number = match["base"], match["raised"].translate(_LOWERED)
    if base is None:
        before = match.string[: match.start()][-1:]
        is_note = before.strip() and number.isdigit()
        return "" if is_note else match[0]
    if not base.isdigit():
        return match[0]
    return base if number == "1" else f"{base}^{number}"


def _join_lines(match: re.Match) -> str:
    lines = [line.strip() for line in match[0].split("\n")]
    if not all(lines) or min(len(line.split()) for line in lines[:-1]) < _MIN_WORDS:
        return match[0]
    width, pairs = max(map(len, lines)), list(pairwise(lines))
    divided = [re.search(r"[a-z]-$", line) and after[:1].islower() for line, after in pairs]
    full = [len(line) + 1 + len(after.split()[0]) > _FILLED * width for line, after in pairs]
    within = [after for line, after in pairs if not re.search(r"[.!?:;][\"”’)\]]*$", line)]
    continued = sum(after[:1].islower() for after in within)
    is_filled = all(a or b for a, b in zip(divided, full, strict=True))
    if not (_MIN_WIDTH <= width <= _MAX_WIDTH and is_filled and within):
        return match[0]
    if 2 * continued < len(within):
        return match[0]
    text = lines[0]
    for after, is_divided in zip(lines[1:], divided, strict=True):
        keeps_hyphen = not is_divided or _COMPOUND.search(text)
        text = (text if keeps_hyphen else text[:-1]) + ("" if is_divided else " ") + after
    return text


def _states_fact(line: str) -> bool:
    line = re.sub(_LINE, "", line).strip(' "“”*_')
    is_question = re.match(r"(?:What|Who|Why|How|When|Where|Which)\b", line)
    return (
        line[:1].isupper()
        and len(line.split()) >= 3
        and FINITE_VERB.search(line) is not None
        and not re.search(r"[={}<>]", line)
        and (not is_question or line.endswith("."))
    )


def _keep_facts(match: re.Match) -> str:
    lines = [re.sub(rf"{_LINE}|{_ADDRESS}", "", line).strip(" :") for line in match[0].split("\n")]
    return "\n".join(filter(_states_fact, lines))


def _keep_fact(match: re.Match) -> str:
    return match[1] if _states_fact(match[1]) else ""


def _keep_sentences(match: re.Match) -> str:
    cells = [cell.strip() for cell in re.split(r"[|\t\n]", match[0])]
    facts = [cell for cell in cells if cell.endswith((".", "!")) and _states_fact(cell)]
    return "\n".join([*facts, ""])


def _keep_prose(match: re.Match) -> str:
    is_prose = match["language"] in ("markdown", "md", "text", "txt")
    return match["code"] if is_prose else _keep_sentences(match)


def _keep_text(match: re.Match) -> str:
    line = match["title"] or match["name"] or match["underlined"]
    has_sentence = re.search(r"\b[a-z\d]\w{2,}[.!]+[\"”’)]*(?:\s+[A-Z]|$)", line)
    is_text = (has_sentence or _states_fact(line)) and not line.endswith("?")
    return line if is_text else ""


RULES = [
    (kind, re.compile(pattern, re.MULTILINE), replacement)
    for kind, pattern, replacement in [
        ("reasoning", rf"(?is)(?:<{_TAGS}>|\[THINK\]).*?(?:</{_TAGS}>|\[/THINK\]|\Z)", ""),
        ("reasoning", rf"(?is)\A.*(?:</{_TAGS}>|\[/THINK\])", ""),
        ("code", _CODE, _keep_prose),
        ("tags", r"(?s)<!--.*?(?:-->|\Z)|<(script|style|pre)\b.*?(?:</\1>|\Z)", ""),
        ("superscripts", _RAISED_TAG, _raise_number),
        ("tags", r"<h[1-6]\b[^<>]*>", "\n# "),
        ("tags", r"</t[dh]>", "\t"),
        ("tags", rf"</?{_BLOCK}\b[^<>]*>", "\n"),
        ("tags", rf"</?{_INLINE}\b[^<>]*>", ""),
        (
            "entities",
            r"&(?:#\d{1,6}|#[xX][\da-fA-F]{1,5}|[A-Za-z][\dA-Za-z]{1,30});",
            lambda m: html.unescape(m[0]),
        ),
        ("signs", "[\u00a0\u2000-\u200a\u202f\u205f]", " "),
        ("signs", _INVISIBLE, ""),
        ("signs", _COMPATIBLE, lambda m: unicodedata.normalize("NFKC", m[0])),
        ("signs", _MIXED_WORD, lambda m: m[0].translate(_LOOKALIKES)),
        ("superscripts", _RAISED_NUMBER, _keep_power),
        ("line_breaks", _BLOCK_OF_LINES, _join_lines),
        ("sources", r"^\[\^[\w-]{1,20}\]:.*$", _keep_facts),
        ("sources", _SOURCES, _keep_facts),
        ("addresses", _ADDRESS_LINE, _keep_facts),
        ("addresses", rf"!\[[^\[\]\n]*\]{_TARGET}", ""),
        ("addresses", rf"{_LINE}\[([^\[\]\n]+)\]{_TARGET}[^\S\n.]*$", _keep_fact),
        ("citations", _CITATION, ""),
        ("addresses", rf"\[(?!{CITATION_NUMBERS}\])([^\[\]\n]{{1,200}})\]{_TARGET}", r"\1"),
        ("addresses", _ADDRESS_IN_SENTENCE, ""),
        ("speakers", _SPEAKER, ""),
        ("tables", _TABLE, _keep_sentences),
        ("headings", _HEADING, _keep_text),
        ("questions", _QUESTION, ""),
        ("offers", _OFFER, ""),
        ("refusals", _REFUSAL, ""),
    ]
]


_NORMAL_RULES = [rule for rule in RULES if rule[0] in NORMAL_KINDS]


class Cleaned(NamedTuple):
    """A text without the parts that make no claims, and the number of removed words by kind.

    Changes that remove no words count as one per rule.
    """

    text: str
    removed: dict[str, int]


@lru_cache(maxsize=256)
def clean(text: str, kept: str = "") -> Cleaned:
    """Remove the parts of a text that make no claims, except the kind ``kept``."""
    return _apply(text, [rule for rule in RULES if rule[0] != kept])


def raise_numbers(markup: str) -> str:
    """Replace ``<sup>`` elements by raised signs, which :func:`normalise` reads."""
    return re.sub(_RAISED_TAG, _raise_number, markup)


def normalise(text: str) -> str:
    """Return a claim or passage with its words and numbers in one spelling and without wrapping."""
    if text.isascii() and not re.search(r"[<&\n]", text):
        return text
    return _apply(text, _NORMAL_RULES).text


class Change(NamedTuple):
    """A rule that changes a text, and the text before and after it."""

    kind: str
    pattern: re.Pattern[str]
    replacement: Replacement
    before: str
    after: str


def changes(text: str, rules: Sequence[Rule] = RULES) -> Iterator[Change]:
    """Apply the rules in order, and yield those that change the text."""
    for kind, pattern, replacement in rules:
        after = pattern.sub(replacement, text)
        if after != text:
            yield Change(kind, pattern, replacement, text, after)
            text = after


def _apply(text: str, rules: Sequence[Rule]) -> Cleaned:
    removed: Counter[str] = Counter()
    for change in changes(text, rules):
        words = len(change.before.split()) - len(change.after.split())
        removed[change.kind] += max(int(change.kind in NORMAL_KINDS), words)
        text = change.after
    return Cleaned(text.strip(), dict(+removed))
