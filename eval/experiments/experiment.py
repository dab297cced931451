"""The frame of an experiment: what every one of them does, once.

An experiment says what it reads, what it judges, document by document through its run, and the
values of what was found, and declares how they are shown. Keys, guards, journals, costs and files
are the frame's.
"""

# No postponed annotations: jsonargparse resolves them with the names of a subclass's module.
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from eval.pipeline import Pipeline
from eval.report.declare import Page
from eval.run.on_ray import OnRay
from eval.run.parts import find_identities, find_writers
from eval.run.run import Run
from eval.run.terminal import model_name
from eval.stages import Selector
from records import Document, Result, ResultFile, UserError, sha256_text, write_jsonl

T = TypeVar("T")

# Settings are chosen on the topics of one half and reported on those of the other.
Half = Literal["tuning", "test"]


class Found(NamedTuple):
    """What an experiment found out.

    Attributes:
        values: fields of results, without the configuration's hash; without a ``domain`` they have
            that of the experiment.
        files: name to the rows of a file beside the results.
        provenance: what else stands once in the results file.
    """

    values: Iterable[Mapping[str, Any]]
    files: Mapping[str, Iterable[object]] = {}
    provenance: Mapping[str, object] = {}


class Plan(NamedTuple):
    """What a run would do: lines for the terminal, and what models would be asked for.

    Attributes:
        told: what is read and compared, a line each.
        pipelines: name to a metric.
        selectors: name to a defence.
        documents: the texts that metrics and defences still have to judge.
        shared: metric to a function of a stage, and of a verifier's place, that gives the same for
            stages that run once.
    """

    told: Sequence[str]
    pipelines: Mapping[str, Pipeline] = {}
    selectors: Mapping[str, Selector] = {}
    documents: Sequence[Document] = ()
    shared: Callable[[str], Callable[..., Hashable]] = lambda metric: (
        lambda *stage: (
            metric,
            *stage,
        )
    )


class Experiment:
    """An experiment; its class is one of ``eval/commands/experiment.py``.

    Attributes:
        name: of its command.
        page: how its results are shown (``eval/report/render.py``).
        in_chunks: whether it judges by :meth:`eval.run.run.Run.process`, as workers on Ray can.
        domain: named in the results.
        seed: of draws and of the bootstrap.
    """

    name: ClassVar[str]
    page: ClassVar[Page]
    in_chunks: ClassVar[bool] = True
    domain: str
    seed: int

    def measure(self, run: Run) -> Found:
        """Read, judge and compute; what a killed run had judged is not judged again."""
        raise NotImplementedError

    def plan(self, run: Run) -> Plan:
        """What a run would do, without asking any model: ``--dry_run``.

        By default the files and models that it would use; how often it asks them it does not say.
        """
        files = [f"reads       {name}" for name in run.inputs]
        models = [f"model       {model_name(one) or one}" for one in find_identities(self)]
        kind = "language models are asked" if find_writers(self) else "no language model is asked"
        return Plan([*files, *models, f"{kind}; how often is known when it runs"])

    def run(
        self,
        output: Path,
        config: dict,
        ray: OnRay = OnRay(),  # noqa: B008 (it cannot change)
    ) -> ResultFile:
        """Run, resuming what a killed run left in ``output``.

        Writes ``results.json`` and the files of :meth:`measure`.

        Args:
            output: the run's folder.
            config: the experiment's options, as the YAML has them.
            ray: workers that judge documents beside this process.
        """
        with Run(self.name, self, config, output, ray=ray) as run:
            return run.read_finished() or self._measured(run)

    def _measured(self, run: Run) -> ResultFile:
        found = self.measure(run)
        shared = {"domain": getattr(self, "domain", None), "config_hash": run.key}
        results = [Result(**(shared | dict(value))) for value in found.values]
        for name, rows in found.files.items():
            write_jsonl(run.output / name, rows)
        return run.finish(results, **found.provenance)


# What experiments ask of their options


def at_least_one(**given: Sequence | Mapping) -> None:
    """Refuse an option without an entry."""
    for name, entries in given.items():
        if not entries:
            raise UserError(f"{name}: none; give at least one")


def given(named: Mapping[str, T | None]) -> dict[str, T]:
    """The entries of an option without those that are null: left out of a configuration."""
    return {name: entry for name, entry in named.items() if entry is not None}


def natural(**given: int) -> None:
    """Refuse a negative number of something of which 0 is all."""
    for name, count in given.items():
        if count < 0:
            raise UserError(f"{name}: {count}; give a number, or 0 for all")


def drawn(names: Iterable[str], most: int, draw: random.Random) -> set[str]:
    """At most so many of some names, drawn at random; all of them where ``most`` is 0."""
    every = sorted(set(names))
    return set(draw.sample(every, min(most, len(every))) if most else every)


def half_of(topic: str, seed: int) -> Half:
    """The half that a topic is in.

    A hash of seed and topic, whatever other topics are there: what one run chose on ``tuning`` has
    seen nothing of what another run with the same seed reports on ``test``. The sizes of the halves
    of n topics differ by about √n.
    """
    return "test" if int(sha256_text(f"{seed}:{topic}"), 16) % 2 else "tuning"


def by_generator(
    files: Mapping[str, str] | Sequence[str], read: Callable[[str, str | None], Iterable[T]]
) -> list[T]:
    """The records of files that a generator is given for, or that name their generators.

    Args:
        files: generator to file, or files.
        read: takes a file and its generator, if one is given.
    """
    named = files.items() if isinstance(files, Mapping) else [(None, path) for path in files]
    return [record for generator, path in named for record in read(path, generator)]
