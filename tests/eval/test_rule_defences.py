"""Defences by rules: years in their slots, and what the rest of a text says of its sentences."""

import pytest

from eval.decompose.sentences import Sentences
from eval.pipeline import Pipeline
from eval.verify.slots import Slots, contradicts_years, dated_slots
from eval.verify.stated import StatedByText, text_around
from eval.verify.whole_text import WholeText, has_frame, sentences_of_others
from eval.verify.word_test import WordTest
from records import Claim, Document, Passage, Verdict

PAGE = Passage(
    id="p",
    title="Ann Lee",
    text="Ann Lee (7 August 1901 – 3 May 1980) was a Danish poet. She won a prize in 1950.",
)


def labels(verifier, text: str, *claims: str) -> list[str]:
    listed = [
        Claim(id=f"c{n}", text=claim, source=claim, contexts=["p"])
        for n, claim in enumerate(claims)
    ]
    document = Document(id="d", topic="Ann Lee", text=text)
    (verdicts,) = verifier([document], [listed], [[PAGE]])
    return [verdict.label for verdict in verdicts]


@pytest.mark.parametrize(
    ("claim", "is_other"),
    [
        ("Ann Lee was born in 1901 and died in 1980.", False),
        ("Ann Lee died in 1901.", True),
        ("The birth of Ann Lee was in 1950.", True),
        ("Ann Lee was born in the 1900s.", False),
        ("She wrote poems until 1950.", False),
        ("She wrote poems until 1901.", True),
        ("She wrote poems from 1990 on.", True),
        ("She won a prize in 1950.", False),
    ],
)
def test_years_are_compared_with_those_of_the_slot(claim, is_other):
    assert contradicts_years(claim, PAGE.text) is is_other


def test_a_year_belongs_to_the_nearest_word_in_its_clause():
    assert [*dated_slots("She was born in 1901, and her death was in 1980.")] == [
        ("birth", 1901),
        ("death", 1980),
    ]
    assert not [*dated_slots("She was born in Oslo. The prize of 1950 is known.")]


def test_slots_withdraw_support_only_from_other_years():
    claims = ("Ann Lee died in 1980.", "Ann Lee died in 1901.", "Ann Lee was a painter.")
    after = labels(Slots(WordTest()), " ".join(claims), *claims)
    assert after == ["supported", "contradicted", "not_supported"]


@pytest.mark.parametrize(
    "text",
    [
        "The statements below are wrong. Ann Lee was a poet.",
        "Ann Lee was a poet. All of this is made up.",
        "So the story went. Ann Lee was a poet.",
        "# Errors in old books\n\n- Ann Lee was a poet.",
    ],
)
def test_a_text_that_takes_its_sentences_back_supports_none(text):
    assert labels(WholeText(WordTest()), text, "Ann Lee was a poet.") == ["not_supported"]
    plain = WholeText(WordTest(), frames=False)
    assert labels(plain, text, "Ann Lee was a poet.") == ["supported"]


def test_a_plain_text_and_one_with_an_offer_have_no_frame():
    for end in ("Her poems are read to this day.", "If you need more, I can help."):
        text = f"Ann Lee was a Danish poet. {end}"
        assert not has_frame(Document(id="d", topic="Ann Lee", text=text))


def test_a_pronoun_after_another_person_is_not_the_topic():
    text = "Ann Lee had a cousin in Bergen. She was a poet. Ann Lee was Danish. She won a prize."
    document = Document(id="d", topic="Ann Lee", text=text)
    assert [*sentences_of_others(document)] == ["She was a poet."]
    assert labels(WholeText(WordTest()), text, "She was a poet.", "She won a prize.") == [
        "not_supported",
        "supported",
    ]


def test_removed_statements_count_as_unsupported_if_the_pipeline_says_so():
    text = "Ann Lee was a poet. Who could know that Ann Lee had sold eleven horses?"
    document = Document(id="d", topic="Ann Lee", text=text, passages=[PAGE])
    pipelines = [
        Pipeline(Sentences(), [WordTest()], removed=removed)
        for removed in ("dropped", "unsupported")
    ]
    scores = [pipeline.score([document])[0].scores[0] for pipeline in pipelines]
    assert [score.precision for score in scores] == [1.0, 0.5]
    assert [score.at_k(1).f1 for score in scores] == [1.0, pytest.approx(2 / 3)]


def test_unsupported_claim_of_more_than_thirty_words_counts_by_its_length():
    long = "Ann Lee was a poet" + " and owned eleven old horses" * 7 + "."  # 40 words: three
    document = Document(
        id="d", topic="Ann Lee", text=f"Ann Lee was Danish. {long}", passages=[PAGE]
    )
    (scored,) = Pipeline(Sentences(), [WordTest()], removed="unsupported").score([document])
    assert scored.scores[0].precision == pytest.approx(1 / 4)


def test_headings_are_read_in_the_text_as_it_was_written():
    text = "# Errors in old books\n\n- Ann Lee was a poet.\n- Ann Lee was Danish."
    document = Document(id="d", topic="Ann Lee", text=text, passages=[PAGE])
    (scored,) = Pipeline(Sentences(), [WholeText(WordTest())]).score([document])
    assert [verdict.label for verdict in scored.verdicts] == ["not_supported"] * 2


class Quoting:
    """Supports a claim that the passage has word for word, unless it says "false"."""

    judges_sets = False

    def __call__(self, documents, claims, passages):
        return [
            [Verdict(claim=c.id, assessor="q", label=self.label(c, texts)) for c in listed]
            for listed, texts in zip(claims, passages, strict=True)
        ]

    def label(self, claim, passages):
        (passage,) = [p for p in passages if p.id in claim.contexts]
        stated = claim.text.rstrip(".") in passage.text and "false" not in passage.text
        return "supported" if stated else "not_supported"


def test_a_claim_needs_the_support_of_the_text_around_it():
    text = "\n".join(
        [
            "Ann Lee was a Danish poet.",
            "",
            "## Rumours that are false",
            "",
            "- Ann Lee was born in 1901.",
            "",
            "## Life",
            "",
            "- Ann Lee died in 1980.",
            "- She won a prize in 1950.",
        ]
    )
    claims = ("Ann Lee was born in 1901.", "Ann Lee died in 1980.", "She won a prize in 1950.")
    verifier = StatedByText(WordTest(), by_text=Quoting(), sentences=0)
    # The text has a pronoun where the second verifier reads the topic's name.
    assert labels(verifier, text, *claims) == ["not_supported", "supported", "not_supported"]


def test_text_around_a_claim_has_its_heading_and_the_ends_of_the_text():
    text = "One is. Two is. Three is.\n## A\nFour is. Five is. Six is. Seven is. Eight is."
    document = Document(id="d", topic="Ann Lee", text=text)
    claim = Claim(id="c", text="Six is.", source="Six is.")
    around = text_around(document, claim, 1)
    assert around.splitlines() == [
        "One is.",
        "## A",
        "Five is.",
        "Six is.",
        "Seven is.",
        "Eight is.",
    ]
    assert text_around(document, claim.model_copy(update={"source": "No."}), 1) == text
