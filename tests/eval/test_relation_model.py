"""The relation model experiment: FACTOR's pairs, ROC curves, and their page."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from components.statistics import auroc, bootstrap
from eval.experiments import quantities
from eval.experiments.factreasoner.relation_model import RelationModel
from eval.experiments.factreasoner.relation_model_values import roc
from eval.report.render import terminal_summary
from records import write_jsonl

ATTACK = "<img src=x onerror=alert(1)> $|$"


class Same:
    """Gives all pairs the same probabilities."""

    def relations(self, pairs):
        return np.tile([0.5, 0.3, 0.2], (len(pairs), 1))


class Copies:
    """Entails what stands in the premise, contradicts what shares a word; NaN on "silent"."""

    def __init__(self):
        self.pairs = []

    def relations(self, pairs):
        self.pairs += pairs
        return np.asarray([self._row(*pair) for pair in pairs])

    def _row(self, premise, hypothesis):
        if "silent" in hypothesis:
            return [np.nan] * 3
        if hypothesis in premise:
            return [0.8, 0.1, 0.1]
        shared = set(hypothesis.split()) & set(premise.split())
        return [0.1, 0.2, 0.7] if shared else [0.2, 0.7, 0.1]


def factor_row(number, **more):
    row = {"full_prefix": f"In{number} the beginning.", "doc_id": number}
    row |= {"completion": f"Ann{number} sang{number}."}
    row |= {f"contradiction_{i}": f"Ann{number} {verb}." for i, verb in enumerate(("ran", "fell"))}
    return row | more


@pytest.fixture
def factor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quantities, "bootstrap", partial(bootstrap, resamples=5))
    bad = [factor_row(7, completion=" "), factor_row(8, contradiction_0="", contradiction_1="")]
    write_jsonl("news.jsonl", [*(factor_row(i) for i in range(5)), *bad])
    header = "Unnamed: 0,full_prefix,doc_id,completion,contradiction_0,contradiction_1,"
    header += "contradiction_2,longest_completions,turncated_prefixes\n"
    cells = '{0},"Long, long.",d{0},Bob{0} sat.,Bob{0} stood.,,Bob{0} lay.,x,"Short, it is."\n'
    Path("wiki.csv").write_text(header + cells.format(1) + cells.format(2))
    return {"news": "news.jsonl", ATTACK: "wiki.csv"}


def value_of(file, metric, kind, model, domain="news", against=None, variant=None):
    (row,) = [
        r
        for r in file.results
        if (r.metric, r.kind, r.assessor, r.domain) == (metric, kind, model, domain)
        and (r.against, r.variant) == (against, variant)
    ]
    return row.value, row.n, row.failed


def test_factor_by_hand(factor):
    copies = Copies()
    run = RelationModel(factor, {"copies": copies, "same": Same()}, thresholds=[0.5])
    file = run.run(Path("run"), {})
    assert file.provenance["left_out"] == {"rows without a true or a false sentence": 2}
    for curve in ("entailment > all", "contradiction > all", "entailment > contradiction"):
        assert value_of(file, "auroc", curve, "copies") == (1, 5, 0)
        assert value_of(file, "auroc", curve, "same")[0] == 0.5
        assert value_of(file, "auroc", curve, "copies", against="same")[0] == 0.5
    at = {"kind": "entailment > all", "variant": 0.5}
    assert value_of(file, "true_positive_rate", model="same", **at)[0] == 1
    assert value_of(file, "false_positive_rate", model="copies", **at)[0] == 0
    assert [value_of(file, "called_so", r, "same")[0] for r in ("entailment", "neutral")] == [1, 0]
    # The evaluation's own prefix goes before the other one; an empty cell is no sentence.
    queried = [pair for pair in copies.pairs if "Bob1" in pair[1]]
    assert queried[0] == ("Short, it is. Bob1 sat.", "Bob1 sat.")
    assert [h for _, h in queried] == ["Bob1 sat.", "Bob1 stood.", "Bob1 lay.", "Bob1 sat."]
    assert queried[3][0] == "Short, it is. Bob2 sat."
    rows = [json.loads(row) for row in Path("run/pairs.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * (5 * 4 + 2 * 4)
    assert rows[0]["p"] == [0.8, 0.1, 0.1]
    lines = terminal_summary(run.page, file).splitlines()
    assert re.match(r"auroc +news +entailment > all +copies +1\.000", lines[1])
    assert not any("rate" in line for line in lines)


def test_failed_pairs_are_excluded_for_all_models(factor):
    rows = [factor_row(i) for i in range(4)]
    write_jsonl("silent.jsonl", [*rows, factor_row(9, contradiction_0="Ann9 was silent.")])
    models = {"copies": Copies(), "same": Same()}
    file = RelationModel({"news": "silent.jsonl"}, models).run(Path("run"), {})
    assert value_of(file, "auroc", "contradiction > all", "same") == (0.5, 5, 1)
    rows = [json.loads(row) for row in Path("run/pairs.jsonl").read_text().splitlines()]
    failed = [r for r in rows if r.get("p") is None]
    assert [(r["model"], r["label"]) for r in failed] == [("copies", "contradiction")]


def test_a_null_model_is_left_out(factor):
    models = {"copies": Copies(), "same": None}
    file = RelationModel({"news": "news.jsonl"}, models).run(Path("run"), {})
    assert {row.assessor for row in file.results} == {"copies"}


def test_the_curve_has_the_area_of_the_measure():
    random = np.random.default_rng(0)
    scores = random.integers(0, 9, 60) / 9  # with ties
    positive = random.random(60) < 0.3 + 0.5 * scores
    false, true = roc(scores, positive)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(true, false) == pytest.approx(auroc(scores, positive), abs=1e-12)
    assert len(false) == len(set(scores)) + 1
