"""The distinct texts of a document's claims, and each claim's selection from their solution.

The program selects distinct texts, which several claims may share. The first claim that is as
coherent as any claim with the text is selected for it; the others are its duplicates.
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
    """The input of Core's program for one document: m distinct texts of k claims.

    Attributes:
        sources: premise of document entailment of each claim, (k,).
        node: index of each claim's distinct text, (k,).
        texts: distinct normalised texts, sorted, (m,).
        spellings: the unnormalised texts that the models judge, (m,).
        bleached: bleached claims for the topic.
        relevant: Rel of each claim, (k,); false for unjudged claims.
        unjudged: whether a judgement on each claim failed, (k,).
        support: probability that its source entails each claim, (k,).
        coherent: whether its source entails each claim, (k,).
        weights: wᵢ of each text, (m,); 0 if no claim with the text is relevant.
        exclusion: pairs of candidate texts of which one entails the other, bool (m, m), symmetric
            and sparse.
        strength: number of texts that each candidate entails, minus those that entail it, (m,).
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
    strength: np.ndarray

    @classmethod
    def of(cls, document: Document, claims: Sequence[Claim], bleached: list[str]) -> View:
        """The view before any judgement: all claims relevant, none coherent, weights 0."""
        normal = [normalise(claim.text) for claim in claims]
        spelling: dict[str, str] = {}
        for text, claim in zip(normal, claims, strict=True):
            spelling[text] = min(spelling.get(text, claim.text), claim.text)
        texts = sorted(spelling)
        index_of = {text: index for index, text in enumerate(texts)}
        return cls(
            document=document,
            claims=claims,
            sources=[claim.source or document.text for claim in claims],
            node=np.array([index_of[text] for text in normal], dtype=np.int64),
            texts=texts,
            spellings=[spelling[text] for text in texts],
            bleached=bleached,
            relevant=np.ones(len(claims), bool),
            unjudged=np.zeros(len(claims), bool),
            support=np.zeros(len(claims)),
            coherent=np.zeros(len(claims), bool),
            weights=np.zeros(len(texts)),
            exclusion=scipy.sparse.csr_array((len(texts), len(texts)), dtype=bool),
            strength=np.zeros(len(texts), np.int64),
        )

    def fail(self, failed_claims: np.ndarray) -> None:
        """Exclude claims, (k,), on which a judgement failed."""
        self.unjudged = self.unjudged | (self.relevant & failed_claims)
        self.relevant = self.relevant & ~failed_claims

    def any_copy(self, claim_property: np.ndarray) -> np.ndarray:
        """Whether a relevant claim with the text has the property, for each text, (m,)."""
        has_property = np.zeros(len(self.texts), bool)
        np.logical_or.at(has_property, self.node, claim_property & self.relevant)
        return has_property

    def bleached_pairs(self, node: int) -> list[Pair]:
        return [(bleached, self.spellings[node]) for bleached in self.bleached]

    def selections(self, selected: np.ndarray) -> list[Selection]:
        """Return one selection per claim, given the selected texts, bool (m,)."""
        coherent = self.any_copy(self.coherent)
        chosen_of: dict[int, int] = {}
        for index, node in enumerate(self.node):
            fits = self.relevant[index] and self.coherent[index] == coherent[node]
            if selected[node] and fits:
                chosen_of.setdefault(int(node), index)
        return [self._selection(index, selected, chosen_of) for index in range(len(self.claims))]

    def _selection(self, index: int, selected: np.ndarray, chosen_of: dict[int, int]) -> Selection:
        node, relevant = int(self.node[index]), bool(self.relevant[index])
        chosen = chosen_of.get(node) == index
        # heaviest first, then in the order of texts
        start, end = self.exclusion.indptr[node : node + 2]
        excluded = np.sort(self.exclusion.indices[start:end])
        excluding = sorted(excluded[selected[excluded]], key=lambda i: -self.weights[i])
        excluder = chosen_of.get(node) if selected[node] else None
        if excluder is None and excluding:
            excluder = chosen_of[int(excluding[0])]
        weight = float(self.weights[node]) if relevant else 0.0
        support = float(self.support[index])
        reason = "incoherent"
        if chosen:
            reason = "selected"
        elif not relevant:
            reason = "failed" if self.unjudged[index] else "irrelevant"
        elif not selected[node] and weight <= 0:
            reason = "uninformative"
        elif excluder is not None:
            reason = "duplicate"
        return Selection(
            claim=self.claims[index].id,
            selected=chosen,
            weight=weight,
            document_entailment=None if np.isnan(support) else support,
            reason=reason,
            duplicate_of=self.claims[excluder].id if reason == "duplicate" else None,
        )
