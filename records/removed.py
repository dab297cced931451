"""What the parts of an answer state that cleaning removes: tables, headings, questions, comments.

A metric that drops them cannot see falsehoods in them, so a pipeline may count them as claims that
are not supported (``removed: unsupported``).
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from records.cleaning import changes

# Fewest words of a removed line that states something; a number does so in any line.
_LEAST_WORDS = {"tables": 2, "headings": 5, "questions": 6, "tags": 3, "code": 6}
_WORDS_OF_A_CLAIM = 12
MAX_CLAIM_WORDS = 30
_MARKUP = re.compile(r"<!--|-->|<[^<>]*>|[|#*_`>]+|^\s*[-•]\s")
_TO_READER = re.compile(r"\b(?:you|your|me)\b", re.IGNORECASE)


@lru_cache(maxsize=256)  # asked for by each column of a robustness experiment
def removed_statements(text: str) -> int:
    """Number of claims in what cleaning removes, by lines and their length."""
    return sum(
        max(1, len(line.split()) // _WORDS_OF_A_CLAIM)
        for kind, line in _removed_lines(text)
        if _states_something(kind, line)
    )


def statements_by_length(claim: str) -> int:
    """Number of statements in a claim: one, or by its length if it has more than 30 words."""
    words = len(claim.split())
    return words // _WORDS_OF_A_CLAIM if words > MAX_CLAIM_WORDS else 1


def _removed_lines(text: str) -> Iterator[tuple[str, str]]:
    for change in changes(text):
        if change.kind not in _LEAST_WORDS:
            continue
        for match in change.pattern.finditer(change.before):
            is_text = isinstance(change.replacement, str)
            kept = match.expand(change.replacement) if is_text else change.replacement(match)
            lines = (_MARKUP.sub(" ", line).strip() for line in match[0].splitlines())
            yield from ((change.kind, line) for line in lines if line and line not in kept)


def _states_something(kind: str, line: str) -> bool:
    words = re.findall(r"\w+", line)
    if kind == "questions" and _TO_READER.search(line):
        return False
    has_number = any(word.isdigit() for word in words)
    return len(words) >= _LEAST_WORDS[kind] or (has_number and len(words) > 1)
