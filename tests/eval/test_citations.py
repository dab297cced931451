"""Citations are read wherever they stand, and judged as ALCE defines recall and precision."""

import re

import numpy as np
import pytest

from eval.metrics.citations import (
    Citations,
    cited_sentences,
    precision,
    recall,
    sections_of,
    without_numbers,
)
from records import Document

PASSAGES = [
    {"id": "a", "title": "Ann", "text": "Ann was a poet."},
    {"id": "b", "title": "Bob", "text": "Bob lost a leg in 1915."},
    {"id": "c", "title": "Cid", "text": "Cid sang."},
]


class Words:
    """An entailment model: what has no new word is entailed; fails where ``broken`` stands."""

    def __init__(self):
        self.calls = []

    def relations(self, pairs):
        self.calls.append(list(pairs))
        rows = []
        for premise, hypothesis in pairs:
            new = set(re.findall(r"\w+", hypothesis)) - set(re.findall(r"\w+", premise))
            rows.append([0.8, 0.1, 0.1] if not new else [0.3, 0.6, 0.1])
            if "broken" in hypothesis or "Dot" in premise:
                rows[-1] = [np.nan] * 3
        return np.asarray(rows)


def judged(text, passages=PASSAGES, **options):
    document = Document(id="d", topic="Ann", text=text, passages=passages)
    return Citations(Words(), **options)([document])[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann won [1][2]. Bob lost [3].", [("Ann won.", [1, 2]), ("Bob lost.", [3])]),
        ("Ann won. [1][2] Bob lost.[3]", [("Ann won.", [1, 2]), ("Bob lost.", [3])]),
        ("Ann won [1]. [2] Bob lost.", [("Ann won.", [1, 2]), ("Bob lost.", [])]),
        (
            "Ann won [1-3]. Bob lost [3, 5–6; 1].",
            [("Ann won.", [1, 2, 3]), ("Bob lost.", [3, 5, 6, 1])],
        ),
        ("Ann won [3-1]. Bob lost [1][1].", [("Ann won.", [3, 1]), ("Bob lost.", [1])]),
        (
            "Ann batted .300 in D.C. [1] Bob said “No.” [2] Cid won [3] .",
            [("Ann batted .300 in D.C.", [1]), ("Bob said “No.”", [2]), ("Cid won.", [3])],
        ),
    ],
)
def test_citations_before_and_after_the_full_stop_are_read(text, expected):
    assert [tuple(entry) for entry in cited_sentences(text)] == expected
    assert without_numbers(text) == " ".join(claim for claim, _ in expected)


def test_recall_and_precision_by_hand():
    text = (
        "Ann was a poet [1]. Bob lost a leg [1][2]. Ann lost a leg [1, 2]. Cid sang [1]. "
        "Bob was a poet. Cid sang [3][9]. Ann sang in 1915 [1-3]. [2]"
    )
    sentences = judged(text)
    assert [s.recalled for s in sentences] == [True, True, True, False, False, False, True]
    # Bob's first citation is irrelevant; Ann needs both of hers; a passage that is not there spoils
    # the whole sentence; of the last three passages each is needed.
    assert [s.precise for s in sentences] == [
        [True], [False, True], [True, True], [False], [], [False, False], [True, True, True],
    ]  # fmt: skip
    assert [s.missing for s in sentences] == [[]] * 5 + [[9]] + [[]]
    assert recall(sentences) == 4 / 7
    assert precision(sentences) == 7 / 11
    assert recall(judged("")) is precision(judged("")) is None
    assert (recall(judged("Ann won.")), precision(judged("Ann won."))) == (0, 0)


def test_limit_of_citations_and_threshold():
    (first,) = judged("Cid sang [1][2][3].", at_most=2)
    assert (first.numbers, first.recalled, first.precise) == ([1, 2], False, [False, False])
    (first,) = judged("Cid sang [1][2][3][9].", at_most=2)
    assert first.missing == [9]
    assert [s.recalled for s in judged("Cid sang [3]. Cid won [3].", threshold=0.2)] == [True] * 2
    assert [s.recalled for s in judged("Cid sang [3].", threshold=0.9)] == [False]


def test_failures_are_counted_and_enter_nothing():
    passages = [*PASSAGES, {"id": "d", "title": "Dot", "text": "Dot drew."}]
    sentences = judged("Ann was broken [1]. Cid sang [3]. Bob lost a leg [2].", passages)
    assert [s.recalled for s in sentences] == [None, True, True]
    assert recall(sentences) == precision(sentences) == 1
    assert [s.failed for s in sentences] == [True, False, False]
    assert precision(judged("Ann was broken [1].")) is None


def test_a_citation_that_could_not_be_judged_is_neither_needed_nor_not():
    class OfAnn(Words):
        def relations(self, pairs):
            rows = super().relations(pairs)
            rows[["Ann" not in premise for premise, _ in pairs]] = np.nan
            return rows

    text = "Ann was a poet [1][2]. Ann lost [1][2]."
    sentences = Citations(OfAnn())([Document(id="d", topic="Ann", text=text, passages=PASSAGES)])[0]
    assert [s.recalled for s in sentences] == [True, True]
    # The first sentence's second citation fails by itself, the other's first where it is left out.
    assert [s.precise for s in sentences] == [[True, None], [None, None]]
    assert [s.failed for s in sentences] == [True, True]
    assert (precision(sentences[:1]), precision(sentences[1:]), recall(sentences)) == (1, None, 1)


def test_given_citations_and_the_sentences_in_none_of_them():
    both = "Title: Ann\nAnn was a poet.\nTitle: Bob\nBob lost a leg in 1915."
    document = Document(
        id="d",
        topic="Ann",
        text="Ann was a poet, so they say. Cid sang. Bob lost a leg.",
        citations=[
            {"claim": "Ann was a poet , so they say.", "passage": [both], "entailed": 1},
            {"claim": "Bob lost a leg.", "passage": both, "entailed": 1},
            {"claim": "", "passage": [both], "entailed": 0},
        ],
    )
    sentences = Citations(Words())([document])[0]
    assert [(s.text, s.recalled, s.precise) for s in sentences] == [
        ("Ann was a poet , so they say.", False, [False, False]),
        ("Bob lost a leg.", True, [False, True]),
        ("", False, [False, False]),
        ("Cid sang.", False, []),
    ]
    assert recall(sentences) == 1 / 3
    assert precision(sentences) == 1 / 6
    # Our builder's texts have their brackets in a field of their own.
    cited = document.model_copy(update={"passages": None, "cited_text": "Ann was a poet [1]."})
    assert [s.text for s in Citations(Words())([cited])[0]] == ["Ann was a poet."]


def test_claims_say_a_sentence_of_which_they_cover_half():
    def uncited(text, *claims):
        cited = [{"claim": claim, "passage": "Ann sang.", "entailed": 1} for claim in claims]
        document = Document(id="d", topic="Ann", text=text, citations=cited)
        return [s.text for s in Citations(Words())([document])[0][len(cited) :]]

    long = "Ann sang, and in 1915 she sold her house in London to a poet whom nobody knew."
    assert uncited(long, "Ann sang") == [long]
    assert uncited(long, "in 1915 she sold her house in London to a poet") == []
    assert uncited(long, "and in 1915 she sold her house", "to a poet whom nobody knew") == []
    assert uncited("Ann sang. Bob sold.", "Ann sang. Bob sold.") == []


def test_a_cited_passage_is_cut_at_its_titles_and_loses_nothing():
    for passage, sections in (
        (["Title: A\nOne.\nTwo.", "Title: B"], ["Title: A\nOne.\nTwo.", "Title: B"]),
        (
            "Of no title.\nTitle: A\nThe Title: no start.",
            ["Of no title.", "Title: A\nThe Title: no start."],
        ),
        ("One.\n\nTwo.", ["One.\n\nTwo."]),
        ("", [""]),
    ):
        assert sections_of({"passage": passage}) == sections
