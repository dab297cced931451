"""D-FActScore: groups of claims, linking, both verdicts of one run, and what fails."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from components.english import stems
from eval.decompose.given import Given
from eval.pipeline import Pipeline
from eval.stages import Selection
from eval.verify.claim_by_claim import ClaimByClaim
from eval.verify.dfactscore.grouping import number_groups
from eval.verify.dfactscore.linking import link_claims, link_groups
from eval.verify.dfactscore.local_groups import LocalGroups, align_claims
from eval.verify.dfactscore.stage import DFActScore
from eval.verify.dfactscore.support import nearest_passages
from records import Claim, Document, Passage


class Words:
    """A relation model: a premise with all stems of the hypothesis but its first word entails it.

    Sentences with different years contradict each other.
    """

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, str]]] = []

    def relations(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.calls.append(list(pairs))
        return np.array([self._relation(*pair) for pair in pairs])

    def _relation(self, premise: str, hypothesis: str) -> tuple[float, float, float]:
        if "silence" in premise:
            return (float("nan"),) * 3
        if set(stems(hypothesis)[1:]) <= set(stems(premise)):
            return 0.9, 0.08, 0.02
        years = [{w for w in stems(text) if w.isdigit()} for text in (premise, hypothesis)]
        return (0.1, 0.0, 0.9) if all(years) and years[0].isdisjoint(years[1]) else (0.1, 0.8, 0.1)


def claims_of(*texts: str) -> list[Claim]:
    return [Claim(id=f"c{k}", text=text) for k, text in enumerate(texts)]


def groups_of(text: str, *claims: str, topic: str = "Ida Holm", **options: object) -> str:
    """The numbers of the claims' groups in one word, e.g. "0011"."""
    document = Document(id="d", topic=topic, text=text)
    (labels,) = LocalGroups(**options)([document], [claims_of(*claims)])
    return "".join(label.removeprefix("g") for label in labels)


PAINTER = "Ida Holm was a Danish painter born in 1874. She painted ships."


@pytest.mark.parametrize(
    ("behind", "groups"),
    [
        # A descriptor, in parentheses or as an apposition; another year; a word that says so.
        ("Ida Holm (swimmer) won two medals.", "001"),
        ("Ida Holm, a Norwegian swimmer, won two medals.", "001"),
        ("Ida Holm was a swimmer, born in 1990, who won two medals.", "001"),
        ("On the other hand, Ida Holm won two medals.", "001"),
        ("Another woman of this name won two medals.", "001"),
        # Another name, spelt in another way or not; a fuller form of the same name.
        ("Ida Maria Holmen won two medals.", "001"),
        ("Ida Maria Holm won two medals.", "000"),
        # The same person, though the text merges two: nothing says that somebody new is meant.
        ("Ida Holm also won two medals.", "000"),
        ("This Ida Holm, a swimmer, won two medals.", "000"),
        ("Her daughter, Eva Holm, won two medals.", "000"),
        ("Ida Holm, a Norwegian artist born in 1874, won two medals.", "000"),
        ("Holm, a Norwegian swimmer, won two medals.", "000"),
        # A number that counts something else than people of the name.
        ("A third woman named Ida Holm won two medals.", "001"),
        ("Ida Holm was the second woman to win two medals.", "000"),
        ("The aunt of Ida Holm, a Norwegian swimmer, won two medals.", "000"),
    ],
)
def test_new_person_starts_a_group(behind, groups):
    claims = ("Ida Holm was a painter.", "She painted ships.", "She won two medals.")
    assert groups_of(f"{PAINTER} {behind}", *claims) == groups


def test_sentences_without_a_name_join_the_previous_person():
    text = (
        "Ida Holm, a painter, lived in Ribe [1]. She left school early. Her pictures sold well. "
        "Ida Holm (1990–2020), a swimmer, trained in Oslo. She left school early. "
        "Finally, Ida Holmberg is a judge. She left school early."
    )
    claims = ("Holm lived in Ribe.", "She left school early.", "Her pictures sold well.")
    claims += ("Holm trained in Oslo.", "She left school early.", "She left school early.")
    assert groups_of(text, *claims, "Holmberg is a judge.") == "0001112"
    assert groups_of(text, *claims[:5], "Holmberg is a judge.", claims[4]) == "0001122"
    back = "Ida Holm painted. Ida Holmberg is a judge. Ida Holm sold well."
    assert groups_of(back, "Holm painted.", "Holmberg is a judge.", "Holm sold well.") == "012"
    assert groups_of("", *claims[:2]) == "00"
    assert align_claims([], ["One sentence."]) == []


def test_doubtful_places_are_split_by_claims_that_contradict_each_other():
    text = f"{PAINTER} Ida Holm was a swimmer. She swam in 1990."
    claims = ("Holm painted in 1874.", "She painted ships.", "Holm was a swimmer.")
    model = Words()
    for last, groups in (("She swam in 1990.", "0011"), ("She swam often.", "0000")):
        assert groups_of(text, *claims, last) == "0000"
        assert groups_of(text, *claims, last, entailment=model) == groups
    assert [len(call) for call in model.calls] == [4, 4]
    document = Document(id="d", topic="Ida Holm", text=f"{text} There was silence.")
    untold = claims_of("Holm painted in silence.", *claims[1:], "She swam often.")
    (labels,) = LocalGroups(entailment=model)([document], [untold])
    assert labels == ["g0", "g0", None, None]


def test_claims_after_an_unjudged_boundary_have_no_group():
    behind = "Ida Holm was a swimmer. Ida Holm was a singer. Ida Holm (poet) wrote."
    document = Document(id="d", topic="Ida Holm", text=f"{PAINTER} {behind}")
    texts = ("Holm painted in silence.", "Holm was a swimmer.", "Holm was a singer.", "Holm wrote.")
    (labels,) = LocalGroups(entailment=Words())([document], [claims_of(*texts)])
    assert labels == ["g0", None, None, "g1"]


def test_a_group_is_linked_to_the_title_that_supports_most_of_it():
    support = np.array([[0.6, 0.2], [0.2, 0.9], [0.3, 0.9], [0.8, 0.9], [0.9, 0.8]])
    groups = ["g0", "g0", "g1", "g1", None]
    # Both titles support one claim of g0, the second with the larger sum; of g1 it supports two.
    assert link_groups(support, support >= 0.5, groups) == {"g0": 1, "g1": 1}
    assert link_groups(support[:, :0], support[:, :0] >= 0.5, groups) == {}
    # What was not told of the other title could decide of g0, but not of g1.
    partly = support.copy()
    partly[[0, 3], 0] = np.nan
    for assignment in ("argmax", "hungarian"):
        actual = link_groups(partly, partly >= 0.5, groups, assignment)
        assert actual["g0"] is None
    assert link_groups(partly, partly >= 0.5, groups) == {"g0": None, "g1": 1}
    # Linked alone: the title that supports most claims, 4 to 3, wherever it supports.
    assert link_claims(support >= 0.5) == [0, 1, 1, 1, 1]
    assert link_claims(support >= 0.95) == [None] * 5


def test_the_hungarian_assignment_supports_most_claims_with_no_title_twice():
    rng = np.random.default_rng(0)
    for _ in range(20):
        supported = rng.random((9, 4)) < 0.4
        groups = ["a"] * 2 + ["b"] * 3 + ["c"] * 4
        actual = link_groups(supported * 0.7, supported, groups, "hungarian")
        assert len(set(actual.values())) == 3

        def total(titles, groups=groups, supported=supported):
            of = dict(zip("abc", titles, strict=True))
            return sum(bool(supported[k, of[g]]) for k, g in enumerate(groups))

        permutations_of_three = (t for t in product(range(4), repeat=3) if len(set(t)) == 3)
        assert total([actual[g] for g in "abc"]) == max(map(total, permutations_of_three))
    # More groups than titles: the one left over is linked by itself.
    alone = np.array([[True], [True], [False]])
    assert link_groups(alone * 1.0, alone, ["a", "b", "c"], "hungarian") == dict.fromkeys("abc", 0)


def test_links_do_not_depend_on_missing_answers():
    rng = np.random.default_rng(0)
    linked = dict.fromkeys(("argmax", "hungarian"), 0)
    for _ in range(150):
        claims, titles = rng.integers(2, 6), rng.integers(2, 4)
        groups = [f"g{number}" for number in rng.integers(0, 3, claims)]
        support = rng.random((claims, titles))
        places = [tuple(place) for place in np.argwhere(rng.random(support.shape) < 0.15)[:4]]
        for place in places:
            support[place] = np.nan
        for assignment in linked:
            actual = link_groups(support, support > 0.5, groups, assignment)
            for answers in product((0.0, 1.0), repeat=len(places)):
                whole = support.copy()
                for place, p in zip(places, answers, strict=True):
                    whole[place] = p
                expected = link_groups(whole, whole > 0.5, groups, assignment)
                assert all(expected[g] == title for g, title in actual.items() if title is not None)
            linked[assignment] += bool(places) and any(t is not None for t in actual.values())
    assert min(linked.values()) > 20


TEXT = (
    f"{PAINTER} She lived in Ribe. "
    "Ida Holm, a Norwegian swimmer, won two medals. She lived in Oslo."
)
CLAIMS = ("Holm painted ships.", "Holm lived in Ribe.", "Holm won medals.", "Holm lived in Oslo.")
PASSAGES = [
    Passage(id="p0", title="Ida Holm (painter)", text="She painted ships."),
    Passage(id="p1", title="Ida Holm (swimmer)", text="She won medals. She lived in Oslo."),
    Passage(id="p2", title="Ida Holm (painter)", text="She lived in Oslo, and in Ribe."),
]


def document_of(text: str = TEXT, passages: Sequence[Passage] = PASSAGES) -> Document:
    return Document(
        id="d", topic="Ida Holm", text=text, claims=claims_of(*CLAIMS), passages=list(passages)
    )


def verify(text: str = TEXT, passages: Sequence[Passage] = PASSAGES, **options: object) -> list:
    model = Words()
    stage = DFActScore(model, LocalGroups(), **options)
    claims = [c.model_copy(update={"contexts": ["p0"]}) for c in claims_of(*CLAIMS)]
    (actual,) = stage([document_of(text)], [claims], [passages])
    return actual


def test_both_verdicts_come_from_one_call_over_claims_and_titles():
    actual = {name: [v for v in verify() if v.name == name] for name in ("independent", "grouped")}
    assert {v.assessor for group in actual.values() for v in group} == {"dfactscore"}
    assert [v.label for v in actual["grouped"]] == ["supported"] * 4
    assert [v.p for group in actual.values() for v in group] == [0.9] * 8
    assert [v.group for v in actual["grouped"]] == ["g0", "g0", "g1", "g1"]
    assert [v.entity[10:-1] for v in actual["grouped"]] == ["painter"] * 2 + ["swimmer"] * 2
    assert [v.evidence for v in actual["grouped"]] == [["p0"], ["p2"], ["p1"], ["p1"]]
    # Alone, the last claim goes to the person that supports most of the text's claims.
    assert [v.entity[10:-1] for v in actual["independent"]] == ["painter"] * 2 + [
        "swimmer",
        "painter",
    ]
    titles = ["Ida Holm (painter)", "Ida Holm (swimmer)"]
    assert actual["independent"][0].support == dict(zip(titles, (0.9, 0.1), strict=True))


def test_unjudged_title_keeps_support_of_other_titles():
    untold = Passage(id="p3", title="Ida Holm (nun)", text="There was silence.")
    claims = [v for v in verify(passages=[*PASSAGES, untold]) if v.name == "independent"]
    assert [v.label for v in claims] == ["supported"] * 4
    alone = [v for v in verify(passages=[PASSAGES[0], untold]) if v.name == "independent"]
    assert [v.label for v in alone] == ["supported", "failed", "failed", "failed"]


def test_the_nearest_passages_of_a_page_share_most_words_of_the_claim():
    texts = ("She sang.", "He lived in Oslo.", "She lived in Ribe.", "She lived in Oslo.")
    bags = [frozenset(stems(text)) for text in texts]
    assert nearest_passages("She lived in Ribe.", [0, 1, 2], bags, 1) == [2]
    assert nearest_passages("She lived in Oslo.", [0, 1, 3], bags, 2) == [3, 1]
    assert nearest_passages("She lived in Oslo.", [0, 1, 3], bags, 3) == [0, 1, 3]


def test_a_text_that_merges_two_people_is_supported_claim_by_claim_but_not_as_one_person():
    merged = f"{PAINTER} She lived in Ribe. Holm won two medals. She lived in Oslo."
    scored = Pipeline(Given(), [DFActScore(Words(), LocalGroups())]).score([document_of(merged)])
    labels = [v.label for v in scored[0].verdicts if v.name == "grouped"]
    assert labels == ["supported", "supported", "not_supported", "supported"]
    values = {score.name: score.precision for score in scored[0].scores}
    assert values == {"independent": 1.0, "grouped": 0.75}


def test_groups_are_made_of_all_claims_also_for_the_selected_ones():
    def select_c3(documents, claims):
        common = {"weight": 1, "reason": "selected"}
        return [[Selection(claim=c.id, selected=c.id == "c3", **common) for c in claims[0]]]

    stage = DFActScore(Words(), LocalGroups())
    (scored,) = Pipeline(Given(), [stage], select=select_c3).score([document_of()])
    kept = [v for v in scored.core_verdicts if v.name == "grouped"]
    assert [(v.claim, v.group, v.entity) for v in kept] == [("c3", "g1", "Ida Holm (painter)")]
    # Another text under the same id is another document.
    assert [v.group for v in stage([document_of(PAINTER)], [claims_of(CLAIMS[3])], [[]])[0]][
        1
    ] == "g0"


def test_unjudged_claims_fail_with_a_reason():
    def reasons(actual):
        return [(v.name, v.reason) for v in actual if v.label == "failed"]

    both = ("independent", "grouped")
    none = reasons(verify(passages=[]))
    assert none == [(name, "no passage was found") for _ in CLAIMS for name in both]

    stage = DFActScore(Words(), lambda documents, claims: [[None, "g0"]])
    pair = [Claim(id="a", text="Holm won medals.", contexts=[]), Claim(id="b", text="x")]
    actual = stage([document_of()], [pair], [PASSAGES])[0]
    assert reasons(actual) == [
        ("grouped", "its group is not known"),
        *((name, "retrieval failed") for name in both),
    ]
    # Without an answer a title is unknown, unless another of its passages supports the claim.
    silent = [PASSAGES[0], Passage(id="s", title="Ida Holm (painter)", text="silence")]
    actual = verify(passages=silent)
    assert [v.label for v in actual] == ["supported"] * 2 + ["failed"] * 6
    assert "gave no answer" in actual[2].reason
    # A page of which nothing is known may be the one that the group is about.
    other = [PASSAGES[0], Passage(id="s", title="Ida Holm (judge)", text="silence")]
    claim = Claim(id="a", text="Holm won medals.", contexts=["s"])
    actual = DFActScore(Words(), LocalGroups())([document_of()], [[claim]], [other])[0]
    assert [v.label for v in actual] == ["failed", "failed"]
    assert "its group's page" in actual[1].reason


def test_the_evidence_of_a_claim_is_of_a_title_that_was_asked_about():
    class Never(ClaimByClaim):
        assessor = "never"

        def judge(self, items):
            return [self.verdict(item.claim, "not_supported") for item in items]

    pages = [Passage(id=name, title=name, text=f"{name}.") for name in ("Ada", "Eva")]
    claim = Claim(id="a", text="Holm had wings.", contexts=["Eva"])
    stage = DFActScore(Never(), LocalGroups(), retrieved=True)
    (actual,) = stage([document_of()], [[claim]], [pages])
    assert next((v.name, v.evidence) for v in actual) == ("independent", ["Eva"])


def test_failed_groups_are_retried_and_equal_ids_are_kept_apart():
    answers = [[["g0", None]], [["g0", "g1"]], [["g0"], ["g0"]]]
    stage = DFActScore(Words(), lambda documents, claims: answers.pop(0))
    two = claims_of(*CLAIMS[:2])

    def groups(documents, claims):
        actual = stage(documents, claims, [PASSAGES] * len(documents))
        return [[v.group for v in group if v.name == "grouped"] for group in actual]

    both = [c.model_copy(update={"contexts": ["p0"]}) for c in two]
    assert groups([document_of()], [both]) == [["g0", None]]
    # Core's claims keep what is known; a second run asks again.
    assert groups([document_of()], [both[1:]]) == [[None]]
    assert groups([document_of()], [both]) == [["g0", "g1"]]
    # Documents that differ in nothing but their topic or their claims.
    twin = document_of().model_copy(update={"topic": "Eva Dahl"})
    assert groups([twin, twin], [both[:1], both[1:]]) == [["g0"], ["g0"]]


def test_threshold_and_per_title_change_the_verdict():
    assert {v.label for v in verify(threshold=0.95)} == {"not_supported"}
    # One passage a title: the one that shares most words with the claim.
    assert [v.evidence for v in verify(per_title=1)][2] == ["p2"]
    assert number_groups(["b", None, "a", "b"]) == ["g0", None, "g1", "g0"]
