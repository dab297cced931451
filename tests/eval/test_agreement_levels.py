"""Retrieval and selection against people: relevance of passages, checkworthiness of claims."""

from pathlib import Path

import pytest

from eval.experiments.agreement.agreement import Agreement
from eval.stages import Selection
from eval.verify.selected import Selected
from eval.verify.similar import Similar
from records import Claim, Document, Passage, UserError, write_jsonl


@pytest.fixture(autouse=True)
def quick(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def response(number, claims):
    """A response as Factcheck-Bench has it, of one sentence.

    Args:
        claims: (claim, checkworthiness, [(passage, stance)]).
    """
    columns = zip(*claims, strict=True)
    texts, worth, evidence = (list(column) for column in columns)
    sentence = {
        "text": " ".join(texts),
        "decontext": " ".join(texts),
        "sentence_checkworthiness": "yes",
        "claims": texts,
        "claim_checkworthiness": worth,
        "claims_factuality_label": [True] * len(texts),
        "human_evidence": ["NA"] * len(texts),
        "auto_evidence": [[text for text, _ in stances] for stances in evidence],
        "stance_claim_autoEvid": [[stance for _, stance in stances] for stances in evidence],
    }
    return {"prompt": f"q{number}", "response": "x", "sentences": {"sentence1": sentence}}


ROWS = [
    response(
        1,
        [
            ("Cats are small animals.", "factual", [
                ("A cat is a small animal with soft fur.", "completely-support"),
                ("Cats are not large.", "partially-support"),
                ("Stock prices fell on Monday.", "irrelevant"),
            ]),
            ("Cats are the best?", "opinion", [("Cats are liked by many.", "irrelevant")]),
        ],
    ),
    response(
        2,
        [
            ("The sun is a planet.", "factual", [
                ("The sun is a star, not a planet.", "refute"),
                ("He bought a new car in town.", "irrelevant"),
            ]),
            ("Is it?", "not_a_claim", []),
            ("The moon is far away.", "factual", []),
        ],
    ),
]  # fmt: skip


def questions_go(documents, claims):
    """A selector of a user's own; it fails on what says "moon"."""
    reasons = {True: "uninformative", False: "selected"}
    return [
        [
            Selection(
                claim=claim.id,
                selected="?" not in claim.text,
                weight=1.0,
                reason="failed" if "moon" in claim.text else reasons["?" in claim.text],
            )
            for claim in group
        ]
        for group in claims
    ]


def judged(rows, level, assessor, folder="run"):
    write_jsonl("set.jsonl", rows)
    sets = {"bench": "set.jsonl"}
    return Agreement(sets, {"one": assessor}, levels=[level]).run(Path(folder), {}).results


def value_of(results, metric, assessor="one", variant=None):
    (actual,) = (
        r
        for r in results
        if (r.metric, r.assessor, r.variant, r.against) == (metric, assessor, variant, None)
    )
    return actual.value


def test_relevance_level_labels_passages_about_a_claim():
    results = judged(ROWS, "relevance", Similar())
    assert {r.kind for r in results} == {"bench, relevance"}
    assert value_of(results, "auroc") == 1
    assert value_of(results, "called_supported", variant="refuted") == 1
    assert value_of(results, "called_supported", variant="irrelevant") < 1
    plain = [{"claim": "A.", "evidence": ["B."], "label": "supported"}]
    with pytest.raises(UserError, match="levels: bench has labels of claims only"):
        judged(plain, "relevance", Similar(), "other")


def test_checkworthiness_level_evaluates_a_selector():
    results = judged(ROWS, "checkworthiness", Selected(questions_go))
    assert {r.kind for r in results} == {"bench, checkworthiness"}
    assert value_of(results, "balanced_accuracy") == 1
    assert value_of(results, "coverage") == pytest.approx(4 / 5)
    assert value_of(results, "called_supported", variant="opinion") == 0
    assert value_of(results, "balanced_accuracy", "always supported") == 0.5


def test_similarity_above_threshold_is_supported():
    passages = [
        Passage(id="p0", text="Rome is a city."),
        Passage(id="p1", text="Ada Lovelace wrote a program.", title="Ada"),
    ]
    claims = [
        Claim(id="c0", text="Ada Lovelace wrote a program.", contexts=["p0", "p1"]),
        Claim(id="c1", text="Fish swim.", contexts=["p0"]),
        Claim(id="c2", text="Fish swim.", contexts=[]),
    ]
    document = Document(id="d", topic="t", text="x")
    same, other, without = Similar(threshold=0.9)([document], [claims], [passages])[0]
    assert (same.label, same.evidence) == ("supported", ["p1"])
    assert same.p == pytest.approx(1, abs=1e-5)
    assert (other.label, without.label) == ("not_supported", "failed")
    assert 0 <= other.p < 0.5
