"""Untrusted text as a terminal, a page or a drawing can show it."""

import re

# Characters that move a terminal's cursor, give it commands or reverse its writing direction, and
# others that no drawing can hold.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    """Replace the characters of a text that a terminal or a drawing cannot show."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text)
