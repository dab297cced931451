"""Can a metric be gamed, and does a defence hold? After Core's experiment (2407.03572, section 5).

Attacked texts and ladders of honest texts, both with known gold scores, are scored by every metric
with every defence. Texts are made by ``data_builders`` (``ladders``, ``attacks``, ``probes``,
``generations``, ``adversarial``, ``corruption``) or come from any other source.
"""

import math
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from jsonargparse.typing import NonNegativeInt

from cli.printable import printable
from components.gold import add_label_gold
from eval.decompose.sentences import Sentences
from eval.defences import Defence, PipelineScore, combine
from eval.experiments.experiment import Experiment, Half, Outcome
from eval.experiments.robustness.robustness_bank import (
    BankAttack,
    BankText,
    BankTopic,
    bank_curve_values,
    search,
)
from eval.experiments.robustness.robustness_cells import ALL, By, Cells, Value, cells_of, draw_of
from eval.experiments.robustness.robustness_certificate import (
    PROBE,
    certificate_values,
    passed,
)
from eval.experiments.robustness.robustness_correlations import agreement, truth
from eval.experiments.robustness.robustness_curve import curve_values
from eval.experiments.robustness.robustness_draws import redraw
from eval.experiments.robustness.robustness_fresh import known_files
from eval.experiments.robustness.robustness_grid import NONE, CurveRow, Grid, TextScores
from eval.experiments.robustness.robustness_page import LABELS, PAGE
from eval.experiments.robustness.robustness_texts import (
    draw_topics,
    read_curve,
    read_texts,
    report_incomplete_curves,
    report_skipped_texts,
    report_unpaired,
    with_distinct_ids,
)
from eval.experiments.robustness.robustness_values import (
    duplicate_columns,
    honest_values,
    ladder_values,
    score_values,
)
from eval.experiments.robustness.robustness_verdicts import (
    NoEvidence,
    attack_values,
    attacks_of,
    ladders_of,
    no_evidence,
)
from eval.metrics.text_metric import Labels, TextMetric
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.verify.word_test import WordTest
from records import Document, UserError, read_records, sha256_text

WORD_TEST = "word test"


@dataclass(eq=False)
class Robustness(Experiment):
    """The experiment.

    Args:
        texts: kind of text to its files (rows of other kinds are skipped), or files whose rows have
            a ``kind``. A row's ``gold`` says how good the text is; builders write it.
        metrics: name to a pipeline without a selector; null removes one of a configuration.
        text_metrics: name to a metric that scores whole texts; defences do not apply to it.
            ``labels``, the precision by the texts' own labels, is always included, and so is
            ``word test``, a control that reads words without their order.
        defences: name to a change of the pipelines; ``none`` is always included.
        stacks: name to defences that are applied together.
        leave_one_out: stacks that are also scored without each of their defences.
        verdicts: metric to the name of the verdict that it scores, for example ``grouped`` of
            D-FActScore; by default every verdict is a metric.
        controls: metrics and defences that should show nothing, such as untrained components; they
            are not part of the family that verdicts are corrected for.
        fresh: files of attacks from outside, scored like ``texts``. The page says which of them
            could have been known when the stack was made (``robustness_fresh.py``).
        curves: name to files of corrupted texts and their clean twins (``data_builders
            corruption``): ``clean`` names a row's twin, ``k`` the number of appended sentences.
        probes: files of statements with known truth (``data_builders probes``), for the certificate
            of each column; without it no attack is ``held``.
        bank: an attacker that composes texts from statements with known credit, per column.
        honest: kinds of the honest texts. The first is the ladder that attacks are compared with;
            all say what a score means (``robustness_verdicts.py``).
        per_topic: maximum number of texts per kind, generator and topic (of a ladder, and rung); 0
            for all.
        topics: maximum number of topics, drawn by the seed from those of the honest texts, and as
            many of attacks that share fewer than two of them; 0 for all.
        half: use only one half of the topics, split by seed and name: choose settings on
            ``tuning``, report on ``test``.
        by: also report results by these fields; a group that is a single topic is skipped.
            ``generator+bin`` crosses generators with frequencies.
        training_logs: name to folder of a training run, for training curves on the page.
        domain: domain of the texts, named in the results.
        seed: seed of the draws, the bootstrap and the tests.

    Attributes:
        cells: the scored texts of each column, after :meth:`measure`.
    """

    name = "robustness"
    page = PAGE
    has_labels: ClassVar[bool] = True

    texts: dict[str, list[str]] | list[str]
    metrics: dict[str, Pipeline | None] = field(default_factory=dict)
    text_metrics: dict[str, TextMetric] = field(default_factory=dict)
    defences: dict[str, Defence] = field(default_factory=dict)
    stacks: dict[str, list[str]] = field(default_factory=dict)
    leave_one_out: list[str] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)
    controls: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    curves: dict[str, list[str]] = field(default_factory=dict)
    probes: list[str] = field(default_factory=list)
    bank: BankAttack | None = None
    honest: list[str] = field(default_factory=lambda: ["normal"])
    per_topic: NonNegativeInt = 0
    topics: NonNegativeInt = 0
    half: Half | None = None
    by: list[By] = field(default_factory=lambda: ["generator", "bin", "group"])
    training_logs: dict[str, str] = field(default_factory=dict)
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        self.metrics = {name: metric for name, metric in self.metrics.items() if metric is not None}
        if not self.texts or not self.honest or not {**self.metrics, **self.text_metrics}:
            raise UserError("expected at least one entry in `texts` and `honest`, and one metric")
        if WORD_TEST not in self.metrics:
            retrieve = next((metric.retrieve for metric in self.metrics.values()), None)
            self.metrics[WORD_TEST] = Pipeline(Sentences(), [WordTest()], retrieve)
            self.controls = [*self.controls, WORD_TEST]
        for option, names in (("controls", self.controls), ("verdicts", self.verdicts)):
            choices = {*self.metrics, *self.text_metrics}
            choices |= {*self.members} if option == "controls" else set()
            if unknown := sorted({*names} - choices):
                raise UserError(
                    f"{option}: {unknown[0]!r} is not one of {', '.join(sorted(choices))}"
                )
        under = [] if self.bank is None else self.bank.under
        if unknown := sorted({*under} - {NONE, *self.members}):
            raise UserError(f"bank.under: {unknown[0]!r} is not a defence or {NONE!r}")
        if shared := sorted({*self.metrics} & {*self.text_metrics, LABELS}):
            raise UserError(f"metrics: {shared[0]!r} is also a text metric; rename one of them")
        self._skipped: dict[str, None] = {}

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """Name of each column but ``none`` to its defences."""
        return combine(self.defences, self.stacks, self.leave_one_out)

    @property
    def _selectors(self) -> set[str]:
        """``none`` and the defences that select claims and do nothing else."""
        only = {"select", "select_for"}
        return {NONE} | {n for n, d in self.defences.items() if {*d.settings()} <= only}

    def grid(self, config: dict | None = None) -> Grid:
        """The metrics with all defences.

        Args:
            config: the experiment's options; stages with equal options run once.
        """
        text_metrics = {LABELS: Labels()} if self.has_labels else {}
        text_metrics |= self.text_metrics
        return Grid(self.metrics, self.defences, self.members, text_metrics, config)

    def measure(self, run: Run) -> Outcome:
        """Score all texts by all metrics with all defences.

        Writes next to the results ``texts.jsonl``: texts with claims, verdicts and selections;
        ``draws.jsonl``, the same for further draws of attacks, and ``curves.jsonl`` for curves.
        """
        config = {name: run.config.get(name) for name in ("metrics", "defences")}
        score = partial(self._score, config)
        documents, curves = self._texts()
        self._skip(report_unpaired(documents, self.honest))
        self._training_curves(run.output)
        # In an order that says nothing of a text's kind
        shuffled = sorted(documents, key=lambda d: sha256_text(f"{self.seed}:{d.id}"))
        scored = {row.document.id: row for row in run.process("texts", score, shuffled, TextScores)}
        rows = [scored[document.id] for document in documents]
        grid = self.grid(config)
        defences, same = grid.defences, grid.same_columns()
        searched, bank_values = self._bank(run, grid, documents)
        if searched:
            rows += run.process("bank", score, searched, TextScores)
        single, draws = self._with_draws(run, score, rows)
        self.cells = cells = cells_of([*single, *draws], defences, self.verdicts, same)
        of_single = cells_of(single, defences, self.verdicts, same)
        values = [
            *score_values(of_single, defences, self._strata(documents), self.seed),
            *honest_values(cells, self.honest[0]),
            *agreement(cells, self.honest[0], self._selectors),
            *truth(single, self.verdicts, self.seed),
            *bank_values,
        ]
        probed: list[TextScores] = []
        if probes := self._probes():
            probed = run.process("probes", score, probes, TextScores)
        certificates = list(certificate_values(cells_of(probed, defences, self.verdicts, same)))
        equal = duplicate_columns(cells)
        verdicts, without_evidence = self._verdicts(cells, certificates, equal)
        values += [*certificates, *verdicts]
        curve_rows: list[CurveRow] = []
        for name, texts in curves.items():
            scored = run.process(f"curve {name}", score, texts, TextScores)
            of_curve = cells_of(scored, defences, self.verdicts)
            values += curve_values(name, of_curve, defences, self.seed)
            curve_rows += [CurveRow(curve=name, **dict(row)) for row in scored]
        provenance = {
            "skipped": list(self._skipped),
            "controls": self.controls,
            "honest": self.honest,
            "families": _families([row.document for row in rows]),
            "stacks": list(self.stacks),
            "same": {", ".join(place): ", ".join(first) for place, first in same.items()},
            "equal": {", ".join(place): name for place, name in equal.items()},
            "gold_sources": _sources(documents),
            "inert": {m: sorted(kinds) for m, kinds in without_evidence.inert.items()},
            "controlled": sorted(without_evidence.controlled),
            "fresh": self.fresh,
            "known": known_files(self._fresh),
        }
        extra = {"draws.jsonl": draws, "curves.jsonl": curve_rows, "probes.jsonl": probed}
        files = {"texts.jsonl": single} | {name: more for name, more in extra.items() if more}
        return Outcome(values, files, provenance)

    def _with_draws(
        self, run: Run, score: Callable, rows: Sequence[TextScores]
    ) -> tuple[list[TextScores], list[TextScores]]:
        """The single texts, and all further draws of attacks."""
        drawn = redraw(rows, self.seed)
        scored = [*rows, *(run.process("draws", score, drawn, TextScores) if drawn else ())]
        single = [row for row in scored if not draw_of(row.document)]
        return single, [row for row in scored if draw_of(row.document)]

    def _verdicts(
        self,
        cells: Cells,
        certificates: Sequence[Value],
        equal: Mapping[tuple[str, str], str],
    ) -> tuple[list[Value], NoEvidence]:
        """The values of attacks, and the attacks that no column can hold."""
        values: list[Value] = []
        ladders = ladders_of(cells, self.honest, self.seed)
        if not any(ladder.has_rungs for ladder in ladders.values()):
            self._skip(
                [
                    f"verdicts: the texts of kind {self.honest[0]!r} have fewer than three gold "
                    "scores per topic, so they are no ladder (`data_builders ladders` writes one)"
                ]
            )
        else:
            values += ladder_values(ladders)
        attacks = attacks_of(cells, ladders)
        columns = [place for place in cells if place not in equal and not self._is_control(place)]
        number = len({attack.kind for attack in attacks if attack.outcomes}) * len(columns)
        # A column that replaces the control's verifiers is no control.
        distinct = [attack for attack in attacks if attack.column not in equal]
        without_evidence = no_evidence(distinct, WORD_TEST, number)
        values += attack_values(attacks, passed(certificates), number, without_evidence)
        return values, without_evidence

    def _is_control(self, place: tuple[str, str]) -> bool:
        metric, column = place
        return not {metric.partition(".")[0], metric, column}.isdisjoint(self.controls)

    def _probes(self) -> list[Document]:
        probes = [d for path in self.probes for d in read_records(path, Document)]
        wrong = [d for d in probes if d.kind != PROBE or "probe" not in (d.model_extra or {})]
        if wrong:
            raise UserError(
                f"probes: {wrong[0].id}: expected rows of `data_builders probes`, with "
                f"`kind: {PROBE}` and the family of statements in `probe`"
            )
        return probes

    def _bank(
        self, run: Run, grid: Grid, documents: Sequence[Document]
    ) -> tuple[list[Document], list[Value]]:
        """The best texts of the bank attacker under each column, and the course of its search."""
        texts: list[Document] = []
        values: list[Value] = []
        if self.bank is None:
            return texts, values
        honest = [d for d in documents if d.kind == self.honest[0]]
        topics = self.bank.topics({document.topic for document in honest})
        same = grid.same_columns()
        for metric in self.bank.metrics or [m for m in self.metrics if m != WORD_TEST]:
            for column in self.bank.under:
                if (metric, column) in same:
                    continue
                kind = f"bank against {metric}, {column}"
                work = partial(self._search, metric, column, kind)
                best = run.process(kind, work, topics, BankText, chunk=max(1, len(topics)))
                texts += [row.document for row in best if row.document is not None]
                values += bank_curve_values((metric, column), kind, [row.curve for row in best])
        return texts, values

    def _search(
        self, metric: str, column: str, kind: str, topics: Sequence[BankTopic]
    ) -> list[BankText]:
        defences = {name: self.defences[name] for name in self.members.get(column, ())}
        if metric in self.verdicts and not any(d.verdict for d in defences.values()):
            defences[self.verdicts[metric]] = Defence(verdict=self.verdicts[metric])
        judge = PipelineScore(self.metrics[metric], defences, list(defences))

        def score(documents: Sequence[Document]) -> list[float]:
            return [math.nan if value is None else value for value in judge.score(documents)]

        return search(topics, score, self.bank, kind, self.seed)

    def _score(self, config: dict, documents: Sequence[Document]) -> list[TextScores]:
        return self.grid(config)(documents)

    def _strata(self, documents: Sequence[Document]) -> list[By]:
        grouped = [d for d in documents if d.group is not None]
        is_single = len({d.group for d in grouped}) >= len({d.topic for d in grouped})
        return [name for name in self.by if not (is_single and name == "group")]

    def _texts(self) -> tuple[list[Document], dict[str, list[Document]]]:
        documents = self.documents()
        drawn = {d.topic for d in documents} if self.half is not None or self.topics else None
        curves = {name: read_curve(name, files, drawn) for name, files in self.curves.items()}
        for name, texts in curves.items():
            self._skip(report_incomplete_curves(name, texts))
        return documents, curves

    def _skip(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line not in self._skipped:
                print(printable(f"skipped {line}"), file=sys.stderr)
            self._skipped[line] = None

    def documents(self) -> list[Document]:
        """The texts to score, each with a kind and a unique id."""
        files = [*self.texts.items()] if isinstance(self.texts, dict) else [(None, self.texts)]
        read = []
        for kind, paths in [*files, (None, self.fresh)]:
            for path in paths:
                of_file, skipped = read_texts(path, kind, len(paths))
                self._skip([skipped] if skipped else [])
                read.append((path, of_file))
        self._fresh = {path: of_file for path, of_file in read if path in self.fresh}
        texts = with_distinct_ids(read)
        texts = add_label_gold(texts, "labels")
        for name in ("generator", "group", "bin"):
            if ALL in {getattr(document, name) for document in texts}:
                raise UserError(f"texts: {name}: {ALL!r} means all texts in the results; rename it")
        topics = draw_topics(texts, self.honest[0], self.half, self.topics, self.seed)
        counts: Counter[tuple] = Counter()
        kept = []
        for document in texts:
            rung = document.gold.f1 if document.gold and document.kind in self.honest else None
            cell = (document.kind, document.generator, document.topic, rung)
            counts[cell] += 1
            is_extra = self.per_topic and counts[cell] > self.per_topic
            if document.topic in topics and not is_extra:
                kept.append(document)
        if not any(document.kind == self.honest[0] for document in kept):
            kinds = ", ".join(sorted({d.kind for d in kept})) or "none"
            raise UserError(
                f"honest: no text of kind {self.honest[0]!r} to compare with; kinds: {kinds}"
            )
        drawn = topics if self.half is not None or self.topics else None
        self._skip(report_skipped_texts(texts, kept, self.honest[0], drawn))
        return kept

    def _training_curves(self, output: Path) -> None:
        (output / "training").mkdir(parents=True, exist_ok=True)
        for name, folder in self.training_logs.items():
            logs = sorted(Path(folder).rglob("metrics.csv"), key=lambda path: path.stat().st_mtime)
            if logs:
                shutil.copyfile(logs[-1], output / "training" / f"{name}.csv")
            else:
                self._skip([f"training curve {name}: {folder} has no metrics.csv"])


def _sources(documents: Sequence[Document]) -> dict[str, str]:
    """Kind of text to the sources of its gold scores."""
    sources: dict[str, set[str]] = {}
    for document in documents:
        name = document.gold.source if document.gold else "none"
        sources.setdefault(document.kind or "normal", set()).add(name)
    return {kind: ", ".join(sorted(names)) for kind, names in sources.items()}


def _families(documents: Sequence[Document]) -> dict[str, str]:
    """Kind of attacked text to its family; builders write it."""
    families = {d.kind or "normal": (d.model_extra or {}).get("family") for d in documents}
    return {kind: str(family) for kind, family in families.items() if family}
