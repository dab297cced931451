"""Sweep files: wandb's YAML, read so that wandb and Optuna search the same space.

Commands, arguments and distributions are expanded by wandb's own functions.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Literal

import optuna
import yaml
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args
from wandb.sdk.sweeps.scheduler.optuna import sweep_parameter_to_distribution

from records import UserError, first_fault

Space = dict[str, BaseDistribution]


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
    name: str | None = None
    description: str | None = None
    project: str | None = None
    entity: str | None = None


def read_sweep(path: str | Path) -> Sweep:
    """Read and check a sweep file.

    Raises:
        UserError: no such file, or something in it that cannot be run.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        sweep = Sweep.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a sweep file as --sweep") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: no YAML ({' '.join(str(error).split())[:200]})") from None
    except ValidationError as error:
        raise first_fault(path, error) from None
    if "${args}" not in sweep.command:
        raise UserError(f"{path}: command: lacks ${{args}}, so no trial would get its parameters")
    for name, parameter in sweep.parameters.items():
        _check_numbers(f"{path}: parameters.{name}", parameter)
    space_of(sweep)
    return sweep


def _check_numbers(where: str, parameter: dict) -> None:
    """YAML takes 1e-4 for text, and wandb would search over text without a word."""
    given = [*parameter.get("values", []), *(parameter.get(k) for k in ("value", "min", "max"))]
    for value in given:
        if isinstance(value, str):
            try:
                number = float(value)
            except ValueError:
                continue
            raise UserError(f"{where}: {value} is text in YAML; write it as {number:.1e}")


def space_of(sweep: Sweep) -> Space:
    """The distribution of each parameter, as wandb's own Optuna engine reads it.

    Raises:
        UserError: a parameter that Optuna cannot draw, or that has no grid.
    """
    space: Space = {}
    for name, parameter in sweep.parameters.items():
        if "parameters" in parameter:
            raise UserError(f"parameters.{name}: nested; write its options as {name}.OPTION")
        try:
            space[name] = sweep_parameter_to_distribution(parameter)
        except (ValueError, TypeError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"parameters.{name}: {reason}; give values, or min and max") from None
        if sweep.method == "grid":
            _grid_values(name, space[name])
    return space


def _grid_values(name: str, distribution: BaseDistribution) -> list:
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if isinstance(distribution, IntDistribution) and not distribution.log:
        return list(range(distribution.low, distribution.high + 1, distribution.step))
    raise UserError(f"parameters.{name}: a grid needs values, not a range; list them")


def grid_of(space: Space) -> dict[str, list]:
    """The values of each parameter of a grid."""
    return {name: _grid_values(name, distribution) for name, distribution in space.items()}


def sampler_of(sweep: Sweep, space: Space, seed: int, number: int) -> optuna.samplers.BaseSampler:
    """The sampler of one trial: what it draws depends on seed, number and finished trials only."""
    if sweep.method == "grid":
        return optuna.samplers.GridSampler(grid_of(space), seed=seed)
    draw = seed * 1_000_003 + number
    if sweep.method == "random":
        return optuna.samplers.RandomSampler(seed=draw)
    return optuna.samplers.TPESampler(seed=draw)


def command_of(sweep: Sweep, parameters: dict[str, object], shown: bool = False) -> list[str]:
    """A trial's command line.

    Args:
        sweep: its ``command`` is expanded as ``wandb agent`` does.
        parameters: option → value.
        shown: for the reader, so with ``python`` instead of this interpreter's path.

    Raises:
        UserError: a macro that is not known here.
    """
    macros = create_sweep_command_args({"args": {k: {"value": v} for k, v in parameters.items()}})
    macros["interpreter"] = ["python"]
    macros["program"] = [sweep.program]
    macros["env"] = []
    command: list[str] = []
    for part in create_sweep_command(list(sweep.command)):
        if not (part.startswith("${") and part.endswith("}")):
            command.append(part)
        elif isinstance(macros.get(part[2:-1]), list):
            command += macros[part[2:-1]]
        else:
            raise UserError(f"command: {part} is not known here; use ${{program}} and ${{args}}")
    return [sys.executable if part == "python" and not shown else part for part in command]


def count_of(sweep: Sweep, trials: int | None) -> int:
    """How many trials there are.

    Raises:
        UserError: nothing says so.
    """
    wanted = trials or sweep.run_cap
    if sweep.method == "grid":
        whole = math.prod(len(values) for values in grid_of(space_of(sweep)).values())
        return min(wanted or whole, whole)
    if wanted is None:
        raise UserError(f"a {sweep.method} search has no end: give --trials N")
    return wanted
