"""A module of the ``evaluate`` library as a metric of whole texts."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import evaluate

from eval.metrics.text_metric import TextMetric
from records import Document, UserError
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
        range: smallest and largest score.
    """

    def __init__(
        self,
        module: str,
        result: str,
        columns: dict[str, Column] | None = None,
        settings: dict[str, Any] | None = None,
        range: tuple[float, float] = (0.0, 1.0),
    ):
        self.module = module
        self.result = result
        self.columns = columns or {"predictions": "text", "references": "passages"}
        self.settings = settings or {}
        self.range = range

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        return list(map(self._score, documents))

    def _score(self, document: Document) -> float | None:
        texts = [passage.text for passage in document.passages or ()]
        values = {"text": document.text, "topic": document.topic}
        values |= {"passages": "\n".join(texts), "passage_list": texts}
        columns = {name: [values[source]] for name, source in self.columns.items()}
        if not all(column[0] for column in columns.values()):
            return None
        results = _load(self.module).compute(**columns, **self.settings)
        if self.result not in results:
            raise UserError(f"result: expected one of {', '.join(results)}, got {self.result!r}")
        value = results[self.result]
        value = value[0] if isinstance(value, list) else value
        return None if value is None or math.isnan(value) else float(value)


@cache
def _load(module: str) -> evaluate.EvaluationModule:
    try:
        return evaluate.load(module)
    except Exception as error:
        raise UserError(
            f"module: {module!r} cannot be loaded ({first_line(error)}); expected a name on the "
            "hub, a script or its folder"
        ) from None
