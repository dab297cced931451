"""The text pairs that FactReasoner's relation model judges, and the meaning of its answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from components.checkpoint import RELATIONS
from components.encoding import Pair
from eval.models.sentence_encoder import SentenceEncoder, relatedness
from eval.stages import EntailmentModel, call_relation, model_probabilities
from records import Claim

RelationName = Literal["entailment", "neutral", "contradiction", "equivalence"]

# At p <= 1/2 the factors of Table 1 mean the opposite of the relation, or nothing.
_MIN_PROBABILITY = 0.5


class Answer(NamedTuple):
    """The likeliest relation of a pair and its probability."""

    relation: RelationName
    p: float


class Context(NamedTuple):
    """A context of a graph: the passage's id, the premise, and the prior."""

    id: str
    text: str
    prior: float


@dataclass(frozen=True)
class Plan:
    """The variables of one graph and the pairs to judge.

    Attributes:
        document: index of the document in the batch.
        version: 1, 2 or 3 (FR1, FR2, FR3).
        claims: the atoms.
        contexts: the contexts.
        to_claims: (context, claim) indices, judged from context to claim only.
        between: pairs of context indices, smaller first, judged in both directions.
        skipped: number of pairs skipped by ``skip_below``.
    """

    document: int
    version: int
    claims: Sequence[Claim]
    contexts: Sequence[Context]
    to_claims: list[tuple[int, int]]
    between: list[tuple[int, int]]
    skipped: int = 0

    def claim_pair(self, context: int, claim: int) -> Pair:
        return self.contexts[context].text, self.claims[claim].text

    def context_pair(self, premise: int, hypothesis: int) -> Pair:
        return self.contexts[premise].text, self.contexts[hypothesis].text

    def pairs(self) -> Iterable[Pair]:
        """Yield all (premise, hypothesis) pairs of the plan."""
        for pair in self.to_claims:
            yield self.claim_pair(*pair)
        for first, second in self.between:
            yield self.context_pair(first, second)
            yield self.context_pair(second, first)


def plan_pairs(
    document: int,
    version: int,
    claims: Sequence[Claim],
    contexts: Sequence[tuple[Context, set[str]]],
    skip_below: float | None = None,
    encoder: SentenceEncoder | None = None,
) -> Plan:
    """Plan the pairs of one graph (section 3.1).

    FR1 judges each claim with its retrieved contexts, FR2 each claim with each context, FR3 also
    each pair of contexts. A claim with its retrieved context, and two contexts of the same claim,
    are never skipped.

    Args:
        document: index of the document in the batch.
        version: 1, 2 or 3.
        claims: the atoms.
        contexts: contexts with the ids of the claims that they were retrieved for.
        skip_below: skip pairs with a lower :func:`eval.retrieve.dense.relatedness`; for two
            contexts the larger of both directions. ``None`` skips none.
        encoder: relatedness is the cosine of its vectors; by default the share of stems.
    """
    texts = [context for context, _ in contexts]
    owners = [claim_ids for _, claim_ids in contexts]
    to_claims = [(c, a) for a in range(len(claims)) for c in range(len(contexts))]
    if version == 1:
        to_claims = [(c, a) for c, a in to_claims if claims[a].id in owners[c]]
    between = list(combinations(range(len(contexts)), 2)) if version == 3 else []
    total = len(to_claims) + len(between)
    if version > 1 and skip_below is not None:
        scores = relatedness([text.text for text in (*claims, *texts)], encoder)
        scored = scores[len(claims) :]  # relatedness of contexts (rows) to all texts
        of_contexts = scored[:, len(claims) :]
        to_claims = [
            (c, a) for c, a in to_claims if claims[a].id in owners[c] or scored[c, a] >= skip_below
        ]
        between = [
            (c, d)
            for c, d in between
            if owners[c] & owners[d] or max(of_contexts[c, d], of_contexts[d, c]) >= skip_below
        ]
    skipped = total - len(to_claims) - len(between)
    return Plan(document, version, claims, texts, to_claims, between, skipped)


def query_relations(
    entailment: EntailmentModel, plans: Iterable[Plan], keep_unlikely: bool = False
) -> dict[Pair, Answer | None]:
    """Judge the distinct pairs of a batch in one call; failed answers are ``None``.

    ``keep_unlikely`` keeps a likeliest relation with p <= 1/2, which else counts as neutral.
    """
    pairs = list(dict.fromkeys(pair for plan in plans for pair in plan.pairs()))
    rows = model_probabilities(entailment.relations, pairs, 3) if pairs else []
    least = 0.0 if keep_unlikely else _MIN_PROBABILITY
    return {pair: _parse_row(row, least) for pair, row in zip(pairs, rows, strict=True)}


def _parse_row(row: np.ndarray, least: float) -> Answer | None:
    # Relations with p <= 1/2 count as neutral. They are rare for the paper's generated labels, but
    # not for calibrated classes.
    if np.isnan(row).any():
        return None
    best = int(call_relation(row))
    p = float(row[best])
    return Answer("neutral" if p <= least else RELATIONS[best], p)


Directed = tuple[Answer, Literal["forward", "backward"]]


def merge_directions(forward: Answer | None, backward: Answer | None) -> list[Directed]:
    """Merge the answers to both directions into one relation, as in the released code.

    Equivalence if both entail; else the relation that is not neutral; if neither is neutral, the
    more probable one, the forward one on a tie. Failed directions are ignored.
    """
    answers = keep_directions(forward, backward)
    if len(answers) < 2:
        return answers
    (first, _), (second, _) = answers
    keep_first = first.p >= second.p
    if first.relation == "equivalence":
        return [(answers[not keep_first][0], "forward")]
    if "neutral" in (first.relation, second.relation):
        keep_first = second.relation == "neutral"
    return [answers[not keep_first]]


def keep_directions(forward: Answer | None, backward: Answer | None) -> list[Directed]:
    """Keep the relation of each direction; two entailments become equivalences (footnote 2)."""
    answers: list[Directed] = []
    if forward is not None:
        answers.append((forward, "forward"))
    if backward is not None:
        answers.append((backward, "backward"))
    if [answer.relation for answer, _ in answers] == ["entailment"] * 2:
        answers = [(answer._replace(relation="equivalence"), way) for answer, way in answers]
    return answers
