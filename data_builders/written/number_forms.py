"""Numbers and dates in another form: "12 May 1901" as "May 12, 1901", "3" as "three"."""

import re

from components.english import MONTH

_WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS.split(), 2)}
_ORDINALS = {
    "first": "1st",
    "second": "2nd",
    "third": "3rd",
    "fourth": "4th",
    "fifth": "5th",
    "sixth": "6th",
    "seventh": "7th",
    "eighth": "8th",
    "ninth": "9th",
    "tenth": "10th",
}
_FORMS = {
    form: other
    for pairs in (_DIGITS, _ORDINALS)
    for word, digits in pairs.items()
    for form, other in ((word, digits), (digits, word))
}
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({MONTH}),? (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({MONTH}) (\d{{1,2}}), (\d{{4}})\b")
_PLAIN = re.compile(rf"(?<![\w.,$€£/–-])(?:{'|'.join(_FORMS)})(?![\w%/–-]|[.,]\d| {MONTH})")
_THOUSANDS = re.compile(r"(?<![\d.,$€£])(\d{1,3}),000\b(?!,)")
_PERCENT = re.compile(r"(?<=\d) ?(?:%|percent\b)")


def other_forms(text: str) -> str:
    """Write dates, small and round numbers, and percentages in another form, if there are any."""
    for pattern, template in ((_DAY_FIRST, r"\2 \1, \3"), (_MONTH_FIRST, r"\2 \1 \3")):
        if pattern.search(text):
            return pattern.sub(template, text)
    if not re.search(MONTH, text):
        text = _PLAIN.sub(lambda match: _FORMS[match[0]], text)
    text = _THOUSANDS.sub(r"\1 thousand", text)
    return _PERCENT.sub(lambda match: " percent" if "%" in match[0] else "%", text)
