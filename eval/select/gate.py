"""Skip pairs of dissimilar claims in Core's exclusion.

Core compares all N² pairs of a document's claims (2407.03572, Eq. 1), though few entail each other.
The gate skips pairs by a cheap similarity; ``docs/results/components.md`` has its measured effect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jsonargparse.typing import ClosedUnitInterval

from eval.models.sentence_encoder import SentenceEncoder, relatedness


@dataclass(eq=False)
class Gate:
    """Keep the pairs of claims that may entail each other.

    The score of a pair is the larger share of a claim's weighted stems in the other claim
    (:func:`components.overlap.stem_shares`), or the cosine of an encoder's vectors.

    Args:
        skip_below: pairs with a smaller score are not compared and never exclude each other.
        from_claims: documents with fewer distinct claims are compared completely.
        encoder: sentence encoder for cosine scores; null: shares of stems.
    """

    skip_below: ClosedUnitInterval = 0.3
    from_claims: int = 50
    encoder: SentenceEncoder | None = None

    def pairs(self, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield indices i < j of the texts to compare, in order."""
        if len(texts) < self.from_claims:
            yield from combinations(range(len(texts)), 2)
            return
        scores = relatedness(texts, self.encoder)
        # 1e-9: sums of weights are rounded
        near = np.triu(np.maximum(scores, scores.T) >= self.skip_below - 1e-9, 1)
        yield from zip(*(indices.tolist() for indices in np.nonzero(near)), strict=True)
