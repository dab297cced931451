"""LSS and LSS* by generation: targets, balancing, loss, and train → export → judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch.callbacks import Callback

from components.checkpoint import read_component
from eval.commands.component import judge
from records import LssExample, UserError
from tests.train.conftest import lss_rows
from train.__main__ import main
from train.checks import Diverged
from train.lss_seq2seq import LssSeq2Seq

ROOT = Path(__file__).parents[2]
DECODING = '{"num_beams": 2, "max_new_tokens": 16}'
CLAIM = "ada lovelace was a mathematician and poet born in paris ."


class Scale(Callback):
    """Multiplies the weights of the output layer when training ends, before the export."""

    def __init__(self, factor: float):
        self.factor = factor

    def on_train_end(self, trainer, pl_module) -> None:
        (trainer.default_root_dir / Path("best.ckpt")).unlink()
        pl_module.model.lm_head.weight.data *= self.factor


@pytest.fixture
def run(arguments: Callable, tiny_t5: str) -> Callable[..., list[str]]:
    """The command line of a small run."""

    def _run(*more: str, **options: str) -> list[str]:
        settings = arguments("lss", "--model.decoding", DECODING, *more, **options)
        settings[settings.index("--model") + 1] = "train.lss_seq2seq.LssSeq2Seq"
        settings[settings.index("--model.base") + 1] = tiny_t5
        return settings

    return _run


def example(*lss: str, claim: str = CLAIM, **more: object) -> LssExample:
    annotations = [{"lss": text} for text in lss]
    return LssExample(reference="she was a poet .", claim=claim, annotations=annotations, **more)


def text_of(module: LssSeq2Seq, ids: list[int]) -> str:
    return module.tokenizer.decode(ids, skip_special_tokens=True)


def test_exports_what_eval_measures(run: Callable, tmp_path: Path) -> None:
    main(run("--trainer.max_steps", "12"))

    folder = tmp_path / "checkpoints/run"
    component = read_component(folder, "lss")
    assert (component.component, component.architecture) == ("lss", "seq2seq")
    assert component.decoding == {"num_beams": 2, "max_new_tokens": 16, "constrained": True}
    assert "{reference}" in component.prompt_template
    assert component.metrics["subsequence_share"] == 1.0
    assert component.metrics["perplexity"] < 100
    result = judge(str(folder), str(tmp_path / "lss.jsonl"))
    assert (result["n"], result["failed"]) == (10, 0)
    for name, measure in result["metrics"].items():
        assert component.metrics.get(name) == pytest.approx(measure["value"], abs=1e-9), name
    assert "trained from random weights" not in (folder / "README.md").read_text(encoding="utf-8")


def test_it_learns(run: Callable, tmp_path: Path, write: Callable) -> None:
    rows = [row | {"annotations": row["annotations"][:1]} for row in lss_rows()[:5]] * 2
    file = write("one", rows)
    options = ["--data.train", file, "--data.dev", file, "--trainer.max_steps", "80"]
    options += ["--trainer.val_check_interval", "40"]
    main(run(*options))
    metrics = read_component(tmp_path / "checkpoints/run").metrics
    assert metrics["perplexity"] < 1.3
    assert metrics["word_f1"] > 0.9


def test_lss_star_is_free(run: Callable, tmp_path: Path, write: Callable) -> None:
    rows = lss_rows()
    for row in rows:
        row["annotations"][0]["lss_star"] = "she is a poet and a person"
    file = write("star", rows)
    data = ["--data.train", file, "--data.dev", file, "--trainer.max_steps", "60"]
    main(run("--model.star", "true", "--trainer.val_check_interval", "60", *data))

    component = read_component(tmp_path / "checkpoints/run", "lss")
    assert component.component == "lss_star"
    assert component.decoding["constrained"] is False
    assert component.metrics["word_f1"] > 0.9
    assert component.metrics["subsequence_share"] < 0.5
    result = judge(str(tmp_path / "checkpoints/run"), file)
    assert result["metrics"]["bleu_best"]["value"] == pytest.approx(component.metrics["bleu_best"])
    with pytest.raises(UserError, match="no annotation has an lss_star"):
        judge(str(tmp_path / "checkpoints/run"), write("plain", lss_rows()))


def test_a_diverged_model_is_not_exported_over_a_checkpoint(run: Callable, tmp_path: Path) -> None:
    main(run())
    exported = tmp_path / "checkpoints/run/model.safetensors"
    before = exported.read_bytes()
    callback = {"class_path": "tests.train.test_lss_seq2seq.Scale", "init_args": {"factor": 1e39}}
    options = ["--trainer.callbacks", json.dumps([callback]), "--trainer.val_check_interval", "9"]
    options += ["--trainer.max_steps", "4"]
    with pytest.raises(Diverged, match="diverged: 20 of 20 dev outputs") as caught:
        main(run(*options, "--overwrite"))
    assert caught.value.exit_code == 1
    assert exported.read_bytes() == before


def test_the_optimizer_of_one_gpu_takes_steps(run: Callable, tmp_path: Path) -> None:
    config = yaml.safe_load((ROOT / "configs/train/paper/lss_t5_one_gpu.yaml").read_text("utf-8"))
    config = config["model"]["init_args"]
    options = ["--model.optimizer", json.dumps(config["optimizer"])]
    options += ["--model.lr", str(config["lr"])]
    main(run("--trainer.max_steps", "4", *options))
    assert read_component(tmp_path / "checkpoints/run", "lss").metrics["perplexity"] > 1


def test_every_annotation_is_a_target_and_every_claim_counts_once(tiny_t5: str) -> None:
    module = LssSeq2Seq(tiny_t5, max_length=64)
    records = [
        example("ada was a poet", "ada was a poet", "ada lovelace was"),
        example("something else entirely", "she slept"),  # no subsequence of the claim
        example(""),
    ]
    items = module.encode(records, train=True)
    targets = [(item.row, text_of(module, item.target.ids), item.weight) for item in items]
    assert targets == [
        (0, "ada was a poet", pytest.approx(2 / 3)),
        (0, "ada lovelace was", pytest.approx(1 / 3)),
        (2, "", 1.0),
    ]
    assert [item.target.decode for item in items] == [True, False, True]
    judged = module.encode(records, train=False)
    assert [(item.row, item.weight) for item in judged][2:] == [(1, 0.0), (2, 1.0)]
    with pytest.raises(UserError, match="no annotation has"):
        module.encode(records[1:2], train=True)
    published = LssSeq2Seq(tiny_t5, max_length=64, decoding={"constrained": False})
    # The paper's T5 is not constrained: both annotations are targets
    assert len(published.encode(records[1:2], train=True)) == 2


def test_cut_references_are_counted_and_no_claim_is_cut(
    tiny_t5: str, capsys: pytest.CaptureFixture
) -> None:
    module = LssSeq2Seq(tiny_t5, max_length=40)
    record = example("ada was a poet")
    short = module.encode([record], train=True)[0]
    assert "is cut" not in capsys.readouterr().out
    long = record.model_copy(update={"reference": "paris " * 100 + "{claim}"})
    ids = module.encode([long], train=True)[0].inputs["input_ids"]
    text = text_of(module, ids)
    cut = "lss: the premise or reference of 1 of 1 rows does not fit into 40 tokens and is cut"
    assert cut in capsys.readouterr().out
    assert len(ids) == 40
    assert CLAIM in text
    assert text.endswith(text_of(module, short.inputs["input_ids"])[-40:])
    with pytest.raises(UserError, match=r"raise --model\.max_length"):
        LssSeq2Seq(tiny_t5, max_length=12).encode([record], train=False)


def test_balance(tiny_t5: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "3")
    records = [example(CLAIM)] * 7 + [example("ada was a poet"), example("")]

    def rows(balance: str, eliminated: int = 0) -> list[int]:
        module = LssSeq2Seq(tiny_t5, balance=balance, eliminated=eliminated)
        return [item.row for item in module.encode(records, train=True)]

    assert rows("none") == list(range(9))
    dropped = rows("drop")
    assert len(dropped) == 4
    assert dropped[2:] == [7, 8]
    assert dropped == rows("drop")
    # Section 4.2 removes a fixed number.
    assert len(rows("drop", 3)) == 6
    assert rows("drop", 7) == [7, 8]
    with pytest.raises(UserError, match="cannot remove 8 rows: only 7 are the whole claim"):
        rows("drop", 8)
    # A.5's: all, a third and nothing of the claim are three tenths, each as full as the fullest.
    assert rows("repeat") == [*range(7), *[7] * 7, *[8] * 7]
    # Dev is judged as it is.
    items = LssSeq2Seq(tiny_t5, balance="drop").encode(records, train=False)
    assert len(items) == 9


def test_the_loss_is_the_weighted_mean_over_target_tokens(tiny_t5: str) -> None:
    module = LssSeq2Seq(tiny_t5, max_length=64)
    module.configure_model()
    module.train()
    module.model.eval()  # no dropout
    items = module.encode([example("ada was", "ada was a poet"), example("")], train=True)
    loss, outputs = module.model_step(module.collate(items, [0, 1, 2]))

    total, count = 0.0, 0.0
    for item, output in zip(items, outputs, strict=True):
        labels = torch.tensor([item.target.ids])
        with torch.inference_mode():
            ids = torch.tensor([item.inputs["input_ids"]])
            log_p = module.model(input_ids=ids, labels=labels).logits[0].log_softmax(-1)
        nll = -float(log_p[range(labels.shape[1]), labels[0]].sum())
        assert output.tolist()[:2] == [pytest.approx(nll, rel=1e-5), labels.shape[1]]
        assert len(output) == 3  # nothing is decoded in training
        total += item.weight * nll
        count += item.weight * labels.shape[1]
    assert float(loss.mean.detach()) == pytest.approx(total / count, rel=1e-5)
