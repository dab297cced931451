"""Several claims in one prompt: who stands in it, which labels count, and what is asked alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.models.local import LocalModel
from eval.models.openai_server import OpenAIServer
from eval.run.parts import hash_prompts
from eval.verify.factscore import FActScore
from eval.verify.factverify import FactVerify
from eval.verify.several_claims import read_partial_labels
from eval.verify.veriscore import VeriScore
from eval.verify.with_knowledge import WithKnowledge
from records import Claim, Document, Passage
from tests.model_server import ModelServer, prompt_of

PASSAGES = [
    Passage(id="p1", title="Ann Lee", text="Ann Lee sold 0, 2 and 4 birds.", url="https://ann.org"),
    Passage(id="p2", title="Birds", text="Birds are sold."),
    Passage(id="p3", title="Bob Ray", text="Bob Ray boxed."),
]
DOCUMENTS = [
    Document(id="d0", topic="Ann Lee", text="Ann sold birds."),
    Document(id="d1", topic="Bob Ray", text="Bob boxed."),
]
CLAIMS = [
    [
        *(
            Claim(id=f"c{n}", text=f"Ann\nsold {n} birds.", contexts=[("p1", "p2")[n % 2]])
            for n in range(5)
        ),
        Claim(id="none", text="Ann sang.", contexts=[]),
    ],
    [Claim(id="c0", text="Bob boxed.", contexts=["p3"])],
]
TRUE, FALSE = "supported", "not_supported"
WANTED = [[TRUE, FALSE, TRUE, FALSE, TRUE, "failed"], [FALSE]]
ALL = [FActScore, FactVerify, VeriScore, WithKnowledge]


def is_true(claim: str) -> bool:
    return any(f"sold {n} birds" in claim for n in (0, 2, 4))


def lines_of(prompt: str) -> list[str]:
    """A line for each claim of a prompt, rightly labelled; none of a prompt about one claim."""
    listed = re.findall(r"^(\d+)\. (.*)$", prompt.partition("CLAIMS:\n")[2], re.MULTILINE)
    return [f"{number}. [{is_true(claim)}]" for number, claim in listed]


def well(body: dict) -> str:
    asked = prompt_of(body)
    return "\n".join(lines_of(asked)) or str(is_true(asked.rpartition("Input:")[2]))


def verdicts_of(server: ModelServer, claims=CLAIMS, **options):
    """FActScore's, through the server, in the order of the prompts."""
    writer = OpenAIServer("m", server.url, timeout_s=5.0, concurrency=1)
    return FActScore(writer, **options)(DOCUMENTS, claims, [PASSAGES, PASSAGES]), writer


def labels(verdicts) -> list[list[str]]:
    return [[verdict.label for verdict in own] for own in verdicts]


def test_one_claim_a_call_is_the_verifiers_own_prompt():
    with ModelServer(well) as server:
        found, writer = verdicts_of(server)
        verifier = FActScore(writer, claims_per_call=1)
    assert labels(found) == WANTED
    assert len(server.asked) == 6
    assert not [body for body in server.asked if "CLAIMS" in prompt_of(body)]
    assert "claims_in_prompt" not in found[0][0].model_dump()
    assert list(hash_prompts(verifier)) == ["verify/prompts/factscore_retrieval.jinja"]


def test_claims_of_a_document_stand_together_with_their_passages_once():
    with ModelServer(well) as server:
        found, writer = verdicts_of(server, claims_per_call=3)
    assert labels(found) == WANTED
    first, second, alone = map(prompt_of, server.asked)
    assert writer.usage.calls == 3
    assert "CLAIMS about Ann Lee" in first
    assert "CLAIMS:\n1. Ann sold 0 birds.\n2. Ann sold 1 birds.\n3. Ann sold 2 birds.\n" in first
    assert "1. Ann sold 3 birds.\n2. Ann sold 4 birds.\n" in second, "none without a passage"
    assert first.count(PASSAGES[0].text) == first.count(PASSAGES[1].text) == 1
    assert "boxed" not in first + second
    assert alone.endswith("Input: Bob boxed. True or False?\nOutput:"), "what is left over"
    verdict = found[0][1]
    assert (verdict.response, verdict.evidence) == ("2. [False]", ["p1", "p2"])
    assert [v.model_dump().get("claims_in_prompt") for v in found[0]] == [3, 3, 3, 2, 2, None]
    assert found[0][5].reason == "no passage was found"


@pytest.mark.parametrize(
    ("spoil", "alone"),
    [
        (lambda lines: lines[:1] + lines[2:], [1]),
        (lambda lines: [*lines, lines[1]], [1]),
        (lambda lines: [lines[0], "2. [Maybe]", *lines[2:]], [1]),
        (lambda lines: [*lines[:4], "5. [Tr"], [4]),
        (lambda lines: [*lines, "6. [True]"], range(5)),
        (lambda lines: [f"{n}. [True]" for n in range(5)], range(5)),
        (lambda lines: [], range(5)),
    ],
)
def test_what_an_answer_does_not_label_once_is_asked_alone(spoil, alone):
    def spoilt(body: dict) -> str:
        lines = lines_of(prompt_of(body))
        return "\n".join(spoil(lines)) if lines else well(body)

    with ModelServer(spoilt) as server:
        found, writer = verdicts_of(server, claims_per_call=5)
    assert labels(found) == WANTED
    together = [v.model_dump().get("claims_in_prompt") for v in found[0][:5]]
    assert together == [None if place in alone else 5 for place in range(5)]
    assert writer.usage.calls == 1 + len(alone) + 1
    own = [v.evidence for place, v in enumerate(found[0][:5]) if place in alone]
    assert own == [CLAIMS[0][place].contexts for place in alone]


def test_what_cannot_be_read_alone_either_is_failed():
    with ModelServer(lambda body: "\n".join(lines_of(prompt_of(body))[1:]) or "Hm.") as server:
        found, _ = verdicts_of(server, claims_per_call=5)
    assert labels(found) == [["failed", *WANTED[0][1:]], ["failed"]]
    assert (found[0][0].reason, found[0][0].response) == ("no answer in the text", "Hm.")


@pytest.mark.parametrize("fault", ["refusal", "filter", "empty", "length"])
def test_an_answer_that_fails_is_no_label(fault):
    with ModelServer(well) as server:
        server.faults.append(fault)
        writer = OpenAIServer("m", server.url, timeout_s=5.0, concurrency=1, when_cut="fail")
        verify = FActScore(writer, claims_per_call=5)
        found = verify(DOCUMENTS, CLAIMS, [PASSAGES, PASSAGES])
    assert labels(found) == WANTED
    assert writer.usage.calls == 7, "the five are asked alone"


def test_a_copy_of_a_claim_is_asked_once_and_has_its_label():
    copies = [claim.model_copy(update={"id": f"{claim.id}.2"}) for claim in CLAIMS[0][:5]]
    with ModelServer(well) as server:
        found, _ = verdicts_of(server, [CLAIMS[0][:5] + copies, []], claims_per_call=10)
    assert len(server.asked) == 1
    assert labels(found)[0] == WANTED[0][:5] * 2
    assert [verdict.claim for verdict in found[0]][5:] == [copy.id for copy in copies]


@pytest.mark.parametrize(
    ("verify", "options", "shown", "said"),
    [
        (FActScore, {}, ["True", "False"], "about Ann Lee"),
        (FActScore, {"wording": "factreasoner"}, ["True", "False"], "numbered CLAIMS, and EVID"),
        (FActScore, {"retrieval": False}, ["True", "False"], "each claim by what you know."),
        (VeriScore, {}, ["Supported", "Contradicted", "Inconclusive"], "(https://ann.org)"),
        (VeriScore, {"labels": 2}, ["Supported", "Unsupported"], "trustworthy"),
        (VeriScore, {"third": "Undecided"}, ["Supported", "Contradicted", "Undecided"], "link"),
        (FactVerify, {}, ["Supported", "Contradicted", "Unverifiable"], "the EVIDENCE alone"),
        (
            FactVerify,
            {"wording": "factreasoner"},
            ["Supported", "Contradicted", "Undecided"],
            "the EVIDENCE alone",
        ),
        (WithKnowledge, {}, ["Supported", "Contradicted", "Undecided"], "and by what you know"),
    ],
)
def test_the_prompt_has_the_verifiers_own_labels_and_reads_them(verify, options, shown, said):
    def reply(body: dict) -> str:
        return "\n".join(f"{n}. [{label}]" for n, label in enumerate(shown, start=1))

    claims = [CLAIMS[0][: len(shown)], []]
    with ModelServer(reply) as server:
        writer = OpenAIServer("m", server.url, timeout_s=5.0)
        found = verify(writer, claims_per_call=5, **options)(DOCUMENTS, claims, [PASSAGES] * 2)
    prompt = prompt_of(server.asked[0])
    assert re.findall(r"^- \[(.*)\]: \w", prompt, re.MULTILINE) == shown
    assert said in prompt
    second = "contradicted" if "Contradicted" in shown else "not_supported"
    assert labels(found)[0] == ["supported", second, "undecided"][: len(shown)]
    assert len(server.asked) == 1


def test_a_model_that_writes_nothing_readable_fails_every_claim(tiny_llama):
    writer = LocalModel(str(tiny_llama), device="cpu")
    claims = [[c.model_copy(update={"text": c.text[:4]}) for c in CLAIMS[0][:2]], []]
    verify = FActScore(writer, retrieval=False, max_new_tokens=4, claims_per_call=2)
    (found, _) = verify(DOCUMENTS, claims, [[], []])
    assert [verdict.label for verdict in found] == ["failed", "failed"]
    assert all(verdict.reason for verdict in found)


ANSWERS = {"true": TRUE, "false": FALSE}
MANY = settings(max_examples=60, deadline=None, derandomize=True, database=None)
said = st.lists(st.booleans(), min_size=1, max_size=12)


def written(values) -> list[str]:
    return [f"{number}. [{value}]" for number, value in enumerate(values, start=1)]


def read(lines, count):
    found = read_partial_labels("\n".join(lines), ANSWERS, count)
    return {number: label for number, (label, _) in found.items()}


@MANY
@given(said, st.data())
def test_a_number_that_comes_twice_is_missing_alone(values, data):
    number = data.draw(st.integers(1, len(values)))
    again = f"{number}. [{data.draw(st.booleans())}]"
    lines = data.draw(st.permutations([*written(values), again]))
    whole = read(written(values), len(values))
    assert read(lines, len(values)) == {n: own for n, own in whole.items() if n != number}


@MANY
@given(st.text(alphabet='12 .:[]#\nTrueFalsnot|,"', max_size=80), st.integers(1, 3))
def test_whatever_an_answer_says_only_claims_of_the_prompt_have_labels(text, count):
    found = read_partial_labels(text, ANSWERS, count)
    assert found.keys() <= set(range(1, count + 1))
    assert {label for label, _ in found.values()} <= set(ANSWERS.values())
