"""Tokens a second, utilisation and peak memory of the papers' models, in training and in scoring.

    python benchmarks/gpu.py --peak_tflops 989 --json gpu.json
    python benchmarks/gpu.py --only unli,lss --batch_size 32 --compile

The papers' architectures at their true sizes, with random weights over made-up words: nothing is
downloaded. Without a GPU the same code runs at toy size. What runs is what the doors run:

    train     Lightning's loop over our modules (AdamW, for LSS Adafactor), our batches and clipping
    validate  the forward passes of its validation; nothing is written by the models here
    score     `eval`'s engine (UNLI and relation), from a checkpoint folder, with tokenizing

Rows are between half of --length and --length tokens long; padding is no token. Not measured are
the first --warmup batches, a logger, a progress bar, and the export.

Utilisation (MFU) is the rate of the FLOPs that a model needs (``gpu_models.py`` counts them) over
the peak: that of a large product of matrices of the same precision, measured first, and
--peak_tflops.

Peak memory is what tensors took on the GPU in the batches measured; on a CPU the process's largest
so far. Mistral's frozen weights are fp32, as fit loads them, but made on the GPU: 29 GB that are
never on disk, though Lightning moves them to the host's memory at the end. The classifiers are on
disk, in a temporary folder (1.8 GB), for the engine to load.
"""

from __future__ import annotations

import argparse
import gc
import io
import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import torch
from gpu_models import FRAME, SETTINGS, build, model_flops, rows_of
from lightning import Trainer, seed_everything
from lightning.pytorch.callbacks import Callback

from cli.command import run_command
from components.checkpoint import Component, library_versions, write_component
from records import UserError, write_json, write_jsonl
from train.cli import default_precision, silence_libraries
from train.data import RecordData
from train.module import ComponentModule, Item
from train.options import TRAINER_DEFAULTS


class Meter:
    """Seconds and peak memory between ``begin`` and ``end``, when the GPU has done its work."""

    def __init__(self, device: str):
        self.cuda = device == "cuda"
        self._start = 0.0

    def begin(self) -> None:
        """Forget what was before."""
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self._start = time.perf_counter()

    def end(self) -> tuple[float, float]:
        """Seconds and GiB since ``begin``."""
        if self.cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - self._start
        kept = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return seconds, (torch.cuda.max_memory_allocated() if self.cuda else kept) / 2**30


class Clock(Callback):
    """Meters the batches of training and of validation that follow the first ones of each.

    Attributes:
        metered: seconds and GiB of ``train`` and ``dev``.
        batches: the rows of each batch that was metered.
    """

    def __init__(self, warmup: int, device: str):
        self.warmup, self.meter = warmup, Meter(device)
        self.metered: dict[str, tuple[float, float]] = {}
        self.batches: dict[str, list[list[int]]] = {"train": [], "dev": []}

    def on_train_batch_end(self, trainer: Trainer, pl_module, outputs, batch, batch_idx) -> None:
        self._ended("train", batch, batch_idx + 1, trainer.num_training_batches)

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module, outputs, batch, batch_idx
    ) -> None:
        self._ended("dev", batch, batch_idx + 1, trainer.num_val_batches[0])

    def _ended(self, split: str, batch: dict, done: int, count: int) -> None:
        if done > self.warmup:
            self.batches[split].append(batch["indices"])
        if done == self.warmup:
            self.meter.begin()
        elif done == count:
            self.metered[split] = self.meter.end()


def matrix_tflops(options: argparse.Namespace) -> float:
    """TFLOP/s of a large product of matrices of the precision, the best of five rounds."""
    size, times = (8192, 20) if options.device == "cuda" else (1024, 2)
    dtype = torch.float32 if options.precision == "32-true" else torch.bfloat16
    left, right = (torch.randn(size, size, device=options.device, dtype=dtype) for _ in range(2))
    meter, seconds = Meter(options.device), []
    for _ in range(6):  # the first one warms up
        meter.begin()
        for _ in range(times):
            left @ right
        seconds.append(meter.end()[0])
    return 2 * size**3 * times / min(seconds[1:]) / 1e12


def fit(name: str, module: ComponentModule, options: argparse.Namespace, folder: Path) -> Clock:
    """Train and validate as ``python -m train fit`` does, with the clock running."""
    size = options.batch_size or (SETTINGS[name].batch_size if options.size == "paper" else 4)
    batches = options.warmup + options.steps
    paths = [str(folder / f"{split}.jsonl") for split in ("train", "dev")]
    for seed, path in enumerate(paths):
        write_jsonl(path, rows_of(name, module, batches * size, seed))
    silent = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    clock = Clock(options.warmup, options.device)
    trainer = Trainer(
        **TRAINER_DEFAULTS,
        accelerator=options.device,
        devices=1,
        precision=options.precision,
        max_epochs=1,
        callbacks=[clock],
        **dict.fromkeys(silent, False),
        default_root_dir=folder,
    )
    trainer.fit(module, RecordData(*paths, batch_size=size, eval_batch_size=size))
    return clock


def score(name: str, module: ComponentModule, options: argparse.Namespace, folder: Path) -> dict:
    """Judge pairs as ``python -m eval`` does, from a checkpoint folder with the module's model."""
    checkpoint = folder / "checkpoint"
    module.save_pretrained(checkpoint)
    module.tokenizer.save_pretrained(checkpoint)
    component = Component(
        component=module.component,
        architecture=module.architecture,
        max_length=module.max_length,
        base={"id": "random"},
        **module.describe(),
    )
    write_component(checkpoint, component, card="# random weights\n")
    kind, method = SETTINGS[name].engine
    dtype = "float32" if options.precision == "32-true" else "bfloat16"
    engine = kind(checkpoint, device=options.device, dtype=dtype)
    if options.attention:
        engine._model.set_attn_implementation(options.attention)
    if options.compile:
        engine._model.compile(dynamic=True)
    rows = rows_of(name, module, options.pairs, seed=2)
    pairs = [(row["premise"], row["hypothesis"]) for row in rows]
    judge, meter = getattr(engine, method), Meter(options.device)
    judge(pairs[: engine.batch_size])
    meter.begin()
    judge(pairs)
    metered = meter.end()
    items = module.encode([module.record_type(**row) for row in rows], train=True)
    return figures(module, "score", [[item] for item in items], metered)


def figures(
    module: ComponentModule, phase: str, batches: Sequence[Sequence[Item]], metered: tuple
) -> dict:
    """One phase's figures, from the batches that were computed, and seconds and GiB."""
    items = [item for batch in batches for item in batch]
    inputs = sum(item.length for item in items)
    written = module.architecture == "seq2seq"
    tokens = inputs + (sum(len(item.target.ids) for item in items) if written else 0)
    padded = sum(len(batch) * max(item.length for item in batch) for batch in batches)
    seconds, peak = metered
    return {
        "phase": phase,
        "attention": module.model.config._attn_implementation,
        "length": module.max_length,
        "rows": len(items),
        "tokens": tokens,
        "padding": 1 - inputs / padded,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds,
        "tflops": model_flops(module, items, phase == "train") / seconds / 1e12,
        "peak_gib": peak,
    }


def measure(name: str, options: argparse.Namespace) -> list[dict]:
    """All phases of a component.

    Raises:
        UserError: it does not fit into the GPU's memory.
    """
    found = []
    try:
        with tempfile.TemporaryDirectory() as place, redirect_stdout(io.StringIO()):
            module = build(name, options, Path(place))
            clock = fit(name, module, options, Path(place))
            for phase, split in (("train", "train"), ("validate", "dev")):
                items = module.trainer.datamodule.items[split]
                batches = [[items[index] for index in batch] for batch in clock.batches[split]]
                found.append(figures(module, phase, batches, clock.metered[split]))
            if SETTINGS[name].engine:
                found.append(score(name, module, options, Path(place)))
    except torch.OutOfMemoryError:
        raise UserError(
            f"{name}: out of the GPU's memory; lower --batch_size or --length, or choose others "
            "with --only"
        ) from None
    return [{"component": name, **row} for row in found]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line, completed by what the machine has.

    Raises:
        UserError: the papers' sizes without a GPU.
    """
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(SETTINGS), help="components, with commas")
    sizes = {"choices": ("paper", "toy"), "default": "paper" if cuda else "toy"}
    parser.add_argument("--size", **sizes, help="paper where there is a GPU, else toy")
    parser.add_argument("--batch_size", type=int, help="rows a batch; by default the paper's")
    parser.add_argument("--length", type=int, help="longest row in tokens; the paper's")
    parser.add_argument("--steps", type=int, default=20, help="batches measured")
    parser.add_argument("--warmup", type=int, default=5, help="batches before them")
    parser.add_argument("--pairs", type=int, default=4096 if cuda else 32, help="pairs to score")
    precisions = {"choices": ("bf16-mixed", "32-true"), "default": default_precision()}
    parser.add_argument("--precision", **precisions, help="as fit chooses it")
    attentions = ("sdpa", "flash_attention_2", "eager")
    parser.add_argument("--attention", choices=attentions, help="default: as transformers chooses")
    parser.add_argument("--compile", action="store_true", help="torch.compile; raise --warmup")
    parser.add_argument("--peak_tflops", type=float, help="the vendor's, of the same precision")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args(arguments)
    if options.size == "paper" and not cuda:
        raise UserError(
            "--size paper needs a CUDA GPU (24 GB for unli and relation, 80 GB for lss and "
            "adversary), and none is here; give --size toy"
        )
    if min(options.steps, options.warmup, options.pairs, options.batch_size or 1) < 1:
        raise UserError("--steps, --warmup, --pairs and --batch_size must be at least 1")
    if options.length is not None and options.length < 3 * FRAME:
        raise UserError(f"--length {options.length}: give at least {3 * FRAME}")
    options.only = options.only.split(",")
    if unknown := set(options.only) - set(SETTINGS):
        raise UserError(f"--only {', '.join(sorted(unknown))}: give some of {', '.join(SETTINGS)}")
    options.device = "cuda" if cuda else "cpu"
    return options


def line(cells: Sequence[str]) -> str:
    """A line of the table."""
    return "  ".join(f"{cell:>9}" for cell in cells)


def main(arguments: list[str] | None = None) -> None:
    """Print a line a component and phase, and write them all as they come."""
    options = parse(arguments)
    silence_libraries()
    seed_everything(1, verbose=False)
    peak, given = matrix_tflops(options), options.peak_tflops
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    print(
        f"{device}, {options.precision}, {options.size} size: a matrix product {peak:.2f} TFLOP/s"
    )
    heads = ("component", "phase", "attention", "tokens/s", "pad %", "TFLOP/s", "MFU %")
    print(line([*heads, "of vendor", "peak GiB"]))
    whole = {"device": device, "versions": library_versions(), "matrix_tflops": peak}
    rows = []
    for name in options.only:
        for row in measure(name, options):
            row["mfu"] = row["tflops"] / peak
            row["mfu_of_vendor"] = row["tflops"] / given if given else None
            rows.append(row)
            cells = [name, row["phase"], row["attention"], f"{row['tokens_per_second']:.0f}"]
            cells += [f"{100 * row['padding']:.1f}", f"{row['tflops']:.3g}"]
            cells += [f"{100 * row['mfu']:.1f}"]
            cells += [f"{100 * row['mfu_of_vendor']:.1f}" if given else "-"]
            print(line([*cells, f"{row['peak_gib']:.1f}"]), flush=True)
        if options.json:
            write_json(options.json, {**whole, "options": vars(options), "rows": rows})
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    run_command(main)
