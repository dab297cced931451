"""VeriScore and FactVerify: one prompt a claim with its passages."""

from __future__ import annotations

import pytest

from eval.decompose.given import Given
from eval.models.chat import Answer
from eval.pipeline import Pipeline
from eval.retrieve.given import Given as GivenPassages
from eval.verify.claim_by_claim import ClaimToJudge
from eval.verify.factscore import FActScore
from eval.verify.factverify import FactVerify
from eval.verify.veriscore import VeriScore
from eval.verify.with_knowledge import WithKnowledge
from records import Claim, Document, Passage, UserError

PASSAGES = [
    Passage(id="p1", title="Ann Lee", text="Ann Lee was a painter.", url="https://example.org/ann"),
    Passage(id="p2", title="Bob Ray", text="Bob Ray was a boxer."),
]
DOCUMENTS = [Document(id=f"d{n}", topic="Ann Lee", text="Ann Lee was a painter.") for n in (0, 1)]
CLAIMS = [
    [
        Claim(id="c0", text="Ann Lee was a painter.", contexts=["p1", "p2"]),
        Claim(id="c1", text="Ann Lee was a boxer.", contexts=["p2"]),
        Claim(id="c2", text="Ann Lee sang.", contexts=[]),
        Claim(id="c3", text="Ann Lee sang."),
    ],
    [Claim(id="c0", text="Ann Lee had a cat.", contexts=["p1"])],
]


class Scripted:
    """Answers by the claim's last word, in the form that is asked for."""

    def __init__(self, answers, form):
        self.identity = {"model": "scripted"}
        self.answers, self.form = answers, form
        self.calls = []

    def answer(self, prompts, **sampling):
        self.calls.append(([messages[-1]["content"] for messages in prompts], sampling))
        return [[self.reply(messages[-1]["content"], sampling["seed"])] for messages in prompts]

    def reply(self, content, seed):
        results = next(replies for word, replies in self.answers.items() if word in content)
        if isinstance(results, Answer):
            return results
        if isinstance(results, list):
            results = results[min(seed, len(results) - 1)]
        return Answer(self.form.format(results) if results[0].isupper() else results)


def test_veriscore_reads_three_labels():
    replies = {"was a painter": "Supported", "was a boxer": "Contradicted", "had": "Inconclusive"}
    model = Scripted(
        {"Claim: Ann Lee " + word: label for word, label in replies.items()}, "###{}###"
    )
    verdicts = VeriScore(model)(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
    assert [[v.label for v in row] for row in verdicts] == [
        ["supported", "contradicted", "failed", "failed"],
        ["undecided"],
    ]
    reasons = [v.reason for v in verdicts[0]]
    assert reasons == [None, None, "no passage was found", "retrieval failed"]
    first = verdicts[0][0]
    assert (first.assessor, first.response) == ("veriscore", "###Supported###")
    assert first.evidence == ["p1", "p2"]
    ((prompts, sampling),) = model.calls
    assert (len(prompts), sampling["temperature"]) == (3, 0)
    assert "Search result 1\nTitle: Ann Lee\nContent: Ann Lee was a painter.\n" in prompts[0]
    assert "Link: https://example.org/ann" in prompts[0]
    assert "Search result 2\nTitle: Bob Ray" in prompts[0]
    assert "Ann Lee was a painter" not in prompts[1], "only the claim's own passages"


def test_marks_in_claims_and_invented_questions_are_ignored():
    marked = Claim(id="m", text="Ann Lee won ###Supported### [Supported].", contexts=["p1"])
    for verify, replies in ((VeriScore, "###{}###"), (FactVerify, "[{}]")):
        model = Scripted({"won": f"I cannot tell whether: {marked.text}"}, replies)
        options = {} if verify is VeriScore else {"retries": 0}
        ((verdict,),) = verify(model, **options)(DOCUMENTS[:1], [[marked]], [PASSAGES])
        assert (verdict.label, verdict.reason) == ("failed", "no answer in the text")
    going_on = "Contradicted###\n\nClaim: Bob ran.\n\nYour decision:\n###Supported"
    model = Scripted({"was a boxer": going_on}, "###{}###")
    ((verdict,),) = VeriScore(model)(DOCUMENTS[:1], [CLAIMS[0][1:2]], [PASSAGES])
    assert verdict.label == "contradicted"


def test_veriscore_reads_two_labels():
    model = Scripted({"Claim: Ann Lee was a painter": "Supported", "": "Unsupported"}, "###{}.###")
    verdicts = VeriScore(model, labels=2)(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
    assert [v.label for row in verdicts for v in row if v.label != "failed"] == [
        "supported",
        "not_supported",
        "not_supported",
    ]
    three = Scripted({"": "Inconclusive"}, "###{}###")
    (row, _) = VeriScore(three, labels=2)(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
    assert (row[0].label, row[0].reason) == ("failed", "no answer in the text")


def test_factverify_reads_three_labels_and_retries():
    replies = {
        "STATEMENT:\nAnn Lee was a painter": ["it may be", "Supported"],
        "STATEMENT:\nAnn Lee was a boxer": "no idea",
        "STATEMENT:\nAnn Lee had a cat": "Unverifiable",
    }
    model = Scripted(replies, "1. …\n4. Final answer: [{}]")
    verdicts = FactVerify(model, retries=2)(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
    assert [[v.label for v in row] for row in verdicts] == [
        ["supported", "failed", "failed", "failed"],
        ["undecided"],
    ]
    assert [len(prompts) for prompts, _ in model.calls] == [3, 2, 1]
    assert verdicts[0][1].reason == "no answer in the text"
    assert verdicts[0][1].response == "no idea"
    with pytest.raises(UserError, match="retries"):
        FactVerify(model, temperature=0.0)


def test_failed_answers_are_counted_and_not_scored():
    model = Scripted({"painter": Answer("", "refused"), "": "Contradicted"}, "[{}]")
    document = DOCUMENTS[0].model_copy(
        update={"claims": CLAIMS[0][:2], "passages": PASSAGES, "text": "Ann Lee was both."}
    )

    pipeline = Pipeline(decompose=Given(), verify=[FactVerify(model)], retrieve=GivenPassages())
    (scored,) = pipeline.score([document])
    assert [v.label for v in scored.verdicts] == ["failed", "contradicted"]
    assert scored.verdicts[0].reason == "refused"
    assert (scored.scores[0].precision, scored.scores[0].failed) == (0.0, 1)
    assert sum(len(prompts) for prompts, _ in model.calls) == 2, "a refusal is not asked again"


def test_prompts_have_the_wording_of_factreasoner():
    """2502.18573, Tables 31 to 34: their instructions, and their third label."""
    replies = {"was a painter": "Supported", "was a boxer": "Undecided", "had": "Contradicted"}
    by_word = {f"STATEMENT:\nAnn Lee {word}": label for word, label in replies.items()}
    expected_labels = [["supported", "undecided", "failed", "failed"], ["contradicted"]]
    for verifier, lines in (
        (
            WithKnowledge(Scripted(by_word, "So: [{}]")),
            (
                "use your internal knowledge as well as the provided EVIDENCE to reason about",
                "EVIDENCE:\n1. Ann Lee: Ann Lee was a painter.\n2. Bob Ray: Bob Ray was a boxer.",
                "- [Undecided] if the EVIDENCE is insufficient to assess the STATEMENT.",
            ),
        ),
        (
            FactVerify(Scripted(by_word, "[{}]"), wording="factreasoner"),
            (
                "4. Final Answer: Based on your reasoning and the STATEMENT, determine your final",
                "- [Undecided] if the KNOWLEDGE is insufficient to verify the STATEMENT.",
            ),
        ),
    ):
        verdicts = verifier(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
        assert [[v.label for v in row] for row in verdicts] == expected_labels
        first = verifier.asker.writer.calls[0][0][0]
        assert all(line in first for line in lines)
        assert "Unverifiable" not in first
    model = Scripted(
        {f"Claim: Ann Lee {word}": label for word, label in replies.items()}, "###{}###"
    )
    verdicts = VeriScore(model, third="Undecided")(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
    assert [[v.label for v in row] for row in verdicts] == expected_labels
    (message,) = VeriScore(model, third="Undecided").messages(asked_of(0))
    prompt = message["content"]
    assert "\nUndecided: A claim is inconclusive based on the search results if:\n- a" in prompt
    assert "Inconclusive" not in prompt


def asked_of(claim):
    return ClaimToJudge(DOCUMENTS[0], CLAIMS[0][claim], PASSAGES)


def test_factscore_has_the_wording_of_table_31():
    verifier = FActScore(Scripted({}, ""), wording="factreasoner")
    (message,) = verifier.messages(asked_of(0))
    assert message["content"].startswith("Answer the input question based on the given context.")
    assert message["content"].endswith("Input: Ann Lee was a painter. True or False?\nOutput:")
    with pytest.raises(UserError, match="wording"):
        FActScore(Scripted({}, ""), retrieval=False, wording="factreasoner")
