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

from clients.polite import SECONDS_A_REQUEST
from clients.sparql import SparqlClient
from data_builders.builder import AskingBuilder, Made, Step, Work, complaint
from data_builders.dataset import Card
from data_builders.kb.graph import POPULATION, check_population, load_items, single_values
from data_builders.kb.kb_conflicts.cues import leak_table, rule_table, source_table
from data_builders.kb.kb_conflicts.matters import (
    WORDING,
    Matter,
    Wording,
    deal,
    fill,
    in_words,
    other_value,
    read_wording,
)
from data_builders.kb.server import sparql
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
class KbConflicts(AskingBuilder):
    """True and false claims of a knowledge base among contexts of unequal reliability.

    Args:
        output: folder of the dataset.
        endpoint: ``snapshot`` for the embedded file behind a local server, the path of another
            Turtle file (``.ttl``), or the URL of a SPARQL service.
        population: SPARQL patterns that bind ``?item``; narrow it on a big endpoint.
        wording: ``people``, ``films``, or a YAML file like theirs: property to ``claims`` and
            ``contexts``, templates a line with {topic} and {value}, and ``date: true`` for dates.
        sources: kind of source to the probability that it tells the truth; with a mean of one
            half the priors are calibrated.
        contexts: least and largest number of contexts of a claim.
        claims_per_topic: at most this many claims about a topic, each of another property.
        shares: topics of train, dev and test.
        user_agent: who asks, for a remote endpoint.
        cache_dir: folder of kept answers; null keeps them in ``output`` until the dataset is
            whole.
        seed: of all choices.
        limit: only the first so many topics, for a trial.
    """

    endpoint: str = "snapshot"
    population: str = POPULATION
    wording: str = "people"
    sources: dict[str, float] | None = None
    contexts: tuple[int, int] = (2, 5)
    claims_per_topic: int = 4
    shares: tuple[int, int, int] = (8, 1, 1)

    asks = ("endpoint",)
    least: ClassVar = {"shares": 0, "contexts": 2, "claims_per_topic": 1}

    def __post_init__(self) -> None:
        self.sources = dict(sorted((SOURCES if self.sources is None else self.sources).items()))
        super().__post_init__()

    def faults(self) -> Iterable[str]:
        """What cannot select, tell or contradict anything."""
        yield from complaint(check_population, self.population)
        if len(self.sources) < 2 or not all(0 < prior < 1 for prior in self.sources.values()):
            yield "sources: give at least two, each with a probability between 0 and 1"
        if self.contexts[0] > self.contexts[1]:
            yield "contexts: give two numbers, the second no less than the first"
        yield from complaint(lambda: self._told)

    @cached_property
    def _told(self) -> dict[str, Wording]:
        return read_wording(self.wording, most=self.contexts[1])

    @cached_property
    def _asides(self) -> list[str]:
        lines = (WORDING / "asides.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if not line.startswith("#")]

    def files(self) -> dict[str, dict[str, str]]:
        """The claims with their contexts, and the pairs of both, by split."""
        return {kind: by_split(kind) for kind in ("documents", "relation")}

    def plan(self) -> list[Step]:
        """What a build would ask; how much depends on how many items the population has."""
        return [
            Step("the population", self.endpoint, 1, seconds=SECONDS_A_REQUEST),
            Step("names: a query for each hundred items", self.endpoint),
            Step(
                f"values of {', '.join(self._told)}: at most two queries a property for each "
                "hundred items",
                self.endpoint,
            ),
        ]

    def make(self, work: Work) -> Made:
        """The claims about what the endpoint tells."""
        parts = self._split(self._matters(sparql(work, self.endpoint), work.dropped))
        documents = {
            split: self._documents(matters, split, work.dropped)
            for split, matters in parts.items()
            if matters
        }
        documents = {split: made for split, made in documents.items() if made}
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
        return Made(files, self._card(documents), found=wording)

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

    def _split(self, matters: Sequence[Matter]) -> dict[str, list[Matter]]:
        of = drawn_splits((matter.iri for matter in matters), self.shares, self.seed)
        return {split: [m for m in matters if of[m.iri] == split] for split in SPLITS}

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
