"""One audit: the robustness experiment with a user's metric as its only column."""

import sys
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import yaml

from components.certificate import SEEN
from eval.audit.result import Audit, attacks_of, change_of, fault_of, orders_of
from eval.audit.targets import Guarded, Predictions, Repeats, load
from eval.audit.texts import LADDERS, K, probe_files, text_files, with_pages
from eval.defences import Defence, read_pipeline
from eval.experiments.robustness.robustness import WORD_TEST, Robustness
from eval.experiments.robustness.robustness_cells import Text, by_kind
from eval.experiments.robustness.robustness_example import example_of
from eval.experiments.robustness.robustness_grid import NONE
from eval.experiments.robustness.robustness_texts import draw_topics
from eval.experiments.robustness.robustness_verdicts import LEAST_UNITS, HonestLadders, usable
from eval.metrics.text_metric import TextMetric, blinded
from eval.report.render import write_page
from eval.report.terminal import format_cost
from eval.run.run import LimitReached
from records import Document, ResultFile, UserError, write_text

TRIAL = 20  # texts after which the cost is printed, and texts that are scored twice
PROBES = 72  # per family; a certificate needs 60
CONFIGURED = "configured"
ROBUST = "configs/eval/ready/robust.yaml"


@dataclass(eq=False)
class AuditedMetric(Robustness):
    """The robustness experiment on the texts of an audit."""

    has_labels: ClassVar[bool] = False
    max_texts: int | None = None

    def documents(self) -> list[Document]:
        return self._drawn

    @cached_property
    def _drawn(self) -> list[Document]:
        """Texts with their pages, on as many topics as ``held`` needs or ``max_texts`` allows."""
        texts = super().documents()
        most = LEAST_UNITS
        if self.max_texts is not None:
            most = max(2, self.max_texts * len({d.topic for d in texts}) // len(texts))
        drawn = draw_topics(texts, LADDERS[0], None, most, self.seed)
        return list(with_pages([d for d in texts if d.topic in drawn]))

    def _probes(self) -> list[Document]:
        counts: Counter[tuple[str, str]] = Counter()
        drawn = []
        for probe in super()._probes():
            family = (probe.model_extra["probe"], probe.model_extra["bank"])
            counts[family] += 1
            if SEEN not in family and counts[family] <= PROBES:
                drawn.append(probe)
        return drawn


def plan(**options: object) -> AuditedMetric:
    """The experiment of an audit; further options are fields of ``AuditedMetric``."""
    return AuditedMetric(text_files(), honest=list(LADDERS), by=[], **options)


def audit(
    target: str | TextMetric | object,
    max_texts: int | None = None,
    output: str | None = None,
    verdict: str = "grouped",
    repeats: Repeats | None = None,
) -> Audit:
    """Attack a metric or reward, and say whether worse texts score higher.

    Writes ``audit.json``, ``report.html`` and the files of the robustness experiment. A repeated
    audit replaces them, and an interrupted audit of the same file resumes.

    Args:
        target: ``FILE.py`` with a TextMetric or ``score``, ``FILE.py:NAME``, a configuration of
            ``eval score``, or scores (JSONL with ``id`` and ``score``); a function, a list of
            rewards, or a TextMetric.
        max_texts: draw topics for about so many texts; by default 60 topics are drawn.
        output: folder; by default one below ``runs/audit``.
        verdict: the scored verdict of a configuration that has several.
        repeats: ``mean`` averages several scores of a text in a file; null refuses them.
    """
    name = target if isinstance(target, str) else name_of(target)
    config: dict[str, object] = {"target": name}
    metric, column = None, NONE
    if name.endswith(".yaml"):
        options, column = _pipeline_options(name, verdict)
        config["pipeline"] = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
    else:
        metric = load(target, repeats) if isinstance(target, str) else Guarded(name, target)
        options = {"text_metrics": {name: metric}}
    experiment = plan(max_texts=max_texts, **options)
    if isinstance(metric, Predictions):
        metric.check([blinded(document).id for document in experiment.documents()])
    config |= {"texts": experiment.texts, "max_texts": max_texts, "file": name.partition(":")[0]}
    folder = Path(output or Path("runs/audit", Path(name).name.replace(":", ".")))
    file = _run(experiment, folder, config, can_resume=isinstance(target, str))
    result = _result(experiment, file, column, write_page(experiment.page, file, folder))
    if isinstance(metric, Guarded):
        result.errors = dict(metric.errors)
        result.unstable = _change(metric, experiment.cells[name, NONE])
    write_text(folder / "audit.json", result.model_dump_json(indent=2) + "\n")
    return result


def _pipeline_options(path: str, verdict: str) -> tuple[dict[str, object], str]:
    """Options of the experiment for a configuration of ``eval score``, and the audited column."""
    pipeline = read_pipeline(path)
    bare = copy(pipeline)
    bare.select, column, defences = None, NONE, {}
    if pipeline.select is not None:
        column = CONFIGURED
        defences[column] = Defence(select=pipeline.select)
    defences["robust"] = Defence(config=ROBUST, score="f1_at_k", k=K)
    options = {"metrics": {path: bare}, "defences": defences, "verdicts": {path: verdict}}
    return options | {"probes": probe_files()}, column


def name_of(target: object) -> str:
    """The name of a function, of a list of functions, or of a metric's class."""
    if isinstance(target, list | tuple):
        return " + ".join(map(name_of, target))
    return getattr(target, "__name__", type(target).__name__)


def _run(experiment: AuditedMetric, folder: Path, config: dict, can_resume: bool) -> ResultFile:
    # Finished results are measured again: the audit reads the cells.
    unfinished = [] if can_resume else folder.glob(".*.partial.jsonl")
    for path in (folder / "results.json", *unfinished):
        path.unlink(missing_ok=True)
    try:
        return experiment.run(folder, config, limit=TRIAL, overwrite=True)
    except LimitReached as reached:
        lines = format_cost(reached.cost, reached.total)
        print(f"after {TRIAL} texts: {'; '.join(lines)}", file=sys.stderr)
        return experiment.run(folder, config, overwrite=True)


def _result(experiment: AuditedMetric, file: ResultFile, column: str, page: Path) -> Audit:
    metrics = [m for m, name in experiment.cells if name == column and m != WORD_TEST]
    if len(metrics) != 1:
        raise UserError(f"verdict: expected one of {', '.join(metrics)}")
    place = (metrics[0], column)
    texts, attacks = experiment.cells[place], attacks_of(file, place)
    scores = np.array([text.value for text in texts])
    fault = fault_of(scores)
    kinds = by_kind(texts)
    ladders = HonestLadders({kind: kinds[kind] for kind in LADDERS}, experiment.seed)
    return Audit(
        target=metrics[0],
        verdict="unusable" if fault else attacks[0].verdict,
        unusable=fault,
        void=ladders.void_reason,
        unstable=None,
        texts=len(texts),
        topics=len({text.document.topic for text in texts}),
        failed=int(np.isnan(scores).sum()),
        errors={},
        order=orders_of(file, place),
        attacks=attacks,
        control_order=orders_of(file, (WORD_TEST, NONE)),
        control_gamed=sum(a.verdict == "gamed" for a in attacks_of(file, (WORD_TEST, NONE))),
        example=example_of(attacks[0].kind, texts, ladders) if attacks else None,
        defences={
            name: attacks_of(file, (metrics[0], name))
            for name in (NONE, *experiment.members)
            if name != column
        },
        report=str(page),
        config_hash=file.provenance["config_hash"],
    )


def _change(metric: Guarded, texts: Sequence[Text]) -> str | None:
    """How the scores of some texts change when they are scored again."""
    scored_texts = usable(texts)
    if not scored_texts:
        return None
    places = np.linspace(0, len(scored_texts) - 1, min(TRIAL, len(scored_texts))).astype(int)
    drawn = [scored_texts[place] for place in places]
    repeated_scores = metric.score([text.document for text in drawn])
    before = np.array([text.value for text in drawn])
    after = np.array([np.nan if score is None else score for score in repeated_scores])
    return change_of(before, after, float(np.ptp([text.value for text in scored_texts])))
