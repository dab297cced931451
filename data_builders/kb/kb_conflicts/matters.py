"""What the claims of ``kb_conflicts`` are about, their wording, and how truth is dealt out."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from data_builders.kb.another_value import other_values
from data_builders.kb.graph import Value
from records import UserError

WORDING = Path(__file__).parent / "wording"
# A false date lies at most so many years from the true one where the knowledge base has such.
NEAR_YEARS = 15


@dataclass(frozen=True)
class Wording:
    """How a property is told: templates with ``{topic}`` and ``{value}``.

    Attributes:
        date: whether the values are dates.
    """

    claims: tuple[str, ...]
    contexts: tuple[str, ...]
    date: bool = False


@dataclass(frozen=True)
class Matter:
    """A property of a topic with its true value and another one.

    Attributes:
        iri: the topic's.
        topic: its name.
        prop: e.g. ``P19``.
        true: the value that the knowledge base holds, in words.
        other: a value that it does not hold.
    """

    iri: str
    topic: str
    prop: str
    true: str
    other: str


def read_wording(wording: str, most: int) -> dict[str, Wording]:
    """The templates of each property, by property.

    Args:
        wording: name of a file of this package, or path of one's own.
        most: largest number of contexts; each of a claim's has another template.
    """
    path = WORDING / f"{wording}.yaml"
    path = path if path.is_file() else Path(wording)
    if not path.is_file():
        raise UserError(f"wording: {wording}: give people, films, or the path of a YAML file")
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no YAML: {' '.join(str(error).split())[:200]}") from None
    if not told or not isinstance(told, dict):
        raise UserError(f"{path}: no property; see {WORDING / 'people.yaml'}")
    found = {}
    for prop, entry in sorted(told.items()):
        if not isinstance(entry, dict):
            raise UserError(f"{path}: {prop}: expected `claims` and `contexts`")
        claims, contexts = (_templates(f"{path}: {prop}", entry, n) for n in ("claims", "contexts"))
        if not claims or len(contexts) < most:
            raise UserError(f"{path}: {prop}: needs a claim and at least {most} contexts")
        for template in (*claims, *contexts):
            if "{topic}" not in template or "{value}" not in template:
                raise UserError(f"{path}: {prop}: {template!r} lacks {{topic}} or {{value}}")
        if set(claims) & set(contexts):
            raise UserError(f"{path}: {prop}: a template is both a claim's and a context's")
        found[prop] = Wording(claims, contexts, bool(entry.get("date")))
    return found


def _templates(where: str, entry: dict, name: str) -> tuple[str, ...]:
    told = entry.get(name, "")
    if not isinstance(told, str):
        raise UserError(f"{where}: {name}: give one text, `{name}: |` with a template a line below")
    return tuple(line.strip() for line in told.splitlines() if line.strip())


def fill(template: str, topic: str, value: str) -> str:
    """A template as a sentence."""
    text = template.replace("{topic}", topic).replace("{value}", value)
    return text[:1].upper() + text[1:]


def in_words(value: Value, date: bool) -> str:
    """A value as the templates take it: dates with their preposition."""
    if not date:
        return value.label
    day = len(value.label.split()) > 2  # "7 May 1861" rather than "1861" or "44 BC"
    return f"{'on' if day else 'in'} {value.label}"


def other_value(rng: random.Random, value: Value, pool: Sequence[Value]) -> Value | None:
    """Another value of the property, as likely as it is true of somebody; ``None`` if none fits.

    Of dates if possible one that is near.
    """
    fitting = other_values(value, pool)
    if value.year is not None:
        near = [v for v in fitting if abs(v.year - value.year) <= NEAR_YEARS]
        fitting = near or fitting
    return rng.choice(fitting) if fitting else None


def deal(
    rng: random.Random,
    matters: Sequence[Matter],
    contexts: tuple[int, int],
    dropped: Counter[str],
) -> list[tuple[Matter, bool, int, int]]:
    """Truth, and numbers of supporting and conflicting contexts, of each claim.

    Both claims of a pair have the same property and the same numbers; one is true, one is false.
    What finds no partner is left out and counted.
    """
    by_property: dict[str, list[Matter]] = defaultdict(list)
    for matter in matters:
        by_property[matter.prop].append(matter)
    pairs = []
    for prop in sorted(by_property):
        own = rng.sample(by_property[prop], len(by_property[prop]))
        dropped["claim without a partner of the other truth"] += len(own) % 2
        pairs.extend(zip(own[::2], own[1::2], strict=False))
    rng.shuffle(pairs)
    low, high = contexts
    span = high - low + 1
    found = []
    for index, pair in enumerate(pairs):
        number = low + index % span
        supporting = 1 + (index // span) % (number - 1)
        found.extend(
            (matter, true, supporting, number - supporting)
            for matter, true in zip(pair, (True, False), strict=True)
        )
    return found
