"""kb_pairs: built over the real server from the embedded snapshot, then checked against facts."""

from __future__ import annotations

import json
import random
import re

import pytest

from components.words import is_subsequence, keep_targets
from data_builders.facts import Person, Value, load_people
from data_builders.kb_pairs import KbPairs
from data_builders.kb_pairs.pages import page
from data_builders.kb_pairs.splits import FUNCTIONAL, SPLIT_PROPERTIES, SPLITS, split_people
from data_builders.kb_pairs.statements import World, facts_of, implies, ordinal
from data_builders.kb_pairs.wording import Voice, bank, speak, unlisted, with_article
from data_builders.server import open_client
from records import (
    Generation,
    LssExample,
    Passage,
    RelationPair,
    UnliPair,
    UserError,
    read_records,
)

KINDS = {"unli": UnliPair, "relation": RelationPair, "lss": LssExample, "generations": Generation}
SMALL = {"unli": (400, 120, 120), "relation": (500, 150, 150), "lss": (150, 50, 50)}


def build(folder):
    return KbPairs(folder, seed=3, generations_per_person=1, **SMALL).build().parent


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return build(tmp_path_factory.mktemp("kb_pairs"))


@pytest.fixture(scope="module")
def rows(dataset):
    return {
        (kind, split): read_records(dataset / f"{kind}_{split}.jsonl", record)
        for kind, record in KINDS.items()
        for split in SPLITS
    }


@pytest.fixture(scope="module")
def people():
    with open_client() as client:
        return load_people(client)


@pytest.fixture
def curie():
    facts = {
        "P106": (Value("chemist", "e:chemist"), Value("physicist", "e:physicist")),
        "P27": (Value("Poland", "e:poland"),),
        "P569": (Value("7 November 1867", None, 1867),),
        "P19": (Value("Warsaw", "e:warsaw"),),
    }
    return Person("e:curie", "Marie Curie", "Marie Curie", (), "female", facts, "Europe", "C", 9000)


@pytest.fixture
def twain():
    facts = {
        "P106": (Value("novelist", "e:novelist"), Value("chemist", "e:chemist")),
        "P27": (Value("United States", "e:us"),),
        "P569": (Value("1835", None, 1835),),
        "P19": (Value("Florida", "e:florida"),),
    }
    return Person("e:twain", "Mark Twain", "Mark Twain", (), "male", facts, None, "B", 9000)


def test_same_seed_gives_the_same_bytes(dataset, tmp_path):
    again = build(tmp_path / "again")
    names = sorted(path.name for path in dataset.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    assert len(names) == 15
    for name in names:
        assert (dataset / name).read_bytes() == (again / name).read_bytes(), name


def test_manifest_and_card(dataset):
    manifest = json.loads((dataset / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["files"]) == 13
    assert manifest["seed"] == 3
    assert {"counts", "population", "P106"} <= {entry["family"] for entry in manifest["requests"]}
    assert (dataset / "README.md").read_text(encoding="utf-8").startswith("---\n")


def test_sizes_are_nearly_reached(rows):
    for kind, sizes in SMALL.items():
        for split, size in zip(SPLITS, sizes, strict=True):
            assert 0.85 * size <= len(rows[kind, split]) <= size + 15, (kind, split)


def test_people_and_namesakes_stay_in_one_split(rows, people):
    names = {person.iri: person.name.casefold() for person in people}
    told = {
        split: {names[r.person] for (_, s), found in rows.items() if s == split for r in found}
        for split in SPLITS
    }
    assert all(told.values())
    assert not told["train"] & told["dev"]
    assert not told["train"] & told["test"]
    assert not told["dev"] & told["test"]


def test_split_people_keeps_shares_and_everyone(people):
    members = split_people(people, (8, 1, 1), 0)
    assert sorted(p.iri for found in members.values() for p in found) == [p.iri for p in people]
    assert len(members["train"]) == pytest.approx(0.8 * len(people), abs=8)


def test_split_people_refuses_what_cannot_be_split(people):
    with pytest.raises(UserError, match="shares"):
        split_people(people, (8, 0, 1), 0)
    with pytest.raises(UserError, match="too few"):
        split_people(people[:4], (8, 1, 1), 0)


def _lines(value):
    if isinstance(value, dict):
        return [line for item in value.values() for line in _lines(item)]
    return list(value)


def _plain(template):
    """A template without its slots and in one tense: what a reader would call the wording."""
    text = re.sub(r"\[[^|\]]*\|([^\]]*)\]", r"\1", template)
    text = re.sub(r"\{was!?\}", "was", text).replace("{has}", "had")
    return re.sub(r"\{(?!X|he\}|his\}|him\}|s\})[^}]*\}", "*", text).lower()


@pytest.fixture(scope="module")
def wordings():
    """Split to all its wordings; ``pages`` beside the splits."""
    files = ("facts", "compounds", "clauses", "bleached", "embellishments")
    found = {
        split: {_plain(line) for name in files for line in _lines(bank(name)[split])}
        | {_plain(text) for entry in unlisted(split) for text in entry.paraphrases}
        for split in SPLITS
    }
    return found | {"pages": {_plain(line) for line in _lines(bank("pages"))}}


def test_splits_share_no_wording(wordings):
    names = sorted(wordings)
    for index, left in enumerate(names):
        for right in names[index + 1 :]:
            assert not wordings[left] & wordings[right], (left, right)


def test_splits_share_no_property(rows):
    own = [set(SPLIT_PROPERTIES[split]) for split in SPLITS]
    assert not own[0] & own[1] | own[0] & own[2] | own[1] & own[2]
    for split in SPLITS:
        templates = {name.partition(".")[0] for name in bank("facts")[split]}
        assert templates == set(SPLIT_PROPERTIES[split])
        counted = [r for r in rows["unli", split] if r.source.startswith("kb/share")]
        asked = {name.partition("=")[0].partition(".")[0] for r in counted for name in [r.asked]}
        assert asked <= templates
        assert asked


def test_evaluation_text_repeats_no_training_bleached_sentence(rows):
    """Also in the texts themselves, whoever they are about."""

    def bleached_texts(split):
        return {
            s.text.replace(r.topic, "X").replace(r.topic.split()[-1], "X").lower()
            for r in rows["generations", split]
            if r.kind == "uninformative"
            for s in r.sentences
        }

    assert not bleached_texts("train") & (bleached_texts("dev") | bleached_texts("test"))


def test_the_bank_is_as_wide_as_promised():
    facts = bank("facts")
    for prop in SPLIT_PROPERTIES["train"]:
        lines = [t for key, ts in facts["train"].items() if key.startswith(prop) for t in ts]
        assert len(lines) >= 25, prop
        assert len(set(lines)) == len(lines), prop
    for split in ("dev", "test"):
        assert all(len(templates) >= 5 for templates in facts[split].values())
    assert [
        len(bank("bleached")[split]) >= n for split, n in zip(SPLITS, (200, 40, 40), strict=True)
    ]
    assert len(bank("bleached")["train"]) >= 200
    assert min(len(bank("bleached")[split]) for split in ("dev", "test")) >= 40
    assert len(unlisted("train")) >= 80
    assert len(_lines(bank("embellishments")["train"])) >= 40
    assert all(0.02 <= entry.prior <= 0.1 for split in SPLITS for entry in unlisted(split))


def test_every_template_can_be_said(rows):
    """No slot is left open anywhere."""
    for (kind, split), found in rows.items():
        for row in found:
            for field in ("premise", "hypothesis", "claim", "reference", "text"):
                said = getattr(row, field, None) or ""
                assert not set(said) & set("{}[]|"), (kind, split, said)


def test_unli_shares_are_the_counts_of_the_knowledge_base(rows, people):
    """Counted again in Python from the loaded people, independently of the COUNT queries."""
    for split in SPLITS:
        owned = {
            person.iri: {str(f) for prop in SPLIT_PROPERTIES[split] for f in facts_of(person, prop)}
            for person in people
        }
        counted = [r for r in rows["unli", split] if r.source.startswith("kb/share")]
        assert len(counted) > 10
        for row in counted:
            given = [own for own in owned.values() if own.issuperset(row.given)]
            both = [own for own in given if row.asked in own]
            assert row.counts == [len(both), len(given)], row
            assert row.label == pytest.approx(max(0.002, len(both) / len(given)), abs=1e-4)
            assert len(given) >= 8


def test_unli_fixed_values_are_marked(rows):
    values = {"bleached_to_bleached": 0.97, "fact_to_bleached": 0.97, "paraphrase": 0.97}
    values |= {"embellished": 0.9, "contradicted": 0.02}
    found = rows["unli", "train"]
    for row in found:
        origin, _, kind = row.source.partition("/")
        if kind in values:
            assert row.label == values[kind]
        assert (origin == "prior") == (kind == "unlisted")
        assert ("counts" in row.model_extra) == kind.startswith("share")
    assert {r.source.partition("/")[2] for r in found} >= {*values, "unlisted", "share_given"}


def test_relation_classes_and_kinds_are_balanced(rows):
    for split in SPLITS:
        labels = [r.label for r in rows["relation", split]]
        assert 0.3 < labels.count("entailment") / len(labels) < 0.55
        assert 0.3 < labels.count("neutral") / len(labels) < 0.55
        assert labels.count("contradiction") / len(labels) > 0.1
    kinds = {r.source for r in rows["relation", "train"]}
    assert {"kb/paraphrase", "kb/bleached_premise", "kb/unlisted", "kb/embellished"} <= kinds


def test_a_kind_has_one_label(rows):
    for split in SPLITS:
        labels = {}
        for row in rows["relation", split]:
            assert labels.setdefault(row.source, row.label) == row.label
        contradicting = {source for source, label in labels.items() if label == "contradiction"}
        assert contradicting <= {"kb/other_value", "kb/page_contradicted"}


def test_no_pair_has_two_labels(rows):
    labels = {}
    for row in rows["relation", "train"]:
        key = (row.premise, row.hypothesis)
        assert labels.setdefault(key, row.label) == row.label


def test_only_functional_properties_contradict(rows, people):
    """One of the contradicting facts is true of the person and the other is not."""
    by_iri = {person.iri: person for person in people}
    for split in SPLITS:
        found = [r for r in rows["relation", split] if r.label == "contradiction"]
        assert found
        for row in found:
            prop = row.facts[-1].partition("=")[0].partition(".")[0]
            assert prop in FUNCTIONAL
            true = {str(fact) for fact in facts_of(by_iri[row.person], prop)}
            about = [f for f in row.facts if f.startswith(prop)]
            assert {f in true for f in about} == {True, False}


def test_bleached_claims_entail_no_fact(rows):
    """The pairs that Core's informativeness needs: bleached premise, fact as hypothesis."""
    found = [r for r in rows["relation", "train"] if r.source == "kb/bleached_premise"]
    assert len(found) > 30
    assert all(len(r.facts) == 1 and r.label == "neutral" for r in found)


def test_other_value_is_false_and_of_the_same_kind(curie, twain):
    world = World([curie, twain], [curie, twain], "train")
    rng = random.Random(0)
    for fact in world.facts(curie):
        other = world.other_value(rng, curie, fact)
        if fact.aspect in ("day", "century"):  # the other was born in the same century
            assert other is None
            continue
        assert other.key == fact.key
        assert other not in world.facts(curie)
        assert other.functional == (fact.prop in FUNCTIONAL)
        if fact.prop == "P106":
            assert other.value == "novelist"  # never the shared "chemist"


def test_two_birth_dates_never_contradict(curie, twain):
    two = (Value("1866", None, 1866), Value("1867", None, 1867))
    unsure = Person("e:x", "X Y", "X Y", (), "male", curie.facts | {"P569": two}, None, "D", 0)
    world = World([unsure], [unsure, twain], "train")
    births = world.known["e:x"]["P569"]
    assert births
    assert all(world.other_value(random.Random(0), unsure, fact) is None for fact in births)


def test_dates_entail_coarser_dates_only(curie):
    day, year, decade, century = facts_of(curie, "P569")
    assert [f.value for f in (day, year, decade, century)] == [
        "7 November 1867",
        "1867",
        "1860s",
        "19th",
    ]
    assert implies(day, century)
    assert implies(year, decade)
    assert not implies(century, year)
    assert [ordinal(n) for n in (1, 2, 3, 11, 21, 20)] == [
        "1st",
        "2nd",
        "3rd",
        "11th",
        "21st",
        "20th",
    ]


def test_narrow_occupations_entail_broad_ones(twain):
    novelist, chemist = sorted(facts_of(twain, "P106"), key=lambda f: f.value, reverse=True)
    assert [f.value for f in novelist.coarser] == ["writer"]
    assert not implies(novelist, chemist)


def test_lss_is_a_subsequence_and_aligns(rows):
    empty = full = 0
    for split in SPLITS:
        for row in rows["lss", split]:
            lss = row.annotations[0].lss
            assert is_subsequence(lss, row.claim)
            assert keep_targets(row)[2] == 0
            empty += not lss
            full += lss == row.claim
    assert empty > 10
    assert full > 10


def test_lss_rating_follows_what_is_kept(rows):
    for row in rows["lss", "train"]:
        annotation = row.annotations[0]
        assert (annotation.rating == 1) == (annotation.lss == "")
        assert (annotation.rating == 5) == (annotation.lss == row.claim)


def test_generations_keep_each_sentence_and_its_truth(rows):
    for split in SPLITS:
        found = rows["generations", split]
        assert {r.kind for r in found} == {"normal", "uninformative", "repetitive"}
        for row in found:
            assert row.text == " ".join(s.text for s in row.sentences)
            if row.kind == "uninformative":
                assert 8 <= len(row.sentences) <= 20
            if row.kind != "normal":
                assert all(s.true for s in row.sentences)
                assert len({s.text for s in row.sentences}) == len(row.sentences)
    normal = [
        s.true for r in rows["generations", "train"] if r.kind == "normal" for s in r.sentences
    ]
    assert 0.2 < normal.count(False) / len(normal) < 0.4


def test_truth_of_normal_sentences_is_the_knowledge_base_s(rows, people):
    """A birth year or place that a sentence names is the person's exactly if it is marked true."""
    by_iri = {person.iri: person for person in people}
    checked = 0
    for row in rows["generations", "train"]:
        dates = by_iri[row.person].facts.get("P569", ())
        if row.kind != "normal" or len(dates) != 1:
            continue
        for sentence in row.sentences:
            years = re.findall(r"\b(1[5-9]\d\d)\b(?!s)", sentence.text)
            if len(years) == 1 and not re.search(r"\d{1,2} \w+ \d{4}|\w+ \d+, \d", sentence.text):
                checked += 1
                assert (int(years[0]) == dates[0].year) == sentence.true, sentence
    assert checked > 20


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


def test_a_page_without_occupation_still_names_its_person(curie):
    bare = Person("e:b", "Ann Bare", "Ann Bare", (), "", {"P19": curie.facts["P19"]}, None, "D", 0)
    for seed in range(5):
        assert "Ann Bare" in page(bare, random.Random(seed))


@pytest.mark.parametrize(
    ("template", "voice", "expected"),
    [
        ("{X} {was} {a v}.", Voice("full", False), "Marie Curie is an actor."),
        ("{X} {was} {a v}.", Voice("surname", True), "Curie was an actor."),
        ("{X} {was} {a v}.", Voice("pronoun", True), "she was an actor."),
        ("{X} {was} {a v}.", Voice("they", False), "they were an actor."),
        ("{X's} job [is|was] {v}.", Voice("they", False), "their job was actor."),
        (
            "The job of {X} [is|was] {v}.",
            Voice("pronoun", False),
            "The job of Marie Curie is actor.",
        ),
        ("{X}, {a v}, [works|worked].", Voice("pronoun", True), "Marie Curie, an actor, worked."),
        (
            "As {a v}, {X} gave {Xm} {his} all.",
            Voice("pronoun"),
            "As an actor, she gave her her all.",
        ),
    ],
)
def test_templates_speak_in_every_voice(curie, template, voice, expected):
    assert speak(template, curie, voice, {"v": "actor"}) == expected


def test_articles():
    words = ["actor", "painter", "university teacher", "honest man", "American", "European"]
    assert [with_article(word).split()[0] for word in words] == ["an", "a", "a", "an", "an", "a"]


def test_wrong_options_are_the_user_s_mistake(tmp_path):
    with pytest.raises(UserError, match="corrupted"):
        KbPairs(tmp_path, corrupted=1.5)
    with pytest.raises(UserError, match="at least 1"):
        KbPairs(tmp_path, lss=(0, 1, 1))
    with pytest.raises(UserError, match="no http"):
        KbPairs(tmp_path, endpoint="nonsense").build()
