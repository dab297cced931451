"""Which claims of a long document Core compares: pairs that have little in common are not asked.

Core's exclusion asks about all N² pairs of a document's claims (2407.03572, Eq. 1), though a claim
entails few others. The gate leaves out pairs that a cheap score tells apart; what it costs on real
texts is in ``docs/results.md`` and measured by ``benchmarks/core_gate.py``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jsonargparse.typing import ClosedUnitInterval

from eval.retrieve.dense import SentenceEncoder, relatedness


@dataclass(eq=False)
class Gate:
    """Lets through pairs of claims that may entail each other.

    The score of a pair is the larger share of weighted stems that one has of the other
    (:func:`components.overlap.stem_shares`), or the cosine of an encoder's vectors.

    Args:
        skip_below: pairs of a smaller score are not asked, and exclude each other never.
        from_claims: documents of fewer distinct claims are compared in full.
        encoder: scores are cosines of its vectors; without it, shares of stems.
    """

    skip_below: ClosedUnitInterval = 0.3
    from_claims: int = 50
    encoder: SentenceEncoder | None = None

    def pairs(self, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Places i < j of the texts to compare, in order."""
        if len(texts) < self.from_claims:
            yield from combinations(range(len(texts)), 2)
            return
        scores = relatedness(texts, self.encoder)
        # Sums of a few weights may miss their bound by the last bits.
        near = np.triu(np.maximum(scores, scores.T) >= self.skip_below - 1e-9, 1)
        yield from zip(*(places.tolist() for places in np.nonzero(near)), strict=True)
