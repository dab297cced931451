"""FactReasoner's Atomizer: one prompt a text."""

from eval.decompose.whole_text import WholeText
from eval.models.openai_server import OpenAIServer
from eval.stages import run_decomposer
from records import Document
from records.abstention import clean_document
from tests.model_server import ModelServer

TEXT = "Ann Lee painted birds and boats [1]. She died in Oslo. Bob Ray wept."
DOCUMENTS = [
    Document(id="1", topic="Ann Lee", text=TEXT),
    Document(id="2", topic="Bob Ray", text=""),
    Document(id="3", topic="Bob Ray", text="Bob Ray boxes."),
]
LISTED = ["Ann Lee painted birds.", "Ann Lee died in Oslo.", "Ann Lee painted boats."]


def test_one_prompt_per_text():
    def reply(body):
        content = body["messages"][-1]["content"]
        return (
            "I am sorry, I cannot."
            if content.endswith("boxes.")
            else "\n".join(f"- {c}" for c in LISTED)
        )

    with ModelServer(reply) as server:
        cleaned = [clean_document(document) for document in DOCUMENTS]
        first, silent, failed = run_decomposer(WholeText(OpenAIServer("m", server.url)), cleaned)
        content = [body["messages"] for body in server.asked]
    assert len(content) == 2, "a text that does not respond is not asked about"
    assert silent == []
    assert [c.text for c in first] == LISTED
    assert [c.sentence for c in first] == [0, 1, 0]
    assert {c.source for c in first} == {TEXT.replace(" [1]", "")}
    assert [(c.text, c.failed) for c in failed] == [("Bob Ray boxes.", "the model refused")]
    (message,) = content[0]
    line = "Please breakdown the following paragraph into independent statements: "
    assert message["content"].count(line) == 3
    assert "10. You should only output the atomic statement as a list" in message["content"]
