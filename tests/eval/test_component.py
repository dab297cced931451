"""`python -m eval component`: the JSON line, and one-line errors with exit code 2."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from eval.__main__ import main
from eval.models.causal import CausalLM
from records import UserError, write_jsonl

UNLI = [
    {"premise": f"Person {i // 3} wrote.", "hypothesis": f"A {i} did.", "label": (i % 7) / 6}
    for i in range(24)
]
RELATION = [
    {
        "premise": f"Person {i // 4} wrote a note.",
        "hypothesis": f"Claim {i}.",
        "label": ("entailment", "neutral", "contradiction")[i % 3],
    }
    for i in range(24)
]
LSS = [
    {
        "reference": f"Ada wrote note {i // 2}.",
        "claim": f"Ada wrote and sang note {i}.",
        "annotations": [
            {"lss": f"Ada wrote note {i}.", "rating": 1 + i % 5},
            {"lss": "something else entirely", "rating": 3},
        ],
    }
    for i in range(10)
]
TEXTS = [{"topic": f"Ada {i // 2}", "text": f"Ada is a person, number {i}."} for i in range(6)]


@pytest.fixture
def component(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Run the command on rows and return the JSON of its last line."""

    def run(checkpoint: Path, rows: list[dict], *more: str) -> dict:
        path = tmp_path / "data.jsonl"
        write_jsonl(path, rows)
        argv = ["component", "--checkpoint", str(checkpoint), "--data", str(path), *more]
        assert main(argv) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def check(result: dict, component: str, n: int, failed: int, keys: str) -> None:
    assert (result["component"], result["n"], result["failed"]) == (component, n, failed)
    assert sorted(result["metrics"]) == sorted(keys.split())
    for name, measure in result["metrics"].items():
        assert math.isfinite(measure["value"])
        if name == "ece":
            assert measure["ci95"] is None
        else:
            low, high = measure["ci95"]
            assert low <= high


def test_unli_checkpoint_has_its_measures(component, unli):
    check(component(unli, UNLI), "unli", 24, 0, "pearson spearman mse ece")


def test_two_checkpoints_on_the_same_rows_give_paired_differences(component, make_checkpoint, unli):
    other = make_checkpoint("unli", ["likelihood"], temperature=2.0)
    alone, against = component(unli, UNLI)["metrics"], component(other, UNLI)["metrics"]
    both = component(unli, UNLI, "--against", str(other))["metrics"]
    assert set(both) == set(alone) | {f"{name}_difference" for name in alone}
    for name, measure in alone.items():
        assert both[name] == measure
        expected = measure["value"] - against[name]["value"]
        assert both[f"{name}_difference"]["value"] == pytest.approx(expected)
    same = component(unli, UNLI, "--against", str(unli))["metrics"]
    assert same["pearson_difference"] == {"value": 0.0, "ci95": [0.0, 0.0]}


def test_relation_checkpoint_has_its_measures(component, relation):
    keys = "accuracy macro_f1 entailment_auroc brier ece"
    check(component(relation, RELATION), "relation", 24, 0, keys)


def test_lss_counts_unaligned_annotations_but_keeps_their_rows(component, lss):
    keys = "pearson_bleu_rating spearman_bleu_rating word_precision word_recall word_f1 "
    keys += "rouge_l_best rouge_l_mean bleu_best bleu_mean subsequence_share"
    result = component(lss, LSS)
    check(result, "lss", 10, 0, keys)
    assert result["metrics"]["subsequence_share"]["value"] == 1.0


def test_lss_rows_that_do_not_fit_have_failed(component, lss):
    endless = {**LSS[0], "claim": "endless " * 80}
    assert component(lss, [*LSS, endless])["failed"] == 1
    without = component(lss, LSS)["metrics"]["rouge_l_best"]["value"]
    assert component(lss, [*LSS, endless])["metrics"]["rouge_l_best"]["value"] == without


def test_adversary_is_judged_at_corpus_level(component, adversary):
    result = component(adversary, TEXTS)
    check(result, "adversary", 6, 0, "perplexity bits_per_byte")
    lm = CausalLM(adversary, dtype="float32")
    rows = lm.log_likelihoods([(lm.prompt_for(t["topic"]), t["text"]) for t in TEXTS])
    nll, size = sum(r.nll for r in rows), sum(len(t["text"].encode()) for t in TEXTS)
    perplexity = math.exp(nll / sum(r.tokens for r in rows))
    assert result["metrics"]["perplexity"]["value"] == pytest.approx(perplexity)
    assert result["metrics"]["bits_per_byte"]["value"] == pytest.approx(nll / math.log(2) / size)


def test_overlong_texts_have_failed_and_are_not_in_the_perplexity(component, adversary):
    endless = {"topic": "Ada", "text": "Ada is. " * 40}
    result, without = component(adversary, [*TEXTS, endless]), component(adversary, TEXTS)
    assert (result["n"], result["failed"]) == (6, 1)
    for name, measure in without["metrics"].items():
        assert result["metrics"][name]["value"] == pytest.approx(measure["value"], rel=1e-6)
    with pytest.raises(UserError, match="none of 1 rows could be judged"):
        component(adversary, [endless])


def test_the_result_does_not_depend_on_order_or_batch_size(component, relation):
    first = component(relation, RELATION)["metrics"]["ece"]["value"]
    backwards = component(relation, RELATION[::-1], "--batch_size", "3")["metrics"]
    assert backwards["ece"]["value"] == pytest.approx(first, abs=1e-5)
