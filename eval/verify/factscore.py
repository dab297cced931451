"""FActScore's prompted assessors: No-context LM, Retrieve→LM, and Retrieve→LM + NP.

Min et al. 2023 (2305.14251, section 4.1). The fourth, Nonparametric Probability alone, is
``eval.verify.nonparametric.NP``.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from pathlib import Path

from eval.models.chat import Message, Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.prompting.yes_no import true_or_false
from eval.verify.evidence import evidence_for
from eval.verify.nonparametric import NP
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_PROMPTS = Path(__file__).parent / "prompts"


class FActScore:
    """Ask a language model whether a claim is true, as a rule given its passages.

    Verdicts are named after the paper's variants: ``no_context``; ``retrieval``; with
    ``nonparametric`` also ``retrieval+np``, which supports a claim where both do. As in the
    released code NP judges only what the model calls true. The passages stand in the prompt with
    the best one last, and the text of the answer decides
    (:func:`eval.prompting.yes_no.true_or_false` tells how). There it departs from the released
    code: an answer with neither True nor False is ``failed``, and so is a claim without passages.
    The paper's LLaMA compares the logits of "True" and "False" instead, which no
    :class:`~eval.models.chat.Writer` gives, so ``p`` is not set.

    Args:
        writer: the language model.
        retrieval: give it the claim's passages; otherwise it judges by what it knows.
        nonparametric: the masked model of the ensemble.
        temperature: 0 takes the likeliest answer; 0.7 in the released code for ChatGPT.
        max_new_tokens: tokens of an answer.
        seed: of answers drawn with a temperature.

    Raises:
        UserError: ``nonparametric`` without ``retrieval``, or a number out of range.
    """

    judges_sets = False

    def __init__(
        self,
        writer: Writer,
        retrieval: bool = True,
        nonparametric: NP | None = None,
        temperature: float = 0.0,
        max_new_tokens: int = 128,
        seed: int = 0,
    ):
        if nonparametric is not None and not retrieval:
            raise UserError("nonparametric: needs the claims' passages; set retrieval to true")
        self.asker = Asker(writer, temperature, max_new_tokens, retries=0, seed=seed)
        self.retrieval = retrieval
        self.nonparametric = nonparametric
        kind = "retrieval" if retrieval else "no_context"
        self.prompt = Prompt(_PROMPTS / f"factscore_{kind}.jinja")

    def holds(self) -> list[object]:
        """The language model, NP and the prompt."""
        return [self.asker, self.nonparametric, self.prompt]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim, two with ``nonparametric``; ``response`` is the model's answer."""
        jobs = [(row, claim) for row, own in enumerate(claims) for claim in own]
        evidence = evidence_for(claims, passages) if self.retrieval else [[] for _ in jobs]
        prompts = [
            self._messages(documents[row].topic, claim, found)
            for (row, claim), found in zip(jobs, evidence, strict=True)
            if not isinstance(found, str)
        ]
        readings = iter(self.asker.ask(prompts, true_or_false))
        verdicts: list[list[Verdict]] = [[] for _ in documents]
        for (row, claim), found in zip(jobs, evidence, strict=True):
            if isinstance(found, str):
                verdicts[row].append(self._verdict(claim, found))
                continue
            said = next(readings)
            known = {"evidence": [p.id for p in found] or None, "response": said.text}
            verdicts[row].append(self._verdict(claim, said.failed or said.value, **known))
        if self.nonparametric is None:
            return verdicts
        return self._with_np(verdicts, [claim for _, claim in jobs], evidence)

    def _messages(self, topic: str, claim: Claim, found: Sequence[Passage]) -> list[Message]:
        shown = [{"title": p.title, "text": p.text.strip()} for p in reversed(found)]
        if shown and shown[-1]["text"][-1:] not in string.punctuation:
            shown[-1]["text"] += "."
        return self.prompt.messages(topic=topic, passages=shown, claim=claim.text.strip())

    def _verdict(self, claim: Claim, said: bool | str, **known: object) -> Verdict:
        name = "retrieval" if self.retrieval else "no_context"
        label, reason = _label(said)
        known |= {"claim": claim.id, "assessor": "factscore", "name": name}
        return Verdict(**known, label=label, reason=reason)

    def _with_np(
        self,
        verdicts: Sequence[Sequence[Verdict]],
        claims: Sequence[Claim],
        evidence: Sequence[list[Passage] | str],
    ) -> list[list[Verdict]]:
        """Each verdict, and the ensemble's after it."""
        every = [verdict for own in verdicts for verdict in own]
        pairs = [
            (claim.text, found)
            for verdict, claim, found in zip(every, claims, evidence, strict=True)
            if verdict.label == "supported"
        ]
        judged = iter(self.nonparametric.probabilities(pairs))
        return [
            [v for verdict in own for v in (verdict, self._ensemble(verdict, judged))]
            for own in verdicts
        ]

    def _ensemble(self, verdict: Verdict, judged: Iterator[float | str]) -> Verdict:
        update = {"name": "retrieval+np"}
        if verdict.label == "supported":
            found = next(judged)
            said = found if isinstance(found, str) else found > self.nonparametric.threshold
            update["label"], update["reason"] = _label(said)
        return verdict.model_copy(update=update)


def _label(said: bool | str) -> tuple[VerdictLabel, str | None]:
    """The label, and why it is ``failed``."""
    if isinstance(said, str):
        return "failed", said
    return ("supported" if said else "not_supported"), None
