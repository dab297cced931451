"""A compound claim is supported only if all of its parts are."""

import pytest

from eval.verify.in_parts import InParts, parts_of
from records import Claim, Document, Verdict

DOCUMENT = Document(id="d", topic="Ada Lovelace", text="x")


class Labels:
    """Labels claims by the words that their texts contain; "supported" without such a word."""

    judges_sets = False

    def __init__(self, **labels):
        self.labels = labels

    def __call__(self, documents, claims, passages):
        return [[self.verdict(claim) for claim in listed] for listed in claims]

    def verdict(self, claim):
        labels = [label for word, label in self.labels.items() if word in claim.text]
        label = labels[0] if labels else "supported"
        reason = "no answer" if label == "failed" else None
        return Verdict(claim=claim.id, assessor="nli", label=label, reason=reason)


def claims_of(*texts):
    return [Claim(id=f"c{n}", text=text, sentence=n, source=text) for n, text in enumerate(texts)]


def test_compound_with_a_rejected_part_is_not_supported():
    claims = claims_of("Ada Lovelace was a countess, and Ada Lovelace was a nurse.", "She wrote.")
    judge = InParts(Labels(nurse="not_supported"))
    (verdicts,) = judge([DOCUMENT], [claims], [[]])
    assert [(v.claim, v.label) for v in verdicts] == [("c0", "not_supported"), ("c1", "supported")]


def test_part_with_more_words_than_the_limit_is_not_supported():
    claims = claims_of("She was a poet and a nurse.", "She was a poet, and she was a nurse.")
    (verdicts,) = InParts(Labels(), max_words=6)([DOCUMENT], [claims], [[]])
    assert [v.label for v in verdicts] == ["not_supported", "supported"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Ada Lovelace was a poet; in addition, Lovelace died in 1852.",
            ["Ada Lovelace was a poet.", "Lovelace died in 1852."],
        ),
        ("Born in London, Ada Lovelace wrote.", None),
        ("Ada Lovelace wrote notes, letters and poems.", None),
    ],
)
def test_a_claim_is_cut_between_statements_about_the_topic_only(text, parts):
    assert parts_of(text, "Ada Lovelace") == (parts or [text])


class Named(Labels):
    """Two verdicts on each claim: ``plain`` supports all, and none on texts with ``Nothing``."""

    def __call__(self, documents, claims, passages):
        return [
            [
                verdict
                for claim in listed
                if "Nothing" not in claim.text
                for strict in [self.verdict(claim).model_copy(update={"name": "strict"})]
                for verdict in (
                    strict,
                    strict.model_copy(update={"name": "plain", "label": "supported"}),
                )
            ]
            for listed in claims
        ]


def test_verdicts_of_two_names_stay_apart_and_a_part_without_a_verdict_leaves_none():
    texts = ("Ada Lovelace was a countess, and Ada Lovelace was a nurse.", "She wrote.")
    unjudged = "Ada Lovelace sang, and she wrote Nothing."
    judge = InParts(Named(nurse="not_supported"))
    (verdicts,) = judge([DOCUMENT], [claims_of(*texts, unjudged)], [[]])
    assert {(v.claim, v.name): v.label for v in verdicts} == {
        ("c0", "strict"): "not_supported",
        ("c0", "plain"): "supported",
        ("c1", "strict"): "supported",
        ("c1", "plain"): "supported",
    }
