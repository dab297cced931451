"""What `score` says beside the scores: other passages than meant, and why claims failed."""

import json
from pathlib import Path

import pytest

from eval.commands.score import main as score_main
from records import Claim, Document, Passage, write_jsonl

BM25 = "eval.retrieve.bm25.BM25"
OWN = Passage(id="own", title="Marie Curie", text="Marie Curie was a physicist, born in Warsaw.")
SHELF = [
    Passage(id="1", title="Mary Ward (scientist)", text="Mary Ward was a physicist."),
    Passage(id="2", title="Ann Lee", text="Ann Lee was a painter."),
]


@pytest.fixture
def score(tmp_path, monkeypatch, capsys):
    """Scores documents with the labels of their claims; gives exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(
        "pipeline:\n  decompose: {class_path: eval.decompose.given.Given}\n"
        "  verify: [{class_path: eval.verify.labels.Labels}]\n"
    )
    write_jsonl("shelf.jsonl", SHELF)

    def run(documents, *more, output="out"):
        write_jsonl("documents.jsonl", documents)
        files = ["--config", "config.yaml", "--documents", "documents.jsonl", "--output", output]
        code = score_main([*files, *more])
        message = capsys.readouterr()
        return code, message.out.splitlines(), message.err.splitlines()

    return run


def document(topic, label="S", **more):
    claims = [Claim(id="c", text=f"{topic} was a physicist.", label=label)]
    return Document(id=topic, topic=topic, text=f"{topic} was a physicist.", claims=claims, **more)


def shelf(*more):
    return ["--pipeline.retrieve", BM25, "--pipeline.retrieve.passages", "shelf.jsonl", *more]


def test_passages_that_are_not_read_or_not_of_the_topic_are_told(score):
    documents = [document("Marie Curie", passages=[OWN]), document("Ann_Lee")]
    code, before, message = score(documents, *shelf())
    assert code == 0
    assert message == [
        "warning: 1 of 2 documents have `passages`, which BM25 ignores; pass --pipeline.retrieve "
        "null to judge by them",
        "warning: 1 of 2 documents were judged by passages whose titles do not match the topic, "
        "e.g. 'Marie Curie' by 'Mary Ward (scientist)'; the passages may be about other topics",
    ]
    repeated = score(documents, *shelf())
    assert repeated == (0, before, message), "a finished run says the same"


def test_claims_of_which_none_could_be_judged_are_no_success(score):
    code, stated, message = score([document("B", None), document("C", None)])
    assert code == 1
    assert stated[2:] == [
        "failed 2 x labels: no label given",
        "out/claims.csv",
        "out/documents.csv",
        "out/scored.jsonl",
        "out/results.json",
    ]
    assert message == ["error: no claim could be judged; see the `failed` lines for the reasons"]
    assert score([document("D", "IR")], output="irrelevant")[0] == 0
    refusal = Document(id="r", topic="R", text="I'm sorry, I don't know who that is.", claims=[])
    code, stated, _ = score([refusal, document("Ann Lee")], output="refusal")
    assert (code, stated[2]) == (
        0,
        "1 of 2 documents do not respond (empty, or a refusal) and have no precision; "
        "respond_ratio and F1@K count them",
    )
    assert score([refusal], output="refusals")[0] == 0


def test_removed_words_are_summed_and_texts_that_lost_many_are_named(score):
    claims = [Claim(id="c", text="Ann Lee was a painter.", label="S")]
    thinking, offering = (
        Document(id=name, topic="Ann Lee", text=text, claims=claims)
        for name, text in {
            "thinking": "<think>Was she a boxer?</think>\nAnn Lee was a painter.",
            "offering": "Ann Lee was a painter. She was born in Peru. Anything else?",
        }.items()
    )
    output = score([thinking, offering])[1]
    assert output[2:4] == [
        "6 of 21 words make no claims and were removed before decomposition: reasoning 4, "
        "questions 2",
        "1 of 2 documents lost more than 30% of their words, see `removed` in scored.jsonl: "
        "thinking (44%)",
    ]
    rows = Path("out/scored.jsonl").read_text().splitlines()
    removed = [json.loads(row)["removed"] for row in rows]
    assert removed == [{"reasoning": 4}, {"questions": 2}]


def test_f1_at_k_is_printed_next_to_precision(score):
    _, lines, _ = score([document("Ann Lee"), document("Marie Curie", "NS")], "--k", "2")
    # One of two supported claims: precision 1, recall 0.5, F1 0.667; the other text has 0.
    assert any("precision 0.500" in line and line.endswith(" F1@2 0.333") for line in lines)
