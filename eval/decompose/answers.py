"""Parse the subclaims in a language model's answer.

A subclaim is a list item (``-``, ``*``, ``•``, a number, a letter, ``Fact 1:``), an item of a JSON
list, or, in an answer without list marks, a line that is one complete sentence; a paragraph fails.
Greetings, headings, notes, questions, refusals and repeated prompt text are skipped. Repeated items
count once. The papers do not mention repetitions; if a model repeats itself, DecompScore
(2403.11903, section 3.2) is lower than published.
"""

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Sequence, Set
from functools import partial
from typing import NamedTuple

from components.sentences import split_sentences
from eval.decompose.by_sentence import Failed
from eval.models.chat import CUT, Message
from eval.prompting.asker import Asker, Reading

# Special tokens that some models and servers leave in an answer.
_TAGS = re.compile(r"</?s>|<\|\w+\|>")
_FENCE = re.compile(r"```[a-z]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_JSON = re.compile(r"^[ \t]*[\[{]\s*(?:[\"'{\[\]]|$)", re.MULTILINE)
_JSON_TEXT = re.compile(r"(?<!\\)\"((?:[^\"\\]|\\.)*)\"\s*(?=[,\]])")
_JSON_KEYS = ("claim", "fact", "subclaim", "text", "statement", "proposition")

_LABEL = (
    r"(?:(?:independent|individual|atomic|verifiable)\s+)*"
    r"(?:facts?|(?:sub-?)?claims?|propositions?|statements?|sentences?)"
)
# Start of an item without a space after its mark: a quotation mark, or a letter other than a to z.
_OPENS = r"(?=[\"“„«A-Z]|[^\W\d_a-z])"
_MARK = re.compile(
    rf"(?:(?:\d{{1,3}}(?:\.\d{{1,2}})*\\?[.)]|\d{{1,2}}:)\s+(?:[-•]\s+)?"
    rf"|\d{{1,3}}[、．]\s*|\d{{1,3}}[.)]{_OPENS}"
    rf"|[-*•–—−·‣⁃◦○▪■●+→➤➢✓✔✅]\s+|[•‣◦▪●]"
    rf"|[-–—]{_OPENS}|[\[(]\d{{1,3}}[\])]\s+|\(?(?:[a-z]|[ivx]{{2,4}})\)\s+"
    rf"|(?-i:(?:[a-z]|[ivx]{{2,4}})\.\s+{_OPENS})"
    rf"|{_LABEL}\s*#?\d{{1,3}}\s*[.):-]\s*)",
    re.IGNORECASE,
)
_MARKED_NUMBER = re.compile(r"[\[(]?(\d+)")
_INLINE_BULLET = re.compile(rf"(?<=[.!?;])(?:\s+[-*]\s+|\s*•\s*){_OPENS}|(?<!\s)\s+•\s+")
_INLINE_NUMBER = re.compile(rf"(?<=[.!?;])\s+\(?(\d{{1,3}})[.)]\s+{_OPENS}")

# "Facts:" before the list, or before the first item on its line.
_LEAD = re.compile(
    rf"(?:{_LABEL}|a|answer|output|response|decomposition|breakdown)\s*:\s*", re.IGNORECASE
)
# "Sure! Here are the facts:" before the first item on its line.
_GREETING = re.compile(
    r"(?:(?:sure|certainly|of course|okay|absolutely)[,!.:]\s*)?"
    r"(?:here(?:['’]s| is| are)\b[^:]*:\s*)?",
    re.IGNORECASE,
)
_NAMED = re.compile(r"^(?:\*\*[^*]{1,40}:\*\*|\*\*[^*]{1,40}\*\*\s*:)\s*")
_NAME = re.compile(rf"^{_LABEL}\s*:\s+", re.IGNORECASE)
# Headings of the model's reasoning.
_ASIDE = re.compile(
    r"[#*\s]*(?:explanations?|notes?|reasoning|rationale|analysis|justification|thoughts?)[:*\s]*$",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"(?:sure|certainly|of course|okay|absolutely)[,!.:]|here(?:['’]s| is| are)\b.*"
    r"(?::$|facts|claims|sentence|list|breakdown)|(?:i hope|let me know|please note|note that)\b"
    r"|note:|the (?:following|above) (?:is|are|facts|claims|sentences?)\b"
    r"|(?:the|this) sentence (?:is about|says|states|describes|mentions|provides)\b"
    r"|(?:please\s)?(?:break ?down|decompose|split|segment)\sthe\s(?:following|sentence)"
    r"|understood\b|let['’]s (?:break|list|split|identify|extract|start|begin|analy[sz]e)\b"
    r"|please (?:provide|share|give|supply|specify|clarify)\b|i need (?:more|the|a|some)\b"
    r"|i(?:['’]d| would) (?:be happy|need)\b"
    r"|you (?:have not|haven['’]t|did not|didn['’]t) (?:provide|give|include)"
    r"|(?:it (?:seems|looks like|appears)(?: that)? )?(?:(?:the|this) (?:sentence|input)|your \w+)"
    r"(?: (?:you )?(?:provided|given|gave))? (?:is|was|seems|appears)(?: to be)? "
    r"(?:incomplete|empty|missing|unclear|cut off|too short)\b(?! (?:to|for|in|from|by)\b)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:i['’]m|i am) (?:sorry|unable|not able|afraid)\b|sorry,|i apologi[sz]e|as an ai\b"
    r"|(?:unfortunately, )?i (?:cannot|can['’]t|can not|do not|don['’]t|could not|couldn['’]t) "
    r"(?:provide|help|assist|find|break|decompose|answer|complete|fulfil|have|see|extract|do|comply"
    r"|process|identify|list)"
    r"|i (?:must|have to) decline\b|i (?:won['’]t|will not) (?:be able|help|do|provide|assist)\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:(?:there (?:is|are) )?(?:no|not any)|there (?:is|are)n['’]t any) (?:\w+ ){0,2}"
    r"(?:claims?|facts?)(?=\W*$|[.,;:] | (?:in (?:this|the)|to (?:extract|verify|list|check|be)"
    r"|(?:that )?(?:can|could) be|here|found|present)\b)"
    r"|none\b\W*$|n/a\b\W*$|nothing in (?:this|the) (?:\w+ )?(?:sentence|text)\b"
    r"|(?:this|the) (?:sentence|text) (?:makes?|contains?|has) no\b"
    r"|(?:this|the) (?:sentence|text) (?:does not|doesn['’]t) (?:contain|make|have|include|present"
    r"|provide|state|mention|express|give|list|say)\b"
    r"|(?:this|the) (?:sentence|text)\b.*\bno (?:\w+ ){0,2}(?:claims?|facts?)\W*$"
    r"|.*[:,.] no verifiable claims?\W*$",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!?…][\"'”’)\]]*$")
# Endings of a truncated answer, or of a text that was split at an abbreviation.
_OPEN = re.compile(
    r"(?:[,;(–-]|\b(?:a|an|the|of|in|on|at|to|for|from|by|with|as|and|or|but|that|which|who|was|were"
    r"|is|are|his|her|its|their)|\b(?:Dr|Mr|Mrs|Ms|Prof|Gen|Col|Lt|Rev|vs)\."
    # "She was born in St." is truncated; "Dr. No." and "Wall St." are complete.
    r"|\b[a-z]+ (?:St|No)\.)$"
)
# Thai to Burmese, Khmer, Japanese and Chinese, without spaces: longer than a single word.
_BLANKLESS = re.compile(
    r"[\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]{4}"
)


class _Line(NamedTuple):
    text: str
    marked: bool


def ask_for_claims(
    asker: Asker,
    prompts: Sequence[list[Message]],
    sentences: Sequence[str],
    keep_duplicates: bool = False,
) -> list[list[str] | Failed]:
    """Ask the model for the subclaims of each sentence, with one prompt per sentence."""
    read = partial(parse_claims, keep_duplicates=keep_duplicates)
    reads = [
        partial(read, sentence=sentence, pattern=repeated_openings(messages))
        for messages, sentence in zip(prompts, sentences, strict=True)
    ]
    readings = asker.ask(prompts, reads)
    return [Failed(why) if (why := r.failed or _cut(r)) else r.value for r in readings]


def _cut(reading: Reading) -> str | None:
    """Return why a list is not whole: it was cut before the model wrote anything after it."""
    claims = reading.value if isinstance(reading.value, list) else []
    end = reading.text.rstrip(" .\n\"'`*]")
    is_open = _JSON.search(reading.text) and reading.text.count("[") > reading.text.count("]")
    at_end = is_open or end.endswith(claims[-1].rstrip(" .\"'") if claims else "\0")
    return CUT if reading.cut and claims and at_end else None


def repeated_openings(messages: Sequence[Message]) -> frozenset[str]:
    """Line openings (up to the colon) that occur more than once in the prompt.

    A model that repeats one after its answer has started to invent a further example.
    """
    lines = [line for m in messages for line in m["content"].splitlines()]
    heads = Counter(head for line in lines if not _MARK.match(line) and (head := _head(line)))
    return frozenset(head for head, count in heads.items() if count > 1)


def parse_claims(
    answer: str, sentence: str, pattern: Set[str] = frozenset(), keep_duplicates: bool = False
) -> list[str] | Failed:
    """Parse the subclaims of an answer.

    Args:
        answer: the model's answer.
        sentence: the sentence to decompose.
        pattern: repeated line openings of the prompt (:func:`repeated_openings`).
        keep_duplicates: return equal subclaims as often as the answer has them.

    Returns:
        The subclaims in the answer's order; empty if the answer states that there are none.
    """
    answer = _TAGS.sub("\n", answer)
    fence = _FENCE.search(answer)
    text = fence.group(1) if fence else answer
    listed = _json_items(text)
    if isinstance(listed, Failed) or listed == []:
        return listed
    lines = [_Line(item, True) for item in listed] if listed else _lines(text, sentence, pattern)
    texts = [line.text for line in lines]
    items = [line.text for line in lines if line.marked] or _plain(texts, sentence)
    claims = [_clean(item) for item in items]
    if claims and _OPEN.search(claims[-1]):
        claims.pop()
    usable = [c for c in claims if not _is_filler(c, sentence) and not _has_head(c, pattern)]
    distinct: dict[str, str] = {}
    for claim in usable:
        distinct.setdefault(claim.rstrip(" .").casefold(), claim)
    kept = usable if keep_duplicates else list(distinct.values())
    return kept or _why_not(texts, sentence)


def parse_statement(answer: str) -> str | None:
    """Parse the one-line statement in an answer to ``Input: … Output:``.

    Fragments and unchanged structures are valid statements. Introductions and remarks are removed.

    Returns:
        The statement; ``None`` for an empty answer or a refusal.
    """
    parts: list[str] = []
    reading = True
    for line in _TAGS.sub("\n", answer).splitlines():
        head = _head(line)
        if head in {"input", "output", "note", "explanation"}:
            if parts:  # an invented example, or a remark
                break
            reading = head == "output"
            line = line.partition(":")[2]
        if reading and line.strip():
            parts.append(line.strip())
        elif parts and not parts[-1].endswith(":"):
            break
        else:
            parts.clear()
    text = _clean(" ".join(parts))
    return None if not text or _REFUSAL.match(text) else text


def _why_not(texts: Sequence[str], sentence: str) -> list[str] | Failed:
    words = [_clean(text) for text in texts]
    if any(_NOTHING.match(text) for text in words):
        return []
    if any(_REFUSAL.match(text) for text in words) and not _REFUSAL.match(sentence):
        return Failed("the model refused")
    return Failed("no list of claims in the answer")


def _lines(text: str, sentence: str, pattern: Set[str]) -> list[_Line]:
    lines: list[_Line] = []
    after_blank = True
    aside = listed = False
    for raw in text.splitlines():
        line = re.sub(r"^\*\*(\d{1,3}[.)])\*\*", r"\1", raw.strip())
        mark = _MARK.match(line)
        if _ASIDE.match(line):
            aside = True
        elif _LEAD.fullmatch(line.strip("#* ").rstrip(":") + ":") and not mark:
            aside = False
        if aside:
            continue
        listed = listed or bool(lines and lines[-1].marked)
        if not mark and (_has_head(line, pattern) or _LEAD.fullmatch(line)):
            has_claims = any(not _is_filler(item.text, sentence) for item in lines)
            if listed or (line.partition(":")[2].strip() not in {"", sentence} and has_claims):
                break
            lead = _LEAD.match(line)
            line = line[lead.end() :] if lead else ""
            mark = _MARK.match(line)
        elif not mark and not listed and (lead := _LEAD.match(line) or _leads(line)):
            line = line[lead.end() :]
            mark = _MARK.match(line)
        is_open = lines and lines[-1].marked and not _ENDED.search(lines[-1].text)
        if mark:
            lines.extend(_Line(part, True) for part in _inline(line, mark))
        elif line and not after_blank and is_open and line[0].islower():
            lines[-1] = _Line(f"{lines[-1].text} {line}", True)
        elif line:
            lines.append(_Line(line, False))
        after_blank = not line
    return lines


def _leads(line: str) -> re.Match[str] | None:
    greeting = _GREETING.match(line)
    return greeting if _MARK.match(line, greeting.end()) else None


def _inline(line: str, mark: re.Match[str]) -> list[str]:
    rest = line[mark.end() :]
    number = _MARKED_NUMBER.match(mark.group())
    if not number:
        return _INLINE_BULLET.split(rest)
    numbers = [int(m.group(1)) for m in _INLINE_NUMBER.finditer(rest)]
    first = int(number.group(1))
    if numbers != list(range(first + 1, first + 1 + len(numbers))):
        return [rest]
    return _INLINE_NUMBER.split(rest)[::2]


def _plain(texts: Sequence[str], sentence: str) -> list[str]:
    lines = [line for line in texts if not _is_filler(line, sentence)]
    if len(lines) > 1 and lines[0] == sentence:
        lines = lines[1:]
    split_lines = [split_sentences(line, headings=True) for line in lines]
    whole = [
        _ENDED.search(line) and len(split) == 1
        for line, split in zip(lines, split_lines, strict=True)
    ]
    return lines if all(whole) else []


def _json_items(text: str) -> list[str] | Failed | None:
    start = _JSON.search(text)
    if not start:
        return None
    raw = text[start.start() :].strip()
    try:
        value = _json_value(raw)
    except (ValueError, RecursionError):
        try:
            with warnings.catch_warnings():  # invalid escape sequences in an answer
                warnings.simplefilter("ignore")
                value = ast.literal_eval(raw)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            value = [_unescaped(text) for text in _JSON_TEXT.findall(raw)]
            if raw.startswith("{") or not value:
                return Failed("broken JSON")
    texts = _texts(value)
    return Failed("JSON without a list of claims") if texts is None else texts


def _json_value(raw: str) -> object:
    decoder = json.JSONDecoder()
    value, end = decoder.raw_decode(raw)
    values = [value]
    while isinstance(value, dict) and not any(isinstance(item, list) for item in value.values()):
        raw = raw[end:].lstrip(", \r\n\t")
        if not raw.startswith("{"):
            break
        try:
            value, end = decoder.raw_decode(raw)
        except ValueError:  # truncated
            break
        values.append(value)
    return values if len(values) > 1 else values[0]


def _unescaped(text: str) -> str:
    try:
        return json.loads(f'"{text}"', strict=False)
    except json.JSONDecodeError:
        return text


def _texts(value: object) -> list[str] | None:
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        if len(lists) == 1:
            return _texts(lists[0])
        value = list(value.values()) if not lists else [None]
    if not isinstance(value, list):
        return None
    texts = []
    for item in value:
        if isinstance(item, dict):
            item = next((item[key] for key in _JSON_KEYS if key in item), None)
        if not isinstance(item, str):
            return None
        texts.append(item)
    return texts


def _clean(item: str) -> str:
    item = _NAME.sub("", _NAMED.sub("", item.strip()))
    item = re.sub(r"\*\*(.+?)\*\*|__(.+?)__", lambda m: m.group(1) or m.group(2), item).strip("` ")
    if re.fullmatch(r"\*[^*]+\*|_[^_]+_", item):
        item = item[1:-1]
    item = re.sub(r"^[\[(]([^\[\]()]+)[\])]$", r"\1", item)
    quoted = re.fullmatch(r"[\"“]([^\"“”]+)[\"”]([.,;]?)", item)
    if quoted:
        item = quoted.group(1) + quoted.group(2).strip(",;")
    return " ".join(item.split()).rstrip(";").strip()


def _is_filler(text: str, sentence: str) -> bool:
    bare = _clean(text)
    heading = text.startswith("#") or re.fullmatch(r"\*\*[^*]+\*\*:?", text.strip())
    return bool(
        (len(bare.split()) < 2 and not _BLANKLESS.search(bare))
        or bare.endswith((":", "?", "：", "？"))
        or (heading and not _ENDED.search(bare))
        or not any(char.isalpha() for char in bare)
        or _NOTHING.match(bare)
        or _TALK.match(bare)
        or (_REFUSAL.match(bare) and not _REFUSAL.match(sentence))
    )


def _head(line: str) -> str:
    head, colon, _ = line.strip().partition(":")
    return head.strip().casefold() if colon else ""


def _has_head(line: str, pattern: Set[str]) -> bool:
    return bool(pattern) and _head(line) in pattern
