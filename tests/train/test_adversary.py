"""The adversary: what it learns from, tokenizers that lack something, and loading in few bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel

from components.checkpoint import read_component
from eval.commands.component import judge
from eval.models.causal import CausalLM
from records import Generation, read_records
from train.__main__ import main
from train.adversary import Adversary, round_frozen_layers

SHORT = Generation(topic="ada", text="she is a person .")
LONG = Generation(topic="ada", text="she was a poet and she wrote the first program in london .")


def make(base: str, **options: object) -> Adversary:
    torch.manual_seed(0)
    module = Adversary(base=base, **{"max_length": 48, "target_modules": "all-linear", **options})
    module.configure_model()
    for name, weight in module.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return module.eval()


@pytest.fixture(params=["chat", "plain"])
def adversary(request: pytest.FixtureRequest, tiny_llama: str, tiny_gpt2: str) -> Adversary:
    chat = request.param == "chat"
    return make(tiny_llama if chat else tiny_gpt2, chat=chat)


def batch_of(module: Adversary, *records: Generation) -> dict:
    return module.collate(module.encode(records, train=True), range(len(records)))


def test_the_loss_is_on_the_completion_alone(adversary: Adversary) -> None:
    batch = batch_of(adversary, SHORT, LONG)
    is_target = batch["target"] != -100
    learnt = [
        adversary.tokenizer.convert_ids_to_tokens(row[keep].tolist())
        for row, keep in zip(batch["target"], is_target, strict=True)
    ]
    assert [" ".join(tokens) for tokens in learnt] == [
        f"{record.text} [SEP]" for record in (SHORT, LONG)
    ]
    # The plain definition, over logits of all positions.
    with torch.inference_mode():
        log_p = adversary.model(**batch["inputs"]).logits.float().log_softmax(-1)
        target = batch["target"][:, 1:].clamp(min=0)
        nll = -log_p[:, :-1].gather(2, target[..., None])[..., 0] * is_target[:, 1:]
    loss, outputs = adversary.model_step(batch)
    assert loss.mean.item() == pytest.approx((nll.sum() / is_target.sum()).item(), rel=1e-5)
    assert [total for total, _ in outputs] == pytest.approx(nll.sum(dim=1).tolist(), rel=1e-5)
    assert [count for _, count in outputs] == [6, 14]


def test_released_loss_is_of_prompt_and_text_without_the_end(tiny_gpt2: str) -> None:
    module = make(tiny_gpt2, chat=False, released_loss=True)
    prompt, texts = module.texts_of(SHORT)
    ids = module.tokenizer(f"{prompt} {texts['input_ids']}")["input_ids"]
    (item,) = module.encode([SHORT], train=True)
    assert item.inputs["input_ids"] == ids
    _, ((_, count),) = module.model_step(batch_of(module, SHORT))
    assert count == len(ids) - 1


def test_gradients_equal_those_of_all_logits(adversary: Adversary) -> None:
    batch = batch_of(adversary, SHORT, LONG)
    weights = [weight for weight in adversary.parameters() if weight.requires_grad]
    ours = torch.autograd.grad(adversary.model_step(batch)[0].mean, weights)
    logits = adversary.model(**batch["inputs"]).logits[:, :-1].float()
    whole = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), batch["target"][:, 1:], ignore_index=-100
    )
    for gradient, theirs in zip(ours, torch.autograd.grad(whole, weights), strict=True):
        assert torch.allclose(gradient, theirs, atol=1e-6)
    assert any(gradient.abs().max() > 0 for gradient in ours)


def test_padding_is_never_learnt(adversary: Adversary) -> None:
    _, together = adversary.model_step(batch_of(adversary, SHORT, LONG))
    _, alone = adversary.model_step(batch_of(adversary, SHORT))
    assert together[0][0] == pytest.approx(alone[0][0], rel=1e-5)
    padded = batch_of(adversary, SHORT, LONG)
    padding = padded["inputs"]["attention_mask"] == 0
    assert padding.any()
    assert (padded["target"][padding] == -100).all()
    padded["inputs"]["input_ids"][padding] = 7  # any padding id
    _, other = adversary.model_step(padded)
    assert other[0][0] == pytest.approx(together[0][0], rel=1e-5)


def test_a_text_that_is_cut_learns_no_end(
    adversary: Adversary, capsys: pytest.CaptureFixture
) -> None:
    whole = adversary.encode([LONG], train=True)[0]
    end = adversary.tokenizer.eos_token_id
    assert whole.inputs["input_ids"][-1] == end
    for length in (whole.length - 1, whole.length - 4):
        adversary.max_length = length
        (item,) = adversary.encode([LONG], train=True)
        assert item.length == length
        target = adversary.collate([item], [0])["target"]
        assert end not in target[0, item.target :].tolist()
        assert "1 of 1 texts truncated" in capsys.readouterr().out


def test_bytes_are_those_of_what_is_left_of_a_text(adversary: Adversary) -> None:
    text = Generation(topic="ada", text="she was a poet in paris .")
    whole = adversary.encode([text], train=False)
    assert adversary._bytes([text], whole).tolist() == [len(text.text)]
    adversary.max_length = whole[0].length - 4  # without "in paris ." and the end
    cut = adversary.encode([text], train=False)
    assert adversary._bytes([text], cut).tolist() == [len("she was a poet")]


def test_gpt2_is_judged_by_eval_as_it_was_by_train(
    arguments: Callable, tmp_path: Path, tiny_gpt2: str
) -> None:
    options = ["--model.base", tiny_gpt2, "--model.chat", "false", "--trainer.max_steps", "3"]
    main(arguments("adversary", *options))

    folder = tmp_path / "checkpoints/run"
    engine = CausalLM(folder, dtype="float32")
    rows = read_records(tmp_path / "adversary.jsonl", Generation)
    result = engine.log_likelihoods([(engine.prompt_for(row.topic), row.text) for row in rows])
    nll = sum(row.nll for row in result) / sum(row.tokens for row in result)
    perplexity = engine.component.metrics["perplexity"]
    assert perplexity == pytest.approx(torch.tensor(nll).exp().item(), rel=1e-5)
    assert engine.sample(["ada"], n=1, max_new_tokens=4)


def test_released_perplexity_is_the_same_in_train_and_eval(
    arguments: Callable, tmp_path: Path, tiny_gpt2: str
) -> None:
    options = ["--model.base", tiny_gpt2, "--model.chat", "false", "--trainer.max_steps", "3"]
    main(arguments("adversary", *options, "--model.released_loss", "true"))
    folder, rows = tmp_path / "checkpoints/run", str(tmp_path / "adversary.jsonl")
    trained = read_component(folder).metrics["perplexity"]
    judged = judge(str(folder), rows, released_loss=True)["metrics"]["perplexity"]["value"]
    assert judged == pytest.approx(trained, rel=1e-5)
    completions = judge(str(folder), rows)["metrics"]["perplexity"]["value"]
    assert completions != pytest.approx(trained, rel=1e-3)


def test_frozen_layers_in_bf16_train_the_same_adapter(
    arguments: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded: list[str] = []

    def rounding(model: PeftModel) -> None:
        round_frozen_layers(model)
        kinds = {name: weight.dtype for name, weight in model.named_parameters()}
        rounded.extend(name for name, kind in kinds.items() if kind == torch.bfloat16)

    options = ["--trainer.precision", "bf16-mixed", "--data.eval_batch_size", "2"]
    for run, step in (("rounded", rounding), ("whole", lambda model: None)):
        monkeypatch.setattr("train.adversary.round_frozen_layers", step)
        main(arguments("adversary", *options, run=run))
    assert len(rounded) == 14  # seven layers of two blocks
    assert all("base_layer" in name for name in rounded)
    folders = [tmp_path / "checkpoints" / run for run in ("rounded", "whole")]
    ours, theirs = [(folder / "adapter_model.safetensors").read_bytes() for folder in folders]
    assert ours == theirs
    measured, expected = [read_component(folder).metrics for folder in folders]
    assert measured == expected


@pytest.mark.gpu
@pytest.mark.parametrize("bits", [4, 8])
def test_few_bits_train_on_a_gpu(tiny_llama: str, bits: int) -> None:
    pytest.importorskip("bitsandbytes")
    if not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    module = make(tiny_llama, quantize=bits).to("cuda")
    batch = module.transfer_batch_to_device(batch_of(module, SHORT, LONG), module.device, 0)
    with torch.autocast("cuda", torch.bfloat16):
        loss, _ = module.model_step(batch)
    loss.mean.backward()
    trained = [weight for weight in module.parameters() if weight.requires_grad]
    assert trained
    assert all(torch.isfinite(weight.grad).all() for weight in trained)
