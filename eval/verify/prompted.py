"""Verifiers that ask a language model about each claim: one prompt a claim, or for several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

from eval.models.chat import Message
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import read_label
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import Asked, ClaimByClaim
from eval.verify.several_claims import SeveralClaims
from records import Verdict
from records.types import VerdictLabel


class ByPrompt(ClaimByClaim):
    """A verifier of one prompt a claim; the verdict has the model's answer in ``response``.

    A claim whose answer cannot be read is ``failed``.

    Args:
        asker: asks the model.
        several: asks about several claims at a time first; what it does not judge is asked alone.
    """

    prompt: Prompt

    def __init__(self, asker: Asker, several: SeveralClaims):
        self.asker = asker
        self.several = several

    @abstractmethod
    def messages(self, one: Asked) -> list[Message]:
        """The prompt about a claim."""

    @abstractmethod
    def read(self, text: str, one: Asked) -> VerdictLabel | None:
        """The label that an answer about a claim gives, ``None`` where it gives none."""

    def judge(self, asked: Sequence[Asked]) -> list[Verdict]:
        """What the model says of each claim."""
        known = self.several.judged(asked)
        alone = [place for place in range(len(asked)) if place not in known]
        prompts = [self.messages(asked[place]) for place in alone]
        readings = self.asker.ask(prompts, [partial(self.read, one=asked[p]) for p in alone])
        for place, said in zip(alone, readings, strict=True):
            known[place] = {
                "label": said.value or "failed",
                "evidence": asked[place].evidence,
                "reason": said.failed,
                "response": said.text,
            }
        return [self.verdict(one.claim, **known[place]) for place, one in enumerate(asked)]


class FromPassages(ByPrompt):
    """Judge each claim by a prompt with all of its passages, whose answer ends in a label.

    Args:
        assessor: who judges, as the verdicts say it.
        prompt: with the fields ``claim`` and ``passages``, and those of ``fields``.
        labels: what the model may answer, in small letters, and what it stands for.
        asker: asks the model.
        several: asks about several claims at a time first.
        fields: further fields of the prompt.
    """

    def __init__(
        self,
        assessor: str,
        prompt: Prompt,
        labels: Mapping[str, VerdictLabel],
        asker: Asker,
        several: SeveralClaims,
        fields: Mapping[str, object] | None = None,
    ):
        super().__init__(asker, several)
        self.assessor = assessor
        self.prompt = prompt
        self.answers = dict(labels)
        self.fields = dict(fields or {})

    def messages(self, one: Asked) -> list[Message]:
        """The claim with its passages."""
        return self.prompt.messages(claim=one.claim.text, passages=one.passages, **self.fields)

    def read(self, text: str, one: Asked) -> VerdictLabel | None:
        """The label that the answer ends up with."""
        return read_label(text, self.answers, one.claim.text)
