"""All speed benchmarks without GPU and server at small size: ``make bench``, in eight minutes.

    python benchmarks/bench.py --output runs/bench

Runs the other benchmarks of this folder sequentially, each with its baseline on the same number of
threads. Writes ``bench.json`` (results by name; ``parts`` has the output of each benchmark) and
``bench.md``. For larger sizes, run the benchmarks separately. Other load on the machine affects
all results.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from cli.command import run_command
from eval.report.declare import TextTable
from eval.report.tables import markdown
from records import write_json, write_text
from train.cli import default_precision

HERE = Path(__file__).parent
PAIRS = Path("data/lead_pairs")
# Descriptions of the results; speed-ups are baseline time / our time.
DESCRIPTIONS = {
    # In bfloat16 where it is faster
    "entailment_speedup": "short pairs: plain float32 loop / engine, time",
    "entailment_equal_labels": "share of equal labels of these pairs",
    "entailment_moved_mean": "mean |Δp| over pairs",
    "entailment_moved_most": "largest |Δp| over pairs",
    "entailment_of_limit": "FLOP/s of the engine / FLOP/s of a large matrix product",
    "entailment_speedup_float32": "the same pairs, the engine in float32",
    "entailment_speedup_long": "claims and the longest leads, plain float32 loop / engine, time",
    "training_speedup": "Trainer grouped by length / `train fit`, time for the same steps",
    "training_speedup_plain": "Trainer with defaults / `train fit`",
    "core_seconds_at_5000": "seconds of Core's selection among 5,000 claims, slowest graph",
    "sampling_speedup": "tokens/s of `CausalLM.write` / `generate` in batches of equal length",
    "sampling_speedup_generate": "the same / `generate` in left-padded batches",
    "builders_records_per_second": "`pairs`, records per second",
    "builders_entities_per_second": "`bios` from a Turtle file, entities per second",
    "builders_memory_growth": "peak memory at ten times the size / at the size, largest ratio",
}
CURVES = ["--documents", f"[{PAIRS}/texts_test.jsonl]", "--source_kind", "normal"]
CURVES += ["--adversarial", f"{{uninformative: [{PAIRS}/texts_test.jsonl]}}"]


def commands(checkpoint: str, folder: Path, threads: int) -> dict[str, list[str]]:
    """Name → command of each benchmark."""
    curves = folder / "corruption/curve_uninformative.jsonl"
    return {
        "entailment": [
            *("entailment.py", "--checkpoint", checkpoint, "--curves", str(curves)),
            *("--short", "2000", "--long", "60", "--threads", str(threads)),
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
            *("training.py", "--data", f"{PAIRS}/relation_train.jsonl"),
            *("--dev", f"{PAIRS}/relation_dev.jsonl", "--steps", "16", "--max_length", "128"),
            *("--threads", str(threads), "--precision", default_precision()),
        ],
        "builders": [
            *("builders.py", "--sizes", "1000", "10000", "--topics", "64"),
            *("--only", "bios", "knowledge", "pairs"),
        ],
        "sampling": ["sampling.py", "--threads", str(threads)],
        "gpu": ["gpu.py"],
    }


def run_python(command: list[str], **environment: str) -> None:
    """Run Python; on failure, exit with its exit code."""
    process = subprocess.run([sys.executable, *command], env={**os.environ, **environment})
    if process.returncode:
        sys.exit(process.returncode)


def run(command: list[str], file: Path, threads: int) -> tuple[object, float]:
    """Run one benchmark; return its JSON output and the seconds it took."""
    start = time.perf_counter()
    arguments = [str(HERE / command[0]), *command[1:], "--json", str(file)]
    run_python(arguments, OMP_NUM_THREADS=str(threads))
    return json.loads(file.read_text(encoding="utf-8")), time.perf_counter() - start


def figures(parts: dict[str, object]) -> dict[str, object]:
    """The main ratios and times by name."""
    short, long = parts["entailment"]["short"], parts["entailment"]["long"]
    dtype = "bfloat16" if "bfloat16_speedup" in short else "float32"
    largest = [row for row in parts["core_selection"] if row["claims"] == 5000]
    precision = parts["training"][-1]["precision"]
    seconds = {r["method"]: r["seconds"] for r in parts["training"] if r["precision"] == precision}
    sampled = {row["way"]: row["per_second"] for row in parts["sampling"]}
    smallest = {row["part"]: row for row in reversed(parts["builders"])}
    builder_rows = {row["part"]: row for row in parts["builders"]}  # largest size
    return {
        "entailment_speedup": short[f"{dtype}_speedup"],
        "entailment_equal_labels": short[f"{dtype}_equal_labels"],
        "entailment_moved_mean": short[f"{dtype}_moved_mean"],
        "entailment_moved_most": short[f"{dtype}_moved_most"],
        "entailment_of_limit": short[f"{dtype}_of_limit"],
        "entailment_speedup_float32": short["float32_speedup"],
        "entailment_speedup_long": long[f"{dtype}_speedup"],
        "training_speedup": seconds["grouped"] / seconds["fit"],
        "training_speedup_plain": seconds["plain"] / seconds["fit"],
        "core_seconds_at_5000": max(row["seconds"] for row in largest),
        "sampling_speedup": sampled["engine"] / sampled["equal lengths"],
        "sampling_speedup_generate": sampled["engine"] / sampled["generate"],
        "builders_records_per_second": builder_rows["pairs"]["records"]
        / builder_rows["pairs"]["seconds"],
        "builders_entities_per_second": builder_rows["bios"]["entities"]
        / builder_rows["bios"]["seconds"],
        "builders_memory_growth": max(
            row["peak_mib"] / smallest[name]["peak_mib"] for name, row in builder_rows.items()
        ),
        "inference": parts["inference"],
    }


def tables(results: dict[str, object], seconds: dict[str, float]) -> list[TextTable]:
    """The results as tables of a page."""
    scalars = {name: value for name, value in results.items() if isinstance(value, int | float)}
    header = ("network, method", "median time", "mean |ΔP|", "equal labels")
    cells = ("{size}, {method}", "{ms:.0f} ms", "{error:.4f}", "{equal_labels:.3f}")
    inference_rows = [tuple(cell.format(**row) for cell in cells) for row in results["inference"]]
    rows = [(name, f"{value:,.3f}", DESCRIPTIONS[name]) for name, value in scalars.items()]
    times = [(name, f"{value:.0f} s") for name, value in seconds.items()]
    return [
        TextTable("Results", head=("name", "value", "description"), rows=rows),
        TextTable("FactReasoner's inference", head=header, rows=inference_rows),
        TextTable("Time taken", head=("benchmark", "time"), rows=times),
    ]


def main() -> None:
    """Run all benchmarks and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="checkpoints/small/relation")
    parser.add_argument("--output", type=Path, default=Path("runs/bench"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder = options.output
    folder.mkdir(parents=True, exist_ok=True)
    builder = ["data_builders", "corruption", "--config", "configs/data/small/corruption.yaml"]
    run_python(["-m", *builder, *CURVES, "--output", str(folder / "corruption")])
    parts, seconds = {}, {}
    for name, command in commands(options.checkpoint, folder, options.threads).items():
        print(f"\n{name}", flush=True)
        parts[name], seconds[name] = run(command, folder / f"{name}.json", options.threads)
    results = figures(parts)
    write_json(folder / "bench.json", {**results, "seconds": seconds, "parts": parts})
    note = "Speed-ups are against the baseline of the same run; see benchmarks/README.md."
    write_text(folder / "bench.md", markdown(tables(results, seconds), note))
    print(f"\n{folder / 'bench.json'}\n{folder / 'bench.md'}")


if __name__ == "__main__":
    run_command(main)
