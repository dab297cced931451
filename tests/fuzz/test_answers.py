"""Any answer of a model is read as a result, or as failed.

``pytest tests/fuzz --hypothesis-profile million`` tries a million answers of each kind.
"""

import re

from hypothesis import given
from hypothesis import strategies as st

from data_builders.written.adversarial import paragraph
from data_builders.written.corruption.corrupters import paragraph_lines
from eval.decompose.by_sentence import Failed
from eval.decompose.claim_lists import parse_claims, parse_statement, repeated_openings
from eval.decompose.rewrite import read_between_marks
from eval.models.chat import as_answer
from eval.prompting.answer_forms import (
    read_code_block,
    read_label,
    read_true_or_false,
    read_yes_or_no,
)
from eval.prompting.prompted_lss import read_answer
from eval.verify.dfactscore.prompted_groups import read_groups
from tests.fuzz.odd import rewritten, texts, written

# The labels of SAFE's relevance and ratings, of FactVerify, and of Rel.
LABELS = (
    {"foo": "relevant", "not foo": "irrelevant"},
    {"supported": "supported", "not supported": "not_supported", "unsupported": "not_supported"},
    {"supported": "supported", "contradicted": "contradicted", "unverifiable": "undecided"},
    {"yes": "1", "no": "0"},
)
SENTENCE = "Ann Lee, a painter, was born in 1815 in London."
FACTS = ("Ann Lee paints.", "Ann Lee was born in 1815.", "Ann Lee paints.")
ANSWERS = (
    "[Supported]",
    "Final answer: **not supported**.",
    "It says so.\n###Contradicted###",
    "Therefore, the answer is $\\boxed{\\text{Supported}}$.",
    "[Foo] or [Not Foo]",
    "Yes, it is.",
    "True or False? False.",
    "1. [Supported]\n2) not supported\nClaim 3: Unverifiable, since",
    '{"1": "Supported", "2": "Unverifiable", "3": "Supported"}',
    "Facts:\n- Ann Lee is a painter.\n- Ann Lee was born in 1815.",
    "1. Ann Lee is a painter. 2. Ann Lee was born in 1815.",
    '```json\n["Ann Lee is a painter.", "Ann Lee was born in 1815."]\n```',
    '{"claims": [{"claim": "Ann Lee is a painter.", "n": 1}]}',
    "['Ann Lee is a painter.', 'Ann Lee was",
    "There are no verifiable claims.",
    "I'm sorry, I cannot help.",
    "Input: x\nOutput: Ann Lee is a painter.",
    "#### Ann Lee is a painter. ####",
    "- Ann Lee paints.\n- Ann Lee paints.\n===\nPerson 2:\n- Ann Lee was born in 1815.",
    '[["Ann Lee paints."], ["Ann Lee was born in 1815."]]',
    "Output: **Ann Lee was born in London**",
    "NONE",
    "relationship: [neutral]",
    "entailment",
    "<think>Ann</think> Ann Lee was born in 1851.",
    "Ann Lee was born between 1810 and 1820, in the 1810s, on 3 May 1815, in the 19th century.",
)
# What holds neither a word nor a number.
NOTHING = st.text(" \n\t\r-*•.#`[]{}()\"':,;=|>_\\$!?\x00\ufeff\u202e", max_size=30)
answers = rewritten(ANSWERS) | written | st.sampled_from(ANSWERS)


@given(answers)
def test_claims_are_a_list_or_a_failure(answer):
    result = parse_claims(answer, SENTENCE, frozenset({"facts"}))
    assert isinstance(result, Failed | list)
    if isinstance(result, list):
        assert len({claim.casefold() for claim in result}) == len(result)
        assert all(claim.strip() and "\n" not in claim for claim in result)
    repeated_openings([{"role": "user", "content": answer}])


@given(answers, st.sampled_from(LABELS))
def test_a_label_is_one_that_the_answer_names(answer, labels):
    result = read_label(answer, labels)
    letters = re.sub("[^a-z]", "", answer.lower())
    ends = [key.split()[-1] for key, label in labels.items() if label == result]
    assert result is None or any(end in letters for end in ends)
    assert read_true_or_false(answer) is None or "true" in letters or "false" in letters
    assert read_yes_or_no(answer) is None or "yes" in letters or "no" in letters


@given(answers, st.lists(st.sampled_from(FACTS) | written, min_size=1, max_size=3))
def test_groups_are_of_all_facts(answer, facts):
    result = read_groups(answer, facts)
    assert result is None or (len(result) == len(facts) and min(result) >= 0)


@given(answers, written | st.just(SENTENCE))
def test_texts_in_answers_are_texts(answer, claim):
    for result in (read_code_block(answer), read_between_marks(answer), parse_statement(answer)):
        assert result is None or (result.strip() and "\n" not in result)
    result = read_answer(answer, claim)
    assert not result or any(map(str.isalnum, result))
    assert all(line.strip() for line in paragraph_lines(answer))
    assert paragraph(answer) == " ".join(paragraph(answer).split())


@given(texts | answers, st.booleans(), st.sampled_from(["fail", "sentence"]))
def test_any_model_text_is_an_answer_in_utf8(text, cut, when_cut):
    result = as_answer(text, cut, when_cut)
    result.text.encode()
    assert result.failed or result.text.strip()


@given(NOTHING)
def test_an_empty_answer_has_no_result(answer):
    assert all(read_label(answer, labels) is None for labels in LABELS)
    assert read_true_or_false(answer) is None
    assert read_yes_or_no(answer) is None
    assert read_groups(answer, FACTS) is None
    assert read_answer(answer, SENTENCE) is None
    result = parse_claims(answer, SENTENCE)
    assert isinstance(result, Failed) or result == []
