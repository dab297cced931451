"""What a selector keeps, as verdicts: to judge selectors by what people call worth checking."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.stages import Selector, selected
from records import Claim, Document, Passage, Verdict


@dataclass(eq=False)
class Selected:
    """Call the claims that a selector keeps supported, and the others not supported.

    Not a judge of truth: ``experiment agreement`` holds it against the labels of
    ``levels: [checkworthiness]``. A selection that failed is ``failed``. ``p`` is not given; the
    ``reason`` is the selector's.

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
                    claim=one.claim,
                    assessor="selected",
                    name="default",
                    label="failed" if one.reason == "failed" else labels[one.selected],
                    reason=one.reason,
                )
                for one in own
            ]
            for own in selected(self.select, documents, claims)
        ]
