"""One prompt for several claims of a document, similar to VeriFastScore (2505.16973)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from eval.models.chat import NOTHING_ASKED
from eval.prompting.asker import Asker, Reading
from eval.prompting.labels_in_answers import read_by_number, read_label
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimToJudge, distinct_passages
from records.types import VerdictLabel

PROMPT = Path(__file__).parent / "prompts" / "several_claims.jinja"
# Tokens of an answer line, which has a number and a label.
_TOKENS_A_CLAIM = 16

# Number of a claim to its label and the answer line with the label.
Labels = dict[int, tuple[VerdictLabel, str]]


class SeveralClaims:
    """Judge up to ``claims_per_call`` claims of a document per prompt.

    The prompt is ours; the labels are the verifier's. It shows the passages of all its claims, so a
    claim may be judged by another claim's passages, and asks for labels without reasoning. Copies
    of a claim with the same passages are queried once. The caller must query claims that the answer
    does not label, and single remaining claims, with a prompt each.

    Args:
        claims_per_call: maximum number of claims per prompt; 1 disables this class.
        asker: asker for single claims; here with 16 more tokens per further claim and no retries.
        answers: lower-case answer to verdict label.
        labels: the answers as the prompt shows them.
        switches: true fields of the prompt: ``with_topic``, ``with_links``, ``with_knowledge``.
    """

    def __init__(
        self,
        claims_per_call: int,
        asker: Asker,
        answers: Mapping[str, VerdictLabel],
        labels: Sequence[str],
        switches: Sequence[str] = (),
    ):
        self.claims_per_call = claims_per_call
        longest = asker.max_new_tokens + _TOKENS_A_CLAIM * (claims_per_call - 1)
        self.asker = Asker(asker.writer, asker.temperature, longest, retries=0, seed=asker.seed)
        self.answers = answers
        self.fields = {"labels": labels, **dict.fromkeys(switches, True)}
        # An unused prompt must not be part of the run's key.
        self.prompt = Prompt(PROMPT) if claims_per_call > 1 else None

    def judge(self, items: Sequence[ClaimToJudge]) -> dict[int, dict[str, Any]]:
        """Return the verdict fields of each claim that an answer labels, by the claim's index.

        ``response`` is the line that labels the claim, ``evidence`` all passages of the prompt, and
        ``claims_in_prompt`` the number of claims in the prompt.
        """
        first: dict[tuple, int] = {}  # copies are queried once
        for index, item in enumerate(items):
            first.setdefault(_question(item), index)
        groups = self._groups(items, list(first.values()))
        prompts = [self.messages([items[index] for index in group]) for group in groups]
        reads = [
            partial(read_partial_labels, answers=self.answers, count=len(group)) for group in groups
        ]
        readings = self.asker.ask(prompts, reads)
        verdicts: dict[int, dict[str, Any]] = {}
        for group, reading in zip(groups, readings, strict=True):
            verdicts |= self._fields(items, group, reading)
        sources = [(index, first[_question(item)]) for index, item in enumerate(items)]
        return {index: verdicts[source] for index, source in sources if source in verdicts}

    def _groups(self, items: Sequence[ClaimToJudge], indices: Sequence[int]) -> list[list[int]]:
        size, groups = self.claims_per_call, []
        for _, members in groupby(indices, key=lambda index: items[index].row):
            row = list(members)
            groups += [row[start : start + size] for start in range(0, len(row), size)]
        return [group for group in groups if len(group) > 1]

    def messages(self, group: Sequence[ClaimToJudge]) -> list[dict[str, str]]:
        """Return the prompt for claims of a document, numbered from 1."""
        return self.prompt.messages(
            claims=[" ".join(item.claim.text.split()) for item in group],
            passages=distinct_passages(group),
            topic=group[0].document.topic,
            **self.fields,
        )

    def _fields(
        self, items: Sequence[ClaimToJudge], group: Sequence[int], reading: Reading[Labels]
    ) -> dict[int, dict[str, Any]]:
        if reading.failed == NOTHING_ASKED:  # a dry run: no single prompts either
            return {p: {"label": "failed", "reason": reading.failed} for p in group}
        labels = reading.value or {}
        evidence = [p.id for p in distinct_passages([items[index] for index in group])] or None
        shared = {"evidence": evidence, "claims_in_prompt": len(group)}
        return {
            index: {"label": labels[number][0], "response": labels[number][1], **shared}
            for number, index in enumerate(group, start=1)
            if number in labels
        }


def read_partial_labels(text: str, answers: Mapping[str, VerdictLabel], count: int) -> Labels:
    """Parse the numbers that an answer labels exactly once.

    An answer with a number outside 1 to ``count`` labels nothing.

    Args:
        text: the answer.
        answers: lower-case answer to verdict label.
        count: the number of claims in the prompt.
    """
    lines = read_by_number(text, lambda item: read_label(item, answers))
    times = Counter(number for number, _, _ in lines)
    if not times.keys() <= set(range(1, count + 1)):
        return {}
    return {number: (label, line) for number, label, line in lines if times[number] == 1}


def _question(item: ClaimToJudge) -> tuple:
    return item.row, item.claim.text, tuple(item.evidence or ())
