"""The interface of groupers, which group claims about the same person."""

from collections.abc import Sequence
from typing import Protocol

from records import Claim, Document


class Grouper(Protocol):
    """Groups claims by person (2402.05629, section 4.1).

    Labels are ``g0``, ``g1``, … in the order of first claims; ``None`` is a failure.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        """Return one label per claim, for all claims of each document (before selection)."""


def number_groups(groups: Sequence[object | None]) -> list[str | None]:
    """Convert group keys of one document's claims to labels, numbered by first appearance."""
    names: dict[object, str] = {}
    return [None if key is None else names.setdefault(key, f"g{len(names)}") for key in groups]
