"""A stage of a user's own that breaks its contract is named in one line, and never scored."""

import numpy as np
import pytest

from eval.decompose.sentences import Sentences
from eval.pipeline import Pipeline
from eval.stages import Selection, model_probabilities
from records import Claim, Document, Passage, UserError, Verdict

PASSAGE = Passage(id="p", text="Ann Lee was a painter.")
DOCUMENTS = [
    Document(id=i, topic="Ann Lee", text="Ann Lee was a painter. She sang.", passages=[PASSAGE])
    for i in ("d1", "d2")
]


class Changed:
    """A stage that does as it should, and then something to it."""

    judges_sets = False

    def __init__(self, right, change):
        self.right = right
        self.change = change

    def __call__(self, documents, *inputs):
        return self.change(self.right(documents, *inputs))


def supported(documents, claims, passages):
    return [
        [Verdict(claim=c.id, assessor="own", label="supported") for c in claim] for claim in claims
    ]


def all_kept(documents, claims):
    return [
        [Selection(claim=c.id, selected=True, weight=1.0, reason="selected") for c in claim]
        for claim in claims
    ]


def as_given(documents, claims):
    return claims


def with_passage(documents, claims):
    filled = [[c.model_copy(update={"contexts": ["p"]}) for c in claim] for claim in claims]
    return filled, [[PASSAGE] for _ in documents]


RIGHT = {
    "decompose": Sentences(),
    "revise": as_given,
    "select": all_kept,
    "retrieve": with_passage,
    "verify": supported,
}
STRANGE = Verdict(claim="c9", assessor="own", label="supported")
NEW = Claim(id="c9", text="She slept.")


def pipeline(**changes):
    stages = {n: Changed(s, changes.get(n, lambda result: result)) for n, s in RIGHT.items()}
    return Pipeline(**stages | {"verify": [stages["verify"]]})


def of_first(change):
    """A change to the first document's row alone."""
    return lambda rows: [change(rows[0]), *rows[1:]]


def of_passages(change):
    return lambda result: (result[0], change(result[1]))


@pytest.mark.parametrize(
    ("stage", "change", "message"),
    [
        *((name, lambda result: None, "a NoneType") for name in RIGHT),
        ("decompose", lambda rows: rows[:1], "returned 1 entries for 2; return one per document"),
        ("decompose", of_first(lambda row: ["Ann sang."]), "'d1': Claim: 0: Input should be"),
        ("decompose", of_first(lambda row: row * 2), r"'d1': .* several claims of one id \(c0\)"),
        ("revise", of_first(lambda row: [*row, NEW]), "'d1': returned the claims c0, c1, c9 for"),
        ("select", of_first(lambda row: row[:1]), "'d1': returned selections of c0 for"),
        (
            "select",
            of_first(lambda row: [s.model_copy(update={"weight": float("nan")}) for s in row]),
            "'d1': Selection: 0.weight: Input should be a finite number",
        ),
        (
            "retrieve",
            of_passages(of_first(lambda row: [PASSAGE, Passage(id="p", text="Else.")])),
            r"'d1': returned several passages of one id \(p\)",
        ),
        ("verify", of_first(lambda row: [*row, STRANGE]), "'d1': returned verdicts on c9 for"),
        ("verify", of_first(lambda row: row * 2), "several verdicts .*c0: own.default"),
    ],
)
def test_what_breaks_the_contract_is_one_line_with_the_stage(stage, change, message):
    with pytest.raises(UserError, match=rf"^tests\.eval\.test_stages\.Changed: .*{message}"):
        pipeline(**{stage: change}).score(DOCUMENTS)


def test_a_claim_without_a_verdict_has_failed():
    (first, _) = pipeline(verify=of_first(lambda row: row[:1])).score(DOCUMENTS)
    assert [(s.judged, s.failed) for s in first.scores] == [(1, 1), (1, 1)]


def test_a_pair_without_an_answer_is_none_outside_0_and_1():
    result = model_probabilities(
        lambda pairs: [[np.nan] * 3, [0, 0, 1 + 1e-7]], [("a", "b")] * 2, 3
    )
    assert np.isnan(result[0]).all()
