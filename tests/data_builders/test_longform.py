"""The long-form sets: every format by its published field names, draws, drops and messages."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from data_builders.published.longform.longform import LongForm
from data_builders.published.longform.longform_formats import Source
from data_builders.topics import read_topics
from records import Document, UserError, read_records

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
