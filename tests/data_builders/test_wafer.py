"""WAFER's rows become pairs, each filter drops what it names, and a page stays in one split."""

import json
import re
from pathlib import Path

import pytest

from data_builders import __main__ as data_builders
from data_builders.published.wafer.wafer import Wafer
from data_builders.published.wafer.wafer_rows import is_fragment, strip_mark
from eval.commands import experiment
from records import UserError

ROOT = Path(__file__).parents[2]
WORDS = re.findall(
    r"\w+",
    "The mill at the river was bought by the town in the spring and it was turned into a school "
    "for the children of the workers who had come from the hills to build the new road",
)
PAGE = "The mill stands by the river and was a school for the children of the town in its time."


def page(number):
    """A reference of 50 to 100 words that no other number has."""
    return f"Page {number} says this of the town. " + " ".join([PAGE] * 3)


def citation(number, claim=None, text=None, url=None, **more):
    """A row as WAFER publishes it, with its provenance filled in: two chunks, the last first."""
    # Claims that share few neighbouring words: the same ones in another order.
    turned = [WORDS[(i * (number * 2 + 3)) % len(WORDS)] for i in range(18)]
    sentence = claim or f"Mill {number} " + " ".join(turned).lower() + " [CIT]."
    text = page(number) if text is None else text
    words, url = text.split(), url or f"https://page.example/{number}"
    chunks = [(2, words[len(words) // 2 :]), (1, words[: len(words) // 2])]
    return {
        "id": number,
        "input": f"Mill [SEP] History [SEP] It is old. {sentence}",
        "output": [
            {
                "answer": url,
                "provenance": [
                    {"url": url, "chunk_id": f"c_{n}", "title": "The mill", "text": " ".join(part)}
                    for n, part in chunks
                ],
            }
        ],
        "meta": {
            "wikipedia_id": 7,
            "wikipedia_title": "Mill",
            "wikipedia_section": "History",
            "cit_paragraph_id": 1,
            "cit_offset": 12,
            "sentences": ["It is old.", sentence],
        },
        **more,
    }


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_row_becomes_pair_with_chunks_in_order(tmp_path):
    source = write(tmp_path / "wafer.jsonl", [citation(3)])
    Wafer(tmp_path / "out", train=[source]).build()
    (row,) = read(tmp_path / "out/train.jsonl")
    assert row["claim"].startswith("Mill 3 the")
    assert row["claim"].endswith(".")
    assert "[CIT]" not in row["claim"]
    assert row["reference"] == page(3)  # chunks in their order, not the row's
    assert {k: row[k] for k in ("id", "title", "section", "url", "reference_title", "split")} == {
        "id": "3",
        "title": "Mill",
        "section": "History",
        "url": "https://page.example/3",
        "reference_title": "The mill",
        "split": "train",
    }
    assert manifest(tmp_path / "out")["dropped"] == {}


FAULTS = {
    "no sentence with the citation's mark": {
        "input": "Nothing here.",
        "meta": {"sentences": ["Nothing here."]},
    },
    "several citations in the sentence": "The mill was old [CIT] and was then sold to it [CIT].",
    "claim of too few words": "The mill was old [CIT].",
    "claim of too many words": "The mill " + "was old and " * 30 + "grey [CIT].",
    "claim with markup or an address": "The [[mill]] was sold to the town in the spring [CIT].",
    "claim that is not a complete sentence": "and was sold to the town in the wet spring [CIT].",
    "reference without text": {"text": ""},
    "reference of too few words": {"text": "The mill is old."},
    "reference of too many words": {"text": " ".join([PAGE] * 9)},
    "reference that is an error page": {"text": "Error 404. " + " ".join([PAGE] * 3)},
    "reference that is not English": {
        "text": " ".join(f"Die {i}. alte Mühle steht am Fluss." for i in range(9))
    },
    "near-duplicate of an earlier claim": citation(1)["meta"]["sentences"][1].replace(".", "!"),
    "reference of another split": {"url": "https://page.example/0"},
}


@pytest.mark.parametrize("reason", FAULTS)
def test_faulty_row_is_dropped_and_counted(tmp_path, reason):
    fault = FAULTS[reason]
    if isinstance(fault, str):
        bad = citation(2, claim=fault)
    else:
        bad = citation(2, **{k: v for k, v in fault.items() if k in ("text", "url")})
        bad |= {k: v for k, v in fault.items() if k in ("input", "meta")}
    test = write(tmp_path / "test.jsonl", [citation(0)])
    train = write(tmp_path / "train.jsonl", [citation(1), bad])
    Wafer(tmp_path / "out", train=[train], test=[test]).build()
    assert manifest(tmp_path / "out")["dropped"] == {reason: 1}
    assert [row["id"] for row in read(tmp_path / "out/train.jsonl")] == ["1"]


def test_text_is_read_from_passages_file(tmp_path):
    row = citation(4)
    for part in row["output"][0]["provenance"]:
        part["text"] = part["title"] = None
    words = page(4).split()
    passages = [
        {"url": "https://page.example/4", "chunk_id": "c_2", "text": " ".join(words[20:])},
        {"url": "https://page.example/4", "chunk_id": "c_3", "text": "Not cited.", "title": "T"},
        {"url": "https://page.example/4", "chunk_id": "c_1", "text": " ".join(words[:20])},
    ]
    source = write(tmp_path / "wafer.jsonl", [row])
    with pytest.raises(UserError, match=r"no pair left .1 x reference without text"):
        Wafer(tmp_path / "out", train=[source]).build()
    texts = write(tmp_path / "passages.jsonl", passages)
    Wafer(tmp_path / "out", train=[source], passages=[texts]).build()
    assert read(tmp_path / "out/train.jsonl")[0]["reference"] == page(4)


@pytest.mark.parametrize("mark", [".[CIT]", ". [CIT]", " [CIT].", '." [CIT]'])
def test_marked_sentence_of_input_is_the_claim(tmp_path, mark):
    """The authors' script keeps ``sentences`` without the mark, which then is in ``input`` only."""
    claim = "The grey mill was sold by its owner to the town in 1950"
    row = citation(1)
    row["meta"]["sentences"] = []
    row["input"] = f"Mill [SEP] History [SEP] It is old. {claim}{mark} It was then made a school."
    source = write(tmp_path / "in.jsonl", [row])
    Wafer(tmp_path / "out", train=[source]).build()
    assert read(tmp_path / "out/train.jsonl")[0]["claim"] == claim + strip_mark(mark)


def test_incomplete_sentences_are_fragments():
    assert not is_fragment("The mill was sold to the town.", "Mill")
    assert not is_fragment('"It was grey," wrote the miller of it.', "Mill")
    for claim in ("1. The mill was sold to it", "* The mill was sold", "Great River Town Mill",
                  "The mill was sold to the town,", ") The mill was sold to it"):  # fmt: skip
        assert is_fragment(claim, "Mill")


def test_rows_in_wafers_form_become_lss(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    build = [
        "wafer",
        "--config",
        "configs/data/small/wafer.yaml",
        "--output",
        str(tmp_path / "wafer"),
    ]
    assert data_builders.main(build) == 0
    pairs = read(tmp_path / "wafer/test.jsonl")
    assert [pair["title"] for pair in pairs if "Sorne" in pair["title"]] == ["River Sorne"]
    assert (len(pairs), len(read(tmp_path / "wafer/failed.jsonl"))) == (5, 1)
    run = ["lss_generation", "--config", "configs/experiments/small/lss_wafer.yaml"]
    run += ["--experiment.claims", f"{{wafer: {tmp_path}/wafer/test.jsonl}}"]
    run += ["--experiment.engines.tagger", "null", "--experiment.judge", "shared words"]
    assert experiment.main([*run, "--output", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run/results.json").is_file()
