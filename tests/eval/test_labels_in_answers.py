"""Reading labels and queries out of what models write."""

from __future__ import annotations

import pytest

from eval.prompting.labels_in_answers import cut_next_question, read_code_block, read_label

TWO = {"supported": "S", "not supported": "NS", "unsupported": "NS"}
THREE = {"supported": "S", "contradicted": "C", "inconclusive": "U"}
FOO = {"foo": "relevant", "not foo": "irrelevant"}

ANSWERS = [
    # marked as the prompts ask for it, with the decoration that models add
    (TWO, "The pages agree.\n[Supported]", "S"),
    (TWO, "So it is not.\n\n**[Not Supported]**", "NS"),
    (TWO, "Final answer: [**not supported**].", "NS"),
    (TWO, "The final answer is [Not_Supported]", "NS"),
    (THREE, "###Supported###", "S"),
    (THREE, "Your decision: ### Contradicted. ###", "C"),
    (THREE, "###Supported### Search result 2 names the year.", "S"),
    (THREE, "### Decision\n**Inconclusive.**", "U"),
    (FOO, "The subjects are [Foo].", "relevant"),
    (FOO, "Thus the subjects are [Not Foo].", "irrelevant"),
    (FOO, "The two subjects are not [Foo].", "irrelevant"),
    # LaTeX, JSON, bare labels, citations
    (TWO, r"Hence $\boxed{\text{Not Supported}}$", "NS"),
    (THREE, '{"decision": "Contradicted"}', "C"),
    (TWO, "Born in 1901 [1].\nFinal answer: Supported [1, 2]", "S"),
    (TWO, "Therefore, the answer is **Not Supported**.", "NS"),
    (THREE, "Contradicted. Search result 2 says that she was born in 1902.", "C"),
    # labels in the reasoning: the last one counts
    (TWO, "Is it [Supported]? The year differs.\n[Not Supported]", "NS"),
    (THREE, "Result 1 alone: ###Supported###\nAll in all: ###Contradicted###", "C"),
    (TWO, "It is not [Supported] by the KNOWLEDGE.", "NS"),
    (TWO, "If it were [Not Supported], … but it is, so the final answer is [Supported].", "S"),
    # choices left open
    (TWO, "Final answer: [Supported] or [Not Supported]", None),
    (TWO, "I cannot decide between [Supported] and [Not Supported].", None),
    (THREE, "- Supported\n- Contradicted\n- Inconclusive", None),
    (THREE, "###Supported###Contradicted###", None),
    (TWO, "The year is [Not Supported], the place is [Supported].", None),
    # the answer, and what is said of other labels behind it or before it
    (TWO, "Final answer: [Not Supported]\nNo point makes it [Supported].", None),
    (TWO, "**[Supported]**\n\nThat it is [Not Supported] would be too strict.", None),
    (TWO, "Final answer: [Supported]\n\nBut wait, the year differs.\n\n[Not Supported]", "NS"),
    (TWO, "[Not Supported]. It would be [Supported] if the year were 1902.", "NS"),
    (FOO, 'End with "[Foo]" if they are, and with "[Not Foo]" otherwise.', None),
    (THREE, "- [Supported] if it is.\n- [Contradicted] if not.\n- [Inconclusive] if open.", None),
    # in part, in doubt, denied
    (TWO, "The STATEMENT is only partially [Supported].", None),
    (TWO, "[Supported] (in part)", None),
    (TWO, "It cannot be determined whether the STATEMENT is [Supported].", None),
    (TWO, "I don't think that it is [Supported].", None),
    (TWO, "There is no evidence that it is [Supported].", None),
    (TWO, "There is no evidence, so the STATEMENT is [Not Supported].", "NS"),
    (TWO, "The KNOWLEDGE does not confirm it and thus it is [Not Supported].", "NS"),
    (TWO, "The STATEMENT is not mentioned or [Supported] by the KNOWLEDGE.", "NS"),
    (TWO, "It cannot be verified as [Supported].", None),
    (TWO, "There isn't enough evidence to call it [Supported].", None),
    (TWO, "The STATEMENT does not appear to be [Supported] by the KNOWLEDGE.", "NS"),
    (TWO, "It is not directly or explicitly [Supported], nor strongly enough.", "NS"),
    (TWO, "It is not clear that it is [Supported].", None),
    (TWO, "It is hard to read but [Supported].", "S"),
    (TWO, "The STATEMENT is that she was not well. [Supported]", "S"),
    # a label and a No
    (TWO, "Supported: No", None),
    (TWO, '{"supported": false}', None),
    (TWO, "Is it [Supported]? No.", None),
    (TWO, "Is it [Supported]? No.\n[Not Supported]", "NS"),
    (THREE, "[Supported]: Yes\n[Contradicted]: No", None),
    (THREE, "[Supported]: No\n[Contradicted]: Yes", "C"),
    (TWO, "[Supported] is not the right answer.", None),
    (TWO, "**[Supported]** isn't the right answer.\n[Not Supported]", "NS"),
    (THREE, "###Supported### would be wrong.", None),
    (TWO, "[Supported] is the right answer, it is not in doubt.", "S"),
    (THREE, "Supported, no other year is given.", "S"),
    (TWO, "[Supported]. No page speaks against it.", "S"),
    # a label with its reason on one line, announced or at the start
    (TWO, "Final Answer: Not Supported – the KNOWLEDGE has no year.", "NS"),
    (TWO, "So the answer should be Supported, since it says so.", "S"),
    (THREE, "Supported: search result 1 says so.", "S"),
    (THREE, "Supported, but not by a trustworthy source.", None),
    (TWO, "It was asked.\nSupported: the year", None),
    # other marks, other alphabets' punctuation, what servers leave
    (TWO, "最终答案：【Not Supported】", "NS"),
    (TWO, "Answer: Supported<|im_end|>", "S"),
    # something else than the labels
    (FOO, "The subjects are [Foile] and [Not Foo].", None),
    (FOO, "The subject is not only [Not Foo], but also [Fo].", None),
    (TWO, "Is it [Supported]? In part.\n[Partially Supported]", None),
    (TWO, "The [STATEMENT] has a source.\n[Supported]\nSource: [Ann Lee]", "S"),
    (TWO, "[Supported] by [her page](https://example.org)", "S"),
    (THREE, "The claim is not [Supported] by anything.", None),
    (TWO, "The statement is supported by the first page, I think.", None),
    # cut, refused, empty
    (TWO, "The page says so, hence [Supp", None),
    (TWO, "One could say [Supported]. But the year differs, so it is [Not", None),
    (TWO, "I'm sorry, but I can't help with that.", None),
    (TWO, "", None),
]


@pytest.mark.parametrize(("labels", "text", "label"), ANSWERS)
def test_labels(labels, text, label):
    assert read_label(text, labels) == label


def test_a_mark_in_a_repeated_claim_is_no_label():
    claim = "Ann Lee is a painter [Supported]."
    answer = f"The STATEMENT is: {claim} I cannot tell."
    assert read_label(answer, TWO, claim) is None
    assert read_label(f"{answer}\n[Not Supported]", TWO, claim) == "NS"
    assert read_label("[Supported]", TWO, "[Supported]") is None
    assert read_label("Supported", TWO, "port") == "S"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("supported: no, " * 5000, None),
        ("The answer is supported: no, " * 5000, None),
        ("[Supported] " * 2000, "S"),
        ("##" + " " * 5000, None),
    ],
)
def test_a_model_that_repeats_itself_is_read(text, label):
    """In a second; the words of one of these lines were once read again for each clause of it."""
    assert read_label(text, TWO) == label


def test_a_next_question_of_the_models_own_is_not_answered():
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
        ("```plaintext \r\nAnn Lee\r\n```", "Ann Lee"),
        ("````\nAnn Lee\n````", "Ann Lee"),
        ("```\n\n```", None),
        ("```\nAnn Lee", None),
        ("`Ann Lee`", None),
        ("Ann Lee", None),
    ],
)
def test_queries(text, query):
    assert read_code_block(text) == query
