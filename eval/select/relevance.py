"""Relevance, judged by a prompted language model: of source sentences (Rel), and of claims.

Rel is a factor of Core's weight, judged on the sentence that a claim comes from (2407.03572,
section 5): the paper asks Factcheck-GPT's prompt, whether a sentence is worth checking (2311.09000,
section 3); SAFE's question serves as well, whether a statement is about what the text was asked for
(2403.18802, section 3). A sentence of neither kind is never selected, and one whose judgement
cannot be read counts as failed.

SAFE itself asks its question of every claim, before the claim is rated. With Core in SAFE (section
5.4) irrelevant claims are to leave before Core selects, or one of them could push out a relevant
one: :class:`Relevant`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from eval.models.chat import NOTHING_ASKED, Writer
from eval.prompting.asker import Asker, Reading
from eval.prompting.labels_in_answers import cut_next_question, read_label
from eval.prompting.prompts import Prompt
from eval.select.core import Relevance
from eval.stages import Selection, Selector, run_selector
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
    """Judges Rel of source sentences; an argument of :class:`eval.select.core.Core`.

    Args:
        writer: the language model.
        question: ``on_topic`` (SAFE); ``checkworthy`` (Factcheck-GPT's definitions, asked in turns
            of our own); or ``factcheck_gpt`` (its prompt as published, one message).
        temperature: of the sampling.
        max_new_tokens: of an answer with its reasoning.
        retries: how often an answer that cannot be read is asked for again.
        seed: of the sampling.
    """

    def __init__(
        self,
        writer: Writer,
        question: Literal["on_topic", "checkworthy", "factcheck_gpt"] = "checkworthy",
        temperature: float = 0.1,
        max_new_tokens: int = 256,
        retries: int = 3,
        seed: int = 0,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.question = question
        self.prompt = Prompt(_PROMPTS[question])

    def __call__(
        self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]
    ) -> list[Sequence[int | None]]:
        prompts = [
            self.prompt.messages(question=document.topic, response=document.text, claim=sentence)
            for document, own in zip(documents, sentences, strict=True)
            for sentence in own
        ]
        readings = iter(self.asker.ask(prompts, self._read))
        return [[_relevance(next(readings)) for _ in own] for own in sentences]

    def _read(self, text: str) -> str | None:
        read = partial(read_label, labels=_LABELS[self.question])
        return read(cut_next_question(text, "Text:", read))


def _relevance(reading: Reading[str]) -> int | None:
    if reading.failed == NOTHING_ASKED:  # a dry run: all that a selector asks then counts
        return 1
    return None if reading.value is None else int(reading.value)


@dataclass(eq=False)
class Relevant:
    """The selector stage that lets only relevant claims pass: SAFE's question, asked of each claim.

    What it lets pass, another selector may choose from: ``then`` Core is SAFE with Core. The
    verifier :class:`eval.verify.safe.Safe` asks the same again, since without Core irrelevant
    claims do not count either; with the same sampling the answers come out of the model's cache.

    Args:
        judge: who judges, with ``question: on_topic``; it is given claims for sentences.
        then: selects among the relevant claims; null: all of them stay.
    """

    judge: Relevance
    then: Selector | None = None

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        """One selection a claim, in the claims' order.

        An irrelevant claim has the reason ``irrelevant``, one whose relevance could not be judged
        ``failed``; both have no weight and no document entailment.
        """
        texts = [[claim.text for claim in own] for own in claims]
        judged = self.judge(documents, texts)
        passing = [
            [claim for claim, relevant in zip(own, found, strict=True) if relevant]
            for own, found in zip(claims, judged, strict=True)
        ]
        if self.then is None:
            chosen = [[_kept(claim) for claim in own] for own in passing]
        else:
            chosen = run_selector(self.then, documents, passing)
        rows = []
        for own, found, behind in zip(claims, judged, chosen, strict=True):
            left = iter(behind)
            rows.append(
                [
                    next(left) if relevant else _left_out(claim, relevant)
                    for claim, relevant in zip(own, found, strict=True)
                ]
            )
        return rows


def _kept(claim: Claim) -> Selection:
    return Selection(claim=claim.id, selected=True, weight=1.0, reason="selected")


def _left_out(claim: Claim, relevant: int | None) -> Selection:
    reason = "failed" if relevant is None else "irrelevant"
    return Selection(claim=claim.id, selected=False, weight=0.0, reason=reason)
