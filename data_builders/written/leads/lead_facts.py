"""Facts of people of leads whose frequency can be counted: work, nationality, centuries, age, sex.

Leads do not state all facts. A share is therefore counted over the people whose lead states the
property at all.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from components.english import ordinal
from data_builders.written.claims.clauses import pronoun_of
from data_builders.written.leads.false_values import Article, clauses_of
from data_builders.written.leads.lead_statements import lead_words, occupation_fields, state_value

LEAST_PEOPLE = 10  # for which a condition holds, and whose lead states the property
AGES = (10, 40, 50, 60, 70, 80)
_WORK = frozenset({"occupation", "field", "realm", "office"})


class Fact(NamedTuple):
    """A property of a person with its value, for example ``occupation`` and ``poet``."""

    slot: str
    value: str

    def __str__(self) -> str:
        return f"{self.slot}={self.value}"

    @property
    def property(self) -> str:
        """What a lead states or leaves out; facts of one property depend on each other."""
        if self.slot in _WORK:
            return "work"
        return "nationality" if self.slot == "continent" else self.slot.partition(" ")[0]


class LeadPerson:
    """A person of a lead with all countable facts."""

    def __init__(self, article: Article):
        self.article = article
        self.pronoun = pronoun_of(article.passage.text)
        self.facts = list(dict.fromkeys(self._facts()))

    @property
    def name(self) -> str:
        return self.article.name

    @cached_property
    def is_past(self) -> bool:
        return not any(s.text.startswith(f"{self.name} is ") for s in self.article.statements)

    @property
    def unlisted(self) -> list[str]:
        """Statements of the lead whose frequency cannot be counted."""
        return clauses_of(self.article)

    def state(self, rng: random.Random, fact: Fact, split: str) -> str:
        """State a fact, which may be another person's, in one sentence about this person."""
        bank = lead_words()["counted"]["train" if split == "train" else "held_out"]
        return rng.choice(state_value(bank[fact.slot], self.name, fact.value, self.is_past))

    def _facts(self) -> Iterator[Fact]:
        words = lead_words()
        years: dict[str, int] = {}
        for statement in self.article.statements:
            value = statement.value
            match statement.rule:
                case "nationality":
                    yield Fact("nationality", value)
                    if value in words["european"]:
                        yield Fact("continent", "Europe")
                case "occupation":
                    yield from _work(value.rpartition(" ")[2])
                case "reign" | "office":
                    named = set(value.lower().split())
                    yield from (Fact("office", name) for name in words["rulers"] if name in named)
                case "born" | "died":
                    years[statement.rule] = int(value)
        for event, year in years.items():
            century = (year - 1) // 100 + 1
            yield from (Fact(event, str(year)), Fact(f"{event} century", ordinal(century)))
            for first in (century - 1, min(century, 20)):
                yield Fact(f"{event} centuries", f"{ordinal(first)} or the {ordinal(first + 1)}")
        if len(years) == 2:
            age = years["died"] - years["born"] - 1
            yield from (Fact("age", str(least)) for least in AGES if age >= least)
        if self.pronoun:
            yield Fact("sex", {"he": "man", "she": "woman"}[self.pronoun])


def _work(occupation: str) -> Iterator[Fact]:
    words = lead_words()
    field = occupation_fields()[occupation]
    yield from (Fact("occupation", occupation), Fact("field", words["field_names"][field]))
    yield from (Fact("realm", realm) for realm, group in words["realms"].items() if field in group)


class Shares:
    """Conditional frequencies over the people of one split."""

    def __init__(self, people: Iterable[LeadPerson]):
        self._holders: dict[Fact, set[int]] = {}
        self._stating: dict[str, set[int]] = {}
        for index, person in enumerate(people):
            for fact in person.facts:
                self._holders.setdefault(fact, set()).add(index)
                self._stating.setdefault(fact.property, set()).add(index)

    @property
    def by_slot(self) -> Mapping[str, list[Fact]]:
        """All facts by slot, sorted."""
        slots: dict[str, list[Fact]] = {}
        for fact in sorted(self._holders):
            slots.setdefault(fact.slot, []).append(fact)
        return slots

    def counts(self, condition: Collection[Fact], target: Fact) -> tuple[int, int] | None:
        """People with condition and target, and those with the condition who state its property.

        ``None`` if the latter are fewer than ten.
        """
        holders = self._stating[target.property].intersection(*map(self._holders.get, condition))
        if len(holders) < LEAST_PEOPLE:
            return None
        return len(holders & self._holders[target]), len(holders)
