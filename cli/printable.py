"""Make untrusted text safe to show in a terminal, page or figure."""

import re

# Control characters, direction overrides, surrogates and non-characters.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    """Replace characters that a terminal or figure cannot show."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
