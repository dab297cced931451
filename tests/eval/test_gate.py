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
        entails = [set(b.lower().split()) <= set(a.lower().split()) for a, b in pairs]
        return np.array(
            [[0.9, 0.1, 0.0] if is_entailed else [0.1, 0.9, 0.0] for is_entailed in entails]
        )


def selected(gate: Gate | None) -> tuple[list[bool], list[tuple[str, str]]]:
    model = Asked()
    claims = [Claim(id=f"c{n}", text=text, source=text) for n, text in enumerate(TEXTS)]
    (selections,) = Core(model, weighting="uniform", gate=gate)(
        [Document(id="d", topic="Ada", text=" ".join(TEXTS))], [claims]
    )
    return [selection.selected for selection in selections], model.pairs


def test_stem_shares_weigh_the_topic_little():
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


def test_dissimilar_pairs_are_not_queried():
    whole, all_pairs = selected(None)
    gated, gated_pairs = selected(Gate(skip_below=0.6, from_claims=0))
    assert gated == whole == [True, False, True, True]  # the claim that entails another is kept
    # One direction entails: the other is not asked, with the gate or without.
    assert {frozenset(pair) for pair in gated_pairs} == {frozenset(TEXTS[:2])}
    assert gated_pairs == [(TEXTS[0], TEXTS[1])]
    assert len(all_pairs) == 2 * len(list(combinations(TEXTS, 2))) - 1
