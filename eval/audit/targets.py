"""What is audited: a metric or reward in a Python file, or given scores."""

import asyncio
import inspect
import math
import runpy
import sys
import sysconfig
import traceback
from collections import Counter, defaultdict
from collections.abc import Awaitable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from eval.metrics.text_metric import TextMetric
from records import Document, UserError, read_records
from records.errors import first_line
from records.types import Record

PROMPT = "Write a biography of {}."
_EXPECTED = (
    "expected a TextMetric, score(texts), score(documents), or a reward (prompts, completions, "
    "**columns) with the columns id, topic and passages"
)
Repeats = Literal["mean"]


class Prediction(Record):
    """A score that was made elsewhere."""

    id: str
    score: float | None = None


class Predictions(TextMetric):
    """Scores of a file, one per text.

    Args:
        repeats: ``mean`` averages several scores of a text; null refuses them.
    """

    range = None

    def __init__(self, path: str, repeats: Repeats | None = None):
        self.path = path
        scores: dict[str, list[float | None]] = defaultdict(list)
        for row in read_records(path, Prediction):
            scores[row.id].append(row.score)
        repeated = [name for name, of_text in scores.items() if len(of_text) > 1]
        if repeated and repeats is None:
            raise UserError(
                f"{path}: {len(repeated):,} of {len(scores):,} ids have several scores, such as "
                f"{repeated[0]!r}; pass one score per id, or --repeats mean"
            )
        self.scores = {
            name: None if None in of_text else fmean(of_text) for name, of_text in scores.items()
        }

    def check(self, ids: Collection[str]) -> None:
        """Raise an error if a text has no score, or a score no text."""
        missing = [name for name in ids if name not in self.scores]
        unknown = [name for name in self.scores if name not in set(ids)]
        for names, problem in ((missing, "texts have no score"), (unknown, "ids are of no text")):
            if names:
                raise UserError(
                    f"{self.path}: {len(names):,} {problem}, such as {names[0]!r}; score the texts "
                    "that `--texts` writes with the same `--max_texts`; null marks a failure"
                )

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        return [self.scores[document.id] for document in documents]


class Guarded(TextMetric):
    """A user's metric; a text on which it raises an exception, or whose score is NaN, fails.

    Args:
        metric: a TextMetric, a function, or rewards, which are added up as trl does.

    Attributes:
        errors: messages of exceptions and their counts.
        has_answered: whether any text had a score.
    """

    range = None

    def __init__(self, name: str, metric: object):
        self.name = name
        metrics = metric if isinstance(metric, list | tuple) else [metric]
        self.sees_all = any(getattr(part, "sees_all", False) for part in metrics)
        self.functions = [Function(name, part) for part in metrics]
        self.errors: Counter[str] = Counter()
        self.has_answered = False

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        try:
            parts = [function(documents) for function in self.functions]
        except UserError:
            raise
        except Exception as error:
            if len(documents) > 1:
                return self._score_one_by_one(documents)
            self.errors[described(error)] += 1
            return [None]
        sums = [_sum(scores) for scores in zip(*parts, strict=True)]
        self.has_answered |= any(score is not None for score in sums)
        return sums

    def _score_one_by_one(self, documents: Sequence[Document]) -> list[float | None]:
        scores = [score for document in documents for score in self.score([document])]
        if not self.has_answered:
            raise UserError(f"{self.name}: {next(reversed(self.errors))} (on all texts)")
        return scores


class Function:
    """One function of a metric, with the arguments that it takes.

    Completions are texts or, if the function fails on the first of these, chat messages.
    """

    def __init__(self, name: str, metric: object):
        self.name = name
        self.function = metric.score if isinstance(metric, TextMetric) else metric
        self.takes_documents = isinstance(metric, TextMetric)
        if not callable(self.function) or hasattr(self.function, "forward"):
            raise UserError(f"{name}: {_EXPECTED}")
        self.is_chat: bool | None = None
        text = Document(id="-", topic="-", text="-")
        words, options = self._arguments([text], is_chat=False)
        try:
            inspect.signature(self.function).bind(*words, **options)
        except TypeError as error:
            raise UserError(f"{name}: {error}; {_EXPECTED}") from None

    def __call__(self, documents: Sequence[Document]) -> list[float]:
        if self.is_chat is None and "completions" in self._parameters:
            self.is_chat = self._needs_chat(documents[:1])
        return self._call(documents, bool(self.is_chat))

    def _needs_chat(self, documents: Sequence[Document]) -> bool | None:
        for is_chat in (False, True):
            try:
                self._call(documents, is_chat)
            except Exception:
                continue
            return is_chat
        return None

    def _call(self, documents: Sequence[Document], is_chat: bool) -> list[float]:
        words, options = self._arguments(documents, is_chat)
        answer = self.function(*words, **options)
        if inspect.isawaitable(answer):
            answer = _loop().submit(_runner().run, _awaited(answer)).result()
        scores = [math.nan if score is None else float(score) for score in answer]
        if len(scores) != len(documents):
            raise UserError(f"{self.name}: expected {len(documents)} scores, got {len(scores)}")
        return scores

    @property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)

    def _arguments(
        self, documents: Sequence[Document], is_chat: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        parameters = self._parameters
        texts = [document.text for document in documents]
        if self.takes_documents or "documents" in parameters:
            return [documents], {}
        if "completions" not in parameters:
            return [texts], {}
        prompts = [PROMPT.format(document.topic) for document in documents]
        columns = {
            "prompts": _messages("user", prompts) if is_chat else prompts,
            "completions": _messages("assistant", texts) if is_chat else texts,
            "id": [document.id for document in documents],
            "topic": [document.topic for document in documents],
            "passages": [passage_texts(document) for document in documents],
        }
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return [], {n: column for n, column in columns.items() if takes_all or n in parameters}


def _messages(role: str, texts: Sequence[str]) -> list[list[dict[str, str]]]:
    return [[{"role": role, "content": text}] for text in texts]


def _sum(scores: Sequence[float]) -> float | None:
    present = [score for score in scores if math.isfinite(score)]
    return sum(present) if present else None


@cache
def _loop() -> ThreadPoolExecutor:
    # Its own thread, since a notebook has a running loop in this one.
    return ThreadPoolExecutor(1)


@cache
def _runner() -> asyncio.Runner:
    # One loop for all batches: connections of a metric belong to it.
    return asyncio.Runner()


async def _awaited(answer: Awaitable) -> Any:
    return await answer


def described(error: Exception) -> str:
    """An exception in one line, with file and line of the user's code."""
    stdlib = sysconfig.get_path("stdlib")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and not frame.filename.startswith((stdlib, "<frozen"))
    ]
    message = f"{type(error).__name__}: {first_line(error)}"
    if not frames:
        return message
    last = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    return f"{message} ({Path(last.filename).name}:{last.lineno})"


def passage_texts(document: Document) -> list[str]:
    """The evidence of a text."""
    return [passage.text for passage in document.passages or ()]


def load(target: str, repeats: Repeats | None = None) -> TextMetric:
    """Load ``FILE.py``, ``FILE.py:NAME`` or a file of predictions."""
    path, _, name = target.partition(":")
    if not path.endswith(".py"):
        return Predictions(path, repeats)
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
        raise UserError(f"{path}: {described(error)}") from None
