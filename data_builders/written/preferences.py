"""``preferences``: pairs of texts that a factuality metric ordered, to train an adversary on.

A language model writes several texts on each topic, the pipeline scores them, and the best and the
worst of a topic become one record. ``train/preference.py`` learns from such records; comparing a
metric with and without Core, both ways, asks which of the two is easier to game (Core, 2407.03572,
asks it with imitations only).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from transformers.utils import logging

from components.base import describe_base
from components.checkpoint import library_versions
from data_builders.dataset import Card, write_dataset
from data_builders.plan import Step
from data_builders.splits import SPLITS, drawn_splits
from data_builders.topics import Topics, read_topics
from eval.commands.score import build_parser, score_resumably
from eval.models.causal import CausalLM
from eval.pipeline import Pipeline, Scored
from eval.run.provenance import config_hash, inputs
from records import (
    Document,
    JsonlAppender,
    Preference,
    UserError,
    sha256_text,
)

PARTS = SPLITS[:2]  # no test: what is trained here is judged by a metric

# What a kill loses at most. The engine samples topics of equal prompt length together, and the
# pipeline's stages batch across documents, so more at a time are faster.
TOPICS_A_WRITE, DOCUMENTS_A_WRITE = 32, 128


class Preferences:
    """Chosen and rejected texts on topics, by a metric's score of a language model's samples.

    Args:
        output: folder of the dataset.
        topics: files whose topics are taken: rows with the field ``topic``, such as those of
            ``bios`` or generation records, or ``.txt`` files with a topic a line.
        generator: who writes: an adversary's checkpoint folder, or a base model's name.
        pipeline: configuration file of the metric, as for ``python -m eval score --config``.
        prompt: template with ``{topic}``; null takes the checkpoint's own; a base model is
            then given the topic alone.
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
        limit: only the first so many topics, for a trial.
        seed: of sampling and of the split.

    Raises:
        UserError: fewer than two samples, or a gap or a share that is not positive.
    """

    def __init__(
        self,
        output: Path,
        topics: list[str],
        generator: str,
        pipeline: str,
        prompt: str | None = None,
        selection: Literal["none", "core"] = "none",
        score: Literal["precision", "factscore"] = "precision",
        verdict: str | None = None,
        samples: int = 5,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        min_gap: float = 0.1,
        shares: tuple[int, int] = (9, 1),
        batch_size: int = 32,
        limit: int | None = None,
        seed: int = 0,
    ):
        if samples < 2 or min_gap <= 0 or min(shares) < 1:
            raise UserError("samples: at least 2; min_gap: above 0; shares: at least 1 each")
        self.output = Path(output)
        self.topics = topics
        self.generator = generator
        self.pipeline = pipeline
        self.prompt = prompt
        self.selection = selection
        self.score = score
        self.verdict = verdict
        self.samples = samples
        self.sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "max_new_tokens": max_new_tokens,
        }
        self.min_gap = min_gap
        self.shares = tuple(shares)
        self.batch_size = batch_size
        self.limit = limit
        self.seed = seed
        self._journals: list[Path] = []

    def plan(self) -> list[Step]:
        """What a build would sample and score."""
        texts = len(self._topics()) * self.samples
        return [
            Step("texts to sample", self.generator, texts, "texts"),
            Step("texts to score", self.pipeline, texts, "texts"),
        ]

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes."""
        return [*(f"preferences_{split}.jsonl" for split in PARTS), "samples.jsonl"]

    def build(self) -> Path:
        """Sample, score, pair, write the folder; returns the manifest's path."""
        logging.disable_progress_bar()  # a bar for loading weights that takes a second is noise
        pipeline, shown = read_pipeline(self.pipeline)
        if self.selection == "core" and pipeline.select is None:
            raise UserError(f"{self.pipeline}: no `select` stage, which selection: core needs")
        topics = self._topics()
        engine = CausalLM(self.generator, self.prompt, self.batch_size)
        if "{topic}" not in engine.template:
            raise UserError(f"prompt {engine.template!r} has no {{topic}}; give --prompt")
        prompts = {topic: engine.prompt_for(topic) for topic in topics}
        digests = inputs([shown, self.generator])
        config = self._config(engine, shown, digests)
        texts = self._sample(engine, topics, config["generator"])
        del engine  # two models at a time are more than enough
        scored = self._score(pipeline, topics, texts, config_hash(shown, digests))
        dropped: Counter[str] = Counter()
        values = {topic: [self._value(s, dropped) for s in scored[topic]] for topic in topics}
        manifest = write_dataset(
            self.output,
            self._files(topics, prompts, texts, values, dropped),
            declared=self.writes(),
            card=CARD,
            clients=[],
            dropped=dropped,
            config=config,
            seed=self.seed,
            inputs=self.topics,
        )
        for journal in self._journals:
            journal.unlink()
        return manifest

    def _topics(self) -> Topics:
        return dict(list(read_topics(self.topics).items())[: self.limit])

    def _config(self, engine: CausalLM, pipeline: dict, digests: Mapping[str, str]) -> dict:
        """What decides the records, without the folder they go to."""
        generator = {
            "model": self.generator,
            "base": engine.component.base if engine.component else describe_base(self.generator),
            "prompt_template": engine.template,
            "chat": engine.chat,
            "dtype": str(engine.dtype),
            "samples": self.samples,
            **self.sampling,
        }
        return {
            "generator": generator,
            "pipeline": pipeline,
            "selection": self.selection,
            "score": self.score,
            "verdict": self.verdict,
            "min_gap": self.min_gap,
            "shares": list(self.shares),
            "limit": self.limit,
            "inputs": dict(digests),
            "libraries": library_versions(),
        }

    def _sample(
        self, engine: CausalLM, topics: Topics, generator: Mapping[str, object]
    ) -> dict[str, list[str]]:
        """The texts of each topic, kept in a journal while they grow.

        A text depends on the seed, its topic and its number alone, so a killed build goes on with
        the very texts it would have written.
        """
        digests = inputs(self.generator)
        key = sha256_text(json.dumps([generator, digests, self.seed], sort_keys=True))
        self._journals.append(self.output / f".samples.{key[:16]}.partial.jsonl")
        with JsonlAppender(self._journals[-1], key="topic") as done:
            todo = [topic for topic in topics if topic not in done.done]
            for start in range(0, len(todo), TOPICS_A_WRITE):
                batch = todo[start : start + TOPICS_A_WRITE]
                written = engine.sample(batch, n=self.samples, seed=self.seed, **self.sampling)
                done.append({"topic": t, "texts": w} for t, w in zip(batch, written, strict=True))
            return {topic: done.done[topic]["texts"] for topic in topics}

    def _score(
        self,
        pipeline: Pipeline,
        topics: Topics,
        texts: Mapping[str, Sequence[str]],
        key: str,
    ) -> dict[str, list[Scored]]:
        """Every text through the pipeline, resumably."""
        documents = [
            Document(id=f"{topic} #{number}", topic=topic, text=text, **stratum.known())
            for topic, stratum in topics.items()
            for number, text in enumerate(texts[topic])
        ]
        key = sha256_text(json.dumps([key, [(d.id, d.text) for d in documents]]))
        self._journals.append(self.output / f".scored.{key[:16]}.partial.jsonl")
        scored = iter(score_resumably(pipeline, documents, self._journals[-1], DOCUMENTS_A_WRITE))
        return {topic: [next(scored) for _ in texts[topic]] for topic in topics}

    def _value(self, scored: Scored, dropped: Counter[str]) -> float | None:
        """A text's score; ``None``, counted, where it abstains or could not be judged."""
        own = {f"{s.assessor}.{s.name}": s for s in scored.scores if s.selection == self.selection}
        if len(own) > 1 and self.verdict is None:
            raise UserError(f"the pipeline gives {', '.join(own)}; name one with --verdict")
        # A text without claims has no verdicts, and one score that no assessor gave.
        alone = next(iter(own.values())) if self.verdict is None or not scored.claims else None
        score = alone or own.get(self.verdict)
        if score is None:
            raise UserError(f"--verdict {self.verdict}: the pipeline gives {', '.join(own)}")
        if not score.responded:
            dropped["text that abstains"] += 1
        elif score.precision is None:
            dropped["text of which no claim could be judged"] += 1
        else:
            dropped["claim without a verdict, left out of its text's score"] += score.failed
        return getattr(score, self.score) if score.responded else None

    def _files(
        self,
        topics: Topics,
        prompts: Mapping[str, str],
        texts: Mapping[str, Sequence[str]],
        values: Mapping[str, Sequence[float | None]],
        dropped: Counter[str],
    ) -> dict[str, list]:
        """File name to its records."""
        files: dict[str, list] = {f"preferences_{split}.jsonl": [] for split in PARTS}
        split_of = drawn_splits(prompts, self.shares, self.seed)
        for topic, prompt in prompts.items():
            pair = best_and_worst(texts[topic], values[topic], self.min_gap, dropped)
            if pair is not None:
                fields = dict(zip(PAIR, pair, strict=True))
                row = Preference(prompt=prompt, **fields, topic=topic)
                files[f"preferences_{split_of[topic]}.jsonl"].append(row)
        empty = [split for split in PARTS if not files[f"preferences_{split}.jsonl"]]
        if empty:
            why = ", ".join(f"{n} x {reason}" for reason, n in sorted(dropped.items()) if n)
            raise UserError(
                f"no pair for {' and '.join(empty)} ({why or 'too few topics'}); give more topics "
                "or --samples, or a smaller --min_gap"
            )
        files["samples.jsonl"] = [
            {"topic": topic, "text": text, "kind": "sampled", "score": value}
            | topics[topic].known()
            for topic in prompts
            for text, value in zip(texts[topic], values[topic], strict=True)
        ]
        return files


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
    if values[best] - values[worst] < min_gap:
        dropped["topic whose scores differ by less than min_gap"] += 1
        return None
    return texts[best], texts[worst], values[best], values[worst]


def read_pipeline(path: str) -> tuple[Pipeline, dict]:
    """The pipeline of a configuration file of ``python -m eval score``, and what it says.

    Raises:
        UserError: no such file.
        ArgumentError: a key that the pipeline does not have.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give a configuration as for `python -m eval score`")
    parser = build_parser()
    given = parser.parse_args(["--config", path, "--documents", "-", "--output", "-"])
    shown = json.loads(parser.dump(given, format="json", skip_unset=False))["pipeline"]
    return parser.instantiate(given).pipeline, shown


CARD = Card(
    pretty_name="Preferences of a factuality metric",
    configs={
        "preferences": {split: f"preferences_{split}.jsonl" for split in PARTS},
        "samples": {"train": "samples.jsonl"},
    },
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
