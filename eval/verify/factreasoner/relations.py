"""Which pairs of texts FactReasoner asks a relation model about, and what their answers mean."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from components.checkpoint import RELATIONS
from components.encoding import Pair
from eval.retrieve.dense import SentenceEncoder, relatedness
from eval.stages import EntailmentModel, call_relation, model_probabilities
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
        version: 1, 2 or 3 (FR1, FR2, FR3).
        claims: the atoms.
        contexts: the contexts.
        to_claims: (context, claim), places in the two lists; asked from context to claim only.
        between: unordered pairs of contexts, the smaller place first; asked in both directions.
        skipped: pairs that a cheap score called unrelated.
    """

    document: int
    version: int
    claims: Sequence[Claim]
    contexts: Sequence[Context]
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
    skip_below: float | None = None,
    encoder: SentenceEncoder | None = None,
) -> Plan:
    """The pairs of one graph (section 3.1).

    FR1 asks about a claim's own contexts, FR2 about each context and each claim, FR3 about each two
    contexts as well. Pairs that retrieval brought together are never skipped: a claim with its own
    context, two contexts of one claim.

    Args:
        document: place of the document in the batch.
        version: 1, 2 or 3.
        claims: the atoms.
        contexts: each with the ids of the claims that it was retrieved for.
        skip_below: pairs of a smaller score (:func:`eval.retrieve.dense.relatedness`) are not
            asked: how much of the claim the context has, or of two contexts one of the other, the
            larger; ``None`` asks all.
        encoder: scores are cosines of its vectors; without it, shares of stems.
    """
    texts = [context for context, _ in contexts]
    owners = [own for _, own in contexts]
    to_claims = [(c, a) for a in range(len(claims)) for c in range(len(contexts))]
    if version == 1:
        to_claims = [(c, a) for c, a in to_claims if claims[a].id in owners[c]]
    between = list(combinations(range(len(contexts)), 2)) if version == 3 else []
    every = len(to_claims) + len(between)
    if version > 1 and skip_below is not None:
        scores = relatedness([one.text for one in (*claims, *texts)], encoder)
        behind = scores[len(claims) :]  # rows of the contexts
        of_contexts = behind[:, len(claims) :]
        to_claims = [
            (c, a) for c, a in to_claims if claims[a].id in owners[c] or behind[c, a] >= skip_below
        ]
        between = [
            (c, d)
            for c, d in between
            if owners[c] & owners[d] or max(of_contexts[c, d], of_contexts[d, c]) >= skip_below
        ]
    skipped = every - len(to_claims) - len(between)
    return Plan(document, version, claims, texts, to_claims, between, skipped)


def ask(entailment: EntailmentModel, plans: Iterable[Plan]) -> dict[Pair, Answer | None]:
    """The answers to all pairs of a batch, each asked once, in one call.

    Returns:
        By pair; ``None`` where the model's answer failed (a row of NaN).
    """
    pairs = list(dict.fromkeys(pair for plan in plans for pair in plan.pairs()))
    rows = model_probabilities(entailment.relations, pairs, 3) if pairs else []
    return {pair: _read(row) for pair, row in zip(pairs, rows, strict=True)}


def _read(row: np.ndarray) -> Answer | None:
    """The likeliest; a relation that is no likelier than not counts as neutral.

    In Table 1 an entailment of p < 1/2 makes its atom *less* likely. A generated label, as in the
    paper, seldom has so little; of three calibrated classes the likeliest may.
    """
    if np.isnan(row).any():
        return None
    best = int(call_relation(row))
    p = float(row[best])
    return Answer("neutral" if p <= _LEAST else RELATIONS[best], p)


Directed = tuple[Answer, Literal["there", "back"]]


def both_directions(there: Answer | None, back: Answer | None) -> list[Directed]:
    """One relation of two texts from the answers to both directions, and which one it is.

    Equivalence when both entail; else the one that is not neutral; of two that are not, the more
    probable, the first on a tie. As the released code does; a direction that failed has no say.
    """
    known = each_direction(there, back)
    if len(known) < 2:
        return known
    (one, _), (other, _) = known
    first = one.p >= other.p
    if one.relation == "equivalence":
        return [(known[not first][0], "there")]
    if "neutral" in (one.relation, other.relation):
        first = other.relation == "neutral"
    return [known[not first]]


def each_direction(there: Answer | None, back: Answer | None) -> list[Directed]:
    """Each direction's own relation; two entailments are two equivalences (footnote 2)."""
    known: list[Directed] = []
    if there is not None:
        known.append((there, "there"))
    if back is not None:
        known.append((back, "back"))
    if [answer.relation for answer, _ in known] == ["entailment"] * 2:
        known = [(answer._replace(relation="equivalence"), way) for answer, way in known]
    return known
