"""``python -m train sweep``: a hyperparameter search from one wandb sweep file, run here by Optuna.

The same YAML works with ``wandb sweep`` and ``wandb agent``: what wandb documents of macros and
distributions holds here too, as far as Optuna can draw them. Here every trial is its command in a
process of its own, and its value is the measure in the ``component.json`` that it exports. The
search of Core (2407.03572, section 5.2), dev perplexity against learning rate, is such a file.

A killed sweep goes on: finished trials are kept in SQLite, a trial that was running resumes from
its ``last.ckpt``, and each draw depends on the seed and the trial's number, not on when it is made.
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
_GOOD = (TrialState.COMPLETE,)


class Metric(BaseModel):
    """The measure to optimise, by the name that ``fit`` logs it under."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern="^dev/.")
    goal: Literal["minimize", "maximize"]


class Sweep(BaseModel):
    """A wandb sweep file, as far as both wandb and Optuna can run it.

    Attributes:
        program: what ``${program}`` stands for in the command.
        method: grid (every combination), random, or bayes (here a tree-structured Parzen
            estimator; Bergstra et al. 2011).
        metric: what to optimise.
        parameters: option of ``fit`` → ``value``, ``values``, or ``min`` and ``max`` with a
            ``distribution`` (uniform, log_uniform_values, int_uniform, q_uniform, …).
        command: how a trial is run; ``${args}`` are its parameters as ``--option=value``.
        run_cap: how many trials there are when ``--trials`` does not say.
    """

    model_config = ConfigDict(extra="forbid")

    program: str = "train"
    method: Literal["grid", "random", "bayes"]
    metric: Metric
    parameters: dict[str, dict]
    command: list[str]
    run_cap: int | None = Field(default=None, gt=0)
    # Of wandb alone.
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
        raise UserError(f"{path}: {error.strerror}; give a sweep file as --sweep") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no YAML ({' '.join(str(error).split())[:200]})") from None
    except ValidationError as error:
        raise to_bad_input(path, error) from None
    if "${args}" not in sweep.command:
        raise UserError(f"{path}: command: lacks ${{args}}, so no trial would get its parameters")
    for name, parameter in sweep.parameters.items():
        for value in [
            *parameter.values(),
            *(parameter["values"] if isinstance(parameter.get("values"), list) else []),
        ]:
            # YAML reads 1.0e-4 as a number and 1e-4 as text.
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
            raise UserError(f"parameters.{name}: nested; write its options as {name}.OPTION")
        try:
            space[name] = distribution_of(parameter)
        except (ValueError, TypeError, KeyError) as error:
            reason = first_line(error)
            raise UserError(f"parameters.{name}: {reason}; give values, or min and max") from None
    if sweep.method == "grid":
        grid_of(space)
    return space


def distribution_of(parameter: dict) -> BaseDistribution:
    """What a parameter is drawn from; without a ``distribution`` by the type of its bounds.

    Raises:
        ValueError, TypeError, KeyError: there is none, or not for these bounds.
    """
    if "value" in parameter or "values" in parameter:
        values = parameter.get("values", [parameter.get("value")])
        if not isinstance(values, list):
            raise ValueError(f"values: {values!r} is no list")
        return CategoricalDistribution(values)
    low, high, step = parameter["min"], parameter["max"], parameter.get("q", 1)
    whole = all(isinstance(bound, int) for bound in (low, high))
    kind = parameter.get("distribution", "int_uniform" if whole else "uniform")
    if kind == "q_uniform":
        stepped = IntDistribution if whole and isinstance(step, int) else FloatDistribution
        return stepped(low, high, step=step)
    if kind == "int_uniform":
        return IntDistribution(low, high)
    if kind not in ("uniform", "log_uniform_values"):
        raise ValueError(f"the distribution {kind} is not known here")
    return FloatDistribution(low, high, log=kind == "log_uniform_values")


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
    """The sampler of one trial: what it draws depends on seed, number and finished trials only."""
    if sweep.method == "grid":
        return optuna.samplers.GridSampler(grid_of(space), seed=seed)
    draw = seed * 1_000_003 + number
    if sweep.method == "random":
        return optuna.samplers.RandomSampler(seed=draw)
    return optuna.samplers.TPESampler(seed=draw)


def command_of(sweep: Sweep, parameters: dict[str, object], shown: bool = False) -> list[str]:
    """A trial's command line, its macros replaced as ``wandb agent`` does, but for null.

    The agent writes it as ``None``, which no option of ``fit`` takes.

    Args:
        sweep: its ``command`` may hold ``${interpreter}``, ``${program}``, ``${args}`` and
            ``${env}``, which is left out: the environment is this one.
        parameters: option → value.
        shown: for the reader, so with ``python`` instead of this interpreter's path.
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
            raise UserError(f"command: {part} is not known here; use ${{program}} and ${{args}}")
        command += macros.get(part, [part])
    return [sys.executable if part == "python" and not shown else part for part in command]


def count_of(sweep: Sweep, trials: int | None) -> int:
    """How many trials there are."""
    wanted = trials or sweep.run_cap
    if sweep.method == "grid":
        whole = math.prod(map(len, grid_of(space_of(sweep)).values()))
        return min(wanted or whole, whole)
    if wanted is None:
        raise UserError(f"a {sweep.method} search has no end: give --trials N")
    return wanted


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: with a value, or with the reason why it has none.

    Attributes:
        began: whether training began; before that, what fails is the command or the data.
    """

    value: float | None = None
    reason: str = ""
    began: bool = True


@dataclass
class Trials:
    """Runs the trials of a sweep, each in its own folders below ``output``.

    Args:
        sweep: what to run.
        output: holds ``runs/NUMBER``, ``checkpoints/NUMBER`` and ``logs/NUMBER.log``.
    """

    sweep: Sweep
    output: Path

    def run(self, number: int, parameters: dict[str, object]) -> Outcome:
        """Run or resume one trial, unless its checkpoint is there already."""
        name = f"{number:03d}"
        export, log = self.output / f"checkpoints/{name}", self.output / f"logs/{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log.with_suffix(".lock"), "ab") as lock:
            # The trial's process inherits the lock: one that outlived a killed sweep is waited for.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (export / "component.json").is_file():
                return self.read(export)
            with open(log, "ab") as file:
                before = file.tell()  # what an earlier attempt said
                try:
                    done = subprocess.run(
                        self.command(number, parameters),
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        pass_fds=[lock.fileno()],
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
                "command": shlex.join(command_of(self.sweep, best.params, shown=True)),
                "trials": {
                    "complete": int(counts["complete"]),
                    "failed": int(counts.get("fail", 0)),
                },
            },
        )

    def table(self) -> Any:
        """The finished trials as a table of pandas', which no ``--help`` should wait for.

        A row each: trial, state, metric, parameters, seconds, reason.
        """
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
    """The measure of the complete trials against each parameter, as Optuna's slice plot."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from optuna.visualization.matplotlib import plot_slice

    from train.card import save

    # The plot sets a style of its own, and warns that its interface may change.
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
    """Search hyperparameters: a wandb sweep file, run here with Optuna.

    Args:
        sweep: the sweep's YAML.
        output: folder of the sweep; a killed one goes on there.
        trials: trials in all, those of before included; null: run_cap, or the whole grid.
        jobs: trials at a time.
        seed: of the draws; trials have their own.
    """
    wanted = read_sweep(sweep)
    count = count_of(wanted, trials)
    with lock_folder(output):
        run = Search(wanted, output, seed)
        run.run(count, jobs)
        run.report()
    if not run.study.get_trials(states=_GOOD):
        raise UserError(f"no trial succeeded; {output / 'trials.csv'} says why")
    print(run.table().dropna(axis="columns", how="all").to_string(index=False, na_rep=""))
    best = run.study.best_trial
    print(f"best: trial {best.number:03d}, {wanted.metric.name} {best.value:.4f}")
    print(f"again: {shlex.join(command_of(wanted, best.params, shown=True))}")
    print(f"results: {output / 'best.json'}, trials.csv, sweep.png")
