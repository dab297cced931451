"""The gate before Core's exclusion: what it lets through, and that Core does not notice it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from components.overlap import stem_shares
from eval.select.core import Core
from eval.select.gate import Gate
from records import Claim, Document

TEXTS = ["Ada wrote long letters.", "Ada wrote letters.", "Ada moved to Leeds.", "Ada sang."]


class Asked:
    """Entails where the premise has all words of the hypothesis; keeps what it was asked."""

    def __init__(self):
        self.pairs = []

    def relations(self, pairs):
        self.pairs += pairs
        held = [set(b.lower().split()) <= set(a.lower().split()) for a, b in pairs]
        return np.array([[0.9, 0.1, 0.0] if one else [0.1, 0.9, 0.0] for one in held])


def selected(gate: Gate | None) -> tuple[list[bool], list[tuple[str, str]]]:
    model = Asked()
    claims = [Claim(id=f"c{n}", text=text, source=text) for n, text in enumerate(TEXTS)]
    (found,) = Core(model, weighting="uniform", gate=gate)(
        [Document(id="d", topic="Ada", text=" ".join(TEXTS))], [claims]
    )
    return [one.selected for one in found], model.pairs


def test_shares_are_of_the_column_and_leave_the_topic_out():
    shares = stem_shares(TEXTS)
    assert np.diag(shares) == pytest.approx(np.ones(4))
    # All that the second says is in the first, but not the other way round.
    assert shares[0, 1] == pytest.approx(1)
    assert 0.4 < shares[1, 0] < 0.7
    assert shares[0, 2] < 0.15  # "Ada" alone
    order = [2, 0, 3, 1]
    assert stem_shares([TEXTS[place] for place in order]).tolist() == (
        shares[np.ix_(order, order)].tolist()
    )
    assert stem_shares(["…", "Ada."])[1, 0] == 1


def test_pairs_that_share_little_are_not_asked():
    whole, every = selected(None)
    gated, asked = selected(Gate(skip_below=0.6, from_claims=0))
    assert gated == whole == [False, True, True, True]
    # One direction entails: the other is not asked, with the gate or without.
    assert {frozenset(pair) for pair in asked} == {frozenset(TEXTS[:2])}
    assert asked == [(TEXTS[0], TEXTS[1])]
    assert len(every) == 2 * len(list(combinations(TEXTS, 2))) - 1


def test_small_documents_are_compared_in_full():
    assert selected(Gate(skip_below=1.0, from_claims=5)) == selected(None)
    assert len(selected(Gate(skip_below=1.0, from_claims=4))[1]) < len(selected(None)[1])
