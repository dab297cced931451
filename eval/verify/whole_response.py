"""One prompt for a whole response: all of its claims are judged at once, with all the evidence.

The baseline of FactReasoner's Table 34 (2502.18573): instead of a relation for every pair of claim
and passage, a large model sees everything and labels the claims. The released code has no such
assessor, so the prompt is our own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from eval.models.chat import Writer
from eval.prompting.asker import Asker, Reading
from eval.prompting.labels_in_answers import read_label
from eval.prompting.prompts import Prompt
from eval.verify.evidence import evidence_for
from records import Claim, Document, Passage, Verdict
from records.types import VerdictLabel

_PROMPT = Path(__file__).parent / "prompts" / "whole_response.jinja"
_LABELS: dict[str, VerdictLabel] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "not supported": "not_supported",
    "unverifiable": "undecided",
}
_NUMBERED = re.compile(r"^\W*(?:claims?\W+)?(\d+)\b(?!\W*\d)\W*?((?:\[|\b[a-z]).*)$", re.IGNORECASE)
# Where a list in one line, as of JSON, has its next item.
_NEXT = re.compile(
    r"[,{]\s*(?=\"\d+\"\s*:|\"?claim\W{1,4}\d+)|(?<=\])[,;]?\s+(?=\d+[.):])", re.IGNORECASE
)
_WORDS = re.compile(r"\b(not supported|supported|contradicted|unverifiable)\b", re.IGNORECASE)


class WholeResponse:
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
        self.evidence = evidence
        self.prompt = Prompt(_PROMPT)

    def holds(self) -> list[object]:
        """The language model and its prompt."""
        return [self.asker, self.prompt]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim; ``response`` is the line of the answer that labels it.

        Of an answer that cannot be read ``response`` is the whole.
        """
        found = iter(evidence_for(claims, passages))
        evidence = [[next(found) if self.evidence else [] for _ in own] for own in claims]
        shown = [
            [claim for claim, own in zip(row, known, strict=True) if not isinstance(own, str)]
            for row, known in zip(claims, evidence, strict=True)
        ]
        asked = [row for row, own in enumerate(shown) if own]
        prompts = [
            self.prompt.messages(
                topic=documents[row].topic,
                response=documents[row].text,
                claims=[" ".join(claim.text.split()) for claim in shown[row]],
                passages=_distinct(evidence[row]),
            )
            for row in asked
        ]
        reads = [partial(labels_by_number, count=len(shown[row])) for row in asked]
        readings = dict(zip(asked, self.asker.ask(prompts, reads), strict=True))
        return [
            _verdicts(own, known, readings.get(row))
            for row, (own, known) in enumerate(zip(claims, evidence, strict=True))
        ]


def labels_by_number(text: str, count: int) -> list[tuple[VerdictLabel, str]] | None:
    """The label of each claim and the line that gives it; ``None`` where one has none.

    The last line that labels a number decides. A label stands in marks, alone, or first in its
    line and as its only one. An answer with a label for a number that no claim has is another list.

    Args:
        text: of the answer.
        count: the claims are numbered from 1 to it.
    """
    found: dict[int, tuple[VerdictLabel, str]] = {}
    for line in _NEXT.sub("\n", text).splitlines():
        item = _NUMBERED.match(line)
        label = item and _label(item[2])
        if label:
            found[int(item[1])] = label, line.strip()
    if found.keys() != set(range(1, count + 1)):
        return None
    return [found[number] for number in range(1, count + 1)]


def _label(item: str) -> VerdictLabel | None:
    if "[" in item:
        return read_label(item, _LABELS)
    item = item.rstrip(" ,]}")  # of JSON
    words = [word.lower() for word in _WORDS.findall(item)]
    first = _WORDS.match(item.lstrip(" *\"'"))
    only = _LABELS[words[0]] if first and len(set(words)) == 1 else None
    return read_label(item, _LABELS) or only


def _distinct(evidence: Sequence[Sequence[Passage] | str]) -> list[Passage]:
    """The passages of all claims, each once, in the claims' order."""
    found = [passage for own in evidence if not isinstance(own, str) for passage in own]
    return list({passage.id: passage for passage in found}.values())


def _verdicts(
    claims: Sequence[Claim],
    evidence: Sequence[Sequence[Passage] | str],
    said: Reading[list[tuple[VerdictLabel, str]]] | None,
) -> list[Verdict]:
    labels = iter(said.value if said and said.value else ())
    passages = [passage.id for passage in _distinct(evidence)] or None
    verdicts = []
    for claim, own in zip(claims, evidence, strict=True):
        known = {"claim": claim.id, "assessor": "whole_response"}
        if isinstance(own, str):
            verdicts.append(Verdict(**known, label="failed", reason=own))
        elif said.failed:
            failed = {"label": "failed", "reason": said.failed, "response": said.text}
            verdicts.append(Verdict(**known, **failed))
        else:
            label, line = next(labels)
            verdicts.append(Verdict(**known, label=label, evidence=passages, response=line))
    return verdicts
