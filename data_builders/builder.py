"""The frame of every builder: its options, their checks, its plan, what it keeps while it works.

A builder is a dataclass. Its fields are the options of the command line, its docstring is their
help, and beside them it says

- ``reads``: which options name files; from them come the plan, the manifest's ``inputs`` and the
  names, without folders, that its ``config`` shows;
- ``asks``: which name services, or Turtle files in their place; of those the config has the names;
- ``least`` and ``probabilities``: the ranges of options; ``faults`` what else can be wrong;
- ``speed``: which options change how long it takes and nothing else;
- ``files``: what it writes;
- ``make``: the records, the card, and other pages.

What happens around that stands here once: all faults at once, what is open and what is kept for a
build that is killed (:class:`Work`), and the folder, whose manifest comes last (``dataset.py``).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from clients.polite import PoliteClient
from data_builders.dataset import Card, dropped_summary, require_same_builder, sweep, write_dataset
from data_builders.rows import is_local, source_name
from records import UserError, sha256_text
from records.writing import lock_folder

C = TypeVar("C", bound=PoliteClient)
_REASONS = 3  # to leave rows out that the terminal tells
# Decide nothing in the records; they differ by machine, or stand in the manifest by themselves.
UNRECORDED_OPTIONS = frozenset({"output", "seed", "user_agent", "cache_dir"})


@dataclass(frozen=True)
class Step:
    """One kind of work of a build.

    Attributes:
        what: what it is for, e.g. ``citizenship of the people``.
        source: who is asked or read: an endpoint, a file, a model.
        number: how many requests, rows or texts at most; ``None`` where only the answer to an
            earlier step tells.
        unit: what ``number`` counts, e.g. ``requests``.
        seconds: how long it takes at the rate that the source's etiquette allows; ``None`` for
            unknown.
    """

    purpose: str
    source: str
    number: int | None = None
    unit: str = "requests"
    seconds: float | None = None


@dataclass(frozen=True)
class Made:
    """What a builder made.

    Attributes:
        files: path in the folder to its records; generators are written as they come.
        card: what the dataset card says.
        pages: path to the text of a file that holds no records, e.g. a drawing.
        details: what the build found out, for the ``config`` of the manifest.
    """

    files: Mapping[str, Iterable[BaseModel | dict]]
    card: Card
    pages: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)


class Work(ExitStack):
    """A build under way: what is open, what it keeps in case it is killed, what it leaves out.

    Attributes:
        dropped: reason to how many rows were left out for it.
        clients: who was asked; the manifest lists their requests.
        answers: folder of what servers answered.
        user_agent: who asks.
    """

    def __init__(self, builder: Builder):
        super().__init__()
        self.dropped: Counter[str] = Counter()
        self.clients: list[PoliteClient] = []
        self.user_agent = builder.user_agent
        self.answers = Path(builder.cache_dir or builder.output / ".answers")
        self._folder = builder.output
        self._kept = [] if builder.cache_dir else [self.answers]

    def client(self, kind: Callable[..., C], endpoint: str, **options: object) -> C:
        """A client of a service, whose answers are kept."""
        client = kind(endpoint, self.user_agent, self.answers, **options)
        self.clients.append(client)
        return client

    def resume_path(self, name: str) -> Path:
        """A hidden file that a killed build goes on with; it goes when the dataset is whole."""
        self._kept.append(self._folder / f".{name}")
        return self._kept[-1]

    def journal(self, name: str, *decides: object) -> Path:
        """A kept file for ``journal_rows``; its name depends on all that decides what is in it."""
        key = sha256_text(json.dumps(decides, sort_keys=True))[:16]
        return self.resume_path(f"{name}.{key}.partial.jsonl")

    def scratch(self, name: str) -> Path:
        """A hidden file that no build goes on with; it goes when the build ends, well or badly."""
        path = self._folder / f".{name}"
        path.unlink(missing_ok=True)  # what a killed build left, whole and half written
        sweep(self._folder, [path.name])
        self.callback(path.unlink, missing_ok=True)
        return path

    def table(self, name: str, cache_mib: int = 256) -> sqlite3.Connection:
        """A scratch file of SQLite, for what millions of rows leave behind; closed by itself."""
        base = scratch_table(self.scratch(f"{name}.sqlite"), cache_mib)
        self.callback(base.close)
        return base

    def dropped_summary(self) -> str:
        """What was left out, for a message that nothing is left."""
        return dropped_summary(self.dropped)

    def delete_resume_files(self) -> None:
        """Remove what was kept: the dataset is whole."""
        for path in self._kept:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
                continue
            for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):  # SQLite's
                name.unlink(missing_ok=True)


@dataclass
class Builder(ABC):
    """One dataset: options in, a folder out.

    Args:
        output: folder of the dataset.
        limit: only the first so many rows, documents, topics or people, for a trial.
        seed: of all choices.
    """

    output: Path
    limit: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    # The options as the command line or a YAML gives them: what workers make their part of.
    raw_options: ClassVar[Mapping[str, Any] | None] = None
    user_agent: ClassVar[str | None] = None
    cache_dir: ClassVar[Path | None] = None
    reads: ClassVar[Sequence[str]] = ()
    asks: ClassVar[Sequence[str]] = ()
    least: ClassVar[Mapping[str, float]] = {}
    probabilities: ClassVar[Sequence[str]] = ()
    speed: ClassVar[Sequence[str]] = ()

    def __post_init__(self) -> None:
        self.output = Path(self.output)
        found = [*self._out_of_range(), *self.faults()]
        if found:
            raise UserError("\n".join(found))

    @abstractmethod
    def files(self) -> dict[str, dict[str, str]]:
        """Config of the card to its splits, each to its file; those without a row may be missing.

        What stands under the config ``""`` is not named in the card.
        """

    @abstractmethod
    def make(self, work: Work) -> Made:
        """The records, which may be generators; what is left out is counted in ``work``."""

    def faults(self) -> Iterable[str]:
        """What is wrong with the options, beside their ranges: ``option: what to give``."""
        return ()

    def plan(self) -> list[Step]:
        """What a build would read."""
        return [
            Step(name, path, self.limit, "rows")
            for name in self.reads
            for path in paths_in(getattr(self, name))
        ]

    def inputs(self) -> list[str]:
        """The local files that a build reads; the manifest has their hashes."""
        every = [path for name in self.reads for path in paths_in(getattr(self, name))]
        return [path for path in dict.fromkeys(every) if is_local(path)]

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes; those without a row may be missing."""
        return [path for splits in self.files().values() for path in splits.values()]

    def config(self) -> dict[str, object]:
        """What decides the records: the options, without folders, which differ by machine."""
        told = [f.name for f in fields(self) if f.name not in {*UNRECORDED_OPTIONS, *self.speed}]
        given = {name: getattr(self, name) for name in told}
        return {n: _named(v) if n in {*self.reads, *self.asks} else v for n, v in given.items()}

    def build(self) -> Path:
        """Make the records and write the folder; returns the manifest's path."""
        for path in self.inputs():
            if not Path(path).exists():
                raise UserError(f"{path}: no such file; give the path of one that is there")
        with lock_folder(self.output):
            name = type(self).__module__.rpartition(".")[2]  # a builder's file is named so
            require_same_builder(self.output, name)
            with Work(self) as work:
                made = self.make(work)
                manifest = write_dataset(
                    self.output,
                    made.files,
                    builder=name,
                    configs=self.files(),
                    card=made.card,
                    clients=work.clients,
                    dropped=work.dropped,
                    config=self.config() | dict(made.details),
                    seed=self.seed,
                    inputs=self.inputs(),
                    pages=made.pages,
                )
            work.delete_resume_files()
        return manifest

    def _out_of_range(self) -> Iterator[str]:
        for name in self.reads:
            if getattr(self, name) in ([], {}) and name in self._required():
                yield f"{name}: no file; give at least one"
        for name, least in {"limit": 1, **self.least}.items():
            value = getattr(self, name)
            numbers = value if isinstance(value, (list, tuple)) else [value]
            if value is not None and min(numbers) < least:
                yield f"{name}: {value}; give at least {least}"
        if "shares" in self.least and not sum(self.shares):
            yield "shares: give numbers that are not all 0"
        for name in self.probabilities:
            if not 0 <= getattr(self, name) <= 1:
                yield f"{name}: {getattr(self, name)} is no probability; give 0 to 1"

    def _required(self) -> set[str]:
        return {f.name for f in fields(self) if f.default is MISSING is f.default_factory}


@dataclass
class AskingBuilder(Builder):
    """A builder that asks services.

    Args:
        user_agent: who asks, with an address; needed for any remote service.
        cache_dir: folder of kept answers; null keeps them in ``output`` until the dataset is
            whole.
    """

    user_agent: str | None = field(default=None, kw_only=True)
    cache_dir: Path | None = field(default=None, kw_only=True)


def scratch_table(path: Path, cache_mib: int = 64) -> sqlite3.Connection:
    """A SQLite file that nobody reads after the build, so that nothing need survive a crash.

    Args:
        path: of a file that is not there yet.
        cache_mib: its pages in memory. Keys that come in no order need all pages again and again.
    """
    base = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{cache_mib * 1024}"):
        base.execute(f"PRAGMA {pragma}")
    return base


def option_errors(check: Callable, *given: object) -> list[str]:
    """What a function says of an option that it refuses, for ``faults``."""
    try:
        check(*given)
    except UserError as error:
        return [str(error)]
    return []


def paths_in(value: object) -> Iterator[str]:
    """The paths that an option holds: one, a list, lists by split, or sources with files."""
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, Mapping):
        yield from paths_in(list(value.values()))
    elif is_dataclass(value):
        yield from paths_in(getattr(value, "files", None) or value.file)
    elif value is not None:
        for one in value:
            yield from paths_in(one)


def _named(value: object) -> object:
    if isinstance(value, (str, Path)):
        return source_name(str(value))
    if isinstance(value, Mapping):
        return {name: _named(one) for name, one in value.items()}
    if is_dataclass(value):
        files = ("file", "files", "bins")
        return {n: _named(v) if n in files else v for n, v in asdict(value).items()}
    return None if value is None else [_named(one) for one in value]


def show_plan(name: str, steps: Sequence[Step]) -> str:
    """The steps of ``--dry_run`` as a table for the terminal, with what they take together."""
    rows = [("step", "source", "at most", "time")]
    for step in steps:
        number = "depends" if step.number is None else f"{step.number:,} {step.unit}"
        rows.append((step.purpose, step.source, number, _duration(step.seconds)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]
    known = sum(step.seconds or 0 for step in steps)
    open_steps = sum(step.seconds is None for step in steps)
    more = f", and {open_steps} step(s) whose time is not known yet" if open_steps else ""
    return "\n".join([*lines, "", f"{name}: {_duration(known)}{more}; nothing was asked."])


def show_built(name: str, manifest: Path) -> str:
    """What a build wrote, for the terminal: what is empty and why rows were left out behind it."""
    told = json.loads(manifest.read_text(encoding="utf-8"))
    reasons = Counter(told["dropped"]).most_common()
    empty = [file for file, own in told["files"].items() if not own["rows"]]
    other = sum(times for _, times in reasons[_REASONS:])
    return "\n".join(
        [
            f"{name}: {told['kept']:,} record(s) in {len(told['files'])} file(s) of "
            f"{manifest.parent} ({sum(told['dropped'].values()):,} left out); card: "
            f"{manifest.parent / 'README.md'}",
            *[f"left out {times:,} x {why}" for why, times in reasons[:_REASONS]],
            *[f"left out {other:,} x for other reasons, told in {manifest}"] * bool(other),
            *[f"empty: {', '.join(empty)}"] * bool(empty),
        ]
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "depends"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
