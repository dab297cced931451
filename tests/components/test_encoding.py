"""Chunks, batches and prompts."""

from components.encoding import batches_by_length, chunk_premise, fill_prompt, pad


def test_chunks_cover_every_word_and_overlap():
    premise = " ".join(map(str, range(25)))
    chunks = chunk_premise(premise, 10)
    assert {w for c in chunks for w in c.split()} == set(premise.split())
    assert all(len(c.split()) <= 10 for c in chunks)
    assert chunks[0].split()[5:] == chunks[1].split()[:5]
    assert chunk_premise("a b", 10) == ["a b"]
    assert chunk_premise(premise, None) == [premise]


def test_batches_hold_every_index_once_with_like_lengths():
    lengths = [5, 1, 9, 9, 3]
    batches = list(batches_by_length(lengths, 2))
    assert batches == [[2, 3], [0, 4], [1]]


def test_prompts_fill_names_and_leave_other_braces():
    assert fill_prompt("{topic}: {x}", topic="{Ann}") == "{Ann}: {x}"


def test_padding_left_and_right():
    assert pad([[1], [2, 3]], 0).tolist() == [[1, 0], [2, 3]]
    assert pad([[1], [2, 3]], 0, left=True).tolist() == [[0, 1], [2, 3]]
