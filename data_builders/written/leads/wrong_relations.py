"""False versions of statements in which years of the lead are in a wrong relation.

A test of words accepts them: years of birth and death are exchanged, another year of the page is
taken, or a fact is dated before the birth or after the death. All are false of the topic, whatever
the lead leaves out.
"""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from data_builders.written.attacks.frames import frames
from data_builders.written.attacks.phrases import Bank
from data_builders.written.claims.clauses import clause_of
from data_builders.written.leads.false_values import SINGLE_VALUED, Article, with_value
from data_builders.written.leads.lead_statements import LeadStatement

_YEAR = re.compile(r"\b[12]\d{3}\b")


class WrongRelation(NamedTuple):
    """A false statement, the true one that it distorts, and the bank of its frame.

    Attributes:
        twin: of ``seen``: the true statement in the same words, with the years in their places.
    """

    text: str
    instead_of: str
    bank: Bank
    twin: str = ""


def wrong_relations(
    rng: random.Random, article: Article, statement: LeadStatement
) -> Iterator[WrongRelation]:
    """Yield false statements whose names and numbers are in the lead, in random order per bank."""
    if statement.rule in SINGLE_VALUED:
        years = sorted(set(_YEAR.findall(article.passage.text)) - {statement.value})
        for year in rng.sample(years, len(years)):
            true = rng.choice((statement.text, *statement.reworded))
            false = with_value(true, article.name, statement.value, year)
            yield WrongRelation(false, true, "seen", true)
        return
    lifetime = {s.rule: s.value for s in article.statements if s.rule in SINGLE_VALUED}
    clause = clause_of(statement.text, article.name)
    if len(lifetime) < 2 or clause is None:
        return
    slots = {"X": article.name, "rest": clause.rest, **lifetime}
    exchanged = slots | {"born": lifetime["died"], "died": lifetime["born"]}
    banks: tuple[Bank, ...] = ("seen", "unseen")
    for bank in banks:
        templates = frames("relation", bank)
        for template in rng.sample(templates, len(templates)):
            twin = template.format(**exchanged) if bank == "seen" else ""
            yield WrongRelation(template.format(**slots), statement.text, bank, twin)
