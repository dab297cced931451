"""``generations``: unfiltered texts on topics by models, honest and adversarial.

Test texts of a factuality metric (Core, arXiv 2407.03572, section 5.4 and Table 4): texts of a base
model and of adversaries trained to be uninformative or repetitive, on the same topics. Refusals are
kept; the metric counts them as not responding.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import read_card
from data_builders.journal import Each, answer_rows, named_rows
from data_builders.sampled import sample, sampling_of, template_of
from data_builders.topics import Topics, read_topics
from data_builders.written.claims.fact_gold import FactGold
from eval.models.chat import Answer, CachedWriter, Message, Writer
from eval.run.on_ray import OnRay
from records import Document, Generation, UserError
from records.abstention import responds


@dataclass(frozen=True)
class Author:
    """A text generator and its prompts.

    Attributes:
        writer: the language model, by ``class_path``: a base model or an adversary's checkpoint
            (``eval.models.local.LocalModel``), or any OpenAI-compatible server.
        prompts: kind of text to a prompt template with ``{topic}``, or to the folder of an
            adversary's checkpoint, to use its template.
        fields: extra fields of each text, e.g. ``adversary`` and ``step``, by which
            ``experiment optimise`` identifies the checkpoints of one training run.
    """

    writer: Writer
    prompts: dict[str, str] = field(default_factory=lambda: {"normal": "Tell me a bio of {topic}."})
    fields: dict[str, str | int | float] = field(default_factory=dict)


@dataclass
class Generations(Builder):
    """Unfiltered texts on topics by several models, honest and adversarial.

    Args:
        topics: files of records with ``topic`` (their ``bin`` and ``group`` are kept), a frequency
            map, or ``.txt`` files with one topic per line.
        authors: name of a generator, as shown in results, to its model and prompts.
        per_topic: texts per author, kind and topic.
        temperature: sampling temperature; 0 is greedy decoding.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum tokens per text.
        gold: estimates the texts' gold scores.
        ray: additional worker processes, each of which loads an author's model.
    """

    topics: list[str]
    authors: dict[str, Author]
    per_topic: int = 1
    temperature: float = 0.7
    top_p: float = 0.95
    max_new_tokens: int = 512
    gold: FactGold | None = None
    ray: OnRay = field(default_factory=OnRay)

    reads = ("topics",)
    speed = ("ray",)
    least: ClassVar = {"per_topic": 1, "max_new_tokens": 1, "temperature": 0}
    probabilities = ("top_p",)

    def faults(self) -> Iterable[str]:
        if not self.authors:
            yield "authors: expected at least one"
        for name, author in self.authors.items():
            for reserved in sorted({*author.fields} & {*Generation.model_fields, "failed", "id"}):
                yield f"authors: {name}: fields: {reserved} is a record field; rename it"
            for kind, prompt in author.prompts.items():
                if not re.fullmatch(r"\w+", kind):
                    yield f"authors: {name}: kind {kind!r}: use letters, digits and _ only"
                if not prompt.strip():
                    yield f"authors: {name}: {kind}: expected a prompt with {{topic}}, or a folder"

    def files(self) -> dict[str, dict[str, str]]:
        kinds = dict.fromkeys(kind for author in self.authors.values() for kind in author.prompts)
        return {kind: {"test": f"{kind}.jsonl"} for kind in kinds}

    def plan(self) -> list[Step]:
        number = len(self._topics()) * self.per_topic
        return [Step(f"{kind} texts", name, number, "texts") for name, kind in self._templates()]

    def config(self) -> dict[str, object]:
        authors = {
            name: {"writer": author.writer, "prompts": {}} for name, author in self.authors.items()
        }
        for (name, kind), template in self._templates().items():
            authors[name]["prompts"][kind] = template
        for name, author in self.authors.items():
            authors[name] |= {"fields": author.fields} if author.fields else {}
        return super().config() | {"authors": authors}

    def make(self, work: Work) -> Made:
        topics = self._topics()
        files: dict[str, list[Generation]] = {f"{kind}.jsonl": [] for kind in self.files()}
        figures = {}
        for (name, kind), template in self._templates().items():
            self._release_other_models(name)
            answers = self._answers(name, kind, template, topics, work)
            texts = list(_texts(name, self.authors[name], kind, topics, answers))
            if self.gold is not None:
                golds = self.gold([(text.topic, text.text) for text in texts])
                pairs = zip(texts, golds, strict=True)
                texts = [text.model_copy(update={"gold": gold}) for text, gold in pairs]
            files[f"{kind}.jsonl"] += texts
            figures[f"{name}, {kind}"] = _figures(texts)
        pages = {"statistics.json": json.dumps(figures, indent=2, ensure_ascii=False) + "\n"}
        return Made(files, read_card("generations"), pages)

    def _answers(
        self, name: str, kind: str, template: str, topics: Topics, work: Work
    ) -> dict[str, list[Answer]]:
        sampling = sampling_of(self, self.per_topic)
        each = None if self.ray.workers is None else self._by_workers(name, sampling, work)
        return sample(self.authors[name].writer, template, topics, sampling, work, kind, each)

    def _by_workers(self, name: str, sampling: Mapping[str, object], work: Work) -> Each:
        if work.raw_options is None:
            raise UserError(
                "ray.workers: workers read the authors from a YAML; use the command line"
            )
        author = work.raw_options["authors"][name]
        answers = work.resume_path("workers")
        return partial(self.ray.rows, Author, author, answers, partial(_rows, sampling))

    def _release_other_models(self, name: str) -> None:
        for other_name, author in self.authors.items():
            if other_name != name and isinstance(author.writer, CachedWriter):
                author.writer.release()

    def _templates(self) -> dict[tuple[str, str], str]:
        return {
            (name, kind): template_of(prompt, f"authors: {name}: prompt")
            for name, author in self.authors.items()
            for kind, prompt in author.prompts.items()
        }

    def _topics(self) -> Topics:
        return dict(list(read_topics(self.topics).items())[: self.limit])


def _rows(
    sampling: Mapping[str, object], author: Author, prompts: Mapping[str, Sequence[Message]]
) -> list[dict]:
    return named_rows(partial(answer_rows, author.writer, sampling), prompts)


def _texts(
    name: str, author: Author, kind: str, topics: Topics, answers: dict[str, list[Answer]]
) -> Iterator[Generation]:
    for topic, stratum in topics.items():
        for answer in answers[topic]:
            failure = {} if answer.failed is None else {"failed": answer.failed}
            fields = {"topic": topic, "text": answer.text, "kind": kind, "generator": name}
            yield Generation(**fields, **stratum.as_fields(), **author.fields, **failure)


def _figures(texts: list[Generation]) -> dict[str, object]:
    documents = [Document(id="x", topic=text.topic, text=text.text) for text in texts]
    failed = Counter(text.model_extra["failed"] for text in texts if "failed" in text.model_extra)
    return {
        "texts": len(texts),
        "respond": sum(map(responds, documents)),
        "failed": dict(sorted(failed.items())),
    }
