"""Kill a command at random moments and restart it: its files must equal those of a calm run.

    python tests/faults/kills.py --command score --times 20 --seed 0

Models are tiny and made on the spot (``demo`` is the whole of ``make demo``), and no network is
used. The exit code is 1 if a file differs. Moments are drawn between the first output and the end
of the calm run, since a process only imports before its first output. A run that ends before its
moment is compared, and a new one starts, until all kills are done.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from records import write_json, write_jsonl  # noqa: E402 (not installed)
from tests.conftest import SIZE, TEXT, make_word_tokenizer  # noqa: E402
from tests.integration import kill  # noqa: E402

# The output, in the folder in which a run starts, so that all runs have the same path.
OUT = "out"
MAX_SECONDS = 3600.0
LABELS = ["entailment", "neutral", "contradiction"]
ENV = {"WANDB_MODE": "disabled", "PYTHONPATH": str(ROOT)}


def sentences(number: int, seed: int) -> list[str]:
    """Different sentences of random words."""
    draw = random.Random(seed)
    return [f"Ada {' '.join(draw.choices(TEXT.split(), k=8))} {n}." for n in range(number)]


def make_base(folder: Path) -> None:
    """Save a random two-layer encoder of whole words."""
    tokenizer = make_word_tokenizer(pairs=True)
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer), **SIZE)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def builder(work: Path) -> list[str]:
    """Statements of the leads of the tests."""
    source = ROOT / "tests/leads.jsonl"
    return ["data_builders", "leads", "--source", str(source), "--output", OUT]


def train(work: Path) -> list[str]:
    """A relation model from the tiny encoder."""
    rows = [
        {"premise": premise, "hypothesis": hypothesis, "label": LABELS[n % 3]}
        for n, (premise, hypothesis) in enumerate(
            zip(sentences(600, 1), sentences(600, 2), strict=True)
        )
    ]
    write_jsonl(work / "train.jsonl", rows)
    write_jsonl(work / "dev.jsonl", rows[::10])
    options = {
        "--model": "train.relation.Relation",
        "--model.base": str(work / "base"),
        "--model.max_length": "48",
        "--data": "train.data.RecordData",
        "--data.train": str(work / "train.jsonl"),
        "--data.dev": str(work / "dev.jsonl"),
        "--data.batch_size": "8",
        "--runs": "runs",
        "--name": "run",
        "--export_to": OUT,
        "--save_every": "10",
        "--ckpt_path": "last",
        "--trainer.accelerator": "cpu",
        "--trainer.max_steps": "120",
        "--trainer.val_check_interval": "40",
        "--trainer.check_val_every_n_epoch": "null",
    }
    return ["train", "fit", *(part for pair in options.items() for part in pair)]


def score(work: Path) -> list[str]:
    """Sentences judged by a tiny relation model, in chunks of four texts."""
    passages = [{"id": str(n), "title": "Ada", "text": t} for n, t in enumerate(sentences(8, 3))]
    documents = [
        {"id": str(n), "topic": "Ada", "text": " ".join(sentences(8, n)), "passages": passages}
        for n in range(10, 130)
    ]
    write_jsonl(work / "texts.jsonl", documents)
    nli = {"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": _relation(work)}}
    decompose = {"class_path": "eval.decompose.sentences.Sentences"}
    write_json(
        work / "score.yaml", {"pipeline": {"decompose": decompose, "verify": [nli]}, "chunk": 4}
    )
    paths = ["--config", work / "score.yaml", "--documents", work / "texts.jsonl"]
    return ["eval", "score", *map(str, paths), "--output", OUT]


def experiment(work: Path) -> list[str]:
    """ROC curves of the relation model."""
    factor = str(ROOT / "configs/experiments/small/relation_model_factor.jsonl")
    options = {"factor": {"own": factor}, "relations": {"tiny": _relation(work)}}
    path = work / "experiment.yaml"
    write_json(path, {"experiment": options})
    return ["eval", "experiment", "relation_model", "--config", str(path), "--output", OUT]


def _relation(work: Path) -> dict:
    options = {"checkpoint": str(work / "relation" / OUT), "batch_size": 8}
    return {"class_path": "eval.models.encoder.Entailment", "init_args": options}


def checkout(folder: Path) -> None:
    """Copy the files that git tracks, as they were at the first call, and link the environment."""
    first = folder.parent / "checkout"
    if not first.exists():
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=-1)
        for name in filter(None, tracked.stdout.decode().split("\0")):
            (first / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, first / name)
    shutil.copytree(first, folder)
    (folder / ".venv").symlink_to(ROOT / ".venv")


def _module(arguments: Callable[[Path], list[str]]) -> Callable[[Path], list[str]]:
    return lambda work: [sys.executable, "-m", *arguments(work)]


@dataclass(frozen=True)
class Target:
    """A command to kill.

    Attributes:
        command: the command line, given the folder of the shared inputs.
        sign: the first path that the command writes.
        outputs: the folders whose files must be equal.
        prepare: creates the folder in which it runs.
        needs_relation: whether it reads the relation model of ``train``.
    """

    command: Callable[[Path], list[str]]
    sign: str = OUT
    outputs: tuple[str, ...] = (OUT,)
    prepare: Callable[[Path], None] = Path.mkdir
    needs_relation: bool = False


TARGETS = {
    "builder": Target(_module(builder)),
    "train": Target(_module(train), sign="runs/run"),
    "score": Target(_module(score), needs_relation=True),
    "experiment": Target(_module(experiment), needs_relation=True),
    "demo": Target(
        lambda work: ["make", "demo", f"LOGS={work / 'logs'}"],
        "data/leads",
        ("data", "checkpoints/small", "runs/demo"),
        checkout,
    ),
}


def run_calm(target: Target, work: Path) -> tuple[float, float]:
    """Run without a kill; return the seconds to the first output, and to the end."""
    folder = work / "calm"
    target.prepare(folder)
    start = time.monotonic()
    process = subprocess.Popen(target.command(work), cwd=folder, env=os.environ | ENV)
    while process.poll() is None and not (folder / target.sign).exists():
        time.sleep(0.005)
    first = time.monotonic() - start
    if process.wait():
        raise RuntimeError(f"exit code {process.returncode}")
    return first, time.monotonic() - start


def run_killed(
    target: Target, work: Path, options: argparse.Namespace, first: float, last: float
) -> tuple[int, list[str]]:
    """Kill ``options.times`` times; a run that ends before its moment is compared.

    Args:
        first: seconds from the start of the calm run to its first output.
        last: seconds from the start of the calm run to its end.

    Returns:
        The number of finished folders, and the files that differ from the calm run.
    """
    draw = random.Random(f"{options.seed}:kills")
    killed = folders = 0
    differing = []
    while killed < options.times:
        folder = work / f"rough_{folders}"
        target.prepare(folder)
        place = {"env": ENV, "cwd": folder}
        untouched = True
        while killed < options.times:
            moment = draw.uniform(first, min(last, first + (options.within or last)))
            start = time.monotonic()
            if not kill.run(target.command(work), kill_after=moment, **place):
                if untouched:  # the machine is faster than in the calm run
                    took = time.monotonic() - start
                    first, last = first * took / last, took
                break
            killed, untouched = killed + 1, False
        kill.run(target.command(work), kill_after=MAX_SECONDS, **place)
        for output in target.outputs:
            paths = kill.same_bytes(work / "calm" / output, folder / output)
            # The order of rows in a cache is that in which they were answered.
            differing += [f"{output}/{path}" for path in paths if ".sqlite" not in path]
        folders += 1
    return folders, differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", choices=TARGETS, required=True)
    parser.add_argument("--times", type=int, default=20, help="kills")
    parser.add_argument("--within", type=float, help="seconds of work before a kill; default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make_base(work / "base")
        target = TARGETS[options.command]
        if target.needs_relation:
            (work / "relation").mkdir()
            kill.run(TARGETS["train"].command(work), env=ENV, cwd=work / "relation")
        first, last = run_calm(target, work)
        folders, differing = run_killed(target, work, options, first, last)
    report = {"command": options.command, "calm_s": round(last, 1), "killed": options.times}
    print(json.dumps(report | {"runs": folders, "differing": differing}))
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
