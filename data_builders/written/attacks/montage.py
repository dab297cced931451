"""Montage: true facts in an order that suggests false ones."""

import math
import random
from typing import NamedTuple

from components.english import content_stems
from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.repetition import MIN_WORDS
from data_builders.written.claims.clauses import (
    clause_of,
    mid_sentence,
    name_of,
    name_topic,
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

# Maximum number of undated claims before the events.
MAX_OPENING = 3
MAX_EVENTS = 8
CONNECTIVES = ("Later, ", "Afterwards, ", "Then ", "After that, ", "Some time later, ")


# Words that a claim cannot end with when its year is removed.
_INCOMPLETE = frozenset(
    {"was", "is", "born", "died", "first", "last", "only", "the", "a", "an", "early", "late"}
)


class Event(NamedTuple):
    """A supported claim, without a year at its end, and its time from ``year_range``."""

    name: str
    text: str
    when: tuple[float, float]


class Montage(Attack):
    """True facts in reverse order, joined by "later" and "after that".

    Each claim is true by itself (``S``), so metrics that judge single claims support it. The stated
    order is false by the years in the document's claims, or because nothing happens after death;
    ``suggests`` of the record lists these pairs. A year at the end of a claim is removed, which
    makes the claim weaker but not false.

    Source: MontageLie, arXiv 2505.15792.
    """

    keeps = SuggestsFalse(adds=" ".join(CONNECTIVES))

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        events = _events(source)
        years = [e for e in events if e.when[0] == e.when[1] and not math.isinf(e.when[0])]
        # Deaths would reveal the order, so they are used only if there is nothing else.
        events = years if len({event.when for event in years}) > 1 else events
        if not any(a.when[0] > b.when[1] for a in events for b in events):
            raise NotApplicable("no two supported claims of different known moments")
        if len(events) > MAX_EVENTS:
            events = rng.sample(events, MAX_EVENTS)
        events.sort(key=lambda event: (-event.when[0], -event.when[1], event.name))
        dated = {event.name for event in events}
        opening = [
            SentenceClaim(strip_period(name_topic(text, source.topic)), "S", (name,))
            for text, name in source.supported.items()
            if name not in dated
            and _introduces(text, source.topic)
            and not any(_is_same(text, event.text) for event in events)
        ][:MAX_OPENING]
        claims, pairs = [], []
        for index, event in enumerate(events):
            before = events[index - 1] if index else None
            text = event.text if index else name_topic(event.text, source.topic)
            if before is not None and before.when[0] > event.when[1]:
                text = f"{CONNECTIVES[len(pairs) % len(CONNECTIVES)]}{mid_sentence(event.text)}"
                number = len(opening) + index
                pairs.append({"first": f"c{number - 1}", "then": f"c{number}"})
            claims.append(SentenceClaim(text, "S", (event.name,)))
        return join_sentences([*opening, *claims], more={"suggests": pairs})


def _events(source: Source) -> list[Event]:
    events: list[Event] = []
    for text, name in source.supported.items():
        when = year_range(text)
        if when is None or clause_of(text, source.topic) is None:
            continue
        last = ends_in_date(strip_period(text))
        one_date = last is not None and len(dates_in(text)) == 1
        undated = one_date and last[0].split()[-1] not in _INCOMPLETE
        short = last[0] if undated else strip_period(text)
        if math.isinf(when[0]):
            if any(math.isinf(event.when[0]) for event in events):
                continue
        elif not _is_informative(short, source.topic):
            continue
        if not any(_is_same(short, event.text) for event in events):
            events.append(Event(name, short, when))
    return events


def _is_same(first: str, second: str) -> bool:
    left, right = content_stems(first), content_stems(second)
    return left <= right or right <= left


def _is_informative(text: str, topic: str) -> bool:
    names = names_and_numbers(text) - set(name_of(topic).split())
    return len(text.split()) >= MIN_WORDS and (bool(names) or len(text.split()) > MIN_WORDS + 1)


def _introduces(text: str, topic: str) -> bool:
    clause = clause_of(text, topic)
    is_state = clause is not None and clause.rest.startswith(("is ", "was "))
    return is_state and year_range(text) is None
