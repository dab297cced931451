"""The control that reads words and neither order nor negation."""

from eval.verify.word_test import WordTest
from records import Claim, Document, Passage

PAGE = Passage(id="p", title="Ann Lee", text="Ann Lee: Danish poet (1901–1980). She won a prize.")


def test_a_claim_is_supported_if_one_passage_has_its_words_in_any_relation():
    texts = {
        "Ann Lee was a poet.": "supported",
        "Ann Lee's year of birth was 1980.": "supported",
        "Ann Lee was a painter.": "not_supported",
    }
    claims = [Claim(id=f"c{n}", text=text, contexts=["p"]) for n, text in enumerate(texts)]
    document = Document(id="d", topic="Ann Lee", text=" ".join(texts))
    (verdicts,) = WordTest()([document], [claims], [[PAGE]])
    assert [verdict.label for verdict in verdicts] == list(texts.values())
