"""Base of the Lightning modules: optimiser, training and evaluation steps, measures.

A module defines its component: encoding, loss, measures and the fields of ``component.json``. Data
modules only read files and make batches.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import signature
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
from records import UserError
from records.errors import first_line
from records.types import Record
from train import checks
from train.checks import MACRO, BadRow
from train.encoder import Encoder, Item

_NO_DECAY = re.compile(r"bias$|(norm|\bln_\w+)\.weight$", re.IGNORECASE)
# Parts of parameter names added by FSDP and activation checkpointing.
_WRAPPER_PREFIXES = re.compile(r"_fsdp_wrapped_module\.|_checkpoint_wrapped_module\.")


@dataclass(frozen=True)
class Loss:
    """Sum (nats) and count of a mean loss, kept apart to average over all processes."""

    total: Tensor
    count: Tensor | int

    @property
    def mean(self) -> Tensor:
        """The mean over these units, shape (); 0 without units."""
        return self.total / max(float(self.count), 1e-6)


def rows_of(records: Sequence, items: Sequence[Item]) -> list:
    """The record of each item."""
    return [records[item.row] for item in items]


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Convert a tensor to fp32 numpy."""
    return tensor.detach().float().cpu().numpy()


class ComponentModule(LightningModule):
    """Base class of the trainable components.

    Subclasses set the class attributes and implement ``configure_model``, ``encode``,
    ``collate_targets``, ``model_step`` and ``measures``.

    Args:
        base: base model: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens.
        lr: peak learning rate.
        monitor: dev measure for selecting the best weights.
        revision: revision of a hub model.
        weight_decay: weight decay of weight matrices; not applied to biases and norms.
        warmup_ratio: share of all steps with linear warm-up of the learning rate from 0.
        optimizer: optimizer class (e.g. ``torch.optim.SGD``) and its options; ``lr`` and
            ``weight_decay`` are set separately. Null: fused AdamW.
        schedule: function of the optimizer, ``num_warmup_steps`` and ``num_training_steps``, e.g.
            ``transformers.get_cosine_schedule_with_warmup``.

    Attributes:
        record_type: record type of the training data.
        batch_size, eval_batch_size: defaults for training and evaluation.
        component, architecture: the fields in ``component.json``.
        intended: intended use, for the model card.
        limits: limits, for the model card.
        described: attributes that are also stored in ``component.json``.
        judged_with: options that affect the measures but not the use of the component.
    """

    record_type: type[Record]
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
        # Plain numbers: checkpoints may not contain the parser's classes.
        self.max_length, self.lr = int(max_length), float(lr)
        self.weight_decay, self.warmup_ratio = float(weight_decay), float(warmup_ratio)
        self.optimizer, self.schedule = optimizer, schedule
        self.temperature, self.shift = 1.0, 0.0
        self.model: torch.nn.Module | None = None
        self._gathered: dict[int, object] = {}
        self._losses: dict[int, tuple[float, float]] = {}
        self._last_rows: list[int] = []

    @cached_property
    def encoder(self) -> Encoder:
        """Encoding, batches and splits, shared with the data module."""
        sizes = self.batch_size, self.eval_batch_size
        return Encoder(self.record_type, *sizes, self.encode, self.collate)

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        with self.loading():
            return load_tokenizer(self.base, self.revision)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Convert errors of loading to a one-line error that names the base model."""
        try:
            yield
        except LOAD_ERRORS as error:
            raise UserError(
                f"base model {self.base}: {first_line(error)} Set --model.base to a hub id, a "
                "folder or package:NAME/PATH"
            ) from None

    def too_long_error(self, row: int, text: str) -> BadRow:
        """The error for a row whose text exceeds ``max_length``."""
        remedy = f"does not fit into {self.max_length} tokens; raise --model.max_length"
        return BadRow(row, f"{text[:60]!r} {remedy}")

    def report_cut_rows(self, texts: Sequence[str], total: int) -> None:
        """Print how many rows have a premise or reference of which only the start is read."""
        if texts:
            print(
                f"{self.component}: the premise or reference of {len(texts)} of {total} rows does "
                f"not fit into {self.max_length} tokens and is cut, first for {texts[0][:60]!r}; "
                "raise --model.max_length"
            )

    @property
    def monitor_mode(self) -> str:
        """``max`` or ``min``: the best value of the monitored measure."""
        return "min" if self.monitor.rpartition("/")[2] in SMALLER_IS_BETTER else "max"

    def setup(self, stage: str) -> None:
        """Check the monitored measure before training."""
        if stage == "fit" and self.monitor.startswith("dev/"):
            dev = self.encoder.splits["dev"]
            if self.monitor.startswith(f"dev/{MACRO}/") and len(set(dev.sources)) == 1:
                self.replace_monitor(self.monitor.replace(f"{MACRO}/", ""), "dev has one source")
            self.choose_monitor(dev.records, dev.sources)
            checks.check_monitor(self.monitor, dev.records, dev.sources, dev.paths)

    def on_fit_start(self) -> None:
        """Check that the model supports inputs of ``max_length``."""
        places = max_positions(self.model)
        if places is not None and self.max_length > places:
            limit = f"at most {places} tokens ({self.base})"
            raise UserError(f"--model.max_length: expected {limit}, got {self.max_length}")

    def choose_monitor(self, records: Sequence, sources: Sequence[str]) -> None:
        """Replace ``monitor`` if it is undefined on dev and an equivalent measure exists."""

    def replace_monitor(self, better: str, reason: str) -> None:
        """Monitor another measure, also in the callbacks, and print the reason."""
        print(f"{self.component}: {reason}: monitoring {better} instead of {self.monitor}")
        for callback in self.trainer.callbacks:
            if getattr(callback, "monitor", None) == self.monitor:
                callback.monitor = better
        self.monitor = better

    # Implemented by components

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        """Encode records; with ``train``, long inputs are truncated instead of split."""
        raise NotImplementedError

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        """The batch entries of the targets; ``width`` is the padded length."""
        raise NotImplementedError

    def model_step(self, batch: dict) -> tuple[Loss, list]:
        """One step over a batch of ``collate``, with inputs of shape (items, longest).

        Returns:
            The loss, and one output per item on the CPU: logits, or other input of ``measures``.
        """
        raise NotImplementedError

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        """Fit parameters without gradient on dev (temperature, threshold), if any."""

    def loss_of_rows(self, items: Sequence[Item], outputs: Sequence) -> Loss | None:
        """The loss of a split if only some items count; ``None`` if all count."""
        return None

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        """The measures of the component over rows of one split."""
        raise NotImplementedError

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Predicted and observed probabilities, each of shape (n,); ``None`` without any."""
        return None

    # Shared by all components

    def describe(self) -> dict:
        """The component-specific fields of ``component.json``."""
        return {name: getattr(self, name) for name in self.described}

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors."""
        self.model.save_pretrained(folder)

    def report(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence, sources: Sequence[str]
    ) -> Measures:
        """The measures over a split, and ``SOURCE/measure`` per source if there are several.

        ``macro/measure`` is the mean over the sources on which the measure is defined.
        """
        result = self.measures(records, items, outputs)
        names = list(dict.fromkeys(sources))
        source_values: dict[str, list[float]] = {}
        for name in names if len(names) > 1 else []:
            source_rows = [row for row, source in enumerate(sources) if source == name]
            rows = {row: place for place, row in enumerate(source_rows)}
            chosen = [index for index, item in enumerate(items) if item.row in rows]
            if chosen:
                part = self.measures(
                    [records[row] for row in rows],
                    [replace(items[index], row=rows[items[index].row]) for index in chosen],
                    [outputs[index] for index in chosen],
                )
                result |= {f"{name}/{measure}": value for measure, value in part.items()}
                for measure, value in part.items():
                    if value["value"] is not None:
                        source_values.setdefault(measure, []).append(value["value"])
        for measure, values in source_values.items():
            result[f"{MACRO}/{measure}"] = {"value": float(np.mean(values)), "ci95": None}
        return result

    def collate(self, items: Sequence[Item], indices: Sequence[int]) -> dict:
        """Pad items to the longest: tensors of shape (items, longest).

        Padding is masked. Its id is the tokenizer's pad id, because RoBERTa and MPNet count
        positions by ``input_ids != pad_id``; without a pad token (GPT-2) it is 0.
        """
        filler = {"input_ids": self.tokenizer.pad_token_id or 0}
        inputs = {
            name: pad([item.inputs[name] for item in items], filler.get(name, 0))
            for name in items[0].inputs
        }
        masks = [[1] * item.length for item in items]
        width = inputs["input_ids"].shape[1]
        return {
            "inputs": {**inputs, "attention_mask": pad(masks, 0)},
            "weight": torch.tensor([item.weight for item in items]),
            "indices": list(indices),
            **self.collate_targets(items, width),
        }

    def training_step(self, batch: dict, batch_idx: int) -> Tensor:
        """This process's part of the mean loss over the units of all processes.

        DDP averages gradients over processes, so the local sum is divided by the global count and
        multiplied by the number of processes: two processes train the same model as one. With
        ``accumulate_grad_batches`` the gradient is the mean of batch means, so a token of a batch
        with few tokens has more weight.
        """
        loss, outputs = self.model_step(batch)
        is_counted = 1 if batch["counted"] else 0
        local_total = loss.total.detach()
        local = torch.stack([local_total, torch.as_tensor(loss.count).to(local_total)])
        total, count = self.trainer.strategy.reduce(local * is_counted, reduce_op="sum")
        count = count.clamp(min=1e-6)
        mean = total / count
        if not math.isfinite(mean):
            rows = batch["indices"] if not math.isfinite(local_total) else []
            at = [rows[place] for place in checks.nonfinite_outputs(outputs)] if rows else []
            raise self._nonfinite_error(float(mean), at or rows)
        self._last_rows = batch["indices"]
        self.log("train/loss", mean, prog_bar=True, batch_size=len(batch["indices"]))
        return loss.total * (is_counted * self.trainer.world_size) / count

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip gradients; raise an error for NaN or infinite gradients before the update."""
        by_norm = gradient_clip_algorithm in (None, "norm")
        # A gradient scaler skips such steps, and DeepSpeed holds its gradients itself.
        if self.trainer.precision == "16-mixed" or "deepspeed" in str(type(self.trainer.strategy)):
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        limit = max(gradient_clip_val or 0, 0)  # as in Lightning, 0 or less disables clipping
        max_norm = limit if by_norm and limit else math.inf
        if isinstance(self.trainer.strategy, FSDPStrategy):
            # A process holds only a shard of each gradient.
            norm = float(self.trainer.strategy.model.clip_grad_norm_(max_norm))
        else:
            parameters = self.trainer.precision_plugin.main_params(optimizer)
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, max_norm))
        if not math.isfinite(norm):
            raise self._nonfinite_error(norm, self._last_rows)
        if limit and not by_norm:
            # `clip_gradients` rejects fused optimizers under autocast, also for clipping by value.
            self.trainer.precision_plugin.clip_grad_by_value(optimizer, limit)

    def _nonfinite_error(self, value: float, rows: Sequence[int]) -> checks.Diverged:
        train = self.encoder.splits["train"]
        places = [train.places[train.items[index].row] for index in rows] or ["another process"]
        return checks.Diverged(
            f"step {self.trainer.global_step}: the loss or its gradient is {value} at "
            f"{', '.join(places[:3])}",
            self.trainer.precision,
        )

    def validation_step(self, batch: dict, batch_idx: int) -> None:
        loss, outputs = self.model_step(batch)
        self._losses[batch["indices"][0]] = float(loss.total), float(loss.count)
        self._gathered.update(zip(batch["indices"], outputs, strict=True))

    def on_validation_epoch_end(self) -> None:
        records, items, outputs, loss = self._collect()
        self.calibrate(records, items, outputs)
        measures = self.report(records, items, outputs, self.encoder.splits["dev"].sources)
        self.log("dev/loss", loss)
        for name, measure in measures.items():
            # Undefined measures (correlation of a constant) are logged as NaN and never the best.
            value = math.nan if measure["value"] is None else measure["value"]
            self.log(f"dev/{name}", value, prog_bar="/" not in name)
        checks.check_measured(self.monitor, self.trainer.callback_metrics)

    def _collect(self) -> tuple[Sequence, list[Item], list, float]:
        dev, world = self.encoder.splits["dev"], self.trainer.world_size
        outputs = gather(self._gathered, world)
        losses = gather(self._losses, world).values()
        self._gathered, self._losses = {}, {}
        totals, counts = zip(*losses, strict=True)
        loss = sum(totals) / max(sum(counts), 1e-6)
        items = [dev.items[index] for index in outputs]
        row_loss = self.loss_of_rows(items, list(outputs.values()))
        loss = loss if row_loss is None else float(row_loss.mean)
        return dev.records, items, list(outputs.values()), loss

    def configure_optimizers(self) -> dict:
        """The optimizer, with decayed and undecayed weights, and the schedule per step."""
        steps = self.trainer.estimated_stepping_batches
        if math.isinf(steps):
            raise UserError("training has no end: set --trainer.max_steps or --trainer.max_epochs")
        weights = [(name, p) for name, p in self.named_parameters() if p.requires_grad]
        decayed = [weight for name, weight in weights if has_weight_decay(name)]
        undecayed = [weight for name, weight in weights if not has_weight_decay(name)]
        groups = [
            {"params": decayed, "weight_decay": self.weight_decay},
            {"params": undecayed, "weight_decay": 0.0},
        ]
        # Fused AdamW is 5 times faster on the CPU, but a gradient scaler cannot clip with it.
        fused = partial(torch.optim.AdamW, fused=self.trainer.precision != "16-mixed")
        optimizer = (self.optimizer or fused)([g for g in groups if g["params"]], self.lr)
        counts = {"num_warmup_steps": round(self.warmup_ratio * steps)}
        counts["num_training_steps"] = max(1, int(steps))
        # A constant schedule has no number of steps.
        accepted = signature(self.schedule).parameters
        schedule = self.schedule(optimizer, **{n: counts[n] for n in counts if n in accepted})
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def has_weight_decay(name: str) -> bool:
    """Whether weight decay applies; by name, because FSDP flattens weight matrices."""
    return not _NO_DECAY.search(plain_name(name))


def gather(local: dict[int, object], world: int) -> dict[int, object]:
    """Merge the values of all processes by ascending index."""
    parts: list = [local]
    if world > 1:
        parts = [None] * world
        all_gather_object(parts, local)
    merged = {index: value for part in parts for index, value in part.items()}
    return {index: merged[index] for index in sorted(merged)}


def plain_name(name: str) -> str:
    """Remove the wrapper parts of a strategy from a parameter's name."""
    return _WRAPPER_PREFIXES.sub("", name)
