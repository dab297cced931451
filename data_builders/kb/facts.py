"""Groups and frequency bins of topics (2407.03572, Table 1)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# Groups of Core's Table 1 (2407.03572), as in the authors' released code, by the English label of
# the continent on Wikidata. A country may belong to Oceania, Insular Oceania, the Australian
# continent, or all of them. Unlisted continents, and topics without one (NULL), are in REST.
CONTINENTS = {
    "A": ("Asia", "Australian continent", "Indian subcontinent", "Insular Oceania", "Oceania"),
    "B": ("North America",),
    "C": ("Eurasia", "Europe"),
    "D": ("Africa", "Afro-Eurasia", "Americas", "Caribbean", "Central America", "South America"),
}
REST = "D"
# Least frequency of each bin.
BINS = {"very rare": 0, "rare": 100, "medium": 1000, "frequent": 5000}


def group_of(label: str, groups: Mapping[str, Sequence[str]] = CONTINENTS, rest: str = REST) -> str:
    """Return the group that lists an English label, e.g. of a continent."""
    return next((group for group, labels in groups.items() if label in labels), rest)


def most_voted(votes: Iterable[str], rest: str = REST) -> str:
    """Return the group with most votes (ties: the first), or ``rest`` without votes.

    Two countries of one continent are two votes. The paper does not define ties.
    """
    counts = Counter(votes)
    return min(counts, key=lambda group: (-counts[group], group), default=rest)


def bin_of(frequency: int, edges: Sequence[int] = tuple(BINS.values())) -> int:
    """Return the index of the bin of a frequency."""
    return sum(frequency >= edge for edge in edges) - 1
