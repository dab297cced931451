"""What must stand on one side of a split, and how near held-out texts stand to others."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from components.english import stems
from components.ties import LINE_WORDS, Ties, keys_of, tied_records
from data_builders.published.pairs.nearness import nearest_similarities
from records import LssExample

LONG = " ".join(f"word{place}" for place in range(LINE_WORDS))

# What two rows (group, text, documents, told) have in common, and whether it ties them.
CASES = {
    "a group": (("g", "one"), ("g", "two"), True),
    "a text": (("g", "The  one."), ("h", "the one."), True),
    "a document": (("g", "one", ["d"]), ("h", "two", ["c", "d"]), True),
    "a document in another Unicode form": (
        ("g", "one", ["Zoë_Ray"]),
        ("h", "two", ["zoe\u0308 ray"]),
        True,
    ),
    "a long line": (("g", f"one\n{LONG}"), ("h", f"{LONG.upper()}\nmenu"), True),
    "a sentence that is told of another": (("g", "one", [], "Two"), ("h", "two"), True),
    "a short line": (("g", "one\nmenu"), ("h", "two\nmenu"), False),
    "what is told": (("g", "one", [], "so"), ("h", "two", [], "so"), False),
    "a group's name as a text": (("g", "one"), ("h", "g"), False),
    "nothing": (("g", "one"), ("h", "two"), False),
}


def tied(rows: list[tuple], share: float = 0.5):
    ties = Ties()
    for row in rows:
        ties.add(*row)
    return ties.tie(share)


@pytest.mark.parametrize("name", CASES)
def test_what_ties_two_rows(name: str) -> None:
    first, second, together = CASES[name]
    names = tied([first, second]).names
    assert (names[0] == names[1]) is together
    assert names[0] == "g"
    assert tied([second, first]).names == names[::-1]


def test_ties_go_on_from_row_to_row() -> None:
    rows = [("a", "1"), ("b", "1", ["d"]), ("c", "2", ["d"]), ("c", "3"), ("e", "4")]
    assert tied(rows).names == ["a", "a", "a", "a", "e"]
    assert tied([]).names == []


def test_what_would_tie_everything_is_told_instead() -> None:
    rows = [(str(place), f"t{place}", [f"d{place // 2}", "all"]) for place in range(100)]
    result = tied(rows)
    assert len(set(result.names)) == 50
    assert result.common == 1
    assert not result.crossing([True] * 2 + [False] * 98).any()
    # A chain: each group shares a text with the next.
    chain = [(str(place), f"t{place + more}") for place in range(100) for more in range(2)]
    mixed = random.Random(0).sample(chain, len(chain))
    result, other = tied(chain), tied(mixed)
    assert 3 <= len(set(result.names)) <= 40
    assert max(Counter(result.names).values()) <= 200 / 6 + 2
    assert dict(zip(chain, result.names, strict=True)) == dict(zip(mixed, other.names, strict=True))
    heldout = [name == result.names[0] for name in result.names]
    away = result.crossing(heldout)
    assert 0 < away.sum() < 10
    texts = {row[1] for row, side in zip(chain, heldout, strict=True) if side}
    groups = {row[0] for row, side in zip(chain, heldout, strict=True) if side}
    for row, side, out in zip(chain, heldout, away, strict=True):
        assert not (side and out)
        assert out == (not side and (row[0] in groups or row[1] in texts))


def test_each_source_has_its_share() -> None:
    """A small set whose rows hang together is not one lump beside a large one."""
    small = [(f"s{place}", f"{place // 2}", ["d"], "", "small") for place in range(60)]
    large = [(f"l{place}", f"l{place}", [], "", "large") for place in range(6000)]
    names = tied([*small, *large], 0.5).names[:60]
    assert names == tied(small, 0.5).names
    assert len(set(names)) == 30


def test_references_and_claims() -> None:
    rows = [
        LssExample(reference=f"{line}\nmore", claim="so", annotations=[{"lss": "so"}])
        for line in (LONG, f"{LONG} ever", LONG)
    ]
    first, second, third = tied_records([rows], 0.5).names
    assert first == third != second
    row_keys = [keys_of(row) for row in rows]
    assert [keys.isdisjoint(row_keys[0]) for keys in row_keys] == [False, True, False]


def test_the_nearest_training_text() -> None:
    train = ["the cat sat on the mat", "a dog runs", "the dogs are running fast"]
    heldout = ["the cat sat on the mat", "a cat runs", "nobody knows", ""]
    result = nearest_similarities(heldout, iter(train))

    df = Counter(stem for text in train for stem in set(stems(text)))

    def vector(text: str) -> dict[str, float]:
        counts = Counter(stems(text))
        weights = {s: n * (math.log(4 / (1 + df[s])) + 1) for s, n in counts.items()}
        norm = math.sqrt(sum(w * w for w in weights.values())) or 1
        return {s: w / norm for s, w in weights.items()}

    def cosine(left: str, right: str) -> float:
        a, b = vector(left), vector(right)
        return sum(a[s] * b.get(s, 0) for s in a)

    assert result == pytest.approx([max(cosine(h, t) for t in train) for h in heldout], abs=1e-6)
    assert result[0] == pytest.approx(1)
    assert result[2] == result[3] == 0
    assert nearest_similarities(["a"], []).tolist() == [0]
