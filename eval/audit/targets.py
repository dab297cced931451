"""What is audited: a metric or reward in a Python file, or given scores."""

import inspect
import math
import runpy
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.metrics.text_metric import TextMetric
from records import Document, UserError, read_records
from records.errors import first_line
from records.types import Record

PROMPT = "Write a biography of {}."
_EXPECTED = (
    "expected a TextMetric, score(texts), score(documents), or a reward (prompts, completions, "
    "**columns) with the columns id, topic and passages"
)


class Prediction(Record):
    """A score that was made elsewhere."""

    id: str
    score: float | None = None


class Guarded(TextMetric):
    """A user's metric; a text on which it raises an exception, or whose score is NaN, fails.

    Attributes:
        errors: messages of exceptions and their counts.
    """

    range = None

    def __init__(self, name: str, metric: object):
        self.name = name
        self.function = metric.score if isinstance(metric, TextMetric) else metric
        self.takes_documents = isinstance(metric, TextMetric)
        if not callable(self.function):
            raise UserError(f"{name}: {_EXPECTED}")
        self.errors: Counter[str] = Counter()

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        words, options = self._arguments(documents)
        try:
            inspect.signature(self.function).bind(*words, **options)
        except TypeError as error:
            raise UserError(f"{self.name}: {error}; {_EXPECTED}") from None
        try:
            scores = [math.nan if s is None else float(s) for s in self.function(*words, **options)]
        except Exception as error:
            if len(documents) > 1:
                return self._score_one_by_one(documents)
            self.errors[f"{type(error).__name__}: {first_line(error)}"] += 1
            return [None]
        if len(scores) != len(documents):
            raise UserError(f"{self.name}: expected {len(documents)} scores, got {len(scores)}")
        return [score if math.isfinite(score) else None for score in scores]

    def _score_one_by_one(self, documents: Sequence[Document]) -> list[float | None]:
        before = self.errors.total()
        scores = [score for document in documents for score in self.score([document])]
        if self.errors.total() - before == len(documents):
            raise UserError(f"{self.name}: {next(reversed(self.errors))} (on all texts)")
        return scores

    def _arguments(self, documents: Sequence[Document]) -> tuple[list[Any], dict[str, Any]]:
        parameters = inspect.signature(self.function).parameters
        texts = [document.text for document in documents]
        if self.takes_documents or "documents" in parameters:
            return [documents], {}
        if "completions" not in parameters:
            return [texts], {}
        columns = {
            "prompts": [PROMPT.format(document.topic) for document in documents],
            "completions": texts,
            "id": [document.id for document in documents],
            "topic": [document.topic for document in documents],
            "passages": [passage_texts(document) for document in documents],
        }
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return [], {n: column for n, column in columns.items() if takes_all or n in parameters}


def passage_texts(document: Document) -> list[str]:
    """The evidence of a text."""
    return [passage.text for passage in document.passages or ()]


def load(target: str) -> Guarded:
    """Load ``FILE.py``, ``FILE.py:NAME`` or a file of predictions."""
    path, _, name = target.partition(":")
    if not path.endswith(".py"):
        scores = {row.id: row.score for row in read_records(path, Prediction)}
        return Guarded(path, lambda documents: [scores.get(d.id) for d in documents])
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        members = runpy.run_path(path)
        kinds = [
            kind
            for kind in members.values()
            if isinstance(kind, type) and issubclass(kind, TextMetric) and kind is not TextMetric
        ]
        metric = members.get(name or "score", kinds[-1] if kinds and not name else None)
        return Guarded(target, metric() if isinstance(metric, type) else metric)
    except UserError:
        raise
    except Exception as error:
        message = f"{path}: {type(error).__name__}: {first_line(error)}"
        raise UserError(message) from None
