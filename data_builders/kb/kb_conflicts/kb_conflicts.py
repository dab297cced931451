"""``kb_conflicts``: true and false claims with conflicting contexts, from a knowledge base.

Half of the claims are true; the others have another value of the same property. Each claim has two
to five contexts; at least one supports it and at least one conflicts with it. Only the sources
separate true from false claims:

- a true and a false claim of the same property get the same numbers of supporting and conflicting
  contexts, so the joint distributions are equal and a majority vote is right half the time;
- a true context is from source k with a probability proportional to its prior r_k, a false one
  proportional to 1 − r_k. If the mean of the priors is one half, a source's share of true contexts
  is its prior, and the signed sum of the log-odds ln r/(1 − r) over the contexts is the log-odds
  that the claim is true;
- wording, asides and order of the contexts are drawn independently.

FactReasoner (2502.18573) weights contexts by such priors; its dataset has true claims only.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import ClassVar

import yaml

from clients.sparql import SparqlClient
from data_builders.builder import Made, Step, Work, option_errors
from data_builders.dataset import Card, read_card
from data_builders.kb.graph import Value, load_items, single_values
from data_builders.kb.kb_conflicts.cues import leak_table, rule_table, source_table
from data_builders.kb.language.statements import overlap
from data_builders.kb.server import KbBuilder, sparql
from data_builders.splits import SPLITS, by_split, drawn_splits
from records import Claim, Document, Passage, RelationPair, UserError

# Fictitious sources; the mean is one half, see above.
SOURCES = {
    "civil register": 0.95,
    "encyclopedia": 0.85,
    "newspaper": 0.65,
    "family chronicle": 0.35,
    "anonymous blog": 0.15,
    "hoax site": 0.05,
}
WORDING = Path(__file__).parent / "wording"
NEAR_YEARS = 15  # preferred maximum distance of a false date


@dataclass(frozen=True)
class Wording:
    """Templates of a property, with ``{topic}`` and ``{value}``; ``date`` if values are dates."""

    claims: tuple[str, ...]
    contexts: tuple[str, ...]
    date: bool = False


@dataclass(frozen=True)
class Matter:
    """A topic's property with its true value and a false one, in words."""

    iri: str
    topic: str
    prop: str
    true: str
    other: str


@dataclass
class KbConflicts(KbBuilder):
    """True and false claims of a knowledge base with contexts of unequal reliability.

    Args:
        wording: ``people``, ``films``, or a YAML file of the same format: property to ``claims``
            and ``contexts``, one template per line with {topic} and {value}, and ``date: true`` for
            dates.
        sources: kind of source to the probability that it is right; with a mean of one half the
            priors are calibrated.
        contexts: least and largest number of contexts per claim.
        claims_per_topic: maximum number of claims per topic, each of another property.
        shares: topics of train, dev and test.
    """

    wording: str = "people"
    sources: dict[str, float] | None = None
    contexts: tuple[int, int] = (2, 5)
    claims_per_topic: int = 4
    shares: tuple[int, int, int] = (8, 1, 1)

    least: ClassVar = {"shares": 0, "contexts": 2, "claims_per_topic": 1}

    def __post_init__(self) -> None:
        self.sources = dict(sorted((SOURCES if self.sources is None else self.sources).items()))
        super().__post_init__()

    def faults(self) -> Iterable[str]:
        yield from super().faults()
        if len(self.sources) < 2 or not all(0 < prior < 1 for prior in self.sources.values()):
            yield "sources: expected at least two, each with a probability in (0, 1)"
        if self.contexts[0] > self.contexts[1]:
            yield "contexts: expected two ascending numbers; set least and largest number"
        yield from option_errors(lambda: self._templates)

    @cached_property
    def _templates(self) -> dict[str, Wording]:
        return read_wording(self.wording, most=self.contexts[1])

    @cached_property
    def _asides(self) -> list[str]:
        lines = (WORDING / "asides.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if not line.startswith("#")]

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: by_split(kind) for kind in ("documents", "relation")}

    def plan(self) -> list[Step]:
        return [
            *super().plan(),
            Step("names: one query per hundred items", self.endpoint),
            Step(
                f"values of {', '.join(self._templates)}: at most two queries per property and "
                "hundred items",
                self.endpoint,
            ),
        ]

    def make(self, work: Work) -> Made:
        matters = self._matters(sparql(work, self.endpoint), work.dropped)
        of = drawn_splits((matter.iri for matter in matters), self.shares, self.seed)
        documents = {}
        for split in SPLITS:
            made = self._documents([m for m in matters if of[m.iri] == split], split, work.dropped)
            if made:
                documents[split] = made
        if not documents:
            raise UserError(
                "population: no two topics with different values of a property; widen it"
            )
        files = {f"documents_{split}.jsonl": made for split, made in documents.items()}
        files |= {
            f"relation_{split}.jsonl": list(relation_pairs(made))
            for split, made in documents.items()
        }
        templates = {
            prop: [entry.claims, entry.contexts] for prop, entry in self._templates.items()
        }
        wording = {"wording": Path(self.wording).name, "templates": templates}
        return Made(files, self._card(documents), details=wording)

    def _matters(self, client: SparqlClient, dropped: Counter[str]) -> list[Matter]:
        names = load_items(client, self.population, dropped)
        iris = sorted(names)[: self.limit]
        rng = random.Random(f"{self.seed}:others")
        matters_of: dict[str, list[Matter]] = defaultdict(list)
        for prop, entry in self._templates.items():
            values = single_values(client, iris, prop, entry.date, dropped)
            dropped[f"topic without a value of {prop}"] += len(iris) - len(values)
            pool = [values[iri] for iri in iris if iri in values]
            for iri in (iri for iri in iris if iri in values):
                other = other_value(rng, values[iri], pool)
                if other is None:
                    dropped[f"no other value of {prop}"] += 1
                    continue
                words = (in_words(value, entry.date) for value in (values[iri], other))
                matters_of[iri].append(Matter(iri, names[iri], prop, *words))
        matters = []
        for iri in iris:
            rng.shuffle(matters_of[iri])
            matters.extend(matters_of[iri][: self.claims_per_topic])
            dropped["claim beyond claims_per_topic"] += max(
                0, len(matters_of[iri]) - self.claims_per_topic
            )
        return matters

    def _documents(
        self, matters: Sequence[Matter], split: str, dropped: Counter[str]
    ) -> list[Document]:
        rng = random.Random(f"{self.seed}:{split}")
        dealt = deal_contexts(rng, matters, self.contexts, dropped)
        by_topic: dict[str, list[tuple[Matter, bool, int, int]]] = defaultdict(list)
        for claim in dealt:
            by_topic[claim[0].iri].append(claim)
        return [self._document(rng, by_topic[iri]) for iri in sorted(by_topic)]

    def _document(
        self, rng: random.Random, dealt: Sequence[tuple[Matter, bool, int, int]]
    ) -> Document:
        dealt = rng.sample(dealt, len(dealt))
        topic = dealt[0][0].topic
        claims, passages = [], []
        for index, (matter, true, supporting, conflicting) in enumerate(dealt):
            claimed = matter.true if true else matter.other
            text = fill(rng.choice(self._templates[matter.prop].claims), topic, claimed)
            sides = [True] * supporting + [False] * conflicting
            rng.shuffle(sides)
            contexts = [
                Passage(id=f"c_a{index}_{number}", title=topic, **context)
                for number, context in enumerate(self._contexts(rng, matter, true, sides))
            ]
            passages.extend(contexts)
            claims.append(
                Claim(
                    id=f"a{index}",
                    text=text,
                    sentence=index,
                    source=text,
                    label="S" if true else "NS",
                    contexts=[passage.id for passage in contexts],
                    property=matter.prop,
                )
            )
        return Document(
            id=dealt[0][0].iri.rsplit("/", 1)[-1],
            topic=topic,
            text=" ".join(claim.text for claim in claims),
            claims=claims,
            passages=passages,
        )

    def _contexts(
        self, rng: random.Random, matter: Matter, true: bool, sides: Sequence[bool]
    ) -> Iterator[dict]:
        names = list(self.sources)
        templates = rng.sample(self._templates[matter.prop].contexts, len(sides))
        for template, supports in zip(templates, sides, strict=True):
            truthful = supports == true
            weights = [p if truthful else 1 - p for p in self.sources.values()]
            source = rng.choices(names, weights)[0]
            statement = fill(template, matter.topic, matter.true if truthful else matter.other)
            asides = rng.sample(self._asides, rng.choice((0, 1, 2)))
            n_before = rng.randint(0, len(asides))
            yield {
                "text": " ".join([*asides[:n_before], statement, *asides[n_before:]]),
                "source": source,
                "prior": self.sources[source],
                "relation": "entailment" if supports else "contradiction",
            }

    def _card(self, documents: Mapping[str, list[Document]]) -> Card:
        made = [document for split in documents.values() for document in split]
        mean = sum(self.sources.values()) / len(self.sources)
        return read_card(
            "kb_conflicts",
            rules=rule_table(made),
            sources=source_table(made),
            leaks=leak_table(made),
            mean=f"{mean:.2f}",
            low=self.contexts[0],
            high=self.contexts[1],
        )


def relation_pairs(documents: Sequence[Document]) -> Iterator[RelationPair]:
    """Pair each context with its claim, another claim, and contexts of both claims.

    FactReasoner needs a relation model for all of these. Two contexts of a claim agree or disagree
    by their relations to it, ignoring asides; different properties are neutral.
    """
    for document in documents:
        texts = {passage.id: passage for passage in document.passages}
        following = [*document.claims[1:], *document.claims[:1]]
        for claim, other in zip(document.claims, following, strict=True):
            contexts = [texts[name] for name in claim.contexts]
            pairs = [(c.text, claim.text, c.relation, "kb/conflict") for c in contexts]
            if other is not claim:
                pairs += [(c.text, other.text, "neutral", "kb/conflict_other") for c in contexts]
                other_texts = cycle(texts[name].text for name in other.contexts)
                pairs += [
                    (c.text, text, "neutral", "kb/conflict_other_contexts")
                    for c, text in zip(contexts, other_texts, strict=False)
                ]
            for index, left in enumerate(contexts):
                for right in contexts[index + 1 :]:
                    relation = "entailment" if left.relation == right.relation else "contradiction"
                    pairs.append((left.text, right.text, relation, "kb/conflict_contexts"))
            for premise, hypothesis, label, source in pairs:
                yield RelationPair(
                    premise=premise,
                    hypothesis=hypothesis,
                    label=label,
                    source=source,
                    group=document.topic,
                )


def read_wording(wording: str, most: int) -> dict[str, Wording]:
    """Read the templates of each property, from a file of this package or a custom one.

    There must be at least ``most`` contexts, since a claim's contexts have different ones.
    """
    path = WORDING / f"{wording}.yaml"
    path = path if path.is_file() else Path(wording)
    if not path.is_file():
        raise UserError(
            f"wording: {wording}: no such file; expected people, films, or the path of a YAML file"
        )
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())[:200]}") from None
    if not entries or not isinstance(entries, dict):
        raise UserError(f"{path}: contains no property; see {WORDING / 'people.yaml'}")
    wordings = {}
    for prop, entry in sorted(entries.items()):
        claims, contexts = (
            tuple(line.strip() for line in entry.get(name, "").splitlines() if line.strip())
            for name in ("claims", "contexts")
        )
        if not claims or len(contexts) < most:
            raise UserError(f"{path}: {prop}: needs a claim and at least {most} contexts")
        for template in (*claims, *contexts):
            if "{topic}" not in template or "{value}" not in template:
                raise UserError(f"{path}: {prop}: {template!r} lacks {{topic}} or {{value}}")
        if set(claims) & set(contexts):
            raise UserError(f"{path}: {prop}: a template is used for both claims and contexts")
        wordings[prop] = Wording(claims, contexts, bool(entry.get("date")))
    return wordings


def fill(template: str, topic: str, value: str) -> str:
    """Fill a template."""
    text = template.replace("{topic}", topic).replace("{value}", value)
    return text[:1].upper() + text[1:]


def in_words(value: Value, date: bool) -> str:
    """Return a value as templates use it: dates with their preposition."""
    if not date:
        return value.label
    return f"{'on' if _precision(value) == 3 else 'in'} {value.label}"


def _precision(value: Value) -> int:
    return len(value.label.removesuffix(" BC").split())  # 1: a year, 2: a month, 3: a day


def other_value(rng: random.Random, value: Value, pool: Sequence[Value]) -> Value | None:
    """Draw another value of the property in proportion to its frequency; ``None`` if none fits.

    Dates have another year and the same precision, and are near if possible.
    """
    if value.year is None:
        fitting = [other for other in pool if not overlap(other.label, value.label)]
    else:
        precise = _precision(value)
        fitting = [v for v in pool if v.year != value.year and _precision(v) == precise]
        near = [v for v in fitting if abs(v.year - value.year) <= NEAR_YEARS]
        fitting = near or fitting
    return rng.choice(fitting) if fitting else None


def deal_contexts(
    rng: random.Random, matters: Sequence[Matter], contexts: tuple[int, int], dropped: Counter[str]
) -> list[tuple[Matter, bool, int, int]]:
    """Draw truth and numbers of supporting and conflicting contexts of each claim.

    Pairs of claims of one property, one true and one false, get the same numbers. Unpaired claims
    are dropped.
    """
    by_property: dict[str, list[Matter]] = defaultdict(list)
    for matter in matters:
        by_property[matter.prop].append(matter)
    pairs = []
    for prop in sorted(by_property):
        shuffled = rng.sample(by_property[prop], len(by_property[prop]))
        dropped["claim without a partner of opposite truth"] += len(shuffled) % 2
        pairs.extend(zip(shuffled[::2], shuffled[1::2], strict=False))
    rng.shuffle(pairs)
    low, high = contexts
    span = high - low + 1
    dealt = []
    for index, pair in enumerate(pairs):
        number = low + index % span
        supporting = 1 + (index // span) % (number - 1)
        dealt.extend(
            (matter, true, supporting, number - supporting)
            for matter, true in zip(pair, (True, False), strict=True)
        )
    return dealt
