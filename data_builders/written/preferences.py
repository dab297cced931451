"""``preferences``: pairs of texts ranked by a metric, to train adversaries.

A language model writes several texts per topic, the metric scores them, and the best and the worst
text of a topic form one record for ``train/preference.py``. Training against a metric with and
without a defence shows which one is easier to game (Core, 2407.03572, uses supervised adversaries
only).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import ClassVar

from pydantic import BaseModel

from components.encoding import fill_prompt
from components.identity import identity
from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import read_card
from data_builders.sampled import sample, sampling_of, template_of
from data_builders.splits import SPLITS, by_split, drawn_splits
from data_builders.topics import Topics, read_topics
from eval.metrics.text_metric import TextMetric, text_scores
from eval.models.chat import Writer
from records import Document, Preference, UserError, sha256_text
from records.abstention import responds

# Documents per write, the most that an interruption loses; stages batch across documents.
DOCUMENTS_PER_WRITE = 128
PARTS = SPLITS[:2]  # no test split: the trained model is evaluated by a metric


class Score(BaseModel):
    """A text's score by the metric; ``None`` if it could not be scored."""

    id: str
    value: float | None


@dataclass
class Preferences(Builder):
    """Chosen and rejected texts on topics, by a metric's scores of a language model's samples.

    Args:
        topics: files with topics: rows with the field ``topic``, e.g. of ``bios`` or generation
            records, or ``.txt`` files with one topic per line.
        generator: checkpoint folder of an adversary, or name of a base model.
        metric: scores the texts: ``eval.defences.PipelineScore``, a pipeline with or without
            defences, or a custom ``eval.metrics.text_metric.TextMetric``, rescaled to [0, 1].
        prompt: template with ``{topic}``. Default: the checkpoint's template, or the topic alone
            for a base model.
        chat: apply the tokenizer's chat template. Default: as the adversary was trained; false for
            a base model.
        shuffle: control: chosen and rejected are swapped at random, by the seed.
        samples: texts per topic.
        temperature: sampling temperature.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum tokens; a longer text is cut after its last complete sentence.
        min_gap: minimum difference between the scores of chosen and rejected.
        shares: ratio of train and dev topics.
        batch_size: texts sampled at once; changes the speed only.
        cache: SQLite file of cached answers, to reuse the samples when they are scored by several
            metrics.
    """

    topics: list[str]
    generator: str
    metric: TextMetric
    prompt: str | None = None
    chat: bool | None = None
    shuffle: bool = False
    samples: int = 5
    temperature: float = 1.0
    top_p: float = 0.95
    max_new_tokens: int = 256
    min_gap: float = 0.1
    shares: tuple[int, int] = (9, 1)
    batch_size: int = 32
    cache: Path | None = None

    reads = ("topics",)
    speed = ("batch_size", "cache")
    least: ClassVar = {
        **dict.fromkeys(("max_new_tokens", "shares", "batch_size"), 1),
        **{"samples": 2, "temperature": 0},
    }
    probabilities = ("top_p",)

    def faults(self) -> list[str]:
        return [] if self.min_gap > 0 else [f"min_gap: expected more than 0, got {self.min_gap}"]

    def files(self) -> dict[str, dict[str, str]]:
        return {
            "preferences": by_split("preferences", PARTS),
            "samples": {"train": "samples.jsonl"},
        }

    def plan(self) -> list[Step]:
        texts = len(self._topics()) * self.samples
        return [
            Step("texts to sample", self.generator, texts, "texts"),
            Step("texts to score", type(self.metric).__name__, texts, "texts"),
        ]

    def make(self, work: Work) -> Made:
        # These import PyTorch, which `--help` does not need.
        from components.checkpoint import library_versions

        topics = self._topics()
        writer = self._writer
        adversary = (Path(self.generator) / "component.json").is_file()
        default = self.generator if adversary else "{topic}"
        template = template_of(self.prompt or default, "prompt")
        sampling = sampling_of(self, self.samples)
        answers = sample(writer, template, topics, sampling, work, "samples")
        writer.release()  # free its memory before the metric loads models
        texts = {topic: [answer.text for answer in group] for topic, group in answers.items()}
        scores = iter(self._score(topics, texts, work))
        values = {topic: [next(scores).value for _ in group] for topic, group in texts.items()}
        origin = {"prompt_template": template, "libraries": library_versions()}
        prompts = {topic: fill_prompt(template, topic=topic) for topic in topics}
        return Made(
            self._rows(topics, prompts, texts, values, work),
            read_card("preferences"),
            details=origin,
        )

    def config(self) -> dict[str, object]:
        return super().config() | {"generator": self._writer}

    def _score(self, topics: Topics, texts: Mapping[str, Sequence[str]], work: Work) -> list[Score]:
        from eval.run.run import Run

        documents = [
            Document(id=f"{topic} #{number}", topic=topic, text=text, **stratum.as_fields())
            for topic, stratum in topics.items()
            for number, text in enumerate(texts[topic])
        ]

        def scores(chunk: Sequence[Document]) -> list[Score]:
            responding = [document for document in chunk if responds(document)]
            values = text_scores("metric", self.metric, responding)
            by_id = {d.id: value for d, value in zip(responding, values, strict=True)}
            return [Score(id=document.id, value=by_id.get(document.id)) for document in chunk]

        digest = sha256_text(json.dumps([(d.id, d.text) for d in documents]))
        config = {"metric": identity(self.metric), "texts": digest}
        folder = work.resume_path("scoring")
        with Run("preferences", self.metric, config, folder, overwrite=self.overwrite) as run:
            rows = run.process("scored", scores, documents, Score, DOCUMENTS_PER_WRITE)
        abstained = sum(not responds(document) for document in documents)
        work.dropped["text that abstains"] += abstained
        unscored = sum(row.value is None for row in rows) - abstained
        work.dropped["text that could not be scored"] += unscored
        return rows

    @cached_property
    def _writer(self) -> Writer:
        from eval.models.local import LocalModel

        adversary = (Path(self.generator) / "component.json").is_file()
        chat = self.chat if adversary else bool(self.chat)
        return LocalModel(self.generator, chat, self.batch_size, cache=self.cache)

    def _topics(self) -> Topics:
        return dict(list(read_topics(self.topics).items())[: self.limit])

    def _rows(
        self,
        topics: Topics,
        prompts: Mapping[str, str],
        texts: Mapping[str, Sequence[str]],
        values: Mapping[str, Sequence[float | None]],
        work: Work,
    ) -> dict[str, list]:
        files: dict[str, list] = {f"preferences_{split}.jsonl": [] for split in PARTS}
        split_of, draws = drawn_splits(prompts, self.shares, self.seed), Random(self.seed)
        for topic, prompt in prompts.items():
            pair = best_and_worst(texts[topic], values[topic], self.min_gap, work.dropped)
            if pair is not None:
                fields = dict(zip(PAIR, pair, strict=True))
                if self.shuffle:
                    fields["shuffled"] = True
                    if draws.random() < 0.5:
                        fields |= dict(zip(SWAPPED, pair, strict=True))
                row = Preference(prompt=prompt, **fields, topic=topic)
                files[f"preferences_{split_of[topic]}.jsonl"].append(row)
        empty = [split for split in PARTS if not files[f"preferences_{split}.jsonl"]]
        if empty:
            raise UserError(
                f"no pair for {' and '.join(empty)} ({work.dropped_summary()}); "
                "use more topics or --samples, or a smaller --min_gap"
            )
        files["samples.jsonl"] = [
            {"topic": topic, "text": text, "kind": "sampled", "score": value}
            | topics[topic].as_fields()
            for topic in prompts
            for text, value in zip(texts[topic], values[topic], strict=True)
        ]
        return files


PAIR = ("chosen", "rejected", "score_chosen", "score_rejected")
SWAPPED = ("rejected", "chosen", "score_rejected", "score_chosen")


def best_and_worst(
    texts: Sequence[str], values: Sequence[float | None], min_gap: float, dropped: Counter[str]
) -> tuple[str, str, float, float] | None:
    """Return a topic's best and worst text and their scores; ``None``, and counted, if no pair.

    For equal scores the text that was sampled first is used.
    """
    scored = [index for index, value in enumerate(values) if value is not None]
    if len(scored) < 2:
        dropped["topic with fewer than two scored texts"] += 1
        return None
    best = max(scored, key=lambda index: (values[index], -index))
    worst = min(scored, key=lambda index: (values[index], index))
    # Rounded: 0.6 - 0.5 < 0.1 in floating point.
    if round(values[best] - values[worst], 9) < min_gap:
        dropped["topic whose scores differ by less than min_gap"] += 1
        return None
    return texts[best], texts[worst], values[best], values[worst]
