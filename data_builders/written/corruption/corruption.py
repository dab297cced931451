"""``corruption``: texts with some facts made false, followed by adversarial sentences.

Core (arXiv 2407.03572, section 5.3 and appendix B.2): each supported subclaim of a text is made
false with a probability, all subclaims are merged into a text again, and k sentences that are
uninformative or repetitive are appended. The score of a metric that can be gamed rises with k, in
the end above that of the clean text. As in the authors' code, unsupported claims stay in the text.
The corruption of a document is the same for all k and all kinds of sentences, so curves are paired;
the authors drew new sentences for each k.
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
from data_builders.dataset import read_card
from data_builders.journal import journal_rows, model_name
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
    AppendedSentence,
    CorruptedDocument,
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

# Document id to kind to the topic that the appended sentences are from, and the sentences.
AllSentences = dict[str, dict[str, tuple[str, list[AppendedSentence]]]]


@dataclass
class Corruption(Builder):
    """Texts with some supported facts made false, k appended sentences, and clean twins.

    Args:
        documents: files of documents (ours or another project's) with labelled ``claims``; of
            generations whose ``sentences`` have a truth value; or ``scored.jsonl`` files of
            ``eval score``, whose verdicts (without Core) are the labels.
        corrupter: makes claims false, by ``class_path``: ``ValueSwap`` (a rule) or
            ``PromptedCorrupter``.
        adversarial: kind to the files of its texts on the same topics (generations, documents, the
            released samples), e.g. ``{info: [FILE]}``; rows that state another kind are skipped.
        probability: probability that a supported claim is made false.
        appended: the numbers k of appended sentences; null for 0 to 20. A topic with fewer
            distinct sentences repeats them in order; documents on a topic without any are counted.
        of_anyone: kinds whose sentences are true of anyone: a topic without sentences takes those
            of another topic, with the name replaced.
        assumed: kind to the label (S or NS) of appended sentences whose files have no labels.
        verdict: name of the verdicts that label scored texts, e.g. ``nli``, if there are several.
        merger: a language model that merges the claims into a fluent text (published:
            gpt-4o-2024-05-13); null concatenates them.
        merge_prompt: prompt file with the fields ``topic``, ``claims`` and ``instruction``; null
            for the published prompt.
        instruction: the question that a merged text answers, a template with ``{topic}``.
        merge_temperature: sampling temperature of the merger; published: 0.
        merge_again: how often the merger is asked again for claims that its text lost; then each
            lost claim is appended as a sentence. With 0 the text is kept, as the authors do.
        entailment: a relation model that decides which claims a merged text contains (null compares
            words) and refuses a changed claim that another supported claim entails.
        source_kind: use only documents of this kind, e.g. ``normal``; null for all.
        max_new_tokens: maximum number of tokens of a merged text.
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
            yield "appended: expected numbers of sentences of at least 0"
        for name in self.adversarial:
            if not re.fullmatch(r"\w+", name):
                yield f"adversarial: {name!r}: expected letters, digits and _ only"
        for option in ("of_anyone", "assumed"):
            for name in getattr(self, option):
                if name not in self.adversarial:
                    kinds = ", ".join(self.adversarial)
                    yield f"{option}: unknown kind {name!r}; `adversarial` has: {kinds}"

    def files(self) -> dict[str, dict[str, str]]:
        names = [*(f"curve_{kind}" for kind in self.adversarial), "changes"]
        return {name: {"test": f"{name}.jsonl"} for name in names}

    def plan(self) -> list[Step]:
        sources = self._sources(Counter())
        claims = sum(map(len, self._drawn_claims(sources)))
        steps = [Step("claims to be made false", self.corrupter.source, claims, "claims")]
        if self.merger is not None:
            number = len(sources) * (1 + self.merge_again)
            steps.append(Step("claims merged to a text", model_name(self.merger), number, "texts"))
        sentences = self._sentences(sources, read_appended(self.adversarial, self.verdict))
        for kind in self.adversarial:
            number = sum(kind in kinds for kinds in sentences.values())
            steps.append(Step(f"documents on topics with {kind} texts", "files", number, "texts"))
        return steps

    def make(self, work: Work) -> Files:
        sources = self._sources(work.dropped)
        appended = read_appended(self.adversarial, self.verdict)
        sentences = self._sentences(sources, appended)
        missing_topics = self._missing_topics(sources, sentences, work.dropped)
        documents = self._corrupt(sources, work)
        files: dict[str, Iterable] = {
            f"curve_{kind}.jsonl": self._curve(kind, documents, sentences)
            for kind in self.adversarial
        }
        files["changes.jsonl"] = (row for document in documents for row in change_rows(document))
        figures = count_changes(documents)
        figures["appended"] = {
            kind: self._figures(kind, sources, sentences, missing_topics[kind])
            for kind in self.adversarial
        }
        pages = {"statistics.json": json.dumps(figures, indent=2, ensure_ascii=False) + "\n"}
        return Files(files, read_card("corruption"), pages)

    def _sources(self, dropped: Counter[str]) -> list[Source]:
        return read_sources(self.documents, self.source_kind, self.verdict, dropped)[: self.limit]

    def _sentences(self, sources: Sequence[Source], appended: Appended) -> AllSentences:
        sentences: AllSentences = {}
        for source in sources:
            kinds = {
                kind: sentences_for_topic(source.topic, topics, kind in self.of_anyone, self.seed)
                for kind, topics in appended.items()
            }
            sentences[source.id] = {kind: pair for kind, pair in kinds.items() if pair[1]}
        return sentences

    def _missing_topics(
        self, sources: Sequence[Source], sentences: AllSentences, dropped: Counter[str]
    ) -> dict[str, list[str]]:
        missing = {}
        for kind in self.adversarial:
            lacking = [source for source in sources if kind not in sentences[source.id]]
            missing[kind] = sorted({source.topic for source in lacking})
            if len(lacking) == len(sources):
                topics = ", ".join(missing[kind][:3])
                raise UserError(
                    f"adversarial: no {kind} text is about a document's topic ({topics}, …); write "
                    "some with `data_builders generations` or `adversarial` on these topics or, if "
                    f"the texts are true of anyone, pass --of_anyone '[{kind}]'"
                )
            dropped[f"document on a topic without {kind} sentences"] += len(lacking)
        return missing

    def _drawn_claims(self, sources: Sequence[Source]) -> list[list[str]]:
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
        config = super().config() | {"merging": self._merger}
        return {name: config[name] for name in config if name not in ("merger", "merge_prompt")}

    def _corrupt(self, sources: Sequence[Source], work: Work) -> list[CorruptedDocument]:
        drawn = dict(zip((s.id for s in sources), self._drawn_claims(sources), strict=True))
        claims = [[s.id, s.topic, [(c.id, c.text, c.label) for c in s.claims]] for s in sources]
        key = [self.corrupter, self._merger, self.entailment, self.seed, self.probability, claims]
        rows = journal_rows(
            work.journal("changes", *key),
            {source.id: source for source in sources},
            lambda batch: self._rows(list(batch.values()), drawn),
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

    def _rows(self, batch: Sequence[Source], drawn: Mapping[str, list[str]]) -> list[dict]:
        changes = self._changes(batch, drawn)
        items = [
            ToMerge(s.topic, claim_texts(s, changes[s.id]), [c.text for c in s.claims])
            for s in batch
        ]
        if self._merger is None:
            merged = [list_claims(item.claims) for item in items]
        else:
            merged = self._merger.merge(items)
        return [
            {"changes": {n: asdict(c) for n, c in changes[s.id].items()}, "merged": asdict(text)}
            for s, text in zip(batch, merged, strict=True)
        ]

    def _changes(
        self, batch: Sequence[Source], drawn: Mapping[str, list[str]]
    ) -> dict[str, dict[str, Change]]:
        claims, keys = [], []
        for source in batch:
            texts = {name: text for text, name in source.supported.items()}
            for name in drawn[source.id]:
                key = f"{source.id}:{name}"
                claims.append(ToChange(key, source.topic, texts[name]))
                keys.append((source.id, name))
        proposed = self.corrupter.corrupt(claims, self.seed) if claims else []
        changes: dict[str, dict[str, Change]] = {source.id: {} for source in batch}
        for (document, name), change in zip(keys, proposed, strict=True):
            changes[document][name] = change
        return refuse_true_changes(batch, changes, self.entailment)

    def _curve(
        self, kind: str, documents: Sequence[CorruptedDocument], sentences: AllSentences
    ) -> Iterator[object]:
        label, origin = self.assumed.get(kind), self.corrupter.source
        for document in documents:
            if kind in sentences[document.source.id]:
                _, distinct = sentences[document.source.id][kind]
                appended = repeat_sentences(distinct, self.appended[-1])
                yield build_clean_twin(document.source)
                yield from build_corrupted(document, origin, kind, appended, label, self.appended)

    def _figures(
        self, kind: str, sources: Sequence[Source], sentences: AllSentences, missing: list[str]
    ) -> dict[str, object]:
        rows = [(s.topic, *sentences[s.id][kind]) for s in sources if kind in sentences[s.id]]
        numbers = [len(distinct) for *_, distinct in rows]
        return {
            "documents": len(rows),
            "fewest_distinct_sentences": min(numbers),
            "documents_with_repeated_sentences": sum(n < self.appended[-1] for n in numbers),
            "documents_with_sentences_of_another_topic": sum(t != other for t, other, _ in rows),
            "topics_without_sentences": missing,
        }
