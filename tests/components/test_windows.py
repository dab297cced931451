"""Windows of long premises, and which of them counts."""

import numpy as np

from components.windows import best_windows, chunk_premise, one_reading, windows_of


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


def test_both_ways_a_window_is_read_with_marks_and_then_without() -> None:
    pairs = [("a b c d", "a x"), ("a", "y")]
    rows, windows = windows_of(pairs, 2, mark_new="both")
    marked, plain = windows_of(pairs, 2, mark_new=True), windows_of(pairs, 2)
    assert (rows[::2], windows[::2]) == marked
    assert (rows[1::2], windows[1::2]) == plain
    assert windows[0] != windows[1]
    logits = np.arange(len(rows) * 3.0).reshape(-1, 3)
    read, own = one_reading(logits, rows, "both")
    assert own == plain[0]
    np.testing.assert_allclose(read, [logits[i : i + 2].mean(axis=0) for i in range(0, 8, 2)])
    assert one_reading(logits, rows, True)[0] is logits
