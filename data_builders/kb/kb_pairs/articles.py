"""Articles: premises as long and as mixed as an encyclopedia's paragraphs, and claims about them.

A verifier reads pages. There a claim's words are often all on the page and it is still not said:
the year belongs to something else, one detail is wrong or added, or another person is meant. An
article tells facts and specific statements (``wording/unlisted.yaml``), some with a detail more,
some joined into one sentence, now and then with a sentence about somebody else.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.relation import Found, labelled_pairs
from data_builders.kb.kb_pairs.teller import Teller, labelled
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, implies, independent, values_of
from data_builders.kb.language.wording import (
    Voice,
    any_voice,
    bank,
    capital,
    fillers,
    slots_of,
    speak,
    tells_sex,
    unlisted,
)
from records import RelationPair

# Years are any years, so that no list of them can be learnt.
YEARS = (1780, 2010)
# How often a statement gets a tail, is joined to the one before, comes with the title in front.
TAILED, JOINED, TITLED = 0.4, 0.3, 0.4
# How often a sentence at the end is about somebody else.
OTHER = 0.25
# Who had no children had none in 1950, but not the other way round: no tail for these.
_DENIES = re.compile(r"\b(?:never|not|no|nobody)\b", re.IGNORECASE)
_MAY_BE_JOINED = re.compile(r"(He|She|They|His|Her|Their|In|It) ")


@dataclass(frozen=True)
class Statement:
    """What an article or a claim says, in any of several wordings.

    Attributes:
        kind: statements of different kinds have nothing to do with each other.
        templates: wordings that entail each other.
        slots: what fills them.
        tail: a detail that is added, a template of one slot.
        fact: the knowledge base's fact, if it is one.
    """

    kind: str
    templates: tuple[str, ...]
    slots: Mapping[str, str]
    tail: str = ""
    fact: Fact | None = field(default=None, compare=False)

    @property
    def used(self) -> list[str]:
        """The slots that every wording shows."""
        shown = set.intersection(*(slots_of(template) for template in self.templates))
        return sorted(shown | slots_of(self.tail))

    def say(self, rng: random.Random, person: Person, voice: Voice) -> str:
        """The statement as a sentence."""
        template = rng.choice(self.templates)
        if self.tail:
            template = f"{template.removesuffix('.')} {self.tail}."
        return capital(speak(template, person, voice, self.slots))


@dataclass(frozen=True)
class Article:
    """A paragraph about a person.

    Attributes:
        text: the paragraph.
        statements: about the person, in the order of the text.
        other_statements: about another person.
    """

    text: str
    statements: list[Statement]
    other_statements: list[Statement]


class Writer(Teller):
    """Writes articles about people of one split and claims that do or do not follow from them."""

    def __init__(self, world: World, rng: random.Random):
        super().__init__(world, rng)
        self._cities = sorted(
            {v.label for p in world.people for prop in ("P19", "P20") for v in values_of(p, prop)}
        )

    def article(self, person: Person) -> Article:
        """Some facts of the person and some specific statements, shuffled."""
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
        """An article, and a statement of it in the same or another wording."""
        article = self.article(person)
        return article.text, self._claim(article, person, self.rng.choice(article.statements))

    def without_detail(self, person: Person) -> tuple[str, str] | None:
        """An article, and one of its statements without the detail."""
        article = self.article(person)
        tailed = [statement for statement in article.statements if statement.tail]
        if not tailed:
            return None
        return article.text, self._claim(article, person, replace(self.rng.choice(tailed), tail=""))

    def unstated(self, person: Person) -> tuple[str, str] | None:
        """An article, and a statement on something else."""
        article = self.article(person)
        if self.rng.random() < 0.7:
            other = self._specific({statement.kind for statement in article.statements})
            return article.text, self._claim(article, person, other)
        fact = self.world.own_value(self.rng, person)
        facts = [s.fact for s in article.statements if s.fact]
        if not all(independent(told, fact) for told in facts):
            return None
        if fact.prop == "P21" and tells_sex(article.text):
            return None
        return article.text, self._claim(article, person, self._fact(fact))

    def with_changed_value(self, person: Person) -> tuple[str, str] | None:
        """An article, and one of its statements with one value exchanged: not said, though close.

        Half of the time the value is the article's own, said of something else.
        """
        article = self.article(person)
        if article.other_statements and self.rng.random() < 0.5:
            wrong = self.rng.choice(article.other_statements)
            known = self.world.facts(person)
            # What somebody else is, a writer, this person may be as well: as a novelist.
            if wrong.fact.functional or any(implies(fact, wrong.fact) for fact in known):
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
        own = [s.slots[slot] for s in article.statements if slot in s.used]
        value = self.rng.choice(own) if self.rng.random() < 0.5 else self._fillers()[slot]
        if value == statement.slots[slot]:
            return None
        wrong = replace(statement, slots={**statement.slots, slot: value})
        return article.text, self._claim(article, person, wrong)

    def with_detail(self, person: Person) -> tuple[str, str] | None:
        """An article, and one of its statements with a detail that it does not have."""
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
        own = [s.slots[slot] for s in article.statements if slot in s.used]
        filled = self._fillers()
        if own and self.rng.random() < 0.5:
            filled[slot] = self.rng.choice(own)
        slots = {**statement.slots, slot: filled[slot]}
        return article.text, self._claim(
            article, person, replace(statement, tail=tail, slots=slots)
        )

    def contradicted(self, person: Person) -> tuple[str, str] | None:
        """An article, and another value of a functional fact of it; both facts are told."""
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

    def _sentences(self, person: Person, told: Sequence[Statement]) -> list[str]:
        sentences: list[str] = []
        joins = bank("articles")["joins"][self.world.split]
        for index, statement in enumerate(told):
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
        there = {slot for template in templates for slot in slots_of(template)}
        tails = bank("articles")["tails"][self.world.split]
        return self.rng.choice([tail for tail in tails if not slots_of(tail) & there])

    def _fillers(self) -> dict[str, str]:
        found = fillers(self.rng, self.world.split)
        found["year"] = str(self.rng.randint(*YEARS))
        if self.rng.random() < 0.7:
            found["city"] = self.rng.choice(self._cities)
            found["name"] = self.rng.choice(self.world.people).name
        return found


def _may_have_tail(templates: Sequence[str]) -> bool:
    return not any(_DENIES.search(template) for template in templates)


def article_pairs(
    world: World, number: int, seed: int, dropped: Counter[str]
) -> list[RelationPair]:
    """Relation pairs of one split whose premises are articles.

    Args:
        world: the split's people and facts.
        number: about how many; fewer where a kind has not enough to say.
        seed: of all choices.
        dropped: counts the pairs that could not be made, by kind.
    """
    writer = Writer(world, random.Random(f"{seed}:articles:{world.split}"))
    return labelled_pairs(writer, KINDS, number, "article", dropped)


# Kind to its weight and its maker.
KINDS: dict[str, tuple[int, Callable[[Writer, Person], Found]]] = {
    "article_told": (16, labelled(Writer.restated, "entailment")),
    "article_less": (4, labelled(Writer.without_detail, "entailment")),
    "article_untold": (9, labelled(Writer.unstated, "neutral")),
    "article_changed": (8, labelled(Writer.with_changed_value, "neutral")),
    "article_more": (4, labelled(Writer.with_detail, "neutral")),
    "article_contradicted": (4, labelled(Writer.contradicted, "contradiction")),
}
