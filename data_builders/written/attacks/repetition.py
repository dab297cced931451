"""One supported fact made into many sentences: near-paraphrases, and ever smaller pieces.

Both are ways to repeat oneself beyond the repetitive texts of Core (arXiv 2407.03572, section 5.1):
each sentence is another claim to a metric that counts them, and a supported one.
"""

import random
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from jsonargparse.typing import PositiveInt

from data_builders.written.adversarial import PROMPTS
from data_builders.written.attacks.attack import Attack
from data_builders.written.claims.clauses import (
    Clause,
    capitalise,
    clause_of,
    name_of,
    name_topic,
    pronoun_of,
    strip_period,
)
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.times import coarser_times, ends_in_date, swap_date_format
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    OnlyTrue,
    SentenceClaim,
    join_sentences,
    names_and_numbers,
)
from data_builders.written.corruption.corrupters import paragraph_lines
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from records import Claim

# {p} is a claim as it stands inside a sentence, {P} as it begins one.
FRAMES = (
    "{P}.",
    "It is true that {p}.",
    "In other words, {p}.",
    "It is a fact that {p}.",
    "To put it differently, {p}.",
    "It is the case that {p}.",
    "That {p} is true.",
    "To say it again, {p}.",
    "It can be said that {p}.",
    "Put another way, {p}.",
    "It remains true that {p}.",
    "That is to say, {p}.",
    "It bears repeating that {p}.",
    "In short, {p}.",
)
_EMPTY = " ".join(FRAMES)
# What is smaller does not follow from a claim with one of these.
_NOT_SMALLER = re.compile(
    r"(?i)\b(?:not|never|no|none|only|first|last|all|every|each|most|best|least|oldest|youngest"
    r"|record|until|since|between|from)\b"
)
_PLACE = re.compile(r"^(.+) (in|on|at|from) ((?:the )?[A-Z0-9][^,]*|\d.*)$")
MIN_WORDS = 4
MIN_PIECES = 5


class NearParaphrases(Attack):
    """One supported fact, said again and again in other words.

    By rule the fact is framed ("In other words, …"), its end moved to the front ("It was in 2004
    that …"), its date written otherwise and its topic named or not. A language model writes
    paraphrases instead, where one is given; each that adds or loses something is left out.

    Source: the repetitive texts of Core, arXiv 2407.03572, section 5.1 and appendix B.3, with a
    chain in which no two sentences are the same.

    Args:
        sentences: of the text, at most.
        writer: a language model, which samples at temperature 1.
    """

    keeps = OnlyTrue(adds=_EMPTY)

    def __init__(self, sentences: PositiveInt = 14, writer: Writer | None = None):
        self.sentences = sentences
        self.writer = writer

    @cached_property
    def _prompt(self) -> Prompt:
        return Prompt(PROMPTS / "near_paraphrases.jinja")

    @property
    def identity(self) -> dict[str, Any]:
        return super().identity | ({"prompt": self._prompt.sha256} if self.writer else {})

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        found = [
            (name, list(dict.fromkeys(self._versions(source, clause))))
            for name, clause in _clauses(source)
        ]
        most = max(len(versions) for _, versions in found)
        fact, versions = rng.choice([one for one in found if len(one[1]) == most])
        versions[1:] = rng.sample(versions[1:], len(versions) - 1)  # the topic's name first
        frames = [FRAMES[0], *rng.sample(FRAMES[1:], len(FRAMES) - 1)]
        told = [
            frames[place % len(frames)].format(p=version, P=capitalise(version))
            for place in range(max(len(versions), len(frames)))
            for version in [versions[place % len(versions)]]
        ]
        return _one_fact(fact, list(dict.fromkeys(told))[: self.sentences])

    def attack_all(
        self, sources: Sequence[Source], world: World, rngs: Sequence[random.Random], seed: int
    ) -> list[Attacked | NotApplicable]:
        found = super().attack_all(sources, world, rngs, seed)
        if self.writer is None:
            return found
        places = [place for place, one in enumerate(found) if isinstance(one, Attacked)]
        claims = [found[place].claims[0] for place in places]
        prompts = [
            self._prompt.messages(topic=sources[at].topic, claim=claim.text, number=self.sentences)
            for at, claim in zip(places, claims, strict=True)
        ]
        answers = self.writer.answer(
            prompts, temperature=1.0, max_new_tokens=40 * self.sentences, seed=seed
        )
        for place, claim, own in zip(places, claims, answers, strict=True):
            found[place] = self._told(sources[place].topic, claim, own[0])
        return found

    def _told(self, topic: str, claim: Claim, answer: Answer) -> Attacked | NotApplicable:
        if answer.failed is not None:
            return NotApplicable(answer.failed)
        name = set(name_of(topic).split())
        lines = (line for line in paragraph_lines(answer.text) if line != claim.text)
        same = names_and_numbers(claim.text) - name
        kept = list(dict.fromkeys(line for line in lines if names_and_numbers(line) - name == same))
        if not kept:
            return NotApplicable("the model gave no paraphrase with all details")
        return _one_fact(claim.rests_on[0], [claim.text, *kept][: self.sentences])

    def _versions(self, source: Source, clause: Clause) -> Iterator[str]:
        pronoun = pronoun_of(source.document.text)
        name = name_of(source.topic)
        subjects = [name, *([pronoun] if pronoun else []), clause.subject]
        for subject in dict.fromkeys(s if s not in ("He", "She") else s.lower() for s in subjects):
            text = clause.with_subject(subject)
            yield text
            yield swap_date_format(text)
            found = _PLACE.match(clause.rest)
            if found and len(found[1].split()) > 1 and not _NOT_SMALLER.search(clause.rest):
                was = "was" if clause.past else "is"
                moved = f"it {was} {found[2]} {found[3]} that {subject} {found[1]}"
                yield moved
                yield swap_date_format(moved)


class Split(Attack):
    """One supported fact, split into all the smaller ones that follow from it.

    Of a date the month, the year, the decade, the century, and what it is before and after. Each
    is supported wherever the fact is.

    Source: the decomposer's choice of granularity decides the score (Wanner et al.,
    arXiv 2403.11903; Core, arXiv 2407.03572, section 3).

    Args:
        sentences: of the text, at most.
    """

    keeps = OnlyTrue()

    def __init__(self, sentences: PositiveInt = 14):
        self.sentences = sentences

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        dated = [
            (name, found)
            for text, name in source.supported.items()
            if (found := ends_in_date(strip_period(name_topic(text, source.topic))))
            and not _NOT_SMALLER.search(text)
            and len(found[0].split()) > 1
        ]
        if not dated:
            raise NotApplicable("no supported claim ends in a date")
        # The finest date gives most.
        most = max(sum(part is not None for part in date) for _, (_, date) in dated)
        finest = [one for one in dated if sum(part is not None for part in one[1][1]) == most]
        fact, (stem, date) = rng.choice(finest)
        pieces = [f"{stem} {when}" for when in coarser_times(date)]
        if len(pieces) < MIN_PIECES:
            raise NotApplicable("a fact has too few pieces")
        return _one_fact(fact, pieces[: self.sentences])


def _clauses(source: Source) -> list[tuple[str, Clause]]:
    found = [
        (name, clause)
        for text, name in source.supported.items()
        if len(text.split()) > MIN_WORDS and (clause := clause_of(text, source.topic))
    ]
    if not found:
        raise NotApplicable("no supported claim is a clause about the topic")
    return found


def _one_fact(fact: str, told: Sequence[str]) -> Attacked:
    return join_sentences([SentenceClaim(text, "S", (fact,)) for text in told])
