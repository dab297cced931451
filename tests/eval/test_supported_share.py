"""The supported share of a sentence's words, from hand-made and from real subsequences."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from components.words import join_words, split_words
from eval.models.lss import Subsequence
from eval.verify.supported_share import SupportedShare
from records import Claim, Document, Passage

CLAIM = "She was not born in Paris, Texas."


class Keeps:
    """Keeps the words that the passage has; "free" has words of its own, "long" no answer."""

    def subsequences(self, pairs: Sequence[tuple[str, str]]) -> list[Subsequence | None]:
        return [self._one(claim, passage) for claim, passage in pairs]

    def _one(self, claim: str, passage: str) -> Subsequence | None:
        if passage == "long":
            return None
        if passage == "free":
            return Subsequence(None, "not born, they say, in Texas")
        words = split_words(claim)
        keep = [word.text in passage.split() for word in words]
        return Subsequence(keep, join_words(claim, words, keep))


def judged(*texts: str, claim: str = CLAIM, **options: object) -> object:
    """The verdict on a claim against passages."""
    passages = [Passage(id=f"p{i}", text=text, title="Texas") for i, text in enumerate(texts)]
    document = Document(id="d", topic="x", text=claim)
    claims = [Claim(id="c", text=claim, contexts=[p.id for p in passages])]
    return SupportedShare(Keeps(), **options)([document], [claims], [passages])[0][0]


def test_supported_share_unites_the_passages() -> None:
    both = judged("She was born in", "born Paris , .", "She was")
    assert both.p == pytest.approx(2 / 4)  # not, born, Paris, Texas: "not" is no function word
    assert both.label == "not_supported"
    assert both.evidence == ["p0", "p1"]  # the others add nothing
    assert both.kept == [
        *(["She", True], ["was", True], ["not", False], ["born", True], ["in", True]),
        *(["Paris", True], [",", True], ["Texas", False], [".", True]),
    ]
    assert judged("not born Paris", threshold=0.75).label == "supported"
    assert judged("not born Paris", threshold=0.76).label == "not_supported"
    assert judged("not born Paris", title_in_premise=True).p == pytest.approx(3 / 4)
    assert judged("free").p == pytest.approx(3 / 4)
    assert judged("it is", claim="It is.").p == pytest.approx(1 / 2)  # no content word: all count
    nothing = judged("x")
    assert (nothing.p, nothing.label, nothing.evidence) == (0, "not_supported", [])


def test_unjudgeable_claims_fail() -> None:
    # What the second passage supports is not known: the first one's share would be too small.
    assert judged("She was not born", "long").reason == "no LSS could be found, with p1"
    assert judged("x", claim="...").reason == "the claim has no word"
    assert judged().reason == "no passage was found"
    assert judged().label == "failed"
