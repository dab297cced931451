"""Invariants of attacks, and the checks that an attacked text satisfies them.

A check reads the attacked text and the labels of the document, not the attack's intent. It
compares words: new words must be on the attack's list of empty words, all original words must be
kept, and a claim has the label of its basis. A text that fails the check is invalid.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from components.english import MONTH, WEEKDAYS, content_stems, has_negation
from components.sentences import split_sentences
from data_builders.written.claims.clauses import as_sentence, name_of
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.times import has_same_times, without_times
from records import Claim, Passage

_DETAIL = re.compile(r"(?<=\S )[A-Z][\w’'-]*|\w*\d\w*")
_SEX = re.compile(r"(?i)\b(?:man|woman|male|female)\b")
# `labelled_by` of claims that a rule writes.
RULE = "rule: construction"
# A title that ends in punctuation: "It may be that she starred in Hello, Dolly!."
_ENDS_TWICE = re.compile(r"([!?])\.$")


class NotApplicable(Exception):
    """An attack does not apply to a document. Messages are counted, so keep them general."""


class SentenceClaim(NamedTuple):
    """A sentence of an attacked text that is one claim."""

    text: str
    label: str | None  # ``None``: unknown
    rests_on: tuple[str, ...] = ()  # ids of claims of the document, or of facts of the ``World``


@dataclass(frozen=True)
class Attacked:
    """The output of an attack on one document.

    Attributes:
        text: the adversarial text.
        claims: its claims; the field ``rests_on`` holds ids as in :class:`SentenceClaim`.
        passages: ``None`` for the passages of the document.
        more: further fields of the record.
    """

    text: str
    claims: list[Claim]
    passages: list[Passage] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def join_sentences(sentence_claims: Sequence[SentenceClaim], **more: Any) -> Attacked:
    """Join sentences, each of which is one claim, to an attacked text."""
    sentences = [_ENDS_TWICE.sub(r"\1", as_sentence(claim.text)) for claim in sentence_claims]
    records = [
        Claim(
            id=f"c{index}",
            text=text,
            sentence=index,
            source=text,
            label=claim.label,
            labelled_by=RULE if claim.label else "none",
            rests_on=list(claim.rests_on),
        )
        for index, (text, claim) in enumerate(zip(sentences, sentence_claims, strict=True))
    ]
    return Attacked(" ".join(sentences), records, **more)


def unchanged_claims(source: Source) -> list[Claim]:
    """Return the document's claims, each with itself as its basis."""
    return [claim.model_copy(update={"rests_on": [claim.id]}) for claim in source.claims]


class Fault(NamedTuple):
    """Why an attacked text is invalid: a category to count, and the claim or words at fault."""

    reason: str
    where: str = ""


class Invariant(ABC):
    """A property of attacked texts, and its checks.

    Args:
        adds: words that an attack adds and that state nothing, e.g. ``some say``.
    """

    name: str

    def __init__(self, adds: str = ""):
        self.adds = content_stems(adds)

    @abstractmethod
    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        """Yield violations; only the first one is counted."""

    def new_words(self, text: str, bases: Iterable[str], topic: str) -> set[str]:
        """Return the words of a text that are neither in its bases nor empty."""
        known_words = set().union(*map(_words, bases)) | content_stems(name_of(topic))
        return _words(text) - known_words - self.adds - {"he", "she", "his", "her", "him"}


class WorseByGold(Invariant):
    """No more than what the builder checks of all attacks: the gold score of the text."""

    name = "worse by gold"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        return iter(())


class OnlyTrue(Invariant):
    """Each claim follows from supported claims of the document: true, but with little content."""

    name = "truth"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        supported = {claim.id: claim for claim in source.claims if claim.label == "S"}
        for claim in attacked.claims:
            bases = [supported[name].text for name in basis_ids(claim) if name in supported]
            if len(bases) < max(1, len(basis_ids(claim))) or claim.label != "S":
                yield Fault("a claim rests on no supported one", claim.text)
                continue
            if has_negation(claim.text) != any(map(has_negation, bases)):
                yield Fault("what was said is denied", claim.text)
            if not has_same_times(claim.text, " ".join(bases)):
                yield Fault("a claim has another time", claim.text)
            if new := self.new_words(without_times(claim.text), bases, source.topic):
                yield Fault("a claim says something new", join_words(new))
        yield from missing_claims(source, attacked)
        texts = [claim.text for claim in attacked.claims]
        if new := self.new_words(attacked.text, texts, source.topic):
            yield Fault("the text says something new", join_words(new))


class TrueByForm(Invariant):
    """Each sentence covers all cases, so it is true for any facts."""

    name = "truth by form"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        for sentence in split_sentences(attacked.text):
            if not covers_all_cases(sentence):
                yield Fault("a case is left open", sentence)
        for claim in attacked.claims:
            if claim.label != "S":
                yield Fault("a label that the form does not give", claim.text)
        yield from missing_claims(source, attacked)


class Possible(Invariant):
    """Each sentence is hedged and has no detail, so it may be true of anyone."""

    name = "truth by hedging"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        topic_words = set(re.findall(r"[\w’'-]+", name_of(source.topic)))
        for sentence in split_sentences(attacked.text):
            if _HEDGE.search(sentence) is None:
                yield Fault("a sentence is not hedged", sentence)
            details = {d.removesuffix("'s") for d in _DETAIL.findall(sentence)} - topic_words
            if details - {d.removesuffix("'s") for d in topic_words}:
                yield Fault("what is hedged has a detail", sentence)
        yield from missing_claims(source, attacked)


class OtherEntityFacts(Invariant):
    """Each claim is a true fact of another entity.

    Args:
        namesake: the other entity has the topic's name, so its facts are false of the topic; else
            it has another name, and its facts are true as stated.
        with_topic: the text also has true facts of the topic.
        apart: the text states which entity each fact is about, so a namesake's are true too.
    """

    def __init__(self, namesake: bool, with_topic: bool = False, apart: bool = False):
        super().__init__()
        self.namesake = namesake
        self.with_topic = with_topic
        self.label = "NS" if namesake and not apart else "S"
        self.name = "truth of a namesake" if namesake else "truth, of another topic"
        if with_topic:
            self.name = "truth of two namesakes"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        topic_text = " ".join(fact.text for fact in world.topic_facts(source))
        of_topic = 0
        for claim in attacked.claims:
            facts = [world.facts[name] for name in basis_ids(claim) if name in world.facts]
            is_topic_fact = len(facts) == 1 and world.is_topic_page(source, facts[0][1])
            if len(facts) != 1 or is_topic_fact > self.with_topic:
                yield Fault("a claim is no fact of another", claim.text)
                continue
            fact, page = facts[0]
            of_topic += is_topic_fact
            label = "S" if is_topic_fact else self.label
            if not is_topic_fact:
                if (page in world.pages_named(source.topic)) != self.namesake:
                    yield Fault("it is of the wrong name", page.title)
                if self.namesake and may_be_true_of_both(claim.text, topic_text, page.name):
                    yield Fault("it is true of the topic as well", claim.text)
            if claim.label != label:
                yield Fault("a label changed", claim.text)
            if new := self.new_words(claim.text, [fact.text], page.name):
                yield Fault("a claim says something new", join_words(new))
            if has_negation(claim.text) != has_negation(fact.text):
                yield Fault("what was said is denied", claim.text)
        if self.with_topic and not 0 < of_topic < len(attacked.claims):
            yield Fault("it is not of both", source.topic)
        yield from missing_claims(source, attacked)


def may_be_true_of_both(text: str, true: str, name: str) -> bool:
    """Return whether a namesake's fact may be true of the topic as well.

    True if the topic's facts contain all names and numbers of the fact (all words if it has
    neither), and for any statement of a person's sex.
    """
    if _SEX.search(text):
        return True
    text = re.sub(r"['’]s\b", "", text)
    telling = set().union(*map(content_stems, _DETAIL.findall(text))) - content_stems(name)
    return (telling or content_stems(text) - content_stems(name)) <= content_stems(true)


def basis_ids(claim: Claim) -> list[str]:
    return (claim.model_extra or {}).get("rests_on") or []


_AUXILIARY = r"(?:is|was|are|were|has|had|did|does|can|could|will)"
_KINDS = {
    "month": MONTH,
    "day of the week": f"(?:{'|'.join(WEEKDAYS)})",
    "year": r"\d{4}",
}
# Two halves that cover all cases.
_HALVES = (
    "in an even year or in an odd year",
    "in the first half of a year or in the second half of one",
    "in a leap year or in a year that was none",
    "in the first ten days of a month or in the days behind them",
    "before noon, at noon or after it",
    "in this century or in another",
)
_COVERING = [
    # was or was not …
    rf"\b({_AUXILIARY}) or \1 not\b",
    r"^Either .+, or (?:he|she|it|[A-Z][^,]*) did not\.?$",
    r"^Either .+, or (?:this|that|it) is not the case\.?$",
    r"^Whether or not .+, (?:one|either) of the two is the case\.?$",
    # born in May or in another month
    *(
        rf"\bborn (?:in|on) (?:a )?{values} or (?:in|on) another {kind}\.?$"
        for kind, values in _KINDS.items()
    ),
    rf"\bborn (?:{'|'.join(_HALVES)})\.?$",
]
_COVERS = [re.compile(pattern) for pattern in _COVERING]
_HEDGE = re.compile(
    r"(?i)\b(?:may|might|could|possibl[ey]|perhaps|maybe|conceivabl[ey]|presumably"
    r"|some (?:say|would say|people say)|it is said)\b"
)


def covers_all_cases(sentence: str) -> bool:
    """Return whether a sentence is true by its form, e.g. ``heads or tails``."""
    return any(pattern.search(sentence) for pattern in _COVERS)


def _words(text: str) -> set[str]:
    return content_stems(text.replace("'s ", " ").replace("’s ", " "))


def missing_claims(source: Source, attacked: Attacked) -> Iterator[Fault]:
    """Yield claims whose names and numbers, or other words, are not in the text."""
    text = content_stems(attacked.text) | content_stems(source.topic)
    before = content_stems(source.document.text)
    texts = {claim.id: claim.text for claim in source.claims}
    for claim in attacked.claims:
        claim_stems = content_stems(claim.text)
        details = set().union(*map(content_stems, _DETAIL.findall(claim.text)))
        if claim.text in attacked.text:
            continue
        # Claims of the document may use other words than its text: compare only the shared words.
        if texts.get(claim.id) == claim.text:
            missing = (claim_stems & before) - text
        else:
            missing = details - text if claim.source != claim.text else claim_stems - text
        bases = " ".join(texts.get(name, "") for name in basis_ids(claim))
        if missing and basis_ids(claim) and not missing <= content_stems(bases) - before:
            yield Fault("a claim is not in the text", claim.text)


def names_and_numbers(text: str) -> set[str]:
    """Return the names and numbers of a text, except its first word."""
    return set(_DETAIL.findall(text))


def join_words(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
