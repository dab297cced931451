"""Articles: premises as long and mixed as an encyclopedia's paragraphs, and claims about them.

On real pages, all words of an unsupported claim often occur: the year belongs to another event, a
detail is wrong or added, or another person is meant. An article states facts and unlisted
statements (``wording/unlisted.yaml``), some with a further detail, some joined into one sentence,
sometimes with a sentence about another person.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from components.english import has_negation
from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.relation import LabelledPair, labelled_pairs
from data_builders.kb.kb_pairs.teller import Teller, labelled
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, implies, independent, values_of
from data_builders.kb.language.wording import (
    Voice,
    any_voice,
    bank,
    capital,
    fillers,
    reveals_sex,
    slots_of,
    speak,
    unlisted,
)
from records import RelationPair

YEARS = (1780, 2010)  # a range, so that years cannot be memorized
# Probability of a tail, of joining with the previous statement, of a title in front.
TAILED, JOINED, TITLED = 0.4, 0.3, 0.4
# Probability of final sentences about another person.
OTHER = 0.25
_MAY_BE_JOINED = re.compile(r"(He|She|They|His|Her|Their|In|It) ")


@dataclass(frozen=True)
class Statement:
    """A statement of an article or claim, in several wordings that entail each other.

    Attributes:
        kind: statements of different kinds are unrelated.
        tail: an added detail, a template with one slot.
        fact: the fact of the knowledge base, if any.
    """

    kind: str
    templates: tuple[str, ...]
    slots: Mapping[str, str]
    tail: str = ""
    fact: Fact | None = field(default=None, compare=False)

    @property
    def used(self) -> list[str]:
        """The slots of every wording."""
        common = set.intersection(*(slots_of(template) for template in self.templates))
        return sorted(common | slots_of(self.tail))

    def say(self, rng: random.Random, person: Person, voice: Voice) -> str:
        """Write the statement as a sentence."""
        template = rng.choice(self.templates)
        if self.tail:
            template = f"{template.removesuffix('.')} {self.tail}."
        return capital(speak(template, person, voice, self.slots))


@dataclass(frozen=True)
class Article:
    """A paragraph about a person, with its statements in order and those about another person."""

    text: str
    statements: list[Statement]
    other_statements: list[Statement]


class Writer(Teller):
    """Writes articles about people of one split, with claims that do or do not follow."""

    def __init__(self, world: World, rng: random.Random):
        super().__init__(world, rng)
        self._cities = sorted(
            {v.label for p in world.people for prop in ("P19", "P20") for v in values_of(p, prop)}
        )

    def article(self, person: Person) -> Article:
        """Write shuffled facts of the person and unlisted statements."""
        facts = self.world.facts(person)
        chosen = self.rng.sample(facts, min(len(facts), self.rng.randint(1, 4)))
        statements = [self._fact(fact) for fact in chosen]
        for _ in range(self.rng.randint(2, 5)):
            statements.append(self._specific({statement.kind for statement in statements}))
        self.rng.shuffle(statements)
        about, other = self.rng.choice(self.world.people), []
        if about.name != person.name and self.rng.random() < OTHER:
            facts = self.world.facts(about)
            other = [self._fact(f) for f in self.rng.sample(facts, min(len(facts), 2))]
        sentences = self._sentences(person, statements) + self._sentences(about, other)
        title = f"{person.name}. " if self.rng.random() < TITLED else ""
        return Article(title + " ".join(sentences), statements, other)

    def restated(self, person: Person) -> tuple[str, str]:
        """Write an article, and one of its statements in any wording."""
        article = self.article(person)
        return article.text, self._claim(article, person, self.rng.choice(article.statements))

    def without_detail(self, person: Person) -> tuple[str, str] | None:
        """Write an article, and one of its statements without its detail."""
        article = self.article(person)
        tailed = [statement for statement in article.statements if statement.tail]
        if not tailed:
            return None
        return article.text, self._claim(article, person, replace(self.rng.choice(tailed), tail=""))

    def unstated(self, person: Person) -> tuple[str, str] | None:
        """Write an article, and an unrelated statement."""
        article = self.article(person)
        if self.rng.random() < 0.7:
            other = self._specific({statement.kind for statement in article.statements})
            return article.text, self._claim(article, person, other)
        fact = self.world.own_value(self.rng, person)
        facts = [s.fact for s in article.statements if s.fact]
        if not all(independent(stated, fact) for stated in facts):
            return None
        if fact.prop == "P21" and reveals_sex(article.text):
            return None
        return article.text, self._claim(article, person, self._fact(fact))

    def with_changed_value(self, person: Person) -> tuple[str, str] | None:
        """Write an article, and one of its statements with another value: similar but not stated.

        Half of the time the value is from another statement of the article.
        """
        article = self.article(person)
        if article.other_statements and self.rng.random() < 0.5:
            wrong = self.rng.choice(article.other_statements)
            facts = self.world.facts(person)
            # Another person's occupation may also be true of this person.
            if wrong.fact.functional or any(implies(fact, wrong.fact) for fact in facts):
                return None
            return article.text, self._claim(article, person, wrong)
        statement = self.rng.choice(article.statements)
        if statement.fact is not None:
            fact = statement.fact
            wrong = None if fact.functional else self.world.other_value(self.rng, person, fact)
            return wrong and (article.text, self._claim(article, person, self._fact(wrong)))
        if not statement.used:
            return None
        slot = self.rng.choice(statement.used)
        values = [s.slots[slot] for s in article.statements if slot in s.used]
        value = self.rng.choice(values) if self.rng.random() < 0.5 else self._fillers()[slot]
        if value == statement.slots[slot]:
            return None
        wrong = replace(statement, slots={**statement.slots, slot: value})
        return article.text, self._claim(article, person, wrong)

    def with_detail(self, person: Person) -> tuple[str, str] | None:
        """Write an article, and one of its statements with an added detail."""
        article = self.article(person)
        plain = [
            s
            for s in article.statements
            if s.fact is None and not s.tail and _may_have_tail(s.templates)
        ]
        if not plain:
            return None
        statement = self.rng.choice(plain)
        tail = self._tail(statement.templates)
        (slot,) = slots_of(tail)
        values = [s.slots[slot] for s in article.statements if slot in s.used]
        filled = self._fillers()
        if values and self.rng.random() < 0.5:
            filled[slot] = self.rng.choice(values)
        slots = {**statement.slots, slot: filled[slot]}
        return article.text, self._claim(
            article, person, replace(statement, tail=tail, slots=slots)
        )

    def contradicted(self, person: Person) -> tuple[str, str] | None:
        """Write an article, and another value of one of its functional facts."""
        article = self.article(person)
        functional = [s.fact for s in article.statements if s.fact and s.fact.functional]
        if not functional:
            return None
        fact = self.rng.choice(functional)
        other = self.world.other_value(self.rng, person, fact)
        if other is None:
            return None
        self.stated_facts.extend((fact, other))
        return article.text, self._claim(article, person, self._fact(other))

    def _sentences(self, person: Person, statements: Sequence[Statement]) -> list[str]:
        sentences: list[str] = []
        joins = bank("articles")["joins"][self.world.split]
        for index, statement in enumerate(statements):
            form = self.rng.choices(("pronoun", "surname", "full"), (6, 3, 1))[0]
            text = statement.say(self.rng, person, Voice(form if index else "full", True))
            if sentences and _MAY_BE_JOINED.match(text) and self.rng.random() < JOINED:
                start = sentences.pop().removesuffix(".")
                text = f"{start}{self.rng.choice(joins)} {text[0].lower()}{text[1:]}"
            sentences.append(text)
        return sentences

    def _claim(self, article: Article, person: Person, statement: Statement) -> str:
        voice = any_voice(self.rng, bool(article.other_statements) or statement.kind == "P21")
        return statement.say(self.rng, person, voice)

    def _fact(self, fact: Fact) -> Statement:
        slots = dict(fact.slots)
        if "us" in slots and self.rng.random() < 0.5:
            slots["v"] = slots["us"]
        return Statement(fact.key, tuple(self.world.templates(fact)), slots, fact=fact)

    def _specific(self, kinds: set[str]) -> Statement:
        entries = [entry for entry in unlisted(self.world.split) if entry.kind not in kinds]
        entry = self.rng.choice(entries)
        tailed = self.rng.random() < TAILED and _may_have_tail(entry.paraphrases)
        tail = self._tail(entry.paraphrases) if tailed else ""
        return Statement(entry.kind, entry.paraphrases, self._fillers(), tail)

    def _tail(self, templates: Sequence[str]) -> str:
        used = {slot for template in templates for slot in slots_of(template)}
        tails = bank("articles")["tails"][self.world.split]
        return self.rng.choice([tail for tail in tails if not slots_of(tail) & used])

    def _fillers(self) -> dict[str, str]:
        values = fillers(self.rng, self.world.split)
        values["year"] = str(self.rng.randint(*YEARS))
        if self.rng.random() < 0.7:
            values["city"] = self.rng.choice(self._cities)
            values["name"] = self.rng.choice(self.world.people).name
        return values


def _may_have_tail(templates: Sequence[str]) -> bool:
    # "had no children in 1950" does not entail "had no children".
    return not any(has_negation(text) or "Nobody" in text for text in templates)


def article_pairs(
    world: World, number: int, seed: int, dropped: Counter[str]
) -> list[RelationPair]:
    """Make the relation pairs of one split whose premises are articles; see ``relation_pairs``."""
    writer = Writer(world, random.Random(f"{seed}:articles:{world.split}"))
    return labelled_pairs(writer, KINDS, number, "article", dropped)


# Kind to weight and maker.
KINDS: dict[str, tuple[int, Callable[[Writer, Person], LabelledPair]]] = {
    "article_told": (16, labelled(Writer.restated, "entailment")),
    "article_less": (4, labelled(Writer.without_detail, "entailment")),
    "article_untold": (9, labelled(Writer.unstated, "neutral")),
    "article_changed": (8, labelled(Writer.with_changed_value, "neutral")),
    "article_more": (4, labelled(Writer.with_detail, "neutral")),
    "article_contradicted": (4, labelled(Writer.contradicted, "contradiction")),
}
