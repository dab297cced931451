"""Grouping claims by person with a prompted model: answers of many shapes, failures, the prompt."""

from __future__ import annotations

import re

import pytest

from eval.models.chat import Answer
from eval.run.parts import hash_prompts
from eval.verify.dfactscore.prompted_groups import PromptedGroups, read_groups
from records import Claim, Document

FACTS = [
    "Ann Lee is a painter.",
    'She wrote "Blue".',
    "Ann Lee was born in 1901.",
    "A second Ann Lee is a judge.",
]
ONE = [0, 0, 0, 0]
TWO = [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- Ann Lee is a painter.\n- She wrote “Blue”.\n- Ann Lee was born in 1901.\n- ===\n"
            "- A second Ann Lee is a judge.",
            TWO,
        ),
        (  # numbers, case, no full stops, quotation marks, another order, words around
            'Sure, here they are:\n\n1. she wrote "blue"\n2) "Ann Lee is a painter."\n'
            "3. **Ann Lee  was born in 1901**\n===\n* A SECOND ANN LEE IS A JUDGE\n\n"
            "I found two people.",
            TWO,
        ),
        (  # headings
            'Group 1:\n- Ann Lee is a painter.\n- She wrote "Blue".\n- Ann Lee was born in 1901.\n'
            "**Group 2: the judge**\n- A second Ann Lee is a judge.",
            TWO,
        ),
        (
            '=== The painter ===\nAnn Lee is a painter.\nShe wrote "Blue".\n'
            "Ann Lee was born in 1901.\nThat is all of her.\n=== The judge ===\n"
            "A second Ann Lee is a judge.\n===",
            TWO,
        ),
        (
            '- Ann Lee is a painter. - She wrote "Blue". - Ann Lee was born in 1901. - === '
            "- A second Ann Lee is a judge.",
            TWO,
        ),
        (
            '```json\n{"groups": [["Ann Lee is a painter.", "She wrote \\"Blue\\".", "Ann Lee was '
            'born in 1901."], ["A second Ann Lee is a judge."]]}\n```',
            TWO,
        ),
        (
            '["Ann Lee is a painter.", "She wrote \\"Blue\\".", "Ann Lee was born in 1901.", '
            '"===", "A second Ann Lee is a judge."]',
            TWO,
        ),
        ("\n".join(f"- {fact}" for fact in FACTS), ONE),
        ("\n".join(f"Fact {n}: {fact}" for n, fact in enumerate(FACTS, 1)), ONE),
        ("\n".join(f"- {n}. {fact}" for n, fact in enumerate([*FACTS, FACTS[0]], 1)), ONE),
    ],
)
def test_answers_of_different_formats_are_read(text, expected):
    assert read_groups(text, FACTS) == expected


LIST = "\n".join(f"- {fact}" for fact in FACTS)


@pytest.mark.parametrize(
    "text",
    [
        LIST.rpartition("\n")[0],  # a fact is missing
        f"{LIST}\n- Ann Lee is tall.",  # and one is invented
        f"- Ann Lee is tall.\n{LIST}",
        LIST.replace("1901", "1902"),
        f"{LIST}\n- ===\n- Ann Lee is a painter.",  # of two people
        LIST.replace("- A second", "The judge (another one):\n- A second"),  # people or subjects?
        "The paragraph is about two people named Ann Lee.",
        '{"people": 2}',
        "[[1, 2], [3]]",
        "",
    ],
)
def test_answers_that_cannot_be_read(text):
    assert read_groups(text, FACTS) is None


def test_equal_facts_are_matched_in_order():
    facts = ["He sang.", "Al was born in 1950.", "He sang", "Al died in 1850."]
    both = "- He sang.\n- Al was born in 1950.\n- ===\n- He sang.\n- Al died in 1850."
    assert read_groups(both, facts) == [0, 0, 1, 1]
    one_fact_each = "- Al was born in 1950.\n- He sang.\n- ===\n- Al died in 1850."
    assert read_groups(one_fact_each, facts) == [0, 0, 0, 1]
    assert read_groups(f"{both}\n- ===\n- He sang.", facts) is None


def documents(*texts: str) -> tuple[list[Document], list[list[Claim]]]:
    """Documents whose sentences are their claims."""
    facts = [re.findall(r"[^.]+\.", text) for text in texts]
    return (
        [Document(id=f"d{n}", topic="Ann Lee", text=text) for n, text in enumerate(texts)],
        [[Claim(id=f"c{n}", text=t.strip()) for n, t in enumerate(actual)] for actual in facts],
    )


class Scripted:
    """A model that answers from a list, a call at a time."""

    identity = {"model": "scripted"}  # noqa: RUF012

    def __init__(self, *calls: list[Answer]):
        self.calls = list(calls)
        self.asked: list[list[str]] = []

    def answer(self, prompts, *, n=1, temperature, top_p, max_new_tokens, seed):
        self.asked.append([messages[-1]["content"] for messages in prompts])
        return [[answer] for answer in self.calls.pop(0)]


def test_the_prompt_has_four_demonstrations_that_its_own_reader_can_read():
    texts = documents("Ann sings. Ann swims.")
    model = Scripted([Answer("- Ann sings.\n- Ann swims.")])
    group = PromptedGroups(model)
    assert group(*texts) == [["g0", "g0"]]
    ((prompt,),) = model.asked
    parts = re.split(r"Please breakdown the following sentence into independent facts: ", prompt)
    assert parts[-1].startswith("Ann sings. Ann swims.\n- Ann sings.\n- Ann swims.\nNext, refer")
    assert prompt.endswith("repeat the independent facts.")
    people = []
    for part in parts[1:-1]:
        facts, answer = re.split(r"\nNext, refer .*\n", part)
        lines = [line[2:] for line in facts.splitlines()[1:]]
        groups = read_groups(answer, lines)
        assert groups == sorted(groups)
        people.append(len(set(groups)))
    assert people == [2, 1, 3, 1]
    assert list(hash_prompts(group)) == ["dfactscore/prompts/groups.jinja"]
