"""Verifiers that ask a language model about each claim: one prompt a claim, or for several."""

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
    """A verifier of one prompt a claim; the verdict has the model's answer in ``response``.

    A claim whose answer cannot be read is ``failed``.

    Args:
        asker: asks the model.
        claims_per_call: with more than 1 so many are asked about first; what no answer judges is
            asked alone (:class:`eval.verify.several_claims.SeveralClaims`).
        answers: what the model may answer, in small letters, and what it stands for.
        labels: the answers as the prompt for several claims shows them.
        switches: fields of that prompt that are on.
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
    def messages(self, one: ClaimToJudge) -> list[Message]:
        """The prompt about a claim."""

    @abstractmethod
    def read(self, text: str, one: ClaimToJudge) -> VerdictLabel | None:
        """The label that an answer about a claim gives, ``None`` where it gives none."""

    def judge(self, asked: Sequence[ClaimToJudge]) -> list[Verdict]:
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

    Attributes:
        prompt: with the fields ``claim`` and ``passages``, and those of ``fields``.
        fields: further fields of the prompt.
    """

    fields: Mapping[str, object] = {}

    def messages(self, one: ClaimToJudge) -> list[Message]:
        return self.prompt.messages(claim=one.claim.text, passages=one.passages, **self.fields)

    def read(self, text: str, one: ClaimToJudge) -> VerdictLabel | None:
        return read_label(text, self.answers, one.claim.text)
