"""A pipeline's score of each of a topic's texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from data_builders.builder import Work
from data_builders.topics import Topics
from eval.pipeline import Pipeline, Scored
from eval.run.run import Run
from records import Document, UserError, sha256_text

# What a kill loses at most; the pipeline's stages batch across documents.
DOCUMENTS_A_WRITE = 128


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
