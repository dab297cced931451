"""What a user should know of scored documents beside their scores."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from components.words import WORD, to_nfc
from eval.metrics.document import Scored, named
from eval.pipeline import Pipeline
from eval.retrieve.links import unread_pages
from eval.run.parts import find_parts
from records import Document, Passage

MAX_REASONS = 3


def misspelt_fields(documents: Sequence[Document]) -> list[str]:
    """Fields that are none of a document's, but nearly one that it lacks; a line each."""
    found = []
    for name in sorted({name for document in documents for name in document.model_extra or {}}):
        for near in get_close_matches(name, Document.model_fields, n=1, cutoff=0.8):
            own = (d for d in documents if name in (d.model_extra or {}))
            if n := sum(getattr(document, near) is None for document in own):
                have = f"{n:,} of {len(documents):,} documents have `{name}`"
                found.append(f"{have}, which is not read; is it `{near}`?")
    return found


def evidence_warnings(pipeline: Pipeline, scored: Sequence[Scored]) -> list[str]:
    """Whether documents were judged by other passages than a user would think; a line each.

    Of passages that the documents bring along and the retriever reads, as its attribute
    ``reads_own_passages`` says, nothing is said but that their pages could not be read.
    """
    found = unread_pages(passage for one in scored for passage in one.passages)
    parts = find_parts(pipeline.retrieve)
    if any(getattr(part, "reads_own_passages", False) for part in parts):
        return found
    bring = sum(_unused(one.document, one.passages) for one in scored)
    if bring:
        found.append(
            f"{bring:,} of {len(scored):,} documents bring `passages`, which "
            f"{type(pipeline.retrieve).__name__} does not read; give --pipeline.retrieve null to "
            "judge by them"
        )
    strange = [one for one in scored if _strange(one.document, one.passages)]
    if strange:
        first = strange[0]
        found.append(
            f"{len(strange):,} of {len(scored):,} documents were judged by passages of which no "
            f"title fits the topic, e.g. {first.document.topic!r} by {first.passages[0].title!r}; "
            "their claims are judged by what is said of others"
        )
    return found


def failure_reasons(scored: Sequence[Scored]) -> list[str]:
    """The most frequent reasons why claims have no verdict, or sentences no claims; a line each."""
    times = Counter(
        (named(verdict.assessor, verdict.name), verdict.reason or "no reason given")
        for one in scored
        for verdict in one.verdicts
        if verdict.label == "failed"
    )
    times.update(
        ("decompose", claim.failed) for one in scored for claim in one.claims if claim.failed
    )
    lines = [f"failed {n:,} x {who}: {_short(why)}" for (who, why), n in times.most_common()]
    left = sum(n for _, n in times.most_common()[MAX_REASONS:])
    return lines[:MAX_REASONS] + ([f"failed {left:,} x for other reasons"] if left else [])


def abstention_note(scored: Sequence[Scored]) -> list[str]:
    """How many documents do not respond, where some do not; they have no precision."""
    silent = sum(any(not score.responded for score in one.scores) for one in scored)
    if not silent:
        return []
    return [
        f"{silent:,} of {len(scored):,} documents do not respond (empty, or a refusal) and have no "
        "precision; respond_ratio and F1@K count them"
    ]


def has_only_failures(scored: Sequence[Scored]) -> bool:
    """Whether there were claims to judge, and not one could be."""
    scores = [score for one in scored for score in one.scores]
    return any(score.failed for score in scores) and not any(
        score.judged or score.irrelevant for score in scores
    )


def _unused(document: Document, passages: Sequence[Passage]) -> bool:
    """Whether a document brings passages and was judged by none of them, nor by a part of one.

    A retriever of a user's own may read them without saying so.
    """
    own = [passage.text for passage in document.passages or []]
    return bool(own) and not any(found.text in text for found in passages for text in own)


def _strange(document: Document, passages: Sequence[Passage]) -> bool:
    topic = _words(document.topic)
    titles = [_words(passage.title) for passage in passages if passage.title]
    return bool(topic and titles) and not any(t <= topic or topic <= t for t in titles)


def _words(name: str) -> set[str]:
    plain = re.sub(r"\(.*?\)", " ", name.replace("_", " "))
    return set(re.findall(WORD, to_nfc(plain).casefold()))


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= 120 else f"{line[:119]}…"
