"""Metrics that score a whole text, without claims and verdicts.

A user's own metric is a subclass of :class:`TextMetric`; ``text_metrics`` of ``experiment
robustness`` takes it by ``class_path``. Ready ones are in ``eval/metrics/``.
"""

from collections.abc import Sequence
from numbers import Real

from eval.metrics.probabilities import labelled_precision
from records import Claim, Document, UserError, sha256_text


class TextMetric:
    """Base class of metrics that score whole texts; higher is better.

    Attributes:
        range: smallest and largest score; ``None`` if unknown, and scores are not rescaled.
        sees_all: whether it reads what says how good a text is; only for references.
    """

    range: tuple[float, float] | None = (0.0, 1.0)
    sees_all = False

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        """One score per document, in order; ``None`` if a document could not be scored."""
        raise NotImplementedError


class Labels(TextMetric):
    """The precision of a text by its labelled claims: what a perfect judge of claims returns."""

    sees_all = True

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        return [labelled_precision(document.claims or []) for document in documents]


def blinded(document: Document) -> Document:
    """A text as a metric sees it: its topic, prompt, text, passages and claims without labels.

    Its id says nothing: neither kind nor gold nor family.
    """
    claims = document.claims and [
        Claim(**claim.model_dump(include={"id", "text", "sentence", "source", "contexts"}))
        for claim in document.claims
    ]
    more = document.model_extra or {}
    return Document(
        id=sha256_text(document.id)[:16],
        topic=document.topic,
        text=document.text,
        passages=document.passages,
        claims=claims,
        **{name: more[name] for name in ("prompt", "responds") if name in more},
    )


def text_scores(name: str, metric: TextMetric, documents: Sequence[Document]) -> list[float | None]:
    """Run a text metric, validate its scores and rescale them to [0, 1], as verdicts need."""
    scores = list(metric.score(documents if metric.sees_all else [*map(blinded, documents)]))
    if len(scores) != len(documents):
        raise UserError(
            f"text_metrics: {name}: expected {len(documents)} scores, got {len(scores)}"
        )
    if metric.range is None:
        return scores
    low, high = metric.range
    for document, score in zip(documents, scores, strict=True):
        if score is None:
            continue
        if not isinstance(score, Real) or not (low <= float(score) <= high):
            raise UserError(
                f"text_metrics: {name}: document {document.id!r}: expected a number in "
                f"[{low:g}, {high:g}] or None, got {score!r}"
            )
    return [None if score is None else (float(score) - low) / (high - low) for score in scores]
