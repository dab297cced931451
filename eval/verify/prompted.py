"""Verifiers that prompt a language model, with one prompt per claim."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

from eval.models.chat import Message
from eval.prompting.answer_forms import read_label
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import Verdict
from records.types import VerdictLabel


class ByPrompt(ClaimByClaim):
    """A verifier with one prompt per claim; the verdict's ``response`` is the model's answer.

    A claim is ``failed`` if its answer cannot be parsed.

    Args:
        asker: queries the model.
        answers: lower-case answer to verdict label, for :class:`FromPassages`.
    """

    prompt: Prompt

    def __init__(self, asker: Asker, answers: Mapping[str, VerdictLabel] | None = None):
        self.asker = asker
        self.answers = answers or {}

    @abstractmethod
    def messages(self, item: ClaimToJudge) -> list[Message]:
        """Return the prompt for a claim."""

    @abstractmethod
    def read(self, text: str, item: ClaimToJudge) -> VerdictLabel | None:
        """Parse the label from an answer; ``None`` if it has none."""

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        prompts = [self.messages(item) for item in items]
        readings = self.asker.ask(prompts, [partial(self.read, item=item) for item in items])
        return [
            self.verdict(
                item.claim,
                reading.value or "failed",
                evidence=item.evidence,
                reason=reading.failed,
                response=reading.text,
            )
            for item, reading in zip(items, readings, strict=True)
        ]


class FromPassages(ByPrompt):
    """Judge each claim with one prompt that shows all its passages; the answer ends in a label.

    Attributes:
        prompt: has the fields ``claim``, ``passages`` and those in ``fields``.
        fields: further fields of the prompt.
    """

    fields: Mapping[str, object] = {}

    def messages(self, item: ClaimToJudge) -> list[Message]:
        return self.prompt.messages(claim=item.claim.text, passages=item.passages, **self.fields)

    def read(self, text: str, item: ClaimToJudge) -> VerdictLabel | None:
        return read_label(text, self.answers, item.claim.text)
