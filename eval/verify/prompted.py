"""Assessors that ask one prompt a claim, with all of its passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eval.prompting.asker import Asker, Reading
from eval.prompting.labels_in_answers import read_label
from eval.prompting.prompts import Prompt
from eval.verify.evidence import evidence_for
from records import Claim, Document, Passage, Verdict
from records.types import VerdictLabel


class FromPassages:
    """Judge each claim by one prompt with all of its passages.

    Args:
        assessor: who judges, as the verdicts say it.
        prompt: with the fields ``claim`` and ``passages``, and those of ``fields``.
        labels: what the model may answer, in small letters, and what it stands for.
        asker: asks the model.
        fields: further fields of the prompt.
    """

    judges_sets = False

    def __init__(
        self,
        assessor: str,
        prompt: Prompt,
        labels: Mapping[str, VerdictLabel],
        asker: Asker,
        fields: Mapping[str, object] | None = None,
    ):
        self.assessor = assessor
        self.prompt = prompt
        self.answers = dict(labels)
        self.asker = asker
        self.fields = dict(fields or {})

    def holds(self) -> list[object]:
        """The language model and its prompt."""
        return [self.prompt, self.asker]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim, with the model's answer in ``response``.

        A claim without a passage, and one whose answer cannot be read, is ``failed``.
        """
        evidence = evidence_for(claims, passages)
        every = [claim for own in claims for claim in own]
        prompts = [
            self.prompt.messages(claim=claim.text, passages=found, **self.fields)
            for claim, found in zip(every, evidence, strict=True)
            if not isinstance(found, str)
        ]
        readings = iter(self.asker.ask(prompts, lambda text: read_label(text, self.answers)))
        rest = iter(evidence)
        return [[self._verdict(claim, next(rest), readings) for claim in own] for own in claims]

    def _verdict(
        self, claim: Claim, found: list[Passage] | str, readings: Iterator[Reading[VerdictLabel]]
    ) -> Verdict:
        known = {"claim": claim.id, "assessor": self.assessor}
        if isinstance(found, str):
            return Verdict(**known, label="failed", reason=found)
        said = next(readings)
        return Verdict(
            **known,
            label=said.value or "failed",
            evidence=[passage.id for passage in found],
            reason=said.failed,
            response=said.text,
        )
