"""Core: the weights and the selector stage as a whole (the program: test_core_program.py)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from eval.select.core import Core
from eval.select.weights import capped, information
from records import Claim, Document

ENTAILS, NEUTRAL = (0.9, 0.08, 0.02), (0.1, 0.7, 0.2)


class Table:
    """An entailment model and a UNLI model that look their answers up.

    Args:
        entailed: pairs (premise, hypothesis) that are entailments; all others are neutral.
        likely: p(hypothesis | any premise) by hypothesis, or by pair.
        default: the likelihood of the others.
    """

    def __init__(self, entailed=(), likely=None, default: float = 0.01):
        self.entailed = set(entailed)
        self.likely = likely or {}
        self.default = default
        self.asked: list[list[tuple[str, str]]] = []

    def relations(self, pairs):
        self.asked.append(list(pairs))
        return np.array([ENTAILS if pair in self.entailed else NEUTRAL for pair in pairs])

    def likelihood(self, pairs):
        self.asked.append(list(pairs))
        by = self.likely
        return np.array([by.get(pair, by.get(pair[1], self.default)) for pair in pairs])


class NamesTopic:
    """A relevance stage: a sentence is relevant if it names the topic."""

    def __call__(self, documents, sentences):
        return [[int(d.topic in s) for s in ss] for d, ss in zip(documents, sentences, strict=True)]


def document(texts, sources=None, name="d", topic="Ada"):
    sources = sources or [f"Sentence {i}." for i in range(len(texts))]
    claims = [
        Claim(id=f"{name}{i}", text=text, source=source)
        for i, (text, source) in enumerate(zip(texts, sources, strict=True))
    ]
    return Document(id=name, topic=topic, text=" ".join(sources)), claims


def select(core, texts, sources=None, **names):
    doc, claims = document(texts, sources, **names)
    (selections,) = core([doc], [claims])
    assert [s.claim for s in selections] == [c.id for c in claims]
    return selections


def kept(selections, texts):
    return {text for s, text in zip(selections, texts, strict=True) if s.selected}


def uniform(entailed=(), p=0.0, **options):
    return Core(Table(entailed), weighting="uniform", p=p, **options)


# The weights.


def test_entailed_claim_weighs_minus_epsilon():
    assert capped(0.5, entailed=True, epsilon=0.1, floor=1e-6) == -0.1
    assert capped(0.5, entailed=False, epsilon=0.1, floor=1e-6) == pytest.approx(math.log(2) - 0.1)


def test_information_is_finite_at_zero_and_zero_at_one():
    assert information(0.0, floor=1e-6) == pytest.approx(6 * math.log(10))
    assert information(1.0 + 1e-7, floor=1e-6) == 0


# The stage.


def test_figure_3_upper_panel_repeated_paraphrases():
    """After the idea of Figure 3's upper panel; the claims are ours.

    One fact is told in three wordings; the middle one entails both others, and they do not entail
    each other. With uniform weights the larger set of claims without a repetition is kept.
    """
    texts = ["Ada wrote.", "Ada wrote the first program.", "Ada worked on programs.", "Ada died."]
    core = uniform([(texts[1], texts[0]), (texts[1], texts[2])])
    selections = select(core, texts)
    assert kept(selections, texts) == {texts[0], texts[2], texts[3]}
    assert (selections[1].reason, selections[1].duplicate_of) == ("duplicate", "d2")


def test_figure_3_upper_panel_with_informativeness():
    """The claims of the test above.

    The same claims with informativeness weights: the specific claim is worth more than the two
    that it entails, and stays.
    """
    texts = ["Ada wrote.", "Ada wrote the first program.", "Ada worked on programs.", "Ada died."]
    entailed = [(texts[1], texts[0]), (texts[1], texts[2])]
    likely = {texts[0]: 0.5, texts[1]: 0.001, texts[2]: 0.2, texts[3]: 0.9}
    core = Core(Table(entailed), Table(likely=likely), ["{topic} is."], weighting="cpmi", p=0)
    selections = select(core, texts)
    assert kept(selections, texts) == {texts[1], texts[3]}
    assert selections[0].duplicate_of == selections[2].duplicate_of == "d1"
    assert selections[1].weight == pytest.approx(-math.log(0.001))


def test_claims_that_bleached_claims_make_certain_are_uninformative():
    """One that says what holds of any coin, and that it fell on heads or tails, says nothing.

    Counted plainly, half of such claims may well be supported; with Core none is counted, and
    factual precision is 0.
    """
    texts = ["The coin is a coin.", "The coin lands heads or tails."]
    bleached = ["{topic} exists."]
    model = Table([("The coin exists.", texts[0])], likely=dict.fromkeys(texts, 1.0))
    for weighting in ("cpmi", "capped"):
        core = Core(model, model, bleached, weighting=weighting, epsilon=0.01)
        selections = select(core, texts, topic="The coin")
        assert not any(s.selected for s in selections)
        assert {s.reason for s in selections} == {"uninformative"}


@pytest.mark.parametrize(("joint", "alone"), [(0.05, True), (0.07, False)])
def test_a_conjunction_is_chosen_when_its_probability_is_below_the_product(joint, alone):
    texts = ["Ada sang and danced.", "Ada sang.", "Ada danced."]
    likely = {texts[0]: joint, texts[1]: 0.2, texts[2]: 0.3}  # the product is 0.06
    entailed = [(texts[0], texts[1]), (texts[0], texts[2])]
    core = Core(Table(entailed), Table(likely=likely), ["{topic} is."], weighting="cpmi", p=0)
    assert kept(select(core, texts), texts) == ({texts[0]} if alone else set(texts[1:]))


def test_single_claim_is_selected_and_no_claims_give_none():
    core = uniform()
    assert select(core, []) == []
    (selection,) = select(core, ["Ada wrote."])
    assert selection.selected
    assert selection.reason == "selected"
    assert core([], []) == []


@pytest.mark.parametrize(
    ("general", "specific"),
    [
        ("Ada was a person.", "Ada was a writer."),
        ("Ada was a writer.", "Ada was a novelist."),
        ("Ada lived.", "Ada was a person and lived in a town."),
    ],
)
def test_with_equal_weights_the_claim_that_entails_the_other_is_kept(general, specific):
    for texts in ([general, specific], [specific, general]):
        selections = select(uniform([(specific, general)]), texts)
        assert kept(selections, texts) == {specific}


def test_of_a_chain_of_entailments_the_most_specific_claim_is_kept():
    texts = ["Ada was an artist.", "Ada was a person.", "Ada was a sculptor."]
    entailed = [(texts[2], texts[0]), (texts[0], texts[1]), (texts[2], texts[1])]
    assert kept(select(uniform(entailed), texts), texts) == {texts[2]}


def test_all_duplicates_leave_the_first():
    core = uniform()
    selections = select(core, ["Ada wrote.", "ada wrote", "Ada  wrote."])
    assert [s.selected for s in selections] == [True, False, False]
    assert {s.duplicate_of for s in selections[1:]} == {"d0"}
    # Nothing was asked but whether the sentences entail the text.
    assert [len(pairs) for pairs in core.entailment.asked] == [3]


def random_case(seed, n=9):
    draw = np.random.default_rng(seed)
    texts = [f"Claim {number}." for number in draw.permutation(n)]
    sources = [f"Sentence {number}." for number in draw.integers(0, 4, n)]
    entailed = [pair for pair in itertools.permutations(texts, 2) if draw.random() < 0.12]
    entailed += [pair for pair in zip(sources, texts, strict=True) if draw.random() < 0.4]
    likely = {text: float(draw.choice([0.1, 0.2, 1.0])) for text in texts}
    model = Table(entailed, likely)
    return Core(model, model, ["{topic} is."], p=0.5), texts, sources


@pytest.mark.parametrize("seed", range(12))
def test_permuting_and_duplicating_claims_changes_nothing(seed):
    core, texts, sources = random_case(seed)
    expected = kept(select(core, texts, sources), texts)
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(texts))
    shuffled, moved = [texts[i] for i in order], [sources[i] for i in order]
    assert kept(select(core, shuffled, moved), shuffled) == expected
    twice = [int(i) for i in draw.integers(0, len(texts), 6)] + list(range(len(texts)))
    more, more_sources = [texts[i] for i in twice], [sources[i] for i in twice]
    selections = select(core, more, more_sources)
    assert kept(selections, more) == expected
    assert sum(s.selected for s in selections) == len(expected)


def test_p_limits_the_share_of_incoherent_claims():
    texts = ["A one.", "B two.", "C three."]
    entailed = [("Sentence 0.", texts[0])]  # one coherent claim of three
    count = {p: sum(s.selected for s in select(uniform(entailed, p), texts)) for p in (0, 0.5, 1)}
    assert count == {0: 3, 0.5: 2, 1: 1}
    selections = select(uniform(entailed, 1.0), texts)
    assert [s.reason for s in selections] == ["selected", "incoherent", "incoherent"]
    assert [s.document_entailment for s in selections] == [0.9, 0.1, 0.1]


def test_claim_without_source_is_judged_by_the_document():
    claim = Claim(id="a", text="Ada wrote.")
    doc = Document(id="d", topic="Ada", text="Ada wrote letters.")
    ((selection,),) = uniform([(doc.text, claim.text)], p=1.0)([doc], [[claim]])
    assert selection.selected


def test_the_cap_reaches_the_selection():
    texts = ["Ada is a person.", "Ada wrote."]
    model = Table([("Ada lives.", texts[0])], default=0.5)
    selections = select(Core(model, model, ["{topic} lives."], p=0, epsilon=0.1), texts)
    assert [s.weight for s in selections] == pytest.approx([-0.1, math.log(2) - 0.1])
    assert [s.reason for s in selections] == ["uninformative", "selected"]
    # One template, and the capped claim's likelihood is not asked for.
    assert model.asked[-1] == [("Ada lives.", texts[1])]
    # One of several bleached claims is enough.
    several = Core(model, model, ["{topic} is.", "{topic} lives."], p=0, epsilon=0.1)
    assert select(several, texts)[0].weight == pytest.approx(-0.1)


def test_the_likeliest_of_several_bleached_claims_decides():
    text = "Ann Lee is a person."
    document = Document(id="d", topic="Ann Lee", text=text)
    claim = Claim(id="0", text=text, sentence=0, source=text)
    likely = {("Ann Lee exists.", text): 0.5, ("Ann Lee has a name.", text): 0.9}
    model = Table(entailed=[(text, text)], likely=likely)
    core = Core(model, model, ["{topic} exists.", "{topic} has a name."], weighting="cpmi")
    ((chosen,),) = core([document], [[claim]])
    assert chosen.weight == pytest.approx(-math.log(0.9))


def test_uninformative_claims_provide_budget_only_if_strict():
    texts = ["Ada is.", "Ada wrote."]
    model = Table([("Ada lives.", texts[0]), ("Sentence 0.", texts[0])])
    for strict, expected in [(False, set()), (True, set(texts))]:
        core = Core(model, model, ["{topic} lives."], p=0.5, strict_eq1=strict)
        assert kept(select(core, texts), texts) == expected


def test_irrelevant_sentences_are_never_selected():
    texts, sources = ["A one.", "B two.", "a one"], ["Bob did.", "Ada did.", "Ada did."]
    core = uniform(relevance=NamesTopic())
    selections = select(core, texts, sources)
    assert [s.reason for s in selections] == ["irrelevant", "selected", "selected"]
    assert selections[0].weight == 0
    selections = select(core, texts[:1], sources[:1])
    assert [s.selected for s in selections] == [False]


def test_threshold_instead_of_argmax():
    pair = [("Ada wrote code.", "Ada wrote.")]
    texts = list(pair[0])
    for threshold, count in [(None, 1), (0.85, 1), (0.95, 2), (0.05, 1)]:
        core = uniform(pair, entail_threshold=threshold)
        assert sum(s.selected for s in select(core, texts)) == count


def test_model_calls_are_batched_over_documents():
    texts = ["A one.", "B two.", "C three."]
    batch = [document(texts, name=name) for name in ("d", "e", "f")]
    model = Table([("Ada lives.", texts[2])])
    core = Core(model, model, ["{topic} lives.", "{topic} is."], p=0)
    first, *rest = core([d for d, _ in batch], [c for _, c in batch])
    coherence, cap_of_first, cap_of_second, unli, exclusion, back = model.asked
    # The documents share sentences and claims; a capped text is not asked for again.
    assert (len(coherence), len(cap_of_first), len(cap_of_second)) == (3, 3, 2)
    assert len(unli) == 2 * 2
    # Both directions, without the claim that the cap has put out of the race.
    assert (exclusion, back) == ([(texts[0], texts[1])], [(texts[1], texts[0])])
    assert [[s.selected for s in other] for other in rest] == [[s.selected for s in first]] * 2


def test_pairs_are_queried_in_blocks(monkeypatch):
    texts = [f"Ada wrote {word}." for word in ("poems", "verse", "rhymes", "code", "letters")]
    same = [(texts[0], texts[1]), (texts[2], texts[0]), (texts[4], texts[0])]
    batch = [document(texts, name=name) for name in ("d", "e")]
    actual = []
    for size in (100, 3):
        monkeypatch.setattr("eval.select.core.PAIRS_AT_ONCE", size)
        core = uniform(same)
        actual.append(core([d for d, _ in batch], [c for _, c in batch]))
        exclusion = core.entailment.asked[1:]
        # Ten pairs of five texts, each in one direction and then, unless it entails, in the other
        assert max(map(len, exclusion)) == min(size, 10)
    assert actual[0] == actual[1]
    assert [s.selected for s in actual[1][1]] == [False, True, True, True, True]


def test_claim_without_a_likelihood_is_failed_and_not_selected():
    model = Table(likely={"A one.": math.nan, "A two.": 0.1})
    selections = select(Core(Table(), model, ["{topic} is."], p=0), ["A one.", "A two."])
    assert [s.reason for s in selections] == ["failed", "selected"]
