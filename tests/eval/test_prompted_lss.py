"""LSS from a language model: what is read out of its answers, and what becomes of the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from components.words import is_subsequence, split_words
from eval.models.chat import Answer
from eval.models.lss import InWindows
from eval.prompting.prompted_lss import PromptedLss, read_answer
from eval.run.parts import hash_prompts

PUBLISHED = Path(__file__).parents[2] / "eval/prompting/prompted_lss_published.jinja"
CLAIM = "Ada Lovelace, a poet, wrote the first program in Paris."
REFERENCE = "Ada Lovelace wrote the first program."


class Model:
    """Plays a language model that answers by the last reference and claim of its prompt."""

    identity: ClassVar[dict] = {"model": "played"}

    def __init__(self, answer: Callable[[str, str], str | None]):
        self.answer_to, self.calls, self.prompts = answer, 0, []

    def answer(self, prompts, **_):
        self.calls += 1
        self.prompts += [messages[-1]["content"] for messages in prompts]
        return [[self._one(messages[-1]["content"])] for messages in prompts]

    def _one(self, prompt: str) -> Answer:
        last = prompt.rpartition("Reference: ")[2]
        reference, _, rest = last.partition("\nClaim: ")
        text = self.answer_to(reference, rest.removesuffix("\nOutput:"))
        return Answer("", "refused") if text is None else Answer(text)


def test_subsequence_has_the_spelling_of_the_claim() -> None:
    model = Model(lambda *_: '**Output:** "ada lovelace wrote the first program."\n\nParis is new.')
    engine = PromptedLss(model)
    (results,) = engine.subsequences([(CLAIM, REFERENCE)])
    assert results.text == "Ada Lovelace wrote the first program ."
    assert len(results.keep) == len(split_words(CLAIM))
    assert sum(results.keep) == 7
    assert "{" not in model.prompts[0]
    assert model.prompts[0].endswith("Output:")
    assert list(hash_prompts(engine)) == ["eval/prompting/prompted_lss.jinja"]


@pytest.mark.parametrize(
    ("variants", "text", "kept"),
    [
        ("project", "Lovelace wrote the first program", 5),
        ("as_written", "Lovelace wrote the very first program", None),
        ("fail", None, None),
    ],
)
def test_non_subsequences_are_projected_kept_or_failed_and_counted(variants, text, kept) -> None:
    model = Model(
        lambda reference, _: None if reference == "?" else "Lovelace wrote the very first program"
    )
    engine = PromptedLss(model, non_subsequence=variants)
    results, failed = engine.subsequences([(CLAIM, REFERENCE), (CLAIM, "?")])
    assert (results and results.text) == text
    assert (results and results.keep and sum(results.keep)) == kept
    assert failed is None
    assert engine.counts == {"answers": 2, "failed": 1, "not_subsequence": 1}


def test_windows_are_one_call_and_their_words_are_merged() -> None:
    reference = "Ada Lovelace was a poet . " + "Nothing here . " * 6 + "She wrote in Paris ."
    answers = {"poet": "Ada Lovelace, a poet", "Paris": "wrote in Paris."}
    model = Model(lambda window, _: next((a for w, a in answers.items() if w in window), "NONE"))
    engine = PromptedLss(model)
    (results,) = InWindows(engine, 8).subsequences([(CLAIM, reference)])
    assert results.text == "Ada Lovelace, a poet wrote in Paris."
    assert model.calls == 1
    assert engine.counts["answers"] == len(model.prompts) > 3
    lost = PromptedLss(Model(lambda w, _: None if "Nothing" in w else "Ada"))
    assert InWindows(lost, 8).subsequences([(CLAIM, reference)]) == [None]  # a part was never read


def test_lss_star_may_have_other_words() -> None:
    model = Model(lambda *_: "Ada Lovelace wrote a program.")
    (results,) = PromptedLss(model, star=True).subsequences([(CLAIM, REFERENCE)])
    assert results == (None, "Ada Lovelace wrote a program.")
    assert "change or add" in model.prompts[0]
    assert "Never add" not in model.prompts[0]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("Here is the substring:\n\nAda wrote\n\nParis is not there.", "Ada wrote"),
        ("The date is new.\nOutput: Ada wrote", "Ada wrote"),
        ("Ada wrote\n\nReference: Bob ran.\nClaim: Bob sat.\nOutput: Bob", "Ada wrote"),
        ("Reference: Ada.\nClaim: Ada wrote it.\nOutput: Ada wrote", "Ada wrote"),
        ("Ada wrote\nExplanation: Paris is not named.", "Ada wrote"),
        ("### Output\n**Ada wrote**", "Ada wrote"),
        ("NONE (the reference is about something else)", ""),
        ("None of her letters", "None of her letters"),
        ("I'm sorry, but I cannot help with that.", None),
    ],
)
def test_lss_is_read_from_answers(answer: str, read: str | None) -> None:
    assert read_answer(answer, CLAIM) == read


def test_unreadable_answer_is_not_an_empty_lss() -> None:
    answers = {
        "Output:": "failed",
        "I'm sorry, I cannot help in this.": "failed",
        "This is about a ship.": "not_subsequence",
    }
    for answer, counted in answers.items():
        engine = PromptedLss(Model(lambda *_, replies=answer: replies))
        assert engine.subsequences([(CLAIM, REFERENCE)]) == [None]
        assert engine.counts[counted] == 1


def test_published_prompt_examples_follow_its_rules() -> None:
    model = Model(lambda *_: "wrote the first program")
    for star in (False, True):
        engine = PromptedLss(model, prompt=str(PUBLISHED), star=star, non_subsequence="as_written")
        (results,) = engine.subsequences([(CLAIM, REFERENCE)])
        assert (results.text, sum(results.keep)) == ("wrote the first program", 4)
    plain, starred = model.prompts
    assert "Your generation should never be longer than the Claim." in plain
    assert "Only add filler words that do not add a lot of information." in starred
    texts = [re.findall(r"Claim: (.+) Output: (.+)\n", prompt) for prompt in (plain, starred)]
    assert all(is_subsequence(lss, claim) for claim, lss in texts[0])
    assert not all(is_subsequence(lss, claim) for claim, lss in texts[1])
    assert [len(row) for row in texts] == [4, 2]
    assert plain.endswith(f"Reference: {REFERENCE} Claim: {CLAIM} Output:")
