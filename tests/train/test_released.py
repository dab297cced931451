"""From the files that ``fetch`` brings to a checkpoint, by the papers' configurations.

The files have the authors' form and a few rows of our own; bases are tiny and random, and a
training takes two steps.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from components.checkpoint import Component, read_component
from data_builders import __main__ as data_builders
from records.formats.lss import QUESTIONS, TABLE
from tests.train.conftest import HYPOTHESES, lss_rows, relation_rows, unli_rows
from train.__main__ import main

CONFIGS = Path(__file__).parents[2] / "configs"
STEPS = {"max_steps": 2, "val_check_interval": 1, "accelerator": "cpu", "devices": 1}
STEPS |= {"precision": "32-true", "enable_progress_bar": False, "enable_model_summary": False}
SAMPLES = Path("downloads/adversarial_factuality/data_release/generated_samples")
FEVER = "downloads/fever/data/vanilla_wiki_data/unsorted_vanilla_batched_wiki_data"
LSS_ONLY = ["--model.decoding", '{"num_beams": 2, "max_new_tokens": 16}', "--model.eliminated", "0"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "disabled")


def write_rows(path: str | Path, rows: list[dict]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def build(name: str, config: str, *options: str) -> None:
    path = str(CONFIGS / "data/paper" / f"{config}.yaml")
    assert data_builders.main([name, "--config", path, *options]) == 0


def fit(config: str, base: str, *options: str) -> Component:
    """Fit by a configuration, which names the files; the checkpoint has the name ``tiny``."""
    steps = [part for name, value in STEPS.items() for part in (f"--trainer.{name}", str(value))]
    paths = ["--config", str(CONFIGS / "train/paper" / f"{config}.yaml"), "--export_to", "tiny"]
    main(["fit", *paths, *steps, "--model.base", base, "--data.batch_size", "4", *options])
    return read_component("tiny")


@pytest.mark.parametrize("style", ["info", "repetitive"])
@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_adversary_of_released_texts(
    name: str, style: str, tiny_gpt2: str, tiny_llama: str
) -> None:
    for split, number in (("train", 5), ("dev", 3)):
        texts = [f"{text} {HYPOTHESES[0]}" for text in HYPOTHESES[:number]]
        rows = [{"topic": f"ada {split}", "output": {"raw": f" {t}", "parsed": t}} for t in texts]
        write_rows(SAMPLES / f"sampled_{split}-{style}.jsonl", rows)
    options = ["--model.style", style, "--model.max_length", "48"]
    if style == "repetitive":
        for split in ("train", "dev"):
            options += [f"--data.{split}", str(SAMPLES / f"sampled_{split}-repetitive.jsonl")]
    if name == "mistral":
        options += ["--model.quantize", "null"]  # 8 bits need a GPU
    component = fit(f"adversary_{name}", tiny_gpt2 if name == "gpt2" else tiny_llama, *options)
    assert (component.style, component.metrics["perplexity"] > 1) == (style, True)


def write_relation_sets() -> None:
    Path(FEVER).mkdir(parents=True)
    with open(f"{FEVER}/split_wiki_data_0.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "verifiable", "label", "claim", "evidence"])
        for number in range(60):
            subject = f"Ada{number} was born"
            table.writerow([number, "V", "SUPPORTS", f"{subject}.", [f"{subject} in {number}."]])
            table.writerow([99 + number, "V", "REFUTES", f"{subject} late.", [f"{subject} early."]])
            table.writerow([999 + number, "N", "NOT ENOUGH INFO", f"{subject} in rain.", "[]"])
    for folder, name in (
        ("1_Baseline", "baseline"),
        ("2_Ling_on_side", "LotS"),
        ("3_Ling_in_loop", "LitL"),
    ):
        rows = [row | {"premise": f"{name} {row['premise']}"} for row in relation_rows()]
        place = f"downloads/ling_nli/NLI_data/{folder}_protocol/train_round5_{name}_combined.jsonl"
        write_rows(place, rows)
    for split in ("train", "dev", "test"):
        page = [f"{split} sentence {number} of the page." for number in range(30)]
        row = {"claim": "Ada wrote.", "evidence": page, "meta": {"id": split}}
        row |= {"label": "supported", "supporting_sentences": [[3, 4]]}
        write_rows(f"downloads/wice/claim_{split}.jsonl", [row])


@pytest.mark.parametrize("name", ["deberta", "albert", "roberta"])
def test_relation_model_of_fetched_sets(name: str, tiny_bert: str) -> None:
    write_relation_sets()
    build("pairs", "pairs", "--shares", "[4, 1, 0]")
    component = fit(f"relation_{name}", tiny_bert, "--model.max_length", "48")
    assert {file.path for file in component.data} == {"relation_train.jsonl", "relation_dev.jsonl"}


def test_unli_of_rows_of_the_hub(tiny_bert: str) -> None:
    for split, start in (("train", 0), ("dev", 5)):
        rows = [row | {"premise": f"{split} {row['premise']}"} for row in unli_rows()[start:]]
        write_rows(f"{split}.jsonl", rows)
        options = ["--target", "unli", "--sources", f"[{{file: {split}.jsonl}}]", "--exclude", "[]"]
        shares, output = (
            ("[1, 0, 0]", "data/unli") if start == 0 else ("[0, 1, 0]", "data/unli_dev")
        )
        build("pairs", "pairs", *options, "--shares", shares, "--output", output)
    component = fit("unli", tiny_bert, "--model.max_length", "48")
    assert component.component == "unli"


@pytest.fixture
def released_lss() -> None:
    """``LSS_train.csv`` with the columns of ``LSS_test.csv``, 26 pairs, and what it is built to."""
    path = Path("downloads/lss_eval/Data/LSS_train.csv")
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([TABLE[0], "task_id", *TABLE[1:], *QUESTIONS])
        for number in range(26):
            row = lss_rows()[number % 10]
            lss = row["annotations"][0]["lss"]
            claim, reference = row["claim"], f"page {number} {row['reference']}"
            table.writerow(
                ["a", number, claim, reference, "", lss, lss, "", f"{1 + number % 5} - x"]
            )
    build("lss", "lss")


@pytest.mark.parametrize("name", ["lss_t5", "lss_star_t5", "lss_t5_one_gpu"])
def test_t5_of_the_released_annotations(name: str, tiny_t5: str, released_lss: None) -> None:
    options = ["--trainer.strategy", "auto", "--trainer.accumulate_grad_batches", "1"]
    component = fit(name, tiny_t5, *options, *LSS_ONLY, "--model.max_length", "48")
    assert component.component == ("lss_star" if "star" in name else "lss")


def test_super_version_and_tagger_of_the_released_annotations(
    tiny_t5: str, tiny_bert: str, released_lss: None
) -> None:
    options = ["--trainer.strategy", "auto", "--model.balance", "repeat", *LSS_ONLY]
    component = fit("lss_t5", tiny_t5, *options, "--model.max_length", "48")
    assert component.architecture == "seq2seq"
    options = ["--model.max_length", "48", "--overwrite"]
    assert fit("lss_tagger", tiny_bert, *options).architecture == "token_classifier"
