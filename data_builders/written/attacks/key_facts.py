"""Texts without a true key fact: omitted, falsified, diluted, or replaced by rare details.

Metrics that count claims weigh all facts alike. Key facts of a person are occupation, date and
place of birth (``KEY_PROPERTIES``); all other facts of the knowledge base are minor.
"""

import random
from collections.abc import Iterator
from typing import Literal

from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.attack_gold import attack_gold, credited_facts
from data_builders.written.claims.knowledge_base import KnowledgeBase
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import (
    Attacked,
    Fault,
    Invariant,
    NotApplicable,
    SentenceClaim,
    basis_ids,
    join_sentences,
    missing_claims,
)

Action = Literal["omit", "falsify", "dilute", "rare"]


class KeyFactsLost(Invariant):
    """No true claim states a key fact, and the text is worse by gold F1.

    The knowledge base confirms the label of each new claim, and each true claim adds a fact. With
    ``falsified`` a false claim states a key fact.
    """

    name = "fewer true facts, no key fact"

    def __init__(self, knowledge: KnowledgeBase, falsified: bool):
        super().__init__()
        self.knowledge = knowledge
        self.falsified = falsified

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        original = {claim.id: (claim.text, claim.label) for claim in source.claims}
        facts: set[str] = set()
        for claim in attacked.claims:
            bases = [original[name] for name in basis_ids(claim) if name in original]
            is_true = self.knowledge.is_true(source.person or "", source.topic, claim.text)
            if bases and bases != [(claim.text, claim.label)]:
                yield Fault("another claim changed", claim.text)
            elif not bases and is_true != (claim.label == "S"):
                yield Fault("the knowledge base does not confirm a label", claim.text)
            credited = credited_facts(claim, source, world, is_separated=False)
            if claim.label == "S" and credited <= facts:
                yield Fault("a fact is repeated", claim.text)
            facts |= credited
        is_key = self.knowledge.states_key_fact
        key_labels = {c.label for c in attacked.claims if is_key(source.topic, c.text)}
        if "S" in key_labels:
            yield Fault("a key fact is true", source.topic)
        if self.falsified and "NS" not in key_labels:
            yield Fault("no key fact is false", source.topic)
        gold = attack_gold(source, attacked, world, is_separated=False)
        if gold is not None and not gold.f1 < source.document.gold.f1:
            yield Fault("the text is not worse by gold", source.topic)
        yield from missing_claims(source, attacked)


class KeyFacts(Attack):
    """A text without a true key fact of its topic.

    ``omit`` and ``falsify`` remove the document's true key facts or replace them by false ones.
    ``dilute`` writes false key facts among true minor ones. ``rare`` replaces all true claims by
    minor facts that the knowledge base has of nobody else, which the weights of Core
    (arXiv 2407.03572, section 4.2) reward. ``dilute`` and ``rare`` have one true claim fewer than
    the document: gold counts facts alike, so with as many the text would not be worse.

    Source: VitalErrors, arXiv 2510.07083, where a model edits the answer; here rules do.

    Args:
        knowledge: states and checks facts; documents need its ``person``.
        action: how key facts are lost.
    """

    def __init__(self, knowledge: KnowledgeBase, action: Action):
        self.knowledge = knowledge
        self.action = action

    @property
    def keeps(self) -> KeyFactsLost:
        return KeyFactsLost(self.knowledge, self.action in ("falsify", "dilute"))

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        if self.action in ("omit", "falsify"):
            return self._without_key_facts(source, rng)
        statements = self.knowledge.true_statements(source.person or "", rng)
        minor = [statement for statement in statements if not statement.is_key]
        drawn = [s for s in rng.sample(minor, len(minor)) if s.is_rare or self.action == "dilute"]
        true = drawn[: max(0, len(source.supported) - 1)]
        if len(true) < 2:
            raise NotApplicable("fewer than two minor facts in the knowledge base")
        if self.action == "dilute":
            false = self._false(source, len(source.claims) - len(true), rng)
        else:
            kept = (claim for claim in source.claims if claim.label != "S")
            false = [SentenceClaim(c.text, c.label, (c.id,)) for c in kept]
        claims = [*(SentenceClaim(s.text, "S", (s.fact,)) for s in true), *false]
        return join_sentences(rng.sample(claims, len(claims)))

    def _without_key_facts(self, source: Source, rng: random.Random) -> Attacked:
        is_key = self.knowledge.states_key_fact
        keys = [c.id for c in source.claims if c.label == "S" and is_key(source.topic, c.text)]
        if not keys or source.person is None:
            raise NotApplicable("no true claim states a key fact of the knowledge base")
        false = self._false(source, len(keys), rng) if self.action == "falsify" else []
        claims = {c.id: SentenceClaim(c.text, c.label, (c.id,)) for c in source.claims}
        replaced = claims | dict(zip(keys, false, strict=False))
        return join_sentences([c for name, c in replaced.items() if false or name not in keys])

    def _false(self, source: Source, number: int, rng: random.Random) -> list[SentenceClaim]:
        statements = self.knowledge.false_key_facts(source.person, number, rng)
        return [SentenceClaim(statement.text, "NS") for statement in statements]
