"""Reading labels and queries out of what models write."""

from __future__ import annotations

import pytest

from eval.prompting.labels_in_answers import read_code_block, read_label

TWO = {"supported": "S", "not supported": "NS", "unsupported": "NS"}
THREE = {"supported": "S", "contradicted": "C", "inconclusive": "U"}
FOO = {"foo": "relevant", "not foo": "irrelevant"}

ANSWERS = [
    # marked as the prompts ask for it, with the decoration that models add
    (TWO, "The pages agree.\n[Supported]", "S"),
    (TWO, "So it is not.\n\n**[Not Supported]**", "NS"),
    (TWO, "Final answer: [**not supported**].", "NS"),
    (TWO, "### Final answer\n`[SUPPORTED]`!", "S"),
    (TWO, "The final answer is [Not_Supported]", "NS"),
    (TWO, "In sum: [Not\nSupported]", "NS"),
    (TWO, "[Final answer: Supported]", "S"),
    (TWO, 'I conclude "[Unsupported]".', "NS"),
    (THREE, "###Supported###", "S"),
    (THREE, "Your decision: ### Contradicted. ###", "C"),
    (THREE, "###inconclusive", "U"),
    (THREE, "###Supported### Search result 2 names the year.", "S"),
    (THREE, "### Decision\n**Inconclusive.**", "U"),
    (FOO, "The subjects are [Foo].", "relevant"),
    (FOO, "Thus the subjects are [Not Foo].", "irrelevant"),
    (FOO, "The two subjects are not [Foo].", "irrelevant"),
    # LaTeX, JSON, bare labels, citations
    (TWO, r"Hence $\boxed{\text{Not Supported}}$", "NS"),
    (TWO, r"\boxed{Supported}", "S"),
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
    (THREE, "- [Supported]\n- [Contradicted]\n", None),
    (TWO, "[Supported/Not Supported]", None),
    (THREE, "###Supported###Contradicted###", None),
    (TWO, "The year is [Not Supported], the place is [Supported].", None),
    # something else than the labels
    (FOO, "The subjects are [Foile] and [Not Foo].", None),
    (FOO, "The subject is not only [Not Foo], but also [Fo].", None),
    (TWO, "Is it [Supported]? In part.\n[Partially Supported]", None),
    (TWO, "The [STATEMENT] has a source.\n[Supported]\nSource: [Ann Lee]", "S"),
    (TWO, "[Supported] by [her page](https://example.org)", "S"),
    (TWO, "[Supported]? Rather: [Partially Supported]", None),
    (THREE, "The claim is not [Supported] by anything.", None),
    (THREE, "The answer is not supported.", None),
    (TWO, "The statement is supported by the first page, I think.", None),
    # cut, refused, empty
    (TWO, "The page says so, hence [Supp", None),
    (TWO, "One could say [Supported]. But the year differs, so it is [Not", None),
    (TWO, "I'm sorry, but I can't help with that.", None),
    (THREE, "###", None),
    (TWO, "", None),
]


@pytest.mark.parametrize(("labels", "text", "label"), ANSWERS)
def test_labels(labels, text, label):
    assert read_label(text, labels) == label


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I would ask:\n```\nAnn Lee  painter\nborn\n```\nor ```other```", "Ann Lee painter born"),
        ("```text\nAnn Lee?\n```", "Ann Lee?"),
        ("```Ann Lee```", "Ann Lee"),
        ("```\n\n```", None),
        ("```\nAnn Lee", None),
        ("`Ann Lee`", None),
        ("Ann Lee", None),
    ],
)
def test_queries(text, query):
    assert read_code_block(text) == query
