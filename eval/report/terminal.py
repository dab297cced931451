"""Terminal output of a run: values with intervals, cost, usage and unread pages."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from eval.report.declare import interval, number
from records import Passage, Result, ResultFile

MOST_REASONS = 3
_UNITS = {
    "pairs": "pairs",
    "answers": "calls",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "new tokens",
    "seconds": "s",
}


def format_value(row: Result) -> str:
    """Format a result: its value, 95 % interval if present, n and failures."""
    value = f"{number(row.value)} {interval(row)}".strip()
    return f"{value} n={row.n} failed={row.failed}"


def format_bounds(row: Result, results: Sequence[Result]) -> str:
    """Format the values if no failed claim was supported, and if all were; empty without any."""
    names = ("metric", "assessor", "selection", "kind", "generator", "group", "bin")
    cell = [getattr(row, name) for name in names]
    same = [r for r in results if [getattr(r, name) for name in names] == cell]
    values = {r.variant: r.value for r in same}
    low, high = (values.get(f"failed_{name}") for name in ("not_supported", "supported"))
    return "" if low is None or high is None else f" ({low:.3f} to {high:.3f} with the failed)"


def aggregation_notes(file: ResultFile) -> list[str]:
    """State how ``score`` aggregated documents, if not by default."""
    how = {"failed": "", "excluded": 0} | file.provenance.get("aggregation", {})
    wrong = ["Failed claims count as not supported."] * (how["failed"] == "wrong")
    return wrong + [f"{how['excluded']:,} documents are excluded."] * bool(how["excluded"])


def format_usage(row: dict[str, Any]) -> str:
    """Format a row of ``usage`` in a results file's provenance."""
    cost = f", cost {row['cost']:,.2f}" if "cost" in row else ""
    return (
        f"{model_name(row['model'])}: {row['answers']:,} answers ({row['failed']:,} failed), "
        f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens{cost}"
    )


def format_cost(cost: Counter[str], total: int) -> list[str]:
    """Format the cost per document, and that of ``total`` documents at the same rate.

    Args:
        cost: as in :class:`eval.run.run.Run`; quantities of 0 are omitted.
        total: number of documents.
    """
    lines = []
    for label, documents in (("per document", 1), (f"all {total:,} documents", total)):
        values = {key: value * documents / cost["documents"] for key, value in cost.items()}
        amounts = [f"{values[key]:,.1f} {unit}" for key, unit in _UNITS.items() if values.get(key)]
        lines.append(f"{label}: {', '.join(amounts)}")
    return lines


def unread_pages(passages: Iterable[Passage]) -> list[str]:
    """One line with the number of pages that could not be read and the reasons; empty if none."""
    passages = list(passages)
    reasons = Counter(
        p.model_extra["unread"] for p in passages if p.model_extra and "unread" in p.model_extra
    )
    if not reasons:
        return []
    commonest = reasons.most_common(MOST_REASONS)
    parts = [f"{reason} ({n:,})" for reason, n in commonest]
    rest = reasons.total() - sum(n for _, n in commonest)
    parts += [f"other reasons ({rest:,})"] if rest else []
    return [
        f"{reasons.total():,} of {len(passages):,} passages are snippets, since their pages could "
        f"not be read: {', '.join(parts)}"
    ]


def model_name(identity: dict[str, Any]) -> str:
    """Return the model name in an identity, or the whole identity of an unnamed backend."""
    model = identity.get("model", identity)
    return str(model.get("id", model) if isinstance(model, dict) else model)
