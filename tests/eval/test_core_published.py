"""Core's released settings, the cap's own model, and what ε does (2407.03572)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eval.metrics.document import score_document
from eval.run.parts import find_identities
from eval.select.core import Core
from eval.select.core_published import CorePublished
from records import Claim, Document, UserError, Verdict

ABOUT = ["{topic} is."]


class Table:
    """An entailment and a UNLI model that look their answers up; ``weak`` entails below a half."""

    def __init__(self, entailed=(), weak=(), likely=None):
        self.entailed, self.weak, self.likely = set(entailed), set(weak), likely or {}
        self.asked = []

    def relations(self, pairs):
        self.asked += pairs
        probabilities = dict.fromkeys(self.weak, (0.45, 0.35, 0.2)) | dict.fromkeys(
            self.entailed, (0.9, 0.08, 0.02)
        )
        return np.array([probabilities.get(pair, (0.1, 0.7, 0.2)) for pair in pairs])

    def likelihood(self, pairs):
        return np.array([self.likely.get(claim, 0.01) for _, claim in pairs])


def selections(core, texts, topic="Ada", sources=None):
    sources = sources or texts
    claims = [
        Claim(id=str(i), text=text, source=source)
        for i, (text, source) in enumerate(zip(texts, sources, strict=True))
    ]
    (chosen_selections,) = core([Document(id="d", topic=topic, text=" ".join(sources))], [claims])
    return chosen_selections


def kept(*args, **named):
    return [s.selected for s in selections(*args, **named)]


# ε: more than a threshold.


def test_choice_changes_where_epsilon_equals_the_difference_in_weight():
    """Section 3 takes the compound where P(c₁) < P(c₂) · P(c₃); here it is the other way round."""
    compound, first, second = "Ada sang and danced.", "Ada sang.", "Ada danced."
    likely = {compound: 0.07, first: 0.2, second: 0.3}
    more = math.log(likely[compound] / (likely[first] * likely[second]))
    model = Table([(compound, first), (compound, second)], likely=likely)
    for epsilon, alone in ((more - 1e-3, False), (more + 1e-3, True)):
        assert kept(Core(model, model, ABOUT, p=0, epsilon=epsilon), [compound, first, second]) == [
            alone,
            not alone,
            not alone,
        ]


# The paper's own examples.


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
def test_coin_on_both_sides_has_precision_0(epsilon):
    """Section 3: both sides, one side, the other side. Half of the sides are right; Core gives 0.

    Both at once is as good as impossible, so that claim outweighs its parts, excludes them, and is
    false.
    """
    texts = ["The coin shows both sides.", "The coin shows heads.", "The coin shows tails."]
    model = Table(
        [(texts[0], texts[1]), (texts[0], texts[2]), *((t, t) for t in texts)],
        likely=dict(zip(texts, (1e-4, 0.5, 0.5), strict=True)),
    )
    core = Core(model, model, ABOUT, p=1.0, epsilon=epsilon, floor=1e-6)
    document = Document(id="d", topic="The coin", text=" ".join(texts))
    claims = [Claim(id=str(i), text=text, source=text) for i, text in enumerate(texts)]
    labels = ["not_supported", "supported", "not_supported"]
    verdicts = [
        Verdict(claim=claim.id, assessor="given", label=label)
        for claim, label in zip(claims, labels, strict=True)
    ]
    (actual,) = core([document], [claims])
    chosen = {s.claim for s in actual if s.selected}
    assert chosen == {"0"}
    sides = score_document(True, claims[1:], verdicts[1:], None, gamma=0)
    assert sides.precision == 0.5
    assert score_document(True, claims, verdicts, chosen, gamma=0).precision == 0


def test_of_a_chain_of_ever_shorter_claims_the_most_specific_stays():
    """Figure 3's lower panel: uniform weights take any link, informativeness takes the first."""
    texts = ["Ada wrote the first program in 1843.", "Ada wrote the first program.", "Ada wrote."]
    chain = [(texts[0], texts[1]), (texts[0], texts[2]), (texts[1], texts[2])]
    model = Table(chain, likely=dict(zip(texts, (0.001, 0.01, 0.4), strict=True)))
    assert sum(kept(Core(model, weighting="uniform", p=0), texts)) == 1
    assert kept(Core(model, model, ABOUT, weighting="cpmi", p=0), texts) == [True, False, False]


# The cap.


def test_separate_cap_model_uses_its_most_probable_relation():
    texts = ["Ada is a person.", "Ada wrote."]
    self_pairs = [(text, text) for text in texts]
    other = Table(weak=[("Ada is.", texts[0])])
    entailment = Table(self_pairs)
    core = Core(entailment, entailment, ABOUT, p=1, epsilon=0.1, entail_threshold=0.6, cap=other)
    actual = selections(core, texts)
    assert [s.reason for s in actual] == ["uninformative", "selected"]
    assert actual[0].weight == pytest.approx(-0.1)
    assert other.asked == [("Ada is.", text) for text in texts]
    assert not {pair for pair in entailment.asked if pair[0] == "Ada is."}
    # With its threshold the one model does not cap it.
    alone = Table(self_pairs, weak=other.weak)
    assert kept(Core(alone, alone, ABOUT, p=1, entail_threshold=0.6), texts) == [True, True]


# The released settings.


def published(model, **options):
    settings = {"bleached": ABOUT, "relevance": None} | options
    return CorePublished(model, model, **settings)


def test_core_published_has_the_released_settings():
    core = published(Table())
    assert (core.p, core.epsilon, core.floor) == (1.0, 1e-3, 1e-3)
    assert (core.weighting, core.entail_threshold, core.strict_eq1) == ("capped", None, False)
    settings = {"weighting": "capped", "p": 1.0, "epsilon": 1e-3, "floor": 1e-3}
    (described,) = find_identities(core)
    assert settings.items() <= described.items(), "results say so"
    with pytest.raises(UserError, match="bleached"):
        published(Table(), bleached=[])


def test_the_released_code_takes_coherent_claims_only_and_the_likeliest_relation():
    texts = ["Ada wrote.", "Ada sang.", "Ada ran."]
    # Entailed by their own sentences: surely, and as the likeliest of three relations.
    sources = ["A said so.", "B said so.", "C said so."]
    model = Table([(sources[0], texts[0])], weak=[(sources[1], texts[1])])
    actual = selections(published(model), texts, sources=sources)
    assert [s.reason for s in actual] == ["selected", "selected", "incoherent"]


def test_a_likely_claim_stays_as_long_as_nothing_entails_it():
    texts = ["Ada is somebody.", "Ada is known."]
    model = Table([(text, text) for text in texts], likely={texts[0]: 0.998, texts[1]: 0.9995})
    actual = selections(published(model), texts)
    # −ln 0.998 is above ε = 1e-3, −ln 0.9995 below it.
    assert [s.reason for s in actual] == ["selected", "uninformative"]


def test_no_claim_weighs_more_than_the_least_probability_allows():
    text = "Ada wrote the first program."
    (actual,) = selections(published(Table([(text, text)], likely={text: 1e-9})), [text])
    assert actual.weight == pytest.approx(math.log(1000) - 1e-3)
