"""Windows of long premises, and which of them counts."""

import numpy as np

from components.windows import best_windows, chunk_premise, focus_premise, windows_of


def test_chunks_cover_every_word_and_overlap():
    premise = " ".join(map(str, range(25)))
    chunks = chunk_premise(premise, 10)
    assert {w for c in chunks for w in c.split()} == set(premise.split())
    assert all(len(c.split()) <= 10 for c in chunks)
    assert chunks[0].split()[5:] == chunks[1].split()[:5]
    assert chunk_premise("a b", 10) == ["a b"]
    assert chunk_premise(premise, None) == [premise]


def test_every_window_keeps_its_row_and_hypothesis():
    rows, windows = windows_of([("a b c d", "x"), ("a", "y")], 2)
    assert rows == [0, 0, 0, 1]
    assert windows == [("a b", "x"), ("b c", "x"), ("c d", "x"), ("a", "y")]
    assert windows_of([("a b c d", "x")], None) == ([0], [("a b c d", "x")])


def test_the_window_with_the_highest_score_counts_and_the_first_wins_a_tie():
    scores = np.asarray([0.2, 0.9, 0.5, 0.5])
    assert best_windows(scores, [0, 0, 1, 1]).tolist() == [1, 2]


def test_rows_need_not_follow_each_other():
    assert best_windows(np.asarray([0.1, 0.2, 0.3]), [0, 2, 2]).tolist() == [0, 2]


PREMISE = (
    "The weather was mild that spring. Ada Lovelace was born in London in 1815. Many people lived "
    "in the city. Her mother promoted her interest in mathematics. Trains came later."
)


def test_focus_keeps_the_sentences_that_the_hypothesis_needs_in_their_order():
    found = focus_premise(PREMISE, "Ada studied mathematics with her mother in London.", 15)
    assert found.split("\n") == [
        "Ada Lovelace was born in London in 1815.",
        "Her mother promoted her interest in mathematics.",
    ]


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


def test_windows_are_cut_from_the_extract():
    rows, windows = windows_of([(PREMISE, "mathematics interest mother")], 4, 7)
    assert rows == [0, 0, 0]
    assert windows[0][0] == "Her mother promoted her"
