"""Several claims of a document in one prompt, for verifiers that ask about one claim a prompt.

VeriFastScore (2505.16973) labels all claims of a text in one pass, and FaStfact (2510.12839) those
of a chunk. This is of neither: the verifier's own question and labels, with a prompt of ours.
"""

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
# Of a line of an answer: a number and a label.
_TOKENS_A_CLAIM = 16

# Number of a claim to its label and the line of the answer that gives it.
Labels = dict[int, tuple[VerdictLabel, str]]


class SeveralClaims:
    """Asks about up to ``claims_per_call`` claims of a document at a time.

    The claims stand in the prompt in their order, by number; the passages of all of them stand
    before them once, so that a claim may be judged by another one's passages. The answer is one
    label a claim, without reasoning. Copies of a claim with the same passages are asked once. What
    such an answer does not label is for the caller to ask alone, as is a claim that is left over.

    Args:
        claims_per_call: most claims of a prompt; with 1 nothing is asked here.
        asker: of a claim alone; an answer here may be longer by 16 tokens for each further claim,
            and is asked for once.
        answers: what the model may answer, in small letters, and what it stands for.
        labels: as the prompt shows them.
        switches: fields of the prompt that are on: ``with_topic``, ``with_links``,
            ``with_knowledge``.
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
        # A prompt that is not asked does not key the run.
        self.prompt = Prompt(PROMPT) if claims_per_call > 1 else None

    def judged(self, asked: Sequence[ClaimToJudge]) -> dict[int, dict[str, Any]]:
        """What a verdict says of each claim that an answer labels, by the claim's place.

        ``response`` is the line that labels the claim, ``evidence`` all passages of the prompt, and
        ``claims_in_prompt`` how many were judged with it.
        """
        first: dict[tuple, int] = {}  # copies are asked once
        for place, one in enumerate(asked):
            first.setdefault(_question(one), place)
        groups = self._groups(asked, list(first.values()))
        prompts = [self.messages([asked[place] for place in group]) for group in groups]
        reads = [
            partial(read_partial_labels, answers=self.answers, count=len(group)) for group in groups
        ]
        readings = self.asker.ask(prompts, reads)
        found: dict[int, dict[str, Any]] = {}
        for group, said in zip(groups, readings, strict=True):
            found |= self._said(asked, group, said)
        places = [(place, first[_question(one)]) for place, one in enumerate(asked)]
        return {place: found[source] for place, source in places if source in found}

    def _groups(self, asked: Sequence[ClaimToJudge], places: Sequence[int]) -> list[list[int]]:
        size, found = self.claims_per_call, []
        for _, own in groupby(places, key=lambda place: asked[place].row):
            row = list(own)
            found += [row[start : start + size] for start in range(0, len(row), size)]
        return [group for group in found if len(group) > 1]

    def messages(self, group: Sequence[ClaimToJudge]) -> list[dict[str, str]]:
        """The prompt about a document's claims, numbered from 1 in their order."""
        return self.prompt.messages(
            claims=[" ".join(one.claim.text.split()) for one in group],
            passages=distinct_passages(group),
            topic=group[0].document.topic,
            **self.fields,
        )

    def _said(
        self, asked: Sequence[ClaimToJudge], group: Sequence[int], said: Reading[Labels]
    ) -> dict[int, dict[str, Any]]:
        if said.failed == NOTHING_ASKED:  # a dry run; nor would they be asked alone
            return {p: {"label": "failed", "reason": said.failed} for p in group}
        labels = said.value or {}
        evidence = [p.id for p in distinct_passages([asked[place] for place in group])] or None
        known = {"evidence": evidence, "claims_in_prompt": len(group)}
        return {
            place: {"label": labels[number][0], "response": labels[number][1], **known}
            for number, place in enumerate(group, start=1)
            if number in labels
        }


def read_partial_labels(text: str, answers: Mapping[str, VerdictLabel], count: int) -> Labels:
    """The labels of the numbers that an answer labels once; one that it labels twice has none.

    An answer with a label for a number that no claim has is another list, and labels nothing.

    Args:
        text: of the answer.
        answers: the labels in small letters.
        count: the claims are numbered from 1 to it.
    """
    lines = read_by_number(text, lambda item: read_label(item, answers))
    times = Counter(number for number, _, _ in lines)
    if not times.keys() <= set(range(1, count + 1)):
        return {}
    return {number: (label, line) for number, label, line in lines if times[number] == 1}


def _question(one: ClaimToJudge) -> tuple:
    return one.row, one.claim.text, tuple(one.evidence or ())
