"""English words and stems that several packages compare."""

import re

from Stemmer import Stemmer

from components.words import WORD, to_nfc

# The calendar module's names depend on the locale.
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
MONTH = f"(?:{'|'.join(MONTHS)})"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Alternatives of a pattern: words that begin a sentence and are no names.
OPENERS = (
    "The|A|An|He|She|It|They|His|Her|Its|Their|This|That|These|Those|There"
    "|In|On|At|By|For|From|After|Before|During|While"
)
NEGATION = r"\b(?:not|never|no|neither|nor)\b|n['’]t\b"
_NEGATION = re.compile(NEGATION, re.IGNORECASE)
# "(surgeon)" at the end of a page's title.
_QUALIFIER = re.compile(r"\s+\([^()]*\)$")
_FUNCTION_WORD = re.compile(
    "an?|and|are|as|at|be|been|by|for|from|had|has|have|he|her|him|his|in|is|its?|of|on|or|she"
    "|that|the|their|they|this|to|was|were|with"
)
_WORD = re.compile(WORD)
_STEMMER = Stemmer("english")


def has_negation(text: str) -> bool:
    return _NEGATION.search(text) is not None


def without_qualifier(title: str) -> str:
    """Remove the parenthesis at the end of a title: ``Ann Lee (surgeon)``."""
    return _QUALIFIER.sub("", title)


def with_article(text: str) -> str:
    """Prefix ``a`` or ``an``."""
    vowel = text[0].lower() in "aeiou" and not re.match(r"(?i)(uni|eu|one|use)", text)
    return f"{'an' if vowel or re.match(r'(?i)(honest|hour)', text) else 'a'} {text}"


def ordinal(number: int) -> str:
    """``19th`` for 19."""
    tail = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{tail or 'th'}"


def stems(text: str) -> list[str]:
    """Return the lower-cased stems (Snowball, English) of the words of a text, in order."""
    return _STEMMER.stemWords(_words(text))


def content_stems(text: str) -> set[str]:
    """Return the stems of a text's words, without function words."""
    words = {word for word in _words(text) if not _FUNCTION_WORD.fullmatch(word)}
    return set(_STEMMER.stemWords(list(words)))


def _words(text: str) -> list[str]:
    return _WORD.findall(to_nfc(text).lower())
