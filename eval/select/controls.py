"""Selectors for comparison: what a defence must do better than.

``RandomDrop`` keeps as many claims as another selector, drawn at random: a defence that is no
better only shortens texts. ``DistinctWords`` compares words without a model.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from components.english import stems
from eval.stages import Selection, Selector
from records import Claim, Document

# The share of a claim's word stems that every kept claim must lack.
_LEAST_NEW = 0.34


@dataclass(eq=False)
class RandomDrop:
    """Keep as many claims of a document as another selector keeps, drawn at random.

    Args:
        like: the selector that decides how many claims are kept.
        seed: seed of the draw, together with the document's id.
    """

    like: Selector
    seed: int = 0

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        rows = []
        for document, selections in zip(documents, self.like(documents, claims), strict=True):
            usable = [s.claim for s in selections if s.reason != "failed"]
            count = sum(selection.selected for selection in selections)
            draw = random.Random(f"{self.seed}:{document.id}")
            kept = {*draw.sample(usable, count)}
            rows.append([_decide(s.claim, s.claim in kept, s.reason) for s in selections])
        return rows


class DistinctWords:
    """Drop a claim of which a kept claim has more than two thirds of the word stems.

    The topic's stems do not count.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        pairs = zip(documents, claims, strict=True)
        return [self._select({*stems(document.topic)}, row) for document, row in pairs]

    def _select(self, topic: set[str], claims: Sequence[Claim]) -> list[Selection]:
        kept: dict[str, set[str]] = {}
        selections = []
        for claim in claims:
            words = {*stems(claim.text)} - topic
            least = _LEAST_NEW * len(words)
            twin = next((name for name, other in kept.items() if len(words - other) < least), None)
            if twin is None:
                kept[claim.id] = words
            selections.append(_decide(claim.id, twin is None, "duplicate", twin))
        return selections


def _decide(claim: str, is_kept: bool, reason: str, duplicate_of: str | None = None) -> Selection:
    if is_kept:
        return Selection(claim=claim, selected=True, weight=1.0, reason="selected")
    dropped = reason if reason in ("failed", "duplicate") else "irrelevant"
    return Selection(
        claim=claim, selected=False, weight=1.0, reason=dropped, duplicate_of=duplicate_of
    )
