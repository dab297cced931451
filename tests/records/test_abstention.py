import pytest

from records import Document, read_records
from records.abstention import responds


def document(text, **fields):
    return Document(id="d", topic="Jo Park", text=text, **fields)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "N/A",
        "None.",
        "I don't know.",
        "Sorry, no.",
        "No info.",
        "I'm sorry, but I could not locate a biography of Jo Park.",
        "I am not familiar with this name; it may be misspelled.",
        "Ah, I'd be happy to help! However, I couldn't find any Jo Park. Is it a stage name?",
        "I can't write this, as she is a private individual and not a public figure. "
        "It's important to respect people's privacy.",
        "As of my last update, there is no publicly available information about J. Park.",
        "There are several people named Jo Park, so I would need more details.",
        "Could you tell me which Jo Park you mean?",
        "If you tell me where you read the name, I would be glad to look again.",
        "Unfortunately, the documents do not mention her [2]. Please ask a broader question.",
        "The search results only cover Ana Park, a Peruvian sprinter.",
        "Jo Park does not appear in any of the retrieved passages.",
        "No relevant results were found for this query. Let me know if I can help otherwise!",
        "It seems there is a typo in the name. Without more context, I am unable to answer.",
        "As an AI language model, I have no access to the web.",
    ],
)
def test_text_that_states_nothing_about_its_topic_does_not_respond(text):
    assert not responds(document(text))


@pytest.mark.parametrize(
    "text",
    [
        "Painter",
        "He said: I'm sorry.",
        "As an aide to the president he rose.",
        "Sorry, she died in 1950.",
        "I'm sorry, but Jo Park was a chemist.",
        "I'm happy to help! However, I must say that Jo Park was a painter.",
        "I found that Jo Park is a Korean painter.",
        "I know she was born in Daegu.",
        "I do not know when she was born, but she lived in Busan.",
        "I cannot write about Jo Park, as she is a renowned surgeon.",
        "There is no information on his early life. He played for Ulsan.",
        "There is no person of greater fame in Ulsan.",
        "The search results mention that he was a judge.",
        "The only information available is that he taught in Busan.",
        "It is possible that he was born in 1920.",
        "Here are some facts: Jo Park sings. Would you like to know more?",
        "Did you know that Jo Park won the cup in 1999?",
        "There are two people named Jo Park, a judge and a sprinter.",
        "You Ming was a Chinese general.",
        "It is important to rest. Try to sleep well.",
    ],
)
def test_text_with_a_statement_responds(text):
    assert responds(document(text))


@pytest.mark.parametrize("declared", [True, "TRUE", False, "False"])
def test_field_responds_overrides_the_text(declared):
    assert responds(document("Sorry, no.", responds=declared)) == (str(declared).lower() == "true")


def test_responds_of_a_csv_is_a_truth_value(tmp_path):
    (tmp_path / "a.csv").write_text("topic,text,responds\nAda,Ada sang.,false\nBo,Bo sang.,True\n")
    silent, answer = read_records(tmp_path / "a.csv", Document)
    assert (silent.responds, answer.responds) == (False, True)
    assert not responds(silent)
