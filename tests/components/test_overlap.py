"""Extracts of long premises, and marks on what a premise does not have."""

import math

import pytest

from components.overlap import focus_premise, mark_new_words, new_words, stem_weights

PREMISE = (
    "The weather was mild that spring. Ada Lovelace was born in London in 1815. Many people lived "
    "in the city. Her mother promoted her interest in mathematics. Trains came later."
)


def test_focus_keeps_the_sentences_that_the_hypothesis_needs_in_their_order():
    result = focus_premise(PREMISE, "Ada studied mathematics with her mother in London.", 15)
    assert result.split("\n") == [
        "Ada Lovelace was born in London in 1815.",
        "Her mother promoted her interest in mathematics.",
    ]


def test_focus_prefers_what_no_chosen_sentence_says():
    premise = "Ann won gold. Ann won gold there. Ann sang opera. Ann sang opera there."
    result = focus_premise(premise, "Ann won gold and sang opera.", 6)
    assert result == "Ann won gold.\nAnn sang opera."


def test_stems_weigh_by_how_few_texts_have_them():
    weight = stem_weights(["Ann won", "Ann lost", "Ann won"])
    assert [weight(stem) for stem in ("ann", "won", "gold")] == pytest.approx(
        [math.log(3 / 2.5), math.log(3 / 1.5), math.log(3 / 0.5)]
    )


def test_focus_leaves_what_fits_and_cuts_what_shares_nothing():
    assert focus_premise(PREMISE, "Ada.", None) == PREMISE
    assert focus_premise(PREMISE, "Ada.", 500) == PREMISE
    assert focus_premise(PREMISE, "Xyz!", 3) == "The weather was"
    assert focus_premise("word " * 40, "word", 7).split() == ["word"] * 7


def test_focus_prefers_rare_words_and_never_overflows():
    premise = "\n".join([f"The river {i} is long." for i in range(20)] + ["Zanzibar is an island."])
    assert "Zanzibar" in focus_premise(premise, "The river of Zanzibar", 8)
    for words in (1, 5, 9, 30):
        assert len(focus_premise(premise, "The river of Zanzibar", words).split()) <= words


def test_marks_stand_behind_words_whose_stem_the_premise_lacks():
    premise = "She painted walls in 1901; her paintings hang in Rome."
    marked = mark_new_words("She paints (and sells) a painting in Rome, 1902.", premise)
    assert marked == "She paints (and* sells*) a* painting in Rome, 1902*."
    assert mark_new_words("", premise) == ""


def test_punctuation_is_never_new_and_case_does_not_count():
    assert new_words(["ROME", ",", "it's", "—", "Paris"], "Rome. It's") == [
        False,
        False,
        False,
        False,
        True,
    ]
