"""What a metric and a defence make of an adversary's texts over the steps of its training.

A row of results has the adversary as its ``kind`` and the step as its ``variant``. What precision,
gain and an interval are is said once, in ``eval/experiments/robustness/robustness_values.py``.
"""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel

from eval.experiments.robustness.robustness_grid import Row
from eval.experiments.robustness.robustness_values import (
    ALL,
    Cells,
    Text,
    Value,
    gain,
    gained,
    mean,
    of_texts,
)
from records import Document
from records.abstention import responds

START = "start"


class Judged(BaseModel):
    """How many of a text's sentences are relevant, how many are not, and how many nobody judged."""

    id: str
    relevant: int
    irrelevant: int
    failed: int


def step_of(document: Document) -> int | None:
    """The step of training at which a text was written; ``None`` of an honest text."""
    return (document.model_extra or {}).get("step")


# Precision, claims, kept share


def of_steps(cells: Cells, seed: int) -> Iterator[Value]:
    """``factual_precision``, ``claims``, ``respond_ratio`` and ``kept_share`` at each step.

    Those of honest texts have no variant. Bounds by failures have one already and are left out:
    what failed is counted beside each value.
    """
    for step in _steps(cells):
        own = {
            place: [text for text in texts if step_of(text.document) == step]
            for place, texts in cells.items()
        }
        for value in of_texts(own, (), seed):
            if value["variant"] is None:
                yield value | {"variant": step}


def gains(cells: Cells, against: str, seed: int) -> Iterator[Value]:
    """``gain`` of each step over the first one and over honest texts, and whether it is ``gamed``.

    Args:
        against: kind of the honest texts. They are compared where two topics are shared, for gains
            here are paired by topic.
    """
    unpaired: Counter[str] = Counter()
    for (metric, defence), texts in cells.items():
        honest = [text for text in texts if step_of(text.document) is None]
        for adversary, steps in _by_step(texts).items():
            first = min(steps)
            for step, own in steps.items():
                bases = {against: honest} if honest else {}
                for name, base in (bases | {START: steps[first]}).items():
                    if name == START and step == first:
                        continue
                    paired, (value, ci95, n) = gain(own, base, seed)
                    if not paired:
                        unpaired[f"{adversary} with {name}"] += 1
                        continue
                    row = {"assessor": metric, "selection": defence, "kind": adversary}
                    row |= {"generator": ALL, "variant": step, "against": name, "n": n}
                    row["failed"] = sum(text.score.failed for text in (*own, *base))
                    yield from gained(row, value, ci95)
    for pair in unpaired:
        print(f"gain: {pair}: fewer than two topics with a precision in both", file=sys.stderr)


# The texts themselves


def distinct(rows: Sequence[Row], seed: int) -> Iterator[Value]:
    """``distinct_share``: how many different texts there are at a step, of those that respond.

    The topic's name is left out of the comparison: a model that writes one text about everybody has
    a share near 0. Its interval takes how often each text occurs as given.
    """
    for (adversary, step), own in _of_rows(rows).items():
        some = [row for row in own if responds(row.document)]
        bare = [_without_topic(row.document) for row in some]
        times = Counter(bare)
        column = np.array([1 / times[text] for text in bare])
        row = {"metric": "distinct_share", "kind": adversary, "variant": step, "generator": ALL}
        yield row | {"failed": 0} | mean(column, some, seed)


def relevance(rows: Sequence[Row], judged: Sequence[Judged], seed: int) -> Iterator[Value]:
    """``relevance``: the mean over texts of the share of their judged sentences that are relevant.

    Args:
        rows: the texts.
        judged: one a text, in their order.
    """
    of = {row.document.id: own for row, own in zip(rows, judged, strict=True)}
    for (adversary, step), own in _of_rows(rows).items():
        found = [of[row.document.id] for row in own]
        column = np.array([_share(one) for one in found])
        row = {"metric": "relevance", "kind": adversary, "variant": step, "generator": ALL}
        yield row | {"failed": sum(one.failed for one in found)} | mean(column, own, seed)


# Small steps


def _share(judged: Judged) -> float:
    known = judged.relevant + judged.irrelevant
    return judged.relevant / known if known else math.nan


def _without_topic(document: Document) -> str:
    return " ".join(document.text.replace(document.topic, "{topic}").split()).casefold()


def _steps(cells: Cells) -> list[int | None]:
    found = {step_of(text.document) for texts in cells.values() for text in texts}
    return sorted(found, key=lambda step: -1 if step is None else step)


def _by_step(texts: Sequence[Text]) -> dict[str, dict[int, list[Text]]]:
    found: dict[str, dict[int, list[Text]]] = defaultdict(lambda: defaultdict(list))
    for text in sorted(texts, key=lambda text: step_of(text.document) or 0):
        step = step_of(text.document)
        if step is not None:
            found[text.document.kind][step].append(text)
    return found


def _of_rows(rows: Sequence[Row]) -> dict[tuple[str, int | None], list[Row]]:
    found: dict[tuple[str, int | None], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.document.kind, step_of(row.document)].append(row)
    return found
