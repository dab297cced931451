"""Which claims of a text are about the same person: the contract of a grouper."""

from collections.abc import Sequence
from typing import Protocol

from records import Claim, Document


class Grouper(Protocol):
    """Claims to groups, one person each (2402.05629, section 4.1).

    A group's label is ``g0``, ``g1``, …, numbered in the order in which the groups first appear
    among the document's claims. ``None`` stands for a claim that could not be grouped; the
    verifier calls it failed.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        """One label a claim, of all claims of each document (before selection)."""


def number_groups(groups: Sequence[object | None]) -> list[str | None]:
    """Any group keys of one document's claims as labels, numbered by first appearance."""
    names: dict[object, str] = {}
    return [None if key is None else names.setdefault(key, f"g{len(names)}") for key in groups]
