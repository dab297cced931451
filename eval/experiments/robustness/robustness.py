"""Can a metric be gamed, and does a defence hold? Core's experiment (2407.03572, section 5).

A grid: every metric (a pipeline) on every text, without and with every defence (a selector). Texts
are honest or adversarial by their ``kind``; curves are texts with false facts and more and more
adversarial sentences behind them, beside their clean twins. Nothing is written here: the texts come
from ``data_builders`` (``generations``, ``adversarial``, ``corruption``) or from anywhere else.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from jsonargparse.typing import PositiveInt
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from cli.printable import printable
from eval.experiments.experiment import (
    Experiment,
    Found,
    Half,
    Plan,
    at_least_one,
    half_of,
    natural,
)
from eval.experiments.robustness import left_out
from eval.experiments.robustness.correlations import agreement, truth
from eval.experiments.robustness.grid import CurveRow, Grid, Row
from eval.experiments.robustness.page import PAGE
from eval.experiments.robustness.plan import curves_told, grid_told, texts_told
from eval.experiments.robustness.texts import CURVES
from eval.experiments.robustness.values import (
    ALL,
    By,
    cells_of,
    costs,
    curve,
    gains,
    of_texts,
    twin_of,
    with_k,
)
from eval.pipeline import Pipeline
from eval.run.run import Run, check_ids
from eval.stages import Selector
from records import BadInput, Document, UserError, first_fault, read_records

EVERY_FIELD: list[By] = ["generator", "bin", "group"]


class Target(BaseModel):
    """A bound on the mean share of subclaims that a defence keeps of one kind of text."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    metric: Literal["kept_share"] = "kept_share"
    selection: str = "core"
    at_most: float | None = None
    at_least: float | None = None


class _Place(BaseModel):
    """Where a corrupted text is on its curve; a table's column may have ``k`` as text."""

    clean: str
    k: NonNegativeInt


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
        controls: metrics and defences with untrained components, shown apart: a table that they
            pass as well shows nothing.
        kinds: the kinds to score; empty for all.
        generators: the generators whose texts are scored; empty for all.
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

    def __init__(
        self,
        metrics: dict[str, Pipeline],
        texts: dict[str, list[str]] | list[str],
        defences: dict[str, Selector] = {},  # noqa: B006 (jsonargparse shows it in --help)
        curves: dict[str, list[str]] = {},  # noqa: B006
        against: str = "normal",
        rising: list[str] = [],  # noqa: B006
        controls: list[str] = [],  # noqa: B006
        kinds: list[str] = [],  # noqa: B006
        generators: list[str] = [],  # noqa: B006
        per_topic: int = 0,
        topics: int = 0,
        half: Half | None = None,
        by: list[By] = EVERY_FIELD,
        k: PositiveInt | None = None,
        targets: list[Target] = [],  # noqa: B006
        training_logs: dict[str, str] = {},  # noqa: B006
        domain: str = "biographies",
        seed: int = 0,
    ):
        at_least_one(metrics=metrics, texts=texts)
        natural(per_topic=per_topic, topics=topics)
        unknown = sorted({*controls} - {*metrics, *defences})
        if unknown:
            raise UserError(f"controls: {unknown[0]!r} is neither a metric nor a defence")
        for target in targets:
            bounds = [b for b in (target.at_most, target.at_least) if b is not None]
            if not bounds or not all(0 <= bound <= 1 for bound in bounds):
                # Whatever is kept would reach it.
                raise UserError(
                    f"targets: {target.kind}: at_most or at_least: give a share from 0 to 1"
                )
        for control in controls:  # whose verdicts, and F1@K, have names that begin as its own
            begins = (f"{control}.", with_k(control, ""))
            taken = [name for name in (*metrics, *defences) if name.startswith(begins)]
            if taken:
                raise UserError(
                    f"controls: {taken[0]!r} would be taken for a verdict of {control!r}; give one "
                    "of them another name"
                )
        self.metrics = metrics
        self.texts = texts
        self.defences = defences
        self.curves = curves
        self.against = against
        self.rising = rising
        self.controls = controls
        self.kinds = kinds
        self.generators = generators
        self.per_topic = per_topic
        self.topics = topics
        self.half = half
        self.by = by
        self.k = k
        self.targets = targets
        self.training_logs = training_logs
        self.domain = domain
        self.seed = seed
        self._left_out: dict[str, None] = {}

    def measure(self, run: Run) -> Found:
        """Score all texts under all metrics and defences.

        Beside the results ``texts.jsonl``, every text with its claims, verdicts and selections, and
        the same of the curves' texts in ``curves.jsonl``.
        """
        score = partial(self._score, run.config.get("metrics"))
        documents, curves = self._texts()
        self._training_curves(run.output)
        rows = run.documents("texts", score, documents, Row)
        cells = cells_of(rows, self.k)
        single = left_out.groups_are_topics(documents)
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
            own = run.documents(f"curve {name}", score, texts, Row)
            values += curve(name, cells_of(own, self.k), self.seed)
            of_curves += [CurveRow(curve=name, **dict(row)) for row in own]
        topics = {name: len({d.topic for d in texts}) for name, texts in curves.items()}
        self._leave_out(left_out.of_values(values, topics, self.controls))
        told = {
            "targets": self._targets(),
            "skipped": list(self._left_out),
            "controls": self.controls,
            "against": self.against,
            "texts": dict(sorted(Counter(d.kind for d in documents).items())),
        }
        files = {"texts.jsonl": rows, **({CURVES: of_curves} if of_curves else {})}
        return Found(values, files, told)

    def _score(self, config: dict | None, documents: Sequence[Document]) -> list[Row]:
        return Grid(self.metrics, self.defences, config)(documents)

    def plan(self, run: Run) -> Plan:
        """Texts, curves, metrics and defences, and the texts that are still to be scored."""
        grid = Grid(self.metrics, self.defences, run.config.get("metrics"))
        documents, curves = self._texts()
        told = [*texts_told(documents), *curves_told(curves), *grid_told(grid, self.controls)]
        done, todo = 0, []
        for part, texts in (("texts", documents), *((f"curve {n}", t) for n, t in curves.items())):
            known = run.done(part)
            todo += [document for document in texts if document.id not in known]
            done += sum(document.id in known for document in texts)
        cut = ", by a run that was cut" * bool(done)
        told.append(f"done        {done:,} of {done + len(todo):,} texts{cut}")
        return Plan(told, self.metrics, self.defences, todo, grid.key)

    def _texts(self) -> tuple[list[Document], dict[str, list[Document]]]:
        documents = self.documents()
        topics = {document.topic for document in documents}
        curves = {name: self._curve(name, files, topics) for name, files in self.curves.items()}
        targets = self._targets()
        self._leave_out(left_out.of_options(documents, self.defences, targets, self.rising))
        if list(self.by) != list(EVERY_FIELD):  # the default asks for nothing
            self._leave_out(left_out.of_strata(documents, self.by))
        return documents, curves

    def _targets(self) -> list[dict]:
        return [target.model_dump(exclude_none=True) for target in self.targets]

    def _leave_out(self, told: Iterable[str]) -> None:
        for line in told:
            if line not in self._left_out:
                print(printable(line), file=sys.stderr)
            self._left_out[line] = None

    def documents(self) -> list[Document]:
        """The texts that are scored, each with a kind and an id of its own.

        Raises:
            BadInput: a row without a kind.
        """
        files = self.texts.items() if isinstance(self.texts, dict) else [(None, self.texts)]
        read = [
            (path, self._read(path, kind, len(paths))) for kind, paths in files for path in paths
        ]
        every = [document for own in _told_apart(read) for document in own]
        for name in ("generator", "group", "bin"):
            if ALL in {getattr(document, name) for document in every}:
                raise UserError(f"texts: {name}: {ALL!r} means all texts in the results; rename it")
        asked = [d for d in every if not self.kinds or d.kind in self.kinds]
        for name in ("kind", "generator"):
            wanted = getattr(self, f"{name}s")
            missing = [one for one in wanted if one not in {getattr(d, name) for d in every}]
            if missing:
                raise UserError(f"{name}s: the texts have no {name} {missing[0]!r}")
            every = [d for d in every if not wanted or getattr(d, name) in wanted]
        seen: Counter[tuple] = Counter()
        kept = []
        topics = self._drawn(every)
        drawn_ones = topics if self._draws() else None
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
        self._leave_out(left_out.of_kinds(asked, kept, self.against, drawn_ones))
        return kept

    def _read(self, path: str, kind: str | None, files: int) -> list[Document]:
        """The texts of a file; of one that is given for a kind those of this kind.

        Whose rows do not say who wrote them is told apart by its name from the other files.
        """
        found, others = [], Counter()
        for place, document in enumerate(read_records(path, Document), 1):
            own = document.kind or kind
            if own is None:
                say = "say it for the file, as texts: {normal: [FILE]}"
                raise BadInput([f"{path}:{place}: kind: field required; {say}"])
            if kind is not None and own != kind:
                others[own] += 1
                continue
            generator = document.generator or (Path(path).stem if files > 1 else "given")
            update = {"kind": own, "generator": generator}
            found.append((place, document.model_copy(update=update)))
        check_ids(path, found)
        if others:
            told = ", ".join(f"{number} {name}" for name, number in sorted(others.items()))
            self._leave_out([f"{path}: left out, since it is given for {kind}: {told}"])
        if not found:
            raise UserError(f"{path}: no text of kind {kind!r}")
        return [document for _, document in found]

    def _draws(self) -> bool:
        return self.half is not None or self.topics > 0

    def _drawn(self, documents: Sequence[Document]) -> set[str]:
        """The topics that are scored: of those that honest texts have, and of the others.

        Where honest texts have it, an attack can be compared with them on it, the better the more
        kinds and generators have it: those with most of them come first. Others are drawn of the
        attacks that are hardly on any of these, since only what a defence keeps of them counts.
        """
        cells: dict[tuple, set[str]] = defaultdict(set)
        for document in documents:
            if not self.half or half_of(document.topic, self.seed) == self.half:
                cells[document.kind, document.generator].add(document.topic)
        honest = {d.topic for d in documents if d.kind == self.against}
        shared = honest & set().union(*cells.values())
        if honest and not shared:
            raise UserError(f"half: none of {len(honest)} topics is in the half {self.half!r}")
        if not self.topics:
            return set().union(*cells.values())
        apart = [topics - honest for topics in cells.values() if len(topics & honest) < 2]
        found: set[str] = set()
        for own in (shared, set().union(*apart)):
            ranked = random.Random(self.seed).sample(sorted(own), len(own))
            ranked.sort(key=lambda topic: -sum(topic in topics for topics in cells.values()))
            found |= set(ranked[: self.topics])
        return found

    def _curve(self, name: str, files: Sequence[str], topics: set[str]) -> list[Document]:
        every = [d for path in files for d in _of_curve(path)]
        if not every:
            raise UserError(f"curves: {name}: no text; give files, or leave the curve out")
        found = [d for d in every if not self._draws() or d.topic in topics]
        if not found:
            raise UserError(f"curves: {name}: no text of the {len(topics)} topics that are drawn")
        twins = {d.id for d in found if twin_of(d)[1] is None}
        lost = sorted({twin_of(d)[0] for d in found} - twins)
        if lost:
            raise UserError(
                f"curves: {name}: no clean twin {lost[0]!r} in {', '.join(files)}; "
                "`data_builders corruption` writes them"
            )
        (twin, k), times = Counter(map(twin_of, found)).most_common(1)[0]
        if times > 1:
            what = f"have the id {twin!r}" if k is None else f"of {twin!r} have k = {k}"
            raise UserError(
                f"curves: {name}: {times} texts {what}; give one, and another adversary's texts as "
                "a curve of their own"
            )
        if len(found) == len(twins):
            raise UserError(f"curves: {name}: no row has `clean` and `k`; give corrupted texts")
        self._leave_out(left_out.of_curve(name, found))
        return found

    def _training_curves(self, output: Path) -> None:
        (output / "training").mkdir(parents=True, exist_ok=True)
        for name, folder in self.training_logs.items():
            logs = sorted(Path(folder).rglob("metrics.csv"), key=lambda path: path.stat().st_mtime)
            if logs:
                shutil.copyfile(logs[-1], output / "training" / f"{name}.csv")
            else:
                self._leave_out([f"training_logs: {name}: {folder} has no metrics.csv"])


def _of_curve(path: str) -> list[Document]:
    found = []
    for place, document in enumerate(read_records(path, Document), 1):
        more = document.model_extra or {}
        told = {name: more[name] for name in ("clean", "k") if more.get(name) is not None}
        if told:
            try:
                told = dict(_Place.model_validate(told))
            except ValidationError as error:
                raise first_fault(f"{path}:{place}", error) from None
        found.append(document.model_copy(update=told))
    return found


def _told_apart(files: Iterable[tuple[str, list[Document]]]) -> list[list[Document]]:
    """The texts of files with ids that no two of them share: behind the number of the file.

    A text that was made of one of the same file (``clean``) goes on naming it.
    """
    every = list(files)
    times = Counter(document.id for _, own in every for document in own)
    named: dict[tuple[str, str], str] = {}
    for place, (path, own) in enumerate(every):
        for one in own:
            name = f"{place}:{one.id}" if times[one.id] > 1 else one.id
            named.setdefault((path, one.id), name)
    found = []
    for place, (path, own) in enumerate(every):
        texts = []
        for one in own:
            made_of = (path, str((one.model_extra or {}).get("clean")))
            update = {"clean": named[made_of]} if made_of in named else {}
            update |= {"id": f"{place}:{one.id}"} if times[one.id] > 1 else {}
            texts.append(one.model_copy(update=update))
        found.append(texts)
    return found
