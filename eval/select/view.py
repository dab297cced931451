"""A document's claims as Core's program sees them, and what its answer means for each claim.

The program knows distinct texts; several claims may have the same one (``core.py`` says which text
is asked for, and when it is coherent). Of those the first that is as coherent as any of them stands
for all, and the others are its duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from components.encoding import Pair
from eval.select.weights import normalise
from eval.stages import Selection
from records import Claim, Document


@dataclass
class View:
    """A document's claims as the program sees them: m distinct texts for k claims.

    Attributes:
        sources: premise of document entailment of each claim, (k,).
        node: which distinct text each claim has, (k,).
        texts: normalised and sorted, (m,).
        spellings: what the models are asked for, (m,).
        bleached: bleached claims about the topic.
        relevant: Rel of each claim, (k,); false where it could not be judged.
        unjudged: whether Rel of each claim could not be judged, (k,).
        support: probability that its source entails each claim, (k,).
        coherent: whether its source entails each claim, (k,).
        weights: wᵢ of each text, (m,); 0 where no copy is relevant.
        exclusion: which texts exclude each other, either entailing the other: bool (m, m),
            symmetric and sparse; only asked for texts in the race.
    """

    document: Document
    claims: Sequence[Claim]
    sources: list[str]
    node: np.ndarray
    texts: list[str]
    spellings: list[str]
    bleached: list[str]
    relevant: np.ndarray
    unjudged: np.ndarray
    support: np.ndarray
    coherent: np.ndarray
    weights: np.ndarray
    exclusion: scipy.sparse.csr_array

    @classmethod
    def of(cls, document: Document, claims: Sequence[Claim], bleached: list[str]) -> View:
        """A document's claims before anything is judged: all relevant, none coherent, no weight."""
        normal = [normalise(claim.text) for claim in claims]
        spelling: dict[str, str] = {}
        for text, claim in zip(normal, claims, strict=True):
            spelling[text] = min(spelling.get(text, claim.text), claim.text)
        texts = sorted(spelling)
        place = {text: index for index, text in enumerate(texts)}
        return cls(
            document=document,
            claims=claims,
            sources=[claim.source or document.text for claim in claims],
            node=np.array([place[text] for text in normal], dtype=np.int64),
            texts=texts,
            spellings=[spelling[text] for text in texts],
            bleached=bleached,
            relevant=np.ones(len(claims), bool),
            unjudged=np.zeros(len(claims), bool),
            support=np.zeros(len(claims)),
            coherent=np.zeros(len(claims), bool),
            weights=np.zeros(len(texts)),
            exclusion=scipy.sparse.csr_array((len(texts), len(texts)), dtype=bool),
        )

    def any_copy(self, of_claims: np.ndarray) -> np.ndarray:
        """For each text, whether a relevant claim with that text has the property, (m,)."""
        held = np.zeros(len(self.texts), bool)
        np.logical_or.at(held, self.node, of_claims & self.relevant)
        return held

    def bleached_pairs(self, node: int) -> list[Pair]:
        """(bleached claim, text) for all bleached claims."""
        return [(bleached, self.spellings[node]) for bleached in self.bleached]

    def selections(self, selected: np.ndarray) -> list[Selection]:
        """Why each claim stays or goes, one a claim.

        Args:
            selected: the texts that the program selects, bool (m,).
        """
        coherent = self.any_copy(self.coherent)
        standing: dict[int, int] = {}
        for index, node in enumerate(self.node):
            fit = self.relevant[index] and self.coherent[index] == coherent[node]
            if selected[node] and fit:
                standing.setdefault(int(node), index)
        return [self._selection(index, selected, standing) for index in range(len(self.claims))]

    def _selection(self, index: int, selected: np.ndarray, standing: dict[int, int]) -> Selection:
        node, relevant = int(self.node[index]), bool(self.relevant[index])
        chosen = standing.get(node) == index
        # Heaviest first; the texts are in order already.
        start, end = self.exclusion.indptr[node : node + 2]
        others = np.sort(self.exclusion.indices[start:end])
        excluding = sorted(others[selected[others]], key=lambda other: -self.weights[other])
        by = standing.get(node) if selected[node] else None
        if by is None and excluding:
            by = standing[int(excluding[0])]
        weight = float(self.weights[node]) if relevant else 0.0
        reason = "incoherent"
        if chosen:
            reason = "selected"
        elif not relevant:
            reason = "failed" if self.unjudged[index] else "irrelevant"
        elif not selected[node] and weight <= 0:
            reason = "uninformative"
        elif by is not None:
            reason = "duplicate"
        return Selection(
            claim=self.claims[index].id,
            selected=chosen,
            weight=weight,
            document_entailment=float(self.support[index]),
            reason=reason,
            duplicate_of=self.claims[by].id if reason == "duplicate" else None,
        )
