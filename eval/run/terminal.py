"""What the terminal shows of a run: a value with its interval, and what a model was used for."""

from typing import Any

from records import Result


def format_value(row: Result) -> str:
    """A result's value, its interval where there is one, and what it was measured on."""
    number = "–" if row.value is None else f"{row.value:.3f}"
    interval = "" if row.ci95 is None else f" [{row.ci95[0]:.3f}, {row.ci95[1]:.3f}]"
    return f"{number}{interval} n={row.n} failed={row.failed}"


def format_usage(row: dict[str, Any]) -> str:
    """What a language model was used for: a row of ``usage`` in a file's provenance."""
    cost = f", cost {row['cost']:,.2f}" if "cost" in row else ""
    return (
        f"{model_name(row['model'])}: {row['answers']:,} answers ({row['failed']:,} failed), "
        f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens{cost}"
    )


def model_name(identity: dict[str, Any]) -> str:
    """What a language model's identity calls it; all of it where a user's backend has no name."""
    model = identity.get("model", identity)
    return str(model.get("id", model) if isinstance(model, dict) else model)
