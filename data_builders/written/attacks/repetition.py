"""Few supported facts as many sentences: near-paraphrases, ever smaller pieces.

All are forms of repetition beyond the repetitive texts of Core (arXiv 2407.03572, section 5.1): a
metric that counts claims counts each sentence as one more supported claim.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.attack import SizedAttack, versions_of
from data_builders.written.attacks.phrases import lines_of, phrase_bank
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
)

# From a claim with one of these words a less specific claim does not follow.
_NOT_SPLITTABLE = re.compile(
    r"(?i)\b(?:not|never|no|none|only|first|last|all|every|each|most|best|least|oldest|youngest"
    r"|record|until|since|between|from)\b"
)
_PLACE = re.compile(r"^(.+) (in|on|at|from) ((?:the )?[A-Z0-9][^,]*|\d.*)$")
MIN_WORDS = 4
MIN_PIECES = 5


class NearParaphrases(SizedAttack):
    """One supported fact, repeated in other words.

    Rules frame the fact ("In other words, …"), move its end to the front ("It was in 2004 that …"),
    change its date format and name its topic or use a pronoun.

    Source: the repetitive texts of Core, arXiv 2407.03572, section 5.1 and appendix B.3; here all
    sentences differ.

    Args:
        sentences: maximum number of sentences; by default that of the document's claims.
    """

    keeps = OnlyTrue(adds=phrase_bank()["frames"])
    family = "counting"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        facts = [
            (name, list(dict.fromkeys(self._versions(source, clause))))
            for name, clause in _clauses(source)
        ]
        largest = max(len(versions) for _, versions in facts)
        fact, versions = rng.choice([pair for pair in facts if len(pair[1]) == largest])
        versions[1:] = rng.sample(versions[1:], len(versions) - 1)  # the topic's name first
        plain, *longer = lines_of("frames")
        frames = [plain, *rng.sample(longer, len(longer))]
        sentences = [
            frames[index % len(frames)].format(p=version, P=capitalise(version))
            for index in range(max(len(versions), len(frames)))
            for version in [versions[index % len(versions)]]
        ]
        return _repeated_fact(fact, list(dict.fromkeys(sentences))[: self.length(source)])

    def _versions(self, source: Source, clause: Clause) -> Iterator[str]:
        pronoun = pronoun_of(source.document.text)
        name = name_of(source.topic)
        subjects = [name, *([pronoun] if pronoun else []), clause.subject]
        for subject in dict.fromkeys(s if s not in ("He", "She") else s.lower() for s in subjects):
            text = clause.with_subject(subject)
            yield text
            yield swap_date_format(text)
            end = _PLACE.match(clause.rest)
            if end and len(end[1].split()) > 1 and not _NOT_SPLITTABLE.search(clause.rest):
                was = "was" if clause.past else "is"
                moved = f"it {was} {end[2]} {end[3]} that {subject} {end[1]}"
                yield moved
                yield swap_date_format(moved)


class Split(SizedAttack):
    """One supported fact, split into the less specific facts that follow from it.

    A date is split into month, year, decade, century, and times before and after it. Each piece is
    supported if the fact is.

    Source: the decomposer's choice of granularity decides the score (Wanner et al.,
    arXiv 2403.11903; Core, arXiv 2407.03572, section 3).
    """

    keeps = OnlyTrue()
    family = "counting"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        dated = [
            (name, parts)
            for text, name in source.supported.items()
            if (parts := ends_in_date(strip_period(name_topic(text, source.topic))))
            and not _NOT_SPLITTABLE.search(text)
            and len(parts[0].split()) > 1
        ]
        if not dated:
            raise NotApplicable("no supported claim ends in a date")
        # The most precise date has the most pieces.
        parts = [sum(part is not None for part in date) for _, (_, date) in dated]
        finest = [fact for fact, n in zip(dated, parts, strict=True) if n == max(parts)]
        fact, (stem, date) = rng.choice(finest)
        pieces = [f"{stem} {when}" for when in coarser_times(date)]
        if len(pieces) < MIN_PIECES:
            raise NotApplicable("a fact has too few pieces")
        return _repeated_fact(fact, pieces[: self.length(source)])


class FewFacts(SizedAttack):
    """A few true facts of the document: alone, repeated, reworded or followed by trivia.

    Precision is 1 without a repetition, and half of the recall is missing. Repetitions and trivia
    make the text as long as the document.

    Args:
        filler: what follows the facts: nothing, the same sentences, rewordings (a field of ladders'
            claims), or statements that may be true of anyone.
        share: share of the document's true claims that are stated.
        sentences: maximum number of sentences; by default that of the document's claims.
    """

    family = "counting"

    def __init__(
        self,
        filler: Literal["none", "same", "reworded", "trivia"] = "none",
        share: float = 0.42,
        sentences: PositiveInt | None = None,
    ):
        super().__init__(sentences)
        self.filler, self.share = filler, share

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        true = [claim for claim in source.claims if claim.label == "S"]
        facts = rng.sample(true, int(self.share * len(true)))
        if not facts:
            raise NotApplicable("too few supported claims")
        claims = [SentenceClaim(claim.text, "S", (claim.id,)) for claim in facts]
        if self.filler == "trivia":
            name = name_of(source.topic)
            trivia = lines_of("trivia")
            claims += [
                SentenceClaim(t.format(X=name), "S") for t in rng.sample(trivia, len(trivia))
            ]
        elif self.filler == "same":
            claims *= self.length(source)
        elif self.filler == "reworded":
            versions = [versions_of(claim)[1:] for claim in facts]
            if not all(versions):
                raise NotApplicable("no rewordings of the claims")
            claims += [
                SentenceClaim(texts[n % len(texts)], "S", (claim.id,))
                for n in range(self.length(source))
                for claim, texts in zip(facts, versions, strict=True)
            ]
        return join_sentences(claims[: max(len(facts), self.length(source))])


def _clauses(source: Source) -> list[tuple[str, Clause]]:
    clauses = [
        (name, clause)
        for text, name in source.supported.items()
        if len(text.split()) > MIN_WORDS and (clause := clause_of(text, source.topic))
    ]
    if not clauses:
        raise NotApplicable("no supported claim is a clause about the topic")
    return clauses


def _repeated_fact(fact: str, sentences: Sequence[str]) -> Attacked:
    return join_sentences([SentenceClaim(text, "S", (fact,)) for text in sentences])
