"""What can be known to go wrong: data that cannot be learnt or judged, and a loss that breaks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from records import UserError
from records.types import Record


class BadRow(UserError):
    """A row that cannot be encoded; its data module knows in which file it stands.

    Attributes:
        row: index of its record in the split.
    """

    def __init__(self, row: int, message: str):
        self.row = row
        super().__init__(message)


@contextmanager
def at_row(row: int) -> Iterator[None]:
    """Whatever a user has to mend inside is a fault of this row: a ``BadRow``."""
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
    every = (getattr(r, "soft", None) or getattr(r, "label", None) for r in records)
    labels = {label for label in every if label is not None}
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
    names = list(dict.fromkeys(sources))
    if not source or (source == MACRO and len(names) > 1):
        return list(records)
    if len(names) < 2 or source not in names:
        there = f"has {', '.join(names)}" if len(names) > 1 else "is a single file"
        raise UserError(f"--model.monitor {monitor}: no such source; dev {there}")
    return [r for r, name in zip(records, sources, strict=True) if name == source]


def check_monitor(
    monitor: str, records: Sequence[Record], sources: Sequence[str], paths: Sequence[str]
) -> None:
    """Refuse a dev split on which the monitored measure would have no value."""
    rows = judged_by(monitor, records, sources)
    value_of = _MUST_DIFFER.get(monitor.rpartition("/")[2])
    if value_of is not None and len({value_of(row) for row in rows} - {None}) < 2:
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
    values = [np.asarray(output, dtype=np.float64) for output in outputs]
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
