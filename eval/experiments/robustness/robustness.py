"""Can a metric be gamed, and does a defence hold? Core's experiment (2407.03572, section 5).

A grid: every metric (a pipeline) on every text, without and with every defence (a selector). Texts
are honest or adversarial by their ``kind``; curves are texts with false facts and more and more
adversarial sentences behind them, beside their clean twins. Nothing is written here: the texts come
from ``data_builders`` (``generations``, ``adversarial``, ``corruption``) or from anywhere else.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from jsonargparse.typing import NonNegativeInt, PositiveInt
from pydantic import BaseModel, ConfigDict, Field

from cli.printable import printable
from eval.experiments.experiment import Experiment, Found, Half, Plan, at_least_one
from eval.experiments.robustness.robustness_correlations import agreement, truth
from eval.experiments.robustness.robustness_grid import NONE, CurveRow, Grid, Row
from eval.experiments.robustness.robustness_page import PAGE
from eval.experiments.robustness.robustness_texts import (
    draw_topics,
    kinds_that_do_not_count,
    read_curve,
    read_texts,
    twin_of,
    twins_that_do_not_count,
    with_distinct_ids,
)
from eval.experiments.robustness.robustness_values import (
    ALL,
    By,
    cells_of,
    costs,
    curve,
    gains,
    of_texts,
)
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.stages import Selector
from records import Document, UserError

Share = Annotated[float, Field(ge=0, le=1)]


class Target(BaseModel):
    """A bound on the mean share of subclaims that a defence keeps of one kind of text."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    selection: str = "core"
    at_most: Share = 1.0
    at_least: Share = 0.0


@dataclass(eq=False)
class Robustness(Experiment):
    """The experiment.

    Args:
        metrics: name to a pipeline without a selector; a metric is the whole of it.
        texts: kind of text to the files of it, whose rows of other kinds are left out; or files
            whose rows say their ``kind``.
        defences: name to a selector; ``none`` is always there.
        curves: name to files of corrupted texts and their clean twins, as ``data_builders
            corruption`` writes them: of these rows ``clean`` names the twin and ``k`` says how many
            sentences are appended.
        against: kind of the honest texts, which the others are compared with.
        rising: kinds that are truly better than the honest texts, such as ``corrected`` ones of
            ``data_builders attacks``: a metric should move with them, and is not gamed by them.
        controls: metrics and defences with untrained components, shown as such: a table that they
            pass as well shows nothing.
        per_topic: at most so many texts of a kind and generator a topic, the first ones; 0 for all.
        topics: at most so many topics, drawn by the seed among those that honest texts have, and as
            many of attacks that are on less than two of these; those that most kinds and generators
            have come first; 0 for all.
        half: only one half of the topics, which seed and name put them in: settings chosen on
            ``tuning``, here or by ``experiment core_settings``, are reported on ``test``.
        by: what results are also given by, one value of it at a time; not by groups of which each
            topic has its own.
        k: score the texts also by F1@K (SAFE, 2403.18802, section 5), each metric a second time:
            K is how many supported subclaims a full answer has. Precision does not see that a text
            which repeats one fact says little; F1@K of what a defence keeps does.
        targets: bounds on the kept share, shown in the report.
        training_logs: name to folder of a training run, for the report's training curves.
        domain: named in the results.
        seed: seed of the draws and of the bootstrap.
    """

    name = "robustness"
    page = PAGE

    metrics: dict[str, Pipeline]
    texts: dict[str, list[str]] | list[str]
    defences: dict[str, Selector] = field(default_factory=dict)
    curves: dict[str, list[str]] = field(default_factory=dict)
    against: str = "normal"
    rising: list[str] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    per_topic: NonNegativeInt = 0
    topics: NonNegativeInt = 0
    half: Half | None = None
    by: list[By] = field(default_factory=lambda: ["generator", "bin", "group"])
    k: PositiveInt | None = None
    targets: list[Target] = field(default_factory=list)
    training_logs: dict[str, str] = field(default_factory=dict)
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        at_least_one(metrics=self.metrics, texts=self.texts)
        unknown = sorted({*self.controls} - {*self.metrics, *self.defences})
        if unknown:
            raise UserError(f"controls: {unknown[0]!r} is neither a metric nor a defence")
        self._skipped: dict[str, None] = {}

    def measure(self, run: Run) -> Found:
        """Score all texts under all metrics and defences.

        Beside the results ``texts.jsonl``, every text with its claims, verdicts and selections, and
        the same of the curves' texts in ``curves.jsonl``.
        """
        score = partial(self._score, run.config.get("metrics"))
        documents, curves = self._texts()
        self._training_curves(run.output)
        rows = run.process("texts", score, documents, Row)
        cells = cells_of(rows, self.k)
        # Where each topic has a group of its own, groups keep splits apart and say no more.
        single = len({d.group for d in documents} - {None}) >= len(
            {d.topic for d in documents if d.group is not None}
        )
        by: list[By] = [field for field in self.by if not (single and field == "group")]
        values = [
            *of_texts(cells, by, self.seed),
            *gains(cells, self.against, self.rising, by, self.seed),
            *costs(cells, self.against, by, self.seed),
            *agreement(cells, self.against),
            *truth(rows, self.seed),
        ]
        of_curves: list[CurveRow] = []
        for name, texts in curves.items():
            curve_rows = run.process(f"curve {name}", score, texts, Row)
            values += curve(name, cells_of(curve_rows, self.k), self.seed)
            of_curves += [CurveRow(curve=name, **dict(row)) for row in curve_rows]
        provenance = {
            "targets": [target.model_dump() for target in self.targets],
            "skipped": list(self._skipped),
            "controls": self.controls,
            "against": self.against,
        }
        files = {"texts.jsonl": rows, **({"curves.jsonl": of_curves} if of_curves else {})}
        return Found(values, files, provenance)

    def _score(self, config: dict | None, documents: Sequence[Document]) -> list[Row]:
        return Grid(self.metrics, self.defences, config)(documents)

    def plan(self, run: Run) -> Plan:
        grid = Grid(self.metrics, self.defences, run.config.get("metrics"))
        documents, curves = self._texts()
        lines = [*self._planned_texts(documents, curves), *self._planned_stages()]
        done, todo = 0, []
        for part, texts in (("texts", documents), *((f"curve {n}", t) for n, t in curves.items())):
            known = run.finished_ids(part)
            todo += [document for document in texts if document.id not in known]
            done += sum(document.id in known for document in texts)
        cut = ", by a run that was cut" * bool(done)
        lines.append(f"done        {done:,} of {done + len(todo):,} texts{cut}")
        return Plan(lines, self.metrics, self.defences, todo, grid.key)

    def _planned_texts(
        self, documents: Sequence[Document], curves: dict[str, list[Document]]
    ) -> Iterator[str]:
        cells: dict[tuple, list[Document]] = {}
        for document in documents:
            cells.setdefault((document.kind, document.generator), []).append(document)
        for (kind, generator), texts in cells.items():
            topics = len({document.topic for document in texts})
            claims = sum(document.claims is not None for document in texts)
            bins = Counter(document.bin for document in texts if document.bin is not None)
            counts = "".join(f"; {name} {count:,}" for name, count in sorted(bins.items()))
            yield (
                f"texts       {kind:16} {generator or '':20} {len(texts):6,} on {topics:,} topics, "
                f"{claims:,} with claims{counts}"
            )
        for name, texts in curves.items():
            steps = sorted({k for _, k in map(twin_of, texts) if k is not None})
            yield f"curve       {name:16} {len(texts):,} texts, k = {', '.join(map(str, steps))}"

    def _planned_stages(self) -> Iterator[str]:
        for name, pipeline in self.metrics.items():
            stages = (pipeline.decompose, pipeline.revise, pipeline.retrieve, *pipeline.verify)
            yield self._planned("metric", name, *(stage for stage in stages if stage is not None))
        yield f"defence     {NONE}"
        for name, select in self.defences.items():
            yield self._planned("defence", name, select)

    def _planned(self, what: str, name: str, *stages: object) -> str:
        names = " → ".join(getattr(stage, "__name__", type(stage).__name__) for stage in stages)
        return f"{what:11} {name:16} {names}{', a control' * (name in self.controls)}"

    def _texts(self) -> tuple[list[Document], dict[str, list[Document]]]:
        documents = self.documents()
        drawn = {d.topic for d in documents} if self.half is not None or self.topics else None
        curves = {name: read_curve(name, files, drawn) for name, files in self.curves.items()}
        for name, texts in curves.items():
            self._skip(twins_that_do_not_count(name, texts))
        kinds = {document.kind for document in documents}
        self._skip(
            f"rising: the run has no kind {kind!r}" for kind in self.rising if kind not in kinds
        )
        for target in self.targets:
            for what, names in (("kind", kinds), ("selection", self.defences)):
                if (name := getattr(target, what)) not in names:
                    self._skip([f"targets: {target.kind}: the run has no {what} {name!r}"])
        return documents, curves

    def _skip(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line not in self._skipped:
                print(printable(line), file=sys.stderr)
            self._skipped[line] = None

    def documents(self) -> list[Document]:
        """The texts that are scored, each with a kind and an id of its own."""
        files = self.texts.items() if isinstance(self.texts, dict) else [(None, self.texts)]
        read = []
        for kind, paths in files:
            for path in paths:
                texts, skipped = read_texts(path, kind, len(paths))
                self._skip([skipped] if skipped else [])
                read.append((path, texts))
        every = with_distinct_ids(read)
        for name in ("generator", "group", "bin"):
            if ALL in {getattr(document, name) for document in every}:
                raise UserError(f"texts: {name}: {ALL!r} means all texts in the results; rename it")
        topics = draw_topics(every, self.against, self.half, self.topics, self.seed)
        seen: Counter[tuple] = Counter()
        kept = []
        for document in every:
            cell = (document.kind, document.generator, document.topic)
            seen[cell] += 1
            if document.topic in topics and (not self.per_topic or seen[cell] <= self.per_topic):
                kept.append(document)
        if not any(document.kind == self.against for document in kept):
            raise UserError(
                f"against: no text of kind {self.against!r} to compare with; the texts have "
                f"{', '.join(sorted({d.kind for d in kept})) or 'none'}"
            )
        drawn = topics if self.half is not None or self.topics else None
        self._skip(kinds_that_do_not_count(every, kept, self.against, drawn))
        return kept

    def _training_curves(self, output: Path) -> None:
        (output / "training").mkdir(parents=True, exist_ok=True)
        for name, folder in self.training_logs.items():
            logs = sorted(Path(folder).rglob("metrics.csv"), key=lambda path: path.stat().st_mtime)
            if logs:
                shutil.copyfile(logs[-1], output / "training" / f"{name}.csv")
            else:
                self._skip([f"training_logs: {name}: {folder} has no metrics.csv"])
