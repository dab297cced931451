"""``kb_conflicts``: true and false claims among contexts that disagree, from a knowledge base.

Half the claims are true, half give another value of the same property. Each has two to five
contexts, of which at least one supports it and at least one conflicts with it. The only thing that
tells a true claim from a false one is who says what:

- the numbers of supporting and conflicting contexts are dealt out to a true and a false claim of
  the same property at a time, so that their joint distribution is the same for both and a
  majority of contexts is right half the time;
- a context that tells the truth comes from source k with a chance in proportion to its prior
  r_k, one that does not in proportion to 1 − r_k. Where the priors' mean is one half, the share of
  true contexts of a source is its prior, and the sum of the log-odds ln r/(1 − r) over the
  contexts, those against the claim taken off, is the log-odds that the claim is true;
- wording, asides and order of the contexts are drawn without a look at any of this.

FactReasoner (2502.18573) weighs contexts by such priors; its own set has true claims only.
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
from data_builders.dataset import Card
from data_builders.kb.graph import Value, load_items, single_values
from data_builders.kb.kb_conflicts.cues import leak_table, rule_table, source_table
from data_builders.kb.language.statements import overlap
from data_builders.kb.server import KbBuilder, sparql
from data_builders.splits import SPLITS, by_split, drawn_splits
from records import Claim, Document, Passage, RelationPair, UserError

# Made-up kinds of sources; the mean is one half, see above.
SOURCES = {
    "civil register": 0.95,
    "encyclopedia": 0.85,
    "newspaper": 0.65,
    "family chronicle": 0.35,
    "anonymous blog": 0.15,
    "hoax site": 0.05,
}


@dataclass
class KbConflicts(KbBuilder):
    """True and false claims of a knowledge base among contexts of unequal reliability.

    Args:
        wording: ``people``, ``films``, or a YAML file like theirs: property to ``claims`` and
            ``contexts``, templates a line with {topic} and {value}, and ``date: true`` for dates.
        sources: kind of source to the probability that it tells the truth; with a mean of one
            half the priors are calibrated.
        contexts: least and largest number of contexts of a claim.
        claims_per_topic: at most this many claims about a topic, each of another property.
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
            yield "sources: give at least two, each with a probability between 0 and 1"
        if self.contexts[0] > self.contexts[1]:
            yield "contexts: give two numbers, the second no less than the first"
        yield from option_errors(lambda: self._told)

    @cached_property
    def _told(self) -> dict[str, Wording]:
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
            Step("names: a query for each hundred items", self.endpoint),
            Step(
                f"values of {', '.join(self._told)}: at most two queries a property for each "
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
                "population: no topic with a value to tell, and another topic with another "
                "value; widen it"
            )
        files = {f"documents_{split}.jsonl": made for split, made in documents.items()}
        files |= {
            f"relation_{split}.jsonl": list(relation_pairs(made))
            for split, made in documents.items()
        }
        templates = {prop: [told.claims, told.contexts] for prop, told in self._told.items()}
        wording = {"wording": Path(self.wording).name, "templates": templates}
        return Made(files, self._card(documents), details=wording)

    def _matters(self, client: SparqlClient, dropped: Counter[str]) -> list[Matter]:
        names = load_items(client, self.population, dropped)
        iris = sorted(names)[: self.limit]
        rng = random.Random(f"{self.seed}:others")
        found: dict[str, list[Matter]] = defaultdict(list)
        for prop, told in self._told.items():
            values = single_values(client, iris, prop, told.date, dropped)
            dropped[f"topic without a value of {prop}"] += len(iris) - len(values)
            pool = [values[iri] for iri in iris if iri in values]
            for iri in (iri for iri in iris if iri in values):
                other = other_value(rng, values[iri], pool)
                if other is None:
                    dropped[f"no other value of {prop}"] += 1
                    continue
                words = (in_words(value, told.date) for value in (values[iri], other))
                found[iri].append(Matter(iri, names[iri], prop, *words))
        matters = []
        for iri in iris:
            rng.shuffle(found[iri])
            matters.extend(found[iri][: self.claims_per_topic])
            dropped["claim beyond claims_per_topic"] += max(
                0, len(found[iri]) - self.claims_per_topic
            )
        return matters

    def _documents(
        self, matters: Sequence[Matter], split: str, dropped: Counter[str]
    ) -> list[Document]:
        rng = random.Random(f"{self.seed}:{split}")
        dealt = deal(rng, matters, self.contexts, dropped)
        by_topic: dict[str, list[tuple[Matter, bool, int, int]]] = defaultdict(list)
        for one in dealt:
            by_topic[one[0].iri].append(one)
        return [self._document(rng, by_topic[iri]) for iri in sorted(by_topic)]

    def _document(
        self, rng: random.Random, dealt: Sequence[tuple[Matter, bool, int, int]]
    ) -> Document:
        dealt = rng.sample(dealt, len(dealt))
        topic = dealt[0][0].topic
        claims, passages = [], []
        for index, (matter, true, supporting, conflicting) in enumerate(dealt):
            claimed = matter.true if true else matter.other
            text = fill(rng.choice(self._told[matter.prop].claims), topic, claimed)
            sides = [True] * supporting + [False] * conflicting
            rng.shuffle(sides)
            own = [
                Passage(id=f"c_a{index}_{place}", title=topic, **context)
                for place, context in enumerate(self._contexts(rng, matter, true, sides))
            ]
            passages.extend(own)
            claims.append(
                Claim(
                    id=f"a{index}",
                    text=text,
                    sentence=index,
                    source=text,
                    label="S" if true else "NS",
                    contexts=[passage.id for passage in own],
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
        templates = rng.sample(self._told[matter.prop].contexts, len(sides))
        for template, supports in zip(templates, sides, strict=True):
            truthful = supports == true
            weights = [p if truthful else 1 - p for p in self.sources.values()]
            source = rng.choices(names, weights)[0]
            said = fill(template, matter.topic, matter.true if truthful else matter.other)
            asides = rng.sample(self._asides, rng.choice((0, 1, 2)))
            before = rng.randint(0, len(asides))
            yield {
                "text": " ".join([*asides[:before], said, *asides[before:]]),
                "source": source,
                "prior": self.sources[source],
                "relation": "entailment" if supports else "contradiction",
            }

    def _card(self, documents: Mapping[str, list[Document]]) -> Card:
        made = [document for split in documents.values() for document in split]
        mean = sum(self.sources.values()) / len(self.sources)
        return Card(
            pretty_name="Knowledge-base claims among conflicting contexts",
            tags=("factuality", "knowledge-conflicts", "nli", "wikidata"),
            text=CARD.format(
                rules=rule_table(made),
                sources=source_table(made),
                leaks=leak_table(made),
                mean=f"{mean:.2f}",
                low=self.contexts[0],
                high=self.contexts[1],
            ),
        )


def relation_pairs(documents: Sequence[Document]) -> Iterator[RelationPair]:
    """Each context against its claim, another claim, and contexts of its claim and of another.

    FactReasoner asks a relation model about all of them. Two contexts of a claim agree or disagree
    by their relations to it, their asides left out of account; of another property a context tells
    nothing, whether a claim or a context has it.
    """
    for document in documents:
        texts = {passage.id: passage for passage in document.passages}
        following = [*document.claims[1:], *document.claims[:1]]
        for claim, other in zip(document.claims, following, strict=True):
            own = [texts[name] for name in claim.contexts]
            pairs = [(c.text, claim.text, c.relation, "kb/conflict") for c in own]
            if other is not claim:
                pairs += [(c.text, other.text, "neutral", "kb/conflict_other") for c in own]
                others = cycle(texts[name].text for name in other.contexts)
                pairs += [
                    (c.text, text, "neutral", "kb/conflict_other_contexts")
                    for c, text in zip(own, others, strict=False)
                ]
            for place, one in enumerate(own):
                for two in own[place + 1 :]:
                    relation = "entailment" if one.relation == two.relation else "contradiction"
                    pairs.append((one.text, two.text, relation, "kb/conflict_contexts"))
            for premise, hypothesis, label, source in pairs:
                yield RelationPair(
                    premise=premise,
                    hypothesis=hypothesis,
                    label=label,
                    source=source,
                    group=document.topic,
                )


CARD = """\
Claims about topics of a Wikidata-shaped knowledge base, half of them true (`label` S), half with
another value of the same property (NS), each among {low} to {high} contexts that disagree.

- `documents`: one document a topic, a claim a property; `contexts` names a claim's passages. A
  passage has its kind of `source`, its `prior` (the probability that what it says is true) and its
  `relation` to the claim, which is known because a rule made it.
- `relation`: each context against its claim (`source` kb/conflict), against a claim of another
  property, neutral (kb/conflict_other), against a context of that claim, neutral
  (kb/conflict_other_contexts), and against the claim's other contexts, their asides left out of
  account (kb/conflict_contexts). `group` is the topic; topics belong to one split.

True and false claims have the same numbers of supporting and conflicting contexts, property by
property, and the same wordings; what tells them apart is that sources with a high prior tell the
truth more often. Share of the claims that simple rules get right, given the relations; a tie
counts half:

{rules}

What must say nothing about a claim's truth, as the AUROC of a true claim (0.5 is chance):

{leaks}

How often each kind of source tells the truth; where the mean of the priors (here {mean}) is one
half, that is its prior up to chance, elsewhere it cannot be, since the numbers are balanced:

{sources}

**Half the claims and half the contexts are false statements about real things, made on purpose;
never show them without their mark.** The knowledge base is taken as complete and right. The
sources are made up. A place that lies inside another one counts as another place. Wordings are
shared by the splits; only topics are held out.
"""


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
            raise UserError(f"{path}: {prop}: a template is both a claim's and a context's")
        found[prop] = Wording(claims, contexts, bool(entry.get("date")))
    return found


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

    Of dates one of another year and the same precision, if possible one that is near.
    """
    if value.year is None:
        fitting = [other for other in pool if not overlap(other.label, value.label)]
    else:
        words = len(value.label.split())
        fitting = [v for v in pool if v.year != value.year and len(v.label.split()) == words]
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
