"""``python -m train sweep``: hyperparameter search with Optuna from a wandb sweep file.

The same YAML works with ``wandb sweep`` and ``wandb agent``, for the macros and distributions that
Optuna supports. Each trial is one process; its value is the measure in the ``component.json`` that
it exports. Core (2407.03572, section 5.2) searches dev perplexity over the learning rate this way.

An interrupted sweep resumes: finished trials are stored in SQLite, a running trial resumes from its
``last.ckpt``, and each draw depends on seed and trial number only.
"""

import fcntl
import json
import math
import re
import shlex
import subprocess
import sys
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
import yaml
from jsonargparse.typing import PositiveInt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import ExperimentalWarning
from optuna.trial import FrozenTrial, TrialState
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from components.checkpoint import read_component
from records import UserError, sha256_text, to_bad_input, write_json, write_text
from records.errors import first_line
from records.writing import lock_folder

Space = dict[str, BaseDistribution]
_COMPLETE = (TrialState.COMPLETE,)


class Metric(BaseModel):
    """The measure to optimise, as logged by ``fit``."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern="^dev/.")
    goal: Literal["minimize", "maximize"]


class Sweep(BaseModel):
    """The part of wandb's sweep format that Optuna can run.

    Attributes:
        program: value of ``${program}`` in the command.
        method: grid, random, or bayes (a tree-structured Parzen estimator; Bergstra et al. 2011).
        metric: the measure to optimise.
        parameters: option of ``fit`` → ``value``, ``values``, or ``min`` and ``max`` with a
            ``distribution`` (uniform, log_uniform_values, int_uniform, q_uniform, …).
        command: command of a trial; ``${args}`` are its parameters as ``--option=value``.
        run_cap: default of ``--trials``.
    """

    model_config = ConfigDict(extra="forbid")

    program: str = "train"
    method: Literal["grid", "random", "bayes"]
    metric: Metric
    parameters: dict[str, dict]
    command: list[str]
    run_cap: int | None = Field(default=None, gt=0)
    # Used by wandb only.
    name: str | None = None
    description: str | None = None
    project: str | None = None
    entity: str | None = None


def read_sweep(path: str | Path) -> Sweep:
    """Read and check a sweep file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        sweep = Sweep.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; pass a sweep file as --sweep") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: invalid YAML ({' '.join(str(error).split())[:200]})") from None
    except ValidationError as error:
        raise to_bad_input(path, error) from None
    if "${args}" not in sweep.command:
        raise UserError(f"{path}: command: expected ${{args}} for the parameters of a trial")
    for name, parameter in sweep.parameters.items():
        for value in [
            *parameter.values(),
            *(parameter["values"] if isinstance(parameter.get("values"), list) else []),
        ]:
            # YAML parses 1.0e-4 as a number and 1e-4 as text.
            if isinstance(value, str) and re.fullmatch(r"-?\d+e[-+]?\d+", value):
                where = f"{path}: parameters.{name}"
                raise UserError(f"{where}: {value} is text in YAML; write it as {float(value):.1e}")
    space_of(sweep)
    return sweep


def space_of(sweep: Sweep) -> Space:
    """The distribution of each parameter."""
    space: Space = {}
    for name, parameter in sweep.parameters.items():
        if "parameters" in parameter:
            raise UserError(f"parameters.{name}: nested; write {name}.OPTION instead")
        try:
            space[name] = distribution_of(parameter)
        except (ValueError, TypeError, KeyError) as error:
            reason = first_line(error)
            raise UserError(f"parameters.{name}: {reason}; set values, or min and max") from None
    if sweep.method == "grid":
        grid_of(space)
    return space


def distribution_of(parameter: dict) -> BaseDistribution:
    """The distribution of a parameter; by default determined by the type of its bounds.

    Raises:
        ValueError, TypeError, KeyError: if the parameter is invalid.
    """
    if "value" in parameter or "values" in parameter:
        values = parameter.get("values", [parameter.get("value")])
        if not isinstance(values, list):
            raise ValueError(f"values: expected a list, got {values!r}")
        return CategoricalDistribution(values)
    low, high, step = parameter["min"], parameter["max"], parameter.get("q", 1)
    is_integer = all(isinstance(bound, int) for bound in (low, high))
    name = parameter.get("distribution", "int_uniform" if is_integer else "uniform")
    if name == "q_uniform":
        stepped = IntDistribution if is_integer and isinstance(step, int) else FloatDistribution
        return stepped(low, high, step=step)
    if name == "int_uniform":
        return IntDistribution(low, high)
    if name not in ("uniform", "log_uniform_values"):
        raise ValueError(f"unknown distribution {name}")
    return FloatDistribution(low, high, log=name == "log_uniform_values")


def grid_of(space: Space) -> dict[str, list]:
    """The values of each parameter of a grid."""
    grid = {}
    for name, kind in space.items():
        if isinstance(kind, FloatDistribution):
            raise UserError(f"parameters.{name}: a grid needs values, not a range; list them")
        listed = isinstance(kind, CategoricalDistribution)
        grid[name] = list(kind.choices if listed else range(kind.low, kind.high + 1, kind.step))
    return grid


def sampler_of(sweep: Sweep, space: Space, seed: int, number: int) -> optuna.samplers.BaseSampler:
    """The sampler of a trial; its draws depend on seed, number and finished trials only."""
    if sweep.method == "grid":
        return optuna.samplers.GridSampler(grid_of(space), seed=seed)
    draw = seed * 1_000_003 + number
    if sweep.method == "random":
        return optuna.samplers.RandomSampler(seed=draw)
    return optuna.samplers.TPESampler(seed=draw)


def command_of(sweep: Sweep, parameters: dict[str, object], for_display: bool = False) -> list[str]:
    """A trial's command line, with macros expanded as by ``wandb agent``.

    Unlike the agent, null stays ``null`` (not ``None``), and ``${env}`` expands to nothing.
    ``for_display`` keeps ``python`` instead of the path of this interpreter.
    """
    macros = {
        "${env}": [],
        "${interpreter}": ["python"],
        "${program}": [sweep.program],
        "${args}": [f"--{k}={'null' if v is None else v}" for k, v in parameters.items()],
    }
    command: list[str] = []
    for part in map(str, sweep.command):
        if part.startswith("${") and part not in macros:
            raise UserError(f"command: unknown macro {part}; use ${{program}} and ${{args}}")
        command += macros.get(part, [part])
    return [sys.executable if part == "python" and not for_display else part for part in command]


def count_of(sweep: Sweep, trials: int | None) -> int:
    """Total number of trials."""
    count = trials or sweep.run_cap
    if sweep.method == "grid":
        grid_size = math.prod(map(len, grid_of(space_of(sweep)).values()))
        return min(count or grid_size, grid_size)
    if count is None:
        raise UserError(f"a {sweep.method} search has no end: set --trials N")
    return count


@dataclass(frozen=True)
class Outcome:
    """Value of a trial, or the reason of its failure; not ``started`` if the command is wrong."""

    value: float | None = None
    reason: str = ""
    started: bool = True


@dataclass
class Trials:
    """Runs trials in ``output``: ``runs/NUMBER``, ``checkpoints/NUMBER``, ``logs/NUMBER.log``."""

    sweep: Sweep
    output: Path

    def run(self, number: int, parameters: dict[str, object]) -> Outcome:
        """Run or resume one trial, unless its checkpoint exists."""
        name = f"{number:03d}"
        export, log = self.output / f"checkpoints/{name}", self.output / f"logs/{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log.with_suffix(".lock"), "ab") as lock:
            # The trial's process inherits the lock, so a resumed sweep waits for it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (export / "component.json").is_file():
                return self.read(export)
            with open(log, "ab") as file:
                offset = file.tell()  # end of an earlier attempt's log
                try:
                    process = subprocess.run(
                        self.command(number, parameters),
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        pass_fds=[lock.fileno()],
                        check=False,
                    )
                except OSError as error:
                    return Outcome(reason=f"command: {first_line(error)}", started=False)
        if process.returncode:
            started = (self.output / f"runs/{name}/config.yaml").is_file()
            return Outcome(reason=_failure_reason(log, offset, process.returncode), started=started)
        for checkpoint in (self.output / f"runs/{name}").glob("*.ckpt"):
            checkpoint.unlink()  # save disk space
        return self.read(export)

    def command(self, number: int, parameters: dict[str, object]) -> list[str]:
        """A trial's command line with its folders and ``--ckpt_path last``."""
        name = f"{number:03d}"
        export = str(self.output / f"checkpoints/{name}")
        folders = ["--name", name, "--runs", str(self.output / "runs"), "--export_to", export]
        return [*command_of(self.sweep, parameters), *folders, "--ckpt_path", "last"]

    def read(self, export: Path) -> Outcome:
        """The value of the sweep's metric in an exported checkpoint."""
        metrics = read_component(export).metrics
        value = metrics.get(self.sweep.metric.name.removeprefix("dev/"))
        if value is None or not math.isfinite(value):
            names = ", ".join(metrics)
            return Outcome(reason=f"{self.sweep.metric.name}: no value; measured {names}")
        return Outcome(value=value)


def _failure_reason(log: Path, offset: int, exit_code: int) -> str:
    if exit_code < 0:
        return f"killed by signal {-exit_code}"
    lines = log.read_bytes()[offset:].decode(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    last = (errors or [line for line in lines if line.strip()] or [f"exit code {exit_code}"])[-1]
    return last.removeprefix("error: ").strip()[:500]


class Search:
    """Draws and runs trials, and stores their results in ``output``."""

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
        fields = {"program", "method", "metric", "parameters", "command"}
        settings = [sweep.model_dump(include=fields), seed]
        fingerprint = sha256_text(json.dumps(settings, sort_keys=True))
        if self.study.user_attrs.setdefault("mark", fingerprint) != fingerprint:
            raise UserError(f"{output}: contains another sweep or seed; set another --output")
        self.study.set_user_attr("mark", fingerprint)

    def draw(self, interrupted: FrozenTrial | None) -> optuna.Trial:
        """A new trial, or an interrupted one with the same parameters."""
        number = len(self.study.trials) if interrupted is None else interrupted.number
        self.study.sampler = sampler_of(self.sweep, self.space, self.seed, number)
        if interrupted is None:
            trial = self.study.ask(self.space)
        else:  # as in `ask`, which cannot reopen a stored trial
            trial = optuna.Trial(self.study, interrupted._trial_id)
            for name, distribution in self.space.items():
                trial._suggest(name, distribution)
        # GridSampler stops the study after its last trial, which fails outside `optimize`.
        self.study.sampler = optuna.samplers.RandomSampler()
        return trial

    def run(self, count: int, jobs: int) -> None:
        """Run until there are ``count`` trials, ``jobs`` in parallel."""
        interrupted = self.study.get_trials(states=(TrialState.RUNNING,))
        running: dict[Future[Outcome], tuple[optuna.Trial, float]] = {}
        error = None
        with ThreadPoolExecutor(jobs) as pool:
            while True:
                while not error and len(running) < jobs:
                    if not interrupted and len(self.study.trials) >= count:
                        break
                    trial = self.draw(interrupted.pop(0) if interrupted else None)
                    command = shlex.join(command_of(self.sweep, trial.params, for_display=True))
                    print(f"trial {trial.number:03d} of {count}: {command}", flush=True)
                    future = pool.submit(self.trials.run, trial.number, trial.params)
                    running[future] = trial, time.monotonic()
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    trial, start = running.pop(future)
                    outcome = future.result()
                    if not outcome.started and not self.study.get_trials(states=_COMPLETE):
                        error = f"trial {trial.number:03d}: {outcome.reason}"
                        continue
                    self._record(trial, outcome, time.monotonic() - start)
        if error:
            raise UserError(error)

    def _record(self, trial: optuna.Trial, outcome: Outcome, seconds: float) -> None:
        trial.set_user_attr("seconds", round(seconds, 1))
        if outcome.value is None:
            trial.set_user_attr("reason", outcome.reason)
        state = TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        self.study.tell(trial, outcome.value, state=state)
        self.report()
        message = outcome.reason if outcome.value is None else f"{outcome.value:.4f}"
        print(f"trial {trial.number:03d}: {state.name.lower()}: {message}", flush=True)

    def report(self) -> None:
        """Write ``trials.csv``, ``sweep.png`` and ``best.json`` into the sweep's folder."""
        metric, table = self.sweep.metric.name, self.table()
        write_text(self.output / "trials.csv", table.to_csv(index=False))
        counts = table["state"].value_counts()
        if "complete" not in counts:
            return
        draw(self.study, metric, self.output / "sweep.png")
        best = self.study.best_trial
        folder = self.output / f"checkpoints/{best.number:03d}"
        write_json(
            self.output / "best.json",
            {
                "metric": metric,
                "goal": self.study.direction.name.lower(),
                "value": best.value,
                "trial": best.number,
                "parameters": best.params,
                "metrics": read_component(folder).metrics,
                "checkpoint": str(folder),
                "command": shlex.join(command_of(self.sweep, best.params, for_display=True)),
                "trials": {
                    "complete": int(counts["complete"]),
                    "failed": int(counts.get("fail", 0)),
                },
            },
        )

    def table(self) -> Any:
        """A pandas table of finished trials: trial, state, metric, parameters, seconds, reason."""
        attributes = ("number", "state", "value", "params", "user_attrs")
        table = self.study.trials_dataframe(attrs=attributes)
        table = table[table["state"].isin(["COMPLETE", "FAIL"])]
        table["state"] = table["state"].str.lower()
        options = [name for name in table if name.startswith("params_")]
        last = ["user_attrs_seconds", "user_attrs_reason"]
        table = table.reindex(columns=["number", "state", "value", *options, *last])
        table.columns = table.columns.str.replace("^(params|user_attrs)_", "", regex=True)
        return table.rename(columns={"number": "trial", "value": self.sweep.metric.name})


def draw(study: optuna.Study, metric: str, path: Path) -> None:
    """Draw Optuna's slice plot: the measure against each parameter."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from optuna.visualization.matplotlib import plot_slice

    from train.card import save

    # plot_slice changes the style and warns that it is experimental.
    with pyplot.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        axes = plot_slice(study, target_name=metric)
        figure = getattr(axes, "flat", [axes])[0].figure
        figure.set_size_inches(1.5 + 3.6 * len(study.best_params), 3.6)
        save(figure, path)
        pyplot.close(figure)


def search(
    sweep: str,
    output: Path,
    trials: PositiveInt | None = None,
    jobs: PositiveInt = 1,
    seed: int = 1,
) -> None:
    """Search hyperparameters: run a wandb sweep file with Optuna.

    Args:
        sweep: the sweep file (YAML).
        output: output folder; an interrupted sweep resumes.
        trials: total number of trials, including finished ones; null: run_cap, or the full grid.
        jobs: number of parallel trials.
        seed: seed of the draws; trials set their seeds by --seed_everything.
    """
    settings = read_sweep(sweep)
    count = count_of(settings, trials)
    with lock_folder(output):
        run = Search(settings, output, seed)
        run.run(count, jobs)
        run.report()
    if not run.study.get_trials(states=_COMPLETE):
        raise UserError(f"no trial succeeded; see the reasons in {output / 'trials.csv'}")
    print(run.table().dropna(axis="columns", how="all").to_string(index=False, na_rep=""))
    best = run.study.best_trial
    print(f"best: trial {best.number:03d}, {settings.metric.name} {best.value:.4f}")
    print(f"to repeat it: {shlex.join(command_of(settings, best.params, for_display=True))}")
    print(f"results: {output / 'best.json'}, trials.csv, sweep.png")
