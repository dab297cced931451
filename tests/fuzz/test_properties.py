"""Properties of Core's program, constrained LSS and FactReasoner's posteriors for any input.

``pytest tests/fuzz --hypothesis-profile million`` tries a million inputs of each kind.
"""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from components.subsequence import ClaimAutomaton, Spelling
from components.words import (
    align,
    is_subsequence,
    join_words,
    keep_targets,
    project,
    split_words,
)
from eval.prompting.prompted_lss import read_answer
from eval.select.program import solve as select
from eval.verify.factreasoner.inference import solve as infer
from eval.verify.factreasoner.network import Factor, Network
from records import LssExample
from tests.components.test_subsequence import KINDS, make
from tests.eval.test_core_program import by_enumeration

# Pieces that a model can write: NUL, right to left, byte order mark, joined emoji, a mark without a
# letter, line ends of every kind, a long word, digits that are not ASCII, open brackets.
WRITTEN = (
    "",
    " ",
    "\x00",
    "\u202eeno\u202c",
    "\ufeffone",
    "👩\u200d👩\u200d👧",
    "\u0301",
    "a\r\nb",
    "\r",
    "a\x85b\u2028c",
    "x" * 70_000,
    "9" * 5000,
    "٣",
    "½",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "[]",
    "{}",
    '"',
    "``",
    "```",
    "####",
    "$\\boxed{",
    "[[",
    "]]",
    "===",
    "\n",
    "\n\n",
    "not ",
    "n't ",
    ":",
    "\\",
)
written = st.sampled_from(WRITTEN) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# Weights that tie, that nearly do, that are nothing, and the largest.
WEIGHTS = st.sampled_from(
    [0.0, -1e-7, 4e-7, 1e-6, 0.1, 0.2, 0.3, 1 / 3, 1.0, 1 + 1e-6, 100.0, -100]
)
SHARES = st.sampled_from([0.0, 1e-4, 0.1, 0.3, 1 / 3, 0.5, 0.7, 2 / 3, 0.9999, 1.0])


@st.composite
def programs(draw, most=10):
    """Weights, exclusion, coherence and p of Eq. 1."""
    n = draw(st.integers(1, most))
    pairs = draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=2 * n))
    exclusion = np.zeros((n, n), bool)
    for i, j in pairs:
        exclusion[i, j] = exclusion[j, i] = i != j
    weights = np.array(draw(st.lists(WEIGHTS, min_size=n, max_size=n)), float)
    coherent = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    return weights, exclusion, coherent, draw(SHARES)


@given(programs())
def test_the_selection_is_feasible_and_the_best(program):
    _, exclusion, coherent, p = program
    selected = select(*program)
    kept = np.flatnonzero(selected)
    assert not exclusion[np.ix_(kept, kept)].any()
    assert p * len(kept) <= coherent[kept].sum() + 1e-6
    assert selected.tolist() == by_enumeration(*program)


@cache
def spelling(kind):
    return Spelling(make(kind))


@example("wordpiece", "don't 'e 5 % \u0301", [0, 1, 2])
@given(
    st.sampled_from(KINDS),
    st.lists(written.filter(lambda text: len(text) < 100), max_size=5).map(" ".join),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_allowed_tokens_write_a_subsequence(kind, claim, choices):
    automaton, ids = ClaimAutomaton(spelling(kind), claim), []
    for choice in choices:
        tokens, may_end = automaton.allowed(ids)
        assert tokens or may_end
        if not tokens:
            break
        ids.append(tokens[choice % len(tokens)])
    words = split_words(claim)
    text = join_words(claim, words, automaton.keep(ids))
    assert is_subsequence(text, claim)


@given(written, written, st.lists(st.booleans(), max_size=4))
def test_an_alignment_is_of_the_claims_words(lss, claim, keep):
    claim, lss = claim[:200], lss[:200]
    words = split_words(claim)
    assert all(claim[word.start : word.end] == word.text for word in words)
    strict, loose = align(lss, words, strict=True), align(lss, words)
    assert strict is None or loose == strict
    assert len(project(lss, words)) == len(words)
    assert is_subsequence(claim, claim)
    assert is_subsequence(join_words(claim, words, project(lss, words)), claim)
    answer = read_answer(lss, claim)
    assert answer is None or isinstance(align(answer, words), list | None)
    if claim:
        row = {"reference": "x", "claim": claim, "annotations": [{"lss": lss}], "keep": keep}
        claim_words, kept, lost = keep_targets(LssExample.model_validate_json(json.dumps(row)))
        assert len(kept) + lost == 1
        assert all(len(flags) == len(claim_words) for flags in kept)


ENTRIES = st.sampled_from([1e-6, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-6])


@st.composite
def networks(draw):
    """Up to seven variables and ten factors over one or two of them."""
    n = draw(st.integers(1, 7))
    scopes = st.lists(st.integers(0, n - 1), min_size=1, max_size=2, unique=True).map(tuple)
    factors = []
    for scope in draw(st.lists(scopes, max_size=10)):
        table = draw(st.lists(ENTRIES, min_size=2 ** len(scope), max_size=2 ** len(scope)))
        factors.append(Factor(scope, np.array(table).reshape((2,) * len(scope))))
    return Network(n, factors)


@pytest.mark.parametrize(
    "options",
    [{}, {"max_width": 1, "i_bound": 1, "approximate": "wmb"}, {"max_width": 1}],
    ids=["exact", "wmb", "annealed"],
)
@given(networks(), st.data())
def test_posteriors_are_probabilities_in_any_order_of_factors(options, network, data):
    (posteriors,) = infer([network], **options)
    turned = network._replace(factors=data.draw(st.permutations(network.factors)))
    (reordered,) = infer([turned], **options)
    assert np.isfinite(posteriors.p).all()
    assert ((posteriors.p >= 0) & (posteriors.p <= 1)).all()
    np.testing.assert_allclose(reordered.p, posteriors.p, rtol=0, atol=1e-9)
