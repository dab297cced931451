"""The files of ``docs/results``: their fields, the pages made of them, and ``--save_to``."""

import json
import re
import runpy
from pathlib import Path

import pytest

from components import code
from eval.commands import experiment
from records import UserError, read_json, write_jsonl

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "docs/results").glob("*.json"))
NUMBER = r"([+-]?\d[\d,.]*(?:e-?\d+)?)"
WITH_INTERVAL = re.compile(rf"^{NUMBER}(?: %)? \[{NUMBER}, {NUMBER}\]")
RENDER = runpy.run_path(str(ROOT / "docs/render.py"))
ROWS = [
    {"reference": reference, "claim": "It rained in Rome all day.", "annotations": [answer]}
    for reference, answer in (
        ("It rained.", {"lss": "It rained", "rating": 2}),
        ("It rained in Rome.", {"lss": "It rained in Rome", "rating": 4}),
        ("It was dry in Oslo.", {"lss": "", "rating": 1}),
        ("It rained in Rome, all day.", {"lss": "It rained in Rome all day.", "rating": 5}),
    )
]


def as_number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_has_all_fields_and_whole_rows(path):
    for table in read_json(path, RENDER["SavedResults"]).tables:
        assert {len(row) for row in table.rows} == {len(table.head)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_value_is_within_its_interval(path):
    for table in read_json(path, RENDER["SavedResults"]).tables:
        for row in table.rows:
            for text in " ; ".join(row).replace("−", "-").split("; "):
                if match := WITH_INTERVAL.match(text.strip()):
                    value, low, high = map(as_number, match.groups())
                    assert low <= value <= high, text


def test_the_pages_are_those_of_the_files():
    pages = RENDER["pages"]()
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, "run python docs/render.py"


def test_the_tables_of_classes_are_those_of_the_docstrings():
    text = (ROOT / "docs/scoring.md").read_text(encoding="utf-8")
    assert RENDER["scoring"]() == text, "run python docs/render.py"
    assert text.count("| `eval.verify.") > 15


def save(tmp_path, seed=1):
    write_jsonl(tmp_path / "lss.jsonl", ROWS)
    engines = "{shared words: {class_path: eval.models.lss.SharedWords}}"
    words = ["lss_generation", "--experiment.engines", engines, "--experiment.seed", str(seed)]
    words += ["--experiment.annotations", json.dumps([str(tmp_path / "lss.jsonl")])]
    words += ["--output", str(tmp_path / f"run_{seed}"), "--save_to", str(tmp_path / "saved.json")]
    assert experiment.main(words) == 0
    return json.loads((tmp_path / "saved.json").read_text(encoding="utf-8"))


def test_a_run_saves_its_tables_and_a_repeated_one_keeps_what_was_edited(tmp_path, monkeypatch):
    committed = {"commit": "1234567890", "changed": False}
    monkeypatch.setattr(code, "_commit", lambda: committed)
    saved = save(tmp_path)
    assert (saved["commit"], saved["n"], saved["page"]) == ("1234567", "4", None)
    assert saved["data"] == str(tmp_path)
    assert saved["seconds"] is not None
    assert "lss_generation" in saved["command"][0]
    titles = [table["title"] for table in saved["tables"]]
    assert len(titles) > 1
    saved |= {"page": "components", "shows": ["Read."], "tables": saved["tables"][1:]}
    saved["command"].insert(0, "make demo")
    (tmp_path / "saved.json").write_text(json.dumps(saved))
    repeated = save(tmp_path, seed=2)
    assert (repeated["page"], repeated["shows"]) == ("components", ["Read."])
    assert [table["title"] for table in repeated["tables"]] == titles[1:]
    assert (repeated["command"][0], len(repeated["command"])) == ("make demo", 2)
    assert "run_2" in repeated["command"][1]
    repeated["seconds"] = 1
    RENDER["SavedResults"].model_validate(repeated)
    assert save(tmp_path, seed=2)["seconds"] is None, "the run was finished before"


def test_results_of_changed_code_are_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(code, "_commit", lambda: {"commit": "1234567890", "changed": True})
    with pytest.raises(UserError, match="commit it first"):
        save(tmp_path)
    assert not (tmp_path / "run_1").exists()
