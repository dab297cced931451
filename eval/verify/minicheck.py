"""MiniCheck: a claim is supported when a small fact-checking model finds it in some passage.

Tang et al. 2024 (2404.10774). The published models of up to a billion weights run through
:class:`~eval.models.checker.Checker`; Bespoke-MiniCheck-7B, a language model, through any
:class:`~eval.models.chat.Writer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from eval.models.chat import Writer
from eval.models.checker import Checker
from eval.prompting.asker import Asker, Reading
from eval.prompting.prompts import Prompt
from eval.prompting.yes_no import yes_or_no
from eval.verify.evidence import evidence_for, pairs_with_evidence, premise
from records import Claim, Document, Passage, Verdict

_PROMPT = Path(__file__).parent / "prompts" / "minicheck.jinja"


class MiniCheck:
    """Judge each claim against each of its passages; the passage that supports it best decides.

    Args:
        checker: the model.
        threshold: probability above which a claim is supported (released code: 0.5).
        title_in_premise: put the passage's title before its text.
    """

    judges_sets = False

    def __init__(self, checker: Checker, threshold: float = 0.5, title_in_premise: bool = False):
        self.checker = checker
        self.threshold = threshold
        self.title_in_premise = title_in_premise

    def holds(self) -> list[object]:
        """The checker."""
        return [self.checker]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim, with the probability that it is supported."""
        evidence = evidence_for(claims, passages)
        every = [claim for own in claims for claim in own]
        pairs = pairs_with_evidence(every, evidence, self.title_in_premise)
        support = iter(self.checker.relations(pairs)[:, 0].tolist())
        rest = iter(evidence)
        return [[self._verdict(claim, next(rest), support) for claim in own] for own in claims]

    def _verdict(
        self, claim: Claim, found: list[Passage] | str, support: Iterator[float]
    ) -> Verdict:
        known = {"claim": claim.id, "assessor": "minicheck"}
        if isinstance(found, str):
            return Verdict(**known, label="failed", reason=found)
        p = [next(support) for _ in found]
        best = max(range(len(p)), key=p.__getitem__)
        label = "supported" if p[best] > self.threshold else "not_supported"
        return Verdict(**known, label=label, p=p[best], evidence=[found[best].id])


class PromptedMiniCheck:
    """Ask a language model, for each passage of a claim, whether the two are consistent.

    For Bespoke-MiniCheck-7B (``bespokelabs/Bespoke-MiniCheck-7B`` behind vLLM), or any other. A
    claim is supported where one passage gets a Yes, and ``failed`` where none does and some answer
    is neither Yes nor No. The released code takes the probability of the first token; an answer's
    text is what every writer gives, so ``p`` is not set. A passage is one document: the model
    reads 32,000 tokens, so none is cut.

    Args:
        writer: the language model.
        max_new_tokens: tokens of an answer; its first word counts.
        title_in_premise: put the passage's title before its text.
    """

    judges_sets = False

    def __init__(self, writer: Writer, max_new_tokens: int = 4, title_in_premise: bool = False):
        self.asker = Asker(writer, 0.0, max_new_tokens, retries=0, seed=0)
        self.title_in_premise = title_in_premise
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
        """One verdict a claim, with the passages that support it."""
        evidence = evidence_for(claims, passages)
        every = [claim for own in claims for claim in own]
        prompts = [
            self.prompt.messages(
                document=premise(passage, self.title_in_premise), claim=claim.text.strip()
            )
            for claim, found in zip(every, evidence, strict=True)
            if not isinstance(found, str)
            for passage in found
        ]
        readings = iter(self.asker.ask(prompts, yes_or_no))
        rest = iter(evidence)
        return [[self._verdict(claim, next(rest), readings) for claim in own] for own in claims]

    def _verdict(
        self, claim: Claim, found: list[Passage] | str, readings: Iterator[Reading[bool]]
    ) -> Verdict:
        known = {"claim": claim.id, "assessor": "prompted_minicheck"}
        if isinstance(found, str):
            return Verdict(**known, label="failed", reason=found)
        said = [next(readings) for _ in found]
        yes = [passage.id for passage, own in zip(found, said, strict=True) if own.value]
        failed = next((own for own in said if own.failed), None)
        if failed is not None and not yes:
            return Verdict(**known, label="failed", reason=failed.failed, response=failed.text)
        return Verdict(**known, label="supported" if yes else "not_supported", evidence=yes)
