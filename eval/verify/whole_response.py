"""One prompt for a whole response: all of its claims are judged at once, with all the evidence.

Ours, of no paper: instead of a relation for every pair of claim and passage, a large model sees
everything and labels the claims. (What 2502.18573 asks DeepSeek-v3 is one statement at a time:
``eval.verify.with_knowledge.WithKnowledge``.)
"""

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
    """Judge all claims of a document by one prompt: supported, contradicted, or undecided.

    A prompt holds the response, its claims by number, and every passage of these claims once. Each
    verdict has the label that the answer gives to the claim's number; the factual precision is then
    that of all assessors. Because the claims stand together it judges sets: Core's selection is
    asked about anew. An answer must give every number one label. Where it does not, or the prompt
    is too long, all claims of the document are ``failed``; a claim for which no passage was found
    is ``failed`` and does not stand in the prompt.

    Args:
        writer: the language model; one that counts a cut answer as failed (``when_cut: fail``).
        evidence: show the claims' passages; otherwise the model judges by what it knows.
        temperature: of the sampling.
        max_new_tokens: of an answer; a claim takes about eight.
        retries: how often an answer that cannot be read is asked for again.
        seed: of the sampling.
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

    def judge(self, asked: Sequence[ClaimToJudge]) -> list[Verdict]:
        """One prompt a document; ``response`` is the line of the answer that labels a claim.

        Of an answer that cannot be read ``response`` is the whole.
        """
        texts = [list(own) for _, own in groupby(asked, key=lambda one: one.row)]
        prompts = [
            self.prompt.messages(
                topic=own[0].document.topic,
                response=own[0].document.text,
                claims=[" ".join(one.claim.text.split()) for one in own],
                passages=distinct_passages(own),
            )
            for own in texts
        ]
        reads = [partial(read_complete_labels, count=len(own)) for own in texts]
        verdicts = []
        for own, said in zip(texts, self.asker.ask(prompts, reads), strict=True):
            if said.failed:
                verdicts += [self.failed(o.claim, said.failed, response=said.text) for o in own]
                continue
            evidence = [passage.id for passage in distinct_passages(own)] or None
            verdicts += [
                self.verdict(one.claim, label, evidence=evidence, response=line)
                for one, (label, line) in zip(own, said.value, strict=True)
            ]
        return verdicts


def read_complete_labels(text: str, count: int) -> list[tuple[VerdictLabel, str]] | None:
    """The label of each claim and the line that gives it; ``None`` where one has none.

    The last line that labels a number decides; :func:`read_label` says how a label stands in it. An
    answer with a label for a number that no claim has is another list.

    Args:
        text: of the answer.
        count: the claims are numbered from 1 to it.
    """
    found = {number: (label, line) for number, label, line in read_by_number(text, _label)}
    if found.keys() != set(range(1, count + 1)):
        return None
    return [found[number] for number in range(1, count + 1)]


def _label(item: str) -> VerdictLabel | None:
    # The end of a JSON list is none of a mark.
    return read_label(item if "[" in item else item.rstrip(" ,]}"), _LABELS)
