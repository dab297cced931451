"""The informativeness experiment: its measures, and the command with tiny real checkpoints."""

import json

import numpy as np
import pytest

from eval.__main__ import main
from eval.experiments.core.informativeness import (
    compute_values,
    max_likelihoods,
)
from eval.models.encoder import Unli
from records import (
    Claim,
    Document,
    read_results,
    write_jsonl,
)

CLASSES = ["bleached", "common", "specific"]
ROWS = [
    (kind, topic, f"{topic} {kind} {number}")
    for topic in ("Ann Lee", "Bob Ray", "Cy Day")
    for kind in CLASSES
    for number in range(2)
]


def values(score, rows=ROWS):
    actual = compute_values(CLASSES, rows, {"trained": score}, seed=0)
    return {(row["metric"], row["kind"]): (row["n"], row["value"]) for row in actual}


def test_correct_order_scores_1_and_wrong_order_0():
    score = np.asarray([{"bleached": 0.9, "common": 0.5, "specific": 0.1}[r[0]] for r in ROWS])
    for sign, expected in ((1, 1.0), (-1, 0.0)):
        actual = values(sign * score)
        assert actual["auroc", "bleached > common + specific"] == (3, expected)
        for pair in ("bleached > common", "bleached > specific", "common > specific"):
            assert actual["auroc", pair] == actual["in_order", pair] == (3, expected)
    assert values(score)["likelihood", "common"] == (3, pytest.approx(0.5))


def test_in_order_compares_claims_of_one_topic_only():
    rows = [("bleached", "a", "1"), ("specific", "a", "2")]
    rows += [("bleached", "b", "3"), ("specific", "b", "4"), ("specific", "b", "5")]
    actual = values(np.asarray([0.2, 0.1, 0.9, 0.8, 0.9]), rows)
    assert actual["in_order", "bleached > specific"] == (2, pytest.approx(2.5 / 3))
    assert actual["auroc", "bleached > specific"] == (2, pytest.approx(3.5 / 6))
    assert actual["likelihood", "common"][1] is None


def test_two_models_give_paired_differences():
    score = np.linspace(0, 1, len(ROWS))
    rows = compute_values(CLASSES, ROWS, {"trained": score, "untrained": score}, seed=0)
    differences = [row for row in rows if row.get("against") == "untrained"]
    assert {row["value"] for row in differences} == {0.0}
    assert all(row["ci95"] == [0.0, 0.0] for row in differences)


def test_the_likeliest_bleached_claim_counts(unli):
    model = Unli(str(unli), dtype="float32")
    bleached = ["{topic} is someone.", "{topic} lived."]
    rows = [("x", "Ann Lee", "Ann Lee wrote."), ("x", "Bob Ray", "Bob Ray wrote.")]
    actual = max_likelihoods(model, bleached, rows)
    for (_, topic, text), p in zip(rows, actual, strict=True):
        pairs = [(h.replace("{topic}", topic), text) for h in bleached]
        assert p == pytest.approx(max(model.likelihood(pairs)))


@pytest.fixture
def config(tmp_path, monkeypatch, unli):
    monkeypatch.chdir(tmp_path)
    documents = [
        Document(
            id=f"{topic}-{kind}",
            topic=topic,
            text="",
            kind=kind,
            claims=[Claim(id=f"c{n}", text=f"{topic} {kind} {n}.") for n in range(3)],
        )
        for topic in ("Ann", "Bob")
        for kind in ("bleached", "specific")
    ]
    write_jsonl("claims.jsonl", documents)
    write_jsonl("texts.jsonl", [{"topic": "Cy", "text": "Cy wrote. Cy sang. Cy wrote."}])
    engine = {"class_path": "eval.models.encoder.Unli", "init_args": {"checkpoint": str(unli)}}
    experiment = {
        "claims": {
            "bleached": {"file": "claims.jsonl", "kind": "bleached"},
            "specific": {"file": "claims.jsonl", "kind": "specific"},
            "texts": {"file": "texts.jsonl"},
        },
        "unli": engine,
        "control": engine,
        "bleached": ["{topic} is someone."],
    }
    (tmp_path / "config.yaml").write_text(json.dumps({"experiment": experiment}))
    return "config.yaml"


def test_the_command_writes_results(config, tmp_path, capsys):
    command = ["experiment", "informativeness", "--config", config]
    assert main([*command, "--output", "run"]) == 0
    assert "bleached > specific" in capsys.readouterr().out
    file = read_results(tmp_path / "run/results.json")
    assert file.experiment == "informativeness"
    assert "against untrained" in (tmp_path / "run/tables.md").read_text()
    assert len(list((tmp_path / "run/figures").glob("*.svg"))) == 1
    rows = {(r.variant, r.metric, r.kind, r.against): r for r in file.results}
    assert rows["trained", "auroc", "bleached > specific", None].n == 2
    assert rows["trained", "likelihood", "texts", None].n == 1
    assert rows["trained", "auroc", "bleached > specific + texts", None].ci95 is not None
    difference = rows["trained", "auroc", "bleached > specific", "untrained"]
    assert (difference.value, difference.ci95) == (0.0, (0.0, 0.0))
    assert rows["untrained", "auroc", "bleached > texts", None].value is not None
    first = (tmp_path / "run/results.json").read_bytes()
    assert main([*command, "--output", "run"]) == 0
    assert (tmp_path / "run/results.json").read_bytes() == first
