"""What counts as entailment: one rule for Core, all verifiers, citations and DecompScore."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from data_builders.written.ambigbio.biographies import generations
from eval.decompose.given import Given
from eval.experiments.factreasoner.relation_model_values import Pair, compute_measures
from eval.metrics.citations import Citations
from eval.metrics.decomposition import same_claims
from eval.models.chat import Answer
from eval.pipeline import Pipeline
from eval.select.core import Core
from eval.verify.dfactscore.stage import DFActScore
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.majority import Majority
from eval.verify.nli import NLI
from records import Claim, Document, Passage


class Says:
    """A relation model that says the same of every pair."""

    def __init__(self, *row: float):
        self.row = row

    def relations(self, pairs):
        return np.tile(np.array(self.row, dtype=float), (len(pairs), 1))


def everybody(documents, claims):
    return [["g"] * len(claim) for claim in claims]


DOCUMENT = Document(
    id="d",
    topic="Ann",
    text="Ann won [1].",
    claims=[Claim(id="c", text="Ann won.", source="Ann won in 1990.")],
    passages=[Passage(id="p", title="Ann", text="Ann took the prize.")],
)


def labels(row, **options):
    """What each verifier says of a claim whose only passage is related to it by ``row``."""
    model = Says(*row)
    verify = [NLI(model, **options), Majority(model), FactReasoner(model)]
    verify.append(DFActScore(model, everybody, **options))
    (first,) = Pipeline(Given(), verify).score([DOCUMENT])
    return {(v.assessor, v.name): v.label for v in first.verdicts}


def decisions(row):
    """Who takes ``row`` for an entailment."""
    model = Says(*row)
    result = labels(row)
    by_name = {name: label == "supported" for name, label in result.items()}
    (sentences,) = Citations(model)([DOCUMENT])
    by_name["citations"] = sentences[0].recalled
    inputs = generations(
        {"Ann": Answer("Ann won [1].")}, {"Ann": DOCUMENT.passages}, "g", model, {}, Counter()
    )
    by_name["biographies"] = bool(next(inputs).citations[0]["entailed"])
    (chosen,) = Core(model, weighting="uniform")([DOCUMENT], [DOCUMENT.claims])
    by_name["core"] = chosen[0].selected
    classes = same_claims(model, [[Claim(id="a", text="A."), Claim(id="b", text="B.")]])
    by_name["decomp_score"] = classes == [[0, 0]]
    pairs = [Pair("d", "entailment", "a", "b")]
    values = compute_measures(pairs, {"m": model.relations(pairs)}, [], 0, "factor")
    called_so = {(v["metric"], v["kind"]): v["value"] for v in values}
    by_name["relation_model"] = called_so["called_so", "entailment"] == 1
    return by_name


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((0.4, 0.4, 0.2), False),
        ((1 / 3, 1 / 3, 1 / 3), False),
        ((0.6, 0.2, 0.2), True),
    ],
)
def test_tie_is_no_entailment_for_any_caller(row, expected):
    by_name = decisions(row)
    assert len(by_name) == 12
    assert set(by_name.values()) == {expected}, by_name


def test_threshold_decides_ties_and_includes_its_value():
    for threshold, label in ((0.4, "supported"), (0.41, "not_supported")):
        result = labels((0.4, 0.4, 0.2), threshold=threshold)
        assert {result["nli", "default"], result["dfactscore", "independent"]} == {label}
    (sentences,) = Citations(Says(0.4, 0.4, 0.2), threshold=0.4)([DOCUMENT])
    assert sentences[0].recalled is True


def test_missing_probabilities_fail():
    result = labels([np.nan] * 3)
    assert result.pop(("dfactscore", "independent")) == "failed"
    assert result["nli", "default"] == result["majority", "default"] == "failed"
