"""``corruption``: texts with some of their facts made false, and adversarial sentences behind.

Core (arXiv 2407.03572, section 5.3 and appendix B.2): of a text each supported subclaim is made
false with a probability, all its subclaims are merged to a text again, and k sentences that say
nothing (or one thing over and over) are put behind it. A metric that can be gamed rises with k, and
above the clean text in the end. As in the authors' code what was not supported stays in the text.
The corruption of a document is the same for every k and every kind of sentence, so that curves are
paired; the authors drew the sentences anew for every k.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from data_builders.builder import Builder, Step, Work
from data_builders.builder import Made as Files
from data_builders.dataset import Card
from data_builders.journal import identity_of, journalled, model_name
from data_builders.written.adversarial import PROMPTS
from data_builders.written.claims.labelled import Source, read_sources
from data_builders.written.corruption.corrupters import (
    Change,
    Corrupter,
    ToChange,
    refuse_true_changes,
)
from data_builders.written.corruption.curves import (
    Appended,
    CorruptedDocument,
    Sentence,
    build_clean_twin,
    build_corrupted,
    change_rows,
    claim_texts,
    count_changes,
    read_appended,
    repeat_sentences,
    sentences_for_topic,
)
from data_builders.written.corruption.merging import Merged, Merger, ToMerge, list_claims
from eval.models.chat import Writer
from eval.prompting.prompts import Prompt
from eval.stages import EntailmentModel
from records import UserError

# Of a source its sentences by kind: whose topic they are of, and the sentences.
Told = dict[str, tuple[str, list[Sentence]]]


@dataclass
class Corruption(Builder):
    """Texts with some supported facts made false, k adversarial sentences behind, clean twins.

    Args:
        documents: files of documents with labelled ``claims`` (or another project's, by its field
            names), of generations whose ``sentences`` have a truth, or ``scored.jsonl`` files of
            ``eval score``, whose verdicts, without selection, are the labels.
        corrupter: who makes a claim false, by ``class_path``: ``ValueSwap`` (a rule over the
            knowledge base) or ``PromptedCorrupter``.
        adversarial: kind to the files of its texts on the same topics (generations, documents, the
            released samples), e.g. ``{info: [FILE]}``; rows that state another kind are skipped.
        probability: with which a supported claim is to be made false.
        appended: the numbers k of appended sentences; null for 0 to 20. A topic with fewer
            distinct sentences repeats them in order; documents on one without any are counted.
        of_anyone: kinds whose sentences are true of anyone: a topic without any takes those of
            another topic, with its name in them.
        assumed: kind to the label (S or NS) of appended sentences of which their files have none.
        verdict: whose verdicts are the labels of scored texts, e.g. ``nli``, where there are
            several.
        merger: a language model that merges the claims to a text that reads well (published:
            gpt-4o-2024-05-13); null puts them one after the other.
        merge_prompt: file with the fields ``topic``, ``claims`` and ``instruction``; null takes the
            published one.
        instruction: what a merged text answers, a template with ``{topic}``.
        merge_temperature: of the merger; the published one is 0.
        merge_again: how often the merger is asked for claims that its text has lost, before a
            sentence is put behind it for each.
        entailment: a relation model that tells which claims a merged text holds (else their words
            do), and whether another supported claim entails a changed one, which is then not false.
        source_kind: only the documents of this kind, e.g. ``normal``; null takes all.
        max_new_tokens: most tokens of a merged text.
    """

    documents: list[str]
    corrupter: Corrupter
    adversarial: dict[str, list[str]]
    probability: float = 0.5
    appended: list[int] | None = None
    of_anyone: list[str] = field(default_factory=list)
    assumed: dict[str, Literal["S", "NS"]] = field(default_factory=dict)
    verdict: str | None = None
    merger: Writer | None = None
    merge_prompt: str | None = None
    instruction: str = "Tell me a bio of {topic}."
    merge_temperature: float = 0.0
    merge_again: int = 2
    entailment: EntailmentModel | None = None
    source_kind: str | None = None
    max_new_tokens: int = 512

    reads = ("documents", "adversarial")
    least: ClassVar = {"max_new_tokens": 1, "merge_again": 0, "merge_temperature": 0}
    probabilities = ("probability",)

    def __post_init__(self) -> None:
        self.appended = sorted(set(range(21) if self.appended is None else self.appended))
        super().__post_init__()

    def faults(self) -> Iterable[str]:
        if not self.appended or self.appended[0] < 0:
            yield "appended: give numbers of sentences from 0 upwards"
        for name in self.adversarial:
            if not re.fullmatch(r"\w+", name):
                yield f"adversarial: {name!r}: use letters, digits and _ only"
        for option in ("of_anyone", "assumed"):
            for name in getattr(self, option):
                if name not in self.adversarial:
                    kinds = ", ".join(self.adversarial)
                    yield f"{option}: {name!r} is not appended; the kinds are {kinds}"

    def files(self) -> dict[str, dict[str, str]]:
        names = [*(f"curve_{kind}" for kind in self.adversarial), "changes"]
        return {name: {"test": f"{name}.jsonl"} for name in names}

    def plan(self) -> list[Step]:
        sources = self._sources(Counter())
        claims = sum(len(own) for own in self._drawn(sources))
        who = str(self.corrupter.identity.get("corrupter"))
        steps = [Step("claims to be made false", who, claims, "claims")]
        if self.merger is not None:
            number = len(sources) * (1 + self.merge_again)
            steps.append(Step("claims merged to a text", model_name(self.merger), number, "texts"))
        told = self._told(sources, read_appended(self.adversarial, self.verdict))
        for kind in self.adversarial:
            number = sum(kind in own for own in told.values())
            steps.append(Step(f"documents on topics with {kind} texts", "files", number, "texts"))
        return steps

    def make(self, work: Work) -> Files:
        sources = self._sources(work.dropped)
        appended = read_appended(self.adversarial, self.verdict)
        told = self._told(sources, appended)
        without = self._without(sources, told, work.dropped)
        every = self._made(sources, work)
        files: dict[str, Iterable] = {
            f"curve_{kind}.jsonl": self._curve(kind, every, told) for kind in self.adversarial
        }
        files["changes.jsonl"] = (row for made in every for row in change_rows(made))
        figures = count_changes(every)
        figures["appended"] = {
            kind: self._figures(kind, sources, told, without) for kind in self.adversarial
        }
        pages = {"statistics.json": json.dumps(figures, indent=2, ensure_ascii=False) + "\n"}
        return Files(files, CARD, pages)

    # What there is to be corrupted, and to be appended

    def _sources(self, dropped: Counter[str]) -> list[Source]:
        found = read_sources(self.documents, self.source_kind, self.verdict, dropped)
        return found[: self.limit]

    def _told(self, sources: Sequence[Source], appended: Appended) -> dict[str, Told]:
        found: dict[str, Told] = {}
        for source in sources:
            own = {
                kind: sentences_for_topic(source.topic, topics, kind in self.of_anyone, self.seed)
                for kind, topics in appended.items()
            }
            found[source.id] = {kind: one for kind, one in own.items() if one[1]}
        return found

    def _without(
        self, sources: Sequence[Source], told: Mapping[str, Told], dropped: Counter[str]
    ) -> dict[str, list[str]]:
        found = {}
        for kind in self.adversarial:
            lacking = [source for source in sources if kind not in told[source.id]]
            found[kind] = sorted({source.topic for source in lacking})
            if len(lacking) == len(sources):
                some = ", ".join(found[kind][:3])
                raise UserError(
                    f"adversarial: no {kind} text is about a document's topic ({some}, …); have "
                    "them written by `data_builders generations` or `adversarial` on these "
                    f"topics, or, if they are true of anyone, give --of_anyone '[{kind}]'"
                )
            dropped[f"document on a topic without {kind} sentences"] += len(lacking)
        return found

    # The corruption, once for all kinds and numbers

    def _drawn(self, sources: Sequence[Source]) -> list[list[str]]:
        return [
            [
                name
                for name in source.supported.values()
                if random.Random(f"{self.seed}:change:{source.id}:{name}").random()
                < self.probability
            ]
            for source in sources
        ]

    @cached_property
    def _merger(self) -> Merger | None:
        if self.merger is None:
            return None
        sampling = {
            "temperature": self.merge_temperature,
            "top_p": 0.95,
            "max_new_tokens": self.max_new_tokens,
            "seed": self.seed,
        }
        prompt = Prompt(self.merge_prompt or PROMPTS / "merge.jinja")
        return Merger(
            self.merger, prompt, self.instruction, sampling, self.merge_again, self.entailment
        )

    def config(self) -> dict[str, object]:
        merging = self._merger and self._merger.identity
        told = super().config() | {"merging": merging, "entailment": identity_of(self.entailment)}
        return {name: told[name] for name in told if name not in ("merger", "merge_prompt")}

    def _made(self, sources: Sequence[Source], work: Work) -> list[CorruptedDocument]:
        drawn = dict(zip((s.id for s in sources), self._drawn(sources), strict=True))
        given = [
            [s.id, s.topic, s.person, [(c.id, c.text, c.label) for c in s.claims]] for s in sources
        ]
        decides = [self.corrupter.identity, self._merger and self._merger.identity]
        decides += [identity_of(self.entailment), self.seed, self.probability, given]
        rows = journalled(
            work.journal("changes", *decides),
            {source.id: source for source in sources},
            lambda some: self._make(list(some.values()), drawn),
            unit="document",
        )
        return [
            CorruptedDocument(
                {name: Change(**change) for name, change in row["changes"].items()},
                Merged(**row["merged"]),
                source,
            )
            for source in sources
            for row in [rows[source.id]]
        ]

    def _make(self, batch: Sequence[Source], drawn: Mapping[str, list[str]]) -> list[dict]:
        changes = self._changes(batch, drawn)
        asked = [
            ToMerge(s.topic, claim_texts(s, changes[s.id]), [c.text for c in s.claims])
            for s in batch
        ]
        merged = (
            [list_claims(one.claims) for one in asked]
            if self._merger is None
            else self._merger.merge(asked)
        )
        return [
            {"changes": {n: asdict(c) for n, c in changes[s.id].items()}, "merged": text.row()}
            for s, text in zip(batch, merged, strict=True)
        ]

    def _changes(
        self, batch: Sequence[Source], drawn: Mapping[str, list[str]]
    ) -> dict[str, dict[str, Change]]:
        asked, place = [], []
        for source in batch:
            texts = {name: text for text, name in source.supported.items()}
            for name in drawn[source.id]:
                key = f"{source.id}:{name}"
                asked.append(ToChange(key, source.topic, texts[name], source.person))
                place.append((source, name))
        found = self.corrupter.corrupt(asked, self.seed) if asked else []
        changes: dict[str, dict[str, Change]] = {source.id: {} for source in batch}
        for (source, name), change in zip(place, found, strict=True):
            changes[source.id][name] = change
        return refuse_true_changes(batch, changes, self.entailment)

    # What is written

    def _curve(
        self, kind: str, every: Sequence[CorruptedDocument], told: Mapping[str, Told]
    ) -> Iterator[object]:
        for made in every:
            if kind in told[made.source.id]:
                _, own = told[made.source.id][kind]
                sentences = repeat_sentences(own, self.appended[-1])
                yield build_clean_twin(made.source)
                label = self.assumed.get(kind)
                who = self.corrupter.source
                yield from build_corrupted(made, who, kind, sentences, label, self.appended)

    def _figures(
        self,
        kind: str,
        sources: Sequence[Source],
        told: Mapping[str, Told],
        without: Mapping[str, list[str]],
    ) -> dict[str, object]:
        own = [(s.topic, *told[s.id][kind]) for s in sources if kind in told[s.id]]
        numbers = [len(sentences) for *_, sentences in own]
        return {
            "documents": len(own),
            "fewest_distinct_sentences": min(numbers),
            "documents_with_repeated_sentences": sum(n < self.appended[-1] for n in numbers),
            "documents_with_sentences_of_another_topic": sum(t != whose for t, whose, _ in own),
            "topics_without_sentences": without[kind],
        }


CARD = Card(
    pretty_name="Corrupted texts with adversarial sentences",
    license="other",
    tags=("factuality", "adversarial", "robustness"),
    text="""\
Texts with some of their facts made false, and sentences behind that should not count (Core, arXiv
2407.03572, section 5.3, appendix B.2), to see whether a factuality metric can be gamed.

- `curve_KIND.jsonl`: for each document its clean twin (`kind: clean`: the text as it was, with all
  its claims and labels) and, for each number k, the corrupted text with k sentences of that kind
  behind (`kind: corrupted`, `clean`: the twin's id, `k`, `appended`: the kind). Each supported
  claim was to be made false with a fixed probability; all other claims stay. The corruption is the
  same for every k and in every file, and the sentences for k are the first k. Claims `a…` are the
  appended ones; other claims have the ids that they had. `labelled_by` says who says so: the source
  file (`given`), an assessor, a knowledge base, the corrupter, or nobody (`assumed`, `none`).
- `changes.jsonl`: each claim of the documents once: as it was, as it became, what was exchanged,
  why one that was to be changed stayed as it was (`refused`: what was proposed and is not false),
  and how it came into the text (`in_text`): `merged`; `again`, where the merging model lost it
  first; `appended` as a sentence, where it lost it every time; `listed`, where nothing was merged.
- `statistics.json`: all of this in figures. No document is left out for its merging, and a topic
  with few sentences repeats them; documents on a topic without any are counted, and the topics
  named.

That a changed claim is false is the rule's or the model's word, checked against the document's
other supported claims and what else the configuration names. **Claims marked `NS` may be false
statements about real people, made on purpose; never show them without their mark.** For measuring
metrics, not for training. The licence is that of the source documents.
""",
)
