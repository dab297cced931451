"""Reading True or False, and Yes or No, out of the text of a model's answer."""

from __future__ import annotations

import re

# The question itself, or a choice that is left open.
_OPEN = re.compile(r"\btrue or false\b|\bneither true nor false\b")
_TRUTH = re.compile(r"((?:\b(?:can)?not|n['’]t) (?:\w+ )?|\bun|\b)(true|false)\b")
_FIRST_WORD = re.compile(r"\W*(yes|no)\b")


def true_or_false(text: str) -> bool | None:
    """What an answer says of a fact; ``None`` where it says neither.

    As FActScore's released code reads it (``factscore/factscorer.py``): the word that occurs, or
    of both the one whose first occurrence is later. It departs from there in three things. Only
    whole words count, without the question that an answer may repeat ("True or False?"). "Not true"
    and "untrue" say false. And an answer without either word is no answer; the released code
    takes it for true unless it has one of "not", "cannot", "unknown", "information".
    """
    first: dict[bool, int] = {}
    for match in _TRUTH.finditer(_OPEN.sub("", text.lower())):
        said = (match[2] == "true") != bool(match[1])
        first.setdefault(said, match.start())
    return max(first, key=first.__getitem__) if first else None


def yes_or_no(text: str) -> bool | None:
    """What the first word of an answer says; ``None`` where it is another one."""
    match = _FIRST_WORD.match(text.lower())
    return match[1] == "yes" if match else None
