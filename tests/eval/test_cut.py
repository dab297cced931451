"""Passages cut into their sentences."""

from eval.retrieve.cut import InSentences
from eval.retrieve.given import Given
from records import Claim, Document, Passage


def test_each_sentence_is_a_passage_of_a_claim_that_had_its_page():
    pages = [
        Passage(id="a", title="Ann", text="# Ann\nShe was born in Oslo. She died in 1990."),
        Passage(id="b", title="Bob", text="Bob lived.", prior=0.4),
    ]
    claims = [
        Claim(id="c0", text="Ann is from Oslo.", contexts=["b", "a"]),
        Claim(id="c1", text="y", contexts=[]),
        Claim(id="c2", text="z"),
    ]
    document = Document(id="d", topic="Ann", text="x", claims=claims, passages=pages)
    (result,), (passages,) = InSentences(Given())([document], [claims])
    assert [(p.id, p.title, p.text, p.prior) for p in passages] == [
        ("a#0", "Ann", "# Ann", None),
        ("a#1", "Ann", "She was born in Oslo.", None),
        ("a#2", "Ann", "She died in 1990.", None),
        ("b#0", "Bob", "Bob lived.", 0.4),
    ]
    assert [claim.contexts for claim in result[:2]] == [["b#0", "a#0", "a#1", "a#2"], []]
    # A claim without `contexts` may use all passages.
    assert result[2].contexts == ["a#0", "a#1", "a#2", "b#0"]
    (best,), _ = InSentences(Given(), k=1)([document], [claims])
    assert [claim.contexts for claim in best[:2]] == [["a#1"], []]


def test_a_claim_for_which_retrieval_failed_stays_so():
    def failing(documents, claims):
        return [[Claim(id="c", text="x")]], [[Passage(id="a", text="Ann ran home. Bob sat down.")]]

    document = Document(id="d", topic="Ann", text="x")
    (result,), (passages,) = InSentences(failing)([document], [[Claim(id="c", text="x")]])
    assert result[0].contexts is None
    assert len(passages) == 2
