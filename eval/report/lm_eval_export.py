"""Results in the form of lm-evaluation-harness.

The standard error is that of the bootstrap over topics, from the 95 % interval: its width / (2 ×
1.96). A value without an interval has none.
"""

from records import Result, ResultFile


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


def _values(row: Result) -> dict[str, float | str | None]:
    stderr = "N/A" if row.ci95 is None else (row.ci95[1] - row.ci95[0]) / (2 * 1.96)
    return {"mean": row.value, "stderr": stderr, "n": row.n, "failed": row.failed}


def _task(row: Result) -> str:
    parts = (row.domain, row.kind, row.against, row.generator, row.group, row.bin)
    return "_".join(part for part in parts if part not in (None, "all"))


def _scorer(row: Result) -> str:
    parts = (row.selection, row.assessor, row.variant)
    return ".".join(str(part) for part in parts if part is not None)
