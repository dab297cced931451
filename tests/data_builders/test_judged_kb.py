"""Labels of kb_pairs judged by hand: a table a maker, of facts about a few people, run through it.

A row says what a premise and a hypothesis state; how they word it is left to the maker's bank, and
``test_kb_wording.py`` reads that. Tables are whole: what a maker gives and the table does not have
is an error, as is a row that the maker never gives.
"""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

from data_builders.kb.facts import Person
from data_builders.kb.graph import Value
from data_builders.kb.kb_pairs import articles, relation, unli
from data_builders.kb.kb_pairs.common_facts import Common
from data_builders.kb.kb_pairs.kb_lss import (
    MISSING,
    SUPPORTED,
    UNLISTED,
    WRONG,
    _clause,
    _join,
    _join_relative,
)
from data_builders.kb.kb_pairs.person_texts import generations
from data_builders.kb.kb_pairs.teller import Teller
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import facts_of, facts_of_value, implies
from data_builders.kb.language.wording import Voice, bank, bleached, speak, unlisted

# Rounds of a maker; every row of a table turns up in far fewer.
ROUNDS = 1000


def person(key: str, name: str, sex: str, aliases: tuple[str, ...] = (), **facts: list[str]):
    """A person by their facts; dates as ``7 November 1867`` or ``1835``."""
    by_name = {
        prop: tuple(
            Value(text, None, int(text.split()[-1]))
            if prop in ("P569", "P570")
            else Value(text, f"e:{text}")
            for text in texts
        )
        for prop, texts in facts.items()
    }
    return Person(f"e:{key}", name, name, aliases, sex, by_name, "Europe", "C", 0)


ADA = person(
    "ada", "Ada Brook", "female",
    P106=["novelist"], P27=["Poland"], P569=["7 November 1867"], P19=["Brooklyn"],
)  # fmt: skip
BEN = person(
    "ben", "Ben Stone", "male",
    P106=["writer", "chemist"], P27=["France"], P569=["1835"], P19=["Brooklyn Heights"],
)  # fmt: skip
CYD = person("cyd", "Cyd Hall", "male", P106=["poet"], P569=["7 May 1861"], P19=["Queens"])
DOT = person("dot", "Dot Reed", "female", P106=["novelist", "writer", "chemist"])
EVE = person("eve", "Eve Lind", "", P106=["novelist", "writer"])
FAY = person("fay", "Fay Moor", "female", P569=["1835", "1836"])
EVERYONE = [ADA, BEN, CYD, DOT, EVE, FAY]
TRAIN = World(EVERYONE, EVERYONE, "train")

DAY, YEAR, DECADE, CENTURY = (
    "P569.day=7 November 1867", "P569.year=1867", "P569.decade=1860s", "P569.century=19th",
)  # fmt: skip
NOVELIST, WRITER, CHEMIST, POET = (f"P106={v}" for v in ("novelist", "writer", "chemist", "poet"))
BORN_1835, BORN_1861, THIRTIES = "P569.year=1835", "P569.year=1861", "P569.decade=1830s"
BORN_1836, OTHER_DAY = "P569.year=1836", "P569.day=7 May 1861"
BROOKLYN, QUEENS, POLAND, FRANCE = "P19=Brooklyn", "P19=Queens", "P27=Poland", "P27=France"


def made_of(maker, about: Person, teller: Teller) -> set[tuple]:
    """Facts that were told, in their order, and the label, of all that a maker gives."""
    names = set()
    for _ in range(ROUNDS):
        teller.stated_facts.clear()
        made = maker(teller, about)
        if made is not None:
            names.add((*map(str, teller.stated_facts), made[2]))
    return names


def relations(kind: str, about: Person) -> set[tuple]:
    return made_of(relation.KINDS[kind][1], about, Teller(TRAIN, random.Random(0)))


# Premise, hypothesis: what one fact says of another fact of the same person.


@pytest.mark.parametrize(
    ("left", "right", "entails"),
    [
        # A date entails the spans it lies in, never the other way round.
        (("P569", "7 November 1867"), "P569.year=1867", True),
        (("P569", "7 November 1867"), "P569.decade=1860s", True),
        # The last year of a century belongs to it; a decade is named by its first year.
        (("P569", "1900"), "P569.century=19th", True),
        (("P569", "1900"), "P569.decade=1900s", True),
        (("P569", "1901"), "P569.century=19th", False),
        (("P570", "1 January 2000"), "P570.century=20th", True),
        # Before the year 1000 there is the year alone.
        (("P569", "999"), "P569.century=10th", False),
        # A narrow occupation is a broad one.
        (("P106", "novelist"), "P106=writer", True),
        (("P106", "writer"), "P106=novelist", False),
        (("P106", "jazz musician"), "P106=musician", True),
        (("P19", "Brooklyn"), "P19=Brooklyn Heights", False),
    ],
)
def test_what_a_fact_entails(left, right, entails):
    prop, text = left
    year = int(text.split()[-1]) if prop in ("P569", "P570") else None
    finest = facts_of_value(prop, Value(text, None if year else f"e:{text}", year))[0]
    implied = {str(finest), *map(str, finest.coarser)}
    assert (right in implied) == entails
    assert all(implies(finest, coarse) and not implies(coarse, finest) for coarse in finest.coarser)


# relation: kind, premise and hypothesis (facts of Ada), label.

FINER = {
    (YEAR, DAY), (DECADE, DAY), (CENTURY, DAY), (DECADE, YEAR), (CENTURY, YEAR), (CENTURY, DECADE),
    (WRITER, NOVELIST),
}  # fmt: skip
FALSE_OF_ADA = {
    DAY: {OTHER_DAY},
    YEAR: {BORN_1835, BORN_1861, BORN_1836},
    DECADE: {THIRTIES},  # Cyd's 1860s are Ada's as well, and everybody's century is
    BROOKLYN: {QUEENS},  # Brooklyn Heights is a part of Brooklyn
}
CONTRADICTIONS = {
    (true, false) for true, wrong_facts in FALSE_OF_ADA.items() for false in wrong_facts
}


@pytest.mark.parametrize(
    ("kind", "rows", "label"),
    [
        # The coarse does not tell the fine.
        ("finer", FINER, "neutral"),
        ("coarser", {(fine, coarse) for coarse, fine in FINER}, "entailment"),
        (
            "paraphrase",
            {(f, f) for f in (NOVELIST, POLAND, DAY, YEAR, DECADE, CENTURY, BROOKLYN)},
            "entailment",
        ),
        (
            "other_value",
            CONTRADICTIONS | {(right, left) for left, right in CONTRADICTIONS},
            "contradiction",
        ),
        # A novelist may be a poet, too; that she is a writer is no other value.
        (
            "other_value_open",
            {(NOVELIST, POET), (NOVELIST, CHEMIST), (POLAND, FRANCE)},
            "neutral",
        ),
    ],
)
def test_relations_of_two_facts(kind, rows, label):
    assert relations(kind, ADA) == {(*row, label) for row in rows}


@pytest.mark.parametrize(
    ("about", "rows"),
    [
        # Novelist and writer say something of each other; neither says that she is a chemist.
        (DOT, {(NOVELIST, CHEMIST), (CHEMIST, NOVELIST), (WRITER, CHEMIST), (CHEMIST, WRITER)}),
        (EVE, set()),
        (CYD, {(a, b) for a, b in [(POET, QUEENS), (QUEENS, POET)]}),
    ],
)
def test_two_true_facts_are_neutral_only_where_neither_tells_the_other(about, rows):
    names = {row for row in relations("other_fact", about) if not any("P569" in f for f in row)}
    assert names == {(*row, "neutral") for row in rows}


def test_broader_occupation_is_no_other_value():
    # Whether a writer writes novels or poems is open, but no exchange of one value for another.
    assert relations("other_value_open", BEN) == {(FRANCE, POLAND, "neutral")}


def test_aspects_of_one_date_are_never_neutral():
    dates = {DAY, YEAR, DECADE, CENTURY}
    result = relations("other_fact", ADA)
    assert (DAY, BROOKLYN, "neutral") in result
    assert not [row for row in result if {row[0], row[1]} <= dates]


@pytest.mark.parametrize("kind", ["other_value", "page_contradicted"])
def test_of_two_birth_years_none_is_false(kind):
    assert relations(kind, FAY) == set()


def test_the_ends_of_a_substring_are_not_each_others_falsehood():
    # Whoever was born in Brooklyn Heights was born in Brooklyn.
    assert {row[:2] for row in relations("other_value", BEN) if "P19" in row[0]} == {
        ("P19=Brooklyn Heights", QUEENS),
        (QUEENS, "P19=Brooklyn Heights"),
    }


def test_a_compound_entails_each_of_its_facts_and_none_of_them_entails_it():
    parts, wholes = relations("part", ADA), relations("to_compound", ADA)
    assert {row[-1] for row in parts} == {"entailment"}
    assert {row[-1] for row in wholes} == {"neutral"}
    for *entry, element, _ in (*parts, *wholes):
        assert element in entry
    assert all(len(entry) > 1 for *entry, _, _ in wholes)
    assert (NOVELIST, POLAND, POLAND, "entailment") in parts
    assert (NOVELIST, POLAND, NOVELIST, "neutral") in wholes


def test_a_page_entails_what_it_tells_and_leaves_open_what_it_does_not():
    stated = relations("page_fact", DOT)
    assert stated
    assert all(row[-2] in row[:-2] and row[-1] == "entailment" for row in stated)
    message, untold = sayings(DOT.name), set()
    teller = Teller(TRAIN, random.Random(0))
    for _ in range(ROUNDS):
        teller.stated_facts.clear()
        made = relation.KINDS["page_missing"][1](teller, DOT)
        if made is not None and made[1] in message:
            *page, missing = map(str, teller.stated_facts)
            untold.add((frozenset(page), missing, made[2]))
    # Of a page about a novelist it is no news that she writes, and the other way round.
    assert untold == {(frozenset((NOVELIST, WRITER)), CHEMIST, "neutral")}


def test_a_page_contradicts_another_value_of_a_date_or_place_alone():
    for *page, false, label in relations("page_contradicted", ADA):
        assert label == "contradiction"
        assert any(false in FALSE_OF_ADA.get(fact, ()) for fact in page)


# relation: what anyone's statements and specific ones say; sex keeps "he" and "she" apart.

SEXED = {"male": {"she", "her", "herself"}, "female": {"he", "his", "him", "himself"}}


@pytest.mark.parametrize(
    ("kind", "label", "facts"),
    [
        ("bleached_premise", "neutral", 1),  # "She was a person." tells no profession
        ("bleached_to_bleached", "entailment", 0),
        ("fact_to_bleached", "entailment", 1),
        ("unlisted", "neutral", 1),
        ("unlisted_premise", "neutral", 1),
        ("unlisted_paraphrase", "entailment", 0),
    ],
)
def test_relations_with_what_is_true_of_anyone(kind, label, facts):
    result = relations(kind, ADA)
    assert {row[-1] for row in result} == {label}
    assert max(len(row) - 1 for row in result) == facts


class Noting(Teller):
    """Notes the kinds of the specific statements that it makes."""

    def unlisted(self, person):
        result = super().unlisted(person)
        self.kinds.append(result[1])
        return result


def test_two_specific_statements_are_neutral_only_if_of_different_kinds():
    teller, seen = Noting(TRAIN, random.Random(0)), 0
    for _ in range(ROUNDS):
        teller.kinds = []
        made = relation.KINDS["unlisted"][1](teller, ADA)
        if made is not None and len(teller.kinds) == 2:
            seen += 1
            assert len(set(teller.kinds)) == 2, made
    assert seen > 100


@pytest.mark.parametrize("about", [ADA, BEN])
def test_pronouns_fit_the_persons_sex(about):
    teller = Teller(TRAIN, random.Random(1))
    for kind, (_, maker) in relation.KINDS.items():
        for _ in range(60 if kind != "other_person" else 0):
            made = maker(teller, about)
            words = set(" ".join(made[:2]).lower().replace(".", " ").split()) if made else set()
            assert not words & SEXED[about.sex], made


@pytest.mark.parametrize(
    ("about", "template", "form", "text"),
    [
        (ADA, "{X} wrote, and {he} read {his} texts {self}.", "pronoun",
         "she wrote, and she read her texts herself."),
        (EVE, "{X} wrote, and {he} read {his} texts {self}.", "surname",
         "Lind wrote, and they read their texts themselves."),
        (ADA, "The public knew {Xm} when {X} {was} young.", "pronoun",
         "The public knew her when she was young."),
        (ADA, "{X's} home {was} here.", "pronoun", "her home was here."),
        (BEN, "{X} {was!} born here and [works|worked] there.", "they",
         "they were born here and worked there."),
        (ADA, "{X}, {a v}, {has} friends.", "pronoun", "Ada Brook, an actor, had friends."),
    ],
)  # fmt: skip
def test_template_is_filled_with_the_persons_pronouns(about, template, form, text):
    assert speak(template, about, Voice(form, True), {"v": "actor"}) == text


# unli: kind, facts, probability.


class NoCounts:
    """Kinds with a fixed value ask for no share."""


@pytest.mark.parametrize(
    ("kind", "rows", "label"),
    [
        ("contradicted", CONTRADICTIONS | {(b, a) for a, b in CONTRADICTIONS}, 0.02),
        (
            "paraphrase",
            {(fine, coarse) for coarse, fine in FINER}
            | {(f, f) for f in (NOVELIST, POLAND, DAY, YEAR, DECADE, CENTURY, BROOKLYN)},
            0.97,
        ),
        ("embellished", {(f, f) for f in (NOVELIST, POLAND, DAY, YEAR, DECADE, CENTURY, BROOKLYN)},
         0.9),
    ],
)  # fmt: skip
def test_probabilities_of_two_facts(kind, rows, label):
    asker = unli.Asker(TRAIN, random.Random(0), NoCounts(), 1)
    result = made_of(unli.KINDS[kind][1], ADA, asker)
    # Paraphrases of specific statements have no fact.
    assert {row for row in result if len(row) == 3} == {(*row, label) for row in rows}
    assert {row[-1] for row in result} == {label}


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("bleached_to_bleached", 0.97),
        ("fact_to_bleached", 0.97),
        ("part", 0.97),
        ("page_fact", 0.97),
    ],
)
def test_probabilities_of_what_follows(kind, label):
    result = made_of(unli.KINDS[kind][1], ADA, unli.Asker(TRAIN, random.Random(0), NoCounts(), 1))
    assert {row[-1] for row in result} == {label}
    if kind in ("part", "page_fact"):
        assert all(row[-2] in row[:-2] for row in result)


def test_a_specific_statement_has_its_prior():
    asker = unli.Asker(TRAIN, random.Random(0), NoCounts(), 1)
    priors = {entry.prior for entry in unlisted("train")}
    assert max(priors) < 0.3  # by what the bank says; none of it is likely of anyone
    assert {row[-1] for row in made_of(unli.KINDS["unlisted"][1], ADA, asker)} == priors


class Counted:
    """Shares counted over the people above, by their facts in words."""

    def count(self, facts):
        names = {str(f) for f in facts}
        return sum(names <= {str(f) for f in TRAIN.facts(p)} for p in EVERYONE)

    def counts(self, premise, fact):
        return self.count([*premise, fact]), self.count(premise)


@pytest.mark.parametrize(
    ("premise", "fact", "share"),
    [
        ([], NOVELIST, 3 / 6),
        ([], QUEENS, 1 / 6),
        ([NOVELIST], WRITER, 2 / 3),  # Ada is not said to be a writer
        ([WRITER], CHEMIST, 2 / 3),
        ([WRITER], QUEENS, 0.002),  # none of three, but not impossible
        ([CENTURY], POET, 1 / 4),
    ],
)
def test_a_share_is_how_many_of_those_who_have_the_premise(premise, fact, share):
    facts = {str(f): f for p in EVERYONE for f in TRAIN.facts(p)}
    asker = unli.Asker(TRAIN, random.Random(0), Counted(), 1)
    label, counted = asker.share([facts[p] for p in premise], facts[fact])
    assert label == pytest.approx(share, abs=1e-4)
    assert (counted["given"], counted["asked"]) == (premise, fact)


def test_a_premise_of_a_share_says_nothing_of_the_property_and_holds_for_enough():
    asker = unli.Asker(TRAIN, random.Random(0), Counted(), 2)
    for _ in range(ROUNDS):
        made = unli.KINDS["share_given"][1](asker, ADA)
        if made is not None:
            counted = made[3]
            props = {fact.partition("=")[0].partition(".")[0] for fact in counted["given"]}
            assert counted["asked"].partition("=")[0].partition(".")[0] not in props
            assert counted["counts"][1] >= 2


# common: what is true of many, and of whom.

MANY = [
    # Person's facts, what is common of them, whether it is.
    ({"P569": ["1850"]}, "train", "P569.half=the first half of the 19th century", True),
    ({"P569": ["1900"]}, "train", "P569.half=the second half of the 19th century", True),
    ({"P569": ["1850", "1851"]}, "train", "P569.half=the first half of the 19th century", False),
    ({"P106": ["poet", "chemist"]}, "train", "P106.several=", True),
    ({"P569": ["1800"], "P570": ["1841"]}, "test", "P570.age=40", True),
    ({"P569": ["1800"], "P570": ["1840"]}, "test", "P570.age=40", False),
    ({"P19": ["Rome"], "P20": ["Oslo"]}, "dev", "P20.elsewhere=", True),
    ({"P19": ["Rome"], "P20": ["Rome"]}, "dev", "P20.elsewhere=", False),
    ({"P166": ["Silver Brush"]}, "test", "P166.any=", True),
]


@pytest.mark.parametrize(("facts", "split", "common", "holds"), MANY)
def test_what_is_true_of_many(facts, split, common, holds):
    first = person("one", "One Two", "male", **facts)
    expected = Common(World([first], [first], split)).all_of(first)
    assert (common in {str(fact) for fact in expected}) == holds


# articles: what a paragraph says, leaves open and denies.


@cache
def sayings(name: str) -> dict[str, set[str]]:
    """Every plain text of each fact of the population, said of a person."""
    (about,) = (p for p in EVERYONE if p.name == name)
    fields: dict[str, set[str]] = {}
    for fact in {f for p in EVERYONE for prop in TRAIN.properties for f in facts_of(p, prop)}:
        for slots in (fact.slots, fact.slots | {"v": fact.slots.get("us", fact.slots.get("v"))}):
            for template in TRAIN.templates(fact):
                for form in ("full", "surname", "pronoun", "they"):
                    for past in (True, False):
                        text = speak(template, about, Voice(form, past), slots)
                        fields.setdefault(text[:1].upper() + text[1:], set()).add(str(fact))
    return fields


@cache
def claims(kind: str, name: str) -> list[tuple[str, str, str, set[str]]]:
    """Article, claim, label and the facts that the claim may state, of all that a maker gives."""
    (about,) = (p for p in EVERYONE if p.name == name)
    teller = articles.Writer(TRAIN, random.Random(0))
    message, result = sayings(name), []
    for _ in range(ROUNDS // 2):
        teller.stated_facts.clear()
        made = articles.KINDS[kind][1](teller, about)
        if made is not None:
            result.append((*made, message.get(made[1], set())))
    return result


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("article_told", "entailment"),
        ("article_less", "entailment"),
        ("article_untold", "neutral"),
        ("article_changed", "neutral"),
        ("article_more", "neutral"),
        ("article_contradicted", "contradiction"),
    ],
)
def test_an_article_and_a_claim_have_the_label_of_their_kind(kind, label):
    assert {entry[2] for entry in claims(kind, ADA.name)} == {label}


@pytest.mark.parametrize(
    ("kind", "about", "facts"),
    [
        ("article_untold", EVE, set()),  # a novelist's article tells of a writer
        ("article_untold", DOT, {NOVELIST, WRITER, CHEMIST}),
        # Of what is told nothing functional is changed, nor made what is true.
        ("article_changed", ADA, {POET, CHEMIST, FRANCE}),
        ("article_contradicted", ADA, set().union(*FALSE_OF_ADA.values())),
        ("article_contradicted", DOT, set()),
    ],
)
def test_facts_that_an_article_does_not_tell(kind, about, facts):
    rows = [entry for *_, entry in claims(kind, about.name) if entry]
    assert set().union(*rows) == facts


def test_an_article_entails_no_changed_detail():
    for kind in ("article_changed", "article_more", "article_untold"):
        for article, claim, _, _ in claims(kind, ADA.name):
            assert claim not in article


def test_a_detail_that_is_added_is_not_the_articles_own():
    """Without its tail the claim is a statement of the article, with it it is not."""
    tails = {tail.partition(" {")[0] for tail in bank("articles")["tails"]["train"]}
    result = claims("article_more", ADA.name)
    assert result
    assert all(any(f" {tail} " in claim for tail in tails) for _, claim, _, _ in result)


@pytest.mark.parametrize("kind", ["article_less", "article_more"])
def test_negated_statements_get_no_detail(kind):
    """Who never married did not in Vienna, either, and who did not there may have elsewhere."""
    result = claims(kind, ADA.name)
    assert result
    assert not any(re.search(r"(?i)\b(?:never|not|no|nobody)\b", claim) for _, claim, *_ in result)


def test_a_claim_names_its_person_where_an_article_speaks_of_two():
    """ "He was a chemist" would be true of whom the article speaks of last."""
    writer = articles.Writer(TRAIN, random.Random(0))
    (fact,) = facts_of(CYD, "P106")
    statement = writer._fact(fact)
    for other, always in ([], False), ([statement], True):
        article = articles.Article("", [statement], other)
        names = {writer._claim(article, BEN, statement) for _ in range(ROUNDS)}
        assert all("Stone" in claim for claim in names) == always


# lss: the states of a claim's clauses, and the words that are kept.

J = "(?:, and| and|, and also|, then| and later)"
CHEM, ROME, TWICE = "was a chemist", "was born in Rome", "married twice"
CLAUSES = [
    ([(CHEM, WRONG)], ""),
    ([(CHEM, MISSING), (TWICE, UNLISTED)], ""),
    ([(CHEM, WRONG), (ROME, SUPPORTED)], "Ada Brook was born in Rome."),
    ([(CHEM, SUPPORTED), (ROME, SUPPORTED)], f"Ada Brook was a chemist{J} was born in Rome."),
    (
        [(CHEM, SUPPORTED), (TWICE, UNLISTED), (ROME, SUPPORTED)],
        f"Ada Brook was a chemist{J} was born in Rome.",
    ),
    (
        [(TWICE, MISSING), (CHEM, SUPPORTED), (ROME, SUPPORTED)],
        f"Ada Brook was a chemist{J} was born in Rome.",
    ),
]
RELATIVE = [
    ("ss", "Ada Brook, who was a chemist, was born in Rome."),
    ("sw", "Ada Brook was a chemist."),
    ("ws", "Ada Brook was born in Rome."),
    ("ww", ""),
    ("uss", "Ada Brook was a chemist and was born in Rome."),
]


@pytest.mark.parametrize(("clauses", "kept"), CLAUSES)
def test_kept_words_of_joined_clauses(clauses, kept):
    seen = 0
    for seed in range(40):
        teller = Teller(TRAIN, random.Random(seed))
        claim, lss = _join(teller, ADA, clauses)
        if claim.startswith("Ada Brook, who "):
            continue
        seen += 1
        assert all(clause in claim for clause, _ in clauses)
        assert re.fullmatch(kept.replace(".", r"\."), lss), lss
    assert seen > 10


def test_what_follows_from_the_reference_is_kept():
    """Dot is a novelist, a writer and a chemist; who tells of a novelist tells of a writer."""
    facts = [fact for fact in facts_of(DOT, "P106") if fact.value in ("novelist", "writer")]
    for entry, missing, state in (facts[:1], facts[1:], SUPPORTED), (facts[1:], facts[:1], MISSING):
        assert [fact.value for fact in entry] == ["novelist" if state == SUPPORTED else "writer"]
        teller = Teller(TRAIN, random.Random(0))
        clause, result = _clause(teller, DOT, MISSING, entry, missing, set())
        assert clause
        assert result == state


@pytest.mark.parametrize(("states", "kept"), RELATIVE)
def test_kept_words_of_a_relative_clause(states, kept):
    texts = [TWICE] * states.count("u") + [CHEM, ROME]
    if states == "sus":
        texts = [CHEM, TWICE, ROME]
    names = {"s": SUPPORTED, "w": WRONG, "u": UNLISTED}
    clauses = [(text, names[state]) for text, state in zip(texts, states, strict=True)]
    claim, lss = _join_relative(ADA, clauses)
    assert claim == f"Ada Brook, who {texts[0]}, {' and '.join(texts[1:])}."
    assert lss == kept


# generations: a sentence is marked by whether its fact is the person's.


def test_a_false_sentence_has_a_value_that_is_false_of_the_person():
    false_facts = {
        *set().union(*FALSE_OF_ADA.values()), POET, CHEMIST, FRANCE,
    }  # fmt: skip
    true_facts = {NOVELIST, POLAND, DAY, YEAR, DECADE, CENTURY, BROOKLYN}
    message, seen = sayings(ADA.name), {True: set(), False: set()}
    for seed in range(60):
        for made in generations(World([ADA], EVERYONE, "train"), 1, 0.5, seed):
            if made.kind == "normal":
                for sentence in made.sentences:
                    seen[sentence.true] |= message.get(sentence.text, set())
    assert seen[False] == false_facts
    assert true_facts - {DAY, YEAR, DECADE} <= seen[True] <= true_facts


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_what_is_true_of_anyone_names_no_value(split):
    values = {fact.value.lower() for p in EVERYONE for fact in TRAIN.facts(p)}
    for template in bank("bleached")[split]:
        text = bleached(random.Random(0), split, ADA, Voice("full", True), template).lower()
        words = text.replace("ada brook", "").replace(".", "").split()
        assert not values & set(words) - {"writer"}
