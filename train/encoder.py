"""What the data module and the Lightning module share: encoding, batching and encoded splits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from records.types import Record


@dataclass(frozen=True)
class Item:
    """One encoded input.

    Attributes:
        row: index of its record; a long premise gives several items of one row.
        inputs: token ids and token types, without padding.
        target: target of the loss, defined by each module.
    """

    row: int
    inputs: dict[str, list[int]]
    target: object
    weight: float = 1.0

    @property
    def length(self) -> int:
        """Tokens of the input, including special tokens."""
        return len(self.inputs["input_ids"])


@dataclass(frozen=True)
class Split:
    """The rows of a split, file after file, and their items.

    Attributes:
        paths: its files; dev has those of train if it is held back from them.
        records: its records.
        sources: the source of each record.
        places: ``FILE:ROW`` of each record for messages; the first record of a file is row 1.
        items: the encoded records.
    """

    paths: list[str]
    records: list[Record]
    sources: list[str]
    places: list[str]
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class Encoder:
    """Turns records into items and items into batches, and holds the encoded splits.

    The module of a component creates it; the data module fills ``splits``.

    Attributes:
        record_type: record type of the data.
        batch_size, eval_batch_size: defaults for training and evaluation.
        encode: ``ComponentModule.encode``.
        collate: ``ComponentModule.collate``.
        splits: the splits that the data module has read.
    """

    record_type: type[Record]
    batch_size: int
    eval_batch_size: int
    encode: Callable[[Sequence[Record], bool], list[Item]]
    collate: Callable[[Sequence[Item], Sequence[int]], dict]
    splits: dict[str, Split] = field(default_factory=dict)
