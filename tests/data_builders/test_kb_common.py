"""Facts that many share: every kind is drawn in its split, and they hold of their person."""

from __future__ import annotations

import random

from data_builders.kb.kb_pairs.common_facts import Common
from data_builders.kb.kb_pairs.world import SPLIT_PROPERTIES, World
from data_builders.kb.language.wording import bank
from data_builders.splits import SPLITS


def test_every_template_bank_of_common_facts_is_used(people):
    rng = random.Random(0)
    for split in SPLITS:
        world = World(people, people, split)
        common = Common(world)
        drawn = {common.draw(rng, rng.choice(world.people)).key for _ in range(400)}
        assert drawn == set(bank("common")[split])
        assert {key.partition(".")[0] for key in drawn} <= set(SPLIT_PROPERTIES[split])


def test_common_facts_hold_of_the_person(curie, twain):
    world = World([curie, twain], [curie, twain], "train")
    facts = {(f.key, f.value) for f in Common(world).all_of(curie)}
    assert ("P569.half", "the second half of the 19th century") in facts
    assert ("P27.continent", "Europe") in facts
    assert ("P106.several", "") in facts
    assert ("P106.area", "science") in facts
    assert ("P106.either", "chemist / novelist") in facts
