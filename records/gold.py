"""Gold scores of a text: how good it is by what its author put into it, not by any metric."""

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, model_validator

Share = Annotated[float, Field(ge=0, le=1)]
GoldSource = Literal["construction", "labels", "machine", "estimated", "given"]


class Gold(BaseModel):
    """Precision, recall and F1 of a text by the facts that its claims credit.

    A claim credits the facts that make it informative and true of the topic. A repeated,
    uninformative or false claim credits none.

    Attributes:
        precision: size of the largest matching of claims to distinct facts that they credit, by
            the number of claims. It does not depend on the order of the claims.
        recall: credited facts by ``k``, at most 1.
        f1: harmonic mean of both.
        k: number of facts of a complete answer about the topic.
        source: ``construction`` (a rule wrote the text), ``labels`` (people), ``machine`` (released
            automatic labels), ``estimated`` (a relation model against known facts), or ``given``
            (a number in the file, which is F1).
    """

    model_config = ConfigDict(frozen=True)

    precision: Share
    recall: Share
    f1: Share
    k: NonNegativeInt
    source: GoldSource

    @model_validator(mode="before")
    @classmethod
    def _of_number(cls, value: object) -> object:
        """A number is F1; precision and recall are set to it, and K is not known."""
        if not isinstance(value, int | float):
            return value
        return dict.fromkeys(("precision", "recall", "f1"), value) | {"k": 0, "source": "given"}


def gold_scores(credited: Iterable[Collection[str]], k: int, source: GoldSource) -> Gold:
    """The gold scores of a text.

    Args:
        credited: ids of the facts that each claim credits.
        k: number of facts of a complete answer; 0 if nothing is known of the topic.
        source: where the labels come from.
    """
    claims = [set(ids) for ids in credited]
    facts = set().union(*claims)
    precision = _matched(claims) / len(claims) if claims else 0.0
    recall = min(len(facts), k) / k if k else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Gold(precision=precision, recall=recall, f1=f1, k=k, source=source)


def _matched(claims: Sequence[set[str]]) -> int:
    """Size of the largest matching of claims to facts, by augmenting paths."""
    claim_of: dict[str, int] = {}

    def is_matched(claim: int, seen: set[str]) -> bool:
        for fact in sorted(claims[claim] - seen):
            seen.add(fact)
            if fact not in claim_of or is_matched(claim_of[fact], seen):
                claim_of[fact] = claim
                return True
        return False

    return sum(is_matched(claim, set()) for claim in range(len(claims)))
