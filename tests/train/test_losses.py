"""What the losses may see."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import log_expit, log_softmax, logit

from components.checkpoint import RELATIONS, read_component
from records import LssExample, RelationPair, UnliPair
from train.__main__ import main
from train.lss_tagger import LssTagger
from train.module import Item
from train.relation import NOT_ENTAILMENT, Relation, relation_loss
from train.unli import Unli


def test_not_entailment_is_marginalised() -> None:
    logits = torch.tensor([[1.0, 0.3, -0.4]], requires_grad=True)
    p = logits.detach().softmax(-1)[0]
    loss = relation_loss(logits, torch.tensor([NOT_ENTAILMENT]))
    loss.sum().backward()

    assert loss.item() == pytest.approx(-math.log(1 - p[0]), abs=1e-6)
    gradient = logits.grad[0]
    assert gradient[0] > 0  # entailment is pushed down
    # The other two rise in proportion to what they have: their ratio is nobody's label.
    assert (gradient[1] / p[1]).item() == pytest.approx((gradient[2] / p[2]).item(), rel=1e-5)


def test_not_entailment_is_finite_when_entailment_is_certain() -> None:
    logits = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    loss = relation_loss(logits, torch.tensor([NOT_ENTAILMENT]))
    loss.sum().backward()
    assert loss.item() == pytest.approx(200 - math.log(2), abs=1e-3)
    assert torch.isfinite(logits.grad).all()


def test_three_classes_are_cross_entropy() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 1, 2, 0, 1])
    expected = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    assert torch.allclose(relation_loss(logits, target), expected, atol=1e-6)


def test_soft_targets_are_the_mean_of_the_labels_losses() -> None:
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    shares = torch.tensor([[0.7, 0.2, 0.1, 0], [1, 0, 0, 0], [0, 0.5, 0.5, 0]])
    loss = relation_loss(logits, shares)
    labels = [relation_loss(logits, torch.full((3,), label)) for label in range(3)]
    expected = sum(shares[:, label] * labels[label] for label in range(3))
    assert torch.allclose(loss, expected, atol=1e-6)
    # It is least where the model says the same as the teacher.
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert torch.allclose(gradient, logits.softmax(-1) - shares[:, :3], atol=1e-6)
    certain = torch.tensor([[float("-inf"), 0.0, 0.0]])
    assert relation_loss(certain, torch.tensor([[0, 0.5, 0.5, 0]])).item() == pytest.approx(
        math.log(2)
    )


@pytest.mark.parametrize(
    ("kind", "record", "label"),
    [(Unli, UnliPair, 0.8), (Relation, RelationPair, "neutral")],
    ids=["unli", "relation"],
)
def test_row_weight_scales_the_loss(
    tiny_bert: str, kind: type, record: type, label: float | str
) -> None:
    torch.manual_seed(0)
    module = kind(base=tiny_bert, max_length=48)
    module.configure_model()
    module.eval()
    pair = {"premise": "ada was a poet .", "hypothesis": "she wrote .", "label": label}
    losses = {}
    for weight in (None, 0.0, 3.0):
        items = module.encode([record(**pair, weight=weight)], train=True)
        losses[weight] = module.model_step(module.collate(items, [0]))[0].mean.item()
    assert losses[0.0] == 0.0
    assert losses[3.0] == pytest.approx(3 * losses[None], rel=1e-5)
    text = module.tokenizer(pair["premise"], pair["hypothesis"])["input_ids"]
    assert items[0].inputs["input_ids"] == text
    output = module.model_step(module.collate(items, [0]))[1][0]
    if kind is Unli:
        by_hand = -0.8 * log_expit(output) - 0.2 * log_expit(-output)
    else:
        by_hand = -log_softmax(output)[RELATIONS.index("neutral")]
    assert losses[None] == pytest.approx(by_hand, rel=1e-5)


def test_unli_is_measured_as_it_is_calibrated(tiny_bert: str) -> None:
    module = Unli(base=tiny_bert, max_length=48)
    label = np.tile([0.1, 0.3, 0.6, 0.9], 50)
    records = [UnliPair(premise=f"{y}", hypothesis="so .", label=y) for y in label]
    items = [Item(row, {}, y) for row, y in enumerate(label)]
    outputs = list(3 * logit(label) + 1)
    module.calibrate(records, items, outputs)
    assert (module.temperature, module.shift) == pytest.approx((3, -1 / 3), rel=1e-3)
    predicted, observed = module.probabilities_of(records, items, outputs)
    assert observed.tolist() == label.tolist()
    assert predicted == pytest.approx(label, abs=1e-3)
    assert module.measures(records, items, outputs)["mse"]["value"] < 1e-6
    # The error of one prediction for all is that of their mean.
    same = module.measures(records, items, [1.0] * 200)["ece"]["value"]
    assert same == pytest.approx(0.025, abs=1e-3)


def test_a_long_premise_is_cut_in_training_and_judged_in_windows(tiny_bert: str) -> None:
    module = Relation(base=tiny_bert, max_length=20, chunk_words=4)
    pair = RelationPair(premise="ada was born in " * 5, hypothesis="she wrote .", label="neutral")
    (cut,) = module.encode([pair], train=True)
    assert cut.length == 20
    windows = module.encode([pair], train=False)
    assert len(windows) > 2
    assert {item.row for item in windows} == {0}


def test_dev_loss_is_of_the_windows_that_count(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    long = "ada was a poet . she was born in paris . " * 3
    rows = [
        {"premise": premise, "hypothesis": "she wrote .", "label": label}
        for premise, label in ((long, "entailment"), ("ada was .", "neutral"), (long, "neutral"))
    ]
    dev = write("long", rows)
    options = ["--data.dev", dev, "--trainer.max_steps", "1", "--trainer.val_check_interval", "1"]
    main(arguments("relation", *options, "--model.chunk_words", "8"))
    with open(tmp_path / "runs/run/metrics.csv", encoding="utf-8", newline="") as curve:
        (loss,) = [float(row["dev/loss"]) for row in csv.DictReader(curve) if row["dev/loss"]]

    folder = tmp_path / "checkpoints/run"
    module = Relation(base=str(folder), max_length=48, chunk_words=8)
    module.configure_model()
    items = module.encode([RelationPair(**row) for row in rows], train=False)
    with torch.inference_mode():
        _, outputs = module.eval().model_step(module.collate(items, range(len(items))))
    log_p = log_softmax(np.asarray(outputs), axis=1)
    judged = [log_p[[item.row == row for item in items]] for row in range(3)]
    assert [len(row_logits) for row_logits in judged] == [8, 1, 8]
    best = [row_logits[row_logits[:, 0].argmax()] for row_logits in judged]
    by_hand = -(best[0][0] + best[1][1] + best[2][1]) / 3
    assert loss == pytest.approx(by_hand, rel=1e-4)


def test_dev_loss_is_the_mean_over_all_tokens(arguments: Callable, tmp_path: Path) -> None:
    rows = ["ada", "she was a poet and she wrote the first program in london .", "she is .", "he"]
    file = tmp_path / "texts.jsonl"
    lines = [json.dumps({"topic": "ada", "text": text}) + "\n" for text in rows]
    file.write_text("".join(lines), encoding="utf-8")
    options = ["--data.dev", str(file), "--data.eval_batch_size", "3", "--trainer.max_steps", "1"]
    main(arguments("adversary", *options, "--trainer.val_check_interval", "1"))
    with open(tmp_path / "runs/run/metrics.csv", encoding="utf-8", newline="") as curve:
        (loss,) = [float(row["dev/loss"]) for row in csv.DictReader(curve) if row["dev/loss"]]
    perplexity = read_component(tmp_path / "checkpoints/run").metrics["perplexity"]
    assert loss == pytest.approx(math.log(perplexity), rel=1e-5)


def test_lss_targets_are_the_share_of_annotators_at_first_tokens(
    tiny_bert: str, capsys: pytest.CaptureFixture
) -> None:
    module = LssTagger(base=tiny_bert, max_length=48)
    claim = "ada was born in london"
    records = [
        LssExample(
            reference="ada was a poet .",
            claim=claim,
            annotations=[
                {"lss": "ada was born"},
                {"lss": "ada was born in london"},
                {"lss": "she wrote the first program"},  # no subsequence: counted, not used
            ],
        ),
        LssExample(reference="ada .", claim=claim, annotations=[{"lss": "paris"}]),
    ]
    (item,) = module.encode(records, train=True)
    places, soft = item.target
    assert soft == [1.0, 1.0, 1.0, 0.5, 0.5]
    target = module.collate([item], [0])["target"][0]
    assert [target[place].item() for place in places] == soft
    assert (target != -1).sum() == 5
    assert "2 of 4 annotations" in capsys.readouterr().out
    assert len(module.encode(records, train=False)) == 2  # dev judges every row


def test_the_keep_threshold_is_the_lowest_of_the_best(tiny_bert: str) -> None:
    module = LssTagger(base=tiny_bert, max_length=48)
    record = LssExample(
        reference="ada .", claim="ada was in paris", annotations=[{"lss": "ada was"}]
    )
    items = module.encode([record], train=False)
    # "was" is kept up to 0.65 and "in" dropped from 0.6 on, so two thresholds are right.
    module.calibrate([record], items, [logit(np.asarray([0.9, 0.68, 0.57, 0.1]))])
    assert module.keep_threshold == 0.6


def test_of_several_annotators_the_threshold_suits_the_mean(tiny_bert: str) -> None:
    module = LssTagger(base=tiny_bert, max_length=48)
    claim, output = "ada was in paris", logit(np.asarray([0.9, 0.9, 0.42, 0.1]))
    # What three drop and what one keeps: each row has one voice.
    annotations = ([{"lss": "ada was"}] * 3, [{"lss": "ada was in"}])
    records = [
        LssExample(reference="ada .", claim=claim, annotations=row_logits)
        for row_logits in annotations
    ]
    items = module.encode(records, train=False)
    module.calibrate(records, items, [output, output])
    assert module.keep_threshold == 0.3
    predicted, observed = module.probabilities_of(records, items, [output, output])
    assert predicted == pytest.approx([0.9, 0.9, 0.42, 0.1] * 2)
    assert observed.tolist() == [1, 1, 0, 0, 1, 1, 1, 0]


def test_the_lss_loss_is_of_the_words_that_were_judged(tiny_bert: str) -> None:
    torch.manual_seed(0)
    module = LssTagger(base=tiny_bert, max_length=48)
    module.configure_model()
    module.eval()
    command = (("ada was born in london", "ada was"), ("she wrote", "she wrote"))
    records = [
        LssExample(reference="ada was a poet .", claim=claim, annotations=[{"lss": lss}])
        for claim, lss in command
    ]
    items = module.encode(records, train=True)
    loss, outputs = module.model_step(module.collate(items, [0, 1]))
    logits, soft = np.concatenate(outputs), np.concatenate([item.target[1] for item in items])
    by_hand = -soft * log_expit(logits) - (1 - soft) * log_expit(-logits)
    assert (loss.total.item(), int(loss.count)) == (pytest.approx(by_hand.sum(), rel=1e-5), 7)
    # A truncated word adds no loss and is never kept.
    places, keep = items[0].target
    cut = replace(items[0], target=([*places[:-1], None], keep))
    loss, outputs = module.model_step(module.collate([cut], [0]))
    assert (int(loss.count), outputs[0][-1]) == (4, -math.inf)


def test_soft_dev_rows_are_calibrated_as_they_are_learnt(tiny_bert: str) -> None:
    module = Relation(base=tiny_bert, max_length=48)
    pair = {"premise": "ada was a poet .", "hypothesis": "she wrote ."}
    records = [
        RelationPair(**pair, label=label) for label in ([0.6, 0.3, 0.1], [0.3, 0.6, 0.1]) * 100
    ]
    items = module.encode(records, train=False)
    outputs = [np.log(np.asarray(record.soft)) * 5 for record in records]
    module.calibrate(records, items, outputs)
    assert module.temperature == pytest.approx(5, rel=1e-2)
    predicted, observed = module.probabilities_of(records, items, outputs)
    assert predicted == pytest.approx(observed, abs=1e-3)
