"""Attacks: what each makes of a document, and that what it keeps is checked and can be broken."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from data_builders.__main__ import main
from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.attacks import SHIPPED, Attacks
from data_builders.written.attacks.other_people import Merged, Namesake, Related
from data_builders.written.attacks.repetition import (
    NearParaphrases,
    Split,
)
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.times import (
    coarser_times,
    dates_in,
    has_same_times,
    swap_date_format,
)
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    OnlyTrue,
    OtherEntityFacts,
    Possible,
    SentenceClaim,
    TrueByForm,
    join_sentences,
    may_be_true_of_both,
)
from records import Document, Passage, read_records, write_jsonl

# Two people of one name, and one whom a text names; half of what the first two texts say is false.
TOLD = {
    "ann": [
        ("Ann Lee was born on 7 August 1932.", "S"),
        ("Ann Lee is a chemist.", "S"),
        ("She won the Copley Medal in 1970.", "S"),
        ("She joined the Royal Society in 1961.", "S"),
        ("She was taught by Bob Ray.", "S"),
        ("She was born in Bergen.", "NS"),
        ("She died in 1999.", "NS"),
        ("She received numerous honours.", "NS"),
    ],
    "again": [
        ("Ann Lee was born in Oslo.", "S"),
        ("Ann Lee died on 3 May 2004.", "S"),
        ("She is best known for films.", "NS"),
    ],
    "bob": [
        ("Bob Ray was born in Bath.", "S"),
        ("Bob Ray taught at Eton College.", "S"),
        ("He was a singer.", "S"),
        ("He was not rich.", "NS"),
    ],
}
PAGES = [
    {"id": "p0", "title": "Ann Lee (painter)", "text": "Ann Lee painted ships in Cork. She was a "
     "woman. Lee was born in 1801. She died in Rome. She painted and paint"},
    {"id": "p1", "title": "Ann Lee", "text": "Ann Lee was born in Oslo. She is a chemist."},
]  # fmt: skip


def document(name: str) -> Document:
    claims = [
        {"id": f"c{n}", "text": text, "sentence": n, "source": text, "label": label}
        for n, (text, label) in enumerate(TOLD[name])
    ]
    text = " ".join(claim["text"] for claim in claims)
    topic = "Bob Ray" if name == "bob" else "Ann Lee"
    fields = {"generator": f"model {name}", "bin": "rare", "group": "A", "kind": "normal"}
    return Document(id=name, topic=topic, text=text, claims=claims, **fields)


SOURCES = {name: Source(name, document(name)) for name in TOLD}
WORLD = World(list(SOURCES.values()), [Passage(**page) for page in PAGES])
ANN = SOURCES["ann"]


def attacked(attack: Attack, source: Source = ANN) -> Attacked:
    """An attack's text, which is what it says."""
    result = attack.attack(source, WORLD, random.Random(1))
    assert list(attack.keeps.faults(source, result, WORLD)) == []
    return result


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    write_jsonl("docs.jsonl", [document(name) for name in TOLD])
    write_jsonl("pages.jsonl", PAGES)


def build(output: str = "out", **options: object) -> Path:
    options = {"documents": ["docs.jsonl"], "pages": ["pages.jsonl"]} | options
    return Attacks(output, **options).build().parent


# The builder


# Their statements need false versions, rewordings, or an honest text with ten facts.
NEED_A_LADDER = {
    *("reworded", "number_off", "name_exchanged", "compound"),
    *(kind for kind in SHIPPED if kind.startswith(("hidden", "misrelated"))),
}


def test_attack_files_name_their_documents():
    folder = build()
    normal = {row.id: row for row in read_records(folder / "normal.jsonl", Document)}
    assert list(normal) == [f"docs/{name}" for name in TOLD]
    invalid = read_records(folder / "invalid.jsonl", Document)
    assert {row.invalid for row in invalid} <= {"gold F1 above 0.6"}
    ids = set(normal)
    for kind in set(SHIPPED) - NEED_A_LADDER:
        rows = read_records(folder / f"{kind}.jsonl", Document)
        for row in rows:
            twin = normal[row.clean]
            assert row.kind == kind
            assert (row.topic, row.bin, row.group, row.generator) == (
                twin.topic, twin.bin, twin.group, twin.generator
            )  # fmt: skip
            assert row.family in ("counting", "judge", "relevance", "injection", "discourse")
            assert row.gold.f1 <= 0.6
            ids.add(row.id)
    figures = json.loads((folder / "statistics.json").read_text())
    assert len(ids) == len(normal) + sum(counts["valid"] for counts in figures.values())
    dropped = json.loads((folder / "manifest.json").read_text())["dropped"]
    assert dropped["namesake: not applicable: no namesake is known"] == 1
    assert sum(dropped.values()) == sum(
        sum(counts["not_applicable"].values()) + sum(counts["invalid"].values())
        for counts in figures.values()
    )


def test_text_that_does_not_respond_is_not_attacked():
    silent = document("bob").model_copy(update={"id": "silent", "claims": [], "responds": False})
    write_jsonl("docs.jsonl", [document("ann"), silent])
    folder = build()
    figures = json.loads((folder / "statistics.json").read_text())
    for kind in SHIPPED:
        assert figures[kind]["not_applicable"]["the text does not respond"] == 1
        assert "silent" not in (folder / f"{kind}.jsonl").read_text()
    assert len(read_records(folder / "normal.jsonl", Document)) == 2


def test_a_killed_build_resumes_unless_its_documents_changed(monkeypatch):
    first = build("a", draws=2)
    made = {path.name: path.read_bytes() for path in first.glob("*.jsonl")}
    whole = Split.attack

    def killed(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Split, "attack", killed)
    for output in ("b", "c"):
        with pytest.raises(KeyboardInterrupt):
            build(output, draws=2)
        assert list(Path(output).glob(".*partial*"))
    monkeypatch.setattr(Split, "attack", whole)
    assert {p.name: p.read_bytes() for p in build("b", draws=2).glob("*.jsonl")} == made
    other = {"bin": "frequent", "group": "B"}
    write_jsonl("docs.jsonl", [document(name).model_copy(update=other) for name in TOLD])
    rows = read_records(build("c", draws=2) / "split.jsonl", Document)
    assert {(row.bin, row.group) for row in rows} == {("frequent", "B")}


OWN = '''
from data_builders.written.attacks.attack import Attack
from data_builders.written.claims.validity import SentenceClaim, join_sentences


class Shouted(Attack):
    """The first claims, each with an exclamation."""

    def __init__(self, number: int = 1):
        self.number = number

    def attack(self, source, world, rng):
        claims = source.claims[: self.number]
        return join_sentences(
            [SentenceClaim(f"Believe it: {c.text}", c.label, (c.id,)) for c in claims]
        )
'''


def test_custom_attack_is_selected_by_class_path_and_good_texts_are_invalid(monkeypatch):
    Path("my_attacks.py").write_text(OWN)
    monkeypatch.syspath_prepend(".")
    shouted = {"class_path": "my_attacks.Shouted"}
    attacks = json.dumps({"mine": shouted, "good": shouted | {"init_args": {"number": 3}}})
    main(["attacks", "--documents", "[docs.jsonl]", "--attacks", attacks, "--output", "out"])
    rows = read_records("out/mine.jsonl", Document)
    assert rows[0].text == "Believe it: Ann Lee was born on 7 August 1932."
    assert (rows[0].family, rows[0].keeps) == ("custom", "worse by gold")
    invalid = read_records("out/invalid.jsonl", Document)
    assert {row.invalid for row in invalid} == {"gold F1 above 0.6"}


# Each attack


def test_near_paraphrases_are_different_sentences_of_one_fact():
    result = attacked(NearParaphrases(sentences=9))
    assert len({claim.text for claim in result.claims}) == 9
    assert len({tuple(claim.rests_on) for claim in result.claims}) == 1
    assert result.text.startswith("Ann Lee ")
    assert "It was in 1970 that" in attacked(NearParaphrases(40)).text or "1970" not in result.text


def test_split_states_coarser_dates_of_one_fact():
    result = attacked(Split())
    assert "Ann Lee was born in August 1932." in result.text
    assert "Ann Lee was born in the 20th century." in result.text
    assert "7 August" not in result.text


def test_namesake_states_facts_that_are_false_of_the_topic():
    result = attacked(Namesake())
    assert result.text == (
        "Ann Lee painted ships in Cork. Ann Lee was born in 1801. Ann Lee died in Rome."
    )
    assert {claim.label for claim in result.claims} == {"NS"}
    with pytest.raises(NotApplicable):
        Namesake().attack(SOURCES["bob"], WORLD, random.Random(0))


def test_two_namesakes_are_merged_or_kept_apart():
    result = attacked(Merged())
    assert result.text == (
        "Ann Lee was born in Oslo. Ann Lee painted ships in Cork. Ann Lee is a chemist. "
        "Ann Lee was born in 1801."
    )
    assert [claim.label for claim in result.claims] == ["S", "NS", "S", "NS"]
    assert result.passages is None, "the document has none"
    apart = attacked(Merged(apart=True))
    assert apart.text == (
        "Ann Lee was born in Oslo. Ann Lee is a chemist. There is another person of that name, "
        "Ann Lee (painter). Ann Lee painted ships in Cork. Ann Lee was born in 1801."
    )
    assert [(claim.sentence, claim.label) for claim in apart.claims] == [
        (0, "S"), (1, "S"), (3, "S"), (4, "S")
    ]  # fmt: skip
    with pytest.raises(NotApplicable, match="no namesake is known"):
        Merged().attack(SOURCES["bob"], WORLD, random.Random(0))


def test_namesake_passages_are_added_to_the_documents_passages():
    with_passages = ANN.document.model_copy(update={"passages": [Passage(**PAGES[1])]})
    source = Source("ann", with_passages)
    world = World([source], [Passage(**page) for page in PAGES])
    for attack in (Namesake(), Merged()):
        passages = attack.attack(source, world, random.Random(1)).passages
        assert [(passage.id, passage.title) for passage in passages] == [
            ("p1", "Ann Lee"), ("n0", "Ann Lee (painter)")
        ]  # fmt: skip


def test_related_facts_are_about_a_person_named_in_the_text():
    result = attacked(Related())
    assert result.text.split(". ")[0] == "Bob Ray was born in Bath"
    assert result.more["related"] == "named"
    assert "not rich" not in result.text


def test_draws_are_different_texts_and_the_first_are_those_of_one_draw():
    first = read_records(build() / "paraphrased.jsonl", Document)
    rows = read_records(build(draws=3, output="three") / "paraphrased.jsonl", Document)
    assert rows[: len(first)] == first
    assert {row.draw for row in rows[len(first) :]} == {1, 2}
    assert len({(row.clean, row.text) for row in rows}) == len(rows) > len(first)


# What is kept, and how it breaks


def text_of(text: str, label: str = "S", *rests: str) -> Attacked:
    return join_sentences([SentenceClaim(text, label, rests)])


MEDAL = text_of("Ann Lee won the Copley Medal in 1970.", "S", "c2")
BREAKS = [
    (OnlyTrue(), replace(MEDAL, text="In 1970 Ann Lee won the Copley Medal."), None),
    (OnlyTrue(), replace(MEDAL, text="Ann Lee won the Copley Medal."),
     "a claim is not in the text"),
    (OnlyTrue(), text_of("Ann Lee was born after 1940.", "S", "c0"), "a claim has another time"),
    (OnlyTrue(), text_of("Ann Lee is a chemist.", "NS", "c1"), "a claim rests on no supported one"),
    (OnlyTrue(), text_of("Ann Lee is no chemist.", "S", "c1"), "what was said is denied"),
    (
        OnlyTrue(),
        replace(text_of("Ann Lee is a chemist.", "S", "c1"), text="Ann Lee is a chemist. She ran."),
        "the text says something new",
    ),
    (TrueByForm(), text_of("Ann Lee was born in May or in another month."), None),
    (TrueByForm(), text_of("Ann Lee was born in May or in another year."), "a case is left open"),
    (TrueByForm(), text_of("Ann Lee is or is not rich.", "NS"),
     "a label that the form does not give"),
    (Possible(), text_of("Ann Lee may have liked music."), None),
    (Possible(), text_of("Ann Lee liked music."), "a sentence is not hedged"),
    (Possible(), text_of("Ann Lee may have won in 1950."), "what is hedged has a detail"),
    (OtherEntityFacts(namesake=False), text_of("Bob Ray was born in Bath.", "S", "bob#c0"), None),
    (OtherEntityFacts(namesake=False), text_of("Ann Lee is a chemist.", "S", "ann#c1"),
     "a claim is no fact of another"),
    (OtherEntityFacts(namesake=True), text_of("Bob Ray was born in Bath.", "NS", "bob#c0"),
     "it is of the wrong name"),
    (OtherEntityFacts(namesake=True),
     text_of("Ann Lee died in Rome.", "S", "Ann Lee (painter)/p0#3"), "a label changed"),
    (OtherEntityFacts(namesake=True), text_of("She was a woman.", "NS", "Ann Lee (painter)/p0#1"),
     "it is true of the topic as well"),
    (OtherEntityFacts(namesake=True, with_topic=True),
     text_of("Ann Lee died in Rome.", "NS", "Ann Lee (painter)/p0#3"), "it is not of both"),
    (OtherEntityFacts(namesake=True, with_topic=True, apart=True),
     text_of("Ann Lee died in Rome.", "NS", "Ann Lee (painter)/p0#3"), "a label changed"),
]  # fmt: skip


@pytest.mark.parametrize(("promise", "result", "reason"), BREAKS)
def test_invalid_text_has_the_reason_of_its_invariant(promise, result, reason):
    fault = next(promise.faults(ANN, result, WORLD), None)
    assert (fault and fault.reason) == reason


def test_a_fact_without_names_is_of_both_where_all_its_words_are():
    assert may_be_true_of_both("Ann Lee was a chemist.", "Ann Lee was a rich chemist.", "Ann Lee")
    assert not may_be_true_of_both("Ann Lee was a painter.", "Ann Lee was a chemist.", "Ann Lee")


# Words and times


@pytest.mark.parametrize("date", ["7 August 1932", "August 1932", "1932", "31 December 2000"])
def test_coarser_times_are_entailed_by_a_date_and_other_times_are_not(date):
    (day,) = dates_in(date)
    base = f"She was born on {date}."
    assert all(has_same_times(f"She was born {when}.", base) for when in coarser_times(day))
    wrong = ("in 1930", "after 2001", "before 1932", "in the 1940s", "in the 19th century")
    assert not any(has_same_times(f"She was born {when}.", base) for when in wrong)


def test_date_formats_are_swapped_in_both_directions():
    text = "Born on 7 August 1932 in Bath, she left on May 3, 1950 and in June 1951."
    swapped = "Born on August 7, 1932 in Bath, she left on 3 May 1950 and in June 1951."
    assert swap_date_format(text) == swapped
    assert swap_date_format(swapped) == text
