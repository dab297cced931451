"""The NLI verifier: a claim is supported when some passage entails it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eval.stages import EntailmentModel, called, entails
from eval.verify.evidence import evidence_for, pairs_with_evidence
from records import Claim, Document, Passage, Verdict

_UNTOLD = "the relation to a passage could not be told"


class NLI:
    """Judge each claim against its own passages with a relation model.

    The passage with the highest entailment probability decides: entailment is likelier than both
    other relations (or reaches ``threshold``) → supported; else contradiction is for some passage →
    contradicted; else not_supported. A relation that the model could not tell (a row of NaN, from
    a prompted model) cannot support: a claim that no other passage supports is then ``failed``.

    Args:
        entailment: the relation model.
        threshold: entailment probability that counts as support; without it entailment must
            be likelier than both other relations.
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
        """One verdict a claim; a claim without a passage is ``failed``.

        The ``reason`` of a failed verdict says why.
        """
        evidence = evidence_for(claims, passages)
        every = [claim for own in claims for claim in own]
        pairs = pairs_with_evidence(every, evidence, self.title_in_premise)
        table = iter(self.entailment.relations(pairs) if pairs else [])
        verdicts = iter(
            _failed(claim, found)
            if isinstance(found, str)
            else self._judge(claim, found, [next(table) for _ in found])
            for claim, found in zip(every, evidence, strict=True)
        )
        return [[next(verdicts) for _ in own] for own in claims]

    def _judge(
        self, claim: Claim, passages: Sequence[Passage], rows: Sequence[np.ndarray]
    ) -> Verdict:
        known = [index for index, row in enumerate(rows) if not np.isnan(row).any()]
        if not known:
            return _failed(claim, _UNTOLD)
        best = max(known, key=lambda index: rows[index][0])
        probability = float(rows[best][0])
        supported = bool(entails(rows[best], self.threshold))
        if not supported and len(known) < len(rows):
            return _failed(claim, _UNTOLD)
        contradicted = any(called(row) == 2 for row in rows)
        label = "supported" if supported else "contradicted" if contradicted else "not_supported"
        return Verdict(
            claim=claim.id,
            assessor="nli",
            label=label,
            p=probability,
            evidence=[passages[best].id],
        )


def _failed(claim: Claim, reason: str) -> Verdict:
    return Verdict(claim=claim.id, assessor="nli", label="failed", reason=reason)
