"""What a sweep found: a table on screen and as CSV, a plot of every parameter, the best trial."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import optuna
from matplotlib.figure import Figure
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.table import Table

from components.checkpoint import read_component
from records import write_json, write_text
from train.card import save

# Values that span at least this much, all above 0, are shown on a log axis.
_WIDE = 8


def write_report(
    study: optuna.Study,
    space: Mapping[str, BaseDistribution],
    metric: str,
    output: Path,
    command: Sequence[str],
) -> None:
    """Write ``trials.csv``, ``sweep.png`` and ``best.json`` into the sweep's folder.

    Args:
        study: its trials so far.
        space: distribution of each parameter.
        metric: name of the measure.
        output: the sweep's folder.
        command: of the best trial; empty when none has succeeded.
    """
    trials = [trial for trial in study.trials if trial.state.is_finished()]
    write_text(output / "trials.csv", table_of(trials, list(space), metric))
    good = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if not good:
        return
    numeric = {name: log for name, d in space.items() if (log := log_axis(d)) is not None}
    if numeric:
        draw(trials, study.best_trial, numeric, metric, output / "sweep.png")
    best = study.best_trial
    folder = output / f"checkpoints/{best.number:03d}"
    write_json(
        output / "best.json",
        {
            "metric": metric,
            "goal": study.direction.name.lower(),
            "value": best.value,
            "trial": best.number,
            "parameters": best.params,
            "metrics": read_component(folder).metrics,
            "checkpoint": str(folder),
            "command": shlex.join(command),
            "trials": {"complete": len(good), "failed": len(trials) - len(good)},
        },
    )


def show(study: optuna.Study, space: Mapping[str, BaseDistribution], metric: str) -> None:
    """Print the finished trials as a table, the best one marked, and why others failed."""
    names = [name.replace(".", ".\n").replace("/", "/\n") for name in (metric, *space)]
    table, failed = Table("trial", *names, "seconds"), []
    for trial in study.trials:
        if trial.state.is_finished():
            value = "failed" if trial.value is None else f"{trial.value:.4f}"
            star = " *" if trial.number == study.best_trial.number else ""
            own = [_short(trial.params.get(name, "")) for name in space]
            table.add_row(
                f"{trial.number:03d}{star}", value, *own, str(trial.user_attrs.get("seconds", ""))
            )
        if trial.state == TrialState.FAIL:
            failed.append(f"trial {trial.number:03d} failed: {trial.user_attrs.get('reason', '')}")
    Console().print(table)
    print("\n".join(failed), end="\n" if failed else "")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table_of(trials: Sequence[FrozenTrial], names: Sequence[str], metric: str) -> str:
    """The trials as CSV, one a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", metric, *names, "seconds", "reason"])
    for trial in trials:
        value = "" if trial.value is None else trial.value
        own = [trial.params.get(name, "") for name in names]
        told = [trial.user_attrs.get(name, "") for name in ("seconds", "reason")]
        writer.writerow([trial.number, trial.state.name.lower(), value, *own, *told])
    return text.getvalue()


def log_axis(distribution: BaseDistribution) -> bool | None:
    """Whether a parameter belongs on a log axis; ``None`` when it is no number or constant."""
    if not isinstance(distribution, CategoricalDistribution):
        wide = distribution.low > 0 and distribution.high / distribution.low >= _WIDE
        return distribution.log or (wide and distribution.step is None)
    values = distribution.choices
    if len(values) < 2 or any(
        isinstance(v, bool) or not isinstance(v, int | float) for v in values
    ):
        return None
    return min(values) > 0 and max(values) / min(values) >= _WIDE


def draw(
    trials: Sequence[FrozenTrial],
    best: FrozenTrial,
    numeric: Mapping[str, bool],
    metric: str,
    path: Path,
) -> None:
    """The measure against each numeric parameter; failed trials are crosses on the axis.

    Args:
        trials: the finished ones.
        best: is ringed.
        numeric: parameter → whether its axis is logarithmic.
        metric: name of the measure.
        path: the PNG to write.
    """
    figure = Figure(figsize=(0.8 + 3.6 * len(numeric), 3.6), layout="constrained")
    for axes, (name, log) in zip(
        figure.subplots(1, len(numeric), sharey=True, squeeze=False)[0],
        numeric.items(),
        strict=True,
    ):
        good = [t for t in trials if t.state == TrialState.COMPLETE]
        failed = [t.params[name] for t in trials if t not in good and name in t.params]
        axes.plot([t.params[name] for t in good], [t.value for t in good], "o", color="C0")
        axes.plot(
            failed, [0.02] * len(failed), "x", color="C3", transform=axes.get_xaxis_transform()
        )
        axes.plot(best.params[name], best.value, "o", ms=12, mfc="none", color="C1")
        if log:
            axes.set_xscale("log")
        axes.set_xlabel(name)
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel(metric)
    save(figure, path)
