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
    """The facts that labelled claims credit: the stems of a supported claim, else nothing."""
    return [{fact_key(c.text)} if c.label == "S" else set() for c in claims]


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
