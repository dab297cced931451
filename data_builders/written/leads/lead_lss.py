"""LSS examples of leads: a claim of several clauses, and the words that the lead supports.

2308.12157, section 3: the longest supported subsequence of a claim's words. Clauses that the lead
states are kept; clauses with another value and clauses of another article are removed; of a clause
with a changed or added phrase, the phrase is removed. A joining word is kept between two kept
clauses.
"""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from data_builders.written.distant_lss.transform import (
    Pieces,
    Pool,
    Setting,
    add_phrase,
    entities,
    swap_date,
    swap_entity,
    swap_number,
)
from data_builders.written.leads.false_values import Article, FalseValues, clause_of_another
from data_builders.written.leads.lead_statements import LeadStatement
from records import Annotation, LssExample

JOINS = (" and ", ", and ", ", ")
CHANGES = (swap_entity, swap_date, swap_number, add_phrase)
# What becomes of a statement, with weights.
STATES = {"supported": 55, "changed": 20, "false": 13, "foreign": 12}
TRIES = 30  # attempts per example
SHARE_NEAR = 0.5  # of the exchanged names are from the same lead


class LssWriter:
    """Writes examples about the articles of one split."""

    def __init__(self, articles: Sequence[Article], rng: random.Random):
        self.articles = articles
        self.rng = rng
        self._weights = list(accumulate(len(article.statements) for article in articles))
        self._values = FalseValues(articles)
        text = "\n".join(article.passage.text for article in articles)
        self._pool = Pool(entities=entities(text))

    def example(self) -> LssExample | None:
        """Write a claim about an article, drawn by its number of statements; ``None`` if empty."""
        article = self.rng.choices(self.articles, cum_weights=self._weights)[0]
        size = self.rng.choices((1, 2, 3, 4), (1, 4, 4, 2))[0]
        statements = self.rng.sample(article.statements, min(size, len(article.statements)))
        clauses = [clause for s in statements if (clause := self._clause(article, s))]
        claim, lss, supported = article.name, "", 0
        for index, clause in enumerate(clauses):
            join = self.rng.choice(JOINS) if index else " "
            claim += join + "".join(text for text, _ in clause)
            kept = "".join(text for text, is_kept in clause if is_kept).strip()
            lss += kept and (join if lss else f"{article.name} ") + kept
            supported += all(is_kept for _, is_kept in clause)
        if not clauses:
            return None
        annotation = Annotation(
            lss=" ".join(f"{lss}.".split()) if lss else "",
            rating=round(1 + 4 * supported / len(clauses), 2),
        )
        return LssExample(
            reference=article.passage.text,
            claim=f"{claim}.",
            annotations=[annotation],
            source="lead/lss",
            group=article.passage.title,
        )

    def _clause(self, article: Article, statement: LeadStatement) -> Pieces | None:
        """Return a statement in pieces, without its subject and its full stop."""
        pieces = self._pieces(article, statement)
        start = f"{article.name} "
        if not pieces or not pieces[0][0].startswith(start):
            return None
        pieces = [(pieces[0][0].removeprefix(start), pieces[0][1]), *pieces[1:]]
        *first, (last, is_kept) = pieces
        return [*first, (last.removesuffix("."), is_kept)]

    def _pieces(self, article: Article, statement: LeadStatement) -> Pieces | None:
        state = self.rng.choices(list(STATES), list(STATES.values()))[0]
        match state:
            case "supported":
                return [(self.rng.choice((statement.text, *statement.reworded)), True)]
            case "changed":
                lead = article.passage.text
                setting = Setting(lead, entities(lead), self._pool, SHARE_NEAR)
                changes = self.rng.sample(CHANGES, len(CHANGES))
                possible = (change(statement.text, setting, self.rng) for change in changes)
                return next((pieces for pieces in possible if pieces), None)
            case "false":
                version = statement.value and next(
                    self._values.versions(self.rng, article, statement), None
                )
                return [(version[0], False)] if version else None
            case "foreign":
                text = clause_of_another(self.rng, self.articles, article)
                return [(text, False)] if text else None


def lss_examples(
    articles: Sequence[Article], split: str, number: int, seed: int, dropped: Counter[str]
) -> list[LssExample]:
    """Make at most ``number`` distinct examples of a split; ``dropped`` counts the missing ones.

    The rating is a rule, not human: 1 + 4 times the share of supported clauses.
    """
    writer = LssWriter(articles, random.Random(f"{seed}:lss:{split}"))
    examples: dict[tuple[str, str], LssExample] = {}
    for _ in range(number * TRIES if articles else 0):
        if len(examples) == number:
            break
        if (example := writer.example()) is not None:
            examples.setdefault((example.reference, example.claim), example)
    dropped["LSS example not found"] += number - len(examples)
    return list(examples.values())
