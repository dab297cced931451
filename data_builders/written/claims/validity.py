"""What an attack keeps, and the checks that tell whether it did.

A check reads the attacked text itself and the labels of the document, never what the attack meant
to do. Words decide: what is new in the text must be words that the attack has named as empty, what
was there must still be there, and a claim has the label of what it rests on. A relation model,
where one is given, judges the meaning as well: a claim that is told as true must be entailed by
what it rests on. Either can find that a text is invalid.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from components.sentences import split_sentences
from data_builders.kb.graph import MONTHS
from data_builders.written.claims.clauses import (
    as_sentence,
    has_negation,
    name_of,
    name_topic,
    stems,
)
from data_builders.written.claims.knowledge_base import KnowledgeBase
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.times import has_same_times, without_times, year_range
from records import Claim, Passage

_DETAIL = re.compile(r"(?<=\S )[A-Z][\w’'-]*|\w*\d\w*")


_SEX = re.compile(r"(?i)\b(?:man|woman|male|female)\b")


# Who says so, of claims whose labels an attack gives.
RULE = "rule: the attack's construction"


# A title with an end of its own: "It may be that she starred in Hello, Dolly!."
_ENDS_TWICE = re.compile(r"([!?])\.$")


class NotApplicable(Exception):
    """An attack cannot be made of a document; the message is counted, so keep it general."""


class SentenceClaim(NamedTuple):
    """A sentence of an attacked text that is one claim.

    Attributes:
        text: the sentence.
        label: its truth; ``None`` where nobody knows.
        rests_on: ids of what makes it so: claims of the document, or facts of the ``World``.
    """

    text: str
    label: str | None
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attacked:
    """What an attack made of a document.

    Attributes:
        text: the adversarial text.
        claims: what it says; the field ``rests_on`` of each holds ids as in :class:`SentenceClaim`.
        passages: ``None`` for those of the document.
        asides: pieces of the text that claim nothing, such as an instruction.
        more: further fields of the record.
    """

    text: str
    claims: list[Claim]
    passages: list[Passage] | None = None
    asides: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


def join_sentences(said: Sequence[SentenceClaim], **more: Any) -> Attacked:
    """A text of sentences that are one claim each."""
    sentences = [_ENDS_TWICE.sub(r"\1", as_sentence(one.text)) for one in said]
    claims = [
        Claim(
            id=f"c{place}",
            text=text,
            sentence=place,
            source=text,
            label=one.label,
            labelled_by=RULE if one.label else "none",
            rests_on=list(one.rests_on),
        )
        for place, (text, one) in enumerate(zip(sentences, said, strict=True))
    ]
    return Attacked(" ".join(sentences), claims, **more)


def unchanged_claims(source: Source) -> list[Claim]:
    """The document's claims, each resting on itself."""
    return [claim.model_copy(update={"rests_on": [claim.id]}) for claim in source.claims]


class Fault(NamedTuple):
    """Why an attacked text is invalid.

    Attributes:
        reason: a few words that are counted.
        where: the claim, or the words.
    """

    reason: str
    where: str = ""


class Entailment(NamedTuple):
    """A pair for a relation model: whether the premise must, or must not, entail the hypothesis."""

    premise: str
    hypothesis: str
    must: bool = True


class Invariant(ABC):
    """What an attack keeps.

    Args:
        adds: words that an attack adds to what was said and that state nothing, e.g. ``some say``.
        equal: words and phrases that mean the same: each is read as what it stands for.
    """

    name: str

    def __init__(self, adds: str = "", equal: dict[str, str] | None = None):
        self.adds = stems(adds)
        self.equal = equal or {}

    @abstractmethod
    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        """What breaks the promise; the first is what counts."""

    def entailments(self, source: Source, attacked: Attacked, world: World) -> Iterator[Entailment]:
        """What a relation model is to confirm: that true claims follow from what they rest on."""
        known = {claim.id: claim for claim in source.claims}
        for claim in attacked.claims:
            bases = [known[name].text for name in basis_ids(claim) if name in known]
            if claim.label == "S" and bases and bases != [claim.text]:
                told = " ".join(f"{name_topic(text, source.topic)}." for text in bases)
                yield Entailment(told, name_topic(claim.text, source.topic))

    def words(self, text: str) -> set[str]:
        """The stems of a text, equal ones as one."""
        for phrase, means in self.equal.items():
            if phrase in text:
                text = re.sub(rf"\b{re.escape(phrase)}\b", means, text)
        return stems(text.replace("'s ", " ").replace("’s ", " "))

    def new_words(self, text: str, bases: Iterable[str], topic: str) -> set[str]:
        """Words of a text that none of its bases has and that are not empty."""
        known = set().union(*map(self.words, bases)) | stems(name_of(topic)) | self.adds
        return self.words(text) - known - {"he", "she", "his", "her", "him"}


class SameFacts(Invariant):
    """All that was said is said, nothing else, and true stays true: a metric should not move."""

    name = "facts"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        yield from _aside_faults(source, attacked)
        known = {claim.id: claim for claim in source.claims}
        kept = {name for claim in attacked.claims for name in basis_ids(claim)}
        yield from (Fault("a fact is lost", known[n].text) for n in known if n not in kept)
        for claim in attacked.claims:
            bases = [known[name] for name in basis_ids(claim) if name in known]
            yield from self._of_claim(claim, bases, source.topic)
        equal = (stems(f"{phrase} {means}") for phrase, means in self.equal.items())
        yield from missing_claims(source, attacked, set().union(*equal))
        said = [source.document.text, *(claim.text for claim in source.claims)]
        text = attacked.text
        for aside in attacked.asides:
            text = text.replace(aside, " ")
        if new := self.new_words(text, said, source.topic):
            yield Fault("the text says something new", listed(new))

    def _of_claim(self, claim: Claim, bases: Sequence[Claim], topic: str) -> Iterator[Fault]:
        texts = [base.text for base in bases]
        if not bases:
            yield Fault("a claim rests on nothing", claim.text)
        elif {claim.label} != {base.label for base in bases}:
            yield Fault("a label changed", claim.text)
        elif has_negation(claim.text) != any(map(has_negation, texts)):
            yield Fault("what was said is denied", claim.text)
        elif new := self.new_words(claim.text, texts, topic):
            yield Fault("a claim says something new", listed(new))
        elif self.words(" ".join(texts)) - self.words(claim.text) - stems(topic) - self.pronouns:
            yield Fault("a claim lost a detail", claim.text)

    pronouns = frozenset(stems("she he his her him"))


class OnlyTrue(Invariant):
    """Each claim follows from supported claims of the document: all is true, and little is said."""

    name = "truth"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        known = {claim.id: claim for claim in source.claims if claim.label == "S"}
        for claim in attacked.claims:
            bases = [known[name].text for name in basis_ids(claim) if name in known]
            if len(bases) < max(1, len(basis_ids(claim))) or claim.label != "S":
                yield Fault("a claim rests on no supported one", claim.text)
                continue
            if has_negation(claim.text) != any(map(has_negation, bases)):
                yield Fault("what was said is denied", claim.text)
            if not has_same_times(claim.text, " ".join(bases)):
                yield Fault("a claim has another time", claim.text)
            if new := self.new_words(without_times(claim.text), bases, source.topic):
                yield Fault("a claim says something new", listed(new))
        yield from missing_claims(source, attacked)
        said = [claim.text for claim in attacked.claims]
        if new := self.new_words(attacked.text, said, source.topic):
            yield Fault("the text says something new", listed(new))


class SuggestsFalse(OnlyTrue):
    """Each claim is true, and the order in which they stand suggests what is false.

    The field ``suggests`` of the record lists pairs of claims, the first told as the earlier one.
    """

    name = "truth of each claim, not of the whole"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        yield from super().faults(source, attacked, world)
        told = {claim.id: place for place, claim in enumerate(attacked.claims)}
        known = {claim.id: claim for claim in source.claims}
        based = {claim.id: [known[n].text for n in basis_ids(claim)] for claim in attacked.claims}
        pairs = attacked.more.get("suggests") or ()
        if not pairs:
            yield Fault("nothing false is suggested")
        for pair in pairs:
            first, then = (year_range(" ".join(based[pair[side]])) for side in ("first", "then"))
            told_so = told[pair["first"]] < told[pair["then"]]
            if first is None or then is None or not told_so or not first[0] > then[1]:
                yield Fault("the suggested order is not known to be false")


class TrueByForm(Invariant):
    """True whatever the facts are: each sentence covers all cases."""

    name = "truth by form"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        for sentence in split_sentences(attacked.text):
            if not covers_all_cases(sentence):
                yield Fault("a case is left open", sentence)
        yield from (
            Fault("a label that the form does not give", claim.text)
            for claim in attacked.claims
            if claim.label != "S"
        )
        yield from missing_claims(source, attacked)

    def entailments(self, source: Source, attacked: Attacked, world: World) -> Iterator[Entailment]:
        return iter(())


class Possible(Invariant):
    """Each sentence says of the topic only what may be of anyone: a hedge, and no detail."""

    name = "truth by hedging"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        own = set(re.findall(r"[\w’'-]+", name_of(source.topic)))
        for sentence in split_sentences(attacked.text):
            if _HEDGE.search(sentence) is None:
                yield Fault("a sentence is not hedged", sentence)
            details = {d.removesuffix("'s") for d in _DETAIL.findall(sentence)} - own
            if details - {d.removesuffix("'s") for d in own}:
                yield Fault("what is hedged has a detail", sentence)
        yield from missing_claims(source, attacked)


class OtherEntityFacts(Invariant):
    """True facts of somebody else.

    Args:
        namesake: of another one of the same name, about whom the text is not, so that they are
            false of the topic; else of one of another name, and true as they stand.
        own: true facts of the topic may stand beside them.
        apart: the text says of whom each fact is, so that a namesake's are true too.
    """

    def __init__(self, namesake: bool, own: bool = False, apart: bool = False):
        super().__init__()
        self.namesake = namesake
        self.own = own
        self.label = "NS" if namesake and not apart else "S"
        self.name = "truth of a namesake" if namesake else "truth, of another topic"
        if own:
            self.name = "truth of two namesakes"

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        true = " ".join(fact.text for fact in world.topic_facts(source))
        of_topic = 0
        for claim in attacked.claims:
            known = [world.facts[name] for name in basis_ids(claim) if name in world.facts]
            is_own = len(known) == 1 and world.is_topic_page(source, known[0][1])
            if len(known) != 1 or is_own > self.own:
                yield Fault("a claim is no fact of another", claim.text)
                continue
            fact, page = known[0]
            of_topic += is_own
            if is_own:
                label = "S"
            else:
                label = self.label
                if (page.name.casefold() == name_of(source.topic).casefold()) != self.namesake:
                    yield Fault("it is of the wrong name", page.title)
                if self.namesake and may_be_true_of_both(claim.text, true, page.name):
                    yield Fault("it is true of the topic as well", claim.text)
            if claim.label != label:
                yield Fault("a label changed", claim.text)
            if new := self.new_words(claim.text, [fact.text], page.name):
                yield Fault("a claim says something new", listed(new))
            if has_negation(claim.text) != has_negation(fact.text):
                yield Fault("what was said is denied", claim.text)
        if self.own and not 0 < of_topic < len(attacked.claims):
            yield Fault("it is not of both", source.topic)
        yield from missing_claims(source, attacked)

    def entailments(self, source: Source, attacked: Attacked, world: World) -> Iterator[Entailment]:
        if self.namesake:
            true = [name_topic(fact.text, source.topic) for fact in world.topic_facts(source)]
            for claim in attacked.claims:
                if not any(
                    world.is_topic_page(source, world.facts[n][1]) for n in basis_ids(claim)
                ):
                    yield from (Entailment(text, claim.text, must=False) for text in true)


# Small steps


class Corrects(Invariant):
    """What was true stays, and at least one false claim is true: a metric should rise.

    Args:
        knowledge: tells whether a claim that it corrected is true.
    """

    name = "truth, with falsehoods made true"

    def __init__(self, knowledge: KnowledgeBase | None):
        super().__init__()
        self.knowledge = knowledge

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        told = {claim.id: claim for claim in attacked.claims}
        made = {one["claim"]: one for one in attacked.more.get("corrections") or ()}
        if not made:
            yield Fault("nothing is corrected")
        for claim in source.claims:
            new = told.get(claim.id)
            if new is None:
                yield Fault("a fact is lost", claim.text)
            elif claim.id not in made:
                if (new.text, new.label) != (claim.text, claim.label):
                    yield Fault("another claim changed", claim.text)
            elif (claim.label, new.label) != ("NS", "S") or new.text == claim.text:
                yield Fault("what was corrected was not false, or is not true", claim.text)
            elif not self._true(source, made[claim.id]["by"], new.text, basis_ids(new), world):
                yield Fault("what is corrected is not known to be true", new.text)
        changed = [one["old"] for one in made.values()]
        if any(old in attacked.text for old in changed):
            yield Fault("what was false is still said", listed(changed))
        yield from missing_claims(source, attacked)

    def entailments(self, source: Source, attacked: Attacked, world: World) -> Iterator[Entailment]:
        known = {claim.id: claim.text for claim in source.claims}
        for claim in attacked.claims:
            if claim.text != known.get(claim.id, claim.text):
                yield Entailment(known[claim.id], claim.text, must=False)

    def _true(self, source: Source, by: str, text: str, bases: list[str], world: World) -> bool:
        if by in world.facts:
            fact, page = world.facts[by]
            own = {world.topic_page(source).key, source.person or source.topic}
            true = page.key in own and fact.document != source.id and by in bases
            return true and not self.new_words(text, [fact.text], source.topic)
        person = source.person
        return bool(
            self.knowledge and person and self.knowledge.is_true(person, source.topic, text)
        )


def may_be_true_of_both(text: str, true: str, name: str) -> bool:
    """Whether a fact of a namesake may be true of the topic as well.

    It is, where the words that tell people apart (names and numbers; of a fact without any, all
    words) are in what is known of the topic; and what sex somebody is.
    """
    if _SEX.search(text):
        return True
    text = re.sub(r"['’]s\b", "", text)
    telling = set().union(*map(stems, _DETAIL.findall(text))) - stems(name)
    return (telling or stems(text) - stems(name)) <= stems(true)


def basis_ids(claim: Claim) -> list[str]:
    """The ids of what a claim rests on."""
    return (claim.model_extra or {}).get("rests_on") or []


_AUXILIARY = r"(?:is|was|are|were|has|had|did|does|can|could|will)"
_KINDS = {
    "month": rf"(?:{'|'.join(MONTHS)})",
    "day of the week": r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)",
    "year": r"\d{4}",
}
# Halves that leave nothing between them.
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
    # born in May or in another month: anyone was born some time
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
    """Whether a sentence is true by its form, as ``heads or tails`` is."""
    return any(pattern.search(sentence) for pattern in _COVERS)


def _aside_faults(source: Source, attacked: Attacked) -> Iterator[Fault]:
    name = {w for w in name_of(source.topic).split() if w[0].isupper() and len(w) > 3}
    for aside in attacked.asides:
        if name & set(re.findall(r"[\w’'-]+", aside)) or re.search(r"\d", aside):
            yield Fault("an aside says something of the topic", aside)


def missing_claims(
    source: Source, attacked: Attacked, empty: Iterable[str] = ()
) -> Iterator[Fault]:
    """Claims whose names and numbers, or most words, the text has not."""
    text = stems(attacked.text) | set(empty) | stems(source.topic)
    before = stems(source.document.text)
    unchanged = {(claim.id, claim.text) for claim in source.claims}
    for claim in attacked.claims:
        own = stems(claim.text)
        details = set().union(*map(stems, _DETAIL.findall(claim.text)))
        if claim.text in attacked.text:
            continue
        # A document's own claims need not have its words, but the text keeps those that it had of
        # them; those of a rule are its sentences.
        if (claim.id, claim.text) in unchanged:
            lost = (own & before) - text
        else:
            lost = details - text if claim.source != claim.text else own - text
        if lost and basis_ids(claim) and not _lost_before(source, claim, lost):
            yield Fault("a claim is not in the text", claim.text)


def _lost_before(source: Source, claim: Claim, lost: set[str]) -> bool:
    known = {one.id: one.text for one in source.claims}
    bases = " ".join(known.get(name, "") for name in basis_ids(claim))
    return lost <= stems(bases) - stems(source.document.text)


def names_and_numbers(text: str) -> set[str]:
    """The names and numbers of a text, but for its first word."""
    return set(_DETAIL.findall(text))


def listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
