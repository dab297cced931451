"""A module of the ``evaluate`` library as a metric of whole texts."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import evaluate

from eval.metrics.evidence import retrieve_for_texts
from eval.metrics.text_metric import TextMetric
from eval.stages import Retriever
from records import Document, Passage, UserError
from records.errors import first_line

Column = Literal["text", "topic", "passages", "passage_list"]


class EvaluateModule(TextMetric):
    """Call a module once per text; a text whose columns are empty, or whose score is NaN, fails.

    The module's code runs: use modules that you trust.

    Args:
        module: name on the hub, or a script (``metrics/mine.py``) or its folder, read offline.
        result: key of the module's result that is the score.
        columns: argument of the module to what it gets of each document: ``text``, ``topic``,
            ``passages`` (joined) or ``passage_list``.
        settings: other arguments of ``compute``.
        config_name: configuration of the module.
        range: smallest and largest score.
        retrieve: finds passages for the whole text; null uses the documents' passages.
    """

    def __init__(
        self,
        module: str,
        result: str,
        columns: dict[str, Column] | None = None,
        settings: dict[str, Any] | None = None,
        config_name: str | None = None,
        range: tuple[float, float] = (0.0, 1.0),
        retrieve: Retriever | None = None,
    ):
        self.module = module
        self.result = result
        self.columns = columns or {"predictions": "text", "references": "passages"}
        self.settings = settings or {}
        self.config_name = config_name
        self.range = range
        self.retrieve = retrieve

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        evidence = [[]] * len(documents)
        if {"passages", "passage_list"} & {*self.columns.values()}:
            evidence = retrieve_for_texts(self.retrieve, documents)
        return [self._score(d, passages) for d, passages in zip(documents, evidence, strict=True)]

    def _score(self, document: Document, passages: Sequence[Passage]) -> float | None:
        texts = [passage.text for passage in passages]
        values = {"text": document.text, "topic": document.topic}
        values |= {"passages": "\n".join(texts), "passage_list": texts}
        columns = {name: [values[source]] for name, source in self.columns.items()}
        if not all(column[0] for column in columns.values()):
            return None
        module = _load(self.module, self.config_name)
        try:
            results = module.compute(**columns, **self.settings)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.module}: {first_line(error)}; check columns, settings"
            ) from None
        if self.result not in results:
            names = ", ".join(results)
            raise UserError(f"{self.module}: no result {self.result!r}; results: {names}")
        value = results[self.result]
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        return None if value is None or math.isnan(value) else float(value)


@cache
def _load(module: str, config_name: str | None) -> evaluate.EvaluationModule:
    try:
        return evaluate.load(module, config_name)
    except (FileNotFoundError, ImportError, ConnectionError, ValueError) as error:
        raise UserError(
            f"{module}: not an evaluate module ({first_line(error)}); pass a name on the hub, a "
            "script or a folder"
        ) from None
