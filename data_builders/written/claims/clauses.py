"""Claims as clauses: their subject, and their form within a longer sentence."""

import re
from typing import NamedTuple

from components.english import MONTHS, OPENERS, without_qualifier

# First words that are lower-cased within a sentence; any other word may be a name.
_OPENER = re.compile(
    f"{OPENERS}|again|also|although|among|another|as|being|biographers|both|death|each|here|many"
    "|more|most|one|our|politics|professionally|records|reference|since|some|sources|three|two"
    "|under|until|upon|with",
    re.IGNORECASE,
)
_ALSO_NAMES = frozenset({"One", "Some", "Two", "Three", "Another", "More", "Most", "Here"})
_PRONOUN = re.compile(r"(?:He|She)(?= [a-z])")
_POSSESSIVE = re.compile(r"(?:His|Her)(?= )")
_PAST = re.compile(
    r"(?:was|were|had|did|\w+ed)\b|(?:\w+ )?(?:won|wrote|became|began|made|led|took)\b"
)
# A name within a sentence, of one word or several.
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w’'-]+(?: (?:of |the )*[A-Z][\w’'-]+)*")
_COMMON = frozenset({*MONTHS, "He", "She", "University", "College", "School", "Award", "Prize"})


class Clause(NamedTuple):
    """A claim about the topic, split into subject and rest, without the full stop."""

    subject: str
    rest: str

    def with_subject(self, subject: str) -> str:
        return f"{subject} {self.rest}"

    @property
    def past(self) -> bool:
        return _PAST.match(self.rest) is not None


def name_of(topic: str) -> str:
    """Return a topic's name without its parenthesis and without quotation marks."""
    topic = topic.strip("'\" ")
    return without_qualifier(topic).strip() or topic


def names_in(text: str, topic: str) -> set[str]:
    """Return the names in a text, except the topic's names and common ones."""
    topic_words = set(name_of(topic).split())
    names = {name.removesuffix("'s") for name in _NAME.findall(text)} - _COMMON
    return {name for name in names if not topic_words & set(name.split())}


def strip_period(text: str) -> str:
    text = text.strip()
    if text.endswith('."'):  # He appeared in "Fargo."
        return f'{text[:-2]}"'
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def clause_of(text: str, topic: str) -> Clause | None:
    """Parse a claim whose subject is the topic's name, he or she; ``None`` for other claims."""
    text, name = strip_period(text), name_of(topic)
    subjects = [re.escape(s) for s in dict.fromkeys((name, name.split()[-1])) if s]
    match = re.match(rf"({'|'.join([*subjects, 'He', 'She'])}) ([a-z].*)", text)
    # The word after the subject must not join it to a second name or a relative clause.
    if match is None or "\n" in text or re.match(r"(?:and|or|of|who|the|family)\b", match[2]):
        return None
    return Clause(match[1], match[2])


def pronoun_of(text: str) -> str | None:
    """Return the more frequent of ``he`` and ``she`` in a text, ``None`` if they are equal."""
    counts = [len(re.findall(rf"\b{word}\b", text, re.IGNORECASE)) for word in ("he", "she")]
    if counts[0] == counts[1]:
        return None
    return "he" if counts[0] > counts[1] else "she"


def name_topic(text: str, topic: str) -> str:
    """Replace a leading pronoun by the topic's name, and strip the full stop."""
    name = name_of(topic)
    text = (
        _PRONOUN.sub(lambda _: name, strip_period(text))
        if _PRONOUN.match(text)
        else strip_period(text)
    )
    return (
        _POSSESSIVE.sub(lambda _: f"{name}'s", text, count=1) if _POSSESSIVE.match(text) else text
    )


def mid_sentence(text: str) -> str:
    """Return a claim for use within a sentence: no full stop, lower-case unless a name."""
    text = strip_period(text)
    first, _, rest = text.partition(" ")
    if first in _ALSO_NAMES and rest[:1].isupper():  # One Direction
        return text
    return f"{first.lower()} {rest}" if _OPENER.fullmatch(first.rstrip(",")) else text


def capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", '."', ".”")) else f"{text}."
