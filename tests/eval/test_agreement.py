"""The agreement experiment: levels of labels, measures, fitted thresholds, failures, its page."""

import json
import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from components.overlap import covered_share, stem_weights
from components.statistics import best_threshold
from eval.experiments.agreement.agreement import Agreement
from eval.experiments.agreement.agreement_values import halves_of
from eval.retrieve.bm25 import BM25
from records import Verdict, read_results, write_jsonl


class Oracle:
    """Says what stands in brackets in a claim: a probability, a verdict, or nothing."""

    judges_sets = False

    def __init__(self, names=("default",)):
        self.names = names

    def __call__(self, documents, claims, passages):
        return [[v for claim in group for v in self._of(claim)] for group in claims]

    def _of(self, claim):
        mark = re.search(r"\[(.*)\]", claim.text)[1]
        fields = {"label": mark, "reason": "told to" if mark == "failed" else None}
        if mark[0].isdigit():
            word = "supported" if float(mark) > 0.5 else "not_supported"
            fields = {"label": word, "p": float(mark)}
        for name in self.names:
            yield Verdict(claim=claim.id, assessor="oracle", name=name, **fields)


def row(score, label, doc="Ada was born in London.", dataset="a", claim="Ada was born in Paris"):
    return {"dataset": dataset, "doc": doc, "claim": f"{claim} [{score}]", "label": label}


@pytest.fixture(autouse=True)
def few(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(rows, name="one", **options):
    write_jsonl("set.jsonl", rows)
    options_of_run = {"assessors": {name: Oracle()}} | options
    return Agreement({"set": "set.jsonl"}, **options_of_run).run(Path("run"), {})


def value_of(file, metric, assessor="one", kind="set", group="all", variant=None, against=None):
    place = (metric, assessor, kind, group, variant, against)
    for r in file.results:
        if (r.metric, r.assessor, r.kind, r.group, r.variant, r.against) == place:
            return r.value, r.n, r.failed
    return None


def claims():
    return [json.loads(line) for line in Path("run/claims.jsonl").read_text().splitlines()]


def test_measures_by_hand():
    """Three documents; of five claims the assessor has one wrong."""
    judged = [("0.9", 1, "A"), ("0.6", 0, "A"), ("0.2", 0, "B"), ("0.7", 1, "B"), ("0.1", 0, "C")]
    file = run([row(p, label, doc=doc) for p, label, doc in judged])
    assert value_of(file, "auroc") == (1, 3, 0)
    assert value_of(file, "balanced_accuracy")[0] == pytest.approx((1 + 2 / 3) / 2)
    assert value_of(file, "f1_unsupported")[0] == pytest.approx(2 * 2 / (2 + 3))
    assert value_of(file, "brier")[0] == pytest.approx((0.01 + 0.36 + 0.04 + 0.09 + 0.01) / 5)
    assert value_of(file, "coverage")[0] == 1
    for metric, value in (("auroc", 0.5), ("balanced_accuracy", 0.5), ("f1_unsupported", 0)):
        assert value_of(file, metric, "always supported")[0] == value
    assert value_of(file, "called_supported", variant="supported")[0] == 1
    assert value_of(file, "called_supported", variant="all true")[0] == 1
    assert value_of(file, "called_supported", variant="all false")[0] == pytest.approx(1 / 3)
    assert value_of(file, "called_supported", variant="not_supported")[0] == pytest.approx(1 / 3)
    whole = read_results("run/results.json")
    assert {r.config_hash for r in whole.results} == {whole.provenance["config_hash"]}


def test_overlap_is_the_share_of_rare_stems_and_needs_evidence():
    docs = ["Ada was born in London", "Bob was born in Rome", "Cy was born in Oslo"]
    cities = ("London", "Rome", "Oslo")
    rows = [
        row("0.5", label, doc, claim=f"Born in {city}")
        for doc, city in zip(docs, cities, strict=True)
        for label, city in ((1, city), (0, "Bergen"))
    ]
    rows.append(row("0.9", 1, claim="No evidence") | {"doc": docs[0]})
    file = run(rows)
    assert value_of(file, "auroc", "overlap")[0] > value_of(file, "auroc")[0] == 0.625
    weight = stem_weights(docs)
    assert weight("london") > weight("born")
    actual = claims()[0]
    assert actual["overlap"] == pytest.approx(
        covered_share(actual["text"], docs[:1], weight), abs=1e-6
    )
    assert covered_share("!", docs, weight) == 0
    assert covered_share("London born", docs, weight) == 1


def test_the_difference_to_overlap_is_paired_on_what_both_judged():
    rows = [row("0.9", 1, "Ada", claim="Zed"), row("0.1", 0, "Bob", claim="Bob")]
    rows += [row("failed", 1, "Cy", claim="Cy"), row("0.2", 0, "Di", claim="Di")]
    file = run(rows)
    # On the three: the assessor orders them right, overlap wrong. On all four overlap is at chance.
    assert value_of(file, "auroc", against="overlap") == (1, 4, 1)
    assert value_of(file, "auroc", "overlap")[0] == 0.5
    assert value_of(file, "auroc", "always supported", against="overlap") is None


def test_failures_are_excluded_or_wrong_and_irrelevant_is_a_failure():
    rows = [row(score, label, doc=str(place)) for place, (score, label) in enumerate(
        [("0.9", 1), ("failed", 1), ("0.1", 0), ("irrelevant", 0), ("0.8", 0), ("0.7", 1)]
    )]  # fmt: skip
    file = run(rows)
    assert value_of(file, "coverage") == (pytest.approx(4 / 6), 6, 2)
    assert value_of(file, "balanced_accuracy")[0] == pytest.approx((1 + 1 / 2) / 2)
    wrong = value_of(file, "balanced_accuracy", variant="failed_wrong")
    assert wrong[0] == pytest.approx((2 / 3 + 1 / 3) / 2)
    # Not supported: one of three is found, and one that is supported is taken for it.
    assert value_of(file, "f1_unsupported", variant="failed_wrong")[0] == pytest.approx(2 / 5)
    assert value_of(file, "balanced_accuracy", "overlap", variant="failed_wrong") is None


def test_fitted_threshold_labels_the_other_part():
    """Two sources whose scores have different scales, and the whole set in two halves."""
    rows = []
    for place in range(8):
        high, low = ("0.9", "0.8") if place % 2 else ("0.3", "0.2")
        name = "high" if place % 2 else "low"
        rows += [row(high, 1, str(place), name), row(low, 0, str(place), name)]
    file = run(rows)
    of = partial(value_of, file, "balanced_accuracy")
    # The threshold of the low source calls all of the high one supported, and the other way round.
    assert of(variant="other_sources")[0] == 0.5
    assert of(group="high", variant="other_sources")[0] == 0.5
    assert of(variant="other_half")[0] >= 0.5
    assert value_of(file, "auroc", group="macro")[0] == 1
    assert value_of(file, "auroc", group="high") == (1, 4, 0)
    assert value_of(file, "auroc")[0] < 1
    halves = halves_of(np.asarray(["a", "b", "a", "c", "d"], dtype=object), 0)
    assert halves[0] == halves[2]
    assert sorted(halves[[0, 1, 3, 4]]) == [0, 0, 1, 1]


def test_the_best_threshold():
    def best(scores, positive):
        return best_threshold(np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool))

    assert best([1, 2, 3, 4], [0, 0, 1, 1]) == 2.5
    assert best([2, 2, 3], [0, 1, 1]) == 2.5  # equal scores are not parted
    assert best([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1]) == 2.5  # 2.5 and 4.5 are as good
    assert best([3, 1], [0, 1]) == 1  # nothing helps: everything is positive
    assert math.isnan(best([1, 2], [1, 1]))


def test_verdicts_without_probabilities_are_used_as_scores():
    rows = [row("supported", 1, "A"), row("not_supported", 0, "A"), row("supported", 0, "B")]
    file = run(rows)
    assert value_of(file, "auroc")[0] == 0.75
    assert value_of(file, "ece") is None


VOTED = [
    ("SUPPORTS", ["SUPPORTS", "SUPPORTS", None], 0.9),
    ("REFUTES", ["REFUTES", "SUPPORTS", None], 0.4),
    ("NOT_ENOUGH_INFO", ["NOT_ENOUGH_INFO", "REFUTES", None], 0.1),
]


def climate(number, label, score="0.5"):
    evidences = [
        {"evidence_id": f"e{n}", "article": "Sea", "evidence": f"The sea {n} rises.",
         "evidence_label": word, "votes": votes, "entropy": 0.1}
        for n, (word, votes, _) in enumerate(VOTED)
    ]  # fmt: skip
    claim = f"Seas rise {number} [{score}]"
    return {"claim_id": str(number), "claim": claim, "claim_label": label, "evidences": evidences}


def test_votes_are_correlated_with_scores():
    evidences = climate(1, "SUPPORTS")["evidences"]
    rows = [climate(n, "SUPPORTS", p) | {"evidences": [evidences[n]]}
            for n, (_, _, p) in enumerate(VOTED)]  # fmt: skip
    file = run(rows)
    expected = np.corrcoef([0.9, 0.4, 0.1], [1, 0.5, 0])[0, 1]
    assert value_of(file, "pearson_votes")[0] == pytest.approx(expected)


def test_a_person_is_judged_by_the_others():
    """Where two of three agree, the one by the two; the two are each other's only majority."""
    yes, no = "SUPPORTS", "NOT_ENOUGH_INFO"
    votes = [([yes, yes, no], 0.9), ([no, no, yes], 0.1), ([yes, yes, yes], 0.2), ([no, no], 0.1)]
    rows = []
    for n, (answers, p) in enumerate(votes):
        label = yes if answers.count(yes) > 1 else no
        evidence = climate(n, label, p)["evidences"][0] | {
            "evidence_label": label,
            "votes": answers,
        }
        rows.append(climate(n, label, p) | {"evidences": [evidence]})
    file = run(rows)
    by_others = partial(value_of, file, "balanced_accuracy", variant="all_people_but_one")
    # Supported are a third of the first claim and the whole third, not supported likewise.
    assert by_others("a person")[0] == pytest.approx(0.75)
    assert by_others("one")[0] == pytest.approx((0.25 + 1) / 2)
    assert by_others("always supported")[0] == 0.5
    assert by_others("one")[1:] == (4, 0)
    assert value_of(file, "coverage", "a person") is None


def test_claims_without_evidence_are_retrieved_for_or_fail():
    labels = {"Ada was born in London [0.9].": "S", "Ada was born in Paris [0.1].": "NS"}
    labels["London is nice [0.1]."] = "IR"
    facts = [{"text": text, "label": label} for text, label in labels.items()]
    sentence = {"text": "x", "human-atomic-facts": facts}
    row = {"topic": "Ada", "output": "x", "annotations": [sentence]}
    write_jsonl("passages.jsonl", [{"id": "p", "title": "Ada", "text": "Ada was born in London."}])
    file = run([row])
    assert value_of(file, "coverage", "overlap")[0] == 0
    assert file.provenance["left_out"] == {"set: claims that are irrelevant": 1}
    Path("run/results.json").unlink()
    file = run([row], retrieve=BM25("passages.jsonl", k=1))
    assert value_of(file, "auroc", "overlap") == (1, 1, 0)


def test_auroc_at_equal_overlap_removes_the_effect_of_overlap():
    """An assessor that is word overlap is at chance among claims of equal overlap."""
    words, scores, rows = [f"w{n}" for n in range(12)], np.random.default_rng(0), []
    for place in range(200):
        shared = place % 10 + 1
        claim = " ".join([*words[:shared], *(f"x{place}y{n}" for n in range(12 - shared))])
        label = int(scores.random() < shared / 11)
        reads = 0.9 if label else 0.2
        for source, p in (("overlap", shared / 12), ("reads", reads)):
            rows.append(row(f"{p:.4f}", label, " ".join(words), source, claim))
    file = run(rows)

    def both(assessor, group):
        return [
            value_of(file, "auroc", assessor, group=group, variant=variant)[0]
            for variant in (None, "equal_overlap")
        ]

    for assessor, group in (("one", "overlap"), ("overlap", "overlap"), ("overlap", "reads")):
        whole, equal = both(assessor, group)
        assert whole > 0.65
        assert abs(equal - 0.5) < 0.1
    assert both("one", "reads") == [1, 1]
