"""The NLI verifier: a claim is supported when some passage entails it."""

from __future__ import annotations

from collections.abc import Sequence

from eval.stages import EntailmentModel
from records import Claim, Document, Passage, Verdict


class NLI:
    """Judge each claim against its own passages with a relation model.

    The passage with the highest entailment probability decides: entailment is the argmax (or
    reaches ``threshold``) → supported; else contradiction is the argmax for some passage →
    contradicted; else not_supported.

    Args:
        entailment: the relation model.
        threshold: entailment probability that counts as support; the argmax when not given.
        title_in_premise: put the passage's title before its text.
    """

    judges_sets = False

    def __init__(
        self,
        entailment: EntailmentModel,
        threshold: float | None = None,
        title_in_premise: bool = False,
    ):
        self.entailment = entailment
        self.threshold = threshold
        self.title_in_premise = title_in_premise

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim. A claim without a passage is ``failed``, with the reason."""
        texts = [{p.id: self._premise(p) for p in own} for own in passages]
        jobs = [
            (row, claim, [c for c in claim.contexts or [] if c in texts[row]])
            for row, own in enumerate(claims)
            for claim in own
        ]
        pairs = [
            (texts[row][context], claim.text)
            for row, claim, contexts in jobs
            for context in contexts
        ]
        table = self.entailment.relations(pairs) if pairs else []
        verdicts: list[list[Verdict]] = [[] for _ in documents]
        start = 0
        for row, claim, contexts in jobs:
            rows = table[start : start + len(contexts)]
            start += len(contexts)
            verdicts[row].append(self._judge(claim, contexts, rows))
        return verdicts

    def _premise(self, passage: Passage) -> str:
        return f"{passage.title}. {passage.text}" if self.title_in_premise else passage.text

    def _judge(self, claim: Claim, contexts: list[str], rows: Sequence) -> Verdict:
        if not contexts:
            return Verdict(
                claim=claim.id, assessor="nli", label="failed", reason="no passage was retrieved"
            )
        best = max(range(len(contexts)), key=lambda index: rows[index][0])
        probability = float(rows[best][0])
        if self.threshold is None:
            supported = int(rows[best].argmax()) == 0
        else:
            supported = probability >= self.threshold
        contradicted = any(int(row.argmax()) == 2 for row in rows)
        label = "supported" if supported else "contradicted" if contradicted else "not_supported"
        return Verdict(
            claim=claim.id, assessor="nli", label=label, p=probability, evidence=[contexts[best]]
        )
