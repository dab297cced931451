"""Attacks on the judge and on relevance: phrases around facts, and facts with one false part."""

import random
from typing import Literal

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.attack import (
    SizedAttack,
    false_versions_of,
    versions_of,
)
from data_builders.written.attacks.phrases import (
    Bank,
    Kind,
    family_of,
    fill,
    join_claims,
    lines_of,
    phrases,
)
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    SentenceClaim,
    join_sentences,
)


class Phrased(SizedAttack):
    """True facts in phrases that make them false, or phrases that say nothing.

    Facts are denied, stated of a relative, a rival or a namesake, reported as refuted, or told as
    fiction; ``vague`` and ``bleached`` sentences are true of anyone.

    Args:
        kind: a kind of phrase of ``phrases.yaml``.
        bank: ``seen`` (may be trained on) or ``unseen`` (only reported).
        sentences: maximum number of sentences; by default that of the document's claims.
    """

    def __init__(self, kind: Kind, bank: Bank, sentences: PositiveInt | None = None):
        super().__init__(sentences)
        self.kind, self.bank = kind, bank
        self.family = family_of(kind)

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        templates = phrases(self.kind, self.bank)
        rng.shuffle(templates)
        if self.family == "relevance":
            texts = [fill(template, "", source.topic) for template in templates]
            claims = [SentenceClaim(text, "S") for text in texts]
            return join_sentences(claims[: self.length(source)])
        true = [claim for claim in source.claims if claim.label == "S"]
        rng.shuffle(true)
        texts = []
        for number, claim in enumerate(true[: self.length(source)]):
            template = templates[number % len(templates)]
            versions = versions_of(claim)
            filled = [
                fill(template, text, source.topic) for text in rng.sample(versions, len(versions))
            ]
            texts += [text for text in filled if text is not None][:1]
        if not texts:
            raise NotApplicable("no supported claim fits the phrases")
        return join_sentences([SentenceClaim(text, "NS") for text in texts])


class Falsified(SizedAttack):
    """Statements with a false number or name, or with words of the page in a wrong relation.

    Needs a ladder's claims, which have false versions.

    Args:
        changed: what is false.
        bank: for ``relation``, bank of the frames: ``seen`` (may be trained on) or ``unseen`` (only
            reported).
        sentences: maximum number of sentences; by default that of the document's claims.
    """

    def __init__(
        self,
        changed: Literal["number", "name", "relation"],
        bank: Bank | None = None,
        sentences: PositiveInt | None = None,
    ):
        super().__init__(sentences)
        self.changed, self.bank = changed, bank
        self.family = "relation" if changed == "relation" else "judge"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        versions = [false_versions_of(claim, self.changed, self.bank) for claim in source.claims]
        # Each fact once, then the facts with further versions again.
        ranked = [
            (n, text) for texts in versions for n, text in enumerate(rng.sample(texts, len(texts)))
        ]
        texts = [text for _, text in sorted(ranked, key=lambda pair: pair[0])]
        if not texts:
            raise NotApplicable(f"no claim with a false {self.changed}")
        return join_sentences([SentenceClaim(text, "NS") for text in texts[: self.length(source)]])


class HalfFalse(SizedAttack):
    """Compound sentences of a true fact and a false one, of a ladder's claims."""

    family = "judge"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        true = [claim for claim in source.claims if claim.label == "S"]
        false = [texts for claim in source.claims if (texts := false_versions_of(claim))]
        if not true or not false:
            raise NotApplicable("no claims with false versions")
        templates = lines_of("joined")
        claims = []
        for number in range(min(self.length(source), len(true))):
            texts = [true[number].text, rng.choice(false[(number + 1) % len(false)])]
            rng.shuffle(texts)
            claims.append(
                SentenceClaim(join_claims(rng.choice(templates), *texts, source.topic), "NS")
            )
        return join_sentences(claims)
