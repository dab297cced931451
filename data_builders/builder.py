"""The base classes of all builders: options, validation, plan, and build.

A builder is a dataclass. Its fields are the command-line options and its docstring is their help.
Class attributes declare

- ``reads``: options that name files. They determine the plan, the manifest's ``inputs``, and which
  values ``config`` records without their folders;
- ``asks``: options that name services, or Turtle files that replace them; recorded by name;
- ``least`` and ``probabilities``: ranges of options; ``faults`` checks everything else;
- ``speed``: options that change the speed only;
- ``files``: the files that the builder writes;
- ``make``: the method that returns records, card and further pages.

The base class reports all invalid options at once, resumes interrupted builds (:class:`Work`), and
writes the folder with the manifest last (``dataset.py``).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from clients.polite import PoliteClient
from components.code import describe_code, modules_of
from components.identity import identity
from data_builders.dataset import (
    BUILD_FILE,
    Card,
    dropped_summary,
    remove_partial_files,
    start_build,
    write_dataset,
)
from data_builders.rows import files_of, is_local, source_name
from records import UserError, sha256_text
from records.writing import lock_folder

C = TypeVar("C", bound=PoliteClient)
_REASONS = 3  # most frequent reasons for dropped rows that are printed
FILE_FIELDS = ("file", "files", "bins")  # of a dataclass among the options
# Machine-specific, without effect on the records, or recorded elsewhere in the manifest.
UNRECORDED_OPTIONS = frozenset({"output", "seed", "overwrite", "user_agent", "cache_dir"})


@dataclass(frozen=True)
class Step:
    """One kind of work of a build.

    Attributes:
        purpose: e.g. ``citizenship of the people``.
        source: the endpoint, file or model that is queried or read.
        number: maximum number of requests, rows or texts; ``None`` if not known yet.
        unit: unit of ``number``, e.g. ``requests``.
        seconds: duration at the request rate that the source allows; ``None`` if unknown.
    """

    purpose: str
    source: str
    number: int | None = None
    unit: str = "requests"
    seconds: float | None = None


@dataclass(frozen=True)
class Made:
    """The output of ``Builder.make``.

    Attributes:
        files: path within the folder to its records; generators are written as they are produced.
        card: contents of the dataset card.
        pages: path to the text of a file without records, e.g. a drawing.
        details: results of the build, added to the manifest's ``config``.
    """

    files: Mapping[str, Iterable[BaseModel | dict]]
    card: Card
    pages: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)


class Work(ExitStack):
    """Resources of a running build: open files, clients and resume files.

    Attributes:
        dropped: reason to the number of dropped rows.
        answers: folder of cached server responses.
        raw_options: options as parsed from the command line or YAML, which worker processes read.
    """

    def __init__(
        self,
        folder: Path,
        user_agent: str | None = None,
        cache_dir: Path | None = None,
        raw_options: Mapping[str, Any] | None = None,
    ):
        super().__init__()
        self.dropped: Counter[str] = Counter()
        self.clients: list[PoliteClient] = []
        self.user_agent = user_agent
        self.answers = Path(cache_dir or folder / ".answers")
        self.raw_options = raw_options
        self._folder = folder
        self._kept = [] if cache_dir else [self.answers]

    def client(self, kind: Callable[..., C], endpoint: str, **options: object) -> C:
        """Open a client of a service with cached responses."""
        client = kind(endpoint, self.user_agent, self.answers, **options)
        self.clients.append(client)
        return client

    def resume_path(self, name: str) -> Path:
        """Return the path of a hidden file from which a build resumes; removed on success."""
        self._kept.append(self._folder / f".{name}")
        return self._kept[-1]

    def journal(self, name: str, *decides: object) -> Path:
        """Return the path of a journal; its name is a hash of everything that decides its rows."""
        key = sha256_text(json.dumps(identity(decides), sort_keys=True))[:16]
        return self.resume_path(f"{name}.{key}.partial.jsonl")

    def scratch(self, name: str) -> Path:
        """Return the path of a hidden file that is removed when the build ends or fails."""
        path = self._folder / f".{name}"
        path.unlink(missing_ok=True)  # of an interrupted build
        remove_partial_files(self._folder, [path.name])
        self.callback(path.unlink, missing_ok=True)
        return path

    def table(self, name: str, cache_mib: int = 256) -> sqlite3.Connection:
        """Open a SQLite scratch file for data that exceeds memory; closed at the end."""
        base = scratch_table(self.scratch(f"{name}.sqlite"), cache_mib)
        self.callback(base.close)
        return base

    def dropped_summary(self) -> str:
        """Summarize dropped rows by reason, for error messages."""
        return dropped_summary(self.dropped)

    def delete_resume_files(self) -> None:
        """Delete resume files and cached responses after a successful build."""
        for path in self._kept:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
                continue
            for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):  # SQLite's
                name.unlink(missing_ok=True)


@dataclass
class Builder(ABC):
    """Base class: options in, a dataset folder out.

    Args:
        output: folder of the dataset.
        limit: use only the first N rows, documents, topics or people, for a trial.
        seed: seed of all random choices.
        overwrite: replace a build of other options in the folder.
    """

    output: Path
    limit: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    overwrite: bool = field(default=False, kw_only=True)

    reads: ClassVar[Sequence[str]] = ()
    asks: ClassVar[Sequence[str]] = ()
    least: ClassVar[Mapping[str, float]] = {}
    probabilities: ClassVar[Sequence[str]] = ()
    speed: ClassVar[Sequence[str]] = ()

    def __post_init__(self) -> None:
        self.output = Path(self.output)
        errors = [*self._out_of_range(), *self.faults()]
        if errors:
            raise UserError("\n".join(errors))

    @abstractmethod
    def files(self) -> dict[str, dict[str, str]]:
        """Map each config of the card to its splits, and each split to its file.

        A split without rows has no file. The card does not list the config ``""``.
        """

    @abstractmethod
    def make(self, work: Work) -> Made:
        """Return the records (possibly generators); dropped rows are counted in ``work``."""

    def faults(self) -> Iterable[str]:
        """Yield an error message, ``option: problem; fix``, for each invalid option."""
        return ()

    def plan(self) -> list[Step]:
        """List the steps of a build, for ``--dry_run``."""
        return [
            Step(name, path, self.limit, "rows")
            for name in self.reads
            for path in paths_in(getattr(self, name))
        ]

    def inputs(self) -> list[str]:
        """List the local files that a build reads; the manifest records their hashes.

        Folders are expanded. Missing files are one error.
        """
        paths = [path for name in self.reads for path in paths_in(getattr(self, name))]
        return list(dict.fromkeys(map(str, files_of(filter(is_local, paths)))))

    def writes(self) -> list[str]:
        """List the record files that a build writes; a split without rows has no file."""
        return [path for splits in self.files().values() for path in splits.values()]

    def config(self) -> dict[str, object]:
        """Return the options that decide the records, without machine-specific folders."""
        skipped = {*UNRECORDED_OPTIONS, *self.speed}
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in skipped}
        return {n: _recorded(v) if n in {*self.reads, *self.asks} else v for n, v in values.items()}

    def open_work(self, raw_options: Mapping[str, Any] | None = None) -> Work:
        """Open the resources of a build."""
        return Work(self.output, raw_options=raw_options)

    def build(self, raw_options: Mapping[str, Any] | None = None) -> Path:
        """Build the dataset folder; return the path of the manifest."""
        inputs = self.inputs()
        with lock_folder(self.output):
            name = type(self).__module__.rpartition(".")[2]
            config = self.config()
            modules = {type(self).__module__, *modules_of(identity(config))}
            code = describe_code(modules)
            build = {"builder": name, "seed": self.seed, "code": code["sha256"]} | config
            hashes = start_build(self.output, build, self.overwrite)
            with self.open_work(raw_options) as work, self._unblocked():
                made = self.make(work)
                manifest = write_dataset(
                    self.output,
                    made.files,
                    builder=name,
                    configs=self.files(),
                    card=made.card,
                    clients=work.clients,
                    dropped=work.dropped,
                    config=config | dict(made.details),
                    seed=self.seed,
                    build=hashes,
                    code=code,
                    inputs=inputs,
                    pages=made.pages,
                )
            work.delete_resume_files()
            (self.output / BUILD_FILE).unlink()
        return manifest

    @contextmanager
    def _unblocked(self) -> Iterator[None]:
        """Let a build with other options follow one that fails, whose journals are kept."""
        try:
            yield
        except UserError:
            (self.output / BUILD_FILE).unlink()
            raise

    def _out_of_range(self) -> Iterator[str]:
        required = {f.name for f in fields(self) if f.default is MISSING is f.default_factory}
        for name in self.reads:
            if name in required and getattr(self, name) in ([], {}):
                yield f"{name}: expected at least one file"
        for name, least in {"limit": 1, **self.least}.items():
            value = getattr(self, name)
            numbers = value if isinstance(value, (list, tuple)) else [value]
            if value is not None and min(numbers) < least:
                yield f"{name}: expected at least {least}, got {value}"
        if "shares" in self.least and not sum(self.shares):
            yield "shares: expected at least one number above 0"
        for name in self.probabilities:
            if not 0 <= getattr(self, name) <= 1:
                yield f"{name}: expected a probability in [0, 1], got {getattr(self, name)}"


@dataclass
class AskingBuilder(Builder):
    """A builder that queries services.

    Args:
        user_agent: name and contact address sent to remote services; required by all of them.
        cache_dir: folder of cached responses; null uses ``output`` and clears them at the end.
    """

    user_agent: str | None = field(default=None, kw_only=True)
    cache_dir: Path | None = field(default=None, kw_only=True)

    def open_work(self, raw_options: Mapping[str, Any] | None = None) -> Work:
        return Work(self.output, self.user_agent, self.cache_dir, raw_options)


def scratch_table(path: Path, cache_mib: int = 64) -> sqlite3.Connection:
    """Open a new SQLite file without crash safety; random key order needs a large cache."""
    base = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{cache_mib * 1024}"):
        base.execute(f"PRAGMA {pragma}")
    return base


def option_errors(check: Callable, *values: object) -> list[str]:
    """Return the error message that ``check`` raises, for ``faults``."""
    try:
        check(*values)
    except UserError as error:
        return [str(error)]
    return []


def paths_in(value: object) -> Iterator[str]:
    """Yield the paths of an option: one, a list, lists by split, or sources with files."""
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, Mapping):
        yield from paths_in(list(value.values()))
    elif is_dataclass(value):
        yield from paths_in([getattr(value, name, None) for name in FILE_FIELDS])
    elif value is not None:
        for part in value:
            yield from paths_in(part)


def _recorded(value: object) -> object:
    if isinstance(value, (str, Path)):
        return source_name(str(value))
    if isinstance(value, Mapping):
        return {name: _recorded(part) for name, part in value.items()}
    if is_dataclass(value):
        return {n: _recorded(v) if n in FILE_FIELDS else v for n, v in asdict(value).items()}
    return None if value is None else [_recorded(part) for part in value]


def show_plan(name: str, steps: Sequence[Step]) -> str:
    """Format the steps of ``--dry_run`` as a table with the total time."""
    rows = [("step", "source", "at most", "time")]
    for step in steps:
        number = "depends" if step.number is None else f"{step.number:,} {step.unit}"
        rows.append((step.purpose, step.source, number, _duration(step.seconds)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]
    total = sum(step.seconds or 0 for step in steps)
    open_steps = sum(step.seconds is None for step in steps)
    unknown = f", plus {open_steps} step(s) of unknown duration" if open_steps else ""
    return "\n".join([*lines, "", f"{name}: {_duration(total)}{unknown}; nothing was sent."])


def show_built(name: str, manifest: Path) -> str:
    """Format the result of a build: files, dropped rows by reason, empty files."""
    report = json.loads(manifest.read_text(encoding="utf-8"))
    reasons = Counter(report["dropped"]).most_common()
    empty = [file for file, entry in report["files"].items() if not entry["rows"]]
    remaining = sum(times for _, times in reasons[_REASONS:])
    return "\n".join(
        [
            f"{name}: {report['kept']:,} record(s) in {len(report['files'])} file(s) of "
            f"{manifest.parent} ({sum(report['dropped'].values()):,} rows dropped); card: "
            f"{manifest.parent / 'README.md'}",
            *[f"dropped {times:,} x {reason}" for reason, times in reasons[:_REASONS]],
            *[f"dropped {remaining:,} x for other reasons, see {manifest}"] * bool(remaining),
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
