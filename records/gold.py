"""Gold scores of a text: how good it is by what its author put into it, not by any metric."""

from collections.abc import Collection, Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

Share = Annotated[float, Field(ge=0, le=1)]
GoldSource = Literal["construction", "labels", "machine", "estimated"]


class Gold(BaseModel):
    """Precision, recall and F1 of a text by the facts that its claims credit.

    A claim credits the facts that make it informative and true of the topic. A repeated,
    uninformative or false claim credits none.

    Attributes:
        precision: share of the claims that credit a fact which no earlier claim credits.
        recall: credited facts by ``k``, at most 1.
        f1: harmonic mean of both.
        k: number of facts of a complete answer about the topic.
        source: ``construction`` (a rule wrote the text), ``labels`` (people), ``machine`` (released
            automatic labels), or ``estimated`` (a relation model against known facts).
    """

    model_config = ConfigDict(frozen=True)

    precision: Share
    recall: Share
    f1: Share
    k: NonNegativeInt
    source: GoldSource


def gold_scores(credited: Iterable[Collection[str]], k: int, source: GoldSource) -> Gold:
    """The gold scores of a text.

    Args:
        credited: ids of the facts that each claim credits, in the order of the text.
        k: number of facts of a complete answer; 0 if nothing is known of the topic.
        source: where the labels come from.
    """
    facts: set[str] = set()
    claims = novel = 0
    for ids in credited:
        claims += 1
        novel += not facts.issuperset(ids)
        facts.update(ids)
    precision = novel / claims if claims else 0.0
    recall = min(len(facts), k) / k if k else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Gold(precision=precision, recall=recall, f1=f1, k=k, source=source)
