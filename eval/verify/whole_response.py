"""One prompt per response: all claims are judged together, with all evidence (our own method)."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import read_by_number, read_label
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge, distinct_passages
from records import Verdict
from records.types import VerdictLabel

_PROMPT = Path(__file__).parent / "prompts" / "whole_response.jinja"
_LABELS: dict[str, VerdictLabel] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "not supported": "not_supported",
    "unverifiable": "undecided",
}


class WholeResponse(ClaimByClaim):
    """Judge all claims of a document with one prompt: supported, contradicted, or undecided.

    The prompt has the response, its numbered claims, and their distinct passages. The answer must
    label every number. If it does not, or if the prompt is too long, all claims of the document are
    ``failed``. A claim without passages is ``failed`` and is not in the prompt. The verifier judges
    sets: it queries the model again for the claims that Core selects.

    Args:
        writer: the language model, with ``when_cut: fail``.
        evidence: show the claims' passages; otherwise the model judges by its knowledge.
        temperature: sampling temperature.
        max_new_tokens: maximum length of an answer, in tokens; a claim takes about eight.
        retries: retries for an answer that cannot be parsed.
        seed: sampling seed.
    """

    judges_sets = True
    assessor = "whole_response"

    def __init__(
        self,
        writer: Writer,
        evidence: bool = True,
        temperature: float = 0.1,
        max_new_tokens: int = 2048,
        retries: int = 3,
        seed: int = 0,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.reads_passages = evidence
        self.prompt = Prompt(_PROMPT)

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        """Judge claims; ``response`` is a claim's answer line, or an unparsable answer."""
        groups = [list(group) for _, group in groupby(items, key=lambda item: item.row)]
        prompts = [
            self.prompt.messages(
                topic=group[0].document.topic,
                response=group[0].document.text,
                claims=[" ".join(item.claim.text.split()) for item in group],
                passages=distinct_passages(group),
            )
            for group in groups
        ]
        reads = [partial(read_complete_labels, count=len(group)) for group in groups]
        verdicts = []
        for group, reading in zip(groups, self.asker.ask(prompts, reads), strict=True):
            if reading.failed:
                verdicts += [
                    self.failed(item.claim, reading.failed, response=reading.text) for item in group
                ]
                continue
            evidence = [passage.id for passage in distinct_passages(group)] or None
            verdicts += [
                self.verdict(item.claim, label, evidence=evidence, response=line)
                for item, (label, line) in zip(group, reading.value, strict=True)
            ]
        return verdicts


def read_complete_labels(text: str, count: int) -> list[tuple[VerdictLabel, str]] | None:
    """Parse each claim's label and its answer line; ``None`` unless all numbers have a label.

    The last line that labels a number decides (:func:`read_label`). An answer with a number outside
    1 to ``count`` is rejected.

    Args:
        text: the answer.
        count: the number of claims in the prompt.
    """
    labels = {number: (label, line) for number, label, line in read_by_number(text, _label)}
    if labels.keys() != set(range(1, count + 1)):
        return None
    return [labels[number] for number in range(1, count + 1)]


def _label(item: str) -> VerdictLabel | None:
    # Strip the end of a JSON list.
    return read_label(item if "[" in item else item.rstrip(" ,]}"), _LABELS)
