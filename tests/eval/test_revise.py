"""Claims that stand alone, and Rel by a language model; what cannot be read has failed."""

from pathlib import Path

import numpy as np
import pytest

from eval.decompose import rewrite
from eval.decompose.given import Given
from eval.decompose.rewrite import Rewrite
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.select.core import Core
from eval.select.relevance import Prompted
from eval.verify.labels import Labels
from records import Claim, Document
from tests.model_server import ModelServer

SHIPPED = Path(rewrite.__file__).parent / "rewrite_prompts"
TEXT = "Ann Lee paints. She lives in Oslo. Is that not nice?"
DOCUMENTS = [
    Document(id="1", topic="Ann Lee", text=TEXT),
    Document(id="2", topic="Bob Ray", text="Bob Ray boxes."),
]


def playing(answers):
    """A server whose model answers by the first of ``answers`` that the last message starts with.

    The text (RESPONSE) behind the claim says nothing to it.
    """

    def reply(body):
        prompts = body["messages"][-1]["content"].split("\n\nRESPONSE")[0]
        return next(text for part, text in answers.items() if prompts.endswith(part))

    return ModelServer(reply)


@pytest.mark.parametrize("method", ["safe", "factreasoner"])
def test_rewritten_claims_keep_the_original_text(method):
    answers = {
        "She lives in Oslo.": '"She" is Ann Lee.\n```\nAnn Lee lives in\nOslo.\n```\nSo it is.',
        "Ann Lee paints.": "Nothing is vague.\n```text\nAnn Lee paints.\n```",
        "She sings.": "I think that this is fine as it is.",
        "He boxes.": "```\nBob Ray boxes.\n```",
    }
    claims = [
        [
            Claim(id="a", text="Ann Lee paints."),
            Claim(id="b", text="She lives in Oslo.", original="lives in Oslo"),
            Claim(id="c", text="She sings."),
        ],
        [Claim(id="a", text="He boxes.")],
    ]
    with playing(answers) as server:
        reviser = Rewrite(OpenAIServer("m", server.url), method=method, retries=1)
        first, (other,) = reviser(DOCUMENTS, claims)
        prompts = [body["messages"][-1]["content"] for body in server.asked]
    assert len(prompts) == 5, "one is asked again, because it could not be read"
    assert [sum(d.text in text for text in prompts) for d in DOCUMENTS] == [4, 1]
    assert first[0] == claims[0][0]
    assert (first[1].text, first[1].original) == ("Ann Lee lives in Oslo.", "lives in Oslo")
    assert (first[2].text, first[2].failed) == ("She sings.", "revision: no answer in the text")
    assert (other.id, other.text, other.original) == ("a", "Bob Ray boxes.", "He boxes.")


@pytest.mark.parametrize("prompt", [None, SHIPPED / "factreasoner_table29.jinja"])
def test_table_29_reviser_reads_between_marks(prompt):
    """2502.18573, Table 29; so does a copy of it with other examples."""
    answers = {
        "Statement: She lives in Oslo.\nStandalone:": "####Ann Lee lives in\nOslo.####",
        "Statement: She sings.\nStandalone:": "####  ####",
        "Statement: He boxes.\nStandalone:": "Bob Ray boxes.",
    }
    claims = [
        [Claim(id="b", text="She lives in Oslo."), Claim(id="c", text="She sings.")],
        [Claim(id="a", text="He boxes.")],
    ]
    with playing(answers) as server:
        writer = OpenAIServer("m", server.url)
        reviser = Rewrite(writer, "factreasoner_table29", prompt, retries=0)
        first, (other,) = reviser(DOCUMENTS, claims)
        all_prompts = [body["messages"][-1]["content"] for body in server.asked]
    # Several are asked at a time, in any order.
    (prompts,) = (item for item in all_prompts if item.endswith("She lives in Oslo.\nStandalone:"))
    assert f"Context: {TEXT}\nStatement: She lives in Oslo." in prompts
    assert "must start with #### and finish with #### as follows: ####<statement>####" in prompts
    assert (first[0].text, first[0].original) == ("Ann Lee lives in Oslo.", "She lives in Oslo.")
    assert [claim.failed for claim in (first[1], other)] == ["revision: no answer in the text"] * 2


class Entails:
    """A user's own entailment model: only what stands in the premise is entailed."""

    def relations(self, pairs):
        return np.array([[float(b in a), float(b not in a), 0.0] for a, b in pairs])


def test_claim_with_unreadable_relevance_fails():
    answers = {"paints.": "Yes", "Oslo.": "Hm.", "boxes.": "Perhaps."}
    texts = ["Ann Lee paints.", "She lives in Oslo."]
    claims = [Claim(id=str(i), text=t, source=t, label="S") for i, t in enumerate(texts)]
    documents = [DOCUMENTS[0].model_copy(update={"claims": claims})]
    alone = Claim(id="0", text="Bob Ray boxes.", source="Bob Ray boxes.", label="S")
    documents.append(DOCUMENTS[1].model_copy(update={"claims": [alone]}))
    with playing(answers) as server:
        rel = Prompted(OpenAIServer("m", server.url), retries=0)
        core = Core(Entails(), weighting="uniform", relevance=rel)
        first, second = Pipeline(Given(), [Labels()], select=core).score(documents)
    assert [s.reason for s in first.selections] == ["selected", "failed"]
    assert [(s.kept, s.failed, s.precision) for s in first.scores] == [(2, 0, 1.0), (1, 1, 1.0)]
    assert [(s.kept, s.failed, s.precision) for s in second.scores] == [(1, 0, 1.0), (0, 1, None)]
    assert not second.scores[1].empty_selection


def test_core_uses_the_original_text_of_a_revised_claim():
    text = "She paints."
    claim = Claim(id="0", text="Ann Lee paints.", original="She paints.", source=text)
    document = Document(id="1", topic="Ann Lee", text=text)
    (results,) = Core(Entails(), weighting="uniform", p=1)([document], [[claim]])[0]
    assert (results.selected, results.document_entailment) == (True, 1.0)
