"""Labels that rules give to texts, judged by hand: a table a maker, run through the maker."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from components.words import join_words
from data_builders.annotated.lss.votes import merge_gold, vote
from data_builders.kb.bleached import (
    BleachedClaim,
    _in_words,
    choose_claims,
    deduplicate,
    from_answers,
)
from data_builders.published.claim_pairs import RULES as PAIR_RULES
from data_builders.written.corruption.corrupters import NOTHING_TO_CHANGE, ToChange
from data_builders.written.corruption.swap import ValueSwap
from data_builders.written.distant_lss.distant_lss import example_of
from data_builders.written.distant_lss.transform import RULES as CHANGES
from data_builders.written.distant_lss.transform import Pool, Setting, entities
from eval.models.chat import Answer
from records import Annotation, Claim, Document, LssExample

# claim_pairs: which claims follow from their sentence, and which two say different things.


def text_with(text: str, *claims: str | tuple[str, str], topic: str = "Ann Lee") -> Document:
    """A document; a claim with a source names its sentence."""
    made = [
        Claim(id=f"c{i}", text=c[0] if isinstance(c, tuple) else c,
              source=c[1] if isinstance(c, tuple) else None)
        for i, c in enumerate(claims)
    ]  # fmt: skip
    return Document(id="d", topic=topic, text=text, claims=made)


def pairs(rule: str, document: Document, seed: int = 0) -> list[tuple[str, str]]:
    return list(PAIR_RULES[f"distant/{rule}"][0](document, "train", random.Random(seed)))


BRUSH = "She won the Silver Brush in 1901."
TEXT = f"Ann Lee was a painter from Norway. {BRUSH}"


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Ann Lee won the Silver Brush in 1901.", BRUSH),
        ("Ann Lee was from Norway.", "Ann Lee was a painter from Norway."),
        # Four of five words are there, and so are no longer three of four.
        ("She won the golden Silver Brush in 1901.", BRUSH),
        ("She won the golden Brush in 1901.", None),
        # The words are in two sentences, in neither of them enough.
        ("A painter won the Brush.", None),
        # Of nothing but the name nothing follows.
        ("She is Ann Lee.", None),
        (("She won.", "Ann Lee won in Oslo."), "Ann Lee won in Oslo."),
        (("She lost.", "Ann Lee won in Oslo."), None),
    ],
)
def test_a_claim_follows_from_the_sentence_that_holds_its_words(claim, sentence):
    text = claim[0] if isinstance(claim, tuple) else claim
    assert pairs("from_sentence", text_with(TEXT, claim)) == (
        [] if sentence is None else [(sentence, text)]
    )


@pytest.mark.parametrize(
    ("left", "right", "apart"),
    [
        ("Ann Lee painted ships.", "She taught in Oslo.", True),
        # One of two words is shared: half is still apart.
        ("Ann Lee painted ships.", "Ann Lee sold ships.", True),
        ("Ann Lee painted large ships.", "Ann Lee painted ships.", False),
        ("Ann Lee painted large old ships.", "She painted large ships.", False),
        ("Ann Lee is.", "She taught in Oslo.", False),  # says nothing that could differ
    ],
)
def test_two_claims_of_one_text_are_neutral_if_they_share_few_words(left, right, apart):
    result = {
        p for seed in range(9) for p in pairs("of_one_text", text_with(TEXT, left, right), seed)
    }
    assert result == ({(left, right), (right, left)} if apart else set())


@pytest.mark.parametrize(
    ("claim", "to_bleached", "from_bleached"),
    [
        ("Ann Lee won the Silver Brush.", True, True),
        ("She won the Silver Brush.", True, True),
        ("The Silver Brush was won.", False, True),  # not said of the person
        # one word is little more than the name
        ("Ann Lee is.", True, False),
    ],
)
def test_pairs_of_a_claim_with_bleached_statements(claim, to_bleached, from_bleached):
    document = text_with(TEXT, claim)
    assert [p[0] for p in pairs("to_bleached", document)] == [claim] * to_bleached
    assert [p[1] for p in pairs("from_bleached", document)] == [claim] * from_bleached


# corruption: what may stand in the place of a value, and what may not.


@pytest.mark.parametrize(
    "claim",
    [
        "Cy Coe acted in Rush Hour 2.",  # Rush Hour 3 is a film as well
        "Cy Coe paid $12.5.",
    ],
)
def test_claim_without_a_value_is_unchanged(leads_folder, claim):
    changed = ValueSwap(str(leads_folder)).change(ToChange("k", "Cy Coe", claim), random.Random(0))
    assert changed.reason == NOTHING_TO_CHANGE


# bleached: which statements may be bleached claims, and how a fact is told.


def test_a_models_statement_has_the_share_of_the_answers_that_give_it():
    answers = ["- {topic} lives.\n- {topic} eats.", "- {topic} lives.\n- {topic} lives.", "No."]
    claims = from_answers([Answer(text=text) for text in answers], Counter())
    assert {c.text: (c.count, c.of, c.share) for c in claims} == {
        "{topic} lives.": (2, 3, 0.6667),
        "{topic} eats.": (1, 3, 0.3333),
    }


WD = "http://www.wikidata.org/entity/"
LABELS = {
    f"{WD}Q5": "human",
    f"{WD}Q515": "old city",
    f"{WD}P17": "country",
    f"{WD}P50": "author",
    f"{WD}Q35": "Denmark",
}


@pytest.mark.parametrize(
    ("kind", "prop", "value", "text"),
    [
        ("class", "P31", f"{WD}Q5", "{topic} is a human."),
        ("class", "P31", f"{WD}Q515", "{topic} is an old city."),
        ("property", "P17", "", "{topic} lies in some country."),
        ("property", "P50", "", "{topic} has an author."),
        ("property", "P999", "", None),
        ("value", "P17", f"{WD}Q35", "The country of {topic} is Denmark."),
    ],
)
def test_a_fact_of_nearly_all_in_words(kind, prop, value, text):
    assert _in_words(kind, prop, value, LABELS) == text


def test_the_surest_of_equal_statements_and_each_source_in_turn():
    def claim(text, source, share):
        return BleachedClaim(text=text, source=source, share=share, count=1, of=1)

    rows = [
        claim("{topic} lives.", "model", 1.0),
        claim("{topic} sees.", "model", 0.5),
        claim("{topic} is.", "kb/class", 0.9),
        claim("{topic} has.", "kb/class", 1.0),
        claim("{topic} lives.", "kb/value", 0.8),
    ]
    dropped = Counter()
    kept = deduplicate(rows, dropped)
    stated = [(c.text.split()[1], c.source) for c in kept]
    assert stated == [
        ("has.", "kb/class"), ("is.", "kb/class"), ("lives.", "kb/value"), ("sees.", "model"),
    ]  # fmt: skip
    assert dropped == {"duplicate statement": 1}
    assert [c.text.split()[1] for c in choose_claims(kept, 3)] == ["has.", "lives.", "sees."]


# distant_lss: the words that stay true when a sentence is made partly false.

POOL = Pool(
    sentences=["The bridge was built by Tor Lund in 1931."],
    entities={"in": ["Bergen"], "by": ["Tor Lund"]},
)


@pytest.mark.parametrize(
    ("rule", "sentence", "rows"),
    [

        ("pronoun_swap", "It was her.", set()),  # "her" is "him" or "his"
        ("pronoun_swap", "It saw him.", {("It saw her.", "It saw .")}),
        ("pronoun_swap", "It was his home.", {("It was her home.", "It was home.")}),
        ("negation", "It was sold.",
         {("It was not sold.", "It was sold."), ("It was never sold.", "It was sold.")}),
        ("negation", "It had wheels.", set()),  # no auxiliary


        ("negation", "It wasn't sold without it.", set()),
        ("entity_swap", "It was cut by Ann Lee.", {("It was cut by Tor Lund.", "It was cut .")}),
        ("entity_swap", "It fell in Bergen.", set()),  # what is put in must be another

        ("entity_swap", "It fell in May.", set()),
        ("noise_phrase", "It fell.", {("It fell in Bergen.", "It fell .")}),
        ("noise_clause", "The wall fell.",
         {("The wall fell, and the bridge was built by Tor Lund in 1931.", "The wall fell ."),
          ("The bridge was built by Tor Lund in 1931, and the wall fell.", "the wall fell.")}),
        ("noise_clause", "The wall fell in 1931.", set()),  # the same year would be told of both
        ("foreign", "It fell.", {("The bridge was built by Tor Lund in 1931.", "")}),
        ("foreign", "It fell in 1931.", set()),  # 1931 is in both
        ("whole", "It fell.", {("It fell.", "It fell.")}),
    ],
)  # fmt: skip
def test_changed_sentence_has_the_lss_of_its_rule(rule, sentence, rows):
    result = set()
    for seed in range(30):
        setting = Setting(sentence, entities(sentence), POOL, 0.0)
        pieces = CHANGES[rule](sentence, setting, random.Random(seed))
        if pieces is not None:
            made = example_of(pieces, "x")
            result.add((made.claim, made.annotations[0].lss))
    assert result == rows


# lss: several people's subsequences of "Ann Lee won the Brush" and what they decide together.

CLAIM = "Ann Lee won the Brush"
TIE, NONE = "tie", "unaligned"


@pytest.mark.parametrize(
    ("texts", "kept", "decided"),
    [
        (["", ""], "", "unanimous"),
        (["Ann Lee won", "Ann Lee won", "Brush"], "Ann Lee won", "majority"),
        (["Ann Lee", "Lee won", "won Brush"], "Lee won", "majority"),  # nobody wrote it
        (["Ann Lee", "Ann"], None, TIE),
        (["Ann Lee", "Ann Lee", "Ann won", "Ann the"], None, TIE),
        (["Ann Lee", "Ann Lee", "Ann Lee", "Brush"], "Ann Lee", "majority"),
        (["She won", "Ann Lee"], "Ann Lee", "single"),  # not in the claim: no vote
        (["won Ann", "Lee Ann"], None, NONE),
    ],
)
def test_vote_of_annotators_gives_kept_words(texts, kept, decided):
    rows = LssExample(
        reference="r", claim=CLAIM, annotations=[Annotation(lss=text) for text in texts]
    )
    result = vote(rows)
    assert result.decided == decided
    kept_words = None if result.keep is None else join_words(CLAIM, result.words, result.keep)
    assert kept_words == kept


@pytest.mark.parametrize(
    ("annotations", "star", "rating"),
    [
        # LSS, LSS*, rating: the star of the one that is nearest to the vote, the first of equals.
        ([("Ann Lee", "one", 5), ("Ann Lee", "two", 1), ("Ann", "three", 2)], "one", 2),
        ([("Ann", "one", 5), ("Ann Lee", "two", 1), ("Ann Lee", "three", None)], "two", 3),
        ([("Ann Lee", None, 5), ("Ann", "two", 4), ("Ann Lee", None, 4)], "two", 4),
        ([("nowhere", "one", 1), ("Ann Lee", "two", 5)], "two", 3),
    ],
)
def test_the_gold_annotation(annotations, star, rating):
    made = [Annotation(lss=lss, lss_star=s, rating=r) for lss, s, r in annotations]
    rows = LssExample(reference="r", claim=CLAIM, annotations=made)
    assert merge_gold(rows, vote(rows)) == Annotation(lss="Ann Lee", lss_star=star, rating=rating)
