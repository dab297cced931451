"""What a sweep found: a table, a plot of every parameter, the best trial; all by Optuna's own."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
from optuna.exceptions import ExperimentalWarning

from components.checkpoint import read_component
from records import write_json, write_text

if TYPE_CHECKING:
    import pandas as pd  # half a second to import, which --help need not wait for


def table_of(study: optuna.Study, metric: str) -> pd.DataFrame:
    """The finished trials, a row each: trial, state, metric, parameters, seconds, reason.

    Args:
        study: its trials so far.
        metric: name of the measure.
    """
    found = study.trials_dataframe(attrs=("number", "state", "value", "params", "user_attrs"))
    found = found[found["state"].isin(["COMPLETE", "FAIL"])]
    found["state"] = found["state"].str.lower()
    own = [name for name in found if name.startswith("params_")]
    found = found.reindex(
        columns=["number", "state", "value", *own, "user_attrs_seconds", "user_attrs_reason"]
    )
    plain = {"number": "trial", "value": metric}
    return found.rename(
        columns=lambda name: plain.get(
            name, name.removeprefix("params_").removeprefix("user_attrs_")
        )
    )


def write_report(study: optuna.Study, metric: str, output: Path, command: Sequence[str]) -> None:
    """Write ``trials.csv``, ``sweep.png`` and ``best.json`` into the sweep's folder.

    Args:
        study: its trials so far.
        metric: name of the measure.
        output: the sweep's folder.
        command: of the best trial; empty when none has succeeded.
    """
    table = table_of(study, metric)
    write_text(output / "trials.csv", table.to_csv(index=False))
    counts = table["state"].value_counts()
    if "complete" not in counts:
        return
    draw(study, metric, output / "sweep.png")
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
            "trials": {"complete": int(counts["complete"]), "failed": int(counts.get("fail", 0))},
        },
    )


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
