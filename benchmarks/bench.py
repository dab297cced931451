"""All speeds that need no GPU and no server, small: ``make bench``, at most ten minutes.

    python benchmarks/bench.py --output runs/bench

Runs the benchmarks beside it one after the other, each with its baseline in the same process or on
the same threads, and writes ``bench.json`` (figures by name at its top level; ``parts`` has what
each benchmark wrote) and ``bench.html``. What the sizes here are too small for is in the
benchmarks' own options. Other work on the machine disturbs every figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from cli.command import run_command
from eval.report.declare import TextTable
from eval.report.render import write_tables
from records import write_json
from train.cli import default_precision

HERE = Path(__file__).parent
KB = Path("data/kb")
# What each figure of the page is: ratios are the baseline's time over ours.
MEANING = {
    "entailment_speedup": "short pairs: a plain float32 loop's time over the engine's in bfloat16",
    "entailment_equal_labels": "share of their labels that are the same",
    "entailment_moved_mean": "mean |Δp| of a pair",
    "entailment_moved_most": "largest |Δp| of a pair",
    "entailment_of_limit": "of the FLOP a second of a large matrix product, the share reached",
    "entailment_speedup_float32": "the same pairs, the engine in float32",
    "entailment_speedup_long": "claims and whole pages, the engine in bfloat16",
    "pairs_saved": "Core's pairs for 300 claims in full, over those behind the gate, cosine 0.5",
    "pairs_saved_precision_moved": "what that gate moves the precision of that document by",
    "pairs_saved_stems": "the same behind the gate without an encoder, at a share of stems of 0.3",
    "pairs_saved_stems_precision_moved": "what this gate moves it by",
    "training_speedup": "Trainer grouped by length over `train fit`, time for the same steps",
    "training_speedup_plain": "Trainer as it comes over `train fit`",
    "core_seconds_at_5000": "seconds of Core's selection among 5,000 claims, the slower graph",
    "builders_records_per_second": "`pairs`, records a second",
    "builders_entities_per_second": "`bios` from a SPARQL server, entities a second",
    "builders_memory_growth": "peak memory at ten times the size, the largest of the builders",
}
CURVES = ["--adversarial", f"[{KB}/generations_test.jsonl, {KB}/generations_dev.jsonl]"]


def commands(checkpoint: str, folder: Path, threads: int) -> dict[str, list[str]]:
    """Name to command of each part."""
    curves = folder / "corruption/curve_uninformative.jsonl"
    return {
        "entailment": [
            *("entailment.py", "--checkpoint", checkpoint, "--curves", str(curves)),
            *("--short", "16000", "--long", "100", "--threads", str(threads)),
        ],
        "core_gate": [
            *("core_gate.py", f"{KB}/profiles.jsonl", f"{KB}/padded.jsonl"),
            *("--checkpoint", checkpoint, "--claims", "300", "--documents", "1"),
            *("--together", "12", "--shares", "0.2", "0.3", "--cosines", "0.5"),
        ],
        "core_selection": [
            *("core_selection.py", "--sizes", "100 500 1000 5000"),
            *("--shapes", "paraphrases random"),
        ],
        "inference": [
            *("inference.py", "--sizes", "31x60x0.03 31x60x0.1 31x60x0.3"),
            *("--seeds", "1", "--sweeps", "1000"),
        ],
        "training": [
            *("training.py", "--data", f"{KB}/relation_train.jsonl"),
            *("--dev", f"{KB}/relation_dev.jsonl", "--steps", "16", "--max_length", "128"),
            *("--threads", str(threads), "--precision", default_precision()),
        ],
        "builders": [
            *("builders.py", "--sizes", "1000", "10000", "--topics", "64"),
            *("--only", "bios", "knowledge", "pairs"),
        ],
        "gpu": ["gpu.py"],
    }


def call(command: list[str], **environment: str) -> None:
    """Run Python; where it fails it has said why, and this ends as it did."""
    done = subprocess.run([sys.executable, *command], env={**os.environ, **environment})
    if done.returncode:
        sys.exit(done.returncode)


def run(command: list[str], file: Path, threads: int) -> tuple[object, float]:
    """What one benchmark wrote, and the seconds that it took; it prints to the terminal."""
    start = time.perf_counter()
    call([str(HERE / command[0]), *command[1:], "--json", str(file)], OMP_NUM_THREADS=str(threads))
    return json.loads(file.read_text(encoding="utf-8")), time.perf_counter() - start


def figures(parts: dict[str, object]) -> dict[str, object]:
    """The ratios and times that a reader looks for, by name."""
    short, long = parts["entailment"]["short"], parts["entailment"]["long"]
    # The last threshold of each score
    gates = {row["score"]: row for row in parts["core_gate"]}
    largest = [row for row in parts["core_selection"] if row["claims"] == 5000]
    precision = parts["training"][-1]["precision"]
    seconds = {r["method"]: r["seconds"] for r in parts["training"] if r["precision"] == precision}
    built = {row["part"]: row for row in parts["builders"]["rows"]}  # of the largest size
    return {
        "entailment_speedup": short["bfloat16_speedup"],
        "entailment_equal_labels": short["bfloat16_equal_labels"],
        "entailment_moved_mean": short["bfloat16_moved_mean"],
        "entailment_moved_most": short["bfloat16_moved_most"],
        "entailment_of_limit": short["bfloat16_of_limit"],
        "entailment_speedup_float32": short["float32_speedup"],
        "entailment_speedup_long": long["bfloat16_speedup"],
        "pairs_saved": gates["cosine"]["pairs_saved"],
        "pairs_saved_precision_moved": gates["cosine"]["precision_moved"],
        "pairs_saved_stems": gates["stems"]["pairs_saved"],
        "pairs_saved_stems_precision_moved": gates["stems"]["precision_moved"],
        "training_speedup": seconds["grouped"] / seconds["fit"],
        "training_speedup_plain": seconds["plain"] / seconds["fit"],
        "core_seconds_at_5000": max(row["seconds"] for row in largest),
        "builders_records_per_second": built["pairs"]["records_per_second"],
        "builders_entities_per_second": built["bios"]["entities_per_second"],
        "builders_memory_growth": max(row["memory_growth"] for row in parts["builders"]["growth"]),
        "inference": parts["inference"],
    }


def tables(found: dict[str, object], seconds: dict[str, float]) -> list[TextTable]:
    """The figures as tables of a page."""
    plain = {name: value for name, value in found.items() if isinstance(value, int | float)}
    head = ("network, method", "median time", "mean |ΔP|", "equal labels")
    solved = [
        (
            f"{row['size']}, {row['method']}",
            f"{row['ms']:.0f} ms",
            f"{row['error']:.4f}",
            f"{row['equal_labels']:.3f}",
        )
        for row in found["inference"]
    ]
    rows = [(name, f"{value:,.3f}", MEANING[name]) for name, value in plain.items()]
    took = [(name, f"{value:.0f} s") for name, value in seconds.items()]
    return [
        TextTable("Figures", head=("figure", "value", "what it is"), rows=rows),
        TextTable("FactReasoner's inference", head=head, rows=solved),
        TextTable("Time taken", head=("benchmark", "time"), rows=took),
    ]


def main() -> None:
    """Run all parts and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--output", type=Path, default=Path("runs/bench"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder = options.output
    folder.mkdir(parents=True, exist_ok=True)
    builder = ["data_builders", "corruption", "--config", "configs/data/small/corruption.yaml"]
    own = ["--kinds", "[uninformative]", "--output", str(folder / "corruption")]
    call(["-m", *builder, *CURVES, *own])
    parts, seconds = {}, {}
    for name, command in commands(options.checkpoint, folder, options.threads).items():
        print(f"\n{name}", flush=True)
        parts[name], seconds[name] = run(command, folder / f"{name}.json", options.threads)
    found = figures(parts)
    write_json(folder / "bench.json", {**found, "seconds": seconds, "parts": parts})
    note = "Speed-ups are against the baseline of the same run; see benchmarks/README.md."
    write_tables(folder / "bench.html", "How fast?", note, tables(found, seconds))
    print(f"\n{folder / 'bench.json'}\n{folder / 'bench.html'}")


if __name__ == "__main__":
    run_command(main)
