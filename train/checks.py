"""What can be known to go wrong: data that cannot be learnt or judged, and a loss that breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import get_args

import numpy as np

from components.checkpoint import Architecture, ComponentName
from records import UserError
from records.types import Record


def check_numbers(options: Mapping[str, float | None], least: float, most: float = inf) -> None:
    """Refuse numbers with which a run would break, or export what cannot be read, hours later.

    Args:
        options: option → value; null is what an option has that may be left out.
        least, most: the smallest and the largest that may be given.
    """
    for name, value in options.items():
        if value is not None and not least <= value <= most:  # NaN is nowhere
            bounds = f"from {least} on" if most == inf else f"from {least} to {most}"
            raise UserError(f"{name} {value}: give a number {bounds}")


def check_kind(component: str, architecture: str) -> None:
    """Refuse a component that would be trained, and then could not be exported.

    Args:
        component, architecture: as its module names them.
    """
    for name, value, known in (
        ("component", component, get_args(ComponentName)),
        ("architecture", architecture, get_args(Architecture)),
    ):
        if value not in known:
            raise UserError(
                f"{name} {value!r}: components/checkpoint.py does not know it; add it there, or "
                f"give one of {', '.join(known)}"
            )


class BadRow(UserError):
    """A row that cannot be encoded; its data module knows in which file it stands.

    Attributes:
        row: index of its record in the split.
    """

    def __init__(self, row: int, said: str):
        self.row = row
        super().__init__(said)


@contextmanager
def at_row(row: int) -> Iterator[None]:
    """Whatever a user has to mend inside is a fault of this row.

    Raises:
        BadRow: in the place of any ``UserError``.
    """
    try:
        yield
    except UserError as error:
        raise BadRow(row, str(error)) from None


def _rating(record: Record) -> float | None:
    ratings = [a.rating for a in record.annotations if a.rating is not None]
    return float(np.mean(ratings)) if ratings else None


# ``macro/MEASURE`` is the mean of a measure over the sources of dev.
MACRO = "macro"

# What must differ between rows for a measure to exist: both ends of a correlation, both sides of
# an AUROC.
_MUST_DIFFER: dict[str, Callable[[Record], object]] = {
    "pearson": lambda record: record.label,
    "spearman": lambda record: record.label,
    "entailment_auroc": lambda record: record.label == "entailment",
    "pearson_bleu_rating": _rating,
    "spearman_bleu_rating": _rating,
}


def check_labels(records: Sequence[Record], paths: Sequence[str]) -> None:
    """Refuse training data from which only a constant could be learnt."""
    given = (getattr(r, "soft", None) or getattr(r, "label", None) for r in records)
    labels = {label for label in given if label is not None}
    if len(labels) == 1:
        raise UserError(
            f"{', '.join(paths)}: all {len(records)} training rows have the label {labels.pop()}; "
            "add rows of another label to --data.train"
        )


def judged_by(monitor: str, records: Sequence[Record], sources: Sequence[str]) -> list[Record]:
    """The dev rows that decide a monitored measure: those of one source where it names one.

    All of them decide ``dev/macro/MEASURE``.
    """
    source = monitor.removeprefix("dev/").rpartition("/")[0]
    known = list(dict.fromkeys(sources))
    if not source or (source == MACRO and len(known) > 1):
        return list(records)
    if len(known) < 2 or source not in known:
        there = f"has {', '.join(known)}" if len(known) > 1 else "is a single file"
        raise UserError(f"--model.monitor {monitor}: no such source; dev {there}")
    return [r for r, name in zip(records, sources, strict=True) if name == source]


def check_monitor(
    monitor: str, records: Sequence[Record], sources: Sequence[str], paths: Sequence[str]
) -> None:
    """Refuse a dev split on which the monitored measure would have no value."""
    rows = judged_by(monitor, records, sources)
    value_of = _MUST_DIFFER.get(monitor.rpartition("/")[2])
    if value_of is None:
        return
    values = [value for row in rows if (value := value_of(row)) is not None]
    if len(set(values)) < 2:
        labels = sorted({str(getattr(row, "label", "no rating")) for row in rows})
        raise UserError(
            f"{', '.join(paths)}: {monitor} would not exist, since all {len(rows)} rows have "
            f"{' or '.join(labels)}; give other dev rows or another --model.monitor"
        )


def check_measured(monitor: str, measured: Iterable[str]) -> None:
    """Refuse to monitor what no validation measures."""
    if monitor not in (names := set(measured)):
        dev = ", ".join(sorted(name for name in names if name.startswith("dev/")))
        raise UserError(f"--model.monitor {monitor}: no such measure here; give one of {dev}")


def broken_outputs(outputs: Sequence) -> list[int]:
    """Places of the outputs that are not numbers; minus infinity may be meant, plus may not."""
    try:
        values = [np.asarray(output, dtype=np.float64) for output in outputs]
    except (TypeError, ValueError):  # a component's outputs may be texts
        return []
    return [i for i, v in enumerate(values) if np.isnan(v).any() or np.isposinf(v).any()]


def broken_loss(loss: float, step: int, rows: Sequence[str], precision: str) -> UserError:
    """The error for a loss or gradient that is no number, before it reaches the weights."""
    shown = ", ".join(rows[:3]) + (f" and {len(rows) - 3} more" if len(rows) > 3 else "")
    remedy = "lower --model.lr"
    if precision != "32-true":
        remedy += f" or set --trainer.precision 32-true (now {precision})"
    return UserError(
        f"step {step}: the loss or its gradient is {loss} at {shown or 'another process'}; "
        f"{remedy}, or mend those rows. last.ckpt is from before and can be resumed by its path"
    )
