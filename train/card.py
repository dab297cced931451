"""The model card of a checkpoint: purpose, training, measures and calibration.

``README.md`` with a Hub header, and PNG files of the training
curves and the reliability plot whose bytes depend only on the numbers.
"""

import csv
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from huggingface_hub import ModelCardData
from matplotlib.figure import Figure

from components.calibration import (
    LEAST_CALIBRATION_ROWS,
    expected_calibration_error,
    reliability_bins,
)
from components.certificate import LEAST_STATEMENTS, Acceptance, failing_families, limit_of
from components.checkpoint import Component, is_hub_id
from components.measures import Measures
from components.precision import describe_kernels
from records import escape_markdown

CURVES, RELIABILITY = "curves.png", "reliability.png"

_PIPELINES = {
    "sequence_classifier": "text-classification",
    "token_classifier": "token-classification",
    "seq2seq": "text2text-generation",
    "causal_lora": "text-generation",
}
_PROBABILITIES = {
    "unli": "values of p(hypothesis | premise)",
    "relation": "probabilities of entailment",
    "token_classifier": "probabilities to keep a word",
}
_PAIR = '[("Ada Lovelace was an English mathematician.", "She was a poet.")]'
_TAG = '[("Ada was a poet born in Paris.", "Ada Lovelace was born in London.")]'
# Module and class in `eval.models`, call, and comment of the usage example.
_USES = {
    "unli": ("encoder", "Unli", f"likelihood({_PAIR})", "p(hypothesis | premise)"),
    "relation": (
        "encoder",
        "Entailment",
        f"relations({_PAIR})",
        "entailment, neutral, contradiction",
    ),
    "token_classifier": ("encoder", "LssTagger", f"subsequences({_TAG})", "(claim, reference)"),
    "seq2seq": ("seq2seq", "LssSeq2Seq", f"subsequences({_TAG})", "(claim, reference)"),
    "causal_lora": ("causal", "CausalLM", 'sample(["Ada Lovelace"], n=2)', "two texts per topic"),
}
# An absolute path in an argument, which may be a list or a mapping.
_ABSOLUTE = re.compile(r"(?<![\w.~/:-])/[^\s,:=\[\]{}'\"]+")

Probabilities = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Training:
    """Contents of a card that are not in ``component.json``.

    ``weights`` describes the exported weights, and ``curves`` is ``metrics.csv``, if a step was
    taken. ``before`` and ``after`` are predicted and
    observed dev probabilities before and after calibration, if the component predicts any.
    ``certificate`` has the accepted shares of statements with known truth, if they were judged.
    """

    intended: str
    limits: str
    command: Sequence[str]
    monitor: str
    weights: str
    curves: Path | None
    measures: Measures
    before: Probabilities | None = None
    after: Probabilities | None = None
    certificate: Sequence[Acceptance] = ()


def write_card(folder: Path, final_folder: Path, component: Component, training: Training) -> str:
    """Draw the figures into ``folder``; return the card, named after ``final_folder``."""
    parts = [f"# {escape_markdown(final_folder.name)}", training.intended]
    if training.limits:
        parts += ["## Limits", training.limits]
    parts += [
        "## Use",
        _usage(component, final_folder),
        "## Training",
        _training(component, training),
    ]
    points = read_curves(training.curves, training.monitor) if training.curves else {}
    if points:
        draw_curves(points, training.monitor, folder / CURVES)
        parts.append(f"![Loss and {training.monitor} by step]({CURVES})")
    if training.certificate:
        parts += ["## Certificate", _certificate(training.certificate)]
    parts += [f"## Measures on the {component.metrics_split} split", _measures(training)]
    if training.after is not None and len(training.after[0]):
        stages = {"before": training.before} if _is_fitted(training) else {}
        draw_reliability(stages | {"after": training.after}, folder / RELIABILITY)
        parts += ["## Calibration", _calibration(component, training)]
        parts.append(f"![Observed against predicted probability]({RELIABILITY})")
    parts += ["## Data", _data(component)]
    return f"---\n{header(component)}\n---\n\n" + "\n\n".join(parts) + "\n"


def header(component: Component) -> str:
    """The card's YAML header, without fences, datasets (local files) and licence (unknown)."""
    base = component.base.get("id", "")
    style = [component.style] if component.style else []
    data = ModelCardData(
        library_name="peft" if component.architecture == "causal_lora" else "transformers",
        pipeline_tag=_PIPELINES.get(component.architecture),
        base_model=base if is_hub_id(base) else None,
        tags=["factuality", component.component, *style],
    )
    return data.to_yaml()


def _usage(component: Component, final_folder: Path) -> str:
    use = _USES.get(component.component) or _USES.get(component.architecture)
    if use is None:
        return "Pass the path of this folder to `python -m eval`."
    module, engine, call, comment = use
    return (
        f"```python\nfrom eval.models.{module} import {engine}\n\n"
        f'model = {engine}("{portable(str(final_folder))}")\n'
        f"# {comment}\nprint(model.{call})\n```"
    )


def _training(component: Component, training: Training) -> str:
    base = component.base.get("id", "")
    revision = component.base.get("revision")
    at_revision = f" at revision `{revision}`" if revision else ""
    command = shlex.join(portable(argument) for argument in training.command)
    sentences = (
        f"Base model: `{portable(base)}`{at_revision}. Seed {component.seed}. The weights are "
        f"{training.weights}.{_commit(component)} {describe_kernels()}"
    )
    return f"{sentences.rstrip()}\n\n```\npython -m train {command}\n```"


def _commit(component: Component) -> str:
    if not component.code.get("commit"):
        return ""
    changed = " with changes" if component.code["changed"] else ""
    return f" Code: commit `{component.code['commit']}`{changed}."


def portable(argument: str) -> str:
    """Shorten absolute paths in an argument: relative to the working directory, or the name."""

    def shorten(match: re.Match) -> str:
        path = Path(match.group())
        if path.is_relative_to(Path.cwd()):
            return str(path.relative_to(Path.cwd()))
        return path.name

    return _ABSOLUTE.sub(shorten, argument)


def _measures(training: Training) -> str:
    rows = [
        f"| {escape_markdown(name)} | {measure['value']:.4f} |"
        for name, measure in training.measures.items()
        if measure["value"] is not None
    ]
    return "\n".join(["| measure | value |", "|---|---|", *rows])


def _certificate(certificate: Sequence[Acceptance]) -> str:
    lines = ["| family | phrases | n | accepted | 95 % | limit |", "|---|---|---|---|---|---|"]
    for row in certificate:
        low, high = row.bounds
        cells = [escape_markdown(row.family), row.bank, row.n, f"{row.share:.2f}"]
        cells.append(f"{low:.2f} to {high:.2f}")
        lines.append(f"| {' | '.join(map(str, cells))} | {limit_of(row.family)} |")
    outside = failing_families(certificate)
    verdict = f"fails: {', '.join(outside)}" if outside else "passes"
    return (
        "Share of statements with known truth that the model takes for entailed. Training may use "
        "phrases of the bank *seen*, which do not count here. Every family needs "
        f"{LEAST_STATEMENTS} statements, and its 95 % bound decides. The certificate {verdict}.\n\n"
        + "\n".join(lines)
    )


def _calibration(component: Component, training: Training) -> str:
    stages = [("before", training.before), ("after", training.after)]
    parameters = f"temperature {component.temperature:.4f}, shift {component.shift:.4f}"
    if _is_fitted(training):
        fit_sentence = f"Fitted on the {component.metrics_split} split: {parameters}."
    else:
        fit_sentence, stages = "No temperature was fitted.", [("uncalibrated", training.after)]
        if component.component in _PROBABILITIES:
            fit_sentence += f" At least {LEAST_CALIBRATION_ROWS} dev rows are needed."
    kinds = _PROBABILITIES.get(component.component) or _PROBABILITIES.get(component.architecture)
    lines = ["| | ECE | Brier score |", "|---|---|---|"]
    for name, (predicted, observed) in stages:
        ece = expected_calibration_error(predicted, observed)
        lines.append(f"| {name} | {ece:.4f} | {np.mean((predicted - observed) ** 2):.4f} |")
    return (
        f"{fit_sentence} Computed over {len(training.after[0])} {kinds or 'probabilities'} of the "
        "same split, in at most 15 bins of equal size:\n\n" + "\n".join(lines)
    )


def _is_fitted(training: Training) -> bool:
    return not np.array_equal(training.before[0], training.after[0])


def _data(component: Component) -> str:
    rows = [
        f"| {d.split} | {escape_markdown(d.path)} | {d.rows} | `{d.sha256}` |"
        for d in component.data
    ]
    return "\n".join(["| split | file | rows | SHA-256 |", "|---|---|---|---|", *rows])


Points = dict[str, list[tuple[int, float]]]


def read_curves(path: Path, monitor: str) -> Points:
    """Read (step, value) points of the losses and the monitored measure from ``metrics.csv``."""
    points: Points = {}
    if not path.is_file():
        return points
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for name in ("train/loss", "dev/loss", monitor):
                if row.get(name) and math.isfinite(float(row[name])):
                    points.setdefault(name, []).append((int(row["step"]), float(row[name])))
    return points


def draw_curves(points: Points, monitor: str, path: Path) -> None:
    """Plot the losses (top) and the monitored measure (bottom) against the step."""
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, style in (("train/loss", "-"), ("dev/loss", "o-")):
        if name in points:
            above.plot(*zip(*points[name], strict=True), style, label=name, markersize=4)
    if above.lines:
        above.legend()
    above.set_ylabel("loss")
    below.plot(*zip(*points.get(monitor, [(0, math.nan)]), strict=True), "o-", color="C2", ms=4)
    below.set(xlabel="step", ylabel=monitor)
    save(figure, path)


def draw_reliability(stages: Mapping[str, Probabilities], path: Path) -> None:
    """Plot observed against predicted probability in equal-mass bins; one line per stage."""
    figure = Figure(figsize=(4.8, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="calibrated")
    for (name, (predicted, observed)), style in zip(stages.items(), ("o-", "s--"), strict=False):
        table = reliability_bins(predicted, observed)
        axes.plot(table[:, 0], table[:, 1], style, label=name, markersize=4)
    axes.set(xlabel="predicted probability", ylabel="observed", xlim=(0, 1), ylim=(0, 1))
    axes.set_aspect("equal")
    axes.legend()
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG without software metadata."""
    figure.savefig(path, dpi=100, metadata={"Software": None})
