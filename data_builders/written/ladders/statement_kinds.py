"""Statements about a topic by kind: true, false in one respect, or uninformative."""

import random
from collections.abc import Iterator, Sequence
from typing import get_args

from data_builders.written.attacks.discourse import Framed, Hidden
from data_builders.written.attacks.frames import DiscourseForm, HiddenForm
from data_builders.written.attacks.phrases import (
    Bank,
    Kind,
    family_of,
    fill,
    join_claims,
    lines_of,
    phrase_bank,
    phrases,
)
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import NotApplicable, SentenceClaim
from data_builders.written.ladders.lead_topics import FalseVersion, Statement, StatementTopic
from records import Claim, Document

JUDGE: tuple[Kind, ...] = tuple(phrase_bank()["judge"])
# A kind that stands for several.
GROUPS = {
    "false": ("number", "name"),
    "subject": ("relative", "rival", "namesake"),
    "frame": ("refuted", "fictional"),
}
TRIES = 20  # per statement


def state(statement: Statement, false: FalseVersion | None, text: str) -> SentenceClaim:
    """A statement in the words of ``text``, or its false version."""
    return SentenceClaim(text, "NS" if false else "S", () if false else (statement.fact,))


def affirm(
    rng: random.Random,
    topic: StatementTopic,
    statement: Statement,
    false: FalseVersion | None,
    bank: Bank,
) -> SentenceClaim:
    """Put a statement, or its false version, into a true twin of a phrase of attacks."""
    if false is None:
        pairs = [(text, None) for text in statement.wordings]
        pairs += [(version.instead_of, version.text) for version in statement.false]
    else:
        pairs = [(false.text, false.instead_of)]
    rng.shuffle(pairs)
    for kind in rng.sample(JUDGE, len(JUDGE)):
        templates = phrases(kind, f"true_{bank}")
        for template in rng.sample(templates, len(templates)):
            for pair in pairs:
                text = fill(template, pair[0], topic.name, pair[1])
                if text is not None:
                    return state(statement, false, text)
    raise ValueError(f"{topic.name}: no twin fits {statement.text!r}")


def compound(
    rng: random.Random, topic: StatementTopic, first: SentenceClaim, second: Statement
) -> SentenceClaim:
    """Join a claim and a true statement; a compound with a false part is false."""
    template = rng.choice(lines_of("joined"))
    text = join_claims(template, first.text, rng.choice(second.wordings), topic.name)
    facts = (*first.rests_on, second.fact) if first.label == "S" else ()
    return SentenceClaim(text, first.label, facts)


def draw_statements(
    rng: random.Random,
    topic: StatementTopic,
    kind: str,
    bank: Bank,
    number: int,
    other_topics: Sequence[StatementTopic] = (),
) -> Iterator[SentenceClaim]:
    """Draw at most ``number`` different statements of a kind.

    Args:
        kind: ``true``, ``reworded``, ``affirmed``, ``number``, ``name``, ``relation``,
            ``compound``, ``part``, ``off topic``, ``discourse``, ``hidden``, a kind of phrase, or a
            key of ``GROUPS``.
        other_topics: topics of statements that are off topic.
    """
    texts: set[str] = set()
    kinds = GROUPS.get(kind, (kind,))
    left = rng.sample(topic.statements, len(topic.statements))
    for attempt in range(number * TRIES):
        claim = _draw(rng, topic, left[attempt % len(left)], rng.choice(kinds), bank, other_topics)
        if claim is not None and claim.text not in texts:
            texts.add(claim.text)
            yield claim
        if len(texts) == number:
            return


def _draw(
    rng: random.Random,
    topic: StatementTopic,
    statement: Statement,
    kind: str,
    bank: Bank,
    other_topics: Sequence[StatementTopic],
) -> SentenceClaim | None:
    true = SentenceClaim(statement.text, "S", (statement.fact,))
    second = rng.choice([s for s in topic.statements if s != statement])
    false = [
        SentenceClaim(version.text, "NS")
        for version in statement.false
        if kind in (version.changed, "part") and version.bank in (bank, None)
    ]
    match kind:
        case "true":
            return true
        case "reworded":
            return (
                true._replace(text=rng.choice(statement.reworded)) if statement.reworded else None
            )
        case "affirmed":
            return affirm(rng, topic, statement, None, bank)
        case "compound":
            return compound(rng, topic, true, second)
        case "number" | "name" | "relation":
            return rng.choice(false) if false else None
        case "part":
            return compound(rng, topic, rng.choice(false), second) if false else None
        case "off topic":
            text = rng.choice(rng.choice(other_topics).statements).text
            return SentenceClaim(text, "S")
        case "discourse":
            attack = Framed(rng.choice(get_args(DiscourseForm)), bank, sentences=1)
            return _attacked(attack, rng, topic, statement)
        case "hidden":
            attack = Hidden(rng.choice(get_args(HiddenForm)), bank, sentences=1)
            return _attacked(attack, rng, topic, statement)
    text = fill(rng.choice(phrases(kind, bank)), rng.choice(statement.wordings), topic.name)
    return text and SentenceClaim(text, "NS" if family_of(kind) == "judge" else "S")


def _attacked(
    attack: Framed | Hidden, rng: random.Random, topic: StatementTopic, statement: Statement
) -> SentenceClaim | None:
    """A text of one statement that is taken back, or that has hidden falsehoods behind it."""
    claim = Claim(id="c0", text=statement.text, label="S", **statement.versions(statement.text))
    document = Document(id=topic.name, topic=topic.name, text=claim.text, claims=[claim])
    try:
        attacked = attack.attack(Source(topic.name, document), World([], []), rng)
    except NotApplicable:
        return None
    return SentenceClaim(attacked.text, "NS")
