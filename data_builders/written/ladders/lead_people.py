"""The people among the articles of ``leads`` as a world."""

import random
from collections.abc import Iterator
from typing import Any, Literal

from data_builders.written.claims.clauses import pronoun_of
from data_builders.written.ladders.statement_world import (
    FalseVersion,
    Statement,
    StatementTopic,
    StatementWorld,
)
from data_builders.written.leads.false_values import (
    OTHER_VALUES,
    Article,
    FalseValues,
    article_files,
    read_articles,
)
from data_builders.written.leads.wrong_relations import wrong_relations

K = 5
_NUMBERS = frozenset({"born", "died", "reign"})


class LeadPeople(StatementWorld):
    """People whose leads entail at least five statements with false versions.

    A false version is not supported by the lead, which is the evidence. Not all false versions are
    false in the world: a lead does not state all facts.

    Args:
        folder: output of ``leads``.
        split: whose articles are read; texts for a training must not be about test people.
    """

    k = K

    def __init__(self, folder: str = "data/leads", split: Literal["dev", "test"] = "test"):
        self.folder, self.split = folder, split
        self.files = article_files(folder, split)

    @property
    def identity(self) -> dict[str, Any]:
        return {"world": type(self).__name__, "split": self.split}

    def topics(self, seed: int) -> list[StatementTopic]:
        people = [a for a in read_articles(self.folder, self.split) if a.group == "People"]
        values = FalseValues(people)
        topics = []
        for article in people:
            rng = random.Random(f"{seed}:statements:{article.passage.title}")
            statements = tuple(_statements(rng, values, article))
            if len(statements) >= K:
                topics.append(_topic(article, statements))
        return topics


def _topic(article: Article, statements: tuple[Statement, ...]) -> StatementTopic:
    return StatementTopic(
        id=article.passage.title,
        name=article.passage.title,
        statements=statements,
        pages=(article.passage,),
        pronoun=pronoun_of(article.passage.text),
        fields={"group": article.group},
    )


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
