"""A selector as a verifier, to evaluate it against check-worthiness labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.stages import Selector, run_selector
from records import Claim, Document, Passage, Verdict


@dataclass(eq=False)
class Selected:
    """Label the claims that a selector keeps as supported, and the others as not supported.

    For ``experiment agreement`` with ``levels: [checkworthiness]``; it does not judge truth.

    Args:
        select: the selector, e.g. eval.select.core.Core or eval.select.relevance.Relevant.
    """

    judges_sets = True

    select: Selector

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        labels = {True: "supported", False: "not_supported"}
        return [
            [
                Verdict(
                    claim=selection.claim,
                    assessor="selected",
                    name="default",
                    label="failed" if selection.reason == "failed" else labels[selection.selected],
                    reason=selection.reason,
                )
                for selection in selections
            ]
            for selections in run_selector(self.select, documents, claims)
        ]
