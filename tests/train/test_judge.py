"""A checkpoint folder is judged as its fit judged it, and refused when it is not whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from components.checkpoint import read_component
from records import UserError
from train.__main__ import main
from train.export import TOLERANCE

SAME = f"measures equal those of component.json (within {TOLERANCE})"
QUIET = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]


def judge(folder: Path, *options: str, command: str = "validate") -> None:
    runs = str(folder.parent.parent / "judged")
    main([command, "--ckpt_path", str(folder), "--runs", runs, *QUIET, *options])


def told(out: str, split: str) -> dict[str, float]:
    """The measures that a command printed of a split."""
    (line,) = [line for line in out.splitlines() if line.startswith(f"{split}: ")]
    words = line.removeprefix(f"{split}: ").split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


@pytest.fixture
def fitted(arguments: Callable, tmp_path: Path) -> Callable[..., Path]:
    """Train a component for six steps and return its folder."""

    def _fitted(component: str, *options: str) -> Path:
        main(arguments(component, *options))
        return tmp_path / "checkpoints/run"

    return _fitted


@pytest.mark.parametrize(
    ("component", "options"),
    [
        ("unli", ["--data.eval_batch_size", "3"]),
        ("relation", ["--model.chunk_words", "4"]),
        ("lss", []),
        ("adversary", ["--data.kinds", "[uninformative]", "--data.dev_rows", "5"]),
    ],
)
def test_the_exported_measures_come_again(
    fitted: Callable,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    component: str,
    options: list[str],
) -> None:
    folder = fitted(component, *options, "--seed_everything", "7")
    exported = capsys.readouterr().out
    data = str(tmp_path / f"{component}.jsonl")
    judge(folder, "--data.dev", data)

    said = pytest.approx(told(exported, "dev"), rel=TOLERANCE, abs=2 * TOLERANCE)
    out = capsys.readouterr().out
    assert told(out, "dev") == said
    assert SAME in out

    if "--data.dev_rows" not in options:  # test judges all rows of its files
        judge(folder, "--data.test", data, command="test")
        out = capsys.readouterr().out
        assert told(out, "test") == said
        assert SAME in out


def test_rows_that_were_held_back_are_found_again(
    fitted: Callable, write: Callable, capsys: pytest.CaptureFixture
) -> None:
    labels = ["entailment", "neutral", "contradiction"]
    words = ["a", "poet", "born", "in", "london", "paris", "early", "late"]
    rows = [  # groups of 3 to 10 rows, so that another draw of groups has another number of rows
        {
            "premise": f"ada was {word} .",
            "hypothesis": f"she {words[i % 8]} .",
            "label": labels[i % 3],
        }
        for size, word in enumerate(words, 3)
        for i in range(size)
    ]
    data = write("groups", rows)
    folder = fitted("relation", "--data.train", data, "--data.dev", "0.4", "--seed_everything", "3")
    assert read_component(folder).evaluation["dev"] == 0.4
    capsys.readouterr()
    config = folder.parent / "config.yaml"
    config.write_text("seed_everything: 1\n", encoding="utf-8")
    judge(folder, "--data.train", data, "--config", str(config))
    assert SAME in capsys.readouterr().out
    judge(folder, "--data.train", data, "--seed_everything", "2")
    assert "rows of the same files, this run of" in capsys.readouterr().out


def test_other_data_is_not_compared(
    fitted: Callable, write: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = fitted("unli")
    temperature = read_component(folder).temperature
    rows = (tmp_path / "unli.jsonl").read_text(encoding="utf-8").splitlines()
    other = write("other", [json.loads(row) for row in rows[:6]])
    capsys.readouterr()
    judge(folder, "--data.dev", other)
    out = capsys.readouterr().out
    assert "dev: pearson" in out
    assert "component.json" not in out
    assert read_component(folder).temperature == temperature
    # Its calibration holds: validate fits none on these rows, as test never does.
    dev = told(out, "dev")
    judge(folder, "--data.test", other, command="test")
    assert told(capsys.readouterr().out, "test") == pytest.approx(dev, abs=2 * TOLERANCE)

    judge(folder, "--data.test", other, command="predict")
    predicted = (tmp_path / "judged/run/predictions.jsonl").read_text(encoding="utf-8")
    assert len(predicted.splitlines()) == 6


def test_a_configuration_that_disagrees(
    fitted: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = fitted("unli")
    data = str(tmp_path / "unli.jsonl")
    config = tmp_path / "config.yaml"
    text = "model: {{class_path: {}, init_args: {{max_length: 32}}}}\n"
    config.write_text(text.format("train.unli.Unli"), encoding="utf-8")
    capsys.readouterr()
    judge(folder, "--config", str(config), "--data.dev", data)
    said = capsys.readouterr()
    assert "using its settings: max_length is 48, not 32" in said.err
    assert SAME in said.out

    config.write_text(text.format("train.relation.Relation"), encoding="utf-8")
    with pytest.raises(UserError, match=r"got train\.relation\.Relation"):
        judge(folder, "--config", str(config), "--data.dev", data)


def test_a_relation_model_made_elsewhere_keeps_its_class_order(
    fitted: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = fitted("relation", "--model.chunk_words", "null")
    order = [2, 0, 1]
    labels = [read_component(folder).labels[place] for place in order]
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    model.classifier.weight.data = model.classifier.weight.data[order]
    model.classifier.bias.data = model.classifier.bias.data[order]
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: place for place, label in enumerate(labels)}
    model.save_pretrained(folder)
    change(folder / "component.json", labels=labels)
    capsys.readouterr()
    judge(folder, "--data.dev", str(tmp_path / "relation.jsonl"))
    assert SAME in capsys.readouterr().out


def change(path: Path, **fields: object) -> None:
    whole = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(whole | fields), encoding="utf-8")


@pytest.mark.parametrize(
    ("component", "file", "gone", "strange"),
    [
        ("unli", "model.safetensors", "classifier.weight", "encoder.layer.7.bias"),
        ("lss", "model.safetensors", "bert.encoder.layer.0.output.dense.bias", "adapter.weight"),
        ("adversary", "adapter_model.safetensors", "q_proj.lora_A.weight", "base_model.x.lora_A"),
    ],
)
def test_weights_must_be_whole(
    fitted: Callable, tmp_path: Path, component: str, file: str, gone: str, strange: str
) -> None:
    folder = fitted(component, "--trainer.max_steps", "0")
    data = str(tmp_path / f"{component}.jsonl")
    weights = load_file(folder / file)
    lost = next(name for name in weights if name.endswith(gone))
    rest = {name: weight for name, weight in weights.items() if name != lost}
    save_file(rest, folder / file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=rf"lack .*{gone.split('.')[-2]}.*export the checkpoint"):
        judge(folder, "--data.dev", data)

    save_file(weights | {strange: weights[lost].clone()}, folder / file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=f"have unknown .*{strange}"):
        judge(folder, "--data.dev", data)


def test_an_adapter_needs_the_weights_that_it_was_trained_on(
    fitted: Callable, tiny_llama: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site/tinybase"
    shutil.copytree(tiny_llama, package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    base = ["--model.base", "package:tinybase/model", "--trainer.max_steps", "0"]
    folder = fitted("adversary", *base)
    data = str(tmp_path / "adversary.jsonl")
    judge(folder, "--data.dev", data)
    weights = load_file(package / "model/model.safetensors")
    weights = {name: 2 * weight for name, weight in weights.items()}
    save_file(weights, package / "model/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="trained on other weights of package:tinybase/model"):
        judge(folder, "--data.dev", data)
