"""What a grid would do, told before it does: texts, curves, metrics, defences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from eval.experiments.robustness.grid import NONE, Grid
from eval.experiments.robustness.values import twin_of
from records import Document


def texts_told(documents: Sequence[Document]) -> Iterator[str]:
    """The texts by kind and generator, with their bins."""
    cells: dict[tuple, list[Document]] = {}
    for document in documents:
        cells.setdefault((document.kind, document.generator), []).append(document)
    for (kind, generator), own in cells.items():
        topics = len({document.topic for document in own})
        given = sum(document.claims is not None for document in own)
        bins = Counter(document.bin for document in own if document.bin is not None)
        told = "; " * bool(bins) + ", ".join(f"{name} {n:,}" for name, n in sorted(bins.items()))
        yield (
            f"texts       {kind:16} {generator or '':20} {len(own):6,} on {topics:,} topics, "
            f"{given:,} with claims{told}"
        )


def curves_told(curves: Mapping[str, Sequence[Document]]) -> Iterator[str]:
    """Each curve's texts and its k."""
    for name, texts in curves.items():
        places = [twin_of(document) for document in texts]
        every = ", ".join(map(str, sorted({k for _, k in places if k is not None})))
        twins = sum(k is None for _, k in places)
        yield f"curve       {name:16} {twins:,} clean texts, {len(texts):,} with k = {every}"


def grid_told(grid: Grid, controls: Sequence[str]) -> Iterator[str]:
    """Metrics with their stages, those that an earlier one shares among them; and defences."""
    first: dict = {}
    for name, pipeline in grid.metrics.items():
        key = grid.key(name)
        before = (key("decompose"), key("revise"))
        stages = {"decompose": before[:1], "revise": before, "retrieve": (*before, key("retrieve"))}
        told = []
        for stage, place in stages.items():
            part = getattr(pipeline, stage)
            if part is not None:
                owner = first.setdefault((stage, place), name)
                told.append(_stage(part) + f" (as {owner})" * (owner != name))
        for number, verifier in enumerate(pipeline.verify):
            place = (*stages["retrieve"], key("verify", number))
            owner = first.setdefault(("verify", place), name)
            told.append(_stage(verifier) + f" (as {owner})" * (owner != name))
        yield f"metric      {name:16} {' → '.join(told)}{', a control' * (name in controls)}"
    yield f"defence     {NONE}"
    for name, select in grid.defences.items():
        yield f"defence     {name:16} {_stage(select)}{', a control' * (name in controls)}"


def _stage(part: object) -> str:
    return getattr(part, "__name__", type(part).__name__)
