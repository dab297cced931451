"""The base class of experiments.

An experiment defines what it reads, what it judges, the results, and the tables of its page. The
base class handles run keys, locks, journals, costs and files.
"""

# No postponed annotations: jsonargparse resolves them with the names of a subclass's module.
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from eval.report.declare import Page
from eval.run.on_ray import OnRay
from eval.run.parts import describe_options
from eval.run.run import Run
from records import Result, ResultFile, UserError, sha256_text, write_jsonl

T = TypeVar("T")

# Choose settings on one half of the topics and report on the other.
Half = Literal["tuning", "test"]


class Outcome(NamedTuple):
    """The results of an experiment.

    Attributes:
        values: fields of each result, without the configuration's hash; the default ``domain`` is
            the experiment's.
        files: name to the rows of an additional file of the run.
        provenance: additional provenance of the results file.
    """

    values: Iterable[Mapping[str, Any]]
    files: Mapping[str, Iterable[object]] = {}
    provenance: Mapping[str, object] = {}


class Experiment:
    """Base class of experiments; ``eval/commands/experiment.py`` lists them.

    Attributes:
        name: name of the command.
        page: declaration of the report page (``eval/report/render.py``).
        in_chunks: whether it uses :meth:`eval.run.run.Run.process`, which can run on Ray.
        domain: domain of the texts, named in the results.
        seed: seed of the draws and the bootstrap.
    """

    name: ClassVar[str]
    page: ClassVar[Page]
    in_chunks: ClassVar[bool] = True
    domain: str
    seed: int

    def measure(self, run: Run) -> Outcome:
        """Read, judge and compute; resumes from the journals of an interrupted run."""
        raise NotImplementedError

    def run(
        self,
        output: Path,
        config: dict | None = None,
        ray: OnRay = OnRay(),  # noqa: B008 (it cannot change)
        limit: int | None = None,
        overwrite: bool = False,
    ) -> ResultFile:
        """Run, or resume an interrupted run; writes ``results.json`` and other files.

        Args:
            output: the run's folder.
            config: the experiment's options, as in its YAML; by default those of the objects.
            ray: workers that judge documents in parallel.
            limit: documents to process in each part (:class:`eval.run.run.LimitReached`).
            overwrite: replace results of other options, files or code in the folder.
        """
        config = {"experiment": describe_options(self)} if config is None else config
        options = {"ray": ray, "limit": limit, "overwrite": overwrite}
        with Run(self.name, self, config, output, **options) as run:
            return run.read_finished() or self._measured(run)

    def _measured(self, run: Run) -> ResultFile:
        outcome = self.measure(run)
        shared = {"domain": getattr(self, "domain", None), "config_hash": run.key}
        results = [Result(**(shared | dict(value))) for value in outcome.values]
        for name, rows in outcome.files.items():
            write_jsonl(run.output / name, rows)
        return run.finish(results, **outcome.provenance)


def require_entries(**options: Sequence | Mapping) -> None:
    """Raise an error if an option has no entry."""
    for name, entries in options.items():
        if not entries:
            raise UserError(f"{name}: expected at least one entry")


def drop_nulls(options: Mapping[str, T | None]) -> dict[str, T]:
    """The entries of an option that are not null."""
    return {name: entry for name, entry in options.items() if entry is not None}


def require_non_negative(**options: int) -> None:
    """Raise an error for a negative maximum; 0 means no maximum."""
    for name, count in options.items():
        if count < 0:
            raise UserError(f"{name}: expected 0 (all) or more, got {count}")


def draw_names(names: Iterable[str], maximum: int, draw: random.Random) -> set[str]:
    """At most ``maximum`` of some names, drawn at random; all of them if it is 0."""
    distinct = sorted(set(names))
    return set(draw.sample(distinct, min(maximum, len(distinct))) if maximum else distinct)


def half_of(topic: str, seed: int) -> Half:
    """The half of a topic, by a hash of seed and topic.

    The half does not depend on the other topics, so runs with the same seed and other files agree.
    The sizes of the halves of n topics differ by about √n.
    """
    return "test" if int(sha256_text(f"{seed}:{topic}"), 16) % 2 else "tuning"


def read_by_generator(
    files: Mapping[str, str] | Sequence[str], read: Callable[[str, str | None], Iterable[T]]
) -> list[T]:
    """Read files, each of one generator or with a generator in each row.

    Args:
        files: generator to file, or files.
        read: reads a file, with its generator or ``None``.
    """
    pairs = files.items() if isinstance(files, Mapping) else [(None, path) for path in files]
    return [record for generator, path in pairs for record in read(path, generator)]
