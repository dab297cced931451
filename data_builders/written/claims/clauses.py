"""Claims as clauses: who they are about, and how they stand inside a longer sentence."""

import re
from typing import NamedTuple

import Stemmer

from data_builders.kb.graph import MONTHS

# First words that are small inside a sentence; any other one may be a name.
_OPENERS = frozenset(
    """a after again also although among an another as at before being biographers both by death
    during each more for from he her here his in it its many most on one our politics professionally
    reference records she since sources some that the their there these they this those three two
    under until upon while with""".split()  # noqa: SIM905 (a list is longer)
)
_ALSO_NAMES = frozenset({"One", "Some", "Two", "Three", "Another", "More", "Most", "Here"})
_PRONOUN = re.compile(r"(?:He|She)(?= [a-z])")
_POSSESSIVE = re.compile(r"(?:His|Her)(?= )")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)$")
_PAST = re.compile(
    r"(?:was|were|had|did|\w+ed)\b|(?:\w+ )?(?:won|wrote|became|began|made|led|took)\b"
)


# A name inside a sentence, of one word or several; some are everywhere.
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w’'-]+(?: (?:of |the )*[A-Z][\w’'-]+)*")
_COMMON = frozenset({*MONTHS, "He", "She", "University", "College", "School", "Award", "Prize"})


_NOT = re.compile(r"(?i)\b(?:not|never|no|neither|nor)\b|n['’]t\b")


_EMPTY = frozenset(
    """a an and are as at be been by for from had has have he her him his in is it its of on or she
    that the their they this to was were with""".split()  # noqa: SIM905 (a list is longer)
)


_STEMMER = Stemmer.Stemmer("english")

_WORD = re.compile(r"\w+")


class Clause(NamedTuple):
    """A claim about the topic: a subject and all the rest, without the full stop."""

    subject: str
    rest: str

    def with_subject(self, subject: str) -> str:
        """The same of another subject."""
        return f"{subject} {self.rest}"

    @property
    def past(self) -> bool:
        """Whether it is told in the past."""
        return _PAST.match(self.rest) is not None


def name_of(topic: str) -> str:
    """A topic's name, without what tells it from its namesakes and without quotation marks."""
    topic = topic.strip("'\" ")
    return _PARENTHESIS.sub("", topic).strip() or topic


def names_in(text: str, topic: str) -> set[str]:
    """The names in a text, without those of its topic and those that are everywhere."""
    own = set(name_of(topic).split())
    found = {name.removesuffix("'s") for name in _NAME.findall(text)} - _COMMON
    return {name for name in found if not own & set(name.split())}


def strip_period(text: str) -> str:
    """A claim without its full stop."""
    text = text.strip()
    if text.endswith('."'):  # He appeared in "Fargo."
        return f'{text[:-2]}"'
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def clause_of(text: str, topic: str) -> Clause | None:
    """A claim as a clause about the topic, named or as he or she; else none."""
    text, name = strip_period(text), name_of(topic)
    subjects = [re.escape(s) for s in dict.fromkeys((name, name.split()[-1])) if s]
    found = re.match(rf"({'|'.join([*subjects, 'He', 'She'])}) ([a-z].*)", text)
    # "her" and "who" alone are no verbs; "and" joins a second name to the first.
    if found is None or "\n" in text or re.match(r"(?:and|or|of|who|the|family)\b", found[2]):
        return None
    return Clause(found[1], found[2])


def pronoun_of(text: str) -> str | None:
    """``he`` or ``she``, as the text says of its topic; none where it says neither or both."""
    counts = [len(re.findall(rf"\b{word}\b", text, re.IGNORECASE)) for word in ("he", "she")]
    if counts[0] == counts[1]:
        return None
    return "he" if counts[0] > counts[1] else "she"


def name_topic(text: str, topic: str) -> str:
    """A claim that names its topic, where it began with a pronoun; without its full stop."""
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
    """A claim as it stands behind other words: no full stop, no capital that is no name's."""
    text = strip_period(text)
    first, _, rest = text.partition(" ")
    if first in _ALSO_NAMES and rest[:1].isupper():  # One Direction
        return text
    return f"{first.lower()} {rest}" if first.rstrip(",").casefold() in _OPENERS else text


def capitalise(text: str) -> str:
    """The same at the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    """A claim with an end."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", '."', ".”")) else f"{text}."


def has_negation(text: str) -> bool:
    """Whether a text contains a negation."""
    return _NOT.search(text) is not None


def stems(text: str) -> set[str]:
    """The stems of a text's words, without those that hardly say anything."""
    return set(_STEMMER.stemWords(sorted(set(_WORD.findall(text.casefold())) - _EMPTY)))
