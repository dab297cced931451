"""One run: what keys it, guards its folder, resumes it, says what it cost, and ends it.

A run's folder holds one configuration. While it runs, the folder holds a journal a part of the
work (``.PART.KEY.partial.jsonl``), the language models' answers and the pages that were read; when
it is done ``results.json`` is written and the journals go. Whatever is killed goes on from there,
and ends in the same bytes.
"""

from __future__ import annotations

import json
import re
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
from records import (
    Result,
    ResultFile,
    UserError,
    read_results,
    sha256_text,
    write_results,
)
from records.errors import first_line
from records.writing import find_partial_files, lock_folder

R = TypeVar("R", bound=BaseModel)

# Documents that are done and kept together: what a kill loses.
CHUNK = 128
_NAMED = 3  # options and files in which another configuration differs that a message names


class Run:
    """A run of ``score`` or of an experiment; ``with`` it, its folder is nobody else's.

    Args:
        name: ``score``, or the experiment's.
        root: what holds the models and prompts, e.g. the pipeline (``eval/run/parts.py``). Models
            and searchers without a cache get one in ``output``.
        config: what decides the results, by name; files and checkpoints that it names count with
            their content.
        output: the run's folder.
        files: more files that decide the results.
        ray: workers that do documents beside this process.
        described: the options of ``root``, of which each worker makes another one; by default
            ``config``.

    Attributes:
        inputs: SHA-256 of the files and checkpoints that decide the results.
        key: hash of all that decides the results: configuration, prompts, checkpoints, data.
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
    ):
        if isinstance(seed := config.get("seed"), int) and seed < 0:
            raise UserError(f"seed: {seed}; give 0 or more")
        self.name = name
        self.root = root
        # Walked once: what parts load while they work is no part of its own.
        self._parts = find_parts(root)
        self.config = config
        self.output = Path(output)
        self.ray = ray
        self._described = config if described is None else described
        self.inputs = hash_inputs([config, list(files)])
        self._prompts = hash_prompts(self._parts)
        self.key = config_hash([name, config, self._prompts], self.inputs)
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
        """The results, where they are there already with the ``files`` beside them."""
        paths = [self.output / name for name in ("results.json", *files)]
        if not all(path.is_file() for path in paths):
            return None
        self._tidy()
        return read_results(paths[0])

    def is_finished(self) -> bool:
        """Whether the folder holds the results of this very configuration."""
        path = self.output / "results.json"
        return path.is_file() and read_results(path).provenance.get("config_hash") == self.key

    def finished_ids(self, part: str) -> set[str]:
        """Ids of what a killed run had done of a part; reads its journal and changes nothing."""
        path = self._journal(part)
        return {i for ids, _ in read_chunks(path) for i in ids} if path.is_file() else set()

    def process(
        self,
        part: str,
        work: Callable[[Sequence[Any]], Sequence[R]],
        documents: Sequence[Any],
        record: type[R],
        chunk: int = CHUNK,
        file: str | None = None,
    ) -> list[R]:
        """Do documents chunk by chunk; what a killed run had done is not done again.

        Stages batch across the documents of a chunk, and a chunk is what a kill loses. One that was
        cut is done again whole: its answers are kept, and the tokens that it took are then those of
        a run that was never cut.

        Args:
            part: of the run; each has a journal of its own.
            work: takes the documents of a chunk and gives one record each. For workers on Ray it is
                a method of what the run holds, which changes nothing there, or ``partial`` of one
                with JSON values.
            documents: or whatever other records have an ``id``.
            record: the class of the records.
            chunk: documents a chunk.
            file: of the run's folder, to which the journal's rows are copied in the order of the
                documents; rows are then without absent optional fields.

        Returns:
            The records, one a document, in order.
        """
        twice, times = (Counter(d.id for d in documents).most_common(1) or [("", 0)])[0]
        if times > 1:
            raise UserError(f"document id {twice!r} occurs more than once; ids must be unique")
        with Journal(self._journal(part), record) as journal:
            todo = [document for document in documents if document.id not in journal.records]
            there = len(documents) - len(todo)
            bar = tqdm(total=len(documents), initial=there, unit="document", disable=None)
            parts = [todo[start : start + chunk] for start in range(0, len(todo), chunk)]
            for done in self._each(work, parts, file is not None):
                journal.append(done)
                bar.update(len(done.ids))
            bar.close()
            ids = [document.id for document in documents]
            if file is not None:
                journal.copy_rows(ids, self.output / file)
            return [journal.records.pop(name) for name in ids]

    def _each(
        self,
        work: Callable[[Sequence[Any]], Sequence[BaseModel]],
        chunks: Sequence[Sequence[Any]],
        compact: bool,
    ) -> Iterator[Chunk]:
        if self.ray.workers is None or not chunks:
            # No ``map``: a stage's StopIteration would end it, as if there were no more chunks.
            return (process_chunk(self._parts, work, some, compact) for some in chunks)
        method, given = (work.func, work.args) if isinstance(work, partial) else (work, ())
        if getattr(method, "__self__", None) is not self.root:
            raise TypeError(f"{self.name}: {method} is no method of what the run holds")
        of_worker = partial(_of_worker, method.__name__, given, type(chunks[0][0]), compact)
        described = [[one.model_dump(mode="json") for one in chunk] for chunk in chunks]
        rows = self.ray.rows(type(self.root), self._described, self.output, of_worker, described)
        return (Chunk(*row) for row in rows)

    def finish(self, results: Sequence[Result], **more: object) -> ResultFile:
        """Write ``results.json``, then delete the journals; other files are to be there before.

        Args:
            results: in the order of the file.
            more: what else stands once in its provenance.
        """
        file = ResultFile(
            experiment=self.name,
            provenance=build_provenance(self.config, self.inputs)
            | {
                "prompts": self._prompts,
                "models": find_identities(self._parts),
                "usage": self.usage(),
            }
            | {"config_hash": self.key}
            | more,
            results=list(results),
        )
        write_results(self.output / "results.json", file)
        self._tidy()
        return file

    def usage(self) -> list[dict]:
        """What each language model was used for, in all parts so far, killed runs included.

        Returns:
            A row a model: its identity; ``answers`` (new or kept), ``failed`` ones among them,
            ``prompt_tokens``, ``completion_tokens``; ``cost`` where the model has prices. Parts of
            the run that have the same model share a row.
        """
        chunks = []
        for journal in self._journals():
            chunks += [used for _, used in read_chunks(journal)]
        rows: dict[str, dict] = {}
        for place, model in enumerate(find_writers(self._parts)):
            used: Counter[str] = Counter()
            for chunk in chunks:
                used.update(chunk[place])
            cost = model.cost(used["prompt_tokens"], used["completion_tokens"])
            if used and cost is not None:
                used["cost"] = cost
            name = json.dumps(model.identity, sort_keys=True)
            row = rows.setdefault(name, {"model": model.identity})
            for key, value in used.items():
                row[key] = round(row.get(key, 0) + value, 6)
        return list(rows.values())

    def _journal(self, part: str) -> Path:
        name = part if re.fullmatch(r"[\w-]{1,40}", part) else sha256_text(part)[:12]
        return self.output / f".{name}.{self.key[:16]}.partial.jsonl"

    def _journals(self) -> list[Path]:
        return sorted(self.output.glob(f".*.{self.key[:16]}.partial.jsonl"))

    def _guard(self) -> None:
        for other in sorted({*self.output.glob(".*.partial.jsonl")} - {*self._journals()}):
            # A run that ended before its first documents were done left nothing to be mixed.
            if other.stat().st_size:
                raise UserError(
                    f"{self.output}: holds a run of another configuration or other documents that "
                    f"is not finished; give another --output, or delete {other}"
                )
            other.unlink()
        path = self.output / "results.json"
        if not path.is_file():
            return
        file = read_results(path)
        if (file.experiment, file.provenance.get("config_hash")) != (self.name, self.key):
            others = find_differences(file.provenance, self.config, self.inputs)
            named = ", ".join(others[:_NAMED]) + ", …" * (len(others) > _NAMED)
            raise UserError(
                f"{self.output}: holds the results of another configuration or other documents"
                + f" (differing: {named})" * bool(named)
                + f"; give another --output, or delete {path}"
            )

    def _tidy(self) -> None:
        folders = [self.output, *self.output.glob("*/")]  # ``tables`` and ``figures``
        torn = [path for folder in folders for path in find_partial_files(folder)]
        for path in {*torn, *self._journals()}:
            path.unlink()


def check_ids(path: str, numbered: Iterable[tuple[int, Any]]) -> None:
    """See that no two documents of a file have the same id.

    Args:
        path: of the file.
        numbered: the documents, each behind its number in the file.
    """
    seen: dict[str, int] = {}
    for number, document in numbered:
        first = seen.setdefault(document.id, number)
        if first != number:
            raise UserError(
                f"{path}: documents {first} and {number}: id: both have {document.id!r}; give each "
                "its own, or leave the field out"
            )


def process_chunk(
    root: object,
    work: Callable[[Sequence[Any]], Sequence[BaseModel]],
    some: Sequence[Any],
    compact: bool = False,
) -> Chunk:
    """Do a chunk of documents.

    Args:
        root: what holds the language models that the work asks.
        work: takes the documents and gives one record each.
        some: the documents of the chunk.
        compact: leave absent optional fields out of the rows.
    """
    models = find_writers(root)
    before = [copy(model.usage) for model in models]
    records = work(some)
    rows = [_in_json(d.id, row, compact) for d, row in zip(some, records, strict=True)]
    used = [m.usage.since(b) for m, b in zip(models, before, strict=True)]
    return Chunk([document.id for document in some], rows, used, records)


def _in_json(name: str, record: BaseModel, compact: bool) -> str:
    try:
        row = record.model_dump(mode="json", exclude_none=compact)
    except PydanticSerializationError as error:
        raise UserError(
            f"document {name!r}: cannot be kept: {first_line(error)}; a stage put it into a claim, "
            "passage or verdict: let it give Python's own numbers, texts and lists"
        ) from None
    return json.dumps(row, ensure_ascii=False)


def _of_worker(
    method: str,
    given: Sequence[Any],
    record: type[BaseModel],
    compact: bool,
    root: object,
    some: Sequence[dict],
) -> list:
    work = partial(getattr(root, method), *given)
    done = process_chunk(root, work, [record.model_validate(one) for one in some], compact)
    return [done.ids, done.rows, done.usage]
