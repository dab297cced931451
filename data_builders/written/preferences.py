"""``preferences``: pairs of texts that a factuality metric ordered, to train an adversary on.

A language model writes several texts on each topic, the pipeline scores them, and the best and the
worst of a topic become one record. ``train/preference.py`` learns from such records; comparing a
metric with and without Core, both ways, asks which of the two is easier to game (Core, 2407.03572,
asks it with imitations only).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from components.encoding import fill_prompt
from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import Card
from data_builders.sampled import sample, sampling_of, template_of
from data_builders.splits import SPLITS, by_split, drawn_splits
from data_builders.topics import Topics, read_topics
from eval.models.chat import Writer
from records import Document, Preference, UserError, sha256_text

if TYPE_CHECKING:
    from eval.pipeline import Pipeline, Scored

# What a kill loses at most; the pipeline's stages batch across documents.
DOCUMENTS_A_WRITE = 128
PARTS = SPLITS[:2]  # no test: what is trained here is judged by a metric


@dataclass
class Preferences(Builder):
    """Chosen and rejected texts on topics, by a metric's score of a language model's samples.

    Args:
        topics: files whose topics are taken: rows with the field ``topic``, such as those of
            ``bios`` or generation records, or ``.txt`` files with a topic a line.
        generator: who writes: an adversary's checkpoint folder, or a base model's name.
        pipeline: configuration file of the metric, as for ``python -m eval score --config``.
        prompt: template with ``{topic}``; null takes the checkpoint's own; a base model is
            then given the topic alone.
        chat: put the prompt through the tokenizer's chat template; null: as the adversary was
            trained, and of a base model not.
        selection: ``core`` scores the claims that Core keeps, ``none`` all of them.
        score: ``precision``, or ``factscore``, which punishes texts of few claims.
        verdict: assessor and verdict that score, e.g. ``nli.default``, where there are several.
        samples: texts a topic.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: a text that reaches it is cut after its last whole sentence.
        min_gap: least difference of score between chosen and rejected.
        shares: topics of train and dev.
        batch_size: texts that are sampled together; changes the speed, not the texts.
        cache: SQLite file of answers, so that builds that score the same texts in two ways sample
            them once.
        seed: of sampling and of the split.
    """

    topics: list[str]
    generator: str
    pipeline: str
    prompt: str | None = None
    chat: bool | None = None
    selection: Literal["none", "core"] = "none"
    score: Literal["precision", "factscore"] = "precision"
    verdict: str | None = None
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
        return [] if self.min_gap > 0 else [f"min_gap: {self.min_gap}; give more than 0"]

    def files(self) -> dict[str, dict[str, str]]:
        return {
            "preferences": by_split("preferences", PARTS),
            "samples": {"train": "samples.jsonl"},
        }

    def plan(self) -> list[Step]:
        texts = len(self._topics()) * self.samples
        return [
            Step("texts to sample", self.generator, texts, "texts"),
            Step("texts to score", self.pipeline, texts, "texts"),
        ]

    def make(self, work: Work) -> Made:
        # PyTorch comes with these, and `--help` has no need of it.
        from components.checkpoint import library_versions
        from eval.pipeline import read_pipeline
        from eval.run.provenance import hash_inputs

        pipeline, shown = read_pipeline(self.pipeline)
        if self.selection == "core" and pipeline.select is None:
            raise UserError(f"{self.pipeline}: no `select` stage, which selection: core needs")
        topics = self._topics()
        writer, template = self._writer()
        sampling = sampling_of(self, self.samples)
        answers = sample(writer, template, topics, sampling, work, "samples")
        writer.release()  # two models at a time are more than enough
        texts = {topic: [answer.text for answer in own] for topic, own in answers.items()}
        scored = _scored(pipeline, topics, texts, shown, work)
        told = (self.selection, self.score, self.verdict)
        values = {
            topic: [value_of(next(scored), *told, work.dropped) for _ in own]
            for topic, own in texts.items()
        }
        origin = {
            "generator": writer.identity | {"prompt_template": template, **sampling},
            "pipeline": shown,
            "inputs": dict(hash_inputs([shown, self.generator])),
            "libraries": library_versions(),
        }
        prompts = {topic: fill_prompt(template, topic=topic) for topic in topics}
        return Made(self._rows(topics, prompts, texts, values, work), CARD, found=origin)

    def _writer(self) -> tuple[Writer, str]:
        from eval.models.local import LocalModel

        adversary = (Path(self.generator) / "component.json").is_file()
        chat = self.chat if adversary else bool(self.chat)
        own = self.generator if adversary else "{topic}"
        options = {"batch_size": self.batch_size, "cache": self.cache}
        return LocalModel(self.generator, chat, **options), template_of(
            self.prompt or own, "prompt"
        )

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
        split_of = drawn_splits(prompts, self.shares, self.seed)
        for topic, prompt in prompts.items():
            pair = best_and_worst(texts[topic], values[topic], self.min_gap, work.dropped)
            if pair is not None:
                fields = dict(zip(PAIR, pair, strict=True))
                row = Preference(prompt=prompt, **fields, topic=topic)
                files[f"preferences_{split_of[topic]}.jsonl"].append(row)
        empty = [split for split in PARTS if not files[f"preferences_{split}.jsonl"]]
        if empty:
            raise UserError(
                f"no pair for {' and '.join(empty)} ({work.why()}); give more topics or --samples, "
                "or a smaller --min_gap"
            )
        files["samples.jsonl"] = [
            {"topic": topic, "text": text, "kind": "sampled", "score": value}
            | topics[topic].known()
            for topic in prompts
            for text, value in zip(texts[topic], values[topic], strict=True)
        ]
        return files


def _scored(
    pipeline: Pipeline,
    topics: Topics,
    texts: Mapping[str, Sequence[str]],
    shown: Mapping[str, object],
    work: Work,
) -> Iterator[Scored]:
    from eval.pipeline import Scored
    from eval.run.run import Run

    documents = [
        Document(id=f"{topic} #{number}", topic=topic, text=text, **stratum.known())
        for topic, stratum in topics.items()
        for number, text in enumerate(texts[topic])
    ]
    digest = sha256_text(json.dumps([(d.id, d.text) for d in documents]))
    config = {"pipeline": shown, "texts": digest}
    with Run("preferences", pipeline, config, work.kept("scoring")) as run:
        found = run.process("scored", pipeline.score, documents, Scored, DOCUMENTS_A_WRITE)
    return iter(found)


def value_of(
    scored: Scored, selection: str, field: str, verdict: str | None, dropped: Counter[str]
) -> float | None:
    """A text's score; ``None``, counted, where it abstains or could not be judged.

    Args:
        selection: whose claims count.
        field: the score, e.g. ``precision``.
        verdict: assessor and verdict that score, where there are several.
    """
    own = {f"{s.assessor}.{s.name}": s for s in scored.scores if s.selection == selection}
    if len(own) > 1 and verdict is None:
        raise UserError(f"the pipeline gives {', '.join(own)}; name one with --verdict")
    # A text without claims has no verdicts, and one score that no assessor gave.
    alone = next(iter(own.values())) if verdict is None or not scored.claims else None
    found = alone or own.get(verdict)
    if found is None:
        raise UserError(f"--verdict {verdict}: the pipeline gives {', '.join(own)}")
    if not found.responded:
        dropped["text that abstains"] += 1
    elif found.precision is None:
        dropped["text of which no claim could be judged"] += 1
    else:
        dropped["claim without a verdict, left out of its text's score"] += found.failed
    return getattr(found, field) if found.responded else None


PAIR = ("chosen", "rejected", "score_chosen", "score_rejected")


def best_and_worst(
    texts: Sequence[str],
    values: Sequence[float | None],
    min_gap: float,
    dropped: Counter[str],
) -> tuple[str, str, float, float] | None:
    """The best and the worst text of a topic and their scores; ``None``, counted, for no pair.

    Of equal scores the text that was sampled first counts.
    """
    known = [index for index, value in enumerate(values) if value is not None]
    if len(known) < 2:
        dropped["topic with fewer than two scored texts"] += 1
        return None
    best = max(known, key=lambda index: (values[index], -index))
    worst = min(known, key=lambda index: (values[index], index))
    # 0.6 and 0.5 are 0.1 apart, which floats have a little below.
    if round(values[best] - values[worst], 9) < min_gap:
        dropped["topic whose scores differ by less than min_gap"] += 1
        return None
    return texts[best], texts[worst], values[best], values[worst]


CARD = Card(
    pretty_name="Preferences of a factuality metric",
    license="other",
    task_categories=("text-generation",),
    tags=("factuality", "preference", "dpo", "adversarial"),
    text="""\
Texts that a language model wrote about topics, and what a factuality metric made of them.

- `preferences_*`: for each topic the text with the highest and the one with the lowest score
  (`chosen`, `rejected`, `score_chosen`, `score_rejected`), and the `prompt` as it was given, before
  any chat template. A topic belongs to one split. A topic without two scored texts, or whose scores
  are too close, has no pair; `manifest.json` counts them.
- `samples.jsonl`: every text with its score; `null` for a text that abstains or that could not be
  judged. Such texts are in no pair.

The order is the metric's, no human's: a chosen text may be empty talk, and **texts of either kind
may state falsehoods about real people**. Made to test metrics, not to make models truthful. The
licence is that of the generator's output.
""",
)
