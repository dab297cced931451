"""The long-form sets: every format by its published field names, draws, drops and messages."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import datasets
import pytest

from data_builders.published.longform.longform import LongForm
from data_builders.published.longform.longform_formats import Source
from data_builders.topics import read_topics
from records import Document, UserError, read_records, write_jsonl

DATA = os.environ.get("FACTFOUNDRY_DATA")


def jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def build(tmp_path, rows, name="in.jsonl", to="out", limit=None, seed=0, **source):
    """The folder and manifest of one source named ``s``."""
    path = jsonl(tmp_path / name, rows) if isinstance(rows, list) else rows
    base = Source(name="s", files=[path], **source)
    folder = LongForm(tmp_path / to, [base], limit=limit, seed=seed).build().parent
    return folder, json.loads((folder / "manifest.json").read_text())


def documents(folder):
    return read_records(folder / "s" / "documents.jsonl", Document)


def prompts(folder):
    lines = (folder / "s" / "prompts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def fact(text, label):
    return {"text": text, "label": label}


FACTSCORE = [
    {
        "input": "Question: Tell me a bio of Ada.",
        "output": "Ada was a poet. She knew things. Bye.",
        "topic": "Ada",
        "cat": ["rare", "Europe/Middle East"],
        "annotations": [
            {
                "text": "Ada was a poet.",
                "human-atomic-facts": [fact("Ada was a poet.", "NS"), fact("Ada lived.", "S")],
            },
            {"text": "She knew things.", "human-atomic-facts": [fact("She knew.", "IR")]},
            {"text": "Bye.", "human-atomic-facts": None},
        ],
    },
    {"input": "q", "output": "I cannot.", "topic": "Bob", "annotations": None},
    {"output": "No.", "topic": "Cy", "annotations": [{"text": "No.", "human-atomic-facts": []}]},
]


def test_factscore_atoms_keep_sentence_and_label(tmp_path):
    folder, report = build(tmp_path, FACTSCORE, format="factscore", generator="ChatGPT")
    (kept,) = documents(folder)
    assert [(c.text, c.label, c.sentence, c.source) for c in kept.claims] == [
        ("Ada was a poet.", "NS", 0, "Ada was a poet."),
        ("Ada lived.", "S", 0, "Ada was a poet."),
        ("She knew.", "IR", 1, "She knew things."),
    ]
    assert (kept.bin, kept.group) == ("rare", "Europe/Middle East")
    assert (kept.generator, kept.label_source) == ("ChatGPT", "human")
    assert report["dropped"] == {"s: text without claims": 2}
    counts = {"rows": 1, "claims": 3, "S": 1, "NS": 1, "IR": 1, "none": 0, "passages": 0}
    assert report["config"]["counts"] == {"s/documents.jsonl": counts}
    assert (
        "| `s/documents.jsonl` | 1 | 3 | 1 | 1 | 1 | 0 | 0 |" in (folder / "README.md").read_text()
    )
    assert datasets.load_dataset(str(folder), "s")["test"][0]["topic"] == "Ada"


REASONED = {
    "input": "Did Vikings like cats?",
    "output": "They did.",
    "topic": "A long answer.",
    "atoms": [
        {"id": "a0", "text": "They did.", "original": "x", "label": None, "contexts": ["c0", "c1"]},
        {"id": "a1", "text": "Cats.", "original": "y", "label": "S", "contexts": ["c2"]},
    ],
    "contexts": [
        {"id": "c0", "title": "Cats", "text": "Cats purr.", "link": "l", "snippet": "s"},
        {"id": "c1", "title": "", "text": "", "link": "l", "snippet": ""},
        {"id": "c2", "title": "Owls", "text": None, "link": "l", "snippet": "Owls."},
    ],
}


@pytest.mark.parametrize("name", ["in.jsonl", "in.json"])
def test_factreasoner_atoms_and_contexts_are_kept(tmp_path, name):
    rows = [REASONED]
    if name == "in.json":
        (tmp_path / name).write_text(json.dumps(REASONED, indent=1))
        rows = str(tmp_path / name)
    folder, report = build(tmp_path, rows, name, format="factreasoner", topic="input")
    (kept,) = documents(folder)
    assert kept.topic == "Did Vikings like cats?"
    assert [(c.id, c.contexts, c.label) for c in kept.claims] == [
        ("a0", ["c0"], None),
        ("a1", ["c2"], "S"),
    ]
    assert [(p.id, p.text, p.url) for p in kept.passages] == [
        ("c0", "Cats purr.", "l"),
        ("c2", "Owls.", "l"),
    ]
    assert report["dropped"] == {"s: context without text": 1}


def checked(sentence, text, annotation):
    base = {"sentence": sentence, "atomic_fact": "It is.", "self_contained_atomic_fact": text}
    return {**base, "relevance_data": None, "rate_data": None, "annotation": annotation}


def test_safe_facts_and_search_results_are_kept(tmp_path):
    data = {
        "prompt": "What is X?",
        "response": "X is. It was. And so.",
        "all_atomic_facts": [
            {"sentence": "X is.", "atomic_facts": ["It is."]},
            {"sentence": "It was.", "atomic_facts": ["It is.", "It is."]},
        ],
        "checked_statements": [
            checked("X is.", "X is.", "Supported"),
            checked("It was.", "X was.", "Not Supported"),
            checked("It was.", "X so.", "Irrelevant"),
        ],
        "past_steps_jsonified_all": [
            {
                "google_searches": [
                    {"query": "x", "result": "X is so."},
                    {"query": "y", "result": ""},
                ]
            },
            {"google_searches": []},
            {},
        ],
    }
    rows = [
        {"prompt": "What is X?", "side1_posthoc_eval_data": data},
        {"prompt": "What is Y?", "side1_posthoc_eval_data": None},
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"side_1": "gpt", "side_2": "none", "per_prompt_data": rows}))
    folder, report = build(tmp_path, str(path), format="safe")
    (kept,) = documents(folder)
    assert [(c.text, c.label, c.sentence, c.contexts) for c in kept.claims] == [
        ("X is.", "S", 0, ["p0_0"]),
        ("X was.", "NS", 1, []),
        ("X so.", "IR", 1, []),
    ]
    assert [p.text for p in kept.passages] == ["X is so."]
    assert (kept.generator, kept.label_source, kept.topic) == ("gpt", "safe", "What is X?")
    assert report["dropped"] == {"s: text without claims": 1}


HIT = {"title": "T", "snippet": "A snippet.", "link": "l"}


@pytest.mark.parametrize(
    ("lists", "kept"),
    [
        ("claim_list", "claim_search_results"),
        ("claim_list", "claim_snippets_dict"),
        ("claim_lst_lst", "claim_srch_res_lst"),
    ],
)
def test_veriscore_claims_are_read_under_each_field_name(tmp_path, lists, kept):
    row = {
        "question": "Why?",
        "response": "Because. So.",
        "model": "gpt-4o",
        "prompt_source": "ELI5",
        "abstained": False,
        lists: [["No verifiable claim."], ["So is A.", "So is B."], ["So is A."]],
        kept: {"So is A.": [HIT, {**HIT, "snippet": ""}], "So is B.": []},
        "claim_verification_result": [
            {"claim": "So is A.", "verification_result": "supported"},
            {"claim": "So is B.", "verification_result": "inconclusive"},
        ],
    }
    rows = [
        row,
        {**row, "prompt_source": "ShareGPT"},
        {**row, "abstained": True, lists: None},
        {**row, "response": "", lists: []},
    ]
    folder, report = build(tmp_path, rows, format="veriscore", where={"prompt_source": "ELI5"})
    (document,) = documents(folder)
    assert [(c.text, c.sentence, c.label, c.contexts) for c in document.claims] == [
        ("So is A.", 1, "S", ["p0_0", "p0_1"]),
        ("So is B.", 1, "NS", []),
        ("So is A.", 2, "S", ["p2_0", "p2_1"]),
    ]
    # A result without a snippet has its title.
    assert [p.text for p in document.passages] == ["A snippet.", "T"] * 2
    assert (document.generator, document.label_source) == ("gpt-4o", "veriscore")
    assert report["dropped"] == {"s: text without claims": 2, "s: row excluded by `where`": 1}


def test_halogen_csv_gives_atoms_with_verdicts(tmp_path):
    table = '| Ada wrote.\tTrue |\n| She sang "La\tla".\tFalse |\n| Unjudged. |\n'
    rows = tmp_path / "ada_7b_biographies.csv"
    with rows.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "response", "atoms", "hallucinated atoms"])
        writer.writerow(["Tell me a bio of Ada B. Jr.", " Ada wrote, so.", table, "| x |"])
        writer.writerow(["Tell me a bio of Bob", "I cannot.", "", ""])
    folder, report = build(tmp_path, str(rows), format="halogen")
    (kept,) = documents(folder)
    assert (kept.topic, kept.generator, kept.label_source) == ("Ada B. Jr.", "ada_7b", "halogen")
    assert [(c.text, c.label) for c in kept.claims] == [
        ("Ada wrote.", "S"),
        ('She sang "La\tla".', "NS"),
        ("Unjudged.", None),
    ]
    assert report["dropped"] == {"s: text without claims": 1}


def test_halogen_text_equal_to_its_topic_is_replaced_by_its_atoms(tmp_path):
    atoms = [{"text": "Ada wrote.", "label": "S"}, {"text": "She sang.", "label": "NS"}]
    rows = [
        {"topic": "Ada", "generator": "g", "output": text, "atoms": atoms}
        for text in ("Ada", "Ada is.")
    ]
    write_jsonl(tmp_path / "a.jsonl", rows)
    kept = read_records(tmp_path / "a.jsonl", Document)
    assert [document.text for document in kept] == ["Ada wrote. She sang.", "Ada is."]


SAMPLES = [
    {"topic": "Ada", "output": {"raw": "[Ada lives.]", "parsed": "Ada lives."}},
    {"topic": "Ada", "output": {"raw": "Ada breathes.", "parsed": ""}},
    {"topic": "Bo", "output": {"raw": "Bo lives.", "parsed": "Bo lives."}},
]


def test_texts_get_their_kind_and_bins_of_the_map(tmp_path):
    (tmp_path / "bins.json").write_text(json.dumps({"Ada": "very rare"}))
    source = {"kind": "info", "bins": str(tmp_path / "bins.json"), "generator": "gpt"}
    folder, report = build(tmp_path, SAMPLES, format="texts", **source)
    kept = documents(folder)
    assert [(d.text, d.kind, d.bin) for d in kept] == [
        ("Ada lives.", "info", "very rare"),
        ("Ada breathes.", "info", "very rare"),
        ("Bo lives.", "info", None),
    ]
    (reason,) = report["dropped"]
    assert reason.startswith("s: bin of a topic that ")
    assert any(entry["file"] == "bins.json" for entry in report["inputs"])
    assert report["config"]["sources"][0]["bins"] == "bins.json", "no folder of this machine"
    (tmp_path / "bins.json").write_text(json.dumps(["Ada"]))
    with pytest.raises(UserError, match=r"bins\.json: expected a JSON object"):
        build(tmp_path, SAMPLES, format="texts", **source)


VOTED = {"evidence_id": "Sea:1", "article": "Sea", "evidence": "It rises.", "entropy": 0.0}
VOTED |= {"evidence_label": "SUPPORTS", "votes": ["SUPPORTS", "SUPPORTS", None, None, None]}


def test_climate_fever_claims_keep_sentences_and_votes(tmp_path):
    labels = {"SUPPORTS": "S", "REFUTES": "NS", "NOT_ENOUGH_INFO": "NS", "DISPUTED": None}
    rows = [
        {"claim_id": str(n), "claim": f"Seas rise {n}.", "claim_label": label, "evidences": [VOTED]}
        for n, label in enumerate(labels)
    ]
    folder, _ = build(tmp_path, rows, format="climate_fever")
    kept = documents(folder)
    assert [d.claims[0].label for d in kept] == list(labels.values())
    assert [d.claim_label for d in kept] == list(labels)
    assert [d.model_extra.get("label_source") for d in kept] == ["human"] * 3 + [None]
    (passage,) = kept[0].passages
    assert (passage.title, passage.text, passage.votes[:2]) == (
        "Sea",
        "It rises.",
        ["SUPPORTS"] * 2,
    )
    assert kept[0].claims[0].contexts == [passage.id]


def test_averitec_answers_are_the_passages(tmp_path):
    answers = [
        {"answer": "No", "answer_type": "Boolean", "boolean_explanation": "He was ill."},
        {"answer": "At home.", "answer_type": "Extractive", "source_url": "http://x.example"},
    ]
    row = {"claim": "He came.", "label": "Refuted", "speaker": None}
    rows = [row | {"questions": [{"question": "Was he there?", "answers": answers}]}]
    (tmp_path / "dev.json").write_text(json.dumps(rows))
    folder, _ = build(tmp_path, str(tmp_path / "dev.json"), format="averitec")
    (kept,) = documents(folder)
    assert (kept.text, kept.claims[0].label, kept.claim_label) == ("He came.", "NS", "Refuted")
    assert [p.text for p in kept.passages] == [
        "Was he there? No He was ill.",
        "Was he there? At home.",
    ]
    assert kept.passages[1].url == "http://x.example"


FACTOR = {
    "full_prefix": "It rained. ",
    "doc_id": "7",
    "completion": "Roads were wet.",
    "contradiction_0": "Roads were dry.",
    "contradiction_1": "Roads were new.",
    "contradiction_2": "Roads were hot.",
}


def test_factor_gives_one_true_and_three_false_claims(tmp_path):
    rows = [{**FACTOR, "doc_id": str(n), "completion": f"Roads were wet {n}."} for n in range(20)]
    rows += [{**FACTOR, "full_prefix": " "}, {**FACTOR, "contradiction_0": "Roads were wet."}]
    folder, report = build(tmp_path, rows, format="factor")
    kept = documents(folder)
    assert len(kept) == 20
    assert kept[3].topic == "s 3"
    assert kept[3].text == "It rained. Roads were wet 3."
    assert [p.text for p in kept[3].passages] == ["It rained. "]
    places = set()
    for document in kept:
        assert sorted(c.label for c in document.claims) == ["NS", "NS", "NS", "S"]
        (true,) = [c for c in document.claims if c.label == "S"]
        assert true.text.startswith("Roads were wet ")
        assert {tuple(c.contexts) for c in document.claims} == {("prefix",)}
        places.add(true.id)
    assert len(places) > 2, "the place tells nothing"
    assert report["dropped"] == {
        "s: row with completions that are equal or empty": 1,
        "s: row without a prefix": 1,
    }


def test_longfact_topic_is_read_from_the_file_name(tmp_path):
    for topic in ("20th-century-events", "physics"):
        rows = [{"prompt": f"What of {topic} {n}?", "canary": "x"} for n in range(5)]
        jsonl(tmp_path / "lf" / f"longfact-objects_{topic}.jsonl", rows)
    source = {"format": "longfact", "topics": 2, "per_topic": 3}
    folder, report = build(tmp_path, str(tmp_path / "lf"), **source)
    kept = prompts(folder)
    assert [row["group"] for row in kept] == ["20th-century-events"] * 3 + ["physics"] * 3
    assert report["dropped"] == {"s: row that was not drawn": 4}
    assert datasets.load_dataset(str(folder), "s")["test"].num_rows == 6


def questions(topics, each):
    return [{"question": f"{t} {n}?", "book": t} for t in topics for n in range(each)]


def test_topics_and_rows_are_drawn_by_the_seed(tmp_path):
    rows = questions("abcdef", 4)
    source = {"format": "prompts", "topic": "book", "topics": 3, "per_topic": 2}
    first, report = build(tmp_path, rows, to="a", **source)
    repeated, _ = build(tmp_path, rows, to="b", **source)
    mixed, _ = build(tmp_path, rows[::-1], to="c", **source)
    other, _ = build(tmp_path, rows, to="d", seed=1, **source)
    texts = {
        name: {row["prompt"] for row in prompts(f)}
        for name, f in zip("1m2", (first, mixed, other), strict=True)
    }
    assert len(texts["1"]) == 6
    assert len({row["group"] for row in prompts(first)}) == 3
    topics = read_topics([str(first / "s/prompts.jsonl")])
    assert set(topics) == texts["1"], "each prompt is asked"
    assert texts["1"] == texts["m"] != texts["2"]
    assert report["dropped"] == {
        "s: row of a topic that was not drawn": 6,
        "s: row that was not drawn": 12,
    }
    assert (first / "manifest.json").read_bytes() == (repeated / "manifest.json").read_bytes()
    assert (first / "s/prompts.jsonl").read_bytes() == (repeated / "s/prompts.jsonl").read_bytes()


def test_sample_is_drawn_from_distinct_rows(tmp_path):
    rows = [*questions("a", 10), *questions("a", 3), {"question": " ", "book": "a"}]
    folder, report = build(tmp_path, rows, format="prompts", sample=4)
    assert len(prompts(folder)) == 4
    assert report["dropped"] == {
        "s: row that was not drawn": 6,
        "s: row without a question": 1,
        "s: duplicate row": 3,
    }


@pytest.mark.skipif(not DATA, reason="FACTFOUNDRY_DATA is not set: no real data to try")
def test_the_published_biographies_and_factor_news(tmp_path):
    sources = [
        Source("bios", "factscore", [str(Path(DATA, "factscore_labeled/InstructGPT.jsonl"))]),
        Source("news", "factor", [str(Path(DATA, "factor/news.jsonl"))]),
    ]
    manifest = LongForm(tmp_path, sources).build()
    counts = json.loads(manifest.read_text())["config"]["counts"]
    bios, news = counts["bios/documents.jsonl"], counts["news/documents.jsonl"]
    assert bios == {
        "rows": 181, "claims": 4726, "S": 2100, "NS": 1971, "IR": 655, "none": 0, "passages": 0
    }  # fmt: skip
    assert (news["rows"], news["S"], news["NS"], news["passages"]) == (1036, 1036, 3108, 1036)
