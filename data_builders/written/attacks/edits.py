"""Two edits of one document: one that changes no fact, and one that corrects false claims.

Ramprasad & Wallace (arXiv 2411.16638) require that a factuality metric rises with a correction and
does not change with a benign edit. Both kinds name the same document in ``clean``, so their
differences to it can be compared.
"""

import random
import re
from collections.abc import Mapping
from typing import NamedTuple

from components.english import content_stems
from data_builders.written.attacks.attack import Attack
from data_builders.written.claims.clauses import clause_of, strip_period
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
# After these words a verb is a participle, which a phrase for a finite verb cannot replace.
_NOT_AFTER = "".join(rf"(?<!\b{word} )" for word in ("has", "have", "had", "having", "been"))
# Pairs of phrases with the same meaning, in lower case so that names stay unchanged.
PARAPHRASES = {
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
# The part of a claim before a value at its end, and the value: a date, a number or a name.
_VALUE = re.compile(
    rf"^(?P<frame>.+ (?:in|on|at|for|with|by|to|from|of|as|is|was))(?P<article> the| an?)? "
    rf"(?P<value>{DATE.pattern}|\d[\d,.]*|[A-Z][^\s,]*(?:[ ,]+(?:[A-Z][^\s,]*|of|the|and|de|&))*)$"
)


class Edited(Attack):
    """The document in other words: facts stay, dates and phrases are paraphrased.

    Dates change between the British and American formats (7 August 1932, August 7, 1932), and
    phrases are replaced by synonyms, never inside a name. Text and claims are edited alike.

    Source: benign edits, Ramprasad & Wallace, arXiv 2411.16638, section 4.
    """

    keeps = SameFacts(equal=PARAPHRASES)

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
        for phrase, other in PARAPHRASES.items():
            if phrase not in text:
                continue
            text = re.sub(rf"{_NOT_AFTER}\b{re.escape(phrase)}\b(?! [A-Z])", other, text)
        return swap_date_format(text)


class Correction(NamedTuple):
    """A false claim that is made true."""

    claim: str  # id of the false claim
    old: str  # the words that are replaced, in the text and in the claim
    new: str
    text: str  # the corrected claim, named ``said`` in the record
    by: str  # id of the fact that supports it, or ``knowledge base``

    @property
    def words(self) -> tuple[str, str]:
        """``old`` and ``new`` as they occur inside a text."""
        if self.by == KNOWN:
            return strip_period(self.old), strip_period(self.new)
        return self.old, self.new

    def row(self) -> dict[str, str]:
        return {{"text": "said"}.get(k, k): value for k, value in self._asdict().items()}


class Corrected(Attack):
    """The document with as many false claims as possible made true.

    A true value comes from a knowledge base, if ``knowledge`` is set and the document has a
    ``person``; else from a document or page on the same topic: a supported claim with the same
    words and another value ("was born on 3 May 1950" for "was born on 8 May 1952"). A value that
    occurs in several claims is not changed.

    Source: corrections, Ramprasad & Wallace, arXiv 2411.16638, section 4.

    Args:
        knowledge: returns and validates true values.
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
        text, corrections = source.document.text, {}
        for claim in false:
            for correction in self._corrections(claim, source, world):
                if changed := _replace(text, correction, claim, source, corrections):
                    text, corrections[claim.id] = changed, correction
                    break
        if not corrections:
            raise NotApplicable("no true value is known for a false claim")
        claims = [_corrected(claim, corrections) for claim in unchanged_claims(source)]
        rows = [corrections[c.id].row() for c in source.claims if c.id in corrections]
        return Attacked(text, claims, more={"corrections": rows})

    def _corrections(self, claim: Claim, source: Source, world: World) -> list[Correction]:
        if self.knowledge is not None and source.person:
            change = self.knowledge.correct_claim(source.person, source.topic, claim.text)
            return [Correction(claim.id, claim.text, change, change, KNOWN)] if change else []
        false = _split_value(claim.text, source.topic)
        if false is None:
            return []
        facts = [f for f in world.topic_facts(source) if f.document != source.id]
        stated = {tuple(sorted(content_stems(c.text))) for c in source.claims}
        return [
            Correction(claim.id, false[1], new, text, fact.id)
            for fact in facts
            if (true := _split_value(fact.text, source.topic))
            and (new := _true_value(false, true))
            and (text := new.join(claim.text.rsplit(false[1], 1)))
            and tuple(sorted(content_stems(text))) not in stated
        ]


def _split_value(text: str, topic: str) -> tuple[str, str] | None:
    clause = clause_of(text, topic)
    match = _VALUE.match(clause.rest) if clause else None
    return match and (f"{match['frame']}{match['article'] or ''}", match["value"])


def _true_value(false: tuple[str, str], true: tuple[str, str]) -> str | None:
    (frame, old), (true_frame, new) = false, true
    if not _is_specific(frame, old):
        return None
    if _kind(old) == "year" and _kind(new) == "day":
        # "was born in" a year, "was born on" a day.
        true_frame, new = re.sub(r"on$", "in", true_frame), str(dates_in(new)[0].year)
    same = frame == true_frame and _kind(old) == _kind(new)
    return new if same and not content_stems(old) & content_stems(new) else None


def _is_specific(frame: str, value: str) -> bool:
    """Whether two claims with this frame must be about the same event.

    "was inducted in 1992" and "is the captain of" may be about anything; a birth, a death and a
    frame that contains a name are specific.
    """
    if BORN.search(frame) or DIED.search(frame):
        return True
    return _kind(value) != "name" and bool(names_and_numbers(f"He {frame}"))


def _kind(value: str) -> str:
    if DATE.fullmatch(value):
        (date,) = dates_in(value)
        return "day" if date.day else "month" if date.month else "year"
    return "number" if value[0].isdigit() else "name"


def _replace(
    text: str, fix: Correction, claim: Claim, source: Source, fixes: Mapping[str, Correction]
) -> str | None:
    old, new = fix.words
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    claims = [c for c in source.claims if c.id != claim.id and c.text != claim.text]
    shared = any(pattern.search(c.text) for c in claims)
    twice = any(strip_period(f.old) == old or f.by == fix.by != KNOWN for f in fixes.values())
    if shared or twice or len(pattern.findall(text)) != 1:
        return None
    # "Milan, Italy" cannot be corrected in one of its parts only.
    if _kind(old) == "name" and re.search(rf", {re.escape(old)}|{re.escape(old)}, [A-Z]", text):
        return None
    return pattern.sub(lambda _: new, text)


def _corrected(claim: Claim, corrections: Mapping[str, Correction]) -> Claim:
    update: dict[str, object] = {}
    if claim.source:
        source = claim.source
        for old, new in (correction.words for correction in corrections.values()):
            source = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _, new=new: new, source)
        update["source"] = source
    if correction := corrections.get(claim.id):
        from_base = correction.by == KNOWN
        by = "rule: knowledge base" if from_base else "rule: a supported claim elsewhere"
        update |= {"text": correction.text, "label": "S", "labelled_by": by, "original": claim.text}
        update["rests_on"] = [claim.id, *([] if from_base else [correction.by])]
    return claim.model_copy(update=update)
