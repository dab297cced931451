"""``lead_conflicts``: true and false claims about people, whose contexts disagree.

The contexts of a claim are the lead and copies in which the claim's value is exchanged for another
one. A person has one claim, since the contexts of other claims would reveal the truth. Only the
sources separate true from false claims:

- of two contexts one is against the claim; of four, one is against the other three, in favour of
  the claim as often as against it, whether the claim is true or false;
- a true context is from source k with a probability proportional to its prior r_k, a changed one
  with a probability proportional to 1 − r_k. If the mean of the priors is one half, a source's
  share of true contexts is its prior.

FactReasoner (2502.18573) weights contexts by such priors; its dataset has true claims only.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.written.leads.false_values import (
    Article,
    FalseValues,
    article_files,
    read_articles,
    with_value,
)
from data_builders.written.leads.lead_statements import LeadStatement
from records import Claim, Document, Passage

# Supporting and conflicting contexts of a claim.
SIDES = ((1, 1), (1, 3), (3, 1))
# Fictitious kinds of sources; the mean is one half.
SOURCES = {"archive": 0.95, "newspaper": 0.7, "blog": 0.3, "hoax site": 0.05}


@dataclass
class LeadConflicts(Builder):
    """True and false claims about people of the test split, with contexts that disagree.

    Args:
        leads: folder that ``leads`` wrote.
        people: maximum number of people, each with one claim.
        sources: kind of source to the probability that it is right.
    """

    leads: str = "data/leads"
    people: int = 60
    sources: dict[str, float] = field(default_factory=lambda: dict(SOURCES))

    least: ClassVar = {"people": 1}

    def faults(self) -> Iterable[str]:
        if len(self.sources) < 2 or not all(0 < prior < 1 for prior in self.sources.values()):
            yield "sources: expected at least two, each with a probability in (0, 1)"

    def files(self) -> dict[str, dict[str, str]]:
        return {"documents": {"test": "documents_test.jsonl"}}

    def inputs(self) -> list[str]:
        return article_files(self.leads, "test")

    def make(self, work: Work) -> Made:
        rng = random.Random(self.seed)
        articles = [a for a in read_articles(self.leads, "test") if a.group == "People"]
        values = FalseValues(articles)
        cases = _cases(rng)
        documents: list[Document] = []
        for article in rng.sample(articles, len(articles)):
            changed = [c for s in article.statements if (c := _changed(rng, values, article, s))]
            if len(documents) < min(self.people, self.limit or self.people) and changed:
                documents.append(self._document(rng, article, *rng.choice(changed), *next(cases)))
            else:
                work.dropped["person who was not drawn, or without a value to exchange"] += 1
        return Made({"documents_test.jsonl": documents}, read_card("lead_conflicts"))

    def _document(
        self,
        rng: random.Random,
        article: Article,
        statement: LeadStatement,
        other: str,
        is_true: bool,
        sides: tuple[int, int],
    ) -> Document:
        text = rng.choice((statement.text, *statement.reworded))
        if not is_true:
            text = with_value(text, article.name, statement.value, other)
        stances = ["entailment"] * sides[0] + ["contradiction"] * sides[1]
        contexts = [
            self._context(rng, article, statement, other, (stance == "entailment") == is_true)
            | {"id": f"c{number}", "relation": stance}
            for number, stance in enumerate(rng.sample(stances, len(stances)))
        ]
        claim = Claim(
            id="a0",
            text=text,
            source=text,
            label="S" if is_true else "NS",
            contexts=[context["id"] for context in contexts],
        )
        title = article.passage.title
        passages = [Passage(**context) for context in contexts]
        return Document(id=title, topic=title, text=text, claims=[claim], passages=passages)

    def _context(
        self,
        rng: random.Random,
        article: Article,
        statement: LeadStatement,
        other: str,
        is_true: bool,
    ) -> dict:
        weights = [prior if is_true else 1 - prior for prior in self.sources.values()]
        source = rng.choices(list(self.sources), weights)[0]
        text = article.passage.text
        if not is_true:
            text = with_value(text, article.name, statement.value, other)
        passage = {"title": article.passage.title, "text": text}
        return passage | {"source": source, "prior": self.sources[source]}


def _cases(rng: random.Random) -> Iterator[tuple[bool, tuple[int, int]]]:
    """Yield truth and sides of claims; every six claims have each combination once."""
    cases = list(product((True, False), SIDES))
    while True:
        yield from rng.sample(cases, len(cases))


def _changed(
    rng: random.Random, values: FalseValues, article: Article, statement: LeadStatement
) -> tuple[LeadStatement, str] | None:
    """Return the statement with another value, by which its lead can be changed."""
    lead = article.passage.text
    other_values = [
        v for v in values.other_values(statement, article) if v.lower() not in lead.lower()
    ]
    if not statement.value or not other_values:
        return None
    other = rng.choice(other_values)
    changed = with_value(lead, article.name, statement.value, other)
    is_gone = changed != lead and statement.value.lower() not in changed.lower()
    return (statement, other) if is_gone else None
