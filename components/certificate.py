"""Certificates: the shares of true and false statements that a judge must and may accept.

``data_builders probes`` writes statements with known truth, by family of statements.
"""

SEEN = "seen"  # the bank of phrases that training may use
# Share of the statements of a family that must be accepted, or may be.
LEAST = {"true single": 0.7, "true compound": 0.5, "true reworded": 0.5}
MOST_FALSE = 0.2


def limit_of(family: str) -> str:
    """The limit of a family in words; empty if it has none."""
    if family.startswith("false"):
        return f"at most {MOST_FALSE}"
    return f"at least {LEAST[family]}" if family in LEAST else ""


def is_within_limit(family: str, share: float | None) -> bool:
    """Whether the accepted share of a family is as it should be; ``None`` is of no statement."""
    if family.startswith("false"):
        return share is not None and share <= MOST_FALSE
    return family not in LEAST or (share is not None and share >= LEAST[family])
