"""A world of statements: topics, their true statements, and false versions of these."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from data_builders.written.attacks.phrases import Bank
from records import Passage

Changed = Literal["number", "name", "relation"]


class FalseVersion(NamedTuple):
    """A statement with a value that is false, or with words of the page in a wrong relation.

    Attributes:
        changed: ``number`` for another date, year or number; ``name`` for another value of other
            kinds; ``relation`` if names and numbers are those of the page.
        instead_of: the true statement; for ``number`` and ``name`` in the same words.
        bank: bank of the frame of a wrong relation.
    """

    text: str
    changed: Changed
    instead_of: str
    bank: Bank | None = None


@dataclass(frozen=True)
class Statement:
    """A true statement of one fact about its topic.

    Attributes:
        fact: id of the fact.
        text: the statement, with the topic's full name, in other words than the page.
        reworded: the same in other words.
        false: false versions of the text and its rewordings.
        quoted: the fact in the words of the page, if the page states it.
    """

    fact: str
    text: str
    reworded: tuple[str, ...]
    false: tuple[FalseVersion, ...]
    quoted: str | None = None

    @property
    def wordings(self) -> tuple[str, ...]:
        return (self.text, *self.reworded)


@dataclass(frozen=True)
class StatementTopic:
    """A topic and all its statements; at least ``k`` have false versions.

    Attributes:
        name: unique; a parenthesis at its end is not in the texts.
        fields: further fields of its records, for example ``group``, ``bin`` and ``cluster`` (what
            it shares with other topics, if that makes them dependent).
    """

    id: str
    name: str
    statements: tuple[Statement, ...]
    pages: tuple[Passage, ...]
    pronoun: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class StatementWorld(ABC):
    """Base class of worlds.

    Attributes:
        k: number of facts of a complete answer.
        files: files that it reads.
    """

    k: int
    files: list[str]

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """The class name and its options, which decide the statements."""

    @abstractmethod
    def topics(self, seed: int) -> list[StatementTopic]:
        """Return all topics with at least ``k`` statements that have false versions."""
