"""People of Wikipedia's leads, and their true statements with false versions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from data_builders.written.attacks.phrases import Bank
from data_builders.written.leads.false_values import (
    OTHER_VALUES,
    Article,
    FalseValues,
    read_articles,
)
from data_builders.written.leads.wrong_relations import wrong_relations
from records import Passage

K = 5  # facts of a complete answer
_NUMBERS = frozenset({"born", "died", "reign"})
Changed = Literal["number", "name", "relation"]


class FalseVersion(NamedTuple):
    """A statement with a value that is false, or with words of the page in a wrong relation.

    It is not supported by the lead, which is the evidence. Not all false versions are false in the
    world: a lead does not state all facts.

    Attributes:
        changed: ``number`` for another year; ``name`` for another value of other kinds;
            ``relation`` if names and numbers are those of the page.
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
        text: the statement, with the topic's full name.
        reworded: the same in other words.
        false: false versions of the text and its rewordings.
    """

    fact: str
    text: str
    reworded: tuple[str, ...]
    false: tuple[FalseVersion, ...]

    @property
    def wordings(self) -> tuple[str, ...]:
        return (self.text, *self.reworded)

    def versions(self, text: str) -> dict[str, list]:
        """Fields of a claim in the words of ``text``: what attacks may write instead."""
        reworded = [wording for wording in self.wordings if wording != text]
        return {"reworded": reworded, "false": [version._asdict() for version in self.false]}


@dataclass(frozen=True)
class StatementTopic:
    """A topic and all its statements, at least ``K``.

    Attributes:
        name: unique; a parenthesis at its end is not in the texts.
        page: the evidence.
    """

    name: str
    statements: tuple[Statement, ...]
    page: Passage
    group: str


def lead_topics(folder: str, split: Literal["dev", "test"], seed: int) -> list[StatementTopic]:
    """The people whose lead entails at least ``K`` statements with false versions.

    Args:
        folder: output of ``leads``.
    """
    people = [article for article in read_articles(folder, split) if article.group == "People"]
    values = FalseValues(people)
    topics = []
    for article in people:
        title = article.passage.title
        rng = random.Random(f"{seed}:statements:{title}")
        statements = tuple(_statements(rng, values, article))
        if len(statements) >= K:
            topics.append(StatementTopic(title, statements, article.passage, article.group))
    return topics


def _statements(rng: random.Random, values: FalseValues, article: Article) -> Iterator[Statement]:
    """Yield each fact once: of "poet" and "lyric poet" only the first."""
    facts: set[tuple[str, str]] = set()
    for statement in article.statements:
        fact = (statement.rule, statement.value.rpartition(" ")[2])
        pairs = list(values.versions(rng, article, statement)) if statement.value else []
        if not pairs or fact in facts:
            continue
        facts.add(fact)
        changed = "number" if statement.rule in _NUMBERS else "name"
        false = [FalseVersion(text, changed, true) for text, true in pairs[:OTHER_VALUES]]
        false += [
            FalseVersion(relation.text, "relation", relation.instead_of, relation.bank)
            for relation in wrong_relations(rng, article, statement)
        ]
        yield Statement(
            f"{article.passage.title}: {statement.rule} {statement.value}",
            statement.text,
            statement.reworded,
            tuple(false),
        )
