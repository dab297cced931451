"""Evidence for claims without evidence: of another claim about the same entity."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from components.overlap import covered_share, stem_weights
from records.formats.pairs import Pair

OPENING_WORDS = 2  # of claims that are taken to be about the same entity


def mine_evidence(claims: Iterable[Pair], pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Give each claim the premise of ``pairs`` that covers most of its words.

    Premises are of other claims that begin with the same two words.

    Args:
        claims: pairs without a premise, labelled neutral: no evidence is known that decides them.
        pairs: pairs with a premise.

    Yields:
        The claims, without a premise if no other claim begins with their words.
    """
    premises: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(dict)
    for pair in pairs:
        by_premise = premises[_opening(pair.hypothesis)]
        by_premise.setdefault(pair.premise, set()).add(pair.hypothesis)
    weight = stem_weights(pair.premise for pair in pairs)
    for claim in claims:
        candidates = [
            premise
            for premise, hypotheses in premises[_opening(claim.hypothesis)].items()
            if claim.hypothesis not in hypotheses
        ]
        best = max(
            sorted(candidates),
            key=lambda premise: covered_share(claim.hypothesis, [premise], weight),
            default="",
        )
        yield claim._replace(premise=best)


def lacks_evidence(pair: Pair) -> bool:
    """Whether people found no evidence that decides the claim, so that any may be shown."""
    return not pair.premise and pair.label == "neutral"


def _opening(claim: str) -> tuple[str, ...]:
    return tuple(claim.split()[:OPENING_WORDS])
