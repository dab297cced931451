"""Sweep files: wandb's YAML, read so that wandb and Optuna search the same space.

What wandb documents of the file holds here too: macros of the command, and distributions, of which
those are taken that Optuna can draw.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path
from typing import Literal

import optuna
import yaml
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from records import UserError, first_fault
from records.errors import first_line

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
    """Read and check a sweep file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        sweep = Sweep.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a sweep file as --sweep") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
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
    values = parameter.get("values")
    listed = values if isinstance(values, list) else []
    for value in [*listed, *(parameter.get(k) for k in ("value", "min", "max"))]:
        if isinstance(value, str):
            try:
                number = float(value)
            except ValueError:
                continue
            raise UserError(f"{where}: {value} is text in YAML; write it as {number:.1e}")


def space_of(sweep: Sweep) -> Space:
    """The distribution of each parameter."""
    space: Space = {}
    for name, parameter in sweep.parameters.items():
        if "parameters" in parameter:
            raise UserError(f"parameters.{name}: nested; write its options as {name}.OPTION")
        try:
            space[name] = distribution_of(parameter)
        except (ValueError, TypeError, KeyError) as error:
            said = first_line(error)
            raise UserError(f"parameters.{name}: {said}; give values, or min and max") from None
        if sweep.method == "grid":
            _grid_values(name, space[name])
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
    if not all(map(math.isfinite, (low, high, step))):
        raise ValueError("min, max and q must be finite")
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


def _grid_values(name: str, distribution: BaseDistribution) -> list:
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if isinstance(distribution, IntDistribution):
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
    """A trial's command line, its macros replaced as ``wandb agent`` does, but for null.

    The agent writes it as ``None``, which no option of ``fit`` takes.

    Args:
        sweep: its ``command`` may hold ``${interpreter}``, ``${program}``, ``${args}``,
            ``${envvar:NAME}`` and ``${env}``, which is left out: the environment is this one.
        parameters: option → value.
        shown: for the reader, so with ``python`` instead of this interpreter's path.
    """
    macros = {
        "${env}": [],
        "${interpreter}": ["python"],
        "${program}": [sweep.program],
        "${args}": [
            f"--{name}={'null' if value is None else value}" for name, value in parameters.items()
        ],
    }
    command: list[str] = []
    for part in map(str, sweep.command):
        part = re.sub(r"\$\{envvar:(\w+)\}", lambda m: os.environ.get(m[1], m[1]), part)
        if part.startswith("${") and part not in macros:
            raise UserError(f"command: {part} is not known here; use ${{program}} and ${{args}}")
        command += macros.get(part, [part])
    return [sys.executable if part == "python" and not shown else part for part in command]


def count_of(sweep: Sweep, trials: int | None) -> int:
    """How many trials there are."""
    wanted = trials or sweep.run_cap
    if sweep.method == "grid":
        whole = math.prod(len(values) for values in grid_of(space_of(sweep)).values())
        return min(wanted or whole, whole)
    if wanted is None:
        raise UserError(f"a {sweep.method} search has no end: give --trials N")
    return wanted
