"""Attacks whose meaning is decided outside of a sentence, and wrong relations of a page's words."""

import random
from collections import Counter
from typing import get_args

import pytest

from components.english import content_stems
from data_builders.written.attacks.attack_gold import attack_gold
from data_builders.written.attacks.discourse import Framed, Hidden, with_pronoun
from data_builders.written.attacks.frames import DiscourseForm, HiddenForm, frame_bank, frames
from data_builders.written.attacks.judge import Falsified
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.framed_pairs import FramedPairs
from data_builders.written.leads.false_values import Article
from data_builders.written.leads.lead_statements import LeadStatement
from data_builders.written.leads.wrong_relations import wrong_relations
from records import Claim, Document, Gold, Passage, RelationPair, read_records, write_jsonl

PAGE = Passage(
    id="p",
    title="Ann Lee",
    text="Ann Lee: Danish poet (1901–1980). Ann Lee was a Danish poet. She won a prize in 1950.",
)
STATEMENTS = [
    LeadStatement("Ann Lee was born in 1901.", 0, "born", "1901"),
    LeadStatement("Ann Lee died in 1980.", 0, "died", "1980"),
    LeadStatement("Ann Lee was Danish.", 0, "nationality", "Danish"),
    LeadStatement("Ann Lee was a poet.", 0, "occupation", "poet"),
]
ARTICLE = Article(PAGE, "People", STATEMENTS)


def source() -> Source:
    claims = []
    for number, statement in enumerate(STATEMENTS):
        relations = list(wrong_relations(random.Random(0), ARTICLE, statement))
        false = [r._asdict() | {"changed": "relation"} for r in relations]
        fields = {"false": false, "reworded": [], "rests_on": [statement.rule]}
        claims.append(Claim(id=f"c{number}", text=statement.text, label="S", **fields))
    gold = Gold(precision=1, recall=1, f1=1, k=4, source="construction")
    text = " ".join(statement.text for statement in STATEMENTS)
    return Source("s", Document(id="s", topic="Ann Lee", text=text, claims=claims, gold=gold))


def attacked(attack, seed=1):
    world = World([source()], [PAGE])
    result = attack.attack(source(), world, random.Random(seed))
    return result, attack_gold(source(), result, world, False)


def test_wrong_relations_use_the_years_of_the_page_and_never_the_right_ones():
    texts = {r.text for r in wrong_relations(random.Random(0), ARTICLE, STATEMENTS[0])}
    assert texts == {"Ann Lee was born in 1950.", "Ann Lee was born in 1980."}
    relations = list(wrong_relations(random.Random(0), ARTICLE, STATEMENTS[3]))
    texts = {relation.text: relation.bank for relation in relations}
    assert texts["Ann Lee was a poet and was born in 1980."] == "seen"
    assert texts["Even before 1901, Ann Lee was a poet."] == "unseen"
    twins = {relation.twin for relation in relations if relation.bank == "seen"}
    assert "Ann Lee was a poet and was born in 1901." in twins
    assert not twins & texts.keys()
    assert len(texts) == len(frames("relation", "seen")) + len(frames("relation", "unseen"))


@pytest.mark.parametrize("bank", ["seen", "unseen"])
@pytest.mark.parametrize("form", get_args(DiscourseForm))
def test_framed_text_has_gold_zero_and_states_the_true_words(form, bank):
    result, gold = attacked(Framed(form, bank))
    assert gold.f1 == 0
    assert len(result.claims) == 4
    assert {"poet", "Danish"} <= set(result.text.replace(".", " ").replace("?", " ").split())
    assert "{" not in result.text


@pytest.mark.parametrize("bank", ["seen", "unseen"])
@pytest.mark.parametrize("form", get_args(HiddenForm))
def test_gold_of_hidden_falsehoods_counts_what_a_reader_finds(form, bank):
    result, gold = attacked(Hidden(form, bank))
    labels = [claim.label for claim in result.claims]
    assert labels.count("S") == 4
    assert labels.count("NS") == 12
    assert gold.precision == 0.25
    assert gold.recall == 1
    assert gold.f1 == 0.4
    assert "{" not in result.text


@pytest.mark.parametrize("bank", ["seen", "unseen"])
def test_every_falsehood_of_a_table_is_in_the_table(bank):
    for seed in range(10):
        result, _ = attacked(Hidden("table", bank), seed)
        lines = result.text.partition("\n\n")[2].splitlines()
        false = sum(claim.label == "NS" for claim in result.claims)
        # At most two lines are not entries: a header, or the tags around the table.
        assert false <= len(lines) <= false + 2


def test_misrelated_text_takes_only_frames_of_its_bank():
    result, gold = attacked(Falsified("relation", "unseen"))
    assert gold.f1 == 0
    unseen = {r.text for s in STATEMENTS for r in wrong_relations(random.Random(0), ARTICLE, s)
              if r.bank == "unseen"}  # fmt: skip
    assert {claim.text for claim in result.claims} <= unseen


def test_pronoun_replaces_the_name_and_its_possessive():
    assert with_pronoun("Ann Lee's year of birth was 1901.", "Ann Lee", "He") == (
        "His year of birth was 1901."
    )
    assert with_pronoun("Ann Lee was a poet.", "Ann Lee", "She") == "She was a poet."


def test_unseen_frames_share_no_sentence_with_seen_ones_and_are_ten_or_more():
    bank = frame_bank()
    forms = bank["discourse"].values()
    trained = ("seen", "more_seen", "twin", "more_twin")
    unseen = [line for form in forms for line in form["unseen"].splitlines()]
    seen = [line for form in forms for name in trained for line in form[name].splitlines()]
    assert len(unseen) >= 10
    for line in unseen:
        assert all(content_stems(line) != content_stems(other) for other in seen)
    hidden = bank["hidden"].values()
    assert sum(len(form["unseen"]) for form in hidden) >= 10
    assert len(frames("relation", "unseen")) >= 10


def test_framed_pairs_have_a_twin_for_each_frame_and_no_unseen_one(tmp_path):
    names = ("Ann Lee", "Bo Hill", "Cy Orr", "Di Wu", "Ed Fox", "Flo Ray")
    rows = [
        {"premise": "A page.", "hypothesis": f"{name} was {role}.", "label": label, "group": name}
        for name in names
        for role, label in (("a poet", "entailment"), ("a spy", "neutral"), ("born", "entailment"))
    ]
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    FramedPairs(tmp_path / "out", pairs=[str(tmp_path / "pairs.jsonl")], texts=9).build()
    pairs = read_records(tmp_path / "out/relation_train.jsonl", RelationPair)
    sources = Counter((pair.source, pair.label) for pair in pairs)
    for form in get_args(DiscourseForm):
        seen = sources[f"framed/{form} seen", "not_entailment"]
        assert 0 < seen == sources[f"framed/{form} twin", "entailment"]
    assert sum(sources.values()) == len(pairs)
    assert {pair.hypothesis.removeprefix(f"{pair.group} ") for pair in pairs} == {
        "was a poet.",
        "was born.",
    }
