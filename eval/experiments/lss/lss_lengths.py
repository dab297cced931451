"""Words in LSS by words in their claims (2308.12157, Figures 2, 4 and 5). No model is needed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from components.lengths import LENGTH_CLASSES, balance_lengths, drop_full_length, length_ratio
from eval.experiments.experiment import Experiment, Outcome, require_entries
from eval.experiments.lss.lss_pairs import ABOUT, QUESTION
from eval.experiments.quantities import Quantity, estimate
from eval.report.declare import Figure, Page, Table
from eval.run.run import Run
from records import LssExample, UserError, read_records


class _Row(NamedTuple):
    """An annotation: reference, length ratio, weight, and whether it is the whole claim."""

    reference: str
    ratio: float
    weight: float
    whole: bool


# An empty LSS and the whole claim have separate classes.
CLASSES = [
    "0",
    *[f"to {place / LENGTH_CLASSES:g}" for place in range(1, LENGTH_CLASSES)],
    "below 1",
    "1",
]


def ratio_class(ratio: float) -> str:
    """Return the class of a ratio; the upper bound of a tenth is inclusive."""
    if ratio in (0, 1):
        return CLASSES[0 if ratio == 0 else -1]
    return CLASSES[math.ceil(ratio * LENGTH_CLASSES - 1e-9)]


LENGTH = "length_share"
TABLES = [
    Table(
        "Length of LSS",
        {"kind": "File"},
        columns=["group"],
        heads={**{name: name for name in CLASSES}, "all": "mean"},
        note="Words in the LSS by words in the claim: share of claims in each class, and the mean. "
        "0 is an empty LSS, 1 the whole claim. drop: without LSS that are the whole claim; repeat: "
        "pairs repeated until all tenths have equal size.",
    )
]
FIGURES = [
    Figure(
        "Words in the LSS by words in the claim",
        "group",
        ["kind"],
        {LENGTH: ""},
        label="share of the claims",
    )
]


@dataclass(eq=False)
class LssLengths(Experiment):
    """Compute the length distribution of LSS.

    Args:
        files: name to a file of LSS records; each claim has weight 1, shared by its annotations.
        drop: name to the number of dropped LSS that are the whole claim, for another distribution
            (``balance: drop`` in training, Figure 2); 0 keeps as many of them as of others.
        repeat: names with another distribution, whose pairs are repeated until all tenths have
            equal size (``balance: repeat`` in training, Figure 4).
        domain: domain in the results.
        seed: seed of the sampling and the bootstrap.
    """

    name = "lss_lengths"
    page = Page(QUESTION, ABOUT, TABLES, FIGURES, terminal={"group": "all"})
    in_chunks = False

    files: dict[str, str]
    drop: dict[str, int] = field(default_factory=dict)
    repeat: list[str] = field(default_factory=list)
    domain: str = "wafer"
    seed: int = 0

    def __post_init__(self):
        require_entries(files=self.files)
        for name in sorted({*self.drop, *self.repeat} - set(self.files)):
            raise UserError(f"drop, repeat: expected one of {', '.join(self.files)}, got {name!r}")
        if min(self.drop.values(), default=0) < 0:
            raise UserError("drop: expected numbers >= 0")

    def measure(self, run: Run) -> Outcome:
        values = []
        for name, path in self.files.items():
            rows = _rows(read_records(path, LssExample), path)
            values += self._shares(name, rows)
            # Both use the same seed, so that neither depends on the other.
            if name in self.drop:
                draw = np.random.default_rng(self.seed)
                try:
                    kept = drop_full_length([row.whole for row in rows], self.drop[name], draw)
                except ValueError as error:
                    raise UserError(f"drop: {name}: {error}; set a smaller number, or 0") from None
                values += self._shares(f"{name}, drop", [rows[index] for index in kept])
            if name in self.repeat:
                kept = balance_lengths(
                    [row.ratio for row in rows], np.random.default_rng(self.seed)
                )
                values += self._shares(f"{name}, repeat", [rows[index] for index in kept])
        return Outcome(values)

    def _shares(self, name: str, rows: Sequence[_Row]) -> Iterator[dict]:
        references = [row.reference for row in rows]
        ratio, weight = np.asarray([(row.ratio, row.weight) for row in rows]).T
        classes = np.asarray([CLASSES.index(ratio_class(value)) for value in ratio])
        parts = {length: weight * (classes == place) for place, length in enumerate(CLASSES)}
        quantities = [
            Quantity({"metric": LENGTH, "group": length}, [part, weight])
            for length, part in parts.items()
        ]
        mean = Quantity({"metric": "length_mean", "group": "all"}, [weight * ratio, weight])
        for value in estimate([*quantities, mean], references, self.seed):
            yield {"variant": LENGTH, "kind": name, **value}


def _rows(examples: Sequence[LssExample], path: str) -> list[_Row]:
    if not examples:
        raise UserError(f"{path}: the file has no rows")
    return [
        _Row(
            example.reference,
            length_ratio(example.claim, annotation.lss),
            1 / len(example.annotations),
            annotation.lss.split() == example.claim.split(),
        )
        for example in examples
        for annotation in example.annotations
    ]
