"""Distant LSS: what a rule put in goes, everything else stays, and the row says exactly which."""

import json
import random

import datasets
import pytest

from components.words import join_words, keep_targets
from data_builders.written.distant_lss.distant_lss import DistantLss, example_of
from data_builders.written.distant_lss.transform import RULES, Pool, Setting, entities
from records import LssExample, read_records, write_jsonl

POOL = Pool(
    sentences=["The bridge was built by Tor Lund in 1931."],
    entities={"in": ["Bergen"], "of": ["Sweden"], "by": ["Tor Lund"], "with": ["Silver Brush"]},
)


def made(rule, sentence, reference=None, seed=0, near=0.0):
    text = reference or sentence
    setting = Setting(text, entities(text), POOL, near)
    return RULES[rule](sentence, setting, random.Random(seed))


def claim_and_lss(rule, sentence, **more):
    """The claim and the LSS that a rule makes."""
    row = example_of(made(rule, sentence, **more), "x")
    return row.claim, row.annotations[0].lss


@pytest.mark.parametrize(
    ("rule", "sentence", "claim", "lss"),
    [
        (
            "entity_swap",
            "She painted in Oslo.",
            "She painted in Bergen.",
            "She painted .",
        ),
        (
            "entity_swap",
            "She lived, in Oslo, alone.",
            "She lived, in Bergen, alone.",
            "She lived, alone.",
        ),
        (
            "entity_swap",
            "She lived in Oslo and Rome.",
            "She lived in Bergen and Rome.",
            "She lived in and Rome.",
        ),
    ],
)
def test_rule_removes_the_changed_phrase(rule, sentence, claim, lss):
    results = {claim_and_lss(rule, sentence, seed=seed) for seed in range(20)}
    assert (claim, lss) in results


@pytest.mark.parametrize(
    ("rule", "sentence", "stays"),
    [
        ("date_swap", "She died on 3 May 1950.", {"She died on 3 May .", "She died ."}),
        ("date_swap", "She died in 1950.", {"She died ."}),
        ("number_swap", "She won 3 medals.", {"She won medals."}),
        ("number_swap", "She won three medals.", {"She won medals."}),
        ("noise_phrase", "She won.", {"She won ."}),
    ],
)
def test_inserted_words_are_new_and_unsupported(rule, sentence, stays):
    results = {claim_and_lss(rule, sentence, seed=seed) for seed in range(40)}
    assert {lss for _, lss in results} == stays
    assert all(claim != sentence for claim, _ in results)
    assert len(results) > 1


def test_names_come_from_the_passage_or_from_others():
    text = "She lived in Oslo. She died in Rome."
    claim = "She lived in Oslo."
    results = {
        claim_and_lss("entity_swap", claim, reference=text, seed=s, near=1.0)[0] for s in range(5)
    }
    assert results == {"She lived in Rome."}
    far = claim_and_lss("entity_swap", "She lived in Oslo.", reference=text, near=0.0)[0]
    assert far == "She lived in Bergen."
    both = "She lived in Oslo. It is not Bergen."
    assert made("entity_swap", "She lived in Oslo.", reference=both) is None


PASSAGES = [
    {
        "id": str(i),
        "title": f"Ann Lee{i // 2}",
        "text": f"Ann Lee{i} was born in Oslo{i} on {1 + i % 28} May {1900 + i}. She was a painter "
        f"and lived with Tor Lund{i} in Rome{i}. She won {i + 2} medals for the work of her life.",
    }
    for i in range(60)
]
WICE = {
    "claim_tokens": ["Ann", "won", "it", "."],
    "non_supported_spans": [False, True, False, False],
    "supporting_sentences": [[0]],
    "claim": "Ann won it.",
    "evidence": ["Ann has it.", "So there."],
    "label": "partially_supported",
}


@pytest.fixture
def build(tmp_path):
    write_jsonl(tmp_path / "in.jsonl", PASSAGES)
    write_jsonl(tmp_path / "wice.jsonl", [{**WICE, "evidence": [f"Ann {i}."]} for i in range(20)])

    def run(name, **more):
        inputs = {"passages": [str(tmp_path / "in.jsonl")], "wice": [str(tmp_path / "wice.jsonl")]}
        DistantLss(tmp_path / name, **{**inputs, "shares": (2, 1, 1), **more}).build()
        return tmp_path / name

    return run


def rows_of(folder):
    return {
        s: read_records(folder / f"lss_{s}.jsonl", LssExample) for s in ("train", "dev", "test")
    }


def test_the_dataset(build):
    first, second = build("one"), build("two")
    names = sorted(path.name for path in first.iterdir())
    assert names == [
        "README.md",
        "lss_dev.jsonl",
        "lss_test.jsonl",
        "lss_train.jsonl",
        "manifest.json",
    ]
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    rows = rows_of(first)
    groups = [{row.group for row in split_rows} for split_rows in rows.values()]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 30 + 20
    everything = [row for split_rows in rows.values() for row in split_rows]
    assert {row.source for row in everything} == {
        "wice",
        *(f"distant/{rule}" for rule in RULES),
    } - {
        "distant/foreign"  # these passages all speak alike
    }
    for row in everything:
        words, kept, unaligned = keep_targets(row)
        assert unaligned == 0
        if row.source != "wice":
            assert join_words(row.claim, words, kept[0]) == row.annotations[0].lss
    datasets.load_dataset(str(first), "lss", cache_dir=str(first.parent / "cache"))


def test_supported_words_are_in_the_reference(build):
    def words(text: str) -> set[str]:
        return set(text.lower().replace(".", " ").replace(",", " ").split())

    rows = [r for r in rows_of(build("one"))["train"] if r.source.startswith("distant/")]
    kept = [(words(row.annotations[0].lss), words(row.reference)) for row in rows]
    assert any(lss for lss, _ in kept)
    for lss, reference in kept:
        assert lss <= reference


def test_every_drop_is_counted(tmp_path):
    texts = [
        "Too short.",
        "no sentence here that begins with a capital letter and so none can be a claim of " * 2,
        PASSAGES[0]["text"],
        PASSAGES[0]["text"],
        "The river rises here all the year and the mill stands beside it as ever did any mill.",
        "Both the river and the mill are as old as the hills, and nobody knows how old that is.",
    ]
    write_jsonl(tmp_path / "in.jsonl", [{"id": str(i), "text": t} for i, t in enumerate(texts)])
    DistantLss(
        tmp_path / "out",
        passages=[str(tmp_path / "in.jsonl")],
        rules=["date_swap"],
        reference_words=(15, 100),
        seed=1,
    ).build()
    assert json.loads((tmp_path / "out/manifest.json").read_text())["dropped"] == {
        "passage of too few or too many words": 1,
        "duplicate passage": 1,
        "passage without a fitting sentence": 1,
        "sentence to which no rule applies": 4,
    }
