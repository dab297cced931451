"""Texts that a language model samples on topics, and a pipeline's score of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from components.base import describe_base
from data_builders.builder import Work
from data_builders.journal import journalled
from data_builders.topics import Topics
from eval.models.causal import CausalLM
from eval.pipeline import Pipeline, Scored
from eval.run.provenance import inputs
from eval.run.run import Run
from records import Document, UserError, sha256_text

# What a kill loses at most. The engine samples topics of equal prompt length together, and the
# pipeline's stages batch across documents, so more at a time are faster.
TOPICS_A_WRITE, DOCUMENTS_A_WRITE = 32, 128


def describe(engine: CausalLM, model: str, sampling: Mapping[str, object]) -> dict[str, object]:
    """What decides the texts, beside the seed."""
    return {
        "model": model,
        "base": engine.component.base if engine.component else describe_base(model),
        "prompt_template": engine.template,
        "chat": engine.chat,
        "dtype": str(engine.dtype),
        **sampling,
    }


def sample(
    engine: CausalLM,
    topics: Topics,
    described: Mapping[str, object],
    sampling: Mapping[str, object],
    work: Work,
) -> dict[str, list[str]]:
    """The texts of each topic.

    Args:
        described: as :func:`describe` gives.
        sampling: the keywords of ``CausalLM.sample``.
    """
    digests = inputs(described["model"])
    rows = journalled(
        work.journal("samples", described, digests, sampling),
        {topic: topic for topic in topics},
        lambda some: [{"texts": own} for own in engine.sample(list(some), **sampling)],
        unit="topic",
        at_a_time=TOPICS_A_WRITE,
    )
    return {topic: row["texts"] for topic, row in rows.items()}


def score(
    pipeline: Pipeline,
    topics: Topics,
    texts: Mapping[str, Sequence[str]],
    shown: Mapping[str, object],
    work: Work,
) -> dict[str, list[Scored]]:
    """Every text through the pipeline.

    Args:
        texts: of each topic.
        shown: what the pipeline's configuration says.
    """
    documents = [
        Document(id=f"{topic} #{number}", topic=topic, text=text, **stratum.known())
        for topic, stratum in topics.items()
        for number, text in enumerate(texts[topic])
    ]
    digest = sha256_text(json.dumps([(d.id, d.text) for d in documents]))
    config = {"pipeline": shown, "texts": digest}
    with Run("preferences", pipeline, config, work.kept("scoring")) as run:
        found = run.documents("scored", pipeline.score, documents, Scored, DOCUMENTS_A_WRITE)
    scored = iter(found)
    return {topic: [next(scored) for _ in texts[topic]] for topic in topics}


def value_of(
    scored: Scored, selection: str, field: str, verdict: str | None, dropped: Counter[str]
) -> float | None:
    """A text's score; ``None``, counted, where it abstains or could not be judged.

    Args:
        selection: whose claims count.
        field: the score, e.g. ``precision``.
        verdict: assessor and verdict that score, where there are several.

    Raises:
        UserError: there are several and none is named, or the named one is not among them.
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
