"""Checks of training data, of the monitored measure and of the loss."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from records import UserError
from records.types import Record


class Diverged(UserError):
    """The loss, the weights or the outputs of a training are not usable, so nothing is exported."""

    exit_code = 1

    def __init__(self, reason: str, precision: str):
        super().__init__(
            f"{reason}; nothing was exported. Lower --model.lr or set --trainer.precision 32-true "
            f"(now {precision}); --ckpt_path FILE resumes from last.ckpt"
        )


class BadRow(UserError):
    """A row that cannot be encoded; the data module adds file and row number."""

    def __init__(self, row: int, message: str):
        self.row = row
        super().__init__(message)


@contextmanager
def at_row(row: int) -> Iterator[None]:
    """Convert a ``UserError`` inside the block to a ``BadRow`` of this row."""
    try:
        yield
    except UserError as error:
        raise BadRow(row, str(error)) from None


def _rating(record: Record) -> float | None:
    ratings = [a.rating for a in record.annotations if a.rating is not None]
    return float(np.mean(ratings)) if ratings else None


# ``macro/MEASURE`` is the mean of a measure over the dev sources.
MACRO = "macro"

# A measure is undefined if this value is the same for all rows.
_MUST_DIFFER: dict[str, Callable[[Record], object]] = {
    "pearson": lambda record: record.label,
    "spearman": lambda record: record.label,
    "entailment_auroc": lambda record: record.label == "entailment",
    "pearson_bleu_rating": _rating,
    "spearman_bleu_rating": _rating,
}


def check_labels(records: Sequence[Record], paths: Sequence[str]) -> None:
    """Raise an error if all training rows have the same label."""
    row_labels = (getattr(r, "soft", None) or getattr(r, "label", None) for r in records)
    labels = {label for label in row_labels if label is not None}
    if len(labels) == 1:
        raise UserError(
            f"{', '.join(paths)}: all {len(records)} training rows have the label {labels.pop()}; "
            "add rows of another label to --data.train"
        )


def monitored_rows(monitor: str, records: Sequence[Record], sources: Sequence[str]) -> list[Record]:
    """The dev rows that determine the monitored measure: those of its source, or all rows.

    All rows determine ``dev/macro/MEASURE``.
    """
    source = monitor.removeprefix("dev/").rpartition("/")[0]
    names = list(dict.fromkeys(sources))
    if not source or (source == MACRO and len(names) > 1):
        return list(records)
    if len(names) < 2 or source not in names:
        dev_sources = f"has {', '.join(names)}" if len(names) > 1 else "is a single file"
        raise UserError(f"--model.monitor {monitor}: unknown source; dev {dev_sources}")
    return [r for r, name in zip(records, sources, strict=True) if name == source]


def check_monitor(
    monitor: str, records: Sequence[Record], sources: Sequence[str], paths: Sequence[str]
) -> None:
    """Raise an error if the monitored measure is undefined on the dev split."""
    rows = monitored_rows(monitor, records, sources)
    value_of = _MUST_DIFFER.get(monitor.rpartition("/")[2])
    if value_of is not None and len({value_of(row) for row in rows} - {None}) < 2:
        labels = sorted({str(getattr(row, "label", "no rating")) for row in rows})
        raise UserError(
            f"{', '.join(paths)}: {monitor} is undefined because all {len(rows)} rows have "
            f"{' or '.join(labels)}; change the dev rows or --model.monitor"
        )


def check_measured(monitor: str, measured: Iterable[str]) -> None:
    """Raise an error if validation does not compute the monitored measure."""
    if monitor not in (names := set(measured)):
        dev = ", ".join(sorted(name for name in names if name.startswith("dev/")))
        raise UserError(f"--model.monitor {monitor}: unknown measure; expected one of {dev}")


def nonfinite_outputs(outputs: Sequence) -> list[int]:
    """Indices of outputs that contain NaN or +inf; -inf is allowed (truncated words)."""
    arrays = [np.asarray(output, dtype=np.float64) for output in outputs]
    return [i for i, array in enumerate(arrays) if (np.isnan(array) | np.isposinf(array)).any()]


def check_finite(outputs: Sequence, precision: str) -> None:
    """Raise an error before the export if dev outputs are NaN or infinite, as NaN weights give."""
    if bad := nonfinite_outputs(outputs):
        reason = f"{len(bad)} of {len(outputs)} dev outputs are NaN or infinite"
        raise Diverged(f"the training diverged: {reason}", precision)
