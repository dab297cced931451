"""``knowledge``: FActScore's knowledge source built anew, from a dump or any texts, with search.

FActScore (2305.14251) checks biographies against one SQLite file of Wikipedia pages. Here the same
file is built from today's dump, from another domain's texts, or from the web pages of
WildHallucinations (2407.17468) and the evidence of ExpertQA (2309.07852), with a full-text index.
``eval/retrieve/knowledge.py`` reads it.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from multiprocessing.pool import Pool
from pathlib import Path
from sqlite3 import sqlite_version
from typing import Literal

from tqdm import tqdm

from data_builders.dataset import Card, write_dataset
from data_builders.plan import Step
from data_builders.published.knowledge import domains
from data_builders.published.knowledge.sources import SOURCES, Item, files_of, is_dump
from data_builders.published.knowledge.store import Store, content_sha256, count, titles
from data_builders.published.knowledge.wikitext import plain_text
from eval.retrieve.knowledge import Knowledge
from records import UserError, sha256_file, sha256_text

BATCH = 1000  # items a commit: what a kill loses at most
NOT_PARSED = "page whose wikitext cannot be parsed"


class KnowledgeFile:
    """A knowledge source as FActScore reads it (SQLite), with a full-text index.

    Args:
        output: folder of the dataset; the file is ``knowledge.db`` in it.
        input: files and folders that are read. Of a folder every file: MediaWiki dumps (``.xml``,
            ``.xml.bz2``), tables with ``title`` and ``text`` (JSONL, Parquet, CSV), and texts
            (``.txt``, ``.md``), whose names are their titles.
        source: ``pages`` for the above; ``wildhallucinations`` and ``expertqa`` for tables of these
            sets; ``sqlite`` for one file with ``documents(title, text)``, FActScore's, of which
            only the index is made (``knowledge.fts.db``): the file itself is not touched.
        workers: processes that turn wikitext into text; changes the speed, not the result.
        limit: only the first so many items of the input, for a trial.
        seed: has no effect: nothing is drawn.

    Raises:
        UserError: an input that is not there, several files for ``sqlite``, a dump without the
            package that parses it.
    """

    def __init__(
        self,
        output: Path,
        input: list[str],
        source: Literal["pages", "wildhallucinations", "expertqa", "sqlite"] = "pages",
        workers: int = 1,
        limit: int | None = None,
        seed: int = 0,
    ):
        if source not in SOURCES:
            raise UserError(f"source: {source}; give one of {', '.join(SOURCES)}")
        if workers < 1 or (limit is not None and limit < 1):
            raise UserError("workers and limit: give at least 1")
        if not input:
            raise UserError("input: give at least one file or folder")
        self.output = Path(output)
        self.input = input
        self.source = source
        self.workers = workers
        self.limit = limit
        self.seed = seed

    def plan(self) -> list[Step]:
        """What is read; the number of pages is known only afterwards."""
        return [
            Step(f"read {self.source} ({path.stat().st_size / 1e6:,.1f} MB)", str(path))
            for path in self._files()
        ]

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes."""
        more = {"wildhallucinations": ["topics.jsonl"], "expertqa": ["documents.jsonl"]}
        return ["titles.jsonl", *more.get(self.source, [])]

    def build(self) -> Path:
        """Build the file, or go on with it; returns the manifest's path."""
        files = self._files()
        with_pages = self.source != "sqlite"
        made = self.output / ("knowledge.db" if with_pages else "knowledge.fts.db")
        store = Store(self.output / ".knowledge.partial.db", self._key(files), with_pages)
        try:
            if not store.done:
                self._fill(store, files)
            store.finish(made)
            manifest = self._write(files, made, store)
        finally:
            store.close()
        store.remove()
        return manifest

    def _files(self) -> list[Path]:
        files = files_of(self.input)
        if self.source == "sqlite":
            if len(files) != 1:
                raise UserError(f"input: {len(files)} files; source sqlite takes one")
            Knowledge(files[0])  # says what is wrong with it
        if self.source == "pages" and any(map(is_dump, files)):
            _parser_version()
        return files

    def _key(self, files: list[Path]) -> str:
        """What the growing file depends on; files by name and size, their hashes come later."""
        parser = _parser_version() if any(map(is_dump, files)) else None
        own = [(path.name, path.stat().st_size) for path in files]
        return sha256_text(repr((1, self.source, self.limit, BATCH, parser, own)))

    def _fill(self, store: Store, files: list[Path]) -> None:
        items = islice(SOURCES[self.source](files), store.position, self.limit)
        bar = tqdm(items, desc="pages", unit=" pages", initial=store.position, disable=None)
        with _pool(self.workers if any(map(is_dump, files)) else 1) as pool:
            for batch in _batches(bar, BATCH):
                store.write(_plain(batch, pool))

    def _write(self, files: list[Path], made: Path, store: Store) -> Path:
        pages = made if self.source != "sqlite" else files[0]
        dropped = Counter(store.dropped)
        database = {
            "file": made.name,
            "documents": count(pages, "documents"),
            # SQLite writes its version into the file, so the bytes are equal where it is.
            "sqlite": sqlite_version,
            "sha256": sha256_file(made),
        }
        if self.source != "sqlite":
            database["redirects"] = count(made, "redirects")
            database["content_sha256"] = content_sha256(made)
        names = {"titles": "titles.jsonl"}
        rows: dict[str, Iterable] = {"titles.jsonl": titles(pages)}
        if self.source == "wildhallucinations":
            names["topics"] = "topics.jsonl"
            rows["topics.jsonl"] = domains.topics(files, self.limit, Knowledge(made), dropped)
        if self.source == "expertqa":
            names["documents"] = "documents.jsonl"
            rows["documents.jsonl"] = domains.answers(files, self.limit, dropped)
        split = "train" if self.source in {"pages", "sqlite"} else "test"
        return write_dataset(
            self.output,
            rows,
            declared=self.writes(),
            card=Card(
                pretty_name=f"Knowledge source ({self.source})",
                configs={name: {split: path} for name, path in names.items()},
                license=LICENCES[self.source],
                task_categories=("text-retrieval",),
                tags=("factuality", "knowledge-source", "fact-checking"),
                text=_text(self.source, made.name, database),
            ),
            clients=[],
            dropped=dropped,
            config={"source": self.source, "limit": self.limit, "database": database},
            seed=self.seed,
            inputs=files,
        )


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    items = iter(items)
    while batch := list(islice(items, size)):
        yield batch


def _pool(workers: int) -> Pool | _Here:
    return multiprocessing.get_context("spawn").Pool(workers) if workers > 1 else _Here()


class _Here:
    """Stands for a pool where one process is enough."""

    map = staticmethod(lambda function, values, chunksize: [function(v) for v in values])

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _plain(batch: list[Item], pool: Pool | _Here) -> list[Item]:
    """The batch with its wikitext turned into text."""
    raw = [item.text for item in batch if item.wikitext]
    texts = iter(pool.map(plain_text, raw, chunksize=16))
    plain = []
    for item in batch:
        if item.wikitext:
            text = next(texts)
            drop = NOT_PARSED if text is None else item.drop
            item = replace(item, text=text or "", drop=drop)
        plain.append(item)
    return plain


def _parser_version() -> str:
    try:
        return version("mwparserfromhell")
    except PackageNotFoundError:
        raise UserError(
            "a dump needs mwparserfromhell to read it; run `pip install mwparserfromhell`"
        ) from None


LICENCES = {
    "pages": "other",
    "sqlite": "other",
    "wildhallucinations": "other",
    "expertqa": "mit",
}
_MORE = {
    "pages": "",
    "sqlite": "",
    "wildhallucinations": """
- `topics.jsonl`: the entities that have a page (`topic`, `category`, `wiki`: 1 where Wikipedia has
  them, `perplexity`, `pages`: how many web pages), to generate texts about and score them.
""",
    "expertqa": """
- `documents.jsonl`: the answers to the experts' questions as documents to be scored. Claims are
  those of the set; their label is the experts' judgement of `correctness` (definitely or probably
  correct: S; likely or definitely incorrect: NS; unsure: none), and `support` is kept beside it.
  Passages are the pieces of evidence, `contexts` those of the claim.
""",
}


def _text(source: str, name: str, database: dict) -> str:
    pages = (
        f"a SQLite file with the table `documents(title, text)` ({database['documents']:,} pages)"
        if source != "sqlite"
        else f"the full-text index of a file with {database['documents']:,} pages"
    )
    return f"""\
Pages to check texts against, as FActScore keeps them.

- `{name}`: {pages}; the full-text index is the table `documents_fts` (FTS5). Titles of redirects
  lead to their pages by the table `redirects`.
- `titles.jsonl`: the titles and how many words their texts have.
{_MORE[source].strip()}

Read it with `eval.retrieve.knowledge.Knowledge`, or name it in a pipeline as
`eval.retrieve.knowledge.SqliteKnowledge`. `database.content_sha256` in the manifest is over the
sorted titles and the hashes of their texts.

What the pages say is taken for true by those who use this set; it is as right, as complete and as
dated as its source. Do not use it to train what is then judged against it. The licence of the texts
is their source's (Wikipedia: CC BY-SA 4.0).
"""
