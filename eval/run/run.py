"""One run of ``score`` or of an experiment: its key, folder lock, resuming, usage and results.

An output folder holds one configuration. While the run is in progress, the folder holds one journal
per part of the work (``.PART.KEY.partial.jsonl``), the language models' answers and the pages that
were read. When the run finishes, ``results.json`` is written and the journals are deleted. An
interrupted run resumes from the journals, and its results are byte-identical.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from tqdm import tqdm

from components.code import describe_code
from components.identity import identity
from eval.models.engine import Engine
from eval.run.journal import Chunk, Journal, read_chunks
from eval.run.on_ray import OnRay
from eval.run.parts import (
    add_answer_caches,
    find_identities,
    find_parts,
    find_writers,
    hash_prompts,
)
from eval.run.provenance import build_provenance, config_hash, find_differences, hash_inputs
from records import Result, ResultFile, UserError, read_results, sha256_text, write_results
from records.errors import first_line
from records.writing import find_partial_files, lock_folder

R = TypeVar("R", bound=BaseModel)

# Documents that are processed and saved together; an interrupted run loses at most one chunk.
CHUNK = 128
OVERWRITE = "replace results of another configuration, other files or other code in the folder"
# Modules that process documents and compute results, besides those of the parts.
_COMPUTING = ("eval.run.run", "eval.metrics.corpus")
# Folders whose run this process began or resumed, which is printed once.
_begun_folders: set[Path] = set()
_MAX_NAMED = 3  # maximum number of differences that an error message names


class LimitReached(Exception):
    """The documents up to a run's limit are processed; ``part``, ``cost`` and ``total`` say which.

    Attributes:
        part: part of the work in which documents remain; later parts have not been started.
        cost: as in :class:`Run`.
        total: number of documents of the part.
    """

    def __init__(self, part: str, cost: Counter[str], total: int):
        self.part, self.cost, self.total = part, cost, total


class Run:
    """A run of ``score`` or of an experiment; a context manager that locks the output folder.

    Args:
        name: ``score``, or the experiment's name.
        root: the object that holds the models and prompts, e.g. the pipeline (see
            ``eval/run/parts.py``). Models and searchers without a cache get one in ``output``.
        config: the options that decide the results; files and checkpoints named in it are hashed.
        output: the run's folder.
        files: further files that decide the results.
        ray: workers on Ray that process documents.
        described: the options of ``root``, from which each worker builds its own copy; ``config``
            by default.
        limit: documents to process in each part of the work; None processes all of them.
        overwrite: replace results and journals of another configuration, other files or other code
            in ``output``.

    Attributes:
        cost: documents, pairs, answers, tokens and seconds of the last part of the work, without
            documents that an earlier process scored. Pairs on other machines are not counted.
        inputs: SHA-256 of the files and checkpoints that decide the results.
        key: hash of everything that decides the results: configuration, prompts, checkpoints, data,
            code.
    """

    def __init__(
        self,
        name: str,
        root: object,
        config: dict,
        output: str | Path,
        files: Sequence[str] = (),
        ray: OnRay = OnRay(),  # noqa: B008 (it cannot change)
        described: dict | None = None,
        limit: int | None = None,
        overwrite: bool = False,
    ):
        if isinstance(seed := config.get("seed"), int) and seed < 0:
            raise UserError(f"seed: expected 0 or more, got {seed}")
        self.name = name
        self.root = root
        # Searched once: objects that stages load later are not parts.
        self._parts = find_parts(root)
        self.config = config
        self.output = Path(output)
        self.ray = ray
        self._described = config if described is None else described
        self.inputs = hash_inputs([config, list(files)])
        self._prompts = hash_prompts(self._parts)
        modules = {type(part).__module__ for part in self._parts}
        self.code = describe_code({*modules, *_COMPUTING})
        decides = [name, config, self._prompts, self.code["sha256"]]
        self.key = config_hash(decides, self.inputs)
        self._limit = limit
        self._overwrite = overwrite
        self.cost: Counter[str] = Counter()
        self._entered = ExitStack()
        add_answer_caches(self._parts, self.output)

    def __enter__(self) -> Run:
        with ExitStack() as entered:
            entered.enter_context(lock_folder(self.output))
            self._guard()
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def read_finished(self, *files: str) -> ResultFile | None:
        """Return the results if the run is finished and the folder also has ``files``."""
        paths = [self.output / name for name in ("results.json", *files)]
        if not all(path.is_file() for path in paths):
            return None
        self._delete_partial_files()
        return read_results(paths[0])

    def process(
        self,
        part: str,
        work: Callable[[Sequence[Any]], Sequence[R]],
        documents: Sequence[Any],
        record: type[R],
        chunk: int = CHUNK,
        file: str | None = None,
    ) -> list[R]:
        """Process documents chunk by chunk; resume from the part's journal.

        Stages batch over the documents of a chunk. An interrupted chunk is repeated in full; its
        model calls are cached, and its token counts are those of an uninterrupted run.

        Args:
            part: name of the part of the run; each part has its own journal.
            work: maps the documents of a chunk to one record each. For workers on Ray it must be a
                method of ``root`` that does not change it, or ``partial`` of one with JSON values.
            documents: documents, or other records with an ``id``.
            record: class of the returned records.
            chunk: number of documents per chunk.
            file: name of a file in the run's folder, to which the rows are copied in the order of
                the documents, without absent optional fields.

        Returns:
            One record per document, in order.

        Raises:
            LimitReached: the run has a limit, and documents beyond it remain.
        """
        first, times = (Counter(d.id for d in documents).most_common(1) or [("", 0)])[0]
        if times > 1:
            raise UserError(f"document id {first!r} occurs more than once; ids must be unique")
        with Journal(self._journal(part), record) as journal:
            todo = [document for document in documents if document.id not in journal.records]
            bar = self._progress_bar(part, len(documents) - len(todo), len(documents))
            todo = todo[: self._limit]
            chunks = list(_growing_chunks(todo, chunk))
            started, pairs = time.perf_counter(), self._judged_pairs()
            self.cost, claims = Counter(), 0
            for result in self._process_chunks(work, chunks, file is not None):
                journal.append(result)
                records = [journal.records[name] for name in result.ids]
                claims += sum(len(getattr(record, "claims", ())) for record in records)
                bar.set_postfix_str(f"{claims:,} claims" if claims else "", refresh=False)
                bar.update(len(result.ids))
                self.cost.update(documents=len(result.ids))
                for usage in result.usage:
                    self.cost.update(usage)
            bar.close()
            seconds = time.perf_counter() - started
            self.cost.update(pairs=self._judged_pairs() - pairs, seconds=seconds)
            if len(journal.records) < len(documents):
                raise LimitReached(part, self.cost, len(documents))
            ids = [document.id for document in documents]
            if file is not None:
                journal.copy_rows(ids, self.output / file)
            return [journal.records.pop(name) for name in ids]

    def _progress_bar(self, part: str, finished: int, total: int) -> tqdm:
        title = part.replace("\n", " ")
        if finished and self.output not in _begun_folders:
            print(f"{title}: resumes after {finished:,} of {total:,} documents", file=sys.stderr)
        _begun_folders.add(self.output)
        return tqdm(None, title, total, unit="document", initial=finished, disable=None)

    def _process_chunks(
        self,
        work: Callable[[Sequence[Any]], Sequence[BaseModel]],
        chunks: Sequence[Sequence[Any]],
        compact: bool,
    ) -> Iterator[Chunk]:
        if self.ray.workers is None or not chunks:
            # Not ``map``: a StopIteration from a stage would end it silently.
            return (process_chunk(self._parts, work, batch, compact) for batch in chunks)
        method, args = (work.func, work.args) if isinstance(work, partial) else (work, ())
        if getattr(method, "__self__", None) is not self.root:
            raise TypeError(f"{self.name}: {method} is not a method of the run's root")
        of_worker = partial(_process_on_worker, method.__name__, args, type(chunks[0][0]), compact)
        described = [[item.model_dump(mode="json") for item in chunk] for chunk in chunks]
        rows = self.ray.rows(type(self.root), self._described, self.output, of_worker, described)
        return (Chunk(*row) for row in rows)

    def finish(self, results: Sequence[Result], **more: object) -> ResultFile:
        """Write ``results.json``, with ``more`` in its provenance, then delete the journals.

        Write other files before this call.
        """
        file = ResultFile(
            experiment=self.name,
            provenance=build_provenance(self.config, self.inputs)
            | {
                "prompts": self._prompts,
                "models": find_identities(self._parts),
                "usage": self.usage(),
                "code": self.code,
            }
            | {"config_hash": self.key}
            | more,
            results=list(results),
        )
        write_results(self.output / "results.json", file)
        self._delete_partial_files()
        return file

    def usage(self) -> list[dict]:
        """Return one row per language model for all parts, including interrupted runs.

        A row has the ``model`` identity, ``answers`` (new or cached), ``failed`` answers,
        ``prompt_tokens``, ``completion_tokens``, and ``cost`` if prices are set.
        """
        chunks = []
        for journal in self._journals():
            chunks += [usage for _, usage in read_chunks(journal)]
        rows: dict[str, dict] = {}
        for index, model in enumerate(find_writers(self._parts)):
            total: Counter[str] = Counter()
            for chunk in chunks:
                total.update(chunk[index])
            cost = model.cost(total["prompt_tokens"], total["completion_tokens"])
            if total and cost is not None:
                total["cost"] = cost
            described = identity(model)
            name = json.dumps(described, sort_keys=True)
            row = rows.setdefault(name, {"model": described})
            for key, value in total.items():
                row[key] = round(row.get(key, 0) + value, 6)
        return list(rows.values())

    def _judged_pairs(self) -> int:
        return sum(part.judged for part in self._parts if isinstance(part, Engine))

    def _journal(self, part: str) -> Path:
        name = part if re.fullmatch(r"[\w-]{1,40}", part) else sha256_text(part)[:12]
        return self.output / f".{name}.{self.key[:16]}.partial.jsonl"

    def _journals(self) -> list[Path]:
        return sorted(self.output.glob(f".*.{self.key[:16]}.partial.jsonl"))

    def _guard(self) -> None:
        for journal in sorted({*self.output.glob(".*.partial.jsonl")} - {*self._journals()}):
            # An empty journal has no documents of another configuration.
            if journal.stat().st_size and not self._overwrite:
                raise UserError(
                    f"{self.output}: contains an unfinished run of another configuration, other "
                    "documents or other code; pass another --output, or --overwrite to replace it"
                )
            journal.unlink()
        path = self.output / "results.json"
        if not path.is_file():
            return
        file = read_results(path)
        if (file.experiment, file.provenance.get("config_hash")) != (self.name, self.key):
            if self._overwrite:
                path.unlink()
                return
            names = find_differences(file.provenance, self.config, self.inputs, self.code)
            listed = ", ".join(names[:_MAX_NAMED]) + ", …" * (len(names) > _MAX_NAMED)
            raise UserError(
                f"{self.output}: contains the results of another configuration, other documents or "
                + "other code"
                + f" (differing: {listed})" * bool(names)
                + "; pass another --output, or --overwrite to replace them"
            )

    def _delete_partial_files(self) -> None:
        folders = [self.output, *self.output.glob("*/")]  # ``tables`` and ``figures``
        partial_files = [path for folder in folders for path in find_partial_files(folder)]
        for path in {*partial_files, *self._journals()}:
            path.unlink()


def _growing_chunks(documents: Sequence[Any], largest: int) -> Iterator[Sequence[Any]]:
    """Yield chunks of 8, 16, 32 … documents, so that a progress bar moves soon."""
    start, size = 0, min(8, largest)
    while start < len(documents):
        yield documents[start : start + size]
        start, size = start + size, min(2 * size, largest)


def check_ids(path: str, numbered: Iterable[tuple[int, Any]]) -> None:
    """Check that ids are unique in a file, given as (number in the file, document) pairs."""
    numbers: dict[str, int] = {}
    for number, document in numbered:
        first = numbers.setdefault(document.id, number)
        if first != number:
            raise UserError(
                f"{path}: documents {first} and {number}: field 'id': both have {document.id!r}; "
                "make ids unique, or remove the field"
            )


def process_chunk(
    root: object,
    work: Callable[[Sequence[Any]], Sequence[BaseModel]],
    batch: Sequence[Any],
    compact: bool = False,
) -> Chunk:
    """Process one chunk of documents and count the usage of the language models in ``root``.

    ``compact`` omits absent optional fields from the rows.
    """
    models = find_writers(root)
    before = [copy(model.usage) for model in models]
    records = work(batch)
    rows = [_to_json(d.id, record, compact) for d, record in zip(batch, records, strict=True)]
    usage = [model.usage.since(start) for model, start in zip(models, before, strict=True)]
    return Chunk([document.id for document in batch], rows, usage, records)


def _to_json(name: str, record: BaseModel, compact: bool) -> str:
    try:
        row = record.model_dump(mode="json", exclude_none=compact)
    except PydanticSerializationError as error:
        raise UserError(
            f"document {name!r}: cannot be written as JSON: {first_line(error)}; return plain "
            "numbers, strings and lists from the stage that set this field"
        ) from None
    return json.dumps(row, ensure_ascii=False)


def _process_on_worker(
    method: str,
    args: Sequence[Any],
    record: type[BaseModel],
    compact: bool,
    root: object,
    rows: Sequence[dict],
) -> list:
    work = partial(getattr(root, method), *args)
    chunk = process_chunk(root, work, [record.model_validate(row) for row in rows], compact)
    return [chunk.ids, chunk.rows, chunk.usage]
