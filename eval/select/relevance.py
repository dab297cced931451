"""Judge the relevance of source sentences (Rel) or of claims with a prompted language model.

Rel is a factor of Core's weight, judged on the claim's source sentence (2407.03572, section 5). The
paper uses Factcheck-GPT's prompt, whether a sentence is check-worthy (2311.09000, section 3);
SAFE's question, whether a statement is on topic (2403.18802, section 3), is an alternative. Claims
of irrelevant sentences are never selected; unreadable judgements count as failed.

SAFE asks its question for every claim before rating it. For Core in SAFE (section 5.4),
:class:`Relevant` removes irrelevant claims before Core, so that they cannot exclude relevant ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from components.encoding import fill_prompt
from eval.models.chat import Writer
from eval.prompting.answer_forms import cut_next_question, read_label
from eval.prompting.asker import Asker, Reading
from eval.prompting.prompts import Prompt
from eval.stages import Relevance, Selection, Selector, run_selector
from records import Claim, Document

_PROMPTS = {
    "on_topic": Path(__file__).parents[1] / "verify/prompts/safe_relevance.jinja",
    "checkworthy": Path(__file__).parent / "prompts/checkworthy.jinja",
    "factcheck_gpt": Path(__file__).parent / "prompts/factcheck_gpt.jinja",
}
_LABELS = {
    "on_topic": {"foo": "1", "not foo": "0"},
    "checkworthy": {"yes": "1", "no": "0"},
    "factcheck_gpt": {"yes": "1", "no": "0"},
}


class Prompted:
    """Judge Rel of source sentences; an argument of :class:`eval.select.core.Core`.

    Args:
        writer: the language model.
        question: ``on_topic`` (SAFE); ``checkworthy`` (Factcheck-GPT's definitions, as a
            conversation of ours); or ``factcheck_gpt`` (its prompt as published, one message).
        instruction: the question that the texts answer, with ``{topic}``, for ``on_topic``.
        temperature: sampling temperature.
        max_new_tokens: maximum tokens of an answer with its reasoning.
        retries: number of retries of an unreadable answer.
        seed: sampling seed.
        prompt: a custom prompt file with the fields ``question``, ``response``, ``claim``;
            ``question`` then states the labels of its answers.
    """

    def __init__(
        self,
        writer: Writer,
        question: Literal["on_topic", "checkworthy", "factcheck_gpt"] = "checkworthy",
        instruction: str = "{topic}",
        temperature: float = 0.1,
        max_new_tokens: int = 256,
        retries: int = 3,
        seed: int = 0,
        prompt: Path | None = None,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.question = question
        self.instruction = instruction
        self.prompt = Prompt(prompt or _PROMPTS[question])

    def __call__(
        self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]
    ) -> list[Sequence[int | None]]:
        prompts = [
            self.prompt.messages(
                question=fill_prompt(self.instruction, topic=document.topic),
                response=document.text,
                claim=sentence,
            )
            for document, group in zip(documents, sentences, strict=True)
            for sentence in group
        ]
        readings = iter(self.asker.ask(prompts, self._read))
        return [[_relevance(next(readings)) for _ in group] for group in sentences]

    def _read(self, text: str) -> str | None:
        read = partial(read_label, labels=_LABELS[self.question])
        return read(cut_next_question(text, "Text:", read))


def _relevance(reading: Reading[str]) -> int | None:
    return None if reading.value is None else int(reading.value)


@dataclass(eq=False)
class Relevant:
    """The selector stage that keeps relevant claims, by SAFE's question for each claim.

    With Core as ``then`` it is SAFE with Core. The verifier :class:`eval.verify.safe.Safe` repeats
    the queries; with the same sampling options they are answered from the model's cache.

    Args:
        judge: judges the claims, with ``question: on_topic``.
        then: selector for the relevant claims; null: all are selected.
    """

    judge: Relevance
    then: Selector | None = None

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        """Return one selection per claim; unselected ones are ``irrelevant`` or ``failed``."""
        texts = [[claim.text for claim in group] for group in claims]
        judged = self.judge(documents, texts)
        relevant_claims = [
            [claim for claim, relevant in zip(group, judgements, strict=True) if relevant]
            for group, judgements in zip(claims, judged, strict=True)
        ]
        if self.then is None:
            chosen = [[_selection(claim, 1) for claim in group] for group in relevant_claims]
        else:
            chosen = run_selector(self.then, documents, relevant_claims)
        remaining = [iter(selections) for selections in chosen]
        return [
            [
                next(selections) if relevant else _selection(claim, relevant)
                for claim, relevant in zip(group, judgements, strict=True)
            ]
            for group, judgements, selections in zip(claims, judged, remaining, strict=True)
        ]


def _selection(claim: Claim, relevant: int | None) -> Selection:
    reason = {1: "selected", 0: "irrelevant", None: "failed"}[relevant]
    return Selection(
        claim=claim.id, selected=bool(relevant), weight=float(relevant or 0), reason=reason
    )
