"""False versions of statements of leads: another value of the same slot, which no lead supports."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from components.english import with_article, without_qualifier
from data_builders.written.hard_pairs import NEAR_YEARS
from data_builders.written.leads.lead_statements import (
    LeadStatement,
    lead_words,
    occupation_fields,
)
from records import Passage, iter_rows, read_records

OTHER_VALUES = 4
SINGLE_VALUED = frozenset({"born", "died"})  # another value contradicts the lead
_YEAR = re.compile(r"\b\d{3,4}\b")


class Article(NamedTuple):
    """The passage of an article, its category, and its statements."""

    passage: Passage
    group: str
    statements: list[LeadStatement]

    @property
    def name(self) -> str:
        return without_qualifier(self.passage.title)


def article_files(folder: str, split: str) -> list[str]:
    return [str(Path(folder) / f"{kind}_{split}.jsonl") for kind in ("passages", "statements")]


def read_articles(folder: str, split: str) -> list[Article]:
    """Read the articles of a split of ``leads`` that have statements."""
    passages, statements = article_files(folder, split)
    articles: dict[str, Article] = {}
    by_title = {passage.title: passage for passage in read_records(passages, Passage)}
    for _, row in iter_rows(statements):
        passage = by_title[row["topic"]]
        article = articles.setdefault(passage.title, Article(passage, row["group"], []))
        fields = {name: row[name] for name in LeadStatement._fields}
        article.statements.append(LeadStatement(**fields | {"reworded": tuple(row["reworded"])}))
    return list(articles.values())


class FalseValues:
    """Draws other values of slots.

    Args:
        articles: their values are drawn for the slots ``alias``, ``award`` and ``office``.
    """

    def __init__(self, articles: Iterable[Article]):
        self._pool: dict[str, list[str]] = {}
        for article in articles:
            for statement in article.statements:
                if statement.value:
                    self._pool.setdefault(statement.rule, []).append(statement.value)

    def versions(
        self, rng: random.Random, article: Article, statement: LeadStatement
    ) -> Iterator[tuple[str, str]]:
        """Yield pairs of a false statement and the true one in the same words."""
        lead = article.passage.text.lower()
        values = list(self.other_values(statement, article))
        for value in rng.sample(values, len(values))[: 2 * OTHER_VALUES]:
            if value.lower() not in lead:
                true = rng.choice((statement.text, *statement.reworded))
                yield with_value(true, article.name, statement.value, value), true

    def other_values(self, statement: LeadStatement, article: Article) -> Sequence[str]:
        """Return other values of a statement's slot, which the lead may state elsewhere."""
        match statement.rule:
            case "born" | "died":
                return [str(int(statement.value) + years) for years in NEAR_YEARS]
            case "reign":
                return _near_reigns(statement.value)
            case "nationality":
                stated = {s.value for s in article.statements if s.rule == "nationality"}
                return other_nationalities(stated)
            case "occupation":
                return other_occupations(article.passage.text)
        return sorted(set(self._pool.get(statement.rule, ())) - {statement.value})


def with_value(text: str, name: str, value: str, other: str) -> str:
    """Replace the value of a statement about ``name``, and fit its article."""
    pattern = re.compile(rf"\b(an? )?{re.escape(value)}(?!\w)")
    replaced = pattern.sub(lambda m: with_article(other) if m[1] else other, text[len(name) :])
    return text[: len(name)] + replaced


def clause_of_another(
    rng: random.Random, articles: Sequence[Article], article: Article
) -> str | None:
    """Draw a clause of another article of the category, with this article's name."""
    other = rng.choice(articles)
    clauses = clauses_of(other)
    if other.group != article.group or other.name == article.name or not clauses:
        return None
    return article.name + rng.choice(clauses)[len(other.name) :]


def clauses_of(article: Article) -> list[str]:
    """Return the statements that repeat a clause of the lead."""
    clauses = [s.text for s in article.statements if s.rule.endswith("clause")]
    return [text for text in clauses if text.startswith(article.name)]


def _near_reigns(value: str) -> list[str]:
    years = [int(year[0]) for year in _YEAR.finditer(value)]
    return [value.replace(str(year), str(year + away)) for year in years for away in NEAR_YEARS]


def other_nationalities(stated: set[str]) -> list[str]:
    """Return nationalities that are not akin to the stated ones."""
    akin = {
        w for line in lead_words()["nationalities"] if not stated.isdisjoint(line) for w in line
    }
    return [word for word in lead_words()["drawn_nationalities"] if word not in akin]


def other_occupations(text: str) -> list[str]:
    """Return occupations of fields in which a text mentions no occupation."""
    words = set(re.findall(r"[\w-]+", text.lower()))
    fields = {field for word, field in occupation_fields().items() if word in words}
    drawn = lead_words()["drawn"]
    return [value for field in drawn if field not in fields for value in drawn[field]]
