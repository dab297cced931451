"""Subclaims in answers of the published forms and in JSON; other answers fail."""

import pytest

from eval.decompose.by_sentence import Failed
from eval.decompose.claim_lists import parse_claims, parse_statement, repeated_openings

SENTENCE = "Ann Lee was a painter and a boxer."
A, B, C = "Ann Lee was a painter.", "Ann Lee was a boxer.", "She died in 1990."
NO_LIST, REFUSED = "no list of claims in the answer", "the model refused"
PATTERN = frozenset(
    {"sentence", "facts", "please breakdown the following sentence into independent facts"}
)

SHAPES = {
    "dashes": (f"- {A}\n- {B}", [A, B]),
    "numbers": (f"1. {A}\n2. {B}", [A, B]),
    "numbers in brackets": (f"(1) {A}\n(2) {B}", [A, B]),
    "a colon within": ('- She wrote "The Facts: A Life".', ['She wrote "The Facts: A Life".']),
    "thoughts before": (
        f"**Reasoning:**\n- Her name comes first.\n\n**Facts:**\n- {A}\n- {B}",
        Failed(NO_LIST),
    ),
    "plain sentences": (f"{A}\n{B}", Failed(NO_LIST)),
    "thoughts behind": (f"- {A}\n- {B}\n\nExplanation:\n- The first one is hers.", [A, B]),
    "bold numbers": (f"**1.** {A}\n**2.** {B}", [A, B]),
    "greeting and farewell": (
        f"Here are the facts:\n1. {A}\n2. {B}\n\nI hope this helps! Let me know.",
        [A, B],
    ),
    "note": (f"- {A}\n- {B}\n\nNote: The sentence gives no dates.", [A, B]),
    "greeting before the first": (f"Here are the facts: 1. {A}\n2. {B}", [A, B]),
    "marks of the end": (f"- {A}\n- {B}</s>", [A, B]),
    "echoed prompt": (
        f"Please breakdown the following sentence into independent facts: {SENTENCE}\n- {A}\n- {B}",
        [A, B],
    ),
    "headings": (f"## Life\n- {A}\n**Career**\n- {B}\n- Death:\n  - {C}", [A, B, C]),
    "bold words": ("- **Ann Lee** was a *painter*.", ["Ann Lee was a *painter*."]),
    "sub-bullets": (f"- {A}\n    - {B}\n    * {C}", [A, B, C]),
    "quotes": (f'- "{A}"\n- “{B}”', [A, B]),
    "repeated": (f"- {A}\n- {B}\n- Ann Lee was a painter\n- {B}\n- {C}", [A, B, C]),
    "items in a line": (f"- {A} - {B}", [A, B]),
    "a number that counts nothing": (
        "1. It opened at No. 5. 7. Street was closed.",
        ["It opened at No. 5. 7. Street was closed."],
    ),
    "broken line": (
        "- Ann Lee was a painter\n  from Norway.\n- She died.",
        ["Ann Lee was a painter from Norway.", "She died."],
    ),
    "JSON": (f'["{A}", "{B}"]', [A, B]),
    "JSON objects": (f'[{{"id": 1, "claim": "{A}"}}, {{"id": 2, "claim": "{B}"}}]', [A, B]),
    "JSON in a fence": (f'Sure!\n```json\n["{A}", "{B}"]\n```\nDone.', [A, B]),
    "an empty JSON list": ("[]", []),
    "JSON of something else": ('[["a", 1]]', Failed("JSON without a list of claims")),
    "a fence": (f"```\n- {A}\n- {B}\n```", [A, B]),
    "the next example": (f"- {A}\n\nSentence: Bob sang.\nFacts:\n- Bob sang.", [A]),
    "the next prompt": (
        f"- {A}\n\nPlease breakdown the following sentence into independent facts: Bob ran.\n- Bob",
        [A],
    ),
    "cut behind a title": (f"- {A}\n- She met Dr.", [A]),
    "names that end as a cut does": (
        "- She was in Dr. No.\n- She lived in Wall St.",
        ["She was in Dr. No.", "She lived in Wall St."],
    ),
    "cut in the first": ("- Ann Lee was a", Failed(NO_LIST)),
    "nothing verifiable": ("No verifiable claim.", []),
    "a text that is lost": (
        f"- The text does not survive.\n- {A}",
        ["The text does not survive.", A],
    ),
    "asked for the sentence": ("Please provide the sentence to break down.", Failed(NO_LIST)),
    "refusal": ("I'm sorry, but I cannot help with that.", Failed(REFUSED)),
    "refusal as an item": ("- I cannot find anything about Ann Lee.", Failed(REFUSED)),
    "question in a list": (f"- {A}\n- Was she a boxer?", [A]),
    "words": ("painter, boxer", Failed(NO_LIST)),
    "nothing": ("", Failed(NO_LIST)),
}


@pytest.mark.parametrize(("answer", "claims"), SHAPES.values(), ids=SHAPES)
def test_published_list_forms_are_read_and_others_fail(answer, claims):
    assert parse_claims(answer, SENTENCE, PATTERN) == claims


@pytest.mark.parametrize(
    "claim",
    [
        "The sentence is unclear to historians.",
        "No claims were filed by the firm.",
    ],
)
def test_claim_that_opens_like_a_remark_is_kept(claim):
    assert parse_claims(f"- {A}\n- {claim}", claim, PATTERN) == [A, claim]


def test_equal_claims_are_kept_with_keep_duplicates():
    assert parse_claims(f"- {A}\n- {A}", SENTENCE, keep_duplicates=True) == [A, A]


def test_claim_about_an_apology_is_a_refusal_only_if_the_sentence_has_none():
    quote = "I'm sorry was what she said."
    assert parse_claims(f"- {quote}", quote) == [quote]
    assert parse_claims(f"- {quote}", SENTENCE) == Failed(REFUSED)


def test_openings_that_the_prompt_repeats_are_returned():
    prompt = "Split it: now.\n\nSentence: A: b.\nFacts:\n- C: d.\n\nSentence: E.\nFacts:"
    assert repeated_openings([{"role": "user", "content": prompt}]) == {"sentence", "facts"}


STATEMENTS = {
    "The boat is red.": "The boat is red.",
    " Output: The boat\nis red. ": "The boat is red.",
    "The boat is red.\n\nInput: a man\n\nOutput: A man.": "The boat is red.",
    '"That continue to inspire."': "That continue to inspire.",
    "Bel - Air is/are in California": "Bel - Air is/are in California",
    "The boat is red.</s>": "The boat is red.",
    "The boat is red.\n\nI resolved the tense.": "The boat is red.",
    "  ": None,
    "Input: boat is/are red": None,
    "I'm sorry, I cannot do that.": None,
}


@pytest.mark.parametrize("answer", STATEMENTS)
def test_answer_to_one_structure_is_one_statement(answer):
    assert parse_statement(answer) == STATEMENTS[answer]
