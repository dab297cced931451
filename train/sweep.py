"""``python -m train sweep``: repeat a fit over a grid or random values of its options.

Each trial is one process; its value is a measure in the ``component.json`` that it exports. Core
(2407.03572, section 5.2) searches dev perplexity over the learning rate this way.

An interrupted sweep resumes: exported trials are kept, an interrupted trial resumes from its
``last.ckpt``, failed trials are repeated, and a random draw depends on seed and trial number only.
"""

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveFloat, PositiveInt
from pandas import DataFrame

from components.checkpoint import read_component
from components.measures import SMALLER_IS_BETTER
from records import UserError, write_json, write_text
from records.writing import lock_folder

Options = dict[str, Any]
Ranges = dict[str, tuple[PositiveFloat, PositiveFloat]]


def draw_trials(
    choices: dict[str, list], ranges: Ranges, trials: int | None, seed: int
) -> list[Options]:
    """The options of each trial: the grid of ``choices``, or ``trials`` random draws."""
    if trials is None:
        if ranges:
            raise UserError(f"--trials: expected a number, because {', '.join(ranges)} is a range")
        return [
            dict(zip(choices, grid_point, strict=True)) for grid_point in product(*choices.values())
        ]
    draws = []
    for number in range(trials):
        generator = np.random.default_rng([seed, number])
        options = {
            name: listed[generator.integers(len(listed))] for name, listed in choices.items()
        }
        for name, bounds in ranges.items():
            options[name] = float(f"{math.exp(generator.uniform(*map(math.log, bounds))):.3g}")
        draws.append(options)
    return draws


def fit_arguments(fit: Sequence[str], options: Options) -> list[str]:
    """The arguments of ``python -m train`` for a trial."""
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in options.items()}
    return ["fit", *fit, *(f"--{name}={text}" for name, text in texts.items())]


def run_trial(
    fit: Sequence[str], measure: str, output: Path, number: int, options: Options
) -> Options:
    """Run or resume a trial unless it is exported; return its row of the table.

    Raises:
        UserError: the command line is invalid, so that no trial can start.
    """
    name = f"{number:03d}"
    export, run_folder = output / f"checkpoints/{name}", output / f"runs/{name}"
    log = output / f"logs/{name}.log"
    row = {"trial": number, **options, measure: None, "reason": ""}
    if not (export / "component.json").is_file():
        folders = ["--name", name, "--runs", str(output / "runs"), "--export_to", str(export)]
        command = ["-m", "train", *fit_arguments(fit, options), *folders]
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "wb") as file:
            trial = subprocess.run(
                [sys.executable, *command], stdout=file, stderr=subprocess.STDOUT, check=False
            )
        if trial.returncode:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
            reason = errors[-1] if errors else f"exit code {trial.returncode}, see {log}"
            if not (run_folder / "config.yaml").is_file():
                raise UserError(f"trial {name}: {reason}")
            return row | {"reason": reason}
        for checkpoint in run_folder.glob("*.ckpt"):
            checkpoint.unlink()  # save disk space
    metrics = read_component(export).metrics
    if measure not in metrics:
        return row | {"reason": f"no {measure}; measured {', '.join(metrics)}"}
    return row | {measure: metrics[measure]}


def search(
    fit: list[str],
    measure: str,
    output: Path,
    choices: dict[str, list] | None = None,
    ranges: Ranges | None = None,
    trials: PositiveInt | None = None,
    jobs: PositiveInt = 1,
    seed: int = 1,
) -> None:
    """Repeat a fit over a grid or random values of its options.

    Args:
        fit: arguments of ``python -m train fit`` of all trials, e.g. ``[--config, FILE]``.
        measure: measure to optimise, a name of ``metrics`` in component.json, e.g. ``pearson``.
        output: output folder; an interrupted sweep resumes.
        choices: option of ``fit`` → its values.
        ranges: option of ``fit`` → smallest and largest value; draws are log-uniform.
        trials: number of random draws; null: all combinations of ``choices``.
        jobs: number of parallel trials.
        seed: seed of the draws; trials set their seeds by --seed_everything.
    """
    draws = draw_trials(choices or {}, ranges or {}, trials, seed)
    settings = {"fit": fit, "measure": measure, "choices": choices, "ranges": ranges, "seed": seed}
    settings["random"] = trials is not None
    content = json.loads(json.dumps(settings))
    rows: list[Options] = []
    with lock_folder(output):
        path = output / "sweep.json"
        if path.is_file() and json.loads(path.read_text(encoding="utf-8")) != content:
            raise UserError(f"{output}: contains another sweep or seed; set another --output")
        write_json(path, content)
        with ThreadPoolExecutor(jobs) as pool:
            run_numbered = partial(run_trial, fit, measure, output)
            for row in pool.map(run_numbered, range(len(draws)), draws):
                rows.append(row)
                write_text(output / "trials.csv", DataFrame(rows).to_csv(index=False))
                print(f"trial {len(rows)} of {len(draws)}: {row}", flush=True)
    complete = [row for row in rows if row[measure] is not None]
    if not complete:
        raise UserError(f"no trial succeeded; see the reasons in {output / 'trials.csv'}")
    is_smaller_better = measure.rpartition("/")[2] in SMALLER_IS_BETTER
    best = (min if is_smaller_better else max)(complete, key=lambda row: row[measure])
    command = shlex.join(fit_arguments(fit, draws[best["trial"]]))
    print(DataFrame(rows).to_string(index=False, na_rep=""))
    print(f"best: trial {best['trial']:03d}, {measure} {best[measure]:.4f}")
    print(f"to repeat it: python -m train {command}")
