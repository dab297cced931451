"""train → export → reload, through the real entry point."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from scipy.special import expit, softmax
from scipy.stats import pearsonr
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from components.certificate import FAMILIES
from components.checkpoint import RELATIONS, read_component
from components.encoding import encode_completion, encode_pairs, encode_words, first_tokens
from components.measures import word_f1
from components.words import keep_targets
from eval.commands.component import judge
from eval.models.encoder import Entailment
from records import Generation, LssExample, RelationPair, UnliPair, UserError, read_records
from tests.train.conftest import relation_rows, unli_rows
from train.__main__ import main
from train.resume import read_state

TOKENIZER = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
CARD = {"README.md", "curves.png"}
CLASSIFIER = {"config.json", "model.safetensors", "component.json", *TOKENIZER, *CARD}
CLASSIFIER |= {"reliability.png"}
ADAPTER = {"adapter_config.json", "adapter_model.safetensors", "component.json", *TOKENIZER, *CARD}


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def forward(model: torch.nn.Module, encoding: list | dict, row: int) -> np.ndarray:
    row_inputs = (
        encoding[row][0] if isinstance(encoding, list) else {n: e[row] for n, e in encoding.items()}
    )
    inputs = {name: torch.tensor([ids]) for name, ids in row_inputs.items()}
    with torch.inference_mode():
        return model(**inputs).logits[0].numpy()


def test_unli_exports_what_it_measured(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    dev = write("dev", unli_rows() * 20)
    main(arguments("unli", "--model.lr", "0.003", "--trainer.max_steps", "60", "--data.dev", dev))

    folder = tmp_path / "checkpoints/run"
    assert files(folder) == CLASSIFIER
    assert files(folder.parent) == {"run"}  # no partial files
    assert all(path.stat().st_mode & 0o044 for path in folder.iterdir())  # others may read it
    component = read_component(folder, "unli")
    assert component.labels == ["probability"]
    assert component.seed == 1
    assert [(file.split, file.rows) for file in component.data] == [("train", 10), ("dev", 200)]
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = read_records(tmp_path / "unli.jsonl", UnliPair)
    encoding = encode_pairs(
        tokenizer, [(r.premise, r.hypothesis) for r in rows], component.max_length
    )
    logits = np.asarray([forward(model, encoding, row)[0] for row in range(len(rows))])
    predicted = expit(logits / component.temperature + component.shift)
    gold = [row.label for row in rows]
    assert component.metrics["pearson"] == pytest.approx(pearsonr(predicted, gold)[0], abs=1e-5)
    assert component.metrics["pearson"] > 0.8  # it has learnt its ten rows
    # The card shows the measures before and after calibration.
    brier = {"before": expit(logits), "after": predicted}
    card = (folder / "README.md").read_text(encoding="utf-8")
    for name, p in brier.items():
        (displayed,) = re.findall(rf"^\| {name} \| [\d.]+ \| ([\d.]+) \|$", card, re.MULTILINE)
        assert float(displayed) == pytest.approx(np.mean((p - gold) ** 2), abs=1e-4)


def test_relation_exports_what_it_measured(arguments: Callable, tmp_path: Path) -> None:
    main(arguments("relation", "--model.chunk_words", "4", "--trainer.max_steps", "3"))

    folder = tmp_path / "checkpoints/run"
    assert files(folder) == CLASSIFIER
    component = read_component(folder, "relation")
    assert component.labels == RELATIONS
    assert component.chunk_words == 4
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    correct = 0
    for record in read_records(tmp_path / "relation.jsonl", RelationPair):
        words = record.premise.split()
        windows = [" ".join(words[start : start + 4]) for start in range(0, len(words) - 2, 2)]
        pairs = [(window, record.hypothesis) for window in windows]
        encoding = encode_pairs(tokenizer, pairs, component.max_length)
        results = [forward(model, encoding, index) for index in range(len(pairs))]
        scaled = np.asarray(results) / component.temperature
        scaled[:, 0] += component.shift
        p = softmax(scaled, axis=1)
        correct += RELATIONS[p[p[:, 0].argmax()].argmax()] == record.label
    assert component.metrics["accuracy"] == pytest.approx(correct / 10)


def probe(family: str, bank: str, text: str, label: str) -> dict:
    claim = {"id": "c0", "text": text, "label": label}
    page = {"id": "p0", "title": "Ada", "text": "ada lovelace was born in london ."}
    fields = {"topic": "Ada", "text": text, "claims": [claim], "passages": [page]}
    return {"id": f"{family} {bank}", "probe": family, "bank": bank, **fields}


def test_a_card_has_the_certificate_of_a_relation_model(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    rows = [
        probe("true single", "plain", "ada was born in london .", "S"),
        probe("false negation", "unseen", "ada was not a poet .", "NS"),
    ]
    probes = ("--data.probes", write("probes", rows))
    main(arguments("relation", *probes, "--trainer.max_steps", "3"))

    folder = tmp_path / "checkpoints/run"
    card = (folder / "README.md").read_text(encoding="utf-8").partition("## Certificate")[2]
    (line,) = re.findall(r"The certificate ([^\n]+)", card)
    model = Entailment(str(folder), dtype="float32")
    accepted = {}
    for row in rows:
        (p,) = model.relations([(row["passages"][0]["text"], row["text"])])
        accepted[row["probe"]] = float(p.argmax() == 0)
        assert f"| {row['probe']} | {row['bank']} | 1 | {accepted[row['probe']]:.2f} |" in card
    # One statement of a family, whatever the model says of it, and none of the others
    assert line == f"fails: {', '.join(sorted(FAMILIES))}."

    with pytest.raises(UserError, match="only a relation model has a certificate"):
        main(arguments("unli", *probes, run="other"))


def test_lss_tagger_exports_what_it_measured(arguments: Callable, tmp_path: Path) -> None:
    main(arguments("lss", "--trainer.max_steps", "3"))

    folder = tmp_path / "checkpoints/run"
    assert files(folder) == CLASSIFIER
    component = read_component(folder, "lss")
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    scores = []
    for record in read_records(tmp_path / "lss.jsonl", LssExample):
        words, keeps, _ = keep_targets(record)
        encoding = encode_words(tokenizer, words, record.reference)
        logits = forward(model, encoding, 0)[:, 0]
        places = first_tokens(encoding, 0, len(words))
        keep = [expit(logits[place]) >= component.keep_threshold for place in places]
        scores.append(np.mean([word_f1(keep, gold) for gold in keeps]))
    assert component.metrics["word_f1"] == pytest.approx(np.mean(scores), abs=1e-6)
    assert component.metrics["subsequence_share"] == 1.0


def test_adversary_exports_its_adapter_alone(
    arguments: Callable, tmp_path: Path, tiny_llama: str
) -> None:
    options = ["--data.kinds", "[uninformative]", "--trainer.max_steps", "3"]
    main(arguments("adversary", *options))

    folder = tmp_path / "checkpoints/run"
    assert files(folder) == ADAPTER
    component = read_component(folder, "adversary")
    assert component.style == "info"
    assert [file.rows for file in component.data] == [8, 8]
    adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert adapter["target_modules"] == sorted(adapter["target_modules"])
    assert (adapter["r"], adapter["lora_alpha"]) == (8, 16)
    base = AutoModelForCausalLM.from_pretrained(tiny_llama)
    model = PeftModel.from_pretrained(base, folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    nll, count = 0.0, 0
    for record in read_records(tmp_path / "adversary.jsonl", Generation)[:8]:
        ids, head = encode_completion(
            tokenizer, f"Tell me a bio of {record.topic}.", record.text, component.chat
        )
        with torch.inference_mode():
            log_p = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        nll -= sum(float(log_p[t - 1, ids[t]]) for t in range(head, len(ids)))
        count += len(ids) - head
    assert component.metrics["perplexity"] == pytest.approx(np.exp(nll / count), rel=1e-4)
    frozen = torch.load(tmp_path / "runs/run/last.ckpt", weights_only=True)["state_dict"]
    assert all("lora_" in name for name in frozen)


def test_no_step_exports_the_untrained_control(
    arguments: Callable, tmp_path: Path, tiny_bert: str
) -> None:
    main(arguments("unli", "--trainer.max_steps", "0"))

    folder = tmp_path / "checkpoints/run"
    assert files(folder) == CLASSIFIER - {"curves.png"}  # no step, no curve
    assert "mse" in read_component(folder, "unli").metrics
    exported = AutoModelForSequenceClassification.from_pretrained(folder).bert.state_dict()
    base = AutoModelForSequenceClassification.from_pretrained(tiny_bert).bert.state_dict()
    assert all(torch.equal(exported[name], base[name]) for name in base)


def test_a_trial_of_a_few_batches_replaces_nothing(arguments: Callable, tmp_path: Path) -> None:
    main(arguments("unli"))
    made = {path: path.read_bytes() for path in tmp_path.glob("*/run/*") if path.is_file()}
    main(arguments("unli", "--trainer.fast_dev_run", "true"))
    assert (tmp_path / "checkpoints/run_fast_dev_run/component.json").is_file()
    assert {path: path.read_bytes() for path in tmp_path.glob("*/run/*") if path.is_file()} == made
    assert {path.name for path in made} >= {"last.ckpt", "best.ckpt", "component.json"}


def test_the_best_weights_are_exported_not_the_last(arguments: Callable, tmp_path: Path) -> None:
    # A learning rate that soon destroys the model: the best dev value is not the last.
    main(arguments("unli", "--model.lr", "0.3", "--trainer.max_steps", "12", "--model.monitor",
                   "dev/mse", "--trainer.val_check_interval", "1"))  # fmt: skip

    with open(tmp_path / "runs/run/metrics.csv", encoding="utf-8", newline="") as file:
        curve = [float(row["dev/mse"]) for row in csv.DictReader(file) if row["dev/mse"]]
    metrics = read_component(tmp_path / "checkpoints/run", "unli").metrics
    assert len(curve) == 12
    assert metrics["mse"] == pytest.approx(min(curve), abs=1e-6)
    assert min(curve) != curve[-1]


def test_same_seed_same_bytes(arguments: Callable, tmp_path: Path) -> None:
    main(arguments("lss", run="one"))
    main(arguments("lss", run="two"))

    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        first, two = (tmp_path / "checkpoints" / run / name for run in ("one", "two"))
        assert first.read_bytes() == two.read_bytes(), name


@pytest.mark.parametrize(
    ("interval", "end"),
    [
        ("3", ["--trainer.max_steps", "5"]),
        ("2", ["--trainer.max_steps", "-1", "--trainer.max_epochs", "1"]),  # of three steps
        ("0.7", ["--trainer.max_steps", "-1", "--trainer.max_epochs", "2",
                 "--trainer.check_val_every_n_epoch", "1"]),
    ],
)  # fmt: skip
def test_the_last_step_is_validated_too(
    interval: str, end: list[str], arguments: Callable, tmp_path: Path
) -> None:
    main(arguments("unli", "--trainer.val_check_interval", interval, *end))
    with open(tmp_path / "runs/run/metrics.csv", encoding="utf-8", newline="") as file:
        judged = [int(row["step"]) + 1 for row in csv.DictReader(file) if row["dev/mse"]]
    assert judged == {"3": [3, 5], "2": [2, 3], "0.7": [2, 5, 6]}[interval]
    assert read_state(tmp_path / "runs/run/last.ckpt")[0] == judged[-1]


def test_a_fit_of_ten_epochs_has_five_validations_and_too_few_dev_rows_to_calibrate(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    # Ten rows in three batches
    main(arguments("unli", "--trainer.max_steps", "30", "--trainer.val_check_interval", "30"))
    with open(tmp_path / "runs/run/metrics.csv", encoding="utf-8", newline="") as file:
        judged = [int(row["step"]) + 1 for row in csv.DictReader(file) if row["dev/mse"]]
    assert judged == [6, 12, 18, 24, 30]
    folder = tmp_path / "checkpoints/run"
    component = read_component(folder)
    assert (component.temperature, component.shift) == (1.0, 0.0)
    assert "unli: not calibrated: dev has 10 rows" in capsys.readouterr().out
    assert "At least 200 dev rows are needed." in (folder / "README.md").read_text("utf-8")


def test_an_interval_beyond_an_epoch_is_a_one_line_error(arguments: Callable) -> None:
    interval = ["--trainer.val_check_interval", "5", "--trainer.check_val_every_n_epoch", "1"]
    with pytest.raises(UserError, match=r"val_check_interval.*check_val_every_n_epoch=None"):
        main(arguments("unli", *interval))


def test_columns_of_another_name_are_mapped_and_held_out_rows_are_written(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    names = {"premise": "context", "hypothesis": "answer", "label": "label"}
    rows = [{names[name]: value for name, value in row.items()} for row in relation_rows()]
    options = ["--data.train", write("mine", rows), "--data.dev", "0.6"]
    options += ["--data.fields", "{premise: context, hypothesis: answer}"]
    main(arguments("relation", *options, "--seed_everything", "3"))
    folder, held_out = str(tmp_path / "checkpoints/run"), tmp_path / "runs/run/held_out.jsonl"
    component = read_component(folder)
    dev = read_records(held_out, RelationPair)
    assert [len(dev)] == [file.rows for file in component.data if file.split == "dev"] == [5]

    compared = judge(folder, str(held_out), against=folder)
    assert (compared["n"], compared["metrics"]["brier_difference"]["value"]) == (5, 0.0)
    main(arguments("relation", run="whole"))
    with pytest.raises(UserError, match=r"checkpoints/whole was trained on this file"):
        judge(folder, str(tmp_path / "relation.jsonl"), against=str(tmp_path / "checkpoints/whole"))


def test_two_class_dev_is_monitored_by_auroc(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    rows = [
        {
            "premise": "ada was a poet .",
            "hypothesis": f"she was {word} .",
            "label": ["entailment", "not_entailment"][index % 2],
        }
        for index, word in enumerate(["a poet", "born", "a person", "early", "later", "father"])
    ]
    main(arguments("relation", "--data.dev", write("two", rows)))

    component = read_component(tmp_path / "checkpoints/run", "relation")
    assert set(component.metrics) == {"entailment_auroc", "brier", "ece"}
    assert (tmp_path / "runs/run/best.ckpt").is_file()


def test_what_was_trained_in_bf16_is_judged_and_exported_in_fp32(
    arguments: Callable, tmp_path: Path
) -> None:
    main(arguments("unli", "--trainer.precision", "bf16-true"))
    folder, data = tmp_path / "checkpoints/run", str(tmp_path / "unli.jsonl")
    assert {w.dtype for w in load_file(folder / "model.safetensors").values()} == {torch.float32}
    metrics = judge(str(folder), data)["metrics"]
    for name, value in read_component(folder).metrics.items():
        assert metrics[name]["value"] == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize("component", ["unli", "relation"])
def test_predictions_are_rows_that_train_another_model(
    component: str, arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    main(arguments(component))
    pair = {"premise": "ada was a poet .", "hypothesis": "she was early ."}
    columns = {"source": "wice", "weight": 0.5, "group": "Ada", "documents": ["a page"]}
    pairs = [pair | columns, pair, pair | {"hypothesis": "ada was born ."}]
    rows = [pairs[0], pairs[1] | {"label": 0.5}, pairs[2] | {"label": "yes"}]
    predictions = tmp_path / "predictions.jsonl"
    folder = str(tmp_path / "checkpoints/run")
    result = judge(folder, write("unlabelled", rows), predictions=str(predictions))
    assert (result["n"], result["metrics"]) == (3, {})
    written = [json.loads(line) for line in predictions.read_text(encoding="utf-8").splitlines()]
    labels = [row.pop("label") for row in written]
    assert written == pairs
    assert labels[0] == pytest.approx(labels[1], abs=1e-5)
    with pytest.raises(UserError, match=r"label: field required"):
        judge(folder, write("unlabelled", rows))

    main(arguments(component, "--data.train", str(predictions), run="pupil"))
    (data, *_) = read_component(tmp_path / "checkpoints/pupil").data
    assert (data.path, data.rows) == ("predictions.jsonl", 3)
