"""Whether a text says anything about its topic at all; FActScore leaves out those that do not."""

from __future__ import annotations

import re

from records.types import Document

# The text gives up on the topic. Short texts only: a biography may quote such words.
_REFUSAL = re.compile(
    r"^(i['’]?m sorry|i am sorry|sorry|i (do not|don['’]t|could not|couldn['’]t|cannot|can['’]t)"
    r"|i apologi[sz]e|unfortunately, i|as an ai|there is no (information|public)"
    r"|(could not|no) (find )?information)\b",
    re.IGNORECASE,
)
_REFUSAL_MAX_WORDS = 80


def responds(document: Document) -> bool:
    """Whether the text says anything about its topic (FActScore's abstention, by phrases)."""
    text = document.text.strip()
    return bool(text) and not (
        len(text.split()) <= _REFUSAL_MAX_WORDS and _REFUSAL.match(text) is not None
    )
