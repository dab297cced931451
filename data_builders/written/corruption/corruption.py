"""``corruption``: supported subclaims, half of them made false, with adversarial padding.

Core (arXiv 2407.03572, section 5.3 and appendix B.2): a text of known factual precision is padded
with k sentences that say nothing (or one thing over and over), and a metric that can be gamed
rises with k. The corruption of a document is the same for every k, so that the curves are paired.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar, Literal

from components.sentences import split_sentences
from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import Card
from data_builders.journal import journalled, model_name, write_texts
from data_builders.written.adversarial import shipped_prompts, sift
from data_builders.written.corruption.corrupters import Change, Corrupter, ToChange
from data_builders.written.corruption.sources import (
    Padding,
    Source,
    bleached_sentences,
    read_sources,
    told_sentences,
)
from data_builders.written.corruption.texts import as_sentence, merge, place_claims
from eval.models.chat import Writer
from records import Claim, Document, UserError

# Texts a topic that a prompted model writes to take adversarial sentences from.
TEXTS = 5


@dataclass
class Corruption(Builder):
    """Supported subclaims, some made false, merged, with k adversarial sentences appended.

    Args:
        output: folder of the dataset.
        documents: files of documents with labelled ``claims`` (or another project's, by its field
            names), or of generations whose ``sentences`` have a truth.
        corrupter: who makes a claim false, by ``class_path``: ``ValueSwap`` (a rule over the
            knowledge base) or ``PromptedCorrupter``.
        probability: with which a claim is to be changed.
        appended: the numbers k of appended sentences; null for 0 to 20.
        kind: what is appended: ``info`` (true of anyone) or ``repetitive`` (one thing over and
            over).
        adversarial: files of generation records on the same topics to take sentences from.
        writer: a language model that writes them, where there are no files; without either, the
            ``info`` sentences come from the wordings of ``kb_pairs``.
        merger: a language model that merges the claims to a text that reads well; null puts them
            one after the other.
        source_kind: only the documents of this kind, e.g. ``normal``; null takes all.
        max_new_tokens: most tokens of a merged or an adversarial text.
        seed: of all choices.
        limit: only the first so many documents, for a trial.

    Raises:
        UserError: a probability out of [0, 1], a negative k, or repetitive sentences from nowhere.
    """

    documents: list[str]
    corrupter: Corrupter
    probability: float = 0.5
    appended: list[int] | None = None
    kind: Literal["info", "repetitive"] = "info"
    adversarial: list[str] | None = None
    writer: Writer | None = None
    merger: Writer | None = None
    source_kind: str | None = None
    max_new_tokens: int = 512

    reads = ("documents", "adversarial")
    least: ClassVar = {"max_new_tokens": 1}
    probabilities = ("probability",)

    def __post_init__(self) -> None:
        self.appended = sorted(set(range(21) if self.appended is None else self.appended))
        super().__post_init__()

    def faults(self) -> Iterable[str]:
        """No k, and sentences from nowhere or from two places."""
        if not self.appended or self.appended[0] < 0:
            yield "appended: give numbers of sentences from 0 upwards"
        if self.kind == "repetitive" and not self.adversarial and self.writer is None:
            yield "kind: repetitive needs `adversarial` files or a `writer`"
        if self.adversarial and self.writer is not None:
            yield "adversarial, writer: give one of the two"

    def files(self) -> dict[str, dict[str, str]]:
        """The documents, and what was changed in them."""
        return {kind: {"test": f"{kind}.jsonl"} for kind in ("documents", "changes")}

    def plan(self) -> list[Step]:
        """How many claims are to be changed, texts merged and texts written, at most."""
        sources = self._sources(Counter())
        claims = sum(len(own) for own in self._drawn(sources))
        who = str(self.corrupter.identity.get("corrupter"))
        steps = [Step("claims to be made false", who, claims, "claims")]
        if self.merger is not None:
            name = model_name(self.merger)
            steps.append(Step("claims merged to a text", name, len(sources), "texts"))
        if self.writer is not None:
            name = model_name(self.writer)
            topics = len({source.topic for source in sources})
            steps.append(Step(f"{self.kind} texts", name, topics * TEXTS, "texts"))
        return steps

    @cached_property
    def _sampling(self) -> dict[str, float]:
        own = {"temperature": 1.0, "top_p": 0.95, "max_new_tokens": self.max_new_tokens}
        return own | {"seed": self.seed}

    def make(self, work: Work) -> Made:
        """The documents with their claims changed and sentences appended."""
        sources = self._sources(work.dropped)
        made = self._made(sources, work)
        padding = self._padding(sources, work)
        whole = list(self._whole(sources, made, padding, work.dropped))
        if not whole:
            raise UserError(
                f"no document is left ({work.why()}); give other documents or sentences"
            )
        statistics = _statistics(made[source.id] for source, *_ in whole)
        files = {
            "documents.jsonl": (
                self._document(source, row, told, k)
                for source, row, told in whole
                for k in self.appended
            ),
            "changes.jsonl": (
                change for source, row, _ in whole for change in self._changes(source, row)
            ),
        }
        return Made(files, CARD, {"statistics.json": json.dumps(statistics, indent=2) + "\n"})

    def _sources(self, dropped: Counter[str]) -> list[Source]:
        return read_sources(self.documents, self.source_kind, dropped)[: self.limit]

    def _drawn(self, sources: Sequence[Source]) -> list[list[int]]:
        """For each document which claims are to be changed; each claim has its own draw."""
        return [
            [
                place
                for place in range(len(source.claims))
                if random.Random(f"{self.seed}:change:{source.id}:{place}").random()
                < self.probability
            ]
            for source in sources
        ]

    def _made(self, sources: Sequence[Source], work: Work) -> dict[str, dict]:
        """Document id to its changes and its merged text."""
        drawn = dict(zip((s.id for s in sources), self._drawn(sources), strict=True))
        claims = [[s.id, *s.claims] for s in sources]
        merger = self.merger and [self.merger.identity, self._sampling]
        decides = [self.corrupter.identity, merger, self.seed, self.probability, claims]
        return journalled(
            work.journal("changes", *decides),
            {source.id: source for source in sources},
            lambda some: self._make(list(some.values()), drawn),
            unit="document",
        )

    def _make(self, batch: Sequence[Source], drawn: Mapping[str, list[int]]) -> list[dict]:
        """The journal's rows of some documents."""
        asked = [(source, place) for source in batch for place in drawn[source.id]]
        found = self.corrupter.corrupt(
            [
                ToChange(f"{source.id}:{place}", source.topic, source.claims[place], source.person)
                for source, place in asked
            ],
            self.seed,
        )
        changes: dict[str, dict[str, dict]] = {source.id: {} for source in batch}
        for (source, place), change in zip(asked, found, strict=True):
            changes[source.id][str(place)] = asdict(change)
        rows = []
        for source in batch:
            own = changes[source.id]
            texts = [
                (own.get(str(place)) or {}).get("text") or claim
                for place, claim in enumerate(source.claims)
            ]
            rows.append({"claims": source.claims, "changes": own, "texts": texts})
        if self.merger is not None:
            merged = merge(
                self.merger,
                [(source.topic, row["texts"]) for source, row in zip(batch, rows, strict=True)],
                self._sampling,
            )
            for row, answer in zip(rows, merged, strict=True):
                row["merged"] = answer
        return rows

    def _padding(self, sources: Sequence[Source], work: Work) -> dict[str, list[Padding]]:
        """Topic to distinct sentences that may be appended, in the order they are appended."""
        topics = list(dict.fromkeys(source.topic for source in sources))
        found: dict[str, list[Padding]] = {topic: [] for topic in topics}
        if self.adversarial:
            told = told_sentences(self.adversarial, self.kind)
            found |= {topic: told[topic] for topic in topics if topic in told}
        elif self.writer is not None:
            prompt = shipped_prompts()[self.kind]
            sampling = self._sampling | {"n": TEXTS}
            journal = work.journal("padding", self.writer.identity, prompt.sha256, sampling)
            prompts = {topic: prompt.messages(topic=topic) for topic in topics}
            answers = write_texts(self.writer, prompts, sampling, journal)
            for topic in topics:
                texts = sift(self.kind, topic, answers[topic], 1, work.dropped)
                found[topic] = [Padding(s) for text in texts for s in split_sentences(text)]
        else:
            most = self.appended[-1]
            found = {topic: bleached_sentences(topic, most, self.seed) for topic in topics}
        return {
            topic: list({one.text.casefold(): one for one in own}.values())
            for topic, own in found.items()
        }

    def _whole(
        self,
        sources: Sequence[Source],
        made: Mapping[str, dict],
        padding: Mapping[str, Sequence[Padding]],
        dropped: Counter[str],
    ) -> Iterator[tuple[Source, dict, list[Padding]]]:
        """The documents that have a text and enough to append."""
        for source in sources:
            row = made[source.id]
            own = {text.casefold() for text in row["texts"]}
            told = [p for p in padding[source.topic] if p.text.casefold() not in own]
            if len(told) < self.appended[-1]:
                dropped["document with too few adversarial sentences on its topic"] += 1
            elif self.merger is not None and row["merged"]["failed"] is not None:
                dropped[f"document whose merged text failed: {row['merged']['failed']}"] += 1
            else:
                yield source, row, told[: self.appended[-1]]

    def _document(self, source: Source, row: Mapping, told: Sequence[Padding], k: int) -> Document:
        """One document with k sentences appended."""
        if self.merger is None:
            sentences = [as_sentence(text) for text in row["texts"]]
            places = list(range(len(sentences)))
        else:
            sentences = split_sentences(row["merged"]["text"])
            places = place_claims(row["texts"], sentences)
        claims = []
        for index, (text, place) in enumerate(zip(row["texts"], places, strict=True)):
            changed = text != source.claims[index]
            who = self.corrupter.source if changed else source.labelled_by
            own = {"label": "NS" if changed else "S", "kind": "changed" if changed else "kept"}
            where = {"sentence": place, "source": sentences[place]}
            claims.append(Claim(id=f"c{index}", text=text, **where, **own, labelled_by=who))
        for index, one in enumerate(told[:k]):
            claims.append(
                Claim(
                    id=f"a{index}",
                    text=one.text,
                    sentence=len(sentences) + index,
                    source=one.text,
                    label=None if one.true is None else "S" if one.true else "NS",
                    kind=self.kind,
                    labelled_by="none" if one.true is None else "knowledge base",
                )
            )
        return Document(
            id=f"{source.id} k={k}",
            topic=source.topic,
            text=" ".join([*sentences, *(as_sentence(p.text) for p in told[:k])]),
            claims=claims,
            group=source.group,
            bin=source.bin,
            kind=f"corrupted_{self.kind}_{k:02d}",
            generator=source.generator,
            document=source.id,
            k=k,
        )

    def _changes(self, source: Source, row: Mapping) -> Iterator[dict]:
        """Each supported claim, what it was and what became of it."""
        for place, claim in enumerate(source.claims):
            drawn = row["changes"].get(str(place))
            change = Change(**drawn) if drawn else Change()
            yield {
                "document": source.id,
                "claim": f"c{place}",
                "topic": source.topic,
                "original": claim,
                "text": change.text or claim,
                "label": "NS" if change.text else "S",
                "drawn": drawn is not None,
                "reason": change.reason or "",
                "kind": change.kind or "",
                "old": change.old or "",
                "new": change.new or "",
            }


def _statistics(rows: Iterator[Mapping]) -> dict[str, object]:
    """How many claims there were, were to be changed, and were, by kind and by reason."""
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    documents = claims = drawn = 0
    for row in rows:
        documents += 1
        claims += len(row["claims"])
        drawn += len(row["changes"])
        for change in row["changes"].values():
            if change["text"] is None:
                reasons[change["reason"]] += 1
            else:
                kinds[change["kind"] or "by a model"] += 1
    return {
        "documents": documents,
        "claims": claims,
        "to_be_changed": drawn,
        "changed": sum(kinds.values()),
        "changed_by_kind": dict(sorted(kinds.items())),
        "stayed_by_reason": dict(sorted(reasons.items())),
    }


CARD = Card(
    pretty_name="Corrupted texts with adversarial sentences",
    license="other",
    task_categories=("text-classification",),
    tags=("factuality", "adversarial", "robustness"),
    text="""\
Texts of known factual precision, padded with sentences that should not count (Core, arXiv
2407.03572, section 5.3, appendix B.2), to see whether a factuality metric can be gamed.

- `documents.jsonl`: the supported subclaims of a document, each made false with a fixed
  probability, as one text, with k adversarial sentences appended; one row a document and k
  (`document`, `k`). The corruption is the same for every k. Claims `c…` have the label `S` (as it
  was) or `NS` (changed), claims `a…` are the appended sentences, which have a label only where a
  knowledge base made them; `labelled_by` says who says so, `sentence` and `source` where a claim
  stands.
- `changes.jsonl`: each supported subclaim once: as it was, as it became, what was exchanged, or why
  a claim that was to be changed stayed as it was.
- `statistics.json`: how many claims were to be changed and were, by kind and by reason.

A claim that could not be changed stays supported. That a changed claim is false is the rule's or
the model's word, nobody checked it: a person may have two occupations. **Claims marked `NS` are
false statements about real people, made on purpose; never show them without their mark.** For
measuring metrics, not for training. The licence is that of the source documents.
""",
)
