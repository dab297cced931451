"""Texts that nobody expects: ``eval score`` scores them, or names the line that it cannot read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Door

PASSAGES = [{"id": "p", "title": "Ann Lee", "text": "Ann Lee was born in London."}]
PLAIN = {"id": "a", "topic": "Ann Lee", "text": "Ann was born in Paris.", "passages": PASSAGES}

# A file's name and bytes to the exit code, what was said, and the rows of ``scored.jsonl``.
Scores = Callable[[str, bytes, Path], tuple[int, list[str], list[dict]]]


@pytest.fixture
def scored(score: Door, tmp_path: Path) -> Scores:
    """Scores a file of documents."""

    def run(name: str, raw: bytes, config: Path) -> tuple[int, list[str], list[dict]]:
        file, out = tmp_path / name, tmp_path / "out"
        file.write_bytes(raw)
        code, errors = score("--config", config, "--documents", file, "--output", out)
        path = out / "scored.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return code, errors, [json.loads(line) for line in lines]

    return run


def lines(*rows: dict) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


TEXTS = {
    "empty": ("", 0),
    "blanks": (" \n\t\n ", 0),
    "emoji": ("😀🎉 👩‍👩‍👧 🏳️‍🌈", 0),
    "right to left": ("آن لي ولدت في لندن. كتبت كتابا.", 2),
    "Windows line ends": ("Ann was born.\r\nShe wrote.\r\n", 2),
    "BOM": ("\ufeffAnn was born in London.", 1),
}


@pytest.mark.parametrize(("text", "claims"), TEXTS.values(), ids=TEXTS)
def test_unusual_texts_are_scored_unchanged(scored, by_nli, text, claims):
    raw = lines(PLAIN | {"id": "odd", "text": text}, PLAIN)
    code, errors, (odd, plain) = scored("texts.jsonl", raw, by_nli)
    assert (code, errors) == (0, [])
    assert odd["document"]["text"] == text
    assert len(odd["claims"]) == len(odd["verdicts"]) == claims
    assert not any(verdict["label"] == "failed" for verdict in odd["verdicts"])
    assert [verdict["label"] for verdict in plain["verdicts"]] == ["not_supported"]
    (scores,) = odd["scores"]
    assert scores["responded"] == ("precision" in scores) == bool(text.strip())


GOOD = lines(PLAIN) * 3
BAD = {
    "bytes.jsonl": (GOOD + b'{"text": "caf\xe9"}\n', "4: file: not UTF-8 (byte 14 of the line"),
    "bytes.json": (b'[\n{"text": "caf\xe9"}]', "2: file: not UTF-8 (byte 14 of the line is 0xe9)"),
    "bytes.csv": (b"id,topic,text\n1,t,caf\xe9\n", "2: file: not UTF-8 (byte 8 of the line"),
    "utf16.jsonl": (json.dumps(PLAIN).encode("utf-16"), "1: file: not UTF-8 (byte 1 of the line"),
    "zeros.jsonl": (GOOD + bytes(512), "4: json: Expecting value"),
    "half.jsonl": (GOOD + rb'{"text": "\ud83d"}', "4: json: lone surrogate"),
}


@pytest.mark.parametrize(("name", "raw", "place"), [(n, *case) for n, case in BAD.items()], ids=BAD)
def test_an_unreadable_file_is_a_one_line_error_with_its_line(scored, by_labels, name, raw, place):
    code, errors, rows = scored(name, raw, by_labels)
    assert (code, len(errors), rows) == (2, 1, [])
    assert f"{name}:{place}" in errors[0]


def test_two_million_characters(scored, by_nli):
    sentence = f"Ann {'painted birds and ' * 110}rested."  # too long for the model
    text = "\n".join([sentence] * (2_000_000 // len(sentence) + 1))
    code, errors, (row,) = scored("long.jsonl", lines(PLAIN | {"text": text}), by_nli)
    assert (code, len(errors)) == (1, 1)
    assert row["document"]["text"] == text
    assert len(row["verdicts"]) == text.count("\n") + 1
    assert {verdict["label"] for verdict in row["verdicts"]} == {"failed"}


def test_ten_thousand_claims_in_one_document(scored, by_labels):
    labels = ["S", "NS", "NS", "NS"] * 2500
    claims = [
        {"id": str(n), "text": f"Claim {n}.", "sentence": 0, "label": label}
        for n, label in enumerate(labels)
    ]
    code, errors, (row,) = scored("many.jsonl", lines(PLAIN | {"claims": claims}), by_labels)
    assert (code, errors) == (0, [])
    (of_text,) = row["scores"]
    assert (of_text["judged"], of_text["precision"]) == (10_000, 0.25)
