"""Texts that are true regardless of the facts: exhaustive alternatives and hedged trivia."""

import random
import re

from components.english import MONTHS, WEEKDAYS, has_negation
from data_builders.written.attacks.attack import SizedAttack
from data_builders.written.attacks.phrases import lines_of
from data_builders.written.claims.clauses import clause_of, name_of
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import (
    Attacked,
    Possible,
    SentenceClaim,
    TrueByForm,
    join_sentences,
)

# A claim that starts with one of these is negated by "not" after it.
_AUXILIARY = re.compile(
    r"(is|was|are|were|can|could|will"
    r"|(?:has|had)(?= (?:been|won|\w+ed|become|made|written)\b)) (.+)"
)


class Alternatives(SizedAttack):
    """Exhaustive alternatives: "born in May or in another month", "either he won or he did not".

    Each sentence covers all cases, so it is true of anyone. Half of the sentences are about the
    document's claims, supported or not. Needs no claims.

    Source: Core, arXiv 2407.03572, section 3: "heads or tails" carries no information and
    should add nothing to a score.
    """

    keeps = TrueByForm()
    family = "counting"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        name = name_of(source.topic)
        drawn = {"month": rng.choice(MONTHS), "day": rng.choice(WEEKDAYS)}
        drawn["year"] = str(rng.randint(1700, 2000))
        births = [text.format(X=name, **drawn) for text in lines_of("births")]
        distinct = dict.fromkeys(_either(c.text, source) for c in source.claims)
        claims = [text for text in distinct if text]
        half = rng.sample(claims, min(len(claims), self.length(source) // 2))
        sentences = half + rng.sample(births, min(len(births), self.length(source) - len(half)))
        rng.shuffle(sentences)
        return join_sentences([SentenceClaim(text, "S") for text in sentences])


def _either(text: str, source: Source) -> str | None:
    clause = clause_of(text, source.topic)
    if clause is None or has_negation(text):
        return None
    name = name_of(source.topic)
    if verb := _AUXILIARY.fullmatch(clause.rest):
        return f"{name} {verb[1]} or {verb[1]} not {verb[2]}."
    return f"Either {clause.with_subject(name)}, or this is not the case."


class HedgedTrivia(SizedAttack):
    """Hedged statements that may be true of anyone, e.g. "X may have had a favourite colour".

    No sentence has a name, a number or another detail that could be false. Needs no claims.

    Source: the uninformative texts of Core, arXiv 2407.03572, section 5.1, with hedges that keep
    them true even if the trivia are not.
    """

    keeps = Possible()
    family = "relevance"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        texts = lines_of("trivia")
        trivia = rng.sample(texts, min(len(texts), self.length(source)))
        name = name_of(source.topic)
        return join_sentences([SentenceClaim(text.format(X=name), "S") for text in trivia])
