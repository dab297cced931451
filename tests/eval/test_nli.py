"""The NLI verifier: which passage decides, thresholds, and claims without one."""

from __future__ import annotations

import numpy as np
import pytest

from eval.verify.nli import NLI
from records import Claim, Document, Passage

ENTAILS, NEUTRAL, CONTRADICTS = (0.6, 0.3, 0.1), (0.2, 0.7, 0.1), (0.1, 0.2, 0.7)


class ByWord:
    """A relation model that finds its answer in the premise."""

    def __init__(self):
        self.calls: list[list[tuple[str, str]]] = []

    def relations(self, pairs):
        self.calls.append(list(pairs))
        answers = {"yes": ENTAILS, "no": CONTRADICTS, "what": [np.nan] * 3}
        return np.array([answers.get(premise.split()[-1], NEUTRAL) for premise, _ in pairs])


PASSAGES = [
    Passage(id="y", title="Ada", text="She says yes"),
    Passage(id="n", title="Ada", text="She says no"),
    Passage(id="o", title="Ada", text="She says nothing"),
    Passage(id="u", title="Ada", text="She says what"),
]


def judge(claims, **options):
    model = ByWord()
    document = Document(id="d", topic="Ada", text="Ada.")
    return NLI(model, **options)([document], [claims], [PASSAGES])[0], model


def claim(contexts, name="c"):
    return Claim(id=name, text="Ada spoke.", contexts=contexts)


def test_best_passage_decides_and_all_pairs_are_one_call():
    claims = [claim(["o", "n", "y"], "a"), claim(["o", "n"], "b"), claim(["o"], "c")]
    verdicts, model = judge(claims)
    assert [v.label for v in verdicts] == ["supported", "contradicted", "not_supported"]
    assert [v.evidence for v in verdicts] == [["y"], ["o"], ["o"]]
    assert [v.contradicted_by for v in verdicts] == [["n"], ["n"], None]
    assert [v.p for v in verdicts] == [0.6, 0.2, 0.2]
    assert [len(call) for call in model.calls] == [6]


@pytest.mark.parametrize(("threshold", "label"), [(0.5, "supported"), (0.7, "not_supported")])
def test_a_threshold_replaces_the_argmax(threshold, label):
    verdicts, _ = judge([claim(["y"])], threshold=threshold)
    assert verdicts[0].label == label


def test_title_in_premise_prepends_the_title():
    assert judge([claim(["y"])])[1].calls == [[("She says yes", "Ada spoke.")]]
    titled = judge([claim(["y"])], title_in_premise=True)[1].calls
    assert titled == [[("Ada. She says yes", "Ada spoke.")]]


def test_no_passage_and_failed_retrieval_have_different_reasons():
    claims = [claim([], "a"), claim(None, "b"), claim(["gone"], "c"), claim(["y"], "d")]
    verdicts, _ = judge(claims)
    assert [v.label for v in verdicts] == ["failed", "failed", "failed", "supported"]
    reasons = ["no passage was found", "retrieval failed", "no passage was found", None]
    assert [v.reason for v in verdicts] == reasons
    assert [v.p for v in verdicts] == [None, None, None, 0.6]


def test_failed_relation_is_overruled_by_support_alone():
    claims = [claim(["y", "u"], "a"), claim(["n", "u"], "b"), claim(["u"], "c")]
    verdicts, _ = judge(claims)
    assert [v.label for v in verdicts] == ["supported", "failed", "failed"]
    assert [v.p for v in verdicts] == [0.6, None, None]
