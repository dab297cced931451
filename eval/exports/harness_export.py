"""Results in the form of evaluation harnesses: lm-evaluation-harness and inspect_ai.

The standard error is that of the bootstrap over topics, from the 95 % interval: its width / (2 ×
1.96). A value without an interval has none.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from records import Result, ResultFile

Harness = Literal["lm_eval", "inspect"]


def lm_eval(file: ResultFile) -> dict:
    """Return results as lm-evaluation-harness 0.4 writes them.

    A task is the domain, kind and generator of texts; a filter is the selection, with the assessor
    and variant if set. ``n`` (topics) and ``failed`` (claims) of a metric are next to its value.
    """
    results: dict[str, dict] = {row: {"alias": row} for row in map(_task, file.results)}
    for row in file.results:
        for name, value in _values(row).items():
            suffix = "" if name == "mean" else f"_{name}"
            results[_task(row)][f"{row.metric}{suffix},{_scorer(row)}"] = value
    topics = {task: max(r.n for r in file.results if _task(r) == task) for task in results}
    return {
        "results": results,
        "configs": dict.fromkeys(results, file.provenance.get("config", {})),
        "versions": dict.fromkeys(results, file.schema_version),
        "n-samples": {task: {"original": n, "effective": n} for task, n in topics.items()},
    }


def inspect(file: ResultFile) -> dict:
    """Return results as a log that ``inspect_ai.log.read_eval_log`` reads.

    A score is one metric of one task and scorer, named as in :func:`lm_eval`; samples are topics.
    """
    scores = [
        {
            "name": f"{row.metric} {_task(row)}",
            "scorer": _scorer(row),
            "scored_samples": row.n,
            "params": row.model_dump(mode="json", exclude_none=True),
            "metrics": {
                name: {"name": name, "value": value}
                for name, value in _values(row).items()
                if value not in (None, "N/A")
            },
        }
        for row in file.results
    ]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    task = {"created": created, "task": file.experiment, "dataset": {}, "model": "none/none"}
    return {
        "version": 2,
        "status": "success",
        "eval": task | {"config": {}, "metadata": file.provenance},
        "results": {"scores": scores},
    }


def _values(row: Result) -> dict[str, float | str | None]:
    # "N/A" is lm-evaluation-harness's missing standard error
    stderr = "N/A" if row.ci95 is None else (row.ci95[1] - row.ci95[0]) / (2 * 1.96)
    return {"mean": row.value, "stderr": stderr, "n": row.n, "failed": row.failed}


def _task(row: Result) -> str:
    parts = (row.domain, row.kind, row.against, row.generator, row.group, row.bin)
    return "_".join(part for part in parts if part not in (None, "all"))


def _scorer(row: Result) -> str:
    parts = (row.selection, row.assessor, row.variant)
    return ".".join(str(part) for part in parts if part is not None)


HARNESSES: Mapping[Harness, Callable[[ResultFile], dict]] = {"lm_eval": lm_eval, "inspect": inspect}
