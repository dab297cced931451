"""Terminal output of a run: values with intervals, and language model usage."""

from typing import Any

from records import Result


def format_value(row: Result) -> str:
    """Format a result: its value, 95 % interval if present, n and failures."""
    number = "–" if row.value is None else f"{row.value:.3f}"
    interval = "" if row.ci95 is None else f" [{row.ci95[0]:.3f}, {row.ci95[1]:.3f}]"
    return f"{number}{interval} n={row.n} failed={row.failed}"


def format_usage(row: dict[str, Any]) -> str:
    """Format a row of ``usage`` in a results file's provenance."""
    cost = f", cost {row['cost']:,.2f}" if "cost" in row else ""
    return (
        f"{model_name(row['model'])}: {row['answers']:,} answers ({row['failed']:,} failed), "
        f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens{cost}"
    )


def model_name(identity: dict[str, Any]) -> str:
    """Return the model name in an identity, or the whole identity of an unnamed backend."""
    model = identity.get("model", identity)
    return str(model.get("id", model) if isinstance(model, dict) else model)
