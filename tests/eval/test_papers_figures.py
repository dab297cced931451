"""``python -m eval papers``: the papers' printed figures next to those of the released files."""

import json
import os
from pathlib import Path

import pytest

from eval.commands import papers
from eval.experiments.papers.papers import as_printed, read_rows
from records import UserError, write_jsonl

# Table and row to our digits on the shared files: the first rows, and Vicuna's files whole.
SHARED = {
    ("Table 4", "Vicuna 7B, with name ambiguity"): "92.9 87.7 1.3 1.6",
    ("Table 4", "Vicuna 7B, without name ambiguity"): "93.4 88.9 1.3 1.7",
    ("Table 2", "Biographies"): "1 26 7 0.27 26",
    ("recorded outputs", "FactReasoner"): "0.905 0.950 0.018",
    ("§4.2, Table 1", "Test topics by frequency and Table 1's four groups"): "112 28 16 7",
    ("Table 4", "Claim and human LSS"): "0.88 0.87",
    ("Table 1 and §4.1", "Three annotators"): "30.24 0.30",
}


def rows_of(folder, output):
    assert papers.main(["--files", str(folder), "--output", str(output)]) == 0
    rows = json.loads((output / "papers.json").read_text(encoding="utf-8"))
    assert (output / "papers.md").read_text(encoding="utf-8").count("\n| ") == len(rows) + 1
    return {(row["table"], row["name"]): row for row in rows}


@pytest.mark.skipif("FACTFOUNDRY_DATA" not in os.environ, reason="FACTFOUNDRY_DATA is not set")
def test_the_figures_of_the_shared_files(tmp_path):
    data = Path(os.environ["FACTFOUNDRY_DATA"])
    files = [*data.glob("published/**/*.*"), *data.glob("merging_facts/*/*vicuna*")]
    for number, path in enumerate(path for path in files if path.is_file()):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / path.name).symlink_to(path)
    rows = rows_of(tmp_path, tmp_path / "out")
    for place, digits in SHARED.items():
        row = rows[place]
        ours = [as_printed(row["ours"][name], text) for name, text in row["prints"].items()]
        assert " ".join(ours) == digits, place
    states = {entry: row["state"] for (table, entry), row in rows.items() if table == "Table 4"}
    assert states["Vicuna 7B, without name ambiguity"] == "equal to all printed digits"
    assert states["Vicuna 7B, with name ambiguity"].startswith("differs in FS: the paper prints")
    assert states["Tulu 2 13B, with name ambiguity"].startswith("first rows, 20 of 500: differs")
    assert states["ChatGPT, with name ambiguity"].startswith("public, not available here: https")


def test_without_files_a_row_names_its_source(tmp_path):
    rows = rows_of(tmp_path, tmp_path / "out")
    assert len(rows) == len(read_rows())
    assert {table for table, name in rows if rows[table, name]["ours"]} == {"Examples", "Table 7"}
    assert rows["Examples", "Example 1, P(a1)"]["state"] == "equal to all printed digits"
    with pytest.raises(UserError, match="no such folder"):
        papers.main(["--files", str(tmp_path / "none"), "--output", str(tmp_path / "out")])


def test_splits_and_texts_of_the_released_topics_are_counted(tmp_path):
    for split, topics in {"train": 800, "dev": 112, "test": 112}.items():
        lines = "".join(f"{split} {number}\n" for number in range(topics))
        (tmp_path / f"sampled_{split}.txt").write_text(lines)
    texts = [{"topic": f"train {n % 800}", "output": {"parsed": f"text {n}"}} for n in range(4000)]
    write_jsonl(tmp_path / "sampled_train-info.jsonl", texts)
    rows = rows_of(tmp_path, tmp_path / "out")
    splits = rows["§4.2", "Topics and their splits, 8:1:1"]
    assert splits["ours"] == {"topics": 1024, "train": 800, "dev": 112, "test": 112}
    written = rows["§5.1", "Uninformative texts, train topics"]
    assert (written["ours"], written["n"]) == ({"per topic": 5}, 4000)
    assert {splits["state"], written["state"]} == {"equal to all printed digits"}
