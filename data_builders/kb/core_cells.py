"""Core's cells of frequency and continent (2407.03572, section 4.2): which one a topic falls in.

The one definition, for the people of ``facts.py`` and the topics of ``bios``. The groups are
Table 1's, as the authors' released code has them: by the English label of the continent on
Wikidata, where a country's continent may be Oceania, Insular Oceania, the Australian continent, or
all of them. What no group lists, and a topic without any continent (NULL), is in the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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
    """The group that lists a continent, or whatever else groups topics, by its English label."""
    return next((group for group, labels in groups.items() if label in labels), rest)


def most_voted(votes: Iterable[str], rest: str = REST) -> str:
    """The group with most votes, of equal ones the first; without any vote, the rest.

    A vote is a country's continent, so that two countries of one continent weigh two. The paper
    does not say what happens to people of two continents.
    """
    counts = Counter(votes)
    return min(counts, key=lambda group: (-counts[group], group), default=rest)


def bin_of(frequency: int, edges: Sequence[int] = tuple(BINS.values())) -> int:
    """Index of the bin that a frequency is in: of the highest least frequency it reaches."""
    return sum(frequency >= edge for edge in edges) - 1
