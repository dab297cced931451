"""What the four Lightning modules share: optimiser, steps, and how dev outputs become measures.

A module owns everything that decides what its component *is*: how records are encoded, the loss,
the measures, and the fields of ``component.json``. Data modules only read files and make batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from lightning import LightningModule
from torch import Tensor
from transformers import PreTrainedTokenizerBase, get_linear_schedule_with_warmup

from components.base import load_tokenizer
from components.encoding import pad
from components.measures import Measures
from records import UserError, write_jsonl
from records.types import Record

SMALLER_IS_BETTER = {"loss", "mse", "ece", "perplexity", "bits_per_byte"}


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


class ComponentModule(LightningModule):
    """Base of the trainable components.

    Subclasses set the class attributes and implement ``configure_model``, ``encode``,
    ``collate_targets``, ``model_step``, ``measures``, ``predictions`` and ``describe``.

    Attributes:
        record_type: the record that the component is trained on.
        component: its name in ``component.json``.
        architecture: its architecture in ``component.json``.
        intended: what it is for; the first sentences of the model card.
    """

    record_type: type[Record]
    component: str
    architecture: str
    intended: str

    def __init__(
        self,
        base: str,
        revision: str | None,
        max_length: int,
        lr: float,
        weight_decay: float,
        warmup_ratio: float,
        monitor: str,
    ):
        super().__init__()
        self.base = base
        self.revision = revision
        self.max_length = max_length
        self.lr = lr
        self.weight_decay = weight_decay
        self.warmup_ratio = warmup_ratio
        self.monitor = monitor
        self.temperature = 1.0
        self.model: torch.nn.Module | None = None
        self._gathered: dict[int, object] = {}

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        with self.loading():
            return load_tokenizer(self.base, self.revision)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Say which base model could not be loaded, in one line.

        Raises:
            UserError: no such model, or no connection to the hub.
        """
        try:
            yield
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"base model {self.base}: {reason} Give --model.base as a hub id, a folder or "
                "package:NAME/PATH"
            ) from None

    @property
    def monitor_mode(self) -> str:
        """Whether the largest or the smallest value of the monitored measure is the best."""
        return "min" if self.monitor.rpartition("/")[2] in SMALLER_IS_BETTER else "max"

    # What a component implements

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        """Turn records into inputs; ``train`` cuts long inputs where dev judges all of them."""
        raise NotImplementedError

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        """The batch entries that come from the targets; ``width`` is the padded length."""
        raise NotImplementedError

    def model_step(self, batch: dict) -> tuple[Tensor, list]:
        """One step over a batch of ``collate``, whose inputs are of shape (items, longest).

        Returns:
            The loss in nats, of shape (), and one output an item on the CPU: logits, or what the
            component's ``measures`` need instead.
        """
        raise NotImplementedError

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        """Fit on dev what is not learnt by gradient (a temperature, a threshold), if anything."""

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        """The component's measures over rows of one split."""
        raise NotImplementedError

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        """One dictionary a record, for ``python -m train predict``."""
        raise NotImplementedError

    def describe(self) -> dict:
        """Fields of ``component.json`` that only this component has."""
        raise NotImplementedError

    # What they share

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors."""
        self.model.save_pretrained(folder)

    def collate(self, items: Sequence[Item], indices: Sequence[int]) -> dict:
        """Pad items to the longest of them: tensors of shape (items, longest)."""
        filler = {"input_ids": self.tokenizer.pad_token_id or 0}
        inputs = {
            name: pad([item.inputs[name] for item in items], filler.get(name, 0))
            for name in items[0].inputs
        }
        ones = [[1] * item.length for item in items]
        width = inputs["input_ids"].shape[1]
        return {
            "inputs": {**inputs, "attention_mask": pad(ones, 0)},
            "weight": torch.tensor([item.weight for item in items]),
            "indices": list(indices),
            **self.collate_targets(items, width),
        }

    def training_step(self, batch: dict, batch_idx: int) -> Tensor:
        loss, _ = self.model_step(batch)
        self.log("train/loss", loss, prog_bar=True, batch_size=len(batch["indices"]))
        return loss

    def validation_step(self, batch: dict, batch_idx: int) -> None:
        self._evaluation_step(batch, "dev")

    def test_step(self, batch: dict, batch_idx: int) -> None:
        self._evaluation_step(batch, "test")

    def _evaluation_step(self, batch: dict, split: str) -> None:
        loss, outputs = self.model_step(batch)
        size = len(batch["indices"])
        self.log(f"{split}/loss", loss, on_step=False, on_epoch=True, batch_size=size)
        self._gathered.update(zip(batch["indices"], outputs, strict=True))

    def on_validation_epoch_end(self) -> None:
        self._log_measures("dev", calibrate=True)

    def on_test_epoch_end(self) -> None:
        self._log_measures("test", calibrate=False)

    def _log_measures(self, split: str, calibrate: bool) -> None:
        records, items, outputs = self._take(split)
        if calibrate:
            self.calibrate(records, items, outputs)
        found = self.measures(records, items, outputs)
        # A measure without a value (a constant prediction has no correlation) is logged as NaN:
        # the best weights are then sought among later steps.
        values = {
            f"{split}/{name}": math.nan if m["value"] is None else m["value"]
            for name, m in found.items()
        }
        self.log_dict(values, prog_bar=True)

    def predict_step(self, batch: dict, batch_idx: int) -> None:
        _, outputs = self.model_step(batch)
        self._gathered.update(zip(batch["indices"], outputs, strict=True))

    def on_predict_epoch_end(self) -> None:
        """Write ``predictions.jsonl`` into the run's folder."""
        split = self.trainer.datamodule.predict_split
        path = Path(self.trainer.default_root_dir) / "predictions.jsonl"
        write_jsonl(path, self.predictions(*self._take(split)))
        print(f"predictions: {path}")

    def _take(self, split: str) -> tuple[Sequence, list[Item], list]:
        """The records of a split and what was gathered for them, in the file's order."""
        data = self.trainer.datamodule
        indices = sorted(self._gathered)
        outputs = [self._gathered[index] for index in indices]
        self._gathered = {}
        return data.records[split], [data.items[split][index] for index in indices], outputs

    def configure_optimizers(self) -> dict:
        """AdamW with linear warm-up and linear decay to 0; no decay on biases and norms."""
        steps = self.trainer.estimated_stepping_batches
        if math.isinf(steps):
            raise UserError("training has no end: give --trainer.max_steps or --trainer.max_epochs")
        weights = [p for p in self.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in weights if p.ndim > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in weights if p.ndim <= 1], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=self.lr)
        warmup = round(self.warmup_ratio * steps)
        schedule = get_linear_schedule_with_warmup(optimizer, warmup, max(1, int(steps)))
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def rows_of(records: Sequence, items: Sequence[Item]) -> list:
    """The record of each item."""
    return [records[item.row] for item in items]


def to_numpy(tensor: Tensor) -> np.ndarray:
    """A tensor of any shape, detached, in fp32, on the CPU."""
    return tensor.detach().float().cpu().numpy()
