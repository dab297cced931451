"""Tokenised text, as sets with Penn Treebank tokens publish it, written as text."""

import re

_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}
_BRACKET = re.compile(rf"-({'|'.join(_BRACKETS)})-")
_TOKENISED = re.compile(rf"{_BRACKET.pattern}|``| [.,](?= |$)")
_TIGHT = (
    (re.compile(r"``\s*"), '"'),
    (re.compile(r"\s*''"), '"'),
    (re.compile(r"\s+(?=[.,;:!?%)\]}](?:\W|$)|['’](?:(?:s|re|ve|ll|d|m)\b|(?=\s))|n['’]t\b)"), ""),
    (re.compile(r"(?<=[(\[{])\s+"), ""),
    (re.compile(r" -- "), " – "),
)


def join_tokens(text: str) -> str:
    """Write the brackets, quotes and spaces of a tokenised text as in text; others unchanged."""
    if not _TOKENISED.search(text):
        return text
    text = _BRACKET.sub(lambda match: _BRACKETS[match[1]], text)
    for pattern, replacement in _TIGHT:
        text = pattern.sub(replacement, text)
    return text
