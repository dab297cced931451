"""Scored documents to results: macro means with bootstrap intervals over topics."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from components.measures import bootstrap
from eval.pipeline import Scored
from records import Result


def summarise(
    scored: Sequence[Scored],
    config_hash: str,
    domain: str,
    components: str = "trained",
    group: str = "all",
    seed: int = 0,
) -> list[Result]:
    """Results for every kind and generator among the documents, with and without Core.

    Metrics: ``factual_precision`` and ``factscore`` (macro over responding documents),
    ``claims`` (subclaims a text), ``kept_share`` (share of subclaims that Core keeps),
    ``respond_ratio`` and ``empty_selection`` (share of responding texts of which nothing is left).
    With several verifiers or named verdicts, each has metrics of its own: ``metric:assessor.name``.
    """
    assessors = {(score.assessor, score.name) for d in scored for score in d.scores if score.kept}
    several = len(assessors) > 1
    cells: dict[tuple, list[tuple[Scored, object]]] = {}
    for document in scored:
        for score in document.scores:
            key = (
                document.document.kind or "normal",
                document.document.generator or "given",
                score.selection,
                (score.assessor, score.name) if several else None,
            )
            cells.setdefault(key, []).append((document, score))
    results = []
    for (kind, generator, selection, assessor), rows in cells.items():
        values = _columns(rows, selection)
        topics = [document.document.topic for document, _ in rows]
        failed = sum(score.failed for _, score in rows)
        for metric, column in values.items():
            there = ~np.isnan(column)
            found = _mean(
                column[there], [t for t, keep in zip(topics, there, strict=True) if keep], seed
            )
            results.append(
                Result(
                    metric=metric if assessor is None else f"{metric}:{'.'.join(assessor)}",
                    selection=selection,
                    kind=kind,
                    generator=generator,
                    domain=domain,
                    group=group,
                    components=components,
                    n=len({t for t, keep in zip(topics, there, strict=True) if keep}),
                    failed=failed,
                    value=found["value"],
                    ci95=found["ci95"],
                    config_hash=config_hash,
                )
            )
    return results


def _columns(rows: list[tuple[Scored, object]], selection: str) -> dict[str, np.ndarray]:
    """One value a document; NaN where the document does not enter the mean."""

    def column(value) -> np.ndarray:
        return np.asarray([math.nan if (v := value(s)) is None else float(v) for _, s in rows])

    found = {
        "factual_precision": column(lambda s: s.precision),
        "factscore": column(lambda s: s.factscore),
        "claims": column(lambda s: s.kept if s.responded else None),
    }
    if selection == "none":
        found["respond_ratio"] = column(lambda s: s.responded)
    else:
        found["kept_share"] = column(lambda s: s.kept / s.claims if s.claims else None)
        found["empty_selection"] = column(lambda s: s.empty_selection if s.responded else None)
    return found


def _mean(values: np.ndarray, topics: list[str], seed: int) -> dict:
    if not len(values):
        return {"value": None, "ci95": None}
    return bootstrap(lambda rows: {"mean": float(values[rows].mean())}, topics, seed=seed)["mean"]
