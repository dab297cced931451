"""The LSS metrics experiment through its command, its values against SciPy's, and its input."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import pearsonr, spearmanr

from components.measures import sentence_bleu_of
from components.words import join_words, split_words
from eval.commands import experiment
from eval.experiments.lss.lss_metrics import LssMetrics
from eval.experiments.lss.lss_metrics_values import (
    LSS,
    NO_LSS,
    REFERENCE,
    SHARED,
    STAR,
    Column,
    compute_values,
)
from eval.models.encoder import LssTagger
from eval.models.lss import Subsequence
from eval.similarity import Measure
from eval.similarity.bleu import Bleu
from eval.similarity.kept_words import KeptWords
from records import UserError, read_results

ROWS = [
    ("ada was a poet in london", "Ada was a poet, born in Paris.", ["Ada was a poet."], [4]),
    ("she wrote the first program", "She wrote it.", ["She wrote", "She"], [3, 2]),
    ("he was a father", "Byron was a mathematician.", [""], [1]),
    ("she was born in paris " * 9, "She was born in Paris.", ["She was born in Paris."], [5]),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "people.jsonl"
    rows = [
        {
            "reference": reference,
            "claim": claim,
            "annotations": [
                {"lss": lss, "lss_star": f"{lss} too", "rating": rating}
                for lss, rating in zip(texts, ratings, strict=True)
            ],
        }
        for reference, claim, texts, ratings in ROWS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_command_writes_scores_and_correlations(
    data: Path, lss: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    tagger = {"class_path": "eval.models.encoder.LssTagger", "init_args": {"checkpoint": str(lss)}}
    options = {
        "pairs": [str(data)],
        "metrics": {"bleu": {"class_path": "eval.similarity.bleu.Bleu"}},
        "lss": {"tagger": tagger},
    }
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"experiment": options}))
    output = tmp_path / "run"
    arguments = ["lss_metrics", "--config", str(config), "--output", str(output)]
    assert experiment.main(arguments) == 0
    printed = capsys.readouterr().out
    assert re.search(r"pearson +human +\(claim, LSS\) +\(reference, claim\) ", printed)
    rows = [json.loads(line) for line in (output / "pairs.jsonl").read_text().splitlines()]
    assert [row["engine"] for row in rows] == ["human", "tagger", SHARED] * 4
    human, actual, shared = rows[3:6]
    claim, texts = ROWS[1][1], ROWS[1][2]
    assert human["scores"] == {
        "bleu(reference, claim)": sentence_bleu_of(ROWS[1][0], claim),
        "bleu(claim, LSS)": np.mean([sentence_bleu_of(claim, text) for text in texts]),
        "bleu(claim, LSS*)": np.mean([sentence_bleu_of(claim, f"{t} too") for t in texts]),
    }
    assert (human["rating"], human["keep"]) == (2.5, [True, True, False, False])
    assert human["lss"] == "She wrote"
    (answer,) = LssTagger(lss).subsequences([(claim, ROWS[1][0])])
    assert (actual["lss"], actual["keep"]) == (answer.text, answer.keep)
    assert shared["lss"] == "She wrote ."
    results = read_results(output / "results.json").results
    by_name = {(r.metric, r.kind, r.variant, r.against): r.value for r in results}
    scores = [row["scores"]["bleu(claim, LSS)"] for row in rows[1::3]]
    expected = pytest.approx(pearsonr(scores, [4, 2.5, 1, 5])[0])
    assert by_name["pearson", "tagger", LSS, None] == expected
    assert all(row.failed == 0 for row in results)


def test_values_against_scipy() -> None:
    rng = np.random.default_rng(0)
    target = np.asarray([5, 4, 4, 1, 2, 3, np.nan, 5])
    scores, plain = rng.normal(size=8), rng.normal(size=8)
    scores[1] = np.nan
    due = np.ones(8, bool)
    columns = [
        Column(NO_LSS, "m", REFERENCE, plain, due),
        Column("t5", "m", LSS, scores, due),
        Column(SHARED, "m", LSS, np.ones(8), due),
        Column("late", "m", LSS, np.where(np.arange(8) < 4, scores, np.nan), np.arange(8) < 4),
    ]
    groups = [f"r{i // 2}" for i in range(8)]
    rows = compute_values(columns, target, groups, ["a"] * 6 + ["b"] * 2, seed=0)
    keys = ("generator", "kind", "metric", "variant", "against")
    actual = {tuple(r[key] for key in keys): r for r in rows}
    both, all_ = [0, 2, 3, 4, 5, 7], [0, 1, 2, 3, 4, 5, 7]
    for name, kind in (("pearson", pearsonr), ("spearman", spearmanr)):
        alone = actual["all", "t5", name, LSS, None]
        assert alone["value"] == pytest.approx(kind(scores[both], target[both])[0])
        assert (alone["n"], alone["failed"]) == (4, 1)
        assert alone["ci95"][0] < alone["value"] < alone["ci95"][1]
        without = actual["all", NO_LSS, name, REFERENCE, None]
        assert without["value"] == pytest.approx(kind(plain[all_], target[all_])[0])
        gain = actual["all", "t5", name, LSS, REFERENCE]["value"]
        assert gain == pytest.approx(alone["value"] - kind(plain[both], target[both])[0])
        assert actual["all", SHARED, name, LSS, None]["value"] is None  # constant
        assert actual["all", "t5", name, LSS, SHARED]["value"] is None
    # A pair that has no such text has not failed, and a mean needs no rating.
    assert actual["all", "late", "mean", LSS, None]["failed"] == 1
    assert actual["all", "t5", "mean", LSS, None]["n"] == 4
    assert actual["b", "t5", "mean", LSS, None]["value"] == pytest.approx(scores[6:].mean())


def test_difference_is_over_claims_with_both_scores() -> None:
    target = np.asarray([5.0, 4, 1, 2, 3, np.nan])
    plain, scores = np.asarray([1, 2, 3, 5, np.nan, 4]), np.asarray([2, 1, np.nan, 4, 3, 1])
    due = np.ones(6, bool)
    columns = [Column(NO_LSS, "m", REFERENCE, plain, due), Column("t5", "m", LSS, scores, due)]
    rows = compute_values(columns, target, [f"r{i}" for i in range(6)], ["a"] * 6, seed=0)
    actual = {(r["metric"], r["kind"], r["against"]): (r["n"], r["failed"]) for r in rows}
    assert actual["pearson", "t5", None] == actual["pearson", NO_LSS, None] == (4, 1)
    assert actual["pearson", "t5", REFERENCE] == (3, 2)


class Half(Measure):
    """Fails on claims with a comma."""

    pairs = 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        Half.pairs += len(pairs)
        return [math.nan if "," in c else float(len(c)) for _, c in pairs]


class Shy:
    """Has no answer about Byron."""

    def subsequences(self, pairs: Sequence[tuple[str, str]]) -> list:
        actual = []
        for claim, _ in pairs:
            words = split_words(claim)
            keep = [place % 2 == 0 for place in range(len(words))]
            text = join_words(claim, words, keep)
            actual.append(None if "Byron" in claim else Subsequence(keep, text))
        return actual


def test_failures_are_counted_and_interrupted_run_resumes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> LssMetrics:
        metrics = {"half": Half(), "bleu": Bleu()}
        stars = {"shy": Shy()}
        return LssMetrics([str(data)], metrics, {"shy": Shy()}, stars, control=False)

    monkeypatch.setattr("eval.experiments.lss.lss_metrics.CHUNK", 2)
    killed = make()
    first = make()._read()[:2]
    work, done = make().score_pairs, []
    monkeypatch.setattr(killed, "score_pairs", lambda p: work(p) if p == first else done.index(0))
    with pytest.raises(ValueError, match="0"):
        killed.run(tmp_path, {})
    Half.pairs = 0
    file = make().run(tmp_path, {})
    assert not list(tmp_path.glob(".*.partial.jsonl"))
    calls_before = Half.pairs
    plain_rows = [r for r in file.results if (r.metric, r.against) == ("pearson", None)]
    actual = {(r.kind, r.assessor, r.variant): r for r in plain_rows}
    assert actual["shy", "bleu", LSS].failed == 1  # no answer
    assert actual["shy", "bleu", STAR].failed == 1
    assert actual[NO_LSS, "half", REFERENCE].failed == 1
    assert actual["human", "half", LSS].failed == 0
    make().run(tmp_path / "whole", {})
    assert calls_before < Half.pairs - calls_before  # the first half was not asked anew
    names = ("results.json", "pairs.jsonl")
    assert all((tmp_path / n).read_bytes() == (tmp_path / "whole" / n).read_bytes() for n in names)


def test_people_are_not_compared_with_themselves(data: Path, tmp_path: Path) -> None:
    metrics = {"kept": KeptWords()}
    kept = LssMetrics([str(data)], metrics, {"shy": Shy()}, target="kept_words").run(tmp_path, {})
    assert {row.kind for row in kept.results} == {NO_LSS, "shy", SHARED}
    # The words that people keep, marks aside: 4 of 7, 2 and 1 of 3, 0 of 4, 5 of 5; none of Byron.
    target = [4 / 7, (2 / 3 + 1 / 3) / 2, 1]
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    scores = [row["scores"]["kept(claim, LSS)"] for row in rows if row["engine"] == "shy"]
    by_name = {(r.metric, r.kind, r.variant, r.against): r for r in kept.results}
    actual = by_name["pearson", "shy", LSS, None]
    assert actual.failed == 1
    assert actual.value == pytest.approx(pearsonr([scores[0], scores[1], scores[3]], target)[0])
    unrated = tmp_path / "unrated.jsonl"
    unrated.write_text('{"reference": "ada", "claim": "Ada"}\n')
    with pytest.raises(UserError, match="target: no pair has a rating"):
        LssMetrics([str(unrated)], metrics).run(tmp_path / "unrated", {})


def test_judgements_of_factuality_of_several_models(tmp_path: Path) -> None:
    """Figure 3: nobody gave ratings, but raters said whether a summary is true."""
    factual = {"s2s": [1, 0, 2 / 3, None], "bert": [1, 1 / 3, 0, "so-so"]}
    rows = [
        {
            "reference": reference,
            "claim": claim,
            "annotations": [{"lss": texts[0]}],
            "group": f"{place}",
            "system": system,
            "factual": ratings[place],
        }
        for system, ratings in factual.items()
        for place, (reference, claim, texts, _) in enumerate(ROWS)
    ]
    path = tmp_path / "lss_test.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = {"kept": KeptWords(), "bleu": Bleu()}
    file = LssMetrics([str(path)], metrics, target="factual").run(tmp_path / "run", {})
    keys = ("metric", "assessor", "kind", "variant", "generator", "against")
    actual = {tuple(getattr(row, key) for key in keys): row.value for row in file.results}
    kept = [4 / 7, 2 / 3, 0]
    for system in factual:
        expected = pearsonr(kept, factual[system][:3])[0]
        value = actual["pearson", "kept", "human", LSS, system, None]
        assert value == pytest.approx(expected)
    (plot,) = LssMetrics.page.figures[0].of(file.results)
    drawn = {x: value for x, value, _ in plot.series[f"{LSS}, human"]}
    best = max(actual["pearson", name, "human", LSS, "s2s", None] for name in metrics)
    assert drawn["s2s"] == best
