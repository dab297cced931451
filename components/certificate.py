"""Certificates: the shares of true and false statements that a judge must and may accept.

``data_builders probes`` writes statements with known truth, by family of statements.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from components.statistics import clopper_pearson

SEEN = "seen"  # the bank of phrases that training may use
# Share of the statements of a family that must be accepted, or may be.
LEAST = {"true single": 0.7, "true compound": 0.5, "true reworded": 0.5}
MOST_FALSE = 0.2
FAMILIES = (
    *LEAST,
    "false negation",
    "false subject",
    "false number",
    "false name",
    "false part",
    "false relation",
    "false frame",
    "false discourse",
    "false hidden",
    "bleached",
    "off topic",
)
LEAST_STATEMENTS = 60  # of each family
_LEVEL = 0.025  # of each end of a 95 % interval


@dataclass(frozen=True)
class Acceptance:
    """How many of a family's statements, in phrases of one bank, are accepted.

    Attributes:
        n: number of judged statements.
        failed: number of statements that could not be judged.
    """

    family: str
    bank: str
    n: int
    accepted: int
    failed: int = 0

    @property
    def share(self) -> float | None:
        """The accepted share of the judged statements."""
        return self.accepted / self.n if self.n else None

    @property
    def bounds(self) -> tuple[float, float]:
        """95 % bounds of the share; a failure counts as accepted for the upper bound only."""
        total = self.n + self.failed
        low, _ = clopper_pearson(self.accepted, total, _LEVEL)
        _, high = clopper_pearson(self.accepted + self.failed, total, _LEVEL)
        return low, high

    @property
    def is_within_limit(self) -> bool:
        """Whether there are enough statements, and the bounds are within the family's limit."""
        low, high = self.bounds
        is_false = self.family.startswith("false")
        is_within = high <= MOST_FALSE if is_false else low >= LEAST.get(self.family, 0)
        return is_within and self.n + self.failed >= LEAST_STATEMENTS


def limit_of(family: str) -> str:
    """The limit of a family in words; empty if it has none."""
    if family.startswith("false"):
        return f"at most {MOST_FALSE}"
    return f"at least {LEAST[family]}" if family in LEAST else ""


def failing_families(certificate: Sequence[Acceptance]) -> list[str]:
    """The families that are absent or outside their limit, on phrases that training may not use."""
    unseen = [row for row in certificate if row.bank != SEEN]
    absent = set(FAMILIES) - {row.family for row in unseen}
    outside = absent | {row.family for row in unseen if not row.is_within_limit}
    return sorted(outside)
