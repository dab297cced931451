"""Gold scores of texts with labelled claims; who wrote the text credits facts, no metric does."""

from collections import defaultdict
from collections.abc import Sequence

from components.english import stems
from records import Claim, Document, gold_scores
from records.gold import GoldSource

# Facts of a complete answer, if that many are known of the topic.
GOLD_K = 10


def fact_key(text: str) -> str:
    """The stems of a statement, by which equal facts are recognised."""
    return " ".join(stems(text))


def credited_texts(claims: Sequence[Claim]) -> list[set[str]]:
    """The facts that labelled claims credit: nothing if a claim is not supported.

    A supported claim credits its ``rests_on``; without this field, a fact of its own.
    """
    return [credited_ids(claim) if claim.label == "S" else set() for claim in claims]


def credited_ids(claim: Claim) -> set[str]:
    """The facts that a true claim credits."""
    rests_on = (claim.model_extra or {}).get("rests_on")
    return {fact_key(claim.text)} if rests_on is None else set(rests_on)


def add_label_gold(
    documents: Sequence[Document], source: GoldSource, k: int = GOLD_K
) -> list[Document]:
    """Honest documents with gold scores by the labels of their claims.

    A complete answer has ``k`` facts, or as many as the best text of the topic, if that is fewer.
    Documents that have gold scores, or no labels, are returned as they are.
    """
    credited = {
        document.id: credited_texts(document.claims)
        for document in documents
        if document.gold is None and any(claim.label for claim in document.claims or [])
    }
    most: dict[str, int] = defaultdict(int)
    for document in documents:
        facts = set().union(*credited.get(document.id, []))
        most[document.topic] = max(most[document.topic], len(facts))
    return [
        document.model_copy(
            update={
                "gold": gold_scores(credited[document.id], min(k, most[document.topic]), source)
            }
        )
        if document.id in credited
        else document
        for document in documents
    ]
