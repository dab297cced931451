"""Verifiers that prompt a language model: one prompt per claim, or per group of claims."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

from eval.models.chat import Message
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import read_label
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from eval.verify.several_claims import SeveralClaims
from records import Verdict
from records.types import VerdictLabel


class ByPrompt(ClaimByClaim):
    """A verifier with one prompt per claim; the verdict's ``response`` is the model's answer.

    A claim is ``failed`` if its answer cannot be parsed.

    Args:
        asker: queries the model.
        claims_per_call: claims per prompt. With more than 1, claims that the shared answer does not
            label get a prompt each (:class:`eval.verify.several_claims.SeveralClaims`).
        answers: lower-case answer to verdict label.
        labels: the answers as the prompt for several claims shows them.
        switches: boolean fields of that prompt that are true.
    """

    prompt: Prompt

    def __init__(
        self,
        asker: Asker,
        claims_per_call: int,
        answers: Mapping[str, VerdictLabel],
        labels: Sequence[str],
        switches: Sequence[str] = (),
    ):
        self.asker = asker
        self.answers = answers
        self.several = SeveralClaims(claims_per_call, asker, answers, labels, switches)

    @abstractmethod
    def messages(self, item: ClaimToJudge) -> list[Message]:
        """Return the prompt for a claim."""

    @abstractmethod
    def read(self, text: str, item: ClaimToJudge) -> VerdictLabel | None:
        """Parse the label from an answer; ``None`` if it has none."""

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        verdicts = self.several.judge(items)
        alone = [index for index in range(len(items)) if index not in verdicts]
        prompts = [self.messages(items[index]) for index in alone]
        readings = self.asker.ask(prompts, [partial(self.read, item=items[p]) for p in alone])
        for index, reading in zip(alone, readings, strict=True):
            verdicts[index] = {
                "label": reading.value or "failed",
                "evidence": items[index].evidence,
                "reason": reading.failed,
                "response": reading.text,
            }
        return [self.verdict(item.claim, **verdicts[index]) for index, item in enumerate(items)]


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
