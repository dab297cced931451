"""Several relation models as one: all must say that a premise entails a claim."""

import numpy as np

from eval.models.joint import Joint
from eval.stages import entails

YES, NO, UNKNOWN = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (np.nan,) * 3


class Answers:
    """A relation model with given answers, which keeps what it was asked."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def relations(self, pairs):
        self.asked += pairs
        return np.array([self.answers[pair] for pair in pairs]).reshape(-1, 3)


def test_the_strictest_model_decides_and_later_ones_are_asked_about_entailed_pairs_only():
    pairs = [("p", "both"), ("p", "first"), ("p", "second"), ("p", "unanswered")]
    first = Answers(dict(zip(pairs, [YES, YES, NO, YES], strict=True)))
    surer = (0.9, 0.05, 0.05)
    second = Answers(dict(zip(pairs, [surer, NO, YES, UNKNOWN], strict=True)))
    answers = Joint([first, second]).relations(pairs)
    np.testing.assert_array_equal(answers, [YES, NO, NO, UNKNOWN])
    assert second.asked == [pairs[0], pairs[1], pairs[3]]


def test_nothing_entailed_is_no_question_to_the_second_model():
    pairs = [("p", "c")]
    second = Answers({})
    assert Joint([Answers({pairs[0]: NO}), second]).relations(pairs).tolist() == [list(NO)]
    assert second.asked == []


def test_a_joint_entailment_is_the_own_verdict_of_every_model():
    pair = ("p", "c")
    surer_of_neutral = Answers({pair: (0.45, 0.55, 0.0)})
    for models in (
        [Answers({pair: (0.40, 0.35, 0.25)}), surer_of_neutral],
        [Answers({pair: (0.6, 0.3, 0.1)}), Answers({pair: YES}), surer_of_neutral],
    ):
        answers = Joint(models).relations([pair])
        assert answers.tolist() == [[0.45, 0.55, 0.0]]
        assert not entails(answers)[0]
