"""Labels and queries in the published answer forms and in JSON; other answers are not read."""

import pytest

from eval.prompting.answer_forms import cut_next_question, read_code_block, read_label

TWO = {"supported": "S", "not supported": "NS", "unsupported": "NS"}
THREE = {"supported": "S", "contradicted": "C", "inconclusive": "U"}
FOO = {"foo": "relevant", "not foo": "irrelevant"}
CHECKWORTHY = {"yes": "1", "no": "0"}

ANSWERS = [
    # SAFE and VERIFY: square brackets
    (TWO, "The pages agree.\n[Supported]", "S"),
    (TWO, "So it is not.\n\n**[Not Supported]**", "NS"),
    (TWO, "Final answer: [**not supported**].", "NS"),
    (TWO, "Born in 1901 [1].\nFinal answer: Supported [1, 2]", "S"),
    (TWO, "The [STATEMENT] has a source.\n[Supported]\nSource: [Ann Lee]", "S"),
    (FOO, "The subjects are [Foo].", "relevant"),
    # VeriScore: between ###, or before the first full stop
    (THREE, "###Supported###", "S"),
    (THREE, "###Supported### Search result 2 names the year.", "S"),
    (THREE, "### Decision\n**Inconclusive.**", "U"),
    (THREE, "Contradicted. Search result 2 says that she was born in 1902.", "C"),
    # Factcheck-GPT: a list, or a word
    (CHECKWORTHY, '["Yes"]', "1"),
    (CHECKWORTHY, "No, it is an opinion.", "0"),
    # an announced label, JSON, special tokens of a server
    (TWO, "Therefore, the answer is **Not Supported**.", "NS"),
    (THREE, '{"decision": "Contradicted"}', "C"),
    (THREE, '```json\n{"decision": "Contradicted"}\n```', "C"),
    (TWO, "Answer: Supported<|im_end|>", "S"),
    # labels in the reasoning: the last one counts
    (TWO, "Is it [Supported]? The year differs.\n[Not Supported]", "NS"),
    (THREE, "Result 1 alone: ###Supported###\nAll in all: ###Contradicted###", "C"),
    (TWO, "Final answer: [Supported]\n\nBut wait, the year differs.\n\n[Not Supported]", "NS"),
    (TWO, "[Not Supported]. It would be [Supported] if the year were 1902.", "NS"),
    (TWO, "The STATEMENT is that she was not well. [Supported]", "S"),
    (THREE, "[Supported]: No\n[Contradicted]: Yes", "C"),
    # undecided answers
    (TWO, "Final answer: [Supported] or [Not Supported]", None),
    (TWO, "The year is [Not Supported], the place is [Supported].", None),
    (THREE, "- Supported\n- Contradicted\n- Inconclusive", None),
    # negated or doubted labels
    (TWO, "The STATEMENT is only partially [Supported].", None),
    (TWO, "I don't think that it is [Supported].", None),
    (TWO, "It is not [Supported] by the KNOWLEDGE.", None),
    (TWO, "There is no evidence, so the STATEMENT is [Not Supported].", "NS"),
    (TWO, "Supported: No", None),
    (TWO, '{"supported": false}', None),
    (TWO, "Is it [Supported]? No.", None),
    (THREE, "Supported, but not by a trustworthy source.", None),
    # other words than the labels, cut answers, refusals
    (TWO, "Is it [Supported]? In part.\n[Partially Supported]", None),
    (TWO, "It was asked.\nSupported: the year", None),
    (TWO, "The page says so, hence [Supp", None),
    (TWO, "I'm sorry, but I can't help with that.", None),
    (TWO, "", None),
]


@pytest.mark.parametrize(("labels", "text", "label"), ANSWERS)
def test_published_forms_are_read_and_undecided_answers_are_not(labels, text, label):
    assert read_label(text, labels) == label


def test_label_in_a_repeated_claim_is_ignored():
    claim = "Ann Lee is a painter [Supported]."
    answer = f"The STATEMENT is: {claim} I cannot tell."
    assert read_label(answer, TWO, claim) is None
    assert read_label(f"{answer}\n[Not Supported]", TWO, claim) == "NS"
    assert read_label("Supported", TWO, "port") == "S"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("supported: no, " * 5000, None),
        ("[Supported] " * 2000, "S"),
    ],
    ids=["bare", "marked"],
)
def test_answer_that_repeats_itself_is_read_in_linear_time(text, label):
    assert read_label(text, TWO) == label


def test_answer_is_cut_before_a_further_question_of_the_model():
    answer = "###Supported###\n\nClaim: Bob ran.\n\nYour decision:\n###Contradicted###"

    def read(text):
        return read_label(text, THREE)

    assert cut_next_question(answer, "Claim:", read) == "###Supported###\n\n"
    repeated = f"Claim: Ann sang.\n{answer[:15]}"
    assert cut_next_question(repeated, "Claim:", read) == repeated


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I would ask:\n```\nAnn Lee  painter\nborn\n```\nor ```other```", "Ann Lee painter born"),
        ("```text\nAnn Lee?\n```", "Ann Lee?"),
        ("```Ann Lee```", "Ann Lee"),
        ("```\n\n```", None),
        ("Ann Lee", None),
    ],
)
def test_query_is_the_first_code_block(text, query):
    assert read_code_block(text) == query
