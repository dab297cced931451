"""Rel, the relevance of a source sentence, judged by a prompted language model (2407.03572, eq. 1).

Core leaves open who judges it. Two published judgements serve: SAFE's, whether a statement is
about what the text was asked for (2403.18802, section 3), and Factcheck-GPT's, whether a sentence
is worth checking at all (2311.09000, section 3). A sentence of neither kind is never selected, and
one whose judgement cannot be read counts as failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import read_label
from eval.prompting.prompts import Prompt
from records import Document

_PROMPTS = {
    "on_topic": Path(__file__).parents[1] / "verify/prompts/safe_relevance.jinja",
    "checkworthy": Path(__file__).parent / "prompts/checkworthy.jinja",
}
_LABELS = {
    "on_topic": {"foo": "1", "not foo": "0"},
    "checkworthy": {"yes": "1", "no": "0"},
}


class Prompted:
    """Judges Rel of source sentences; an argument of :class:`eval.select.core.Core`.

    Args:
        writer: the language model.
        question: ``on_topic`` (SAFE) or ``checkworthy`` (Factcheck-GPT).
        temperature: of the sampling.
        max_new_tokens: of an answer with its reasoning.
        retries: how often an answer that cannot be read is asked for again.
        seed: of the sampling.

    Raises:
        UserError: retries without temperature, or a number below its least.
    """

    def __init__(
        self,
        writer: Writer,
        question: Literal["on_topic", "checkworthy"] = "checkworthy",
        temperature: float = 0.1,
        max_new_tokens: int = 256,
        retries: int = 3,
        seed: int = 0,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.question = question
        self.prompt = Prompt(_PROMPTS[question])

    def holds(self) -> list[object]:
        """The language model and its prompt."""
        return [self.asker, self.prompt]

    def __call__(
        self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]
    ) -> list[Sequence[int | None]]:
        """1 (relevant), 0, or ``None`` (no readable answer) for each sentence of each document."""
        prompts = [
            self.prompt.messages(question=document.topic, response=document.text, claim=sentence)
            for document, own in zip(documents, sentences, strict=True)
            for sentence in own
        ]
        labels = _LABELS[self.question]
        readings = iter(self.asker.ask(prompts, lambda text: read_label(text, labels)))
        return [
            [None if (r := next(readings)).value is None else int(r.value) for _ in own]
            for own in sentences
        ]
