"""What all Lightning modules share: optimiser, steps, and how dev outputs become measures.

A module owns everything that decides what its component *is*: how records are encoded, the loss,
the measures, and the fields of ``component.json``. Data modules only read files and make batches.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from jsonargparse.typing import ClosedUnitInterval, NonNegativeFloat, PositiveInt
from lightning import LightningModule
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor
from torch.distributed import all_gather_object
from torch.optim import Optimizer
from transformers import PreTrainedTokenizerBase, get_linear_schedule_with_warmup

from components.base import LOAD_ERRORS, load_tokenizer, max_positions
from components.encoding import pad
from components.measures import SMALLER_IS_BETTER, Measures
from records import UserError, write_jsonl
from records.errors import first_line
from records.types import Record
from train.checks import (
    MACRO,
    BadRow,
    broken_loss,
    broken_outputs,
    check_measured,
    check_monitor,
)

_UNDECAYED = re.compile(r"bias$|(norm|\bln_\w+)\.weight$", re.IGNORECASE)
# What FSDP and activation checkpointing put into the names of parameters.
_WRAPPERS = re.compile(r"_fsdp_wrapped_module\.|_checkpoint_wrapped_module\.")


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


class ComponentModule(LightningModule):
    """Base of the trainable components.

    Subclasses set the class attributes and implement ``configure_model``, ``encode``,
    ``collate_targets``, ``model_step``, ``measures`` and ``predictions``.

    Args:
        base: base model: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens.
        lr: peak learning rate.
        monitor: dev measure by which the best weights are chosen.
        revision: revision of a hub model.
        weight_decay: of weight matrices; biases and norms have none.
        warmup_ratio: share of all steps over which the learning rate rises from 0.
        optimizer: class of an optimizer (``torch.optim.SGD``) whose own options follow it; its rate
            and decay are ``lr`` and ``weight_decay``. Null is AdamW, fused.
        schedule: function of the optimizer, ``num_warmup_steps`` and ``num_training_steps``, such
            as ``transformers.get_cosine_schedule_with_warmup``.

    Attributes:
        record_type: the record that the component is trained on.
        unjudged_type: the record of the rows that ``predict`` reads, where their labels are not;
            None for ``record_type``.
        batch_size, eval_batch_size: of training and evaluation where ``--data`` gives none.
        component: its name in ``component.json``.
        architecture: its architecture in ``component.json``.
        intended: what it is for; the first sentences of the model card.
        limits: what it cannot do; the next section of the model card.
        described: what else of it is in ``component.json``.
        judged_with: options on which the measures depend but the component's use does not.
    """

    record_type: type[Record]
    unjudged_type: type[Record] | None = None
    batch_size, eval_batch_size = 32, 64
    component: str
    architecture: str
    intended: str
    limits: str = ""
    described: tuple[str, ...] = ()
    judged_with: tuple[str, ...] = ()

    def __init__(
        self,
        base: str,
        max_length: PositiveInt,
        lr: NonNegativeFloat,
        monitor: str,
        revision: str | None = None,
        weight_decay: NonNegativeFloat = 0.01,
        warmup_ratio: ClosedUnitInterval = 0.1,
        optimizer: Callable[[Iterable, float], Optimizer] | None = None,
        schedule: Callable = get_linear_schedule_with_warmup,
    ):
        super().__init__()
        self.save_hyperparameters()
        self.base, self.revision, self.monitor = base, revision, monitor
        # Plain numbers: the classes of the parser's must not get into a checkpoint.
        self.max_length, self.lr = int(max_length), float(lr)
        self.weight_decay, self.warmup_ratio = float(weight_decay), float(warmup_ratio)
        self.optimizer, self.schedule = optimizer, schedule
        self.temperature, self.shift = 1.0, 0.0
        # What a checkpoint folder brought is not fitted again on another split.
        self.calibrated = False
        self.measured: Measures = {}
        self.model: torch.nn.Module | None = None
        self._gathered: dict[int, object] = {}
        self._losses: dict[int, tuple[float, float]] = {}
        self._last_rows: list[int] = []

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        with self.loading():
            return load_tokenizer(self.base, self.revision)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Say which base model could not be loaded, in one line."""
        try:
            yield
        except LOAD_ERRORS as error:
            raise UserError(
                f"base model {self.base}: {first_line(error)} Give --model.base as a hub id, a "
                "folder or package:NAME/PATH"
            ) from None

    def too_long(self, row: int, text: str) -> BadRow:
        """The error for a row whose text does not fit; a checkpoint folder's own length holds."""
        remedy = "drop the row" if self.calibrated else "raise --model.max_length"
        return BadRow(row, f"{text[:60]!r} does not fit into {self.max_length} tokens; {remedy}")

    @property
    def monitor_mode(self) -> str:
        """Whether the largest or the smallest value of the monitored measure is the best."""
        return "min" if self.monitor.rpartition("/")[2] in SMALLER_IS_BETTER else "max"

    def setup(self, stage: str) -> None:
        """Check the monitored measure before any training."""
        if stage == "fit" and self.monitor.startswith("dev/"):
            data = self.trainer.datamodule
            if self.monitor.startswith(f"dev/{MACRO}/") and len(set(data.sources["dev"])) == 1:
                self.monitor_instead(self.monitor.replace(f"{MACRO}/", ""), "dev has one source")
            self.settle_monitor(data.records["dev"], data.sources["dev"])
            check_monitor(self.monitor, data.records["dev"], data.sources["dev"], data.paths["dev"])

    def on_fit_start(self) -> None:
        """Check that the model has positions for inputs of ``max_length``."""
        places = max_positions(self.model)
        if places is not None and self.max_length > places:
            raise UserError(
                f"--model.max_length {self.max_length}: {self.base} has places for {places} "
                "tokens; give at most so many"
            )

    def settle_monitor(self, records: Sequence, sources: Sequence[str]) -> None:
        """Change ``monitor`` where dev cannot have it but has one as good, if there is any."""

    def monitor_instead(self, better: str, reason: str) -> None:
        """Monitor another measure, in the callbacks as well, and say so."""
        print(f"{self.component}: {reason}, {self.monitor} gives way to {better}")
        for callback in self.trainer.callbacks:
            if getattr(callback, "monitor", None) == self.monitor:
                callback.monitor = better
        self.monitor = better

    # What a component implements

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        """Turn records into inputs; ``train`` cuts long inputs where dev judges all of them."""
        raise NotImplementedError

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        """The batch entries that come from the targets; ``width`` is the padded length."""
        raise NotImplementedError

    def model_step(self, batch: dict) -> tuple[Loss, list]:
        """One step over a batch of ``collate``, whose inputs are of shape (items, longest).

        Returns:
            The loss, and one output an item on the CPU: logits, or what the component's
            ``measures`` need instead.
        """
        raise NotImplementedError

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        """Fit on dev what is not learnt by gradient (a temperature, a threshold), if anything."""

    def loss_of_rows(self, items: Sequence[Item], outputs: Sequence) -> Loss | None:
        """The loss of a split where not every item counts; ``None`` where every one does."""
        return None

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        """The component's measures over rows of one split."""
        raise NotImplementedError

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Predicted probabilities and what was observed, in [0, 1] and both of shape (n,).

        They make the reliability plot; ``None`` where the component gives no probability.
        """
        return None

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        """One dictionary a record, for ``python -m train predict``."""
        raise NotImplementedError

    # What they share

    def describe(self) -> dict:
        """The fields of ``component.json`` that only this component has."""
        return {name: getattr(self, name) for name in self.described}

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors."""
        self.model.save_pretrained(folder)

    def report(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence, sources: Sequence[str]
    ) -> Measures:
        """The measures over a split and, where it has several sources, ``SOURCE/measure`` of each.

        ``macro/measure`` is then the mean over the sources that have one.

        Args:
            records, items, outputs: of the whole split.
            sources: the name of its source for each record.
        """
        found = self.measures(records, items, outputs)
        names = list(dict.fromkeys(sources))
        several: dict[str, list[float]] = {}
        for name in names if len(names) > 1 else []:
            own = [row for row, source in enumerate(sources) if source == name]
            rows = {row: place for place, row in enumerate(own)}
            chosen = [index for index, item in enumerate(items) if item.row in rows]
            if chosen:
                part = self.measures(
                    [records[row] for row in rows],
                    [replace(items[index], row=rows[items[index].row]) for index in chosen],
                    [outputs[index] for index in chosen],
                )
                found |= {f"{name}/{measure}": value for measure, value in part.items()}
                for measure, value in part.items():
                    if value["value"] is not None:
                        several.setdefault(measure, []).append(value["value"])
        for measure, values in several.items():
            found[f"{MACRO}/{measure}"] = {"value": float(np.mean(values)), "ci95": None}
        return found

    def collate(self, items: Sequence[Item], indices: Sequence[int]) -> dict:
        """Pad items to the longest of them: tensors of shape (items, longest).

        Padding has an attention mask of 0, so its id is never attended to or learnt. The id is the
        tokenizer's own where it has one, because RoBERTa and MPNet count positions by
        ``input_ids != pad_id``; a tokenizer without a pad token (GPT-2) gets 0.
        """
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
        """This process's part of the loss, which is the mean over the units of all processes.

        DDP averages gradients over processes, so each takes its own sum, divided by the count of
        all, times their number: two processes train the model that one would.
        ``accumulate_grad_batches`` is another thing: the gradient is then the mean over several
        batches of their means, in which a token of a batch with few of them weighs more.
        """
        loss, outputs = self.model_step(batch)
        counted = 1 if batch["counted"] else 0
        own = loss.total.detach()
        whole = torch.stack([own, torch.as_tensor(loss.count).to(own)])
        total, count = self.trainer.strategy.reduce(whole * counted, reduce_op="sum")
        count = count.clamp(min=1e-6)
        mean = total / count
        if not math.isfinite(mean):
            rows = batch["indices"] if not math.isfinite(own) else []
            at = [rows[place] for place in broken_outputs(outputs)] if rows else []
            raise self._broken(float(mean), at or rows)
        self._last_rows = batch["indices"]
        self.log("train/loss", mean, prog_bar=True, batch_size=len(batch["indices"]))
        return loss.total * (counted * self.trainer.world_size) / count

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip, and refuse a gradient that is no number before it reaches the weights."""
        by_norm = gradient_clip_algorithm in (None, "norm")
        # A gradient scaler skips such steps by itself, and DeepSpeed keeps its gradients.
        if self.trainer.precision == "16-mixed" or "deepspeed" in str(type(self.trainer.strategy)):
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        limit = max(gradient_clip_val or 0, 0)  # one that is not positive is none, as Lightning's
        most = limit if by_norm and limit else math.inf
        if isinstance(self.trainer.strategy, FSDPStrategy):
            # A process holds only a part of each gradient.
            norm = float(self.trainer.strategy.model.clip_grad_norm_(most))
        else:
            parameters = self.trainer.precision_plugin.main_params(optimizer)
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, most))
        if not math.isfinite(norm):
            raise self._broken(norm, self._last_rows)
        if limit and not by_norm:
            # `clip_gradients` refuses a fused optimizer under autocast, whatever is to be clipped.
            self.trainer.precision_plugin.clip_grad_by_value(optimizer, limit)

    def _broken(self, value: float, rows: Sequence[int]) -> UserError:
        places = self.trainer.datamodule.places("train", rows)
        return broken_loss(value, self.trainer.global_step, places, self.trainer.precision)

    def validation_step(self, batch: dict, batch_idx: int) -> None:
        loss, outputs = self.model_step(batch)
        self._losses[batch["indices"][0]] = float(loss.total), float(loss.count)
        self._gathered.update(zip(batch["indices"], outputs, strict=True))

    test_step = predict_step = validation_step

    def on_validation_epoch_end(self) -> None:
        self._log_measures("dev", calibrate=True)

    def on_test_epoch_end(self) -> None:
        self._log_measures("test", calibrate=False)

    def _log_measures(self, split: str, calibrate: bool) -> None:
        records, items, outputs, loss = self._take(split)
        if calibrate and not self.calibrated:
            self.calibrate(records, items, outputs)
        found = self.report(records, items, outputs, self.trainer.datamodule.sources[split])
        self.measured = found
        self.log(f"{split}/loss", loss)
        for name, measure in found.items():
            # A measure without a value (a constant prediction has no correlation) is logged as NaN:
            # the best weights are then sought among later steps.
            value = math.nan if measure["value"] is None else measure["value"]
            self.log(f"{split}/{name}", value, prog_bar="/" not in name)
        if self.trainer.state.fn == "fit":
            check_measured(self.monitor, self.trainer.callback_metrics)

    def on_predict_epoch_end(self) -> None:
        """Write ``predictions.jsonl`` into the run's folder."""
        records, items, outputs, _ = self._take(self.trainer.datamodule.predict_split)
        if self.trainer.is_global_zero:
            path = Path(self.trainer.default_root_dir) / "predictions.jsonl"
            write_jsonl(path, self.predictions(records, items, outputs))
            print(f"predictions: {path}")

    def _take(self, split: str) -> tuple[Sequence, list[Item], list, float]:
        data, world = self.trainer.datamodule, self.trainer.world_size
        outputs = gather(self._gathered, world)
        losses = gather(self._losses, world).values()
        self._gathered, self._losses = {}, {}
        totals, counts = zip(*losses, strict=True)
        loss = sum(totals) / max(sum(counts), 1e-6)
        items = [data.items[split][index] for index in outputs]
        of_rows = self.loss_of_rows(items, list(outputs.values()))
        loss = loss if of_rows is None else float(of_rows.mean)
        return data.records[split], items, list(outputs.values()), loss

    def configure_optimizers(self) -> dict:
        """The optimizer over decayed and other weights, and the schedule, a step at a time."""
        steps = self.trainer.estimated_stepping_batches
        if math.isinf(steps):
            raise UserError("training has no end: give --trainer.max_steps or --trainer.max_epochs")
        weights = [(name, p) for name, p in self.named_parameters() if p.requires_grad]
        decayed = {"params": [p for name, p in weights if decays(name)]}
        others = {"params": [p for name, p in weights if not decays(name)], "weight_decay": 0.0}
        groups = [decayed | {"weight_decay": self.weight_decay}, others]
        # Fused, a step on the CPU takes a fifth of the time; a gradient scaler cannot clip with it.
        fused = partial(torch.optim.AdamW, fused=self.trainer.precision != "16-mixed")
        optimizer = (self.optimizer or fused)([g for g in groups if g["params"]], self.lr)
        schedule = self.schedule(
            optimizer,
            num_warmup_steps=round(self.warmup_ratio * steps),
            num_training_steps=max(1, int(steps)),
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def decays(name: str) -> bool:
    """Whether weight decay applies: not to biases and norms.

    By name, since a sharded weight matrix is a flat vector.
    """
    return not _UNDECAYED.search(plain_name(name))


def gather(found: dict[int, object], world: int) -> dict[int, object]:
    """What all processes found, by ascending index; the same on each of them.

    Args:
        found: this process's values by index; an index that two processes judged has one value.
        world: number of processes.
    """
    parts: list = [found]
    if world > 1:
        parts = [None] * world
        all_gather_object(parts, found)
    merged = {index: value for part in parts for index, value in part.items()}
    return {index: merged[index] for index in sorted(merged)}


def plain_name(name: str) -> str:
    """A parameter's name without the wrappers of a strategy."""
    return _WRAPPERS.sub("", name)
