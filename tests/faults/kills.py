"""Kill a door at random moments and start it again: it must end in the bytes of a calm run.

    python tests/faults/kills.py --door score --times 20 --seed 0

Models are tiny and made on the spot (``demo`` is ``make demo``, whole); nothing is asked of a
network. Exit code 1 where a byte differs. The moments are drawn between the first sign of the
output and the end of the calm run, since before that a process only imports; a run that ends
before its moment is compared, and another begun, until the kills are reached.
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
from typing import NamedTuple

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from records import write_json, write_jsonl  # noqa: E402 (not installed)
from tests.integration import kill  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [
    "Ann",
    "Bob",
    "was",
    "is",
    "born",
    "in",
    "London",
    "Paris",
    "a",
    "poet",
    "wrote",
    "not",
    ".",
]
# The output, in the folder that a run is started in: so that its path is the same in all.
OUT = "out"
LONGEST_S = 3600.0
LABELS = ["entailment", "neutral", "contradiction"]


def sentences(number: int, seed: int) -> list[str]:
    """Sentences of random words, no two of them likely the same."""
    draw = random.Random(seed)
    return [f"Ann {' '.join(draw.choices(WORDS, k=8))} {n}." for n in range(number)]


def make_base(folder: Path) -> None:
    """A random two-layer encoder of whole words."""
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate([*SPECIAL, *WORDS])}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    known = {"vocab_size": len(SPECIAL) + len(WORDS), "intermediate_size": 64}
    BertModel(BertConfig(**sizes, **known)).save_pretrained(folder)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def builder(work: Path) -> list[str]:
    """Claims over several facts of the embedded snapshot."""
    config = ROOT / "configs/data/small/kb_multihop.yaml"
    return ["data_builders", "kb_multihop", "--config", str(config), "--output", OUT]


def train(work: Path) -> list[str]:
    """A relation model from the tiny encoder."""
    rows = [
        {"premise": one, "hypothesis": other, "label": LABELS[n % 3]}
        for n, (one, other) in enumerate(zip(sentences(600, 1), sentences(600, 2), strict=True))
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
    """Sentences judged by a tiny relation model, four texts a chunk."""
    passages = [{"id": str(n), "title": "Ann", "text": t} for n, t in enumerate(sentences(8, 3))]
    write_jsonl(
        work / "texts.jsonl",
        [
            {"id": str(n), "topic": "Ann", "text": " ".join(sentences(8, n)), "passages": passages}
            for n in range(10, 130)
        ],
    )
    nli = {"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": _relation(work)}}
    pipeline = {
        "decompose": {"class_path": "eval.decompose.sentences.Sentences"},
        "verify": [nli],
    }
    write_json(work / "score.yaml", {"pipeline": pipeline, "chunk": 4})
    paths = ["--config", work / "score.yaml", "--documents", work / "texts.jsonl"]
    return ["eval", "score", *map(str, paths), "--output", OUT]


def experiment(work: Path) -> list[str]:
    """The relation model's ROC curves."""
    factor = str(ROOT / "configs/experiments/small/relation_model_factor.jsonl")
    config = {"experiment": {"factor": {"own": factor}, "relations": {"tiny": _relation(work)}}}
    write_json(work / "experiment.yaml", config)
    given = ["--config", str(work / "experiment.yaml"), "--output", OUT]
    return ["eval", "experiment", "relation_model", *given]


def _relation(work: Path) -> dict:
    given = {"checkpoint": str(work / "relation" / OUT), "batch_size": 8}
    return {"class_path": "eval.models.encoder.Entailment", "init_args": given}


def demo(work: Path) -> list[str]:
    """``make demo``: builders, training, sampling, the experiment and its report."""
    return ["make", "demo", f"LOGS={work / 'logs'}"]


def checkout(folder: Path) -> None:
    """The files that git tracks, with the environment that is set up beside them.

    All folders get the files as they were for the first: somebody may go on working on them.
    """
    first = folder.parent / "checkout"
    if not first.exists():
        tracked = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        for name in filter(None, tracked.stdout.split("\0")):
            (first / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, first / name)
    shutil.copytree(first, folder)
    (folder / ".venv").symlink_to(ROOT / ".venv")


def _module(command: Callable[[Path], list[str]]) -> Callable[[Path], list[str]]:
    return lambda work: [sys.executable, "-m", *command(work)]


@dataclass(frozen=True)
class Door:
    """A door that is killed.

    Attributes:
        command: what is run, by the folder of what all runs share.
        sign: the first path that its work makes.
        outputs: the folders whose files must be the same.
        prepare: makes the folder that it is run in.
        needs_relation: whether it reads the relation model that ``train`` makes.
    """

    command: Callable[[Path], list[str]]
    sign: str = OUT
    outputs: tuple[str, ...] = (OUT,)
    prepare: Callable[[Path], None] = Path.mkdir
    needs_relation: bool = False


DOORS = {
    "builder": Door(_module(builder)),
    "train": Door(_module(train), sign="runs/run"),
    "score": Door(_module(score), needs_relation=True),
    "experiment": Door(_module(experiment), needs_relation=True),
    "demo": Door(demo, "data/kb", ("data", "checkpoints/small", "runs/demo"), checkout),
}
ENV = {"WANDB_MODE": "disabled", "PYTHONPATH": str(ROOT)}


def calm(door: Door, work: Path) -> tuple[float, float]:
    """Let it end.

    Returns:
        Seconds from its start to the first sign of its work, and to its end.

    Raises:
        RuntimeError: it ended badly; with what it said.
    """
    folder = work / "calm"
    door.prepare(folder)
    begun = time.monotonic()
    process = subprocess.Popen(
        door.command(work),
        cwd=folder,
        env=os.environ | ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    while process.poll() is None and not (folder / door.sign).exists():
        time.sleep(0.005)
    first = time.monotonic() - begun
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {said.decode(errors='replace')}")
    return first, time.monotonic() - begun


class Given(NamedTuple):
    """How it is killed.

    Attributes:
        times: kills.
        within: seconds of work, at most, to each kill.
        seed: of the moments.
        first, last: seconds from the start of the calm run to the first sign of its work, and to
            its end.
    """

    times: int
    within: float
    seed: int
    first: float
    last: float


def rough(door: Door, work: Path, given: Given) -> tuple[int, list[str]]:
    """Kill it so many times; where it ends before its moment, compare and begin with none of it.

    Returns:
        How many folders were brought to their end, and the files that differ from the calm run's.
    """
    draw = random.Random(f"{given.seed}:kills")
    first, last = given.first, given.last
    killed = folders = 0
    differing = []
    while killed < given.times:
        folder = work / f"rough_{folders}"
        door.prepare(folder)
        again = {"env": ENV, "cwd": folder}
        untouched = True
        while killed < given.times:
            moment = draw.uniform(first, min(last, first + given.within))
            begun = time.monotonic()
            if not kill.run(door.command(work), kill_after=moment, **again):
                if untouched:  # the machine is faster than in the calm run
                    took = time.monotonic() - begun
                    first, last = first * took / last, took
                break
            killed, untouched = killed + 1, False
        kill.run(door.command(work), kill_after=LONGEST_S, **again)
        for output in door.outputs:
            paths = kill.same_bytes(work / "calm" / output, folder / output)
            # A cache has its rows in the order in which they came.
            differing += [f"{output}/{p}" for p in paths if ".sqlite" not in p]
        folders += 1
    return folders, differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--door", choices=DOORS, required=True)
    parser.add_argument("--times", type=int, default=20, help="kills")
    parser.add_argument("--within", type=float, help="seconds of work; all of it where not given")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make_base(work / "base")
        door = DOORS[given.door]
        if door.needs_relation:
            (work / "relation").mkdir()
            kill.run(DOORS["train"].command(work), env=ENV, cwd=work / "relation")
        first, last = calm(door, work)
        folders, differing = rough(
            door, work, Given(given.times, given.within or last, given.seed, first, last)
        )
    told = {"door": given.door, "calm_s": round(last, 1), "killed": given.times, "runs": folders}
    print(json.dumps(told | {"differing": differing}))
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
