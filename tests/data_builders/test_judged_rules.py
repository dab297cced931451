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
from data_builders.kb.facts import Person
from data_builders.kb.graph import Value
from data_builders.kb.kb_conflicts import cues
from data_builders.kb.kb_conflicts.kb_conflicts import (
    Matter,
    deal_contexts,
    in_words,
    other_value,
    relation_pairs,
)
from data_builders.published.claim_pairs import RULES as PAIR_RULES
from data_builders.published.claim_pairs import _person
from data_builders.written.corruption.corrupters import NOTHING_TO_CHANGE, ToChange
from data_builders.written.corruption.swap import Values
from data_builders.written.distant_lss.distant_lss import example_of
from data_builders.written.distant_lss.transform import RULES as CHANGES
from data_builders.written.distant_lss.transform import Pool, Setting, entities
from eval.models.chat import Answer
from records import Annotation, Claim, Document, LssExample, Passage

# conflicts: rules over a claim's contexts. "+0.9" supports it with prior 0.9, "-0.6" conflicts.


def contexts(signed: str, **texts: str) -> list[Passage]:
    return [
        Passage(
            id=f"c{index}",
            title="T",
            text="word " * (10 - index),
            prior=float(sign[1:]),
            relation="entailment" if sign[0] == "+" else "contradiction",
            source="web",
        )
        for index, sign in enumerate(signed.split())
    ]


def judged(signed: str, label: str) -> Document:
    passages = contexts(signed)
    claim = Claim(id="a0", text="A claim.", label=label, contexts=[c.id for c in passages])
    return Document(id="d", topic="T", text="A claim.", claims=[claim], passages=passages)


@pytest.mark.parametrize(
    ("signed", "rule", "votes"),
    [
        ("+0.9 +0.6 -0.9", "majority of contexts", 1),
        ("+0.9 -0.6", "majority of contexts", 0),
        ("-0.9 +0.6 +0.6", "first context", -1),
        ("-0.9 +0.6 +0.6", "longest context", -1),
        ("+0.6 -0.9 +0.6", "most reliable context", -1),
        ("+0.9 -0.9 +0.6", "most reliable context", 0),
        ("+0.9 -0.6 -0.6", "majority weighted by prior", -1),
        ("+0.9 -0.6 -0.6", "sum of log-odds of the priors", 1),  # ln 9 > 2 ln 1.5
        ("+0.3 -0.6", "sum of log-odds of the priors", -1),
    ],
)
def test_what_a_rule_says_of_a_claim(signed, rule, votes):
    result = cues.RULES[rule](contexts(signed))
    assert (result > 1e-9) - (result < -1e-9) == votes
    for label, true in (("S", 1), ("NS", -1)):
        right = 0.5 if votes == 0 else float(votes == true)
        assert cues.accuracy([judged(signed, label)], rule) == right


@pytest.mark.parametrize(
    ("signed", "cue", "value"),
    [
        ("-0.9 +0.5 +0.6", "number of contexts", 3),
        ("-0.9 +0.5 +0.6", "number of supporting contexts", 2),
        ("-0.9 +0.5 +0.1", "mean prior of the contexts", 0.5),
        ("-0.9 -0.5 +0.1", "place of the first supporting context", 2),
        ("+0.9 -0.5", "words of supporting over conflicting contexts", 1),
        ("+0.9 -0.5", "words of the contexts", 9.5),
        ("+0.9 -0.5", "words of the claim", 2),
    ],
)
def test_what_a_cue_says_of_a_claim(signed, cue, value):
    claim = judged(signed, "S").claims[0]
    assert cues.LEAKS[cue](claim, contexts(signed)) == pytest.approx(value)


def test_sources_tell_the_truth_where_true_claims_are_supported():
    table = cues.source_table([judged("+0.9 -0.6", "S"), judged("+0.9 +0.6", "NS")])
    assert "| web | 0.90 | 0.500 | 2 |" in table
    assert "| web | 0.60 | 0.000 | 2 |" in table
    assert "| web | 0.90 | 1.000 | 1 |" in cues.source_table([judged("-0.9 +0.6", "NS")])


# conflicts: relations of contexts to claims and to each other.

SAYS = {
    "p1": ("Ann was born in Rome, says one.", "entailment"),
    "p2": ("Ann was born in Rome, says two.", "entailment"),
    "p3": ("Ann was born in Oslo, says one.", "contradiction"),
    "q1": ("Ann was a poet, says one.", "contradiction"),
    "q2": ("Ann was a judge, says one.", "entailment"),
}
RELATIONS = [
    ("p1", "Ann was born in Rome.", "entailment"),
    ("p2", "Ann was born in Rome.", "entailment"),
    ("p3", "Ann was born in Rome.", "contradiction"),
    ("q1", "Ann was a judge.", "contradiction"),
    ("q2", "Ann was a judge.", "entailment"),
    # Another property
    *((p, "Ann was a judge.", "neutral") for p in ("p1", "p2", "p3")),
    *((q, "Ann was born in Rome.", "neutral") for q in ("q1", "q2")),
    ("p1", "q1", "neutral"),
    ("p2", "q2", "neutral"),
    ("p3", "q1", "neutral"),
    ("q1", "p1", "neutral"),
    ("q2", "p2", "neutral"),
    # Two contexts of one claim
    ("p1", "p2", "entailment"),
    ("p1", "p3", "contradiction"),
    ("p2", "p3", "contradiction"),
    ("q1", "q2", "contradiction"),
]


def test_relations_of_contexts():
    born = Claim(id="a0", text="Ann was born in Rome.", contexts=["p1", "p2", "p3"])
    work = Claim(id="a1", text="Ann was a judge.", contexts=["q1", "q2"])
    passages = [Passage(id=i, title="Ann", text=t, relation=r) for i, (t, r) in SAYS.items()]
    document = Document(id="d", topic="Ann", text="x", claims=[born, work], passages=passages)
    names = {text: name for name, (text, _) in SAYS.items()}
    result = [
        (names[pair.premise], names.get(pair.hypothesis, pair.hypothesis), pair.label)
        for pair in relation_pairs([document])
    ]
    assert sorted(result) == sorted(RELATIONS)
    alone = document.model_copy(update={"claims": [born]})
    assert {pair.source for pair in relation_pairs([alone])} == {
        "kb/conflict",
        "kb/conflict_contexts",
    }


@pytest.mark.parametrize(
    ("value", "pool", "alternatives"),
    [
        ("Brooklyn", ["Brooklyn", "Brooklyn Heights", "Queens"], {"Queens"}),
        ("new york city", ["New York", "Oslo"], {"Oslo"}),
        ("Brooklyn", ["Brooklyn", "Brooklyn Heights"], {None}),
        # Of dates one of the same precision and, if there is one, near.
        ("1835", ["1835", "1840", "7 May 1841", "1990"], {"1840"}),
        ("7 May 1841", ["7 May 1841", "1840", "8 May 1841", "9 June 1844"], {"9 June 1844"}),
    ],
)
def test_another_value_of_a_property(value, pool, alternatives):
    def made(text):
        return Value(text, None, int(text.split()[-1]) if text[-1].isdigit() else None)

    values = [made(text) for text in pool]
    result = [other_value(random.Random(seed), made(value), values) for seed in range(40)]
    assert {other and other.label for other in result} == alternatives


@pytest.mark.parametrize(
    ("value", "date", "text"),
    [
        (Value("Rome", "e:rome"), False, "Rome"),
        (Value("7 May 1861", None, 1861), True, "on 7 May 1861"),
        (Value("44 BC", None, -44), True, "in 44 BC"),
    ],
)
def test_a_value_in_words(value, date, text):
    assert in_words(value, date) == text


def test_true_and_false_claims_are_dealt_the_same_contexts():
    matters = [Matter(f"e:{i}", f"T{i}", "P19", "Rome", "Oslo") for i in range(12)]
    dealt = deal_contexts(random.Random(0), matters, (2, 4), Counter())
    by_truth = [
        Counter(
            (supporting, conflicting) for _, true, supporting, conflicting in dealt if true == t
        )
        for t in (True, False)
    ]
    assert by_truth[0] == by_truth[1] == {(1, 1): 2, (1, 2): 1, (2, 1): 1, (1, 3): 1, (2, 2): 1}


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


@pytest.mark.parametrize(
    ("text", "topic", "name", "sex"),
    [
        ("She sang. Her voice was high.", "Ann Lee (singer)", "Ann Lee", "female"),
        ("He sang. He met her.", "Bo Ek", "Bo Ek", "male"),
        ("Bo Ek sang. He met her.", "Bo Ek", "Bo Ek", ""),  # as many of each
        ("She saw the show. She sang.", "Bo Ek", "Bo Ek", "female"),  # "the" has a "he"
    ],
)
def test_person_of_a_text_has_its_name_and_sex(text, topic, name, sex):
    result = _person(text_with(text, topic=topic))
    assert (result.name, result.sex) == (name, sex)


# corruption: what may stand in the place of a value, and what may not.


def person(name: str, aliases: tuple[str, ...] = (), **facts: list[str]) -> Person:
    values = {p: tuple(Value(v, f"e:{v}") for v in texts) for p, texts in facts.items()}
    return Person(f"e:{name}", name, name, aliases, "male", values, None, "D", 0)


PEOPLE = [
    person("Bo Ek", P106=["novelist"], P27=["Sweden"], P19=["Brooklyn"], P69=["Oxford"]),
    person("Di Po", P106=["poet", "physicist"], P27=["Scotland"], P19=["Brooklyn Heights"]),
    person("Al Ro", ("Alf",), P106=["chemist"], P27=["Germany"], P19=["Queens"], P166=["Prize"]),
]
VALUES = Values(PEOPLE)


@pytest.mark.parametrize(
    ("claim", "topic", "old", "may", "never"),
    [
        ("Bo Ek was born in Brooklyn.", "Bo Ek", "Brooklyn", {"Queens"}, {"Brooklyn Heights"}),
        ("Cy Coe was born in Brooklyn, not in Queens.", "Cy Coe", "Brooklyn", set(), {"Queens"}),
        # A novelist is a writer, a poet is as well.
        ("Bo Ek was a novelist.", "Bo Ek", "novelist", {"poet", "physicist"},
         {"writer", "novelist"}),
        ("Cy Coe was a writer.", "Cy Coe", "writer", {"chemist"}, {"poet", "novelist"}),
        ("Di Po studied physics.", "Di Po", "physics", {"chemistry"}, {"poetry", "physics"}),
        # Of one another's kin one may be the other.
        ("Cy Coe is from Scotland.", "Cy Coe", "Scotland", {"Sweden", "France"},
         {"England", "Ireland"}),
        ("Cy Coe is German.", "Cy Coe", "German", {"Swedish", "French"}, {"Austrian", "Germany"}),
        ("In 2024 Cy Coe sang.", "Cy Coe", "2024", {"2023", "2025", "2009"}, {"2024", "2026"}),
        ("Cy Coe sang in the 1920s.", "Cy Coe", "1920", {"1900", "1950"}, {"1921", "1920"}),
        ("Cy Coe was the first.", "Cy Coe", "first", {"second", "ninth"}, {"first", "two"}),

    ],
)  # fmt: skip
def test_replacements_of_a_value_exclude_true_ones(claim, topic, old, may, never):
    offered = {
        claim[find.start : find.end]: set(find.replacements)
        for find in VALUES._replaceable(ToChange("k", topic, claim))
    }
    replacements = offered.get(old, set())
    assert may <= replacements
    assert not never & replacements


@pytest.mark.parametrize(
    ("claim", "topic"),
    [
        ("Alf was quiet.", "Cy Coe"),  # somebody else's other name
        ("Cy Coe practised chemistry.", "Cy Coe"),  # a field says nothing of a stranger
        ("Brooklyn was quiet.", "Brooklyn"),  # the topic itself
        ("Brooklyn is a mother.", "Cy Brooklyn (singer)"),  # its family name
        ("Cy Coe acted in Rush Hour 2.", "Cy Coe"),  # Rush Hour 3 is a film as well
        ("Cy Coe left the Brooklyn Bridge.", "Cy Coe"),  # a longer name
        ("Cy Coe paid $12.5.", "Cy Coe"),
    ],
)
def test_claim_without_a_value_is_unchanged(claim, topic):
    assert VALUES.change(ToChange("k", topic, claim), random.Random(0)).reason == NOTHING_TO_CHANGE


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
