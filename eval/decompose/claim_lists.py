"""Read the subclaims in a language model's answer.

Answers have the form of the published examples: list items after ``-``, a bullet or a number, or
the answer that nothing can be verified (VeriScore's "No verifiable claim."). A JSON list is read,
too. Anything else fails. Repeated items count once. The papers do not mention repetitions; if a
model repeats itself, DecompScore (2403.11903, section 3.2) is lower than published.
"""

import re
from collections import Counter
from collections.abc import Sequence, Set
from functools import partial

from eval.decompose.by_sentence import Failed
from eval.models.chat import CUT, Message
from eval.prompting.answer_forms import read_json, strip_special_tokens
from eval.prompting.asker import Asker, Reading

_KEYS = ("claim", "fact", "subclaim", "text", "statement")
_MARK = re.compile(r"(?:[-*•–]|\(?(\d{1,3})(?:\.\d{1,2})?[.):])\s+(?:[-•]\s+)?")
_INLINE = re.compile(r"(?<=[.!?;])(?:\s*•|\s+(?:[-*]|\(?(\d{1,3})[.)])\s)\s*(?=[\"“A-Z])")
# "Here are the facts:" before the first item on its line.
_GREETING = re.compile(r"\A[^\n:]*:[ \t]+(?=1\.\s|-\s)")
# Headings of the model's reasoning.
_ASIDE = re.compile(r"[#*\s]*(?:explanation|notes?|reasoning|analysis)[:*\s]*$", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:i['’]m|i am) (?:sorry|unable|not able)\b|sorry,|i apologi[sz]e|as an ai\b"
    r"|i (?:cannot|can['’]t|do not|don['’]t|will not|won['’]t|must decline)\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\W*(?:there (?:is|are) )?(?:no|none)(?: \w+){0,2} (?:claims?|facts?)\W*$|\W*none\W*$",
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
    is_at_end = claims and reading.text.rstrip(" .\n\"'`*]").endswith(claims[-1].rstrip(" .\"'"))
    return CUT if reading.cut and is_at_end else None


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
    text = strip_special_tokens(answer).replace("**", "").strip()
    value = read_json(text)
    items = (
        _items(_GREETING.sub("", text), sentence, pattern) if value is None else _json_texts(value)
    )
    if items is None:
        return Failed("JSON without a list of claims")
    claims = [_clean(item) for item in items]
    if claims and _OPEN.search(claims[-1]):
        claims.pop()
    is_refusal = _REFUSAL.match(text) or any(map(_REFUSAL.match, claims))
    if is_refusal and not _REFUSAL.match(sentence):
        return Failed("the model refused")
    usable = [claim for claim in claims if _is_claim(claim) and _head(claim) not in pattern]
    if keep_duplicates and usable:
        return usable
    distinct: dict[str, str] = {}
    for claim in usable:
        distinct.setdefault(claim.rstrip(" .").casefold(), claim)
    if distinct or value == [] or any(map(_NOTHING.match, [*text.splitlines(), *claims])):
        return list(distinct.values())
    return Failed("no list of claims in the answer")


def parse_statement(answer: str) -> str | None:
    """Parse the one-line statement in an answer to ``Input: … Output:``.

    Fragments and unchanged structures are valid statements. A text after the statement is ignored.

    Returns:
        The statement; ``None`` for an empty answer or a refusal.
    """
    text = re.sub(r"^\s*output\s*:", "", strip_special_tokens(answer), flags=re.IGNORECASE).strip()
    statement = _clean(re.split(r"\n\s*\n", text)[0])
    is_none = not statement or _REFUSAL.match(statement) or _head(statement) == "input"
    return None if is_none or statement.endswith(":") else statement


def _items(text: str, sentence: str, pattern: Set[str]) -> list[str]:
    items: list[str] = []
    is_after_item = False
    for raw in text.splitlines():
        line = raw.strip("` ")
        mark = _MARK.match(line)
        is_next_example = _head(line) in pattern and (
            items or line.partition(":")[2].strip() not in {"", sentence}
        )
        if not mark and (is_next_example or _ASIDE.match(line)):
            break
        if mark:
            items += _inline(line[mark.end() :], mark[1])
        elif is_after_item and line[:1].islower() and not _ENDED.search(items[-1]):
            items[-1] = f"{items[-1]} {line}"
        is_after_item = bool(line and items and (mark or is_after_item))
    return items


def _inline(text: str, number: str | None) -> list[str]:
    """Split a line with several items; numbers must continue the first one."""
    marks = list(_INLINE.finditer(text))
    numbers = [mark[1] and int(mark[1]) for mark in marks]
    first = number and int(number)
    if numbers != [first and first + place for place in range(1, len(marks) + 1)]:
        return [text]
    return _INLINE.split(text)[::2]


def _json_texts(value: object) -> list[str] | None:
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list):
        return None
    texts = [
        next((item[key] for key in _KEYS if key in item), None) if isinstance(item, dict) else item
        for item in value
    ]
    return texts if all(isinstance(text, str) for text in texts) else None


def _clean(item: str) -> str:
    item = " ".join(item.split()).strip("` ")
    quoted = re.fullmatch(r"[\"“]([^\"“”]+)[\"”]\.?|\[([^\[\]]+)\]", item)
    return (quoted[1] or quoted[2]).strip() if quoted else item.rstrip(";").strip()


def _is_claim(text: str) -> bool:
    is_heading = text.endswith((":", "?")) or text.lower().startswith("note:")
    is_words = " " in text or not text.isascii()  # Chinese and Japanese have no spaces
    return is_words and any(map(str.isalpha, text)) and not is_heading and not _NOTHING.match(text)


def _head(line: str) -> str:
    head, colon, _ = line.strip().partition(":")
    return head.strip().casefold() if colon else ""
