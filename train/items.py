"""What modules, data and batches hand each other: encoded inputs, and a loss before its mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from records.types import Record


@dataclass(frozen=True)
class Item:
    """One encoded input.

    Attributes:
        row: index of its record; a long premise makes several items of one row.
        inputs: token ids and token types, without padding.
        target: what the loss needs; each module says what it is.
        weight: the row's weight in the loss.
    """

    row: int
    inputs: dict[str, list[int]]
    target: object
    weight: float = 1.0

    @property
    def length(self) -> int:
        """Tokens of the input, special tokens included."""
        return len(self.inputs["input_ids"])


@dataclass(frozen=True)
class Loss:
    """A loss that is a mean, before it is divided: over all processes only together is it one.

    Attributes:
        total: the sum over units, in nats, of shape ().
        count: how many units there are (pairs, items or tokens, some with weights).
    """

    total: Tensor
    count: Tensor | int

    @property
    def mean(self) -> Tensor:
        """The mean over these units alone, of shape (); 0 where there is none."""
        return self.total / max(float(self.count), 1e-6)


def places_of(names: Sequence[str], name: str) -> list[int]:
    """Where a name stands among the names."""
    return [place for place, other in enumerate(names) if other == name]


def rows_of(records: Sequence, items: Sequence[Item]) -> list:
    """The record of each item."""
    return [records[item.row] for item in items]


def relabelled(record: Record, label: object) -> dict:
    """A row with another label. What else it has stays: by its group and documents it is split."""
    row = json.loads(record.model_dump_json(exclude={"label", "soft"}, exclude_none=True))
    return row | {"label": label}


def to_numpy(tensor: Tensor) -> np.ndarray:
    """A tensor of any shape, detached, in fp32, on the CPU."""
    return tensor.detach().float().cpu().numpy()
