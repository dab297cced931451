"""UNLI pairs of people of leads, labelled with the probability of the hypothesis given the premise.

Core (2407.03572, section 3) reads p(claim | bleached claim) from a model of Chen et al. 2020. Here
a fact is labelled with its conditional frequency among the people of the same split, so that the
probability of a claim falls with its specificity; statements that are true of anyone are near 1 for
any premise, and hypotheses that the premise states or denies are near 1 or 0.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from data_builders.written.bleached_statements import bleached_statement, bleached_templates
from data_builders.written.leads.false_values import SINGLE_VALUED, FalseValues
from data_builders.written.leads.lead_facts import Fact, LeadPerson, Shares
from data_builders.written.leads.lead_statements import LeadStatement
from records import Claim, Document, UnliPair

# Fixed values: subjective probabilities are seldom 0 or 1.
ENTAILED, UNLISTED, CONTRADICTED = 0.97, 0.03, 0.02
FLOOR = 0.002  # least share: unobserved is not impossible. The largest is ENTAILED.
TRIES = 30  # attempts per pair
# Ranges of shares. Larger shares are practically bleached; those in between are not used.
COMMON, SPECIFIC = (0.3, 0.8), (0, 0.05)

# Premise, hypothesis, label, and the counted facts, if any.
LabelledPair = tuple[str, str, float, dict] | None


class UnliWriter:
    """Writes premises and hypotheses about the people of one split."""

    def __init__(self, people: Sequence[LeadPerson], split: str, rng: random.Random):
        self.people = people
        self.split = split
        self.rng = rng
        self.shares = Shares(people)
        self._by_slot = self.shares.by_slot
        self._values = FalseValues(person.article for person in people)

    def bleached(self, person: LeadPerson, named: bool = False) -> str:
        template = self.rng.choice(bleached_templates(self.split))
        return bleached_statement(self.rng, template, person.name, person.pronoun, named)

    def bleached_premise(self, person: LeadPerson) -> str:
        """Write one bleached statement, sometimes up to three."""
        number = self.rng.choices((1, 2, 3), (6, 2, 1))[0]
        return " ".join(self.bleached(person, index == 0) for index in range(number))

    def state(self, person: LeadPerson, fact: Fact) -> str:
        return person.state(self.rng, fact, self.split)

    def fact(self, person: LeadPerson) -> Fact | None:
        """Draw a fact of the person or, equally often, of anyone; slots are equally likely."""
        facts = person.facts
        if self.rng.random() < 0.5 or not facts:
            facts = [fact for slot in self._by_slot.values() for fact in slot]
        slots = sorted({fact.slot for fact in facts})
        slot = self.rng.choice(slots) if slots else None
        return self.rng.choice([fact for fact in facts if fact.slot == slot]) if slots else None

    def statement(self, person: LeadPerson) -> LeadStatement:
        return self.rng.choice(person.article.statements)

    def share(self, condition: Sequence[Fact], target: Fact) -> tuple[float, dict] | None:
        """Return a conditional frequency and its counts; ``None`` if people are too few."""
        counts = self.shares.counts(condition, target)
        if counts is None:
            return None
        counted = {
            "given": [str(fact) for fact in condition],
            "asked": str(target),
            "counts": list(counts),
        }
        return min(ENTAILED, max(FLOOR, round(counts[0] / counts[1], 4))), counted

    def denied(self, person: LeadPerson) -> tuple[str, str] | None:
        """Return a statement with a single value, and the same with another value."""
        statements = [s for s in person.article.statements if s.rule in SINGLE_VALUED]
        if not statements:
            return None
        statement = self.rng.choice(statements)
        version = next(self._values.versions(self.rng, person.article, statement), None)
        return version and (statement.text, version[0])


def unli_pairs(
    people: Sequence[LeadPerson], split: str, number: int, seed: int, dropped: Counter[str]
) -> list[UnliPair]:
    """Make at most ``number`` distinct pairs of one split; ``dropped`` counts the missing ones."""
    writer = UnliWriter(people, split, random.Random(f"{seed}:unli:{split}"))
    pairs: dict[tuple[str, str], UnliPair] = {}
    for _ in range(number * TRIES if people else 0):
        if len(pairs) == number:
            break
        person = writer.rng.choice(people)
        kind = writer.rng.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
        made = KINDS[kind][1](writer, person)
        if made is not None:
            premise, hypothesis, label, counted = made
            pair = UnliPair(
                premise=premise,
                hypothesis=hypothesis,
                label=label,
                source=f"{'prior' if kind == 'unlisted' else 'lead'}/{kind}",
                group=person.article.passage.title,
                **counted,
            )
            pairs.setdefault((premise, hypothesis), pair)
    dropped["UNLI pair not found"] += number - len(pairs)
    return list(pairs.values())


def _share(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    target = writer.fact(person)
    share = target and writer.share([], target)
    return share and (writer.bleached_premise(person), writer.state(person, target), *share)


def _share_given(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    target = writer.fact(person)
    possible = [fact for fact in person.facts if target and fact.property != target.property]
    if not possible:
        return None
    size = 2 if writer.rng.random() < 0.3 else 1
    condition = writer.rng.sample(possible, min(size, len(possible)))
    share = writer.share(condition, target)
    premise = " ".join(writer.state(person, fact) for fact in condition)
    return share and (premise, writer.state(person, target), *share)


def _unlisted(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    if not person.unlisted:
        return None
    hypothesis = writer.rng.choice(person.unlisted)
    if writer.rng.random() < 0.6 or not person.facts:
        return writer.bleached_premise(person), hypothesis, UNLISTED, {}
    return writer.state(person, writer.rng.choice(person.facts)), hypothesis, UNLISTED, {}


def _fact_to_bleached(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    return writer.statement(person).text, writer.bleached(person), ENTAILED, {}


def _paraphrase(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    statement = writer.statement(person)
    if not statement.reworded:
        return None
    texts = writer.rng.sample((statement.text, *statement.reworded), 2)
    return *texts, ENTAILED, {}


def _lead_fact(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    statement = writer.statement(person)
    hypothesis = writer.rng.choice((statement.text, *statement.reworded))
    return person.article.passage.text, hypothesis, ENTAILED, {}


def _contradicted(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    texts = writer.denied(person)
    return texts and (*texts, CONTRADICTED, {})


def _bleached(writer: UnliWriter, person: LeadPerson) -> LabelledPair:
    return writer.bleached_premise(person), writer.bleached(person), ENTAILED, {}


# Kind to weight and maker.
KINDS: dict[str, tuple[int, Callable[[UnliWriter, LeadPerson], LabelledPair]]] = {
    "bleached_to_bleached": (18, _bleached),
    "fact_to_bleached": (10, _fact_to_bleached),
    "share": (26, _share),
    "share_given": (14, _share_given),
    "unlisted": (12, _unlisted),
    "paraphrase": (10, _paraphrase),
    "lead_fact": (4, _lead_fact),
    "contradicted": (6, _contradicted),
}


def class_claims(
    people: Sequence[LeadPerson],
    about: Sequence[LeadPerson],
    split: str,
    number: int,
    seed: int,
) -> Iterator[Document]:
    """Write a document per person and class: ``bleached``, ``common``, ``specific``, ``unlisted``.

    They evaluate w_Info: Core (2407.03572, section 3) weights a claim by its surprise given what is
    true of anyone. All claims are stated by the lead or follow from it. Counted claims have the
    fact (``asked``) and its share as two numbers (``counts``).

    Args:
        people: all people of the split, over whom shares are counted.
        about: people about whom claims are written.
        number: maximum number of claims of each class per person.
    """
    writer = UnliWriter(people, split, random.Random(f"{seed}:claims:{split}"))
    for person in about:
        claims = {kind: [] for kind in ("bleached", "common", "specific", "unlisted")}
        claims["bleached"] = [(writer.bleached(person), {}) for _ in range(number)]
        for fact in writer.rng.sample(person.facts, len(person.facts)):
            if (share := writer.share([], fact)) is not None:
                counted = {"asked": share[1]["asked"], "counts": share[1]["counts"]}
                for kind, (low, high) in (("common", COMMON), ("specific", SPECIFIC)):
                    if low <= share[0] <= high:
                        claims[kind].append((writer.state(person, fact), counted))
        claims["unlisted"] = [(text, {}) for text in person.unlisted]
        for kind, statements in claims.items():
            if statements:
                yield _document(person, kind, dict(statements[:number]))


def _document(person: LeadPerson, kind: str, statements: dict[str, dict]) -> Document:
    return Document(
        id=f"{person.article.passage.title}/{kind}",
        topic=person.article.passage.title,
        text=" ".join(statements),
        claims=[
            Claim(id=f"c{index}", text=text, **counted)
            for index, (text, counted) in enumerate(statements.items())
        ],
        kind=kind,
        group=person.article.group,
    )
