"""Verifiers that ask a language model one prompt a claim."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from eval.models.chat import Message
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import read_label
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import Asked, ClaimByClaim
from records import Verdict
from records.types import VerdictLabel


class ByPrompt(ClaimByClaim):
    """A verifier of one prompt a claim; the verdict has the model's answer in ``response``.

    A claim whose answer cannot be read is ``failed``.

    Args:
        asker: asks the model.
    """

    prompt: Prompt

    def __init__(self, asker: Asker):
        self.asker = asker

    def holds(self) -> list[object]:
        """The language model and its prompt."""
        return [self.asker, self.prompt]

    @abstractmethod
    def messages(self, one: Asked) -> list[Message]:
        """The prompt about a claim."""

    @abstractmethod
    def read(self, text: str) -> VerdictLabel | None:
        """The label that an answer gives, ``None`` where it gives none."""

    def judge(self, asked: Sequence[Asked]) -> list[Verdict]:
        """What the model says of each claim."""
        readings = self.asker.ask([self.messages(one) for one in asked], self.read)
        return [
            self.verdict(
                one.claim,
                said.value or "failed",
                evidence=one.evidence,
                reason=said.failed,
                response=said.text,
            )
            for one, said in zip(asked, readings, strict=True)
        ]


class FromPassages(ByPrompt):
    """Judge each claim by one prompt with all of its passages, whose answer ends in a label.

    Args:
        assessor: who judges, as the verdicts say it.
        prompt: with the fields ``claim`` and ``passages``, and those of ``fields``.
        labels: what the model may answer, in small letters, and what it stands for.
        asker: asks the model.
        fields: further fields of the prompt.
    """

    def __init__(
        self,
        assessor: str,
        prompt: Prompt,
        labels: Mapping[str, VerdictLabel],
        asker: Asker,
        fields: Mapping[str, object] | None = None,
    ):
        super().__init__(asker)
        self.assessor = assessor
        self.prompt = prompt
        self.answers = dict(labels)
        self.fields = dict(fields or {})

    def messages(self, one: Asked) -> list[Message]:
        """The claim with its passages."""
        return self.prompt.messages(claim=one.claim.text, passages=one.passages, **self.fields)

    def read(self, text: str) -> VerdictLabel | None:
        """The label that the answer ends up with."""
        return read_label(text, self.answers)
