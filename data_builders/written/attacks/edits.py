"""Two edits of one document: a benign one, that keeps all facts, and a correction.

Ramprasad & Wallace (arXiv 2411.16638) ask of a factuality metric that it moves with a correction
and not with an edit that changes nothing. Both kinds name the same document, so that their
differences to it can be set side by side.
"""

import random
import re
from collections.abc import Mapping
from typing import NamedTuple

from data_builders.written.attacks.attack import Attack
from data_builders.written.claims.clauses import clause_of, stems, strip_period
from data_builders.written.claims.knowledge_base import KnowledgeBase
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.times import BORN, DATE, DIED, dates_in, swap_date_format
from data_builders.written.claims.validity import (
    Attacked,
    Corrects,
    NotApplicable,
    SameFacts,
    names_and_numbers,
    unchanged_claims,
)
from records import Claim

KNOWN = "knowledge base"
# Where a participle stands, the phrase for a finite verb does not fit.
_NOT_BEHIND = "".join(rf"(?<!\b{word} )" for word in ("has", "have", "had", "having", "been"))
# Each means the same as the other; small letters, so that no name is touched.
SAME = {
    "passed away": "died",
    "best known for": "most famous for",
    "is known for": "is noted for",
    "was known for": "was noted for",
    "began": "started",
    "films": "movies",
    "a film": "a movie",
    "the film": "the movie",
    "television": "TV",
    "numerous": "many",
    "such as": "like",
    "currently": "now",
    "resides in": "lives in",
    "was awarded": "was given",
    "throughout his": "all through his",
    "throughout her": "all through her",
    "In addition to": "Besides",
    "in addition to": "besides",
    "the United States": "the USA",
    "studied at": "was a student at",
    "took place": "happened",
    "birthplace": "place of birth",
    "date of birth": "birth date",
    "occupation": "profession",
    "honours": "distinctions",
    "the gender of": "the sex of",
}
# What a claim says before a value at its end, and the value: a date, a number or a name.
_VALUE = re.compile(
    rf"^(?P<frame>.+ (?:in|on|at|for|with|by|to|from|of|as|is|was))(?P<article> the| an?)? "
    rf"(?P<value>{DATE.pattern}|\d[\d,.]*|[A-Z][^\s,]*(?:[ ,]+(?:[A-Z][^\s,]*|of|the|and|de|&))*)$"
)


class Edited(Attack):
    """The document in other words: each fact stays, dates and phrases are written otherwise.

    Days as on the other side of the Atlantic (7 August 1932, August 7, 1932), and pairs of phrases
    that mean the same; never inside a name. Text and claims are edited alike.

    Source: benign edits, Ramprasad & Wallace, arXiv 2411.16638, section 4.

    Args:
        same: phrase to one that means the same; null takes the shipped ones.
    """

    def __init__(self, same: dict[str, str] | None = None):
        self.same = SAME if same is None else same

    @property
    def keeps(self) -> SameFacts:
        return SameFacts(equal=self.same)

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        text = self._edited(source.document.text)
        if text == source.document.text:
            raise NotApplicable("no phrase to be written otherwise")
        claims = [
            claim.model_copy(
                update={
                    "text": self._edited(claim.text),
                    "source": claim.source and self._edited(claim.source),
                }
            )
            for claim in unchanged_claims(source)
        ]
        return Attacked(text, claims)

    def _edited(self, text: str) -> str:
        for phrase, other in self.same.items():
            if phrase not in text:
                continue
            text = re.sub(rf"{_NOT_BEHIND}\b{re.escape(phrase)}\b(?! [A-Z])", other, text)
        return swap_date_format(text)


class Correction(NamedTuple):
    """A false claim that is made true.

    Attributes:
        claim: id of the false claim.
        old, new: what is exchanged, in the text and in the claim.
        said: the claim as it becomes.
        by: id of the fact that says so, or ``knowledge base``.
    """

    claim: str
    old: str
    new: str
    said: str
    by: str


class Corrected(Attack):
    """The document with false claims made true, as many as can be.

    What is true is taken of a knowledge base, where one is given and the document says whom it is
    about (``person``), or of another document or page on the same topic: a supported claim that
    says the same of another value ("was born on 3 May 1950" for "was born on 8 May 1952"). A value
    that stands in several claims is left alone.

    Source: corrections, Ramprasad & Wallace, arXiv 2411.16638, section 4.

    Args:
        knowledge: gives and checks true values.
    """

    def __init__(self, knowledge: KnowledgeBase | None = None):
        self.knowledge = knowledge

    @property
    def keeps(self) -> Corrects:
        return Corrects(self.knowledge)

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        false = [claim for claim in source.claims if claim.label == "NS"]
        if not false:
            raise NotApplicable("no false claim")
        rng.shuffle(false)
        text, made = source.document.text, {}
        for claim in false:
            for one in self._corrections(claim, source, world):
                if changed := _exchanged(text, one, claim, source, made):
                    text, made[claim.id] = changed, one
                    break
        if not made:
            raise NotApplicable("no true value is known for a false claim")
        claims = [_corrected(claim, made) for claim in unchanged_claims(source)]
        order = [c.id for c in source.claims if c.id in made]
        return Attacked(text, claims, more={"corrections": [made[n]._asdict() for n in order]})

    def _corrections(self, claim: Claim, source: Source, world: World) -> list[Correction]:
        if self.knowledge is not None and source.person:
            change = self.knowledge.correct_claim(source.person, source.topic, claim.text)
            return [Correction(claim.id, claim.text, change, change, KNOWN)] if change else []
        found = _framed(claim.text, source.topic)
        if found is None:
            return []
        facts = [f for f in world.topic_facts(source) if f.document != source.id]
        said = {tuple(sorted(stems(c.text))) for c in source.claims}
        return [
            Correction(claim.id, found[1], new, _said(claim.text, found[1], new), fact.id)
            for fact in facts
            if (other := _framed(fact.text, source.topic))
            and (new := _in_its_place(found, other))
            and tuple(sorted(stems(_said(claim.text, found[1], new)))) not in said
        ]


def _framed(text: str, topic: str) -> tuple[str, str] | None:
    clause = clause_of(text, topic)
    found = _VALUE.match(clause.rest) if clause else None
    if found is None:
        return None
    return f"{found['frame']}{found['article'] or ''}", found["value"]


def _in_its_place(false: tuple[str, str], true: tuple[str, str]) -> str | None:
    (frame, old), (other, new) = false, true
    if not _says_which(frame, old):
        return None
    if _kind(old) == "year" and _kind(new) == "day":
        # "was born in" a year, "was born on" a day.
        other, new = re.sub(r"on$", "in", other), str(dates_in(new)[0].year)
    same = frame == other and _kind(old) == _kind(new)
    return new if same and not stems(old) & stems(new) else None


def _says_which(frame: str, value: str) -> bool:
    """Whether a frame alone says what its value is of.

    "was inducted in 1992" and "is the captain of" may be about anything; a birth, a death and a
    frame with a name of its own may not.
    """
    if BORN.search(frame) or DIED.search(frame):
        return True
    return _kind(value) != "name" and bool(names_and_numbers(f"He {frame}"))


def _kind(value: str) -> str:
    if DATE.fullmatch(value):
        (date,) = dates_in(value)
        return "day" if date.day else "month" if date.month else "year"
    return "number" if value[0].isdigit() else "name"


def _said(text: str, old: str, new: str) -> str:
    head, _, tail = text.rpartition(old)
    return f"{head}{new}{tail}"


def _exchanged(
    text: str, one: Correction, claim: Claim, source: Source, made: Mapping[str, Correction]
) -> str | None:
    old = strip_period(one.old) if one.by == KNOWN else one.old
    new = strip_period(one.new) if one.by == KNOWN else one.new
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    others = [c for c in source.claims if c.id != claim.id and c.text != claim.text]
    shared = any(pattern.search(c.text) for c in others)
    twice = any(strip_period(c.old) == old or c.by == one.by != KNOWN for c in made.values())
    if shared or twice or len(pattern.findall(text)) != 1:
        return None
    # "Milan" of "Milan, Italy" and "Italy" of it go together.
    if _kind(old) == "name" and re.search(rf", {re.escape(old)}|{re.escape(old)}, [A-Z]", text):
        return None
    return pattern.sub(lambda _: new, text)


def _corrected(claim: Claim, made: Mapping[str, Correction]) -> Claim:
    update: dict[str, object] = {}
    if claim.source:
        source = claim.source
        for one in made.values():
            old, new = (
                (strip_period(one.old), strip_period(one.new))
                if one.by == KNOWN
                else (one.old, one.new)
            )
            source = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _, new=new: new, source)
        update["source"] = source
    if claim.id in made:
        one = made[claim.id]
        by = "rule: knowledge base" if one.by == KNOWN else "rule: a supported claim elsewhere"
        update |= {"text": one.said, "label": "S", "labelled_by": by, "original": claim.text}
        update["rests_on"] = [claim.id, *([] if one.by == KNOWN else [one.by])]
    return claim.model_copy(update=update)
