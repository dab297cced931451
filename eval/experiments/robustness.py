"""Can the metric be gamed? Core's robustness experiment (2407.03572, sections 5.2 and 5.3).

Scores normal, uninformative and repetitive generations with and without Core; then appends
adversarial sentences, sampled from a LoRA adversary, to texts with false facts and follows the
precision (section 5.3). A control pipeline with untrained components runs the same table.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from components.sentences import split_sentences
from eval.metrics.corpus import summarise
from eval.models.causal import CausalLM
from eval.pipeline import Pipeline, Scored
from eval.run.inside import identities, prompts
from eval.run.journal import keep_answers, resumably, usage
from eval.run.provenance import config_hash, inputs, provenance
from records import (
    Document,
    Generation,
    JsonlAppender,
    Result,
    ResultFile,
    UserError,
    read_records,
    sha256_text,
    write_jsonl,
    write_results,
)

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


class Robustness:
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

    def run(self, output: Path, config: dict) -> ResultFile:
        """Run, resuming what a killed run left in ``output``.

        Writes ``results.json``, ``selections.jsonl``, ``samples.jsonl`` and ``training/*.csv``.
        """
        digests = inputs(config)
        asked = prompts(self)
        key = config_hash([config, asked], digests)
        keep_answers(self, output)
        documents = self._documents()
        strata = _strata(documents)
        topics = sorted(strata)
        sampled = output / f".samples.{self._samples_key(topics, digests)[:16]}.partial.jsonl"
        samples = self._sample(strata, output, sampled)
        curve = self._curve([d for d in documents if d.kind == self.base_kind], samples)
        results, rows, journals = [], [], []
        # The control answers whether the table can fail; the given texts are enough for that.
        runs = [("trained", self.pipeline, documents + samples)]
        runs += [("untrained", self.control, documents)] if self.control else []
        for components, pipeline, texts in runs:
            journals.append(output / f".{components}.{key[:16]}.partial.jsonl")
            scored = self._scored(pipeline, texts, journals[-1])
            results += summarise(scored, key, self.domain, components, seed=self.seed)
            rows += [_selection_row(s, components) for s in scored]
        for count, texts in curve.items():
            journals.append(output / f".appended{count}.{key[:16]}.partial.jsonl")
            scored = self._scored(self.pipeline, texts, journals[-1])
            group = f"appended={count}"
            results += summarise(scored, key, self.domain, group=group, seed=self.seed)
        write_jsonl(output / "selections.jsonl", rows)
        self._training_curves(output)
        file = ResultFile(
            experiment="robustness",
            provenance=provenance(config, digests)
            | {"targets": [target.model_dump(exclude_none=True) for target in self.targets]}
            | {"prompts": asked, "models": identities(self), "usage": usage(self, *journals)},
            results=results,
        )
        write_results(output / "results.json", file)
        for journal in [sampled, *journals]:
            journal.unlink(missing_ok=True)
        return file

    def _scored(
        self, pipeline: Pipeline, documents: Sequence[Document], journal: Path
    ) -> list[Scored]:
        """Score resumably; the models of both pipelines are counted, so that usage adds up."""
        rows = resumably(self, pipeline.score, documents, journal)
        return [Scored.model_validate(row) for row in rows]

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

    def _samples_key(self, topics: list[str], digests: dict[str, str]) -> str:
        """Samples depend on the adversary and its settings only, not on the pipeline."""
        adversary = digests.get(self.adversary or "")
        return sha256_text(json.dumps([adversary, self.sampling, self.seed, topics]))

    def _sample(self, strata: dict[str, dict], output: Path, journal: Path) -> list[Document]:
        """One text a topic from the adversary, kept in a journal while it grows.

        Args:
            strata: topic to its group and its bin of frequency.
        """
        if self.adversary is None:
            return []
        topics = sorted(strata)
        with JsonlAppender(journal, key="topic") as done:
            todo = [topic for topic in topics if topic not in done.done]
            model = CausalLM(self.adversary) if todo else None
            for start in range(0, len(todo), SAMPLES_A_WRITE):
                batch = todo[start : start + SAMPLES_A_WRITE]
                texts = model.sample(batch, n=1, seed=self.seed, **self.sampling)
                done.append(
                    {"topic": topic, "text": found[0], "kind": SAMPLED, "generator": "adversary"}
                    for topic, found in zip(batch, texts, strict=True)
                )
            rows = [Generation.model_validate(done.done[t] | strata[t]) for t in topics]
        write_jsonl(output / "samples.jsonl", rows)
        return [_document(row, SAMPLED, index) for index, row in enumerate(rows)]

    def _curve(
        self, base: Sequence[Document], samples: Sequence[Document]
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


def line(row: Result) -> str | None:
    """A result for the terminal; those of groups are in the file only."""
    if row.metric not in {"factual_precision", "kept_share"} or row.group != "all":
        return None
    value = "–" if row.value is None else f"{row.value:.3f}"
    interval = "" if row.ci95 is None else f" [{row.ci95[0]:.3f}, {row.ci95[1]:.3f}]"
    name = f"{row.components:10} {row.metric:18} {row.kind:14} {row.selection:5}"
    return f"{name} {value}{interval} n={row.n} failed={row.failed}"
