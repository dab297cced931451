"""Montage: true facts in an order that suggests what is false."""

import math
import random
from typing import NamedTuple

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.repetition import MIN_WORDS
from data_builders.written.claims.clauses import (
    clause_of,
    mid_sentence,
    name_of,
    name_topic,
    stems,
    strip_period,
)
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.times import dates_in, ends_in_date, year_range
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    SentenceClaim,
    SuggestsFalse,
    join_sentences,
    names_and_numbers,
)

# Supported claims without a moment that stand before the events, at most.
OPENING = 3
CONNECTIVES = ("Later, ", "Afterwards, ", "Then ", "After that, ", "Some time later, ")


# A claim that ends so without its year is none.
_OPEN = frozenset(
    {"was", "is", "born", "died", "first", "last", "only", "the", "a", "an", "early", "late"}
)


class Event(NamedTuple):
    """A supported claim that happened at a known moment.

    Attributes:
        name: of the claim.
        text: the claim, without its year where that stands at its end.
        when: its moment, as ``year_range`` has it.
    """

    name: str
    text: str
    when: tuple[float, float]


class Montage(Attack):
    """True facts, the later ones first, joined by "later" and "after that".

    Every claim is true by itself (``S``), so a metric of single claims is content; that the second
    came after the first is false by the years of the document's own claims, or since nothing comes
    after death. ``suggests`` of the record lists those pairs. A year at the end of
    a claim is left out, which makes the claim weaker and no less true.

    Source: MontageLie, arXiv 2505.15792.

    Args:
        events: of the text, at most.
    """

    keeps = SuggestsFalse(adds=" ".join(CONNECTIVES))

    def __init__(self, events: PositiveInt = 8):
        self.events = events

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        events = _events(source)
        years = [e for e in events if e.when[0] == e.when[1] and not math.isinf(e.when[0])]
        # Deaths would give it away; only where there is nothing else.
        events = years if len({event.when for event in years}) > 1 else events
        if not any(one.when[0] > other.when[1] for one in events for other in events):
            raise NotApplicable("no two supported claims of different known moments")
        if len(events) > self.events:
            events = rng.sample(events, self.events)
        events.sort(key=lambda event: (-event.when[0], -event.when[1], event.name))
        dated = {event.name for event in events}
        opening = [
            SentenceClaim(strip_period(name_topic(text, source.topic)), "S", (name,))
            for text, name in source.supported.items()
            if name not in dated
            and _introduces(text, source.topic)
            and not any(
                stems(text) <= stems(e.text) or stems(e.text) <= stems(text) for e in events
            )
        ][:OPENING]
        told, pairs = [], []
        for place, event in enumerate(events):
            before = events[place - 1] if place else None
            joined = before is not None and before.when[0] > event.when[1]
            text = name_topic(event.text, source.topic) if not place else event.text
            if joined:
                text = f"{CONNECTIVES[len(pairs) % len(CONNECTIVES)]}{mid_sentence(event.text)}"
                number = len(opening) + place
                pairs.append({"first": f"c{number - 1}", "then": f"c{number}"})
            told.append(SentenceClaim(text, "S", (event.name,)))
        return join_sentences([*opening, *told], more={"suggests": pairs})


def _events(source: Source) -> list[Event]:
    found: list[Event] = []
    for text, name in source.supported.items():
        when = year_range(text)
        if when is None or clause_of(text, source.topic) is None:
            continue
        last = ends_in_date(strip_period(text))
        one_date = last is not None and len(dates_in(text)) == 1
        said = last[0] if one_date and last[0].split()[-1] not in _OPEN else strip_period(text)
        dead = math.isinf(when[0])
        if not dead and not _tells(said, source.topic):
            continue
        if dead and any(math.isinf(event.when[0]) for event in found):
            continue
        if not any(_same(said, event.text) for event in found):
            found.append(Event(name, said, when))
    return found


def _same(one: str, other: str) -> bool:
    return stems(one) <= stems(other) or stems(other) <= stems(one)


def _tells(text: str, topic: str) -> bool:
    names = {word for word in names_and_numbers(text) if word not in name_of(topic).split()}
    return len(text.split()) >= MIN_WORDS and (bool(names) or len(text.split()) > MIN_WORDS + 1)


def _introduces(text: str, topic: str) -> bool:
    clause = clause_of(text, topic)
    return (
        clause is not None and clause.rest.startswith(("is ", "was ")) and year_range(text) is None
    )
