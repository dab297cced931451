"""Which pairs of texts FactReasoner asks a relation model about, and what their answers mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from components.checkpoint import RELATIONS
from components.encoding import Pair
from components.overlap import stems
from eval.stages import EntailmentModel, called
from records import Claim

RelationName = Literal["entailment", "neutral", "contradiction", "equivalence"]

# At p <= 1/2 the tables of Table 1 say the opposite of the relation's name, or nothing.
_LEAST = 0.5


class Answer(NamedTuple):
    """What the relation model says of a pair: its likeliest relation and that one's probability."""

    relation: RelationName
    p: float


class Context(NamedTuple):
    """A context of a graph: a passage's id, its text as it is read, and its prior."""

    id: str
    text: str
    prior: float


@dataclass(frozen=True)
class Plan:
    """The variables of one graph and the pairs that are asked for its factors.

    Attributes:
        document: place of the document in the batch.
        version: 1, 2 or 3.
        claims: the atoms.
        contexts: the contexts.
        to_claims: (context, claim), places in the two lists; asked from context to claim only.
        between: unordered pairs of contexts, the smaller place first; asked in both directions.
        skipped: pairs that a cheap score called unrelated.
    """

    document: int
    version: int
    claims: list[Claim]
    contexts: list[Context]
    to_claims: list[tuple[int, int]]
    between: list[tuple[int, int]]
    skipped: int = 0

    def claim_pair(self, context: int, claim: int) -> Pair:
        """Premise and hypothesis of a context and a claim."""
        return self.contexts[context].text, self.claims[claim].text

    def context_pair(self, premise: int, hypothesis: int) -> Pair:
        """Premise and hypothesis of two contexts."""
        return self.contexts[premise].text, self.contexts[hypothesis].text

    def pairs(self) -> Iterable[Pair]:
        """All premises and hypotheses that the plan asks about."""
        for pair in self.to_claims:
            yield self.claim_pair(*pair)
        for one, other in self.between:
            yield self.context_pair(one, other)
            yield self.context_pair(other, one)


def plan(
    document: int,
    version: int,
    claims: Sequence[Claim],
    contexts: Sequence[tuple[Context, set[str]]],
    skip_below: float | None,
) -> Plan:
    """The pairs of one graph (section 3.1).

    FR1 asks about a claim's own contexts, FR2 about each context and each claim, FR3 about each two
    contexts as well.

    Args:
        document: place of the document in the batch.
        version: 1, 2 or 3.
        claims: the atoms.
        contexts: each with the ids of the claims that it was retrieved for.
        skip_below: pairs of less overlap are not asked, unless retrieval brought them together: a
            claim with its own context, two contexts of one claim. ``None`` asks all.
    """
    owners = [own for _, own in contexts]
    to_claims = [(c, a) for a in range(len(claims)) for c in range(len(contexts))]
    between: list[tuple[int, int]] = []
    if version == 1:
        to_claims = [(c, a) for c, a in to_claims if claims[a].id in owners[c]]
    if version == 3:
        between = [(c, d) for c in range(len(contexts)) for d in range(c + 1, len(contexts))]
    every = len(to_claims) + len(between)
    if skip_below is not None:
        overlap = _Overlap([claim.text for claim in claims], [c.text for c, _ in contexts])
        to_claims = [
            (c, a)
            for c, a in to_claims
            if claims[a].id in owners[c] or overlap.of_claim(c, a) >= skip_below
        ]
        between = [
            (c, d)
            for c, d in between
            if owners[c] & owners[d] or overlap.of_contexts(c, d) >= skip_below
        ]
    skipped = every - len(to_claims) - len(between)
    return Plan(
        document, version, list(claims), [c for c, _ in contexts], to_claims, between, skipped
    )


class _Overlap:
    """Share of a text's stems that another has, each weighted by how few texts have it.

    The weights are of one document's texts, in which its topic's name tells nothing.
    """

    def __init__(self, claims: Sequence[str], contexts: Sequence[str]):
        self._claims = [frozenset(stems(text)) for text in claims]
        self._contexts = [frozenset(stems(text)) for text in contexts]
        bags = self._claims + self._contexts
        spread = Counter(stem for bag in bags for stem in bag)
        self._rarity = {stem: math.log((len(bags) + 1) / spread[stem]) for stem in spread}

    def of_claim(self, context: int, claim: int) -> float:
        """Share of the claim that the context has."""
        return self._share(self._claims[claim], self._contexts[context])

    def of_contexts(self, one: int, other: int) -> float:
        """The larger share of one that the other has."""
        bags = self._contexts[one], self._contexts[other]
        return max(self._share(*bags), self._share(*bags[::-1]))

    def _share(self, hypothesis: frozenset[str], premise: frozenset[str]) -> float:
        whole = math.fsum(self._rarity[stem] for stem in hypothesis)
        return math.fsum(self._rarity[s] for s in hypothesis & premise) / whole if whole else 1.0


def ask(entailment: EntailmentModel, plans: Iterable[Plan]) -> dict[Pair, Answer | None]:
    """The answers to all pairs of a batch, each asked once, in one call.

    Returns:
        By pair; ``None`` where the model's answer failed (a row of NaN).
    """
    pairs = list(dict.fromkeys(pair for plan in plans for pair in plan.pairs()))
    rows = np.asarray(entailment.relations(pairs)) if pairs else []
    return {pair: _read(row) for pair, row in zip(pairs, rows, strict=True)}


def _read(row: np.ndarray) -> Answer | None:
    """The likeliest; a relation that is no likelier than not counts as neutral.

    In Table 1 an entailment of p < 1/2 makes its atom *less* likely. A generated label, as in the
    paper, seldom has so little; of three calibrated classes the likeliest may.
    """
    if np.isnan(row).any():
        return None
    best = int(called(row))
    p = float(row[best])
    return Answer("neutral" if p <= _LEAST else RELATIONS[best], p)


def both_directions(
    there: Answer | None, back: Answer | None
) -> tuple[Answer, Literal["there", "back"]] | None:
    """One relation of two contexts from the answers to both directions, and which one it is.

    Equivalence when both entail; else the one that is not neutral; of two that are not, the more
    probable, the first on a tie. As the released code does; a direction that failed has no say.
    """
    if there is None or back is None:
        answer = there or back
        return answer and (answer, "there" if there else "back")
    first = there.p >= back.p
    if there.relation == back.relation == "entailment":
        return Answer("equivalence", max(there.p, back.p)), "there"
    if "neutral" in (there.relation, back.relation):
        first = back.relation == "neutral"
    return (there, "there") if first else (back, "back")
