"""``kb_multihop``: every claim stands in the facts of its document, or does not."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict

import pytest

from data_builders.kb.kb_multihop import KbMultihop, Scenes
from data_builders.kb.kb_pairs.world import World, split_people
from data_builders.kb.language.statements import values_of
from data_builders.kb.language.wording import bank
from data_builders.splits import SPLITS
from records import RelationPair, read_records


@pytest.fixture(scope="module")
def worlds(people):
    members = split_people(people, (8, 1, 1), 0)
    return {split: World(members[split], people, split) for split in SPLITS}


@pytest.mark.parametrize("split", SPLITS)
def test_the_facts_of_a_scene_make_the_labels(worlds, split):
    world = worlds[split]
    scenes = Scenes(world, random.Random(1), (1, 3))
    drawn = [scene for scene in (scenes.draw() for _ in range(60)) if scene]
    assert drawn
    removed = 0
    for scene in drawn:
        a, c, b = scene.people
        value, same, other = scene.shared
        assert value == same != other
        assert value.key == other.key
        assert value in world.facts(a)
        assert value in world.facts(c)
        assert other in world.facts(b)
        assert value not in world.facts(b)
        assert other not in world.facts(a)
        if value.functional:
            assert {len(values_of(person, value.prop)) for person in scene.people} == {1}
        for place, facts in enumerate(scene.extra_facts):
            assert all(fact in world.facts(scene.people[place]) for fact in facts)
            assert all(fact.prop != value.prop for fact in facts)
        rows = {kind: rest for kind, *rest in scenes.rows(scene)}
        named = {kind: [p.name for p in scene.people if p.name in row[1]]
                 for kind, row in rows.items()}  # fmt: skip
        assert sorted(named["hop2"]) == sorted([a.name, c.name])
        assert sorted(named["other"]) == sorted([a.name, b.name])
        for kind, (premise, claim, label) in rows.items():
            entailed = kind in {"hop2", "hop3", "bound"}
            assert (label == "entailment") is entailed
            # Whoever a claim names has a paragraph.
            assert all(name in premise for name in named[kind])
            if kind in {"hop2", "other"}:
                assert value.value not in claim, "the value that ties them is not told"
        contradicted = "contradiction" if value.functional else "neutral"
        assert rows["other"][2] == rows["bound_other"][2] == contradicted
        if "removed" in rows:
            assert rows["removed"][2] == "neutral"
            # A line a person; what C has in common with A is not in C's.
            line = rows["removed"][0].split("\n")[scene.order.index(1)]
            if not any(value.value in str(fact.slots) for fact in scene.extra_facts[1]):
                removed += 1
                assert value.value not in line
    assert removed


def test_every_property_of_a_split_can_be_shared():
    lines = bank("multihop")
    assert set(lines) == set(SPLITS)
    for split in SPLITS:
        for key, templates in lines[split].items():
            assert key in bank("facts")[split]
            assert all("{Y}" in line and "{X" in line for line in templates)
            assert any(line.startswith("{X} ") and "{X} and" not in line for line in templates), key


def test_the_dataset(tmp_path):
    for name in ("one", "two"):
        KbMultihop(tmp_path / name, documents=(80, 10, 10), seed=2).build()
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["README.md", "manifest.json", *(f"relation_{s}.jsonl" for s in sorted(SPLITS))]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    rows = read_records(tmp_path / "one/relation_train.jsonl", RelationPair)
    even = json.loads((tmp_path / "one/manifest.json").read_text())["config"]["overlap_auroc"]
    assert 0.42 < even["relation_train.jsonl"] < 0.58, "word overlap tells nothing"
    assert 0.35 < sum(row.label == "entailment" for row in rows) / len(rows) < 0.55
    documents = defaultdict(Counter)
    for row in rows:
        documents[row.premise][row.label == "entailment"] += 1
    both = [value for value in documents.values() if len(value) == 2]
    assert len(both) >= 75, "a document tells nothing of the label"
    # Bytes that are the same on every machine name no folder.
    assert KbMultihop(tmp_path, endpoint="/home/ann/my.ttl").config()["endpoint"] == "my.ttl"
