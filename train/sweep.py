"""``python -m train sweep``: a hyperparameter search from one wandb sweep file, run here by Optuna.

The same YAML works with ``wandb sweep`` and ``wandb agent`` (``train/sweep_file.py``). Here every
trial is its command in a process of its own, and its value is the measure in the ``component.json``
that it exports. The search of Core (2407.03572, section 5.2), dev perplexity against learning rate,
is such a file.

A killed sweep goes on: finished trials are kept in SQLite, a trial that was running resumes from
its ``last.ckpt``, and each draw depends on the seed and the trial's number, not on when it is made.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import optuna
from jsonargparse import ArgumentParser
from optuna.trial import FrozenTrial, TrialState

from components.checkpoint import read_component
from records import UserError, sha256_text
from records.errors import first_line
from train.sweep_file import Sweep, command_of, count_of, read_sweep, sampler_of, space_of
from train.sweep_report import table_of, write_report


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: with a value, or with the reason why it has none.

    Attributes:
        began: whether training began; before that, what fails is the command or the data.
    """

    value: float | None = None
    reason: str = ""
    began: bool = True


class Trials:
    """Runs the trials of a sweep, each in its own folders below ``output``.

    Args:
        sweep: what to run.
        output: holds ``runs/NUMBER``, ``checkpoints/NUMBER`` and ``logs/NUMBER.log``.
    """

    def __init__(self, sweep: Sweep, output: Path):
        self.sweep, self.output = sweep, output

    def run(self, number: int, parameters: dict[str, object]) -> Outcome:
        """Run or resume one trial, unless its checkpoint is there already."""
        name = f"{number:03d}"
        export, log = self.output / f"checkpoints/{name}", self.output / f"logs/{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        # The trial's process inherits the lock: one that outlived a killed sweep is waited for.
        with locked(log.with_suffix(".lock"), wait_for=f"trial {name}") as lock:
            if (export / "component.json").is_file():
                return self.read(export)
            with open(log, "ab") as file:
                before = file.tell()  # what an earlier attempt said
                try:
                    done = subprocess.run(
                        self.command(number, parameters),
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        pass_fds=[lock],
                        check=False,
                    )
                except OSError as error:
                    return Outcome(reason=f"command: {first_line(error)}", began=False)
        if done.returncode:
            began = (self.output / f"runs/{name}/config.yaml").is_file()
            return Outcome(reason=_reason(log, before, done.returncode), began=began)
        for checkpoint in (self.output / f"runs/{name}").glob("*.ckpt"):
            checkpoint.unlink()  # exported; hundreds of trials would fill the disk
        return self.read(export)

    def command(self, number: int, parameters: dict[str, object]) -> list[str]:
        """A trial's command line, with folders of its own, which resumes what was begun."""
        name = f"{number:03d}"
        export = str(self.output / f"checkpoints/{name}")
        own = ["--name", name, "--runs", str(self.output / "runs"), "--export_to", export]
        return [*command_of(self.sweep, parameters), *own, "--ckpt_path", "last"]

    def read(self, export: Path) -> Outcome:
        """The value of the sweep's metric in an exported checkpoint."""
        metrics = read_component(export).metrics
        value = metrics.get(self.sweep.metric.name.removeprefix("dev/"))
        if value is None or not math.isfinite(value):
            there = ", ".join(metrics)
            return Outcome(reason=f"{self.sweep.metric.name} has no value; there are {there}")
        return Outcome(value=value)


def _reason(log: Path, before: int, code: int) -> str:
    if code < 0:
        return f"killed by signal {-code}"
    lines = log.read_bytes()[before:].decode(errors="replace").splitlines()
    said = [line for line in lines if line.startswith("error: ")] or [x for x in lines if x.strip()]
    return said[-1].removeprefix("error: ").strip()[:500] if said else f"exit code {code}"


@contextmanager
def locked(path: Path, wait_for: str | None = None) -> Iterator[int]:
    """Hold a lock file; its descriptor may be passed on to a process, which then holds it too.

    Args:
        path: the file.
        wait_for: who may hold it and is waited for; without it nobody may.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if wait_for is None:
                raise UserError(f"{path.parent}: a sweep is running there; wait for it") from None
            print(f"{wait_for}: still running from before; waiting for it", flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


class Search:
    """Draws trials, runs them, and keeps what came of them.

    Args:
        sweep: the search.
        output: its folder.
        seed: of the draws.
    """

    def __init__(self, sweep: Sweep, output: Path, seed: int):
        self.sweep, self.output, self.seed = sweep, output, seed
        self.space = space_of(sweep)
        self.trials = Trials(sweep, output)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(
            storage=f"sqlite:///{output / 'sweep.db'}",
            study_name="sweep",
            direction=sweep.metric.goal,
            load_if_exists=True,
        )
        chosen = sweep.model_dump(include={"program", "method", "metric", "parameters", "command"})
        mark = sha256_text(json.dumps([chosen, seed], sort_keys=True))
        if self.study.user_attrs.setdefault("mark", mark) != mark:
            raise UserError(f"{output}: holds another sweep or seed; give another --output")
        self.study.set_user_attr("mark", mark)

    def draw(self, stale: FrozenTrial | None) -> optuna.Trial:
        """A new trial, or one that was running when the sweep was killed, with its parameters."""
        number = len(self.study.trials) if stale is None else stale.number
        self.study.sampler = sampler_of(self.sweep, self.space, self.seed, number)
        if stale is None:
            trial = self.study.ask(self.space)
        else:  # what `ask` does with a new one; a stored one has no public name
            trial = optuna.Trial(self.study, stale._trial_id)
            for name, distribution in self.space.items():
                trial._suggest(name, distribution)
        # A grid's sampler would end the study at its last trial, which only `optimize` can.
        self.study.sampler = optuna.samplers.RandomSampler()
        return trial

    def run(self, count: int, jobs: int) -> None:
        """Bring the study to ``count`` trials, ``jobs`` at a time."""
        stale = self.study.get_trials(states=(TrialState.RUNNING,))
        running: dict[Future[Outcome], tuple[optuna.Trial, float]] = {}
        mistake = None
        with ThreadPoolExecutor(jobs) as pool:
            while True:
                while not mistake and len(running) < jobs:
                    if not stale and len(self.study.trials) >= count:
                        break
                    trial = self.draw(stale.pop(0) if stale else None)
                    told = shlex.join(command_of(self.sweep, trial.params, shown=True))
                    print(f"trial {trial.number:03d} of {count}: {told}", flush=True)
                    future = pool.submit(self.trials.run, trial.number, trial.params)
                    running[future] = trial, time.monotonic()
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    trial, start = running.pop(future)
                    outcome = future.result()
                    if not outcome.began and not self.study.get_trials(states=_GOOD):
                        mistake = f"trial {trial.number:03d}: {outcome.reason}"
                        continue
                    self._tell(trial, outcome, time.monotonic() - start)
        if mistake:
            raise UserError(mistake)

    def _tell(self, trial: optuna.Trial, outcome: Outcome, seconds: float) -> None:
        trial.set_user_attr("seconds", round(seconds, 1))
        if outcome.value is None:
            trial.set_user_attr("reason", outcome.reason)
        state = TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        self.study.tell(trial, outcome.value, state=state)
        self.report()
        told = outcome.reason if outcome.value is None else f"{outcome.value:.4f}"
        print(f"trial {trial.number:03d}: {state.name.lower()}: {told}", flush=True)

    def report(self) -> None:
        """Write the files that show what was found so far."""
        best = self.study.best_trial if self.study.get_trials(states=_GOOD) else None
        command = command_of(self.sweep, best.params, shown=True) if best else []
        write_report(self.study, self.sweep.metric.name, self.output, command)


_GOOD = (TrialState.COMPLETE,)


def main(arguments: Sequence[str]) -> int:
    """``python -m train sweep``."""
    parser = ArgumentParser(prog="python -m train sweep", exit_on_error=False)
    parser.add_function_arguments(search, as_group=False)
    parser.description = "Search hyperparameters: a wandb sweep file, run here with Optuna."
    return search(**parser.parse_args(list(arguments)))


def search(sweep: str, output: str, trials: int | None = None, jobs: int = 1, seed: int = 1) -> int:
    """Run a search to its end, and print what it found.

    Args:
        sweep: the sweep's YAML.
        output: folder of the sweep; a killed one goes on there.
        trials: trials in all, those of before included; null: run_cap, or the whole grid.
        jobs: trials at a time.
        seed: of the draws; trials have their own.
    """
    if min(jobs, 1 if trials is None else trials) < 1:
        raise UserError("--jobs and --trials must be at least 1")
    wanted, folder = read_sweep(sweep), Path(output)
    count, metric = count_of(wanted, trials), wanted.metric.name
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "sweep.lock"):
        found = Search(wanted, folder, seed)
        found.run(count, jobs)
        found.report()
    if not found.study.get_trials(states=_GOOD):
        raise UserError(f"no trial succeeded; {folder / 'trials.csv'} says why")
    table = table_of(found.study, metric).dropna(axis="columns", how="all")
    print(table.to_string(index=False, na_rep=""))
    best = found.study.best_trial
    print(f"best: trial {best.number:03d}, {metric} {best.value:.4f}")
    print(f"again: {shlex.join(command_of(wanted, best.params, shown=True))}")
    print(f"results: {folder / 'best.json'}, trials.csv, sweep.png")
    return 0
