"""Support is withdrawn from claims that speak of somebody else or assert nothing themselves."""

import pytest

from eval.verify.about_topic import AboutTopic, begins_with_topic
from records import Claim, Document, Verdict

TEXTS = [
    "Ada Lovelace was a mathematician.",
    "Lovelace wrote a program.",
    "She lived in London.",
    "A rival of Ada Lovelace wrote a program.",
    "Ada Lovelace's mother wrote a program.",
    "Ada Lovelace never lived in Paris.",
    "A biographer claimed that Lovelace was a poet.",
]


class SupportsAllButTheFirst:
    judges_sets = False

    def __call__(self, documents, claims, passages):
        return [
            [
                Verdict(
                    claim=claim.id,
                    assessor="nli",
                    name="default",
                    label="not_supported" if number == 0 else "supported",
                )
                for number, claim in enumerate(listed)
            ]
            for listed in claims
        ]


@pytest.mark.parametrize(
    ("options", "supported"),
    [
        ({}, {1, 2, 3, 4, 5, 6}),
        ({"subject": True}, {1, 2, 5}),
        ({"plain": True}, {1, 2, 3, 4}),
        ({"subject": True, "plain": True}, {1, 2}),
    ],
)
def test_support_is_withdrawn_by_the_rules_that_are_on(options, supported):
    document = Document(id="d", topic="Ada Lovelace (countess)", text=" ".join(TEXTS))
    claims = [Claim(id=f"c{n}", text=text, sentence=n, source=text) for n, text in enumerate(TEXTS)]
    (verdicts,) = AboutTopic(SupportsAllButTheFirst(), **options)([document], [claims], [[]])
    assert {n for n, verdict in enumerate(verdicts) if verdict.label == "supported"} == supported


def test_name_within_a_longer_word_is_no_subject():
    assert not begins_with_topic("Adamant critics praised her.", "Ada")


class TwoVerdicts(SupportsAllButTheFirst):
    """Judges in the reverse order, by two names, and leaves the last claim out."""

    def __call__(self, documents, claims, passages):
        return [
            [
                Verdict(claim=claim.id, assessor="nli", name=name, label="supported")
                for claim in listed[-2::-1]
                for name in ("grouped", "independent")
            ]
            for listed in claims
        ]


def test_support_is_withdrawn_from_the_claim_of_a_verdict_whatever_their_order():
    document = Document(id="d", topic="Ada Lovelace (countess)", text=" ".join(TEXTS))
    claims = [Claim(id=f"c{n}", text=text) for n, text in enumerate(TEXTS)]
    (verdicts,) = AboutTopic(TwoVerdicts(), subject=True)([document], [claims], [[]])
    assert len(verdicts) == 2 * (len(TEXTS) - 1)
    for name in ("grouped", "independent"):
        supported = {v.claim for v in verdicts if v.name == name and v.label == "supported"}
        assert supported == {"c0", "c1", "c2", "c5"}
