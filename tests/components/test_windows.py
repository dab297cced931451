"""Windows of long premises, and which of them counts."""

import numpy as np

from components.windows import best_windows, chunk_premise, windows_of


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


def test_each_window_has_its_own_extract_and_marks():
    premise = "Ada lived here. Bob painted walls. Cyn was born in Rome. Dan left early on."
    rows, windows = windows_of([(premise, "Cyn painted Rome")], 9, 4, mark_new=True)
    assert rows == [0, 0, 0]
    assert windows[0] == ("Bob painted walls.\nCyn", "Cyn painted Rome*")
    assert windows[-1] == ("born in Rome.", "Cyn* painted* Rome")
