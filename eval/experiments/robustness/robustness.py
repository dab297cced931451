"""Can the metric be gamed? Core's robustness experiment (2407.03572, sections 5.2 and 5.3).

Scores normal, uninformative and repetitive generations with and without Core; then appends
adversarial sentences, sampled from a LoRA adversary, to texts with false facts and follows the
precision (section 5.3). A control pipeline with untrained components runs the same table.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from components.sentences import split_sentences
from eval.experiments.experiment import Experiment, Found
from eval.experiments.robustness.page import RobustnessPage
from eval.metrics.corpus import summarise
from eval.metrics.document import Scored
from eval.pipeline import Pipeline
from eval.run.run import Run
from records import Document, Generation, UserError, read_records

SAMPLED = "sampled"

# The engine groups prompts of equal length: many at a time are faster, few lose less to a kill.
SAMPLES_A_WRITE = 128


class Target(BaseModel):
    """A bound on the mean share of subclaims that Core keeps of one kind of text."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    metric: Literal["kept_share"] = "kept_share"
    at_most: float | None = None
    at_least: float | None = None


class KindedText(Generation):
    """A generation that says of which kind it is."""

    kind: str | None = Field(default=None, validate_default=True)

    @field_validator("kind")
    @classmethod
    def _named(cls, kind: str | None) -> str | None:
        if not kind:
            mend = "give one, e.g. normal, or say it for all such texts: --experiment.unnamed_kind"
            raise PydanticCustomError("missing", f"field required; {mend}")
        return kind


class _Topic(NamedTuple):
    id: str


class Robustness(Experiment):
    """The experiment.

    Args:
        generations: files of generation records; ``kind`` tells normal from adversarial ones.
        unnamed_kind: kind of the records that name none, e.g. ``normal`` for a model's answers as
            another project keeps them; without it such a record is an error.
        pipeline: the pipeline with Core and trained components.
        control: the same with untrained components; none for no control.
        adversary: LoRA checkpoint whose samples are the appended sentences and a kind of their own
            (``sampled``); none leaves both out.
        kinds: the kinds to score; empty for all.
        base_kind: kind of the texts that adversarial sentences are appended to.
        per_topic: at most this many texts of a kind and generator a topic, the first ones; 0 for
            all.
        appended: numbers of adversarial sentences to append (section 5.3: 0 to 20).
        temperature, top_p, max_new_tokens: how the adversary is sampled.
        targets: bounds on the kept share, shown in the report.
        training_logs: name to folder of a training run, for the report's training curves.
        domain: named in the results.
        seed: seed of sampling and bootstrap.
    """

    name = "robustness"
    page = RobustnessPage()

    def __init__(
        self,
        generations: list[str],
        pipeline: Pipeline,
        control: Pipeline | None = None,
        adversary: str | None = None,
        kinds: list[str] = [],  # noqa: B006 (jsonargparse shows it in --help)
        base_kind: str = "normal",
        per_topic: int = 0,
        appended: list[int] = [0, 2, 4, 8, 12, 16, 20],  # noqa: B006
        temperature: float = 0.8,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        targets: list[Target] = [],  # noqa: B006
        training_logs: dict[str, str] = {},  # noqa: B006
        domain: str = "biographies",
        seed: int = 0,
        unnamed_kind: str | None = None,
    ):
        self.generations = generations
        self.pipeline = pipeline
        self.control = control
        self.adversary = adversary
        self.kinds = kinds
        self.base_kind = base_kind
        self.unnamed_kind = unnamed_kind
        self.per_topic = per_topic
        self.appended = appended
        self.sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "max_new_tokens": max_new_tokens,
        }
        self.targets = targets
        self.training_logs = training_logs
        self.domain = domain
        self.seed = seed

    def holds(self) -> list[object]:
        """Both pipelines."""
        return [self.pipeline, self.control]

    def measure(self, run: Run) -> Found:
        """Score the given texts, the adversary's samples, and texts with sentences appended.

        Beside the results ``selections.jsonl``, ``samples.jsonl`` and ``training/*.csv``.
        """
        documents = self._documents()
        samples = self._sample(_strata(documents), run)
        sampled = [_document(row, SAMPLED, index) for index, row in enumerate(samples)]
        curve = self._curve([d for d in documents if d.kind == self.base_kind], samples)
        values, rows = [], []
        # The control answers whether the table can fail; the given texts are enough for that.
        runs = [("trained", self.pipeline, documents + sampled)]
        runs += [("untrained", self.control, documents)] if self.control else []
        for variant, pipeline, texts in runs:
            scored = run.documents(variant, pipeline.score, texts, Scored)
            values += summarise(scored, run.key, self.domain, variant, self.seed)
            rows += [_selection_row(one, variant) for one in scored]
        for count, texts in curve.items():
            scored = run.documents(f"appended{count}", self.pipeline.score, texts, Scored)
            values += summarise(scored, run.key, self.domain, count, self.seed, strata=False)
        self._training_curves(run.output)
        targets = [target.model_dump(exclude_none=True) for target in self.targets]
        files = {"selections.jsonl": rows}
        files |= {"samples.jsonl": samples} if self.adversary else {}
        return Found(values, files, {"targets": targets})

    def _documents(self) -> list[Document]:
        """The first ``per_topic`` texts of every kind, generator and topic.

        Raises:
            BadInput: a record without a kind, and no ``unnamed_kind``.
            UserError: a kind that is to be scored has no text.
        """
        found: dict[str, list[Document]] = {}
        seen: Counter[tuple] = Counter()
        for path in self.generations:
            for record in read_records(path, Generation if self.unnamed_kind else KindedText):
                kind = record.kind or self.unnamed_kind
                own = found.setdefault(kind, [])
                cell = (kind, record.generator, record.topic)
                seen[cell] += 1
                wanted = not self.kinds or kind in self.kinds
                if wanted and (not self.per_topic or seen[cell] <= self.per_topic):
                    own.append(_document(record, kind, len(own)))
        missing = [kind for kind in self.kinds if not found.get(kind)]
        if missing:
            raise UserError(f"{', '.join(self.generations)}: no generation of kind {missing[0]!r}")
        return [document for own in found.values() for document in own]

    def _sample(self, strata: dict[str, dict[str, str]], run: Run) -> list[Generation]:
        """One text a topic from the adversary.

        Args:
            strata: topic to its group and its bin of frequency.
        """
        if self.adversary is None:
            return []
        from eval.models.causal import CausalLM  # PyTorch, which --help does without

        adversary = cache(lambda: CausalLM(self.adversary))  # loaded where one is left to sample

        def sampled(own: Sequence[_Topic]) -> list[Generation]:
            topics = [topic.id for topic in own]
            texts = adversary().sample(topics, n=1, seed=self.seed, **self.sampling)
            shared = {"kind": SAMPLED, "generator": "adversary"}
            return [
                Generation(topic=topic, text=found[0], **shared, **strata[topic])
                for topic, found in zip(topics, texts, strict=True)
            ]

        topics = [*map(_Topic, sorted(strata))]
        return run.documents("samples", sampled, topics, Generation, SAMPLES_A_WRITE)

    def _curve(
        self, base: Sequence[Document], samples: Sequence[Generation]
    ) -> dict[int, list[Document]]:
        """For each number k, the base texts with k of their topic's sampled sentences behind."""
        if not samples:
            return {}
        sentences = {sample.topic: split_sentences(sample.text) for sample in samples}
        most = max(self.appended)
        # A topic whose sample is shorter repeats it: appending must not change who is measured.
        supply = {t: (own * (most // len(own) + 1))[:most] for t, own in sentences.items() if own}
        return {
            count: [
                document.model_copy(
                    update={
                        "id": f"{document.id}+{count}",
                        "kind": "corrupted",
                        "text": " ".join([document.text, *supply[document.topic][:count]]),
                    }
                )
                for document in base
                if document.topic in supply
            ]
            for count in self.appended
        }

    def _training_curves(self, output: Path) -> None:
        """Copy the CSV logs of the training runs beside the results."""
        (output / "training").mkdir(parents=True, exist_ok=True)
        for name, folder in self.training_logs.items():
            logs = sorted(Path(folder).rglob("metrics.csv"), key=lambda path: path.stat().st_mtime)
            if logs:
                shutil.copyfile(logs[-1], output / "training" / f"{name}.csv")


def _strata(documents: Sequence[Document]) -> dict[str, dict[str, str]]:
    """Topic to its group and its bin of frequency, of the first text that names them."""
    found: dict[str, dict[str, str]] = {document.topic: {} for document in documents}
    for document in reversed(documents):
        own = (("group", document.group), ("bin", document.bin))
        found[document.topic] |= {name: value for name, value in own if value is not None}
    return found


def _document(record: Generation, kind: str, index: int) -> Document:
    return Document(
        id=f"{kind}-{index}",
        topic=record.topic,
        text=record.text,
        kind=kind,
        generator=record.generator or "given",
        group=record.group,
        bin=record.bin,
    )


def _selection_row(scored: Scored, components: str) -> dict:
    """A document's claims with what Core and the verifier said, for the report."""
    verdicts = {verdict.claim: verdict.label for verdict in scored.verdicts}
    texts = {claim.id: claim.text for claim in scored.claims}
    chosen = {selection.claim: selection for selection in scored.selections}
    document = scored.document
    return {
        "id": document.id,
        "topic": document.topic,
        "kind": document.kind,
        "generator": document.generator,
        "components": components,
        "claims": [
            {
                "text": claim.text,
                "label": verdicts.get(claim.id),
                **chosen[claim.id].model_dump(mode="json", exclude={"claim", "duplicate_of"}),
                "duplicate_of": texts.get(chosen[claim.id].duplicate_of or ""),
            }
            for claim in scored.claims
            if claim.id in chosen
        ],
    }
