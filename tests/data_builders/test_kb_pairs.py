"""kb_pairs as a dataset: its files, sizes, splits and pages."""

from __future__ import annotations

import json
import random
import re

import pytest

from data_builders.kb.facts import Person
from data_builders.kb.graph import Value
from data_builders.kb.kb_pairs.kb_pairs import KbPairs
from data_builders.kb.kb_pairs.person_texts import generations, padded, page, passages, profiles
from data_builders.kb.kb_pairs.world import SPLIT_PROPERTIES, World, split_people
from data_builders.kb.language.wording import bank
from data_builders.splits import SPLITS
from records import Document, Passage, read_records


def test_same_seed_gives_the_same_bytes(build, dataset, tmp_path):
    repeated = build(tmp_path / "again")
    names = sorted(path.name for path in dataset.iterdir())
    assert names == sorted(path.name for path in repeated.iterdir())
    assert len(names) == 22
    for name in names:
        assert (dataset / name).read_bytes() == (repeated / name).read_bytes(), name


def test_texts_of_everybody_are_made_as_they_are_written(people):
    """Of many people they would not all fit into memory."""
    worlds = [World(people[:20], people, split) for split in SPLITS]
    made = [generations(worlds[0], 1, 0.3, 3), profiles(worlds, 3), passages(people, 3)]
    for rows in [*made, padded(worlds, profiles(worlds, 3), 3)]:
        assert iter(rows) is rows
        assert next(rows).person


def test_manifest_and_card(dataset):
    manifest = json.loads((dataset / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["files"]) == 20
    assert set(manifest["files"]) == set(KbPairs(dataset).writes())
    assert manifest["seed"] == 3
    assert {"counts", "population", "P106"} <= {entry["family"] for entry in manifest["requests"]}
    assert (dataset / "README.md").read_text(encoding="utf-8").startswith("---\n")


def test_long_biographies_are_half_false_and_of_people_that_nobody_trained_on(dataset, rows):
    profiles = read_records(dataset / "profiles.jsonl", Document)
    trained = {
        row.person for (_, split), entry in rows.items() if split == "train" for row in entry
    }
    assert len(profiles) >= 10
    for document in profiles:
        labels = [claim.label for claim in document.claims]
        assert len(labels) >= 10
        assert 0.4 <= labels.count("NS") / len(labels) <= 0.6
        assert document.text == " ".join(claim.text for claim in document.claims)
        assert len({claim.text for claim in document.claims}) == len(labels)
        assert document.person not in trained
        assert document.kind == "normal"
        assert document.bin is not None


def test_padded_texts_hide_falsehoods_behind_one_repeated_fact(dataset):
    profiles = {d.person: d for d in read_records(dataset / "profiles.jsonl", Document)}
    texts = read_records(dataset / "padded.jsonl", Document)
    assert len(texts) >= 10
    for text in texts:
        labels = [claim.label for claim in text.claims]
        hidden = labels.index("S")
        assert 1 <= hidden <= 3
        assert set(labels[hidden:]) == {"S"}
        assert len(labels) >= hidden + 10
        names = {claim.text for claim in profiles[text.person].claims if claim.label == "NS"}
        assert {claim.text for claim in text.claims[:hidden]} <= names
        assert all(text.topic.split()[-1] in claim.text for claim in text.claims)
        assert (text.kind, text.bin) == ("repetitive", profiles[text.person].bin)


def test_sizes_are_nearly_reached(rows, small):
    for kind, sizes in small.items():
        for split, size in zip(SPLITS, sizes, strict=True):
            assert 0.85 * size <= len(rows[kind, split]) <= size + 15, (kind, split)


def test_people_and_namesakes_stay_in_one_split(rows, people):
    names = {person.iri: person.name.casefold() for person in people}
    by_name = {
        split: {names[r.person] for (_, s), entry in rows.items() if s == split for r in entry}
        for split in SPLITS
    }
    assert all(by_name.values())
    assert not by_name["train"] & by_name["dev"]
    assert not by_name["train"] & by_name["test"]
    assert not by_name["dev"] & by_name["test"]


def test_split_people_keeps_shares_and_everyone(people):
    members = split_people(people, (8, 1, 1), 0)
    assert sorted(p.iri for value in members.values() for p in value) == [p.iri for p in people]
    assert len(members["train"]) == pytest.approx(0.8 * len(people), abs=8)


def test_splits_share_no_property(rows):
    custom = [set(SPLIT_PROPERTIES[split]) for split in SPLITS]
    assert not custom[0] & custom[1] | custom[0] & custom[2] | custom[1] & custom[2]
    for split in SPLITS:
        templates = {name.partition(".")[0] for name in bank("facts")[split]}
        assert templates == set(SPLIT_PROPERTIES[split])
        counted = [r for r in rows["unli", split] if r.source.startswith("kb/share")]
        names = {name.partition("=")[0].partition(".")[0] for r in counted for name in [r.asked]}
        assert names <= templates
        assert names


def test_every_person_has_a_page_with_their_facts(dataset, people):
    pages = {p.person: p for p in read_records(dataset / "passages.jsonl", Passage)}
    assert len({p.id for p in pages.values()}) == len(pages) == len(people)
    for person in people:
        text = pages[person.iri].text
        assert pages[person.iri].title == person.title
        assert person.name in text
        for prop in ("P106", "P569", "P20", "P166", "P69"):
            for value in person.facts.get(prop, ()):
                assert value.label.removeprefix("The ") in text
        assert not re.search(r" on \d+\b(?! [A-Z])", text)  # of a date, the year alone


def test_a_page_without_occupation_still_names_its_person():
    facts = {"P19": (Value("Warsaw", "e:warsaw"),)}
    bare = Person("e:b", "Ann Bare", "Ann Bare", (), "", facts, None, "D", 0)
    for seed in range(5):
        assert "Ann Bare" in page(bare, random.Random(seed))
