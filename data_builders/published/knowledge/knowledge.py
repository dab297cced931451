"""``knowledge``: FActScore's knowledge source built anew, from a dump or any texts, with search.

FActScore (2305.14251) checks biographies against one SQLite file of Wikipedia pages. Here the same
file is built from today's dump, from another domain's texts, or from the web pages of
WildHallucinations (2407.17468) and the evidence of ExpertQA (2309.07852), with a full-text index.
``eval/retrieve/knowledge.py`` reads it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from multiprocessing.pool import Pool
from pathlib import Path
from sqlite3 import sqlite_version
from typing import ClassVar, Literal

from tqdm import tqdm

from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import Card, remove_earlier
from data_builders.published.knowledge import domains
from data_builders.published.knowledge.sources import SOURCES, Item, is_dump
from data_builders.published.knowledge.store import Store, content_sha256, count, titles
from data_builders.published.knowledge.wikitext import plain_text
from data_builders.rows import files_of
from eval.retrieve.knowledge import Knowledge
from records import UserError, sha256_file, sha256_text

BATCH = 1000  # items a commit: what a kill loses at most
NOT_PARSED = "page whose wikitext cannot be parsed"


@dataclass
class KnowledgeFile(Builder):
    """A knowledge source as FActScore reads it (SQLite), with a full-text index.

    Args:
        output: folder of the dataset; the file is ``knowledge.db`` in it.
        input: files and folders that are read. Of a folder every file: MediaWiki dumps (``.xml``,
            ``.xml.bz2``), tables with ``title`` and ``text`` (JSONL, Parquet, CSV), and texts
            (``.txt``, ``.md``), whose names are their titles.
        source: ``pages`` for the above; ``wildhallucinations`` and ``expertqa`` for tables of these
            sets; ``labelled`` for texts with labelled claims, whose supported ones are the pages of
            their topics; ``sqlite`` for one file with ``documents(title, text)``, FActScore's, of
            which only the index is made (``knowledge.fts.db``): the file itself is not touched.
        category: only the entities of this ``category`` of WildHallucinations, or the questions of
            this ``metadata.field`` of ExpertQA, in any case; null for all.
        workers: processes that turn wikitext into text; changes the speed, not the result.
        limit: only the first so many items of the input, for a trial.
        seed: has no effect: nothing is drawn.
    """

    input: list[str]
    source: Literal["pages", "wildhallucinations", "expertqa", "labelled", "sqlite"] = "pages"
    workers: int = 1
    category: str | None = field(default=None, kw_only=True)

    reads = ("input",)
    speed = ("workers",)
    least: ClassVar = {"workers": 1}

    def faults(self) -> Iterable[str]:
        if self.source not in SOURCES:
            yield f"source: {self.source}; give one of {', '.join(SOURCES)}"
        if self.category is not None and self.source not in ("wildhallucinations", "expertqa"):
            yield f"category: the pages of {self.source} have none"

    def files(self) -> dict[str, dict[str, str]]:
        own = {"wildhallucinations": "topics", "expertqa": "documents"}.get(self.source)
        split = "test" if own else "train"
        return {kind: {split: f"{kind}.jsonl"} for kind in ("titles", own) if kind}

    def writes(self) -> list[str]:
        return [*super().writes(), self._made_file()]

    def _made_file(self) -> str:
        return "knowledge.fts.db" if self.source == "sqlite" else "knowledge.db"

    def inputs(self) -> list[str]:
        return list(map(str, self._files()))

    def plan(self) -> list[Step]:
        return [
            Step(f"read {self.source} ({path.stat().st_size / 1e6:,.1f} MB)", str(path))
            for path in self._files()
        ]

    def make(self, work: Work) -> Made:
        files = self._files()
        with_pages = self.source != "sqlite"
        made = self.output / self._made_file()
        store = Store(work.resume_path("knowledge.partial.db"), self._key(files), with_pages)
        work.callback(store.close)
        if not store.done:
            self._fill(store, files)
        work.dropped.update(store.dropped)
        empty = with_pages and not count(store.path, "documents")
        if empty and self.category is not None:
            raise UserError(f"category: {self.source} has no page of {self.category!r}")
        if empty and self.source != "expertqa":  # whose answers are of use without a page
            raise UserError(
                f"input: no page is left ({work.dropped_summary()}); give other files, or `source`"
            )
        # The old manifest is of the old file.
        remove_earlier(self.output, (), self.writes(), self.inputs())
        store.finish(made)
        return self._made(files, made, work)

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
        parser = _parser_version() if any(map(is_dump, files)) else None
        own = [(path.name, sha256_file(path)) for path in files]
        asked = () if self.category is None else (self.category.casefold(),)
        return sha256_text(repr((2, self.source, self.limit, BATCH, parser, own, *asked)))

    def _asked(self, item: Item) -> Item:
        if self.category is None or item.category.casefold() == self.category.casefold():
            return item
        return replace(item, drop=domains.OTHER_CATEGORY)

    def _fill(self, store: Store, files: list[Path]) -> None:
        items = map(self._asked, islice(SOURCES[self.source](files), store.position, self.limit))
        bar = tqdm(items, desc="pages", unit=" pages", initial=store.position, disable=None)
        with _pool(self.workers if any(map(is_dump, files)) else 1) as pool:
            for batch in _batches(bar, BATCH):
                store.write(_plain(batch, pool))

    def _made(self, files: list[Path], made: Path, work: Work) -> Made:
        pages = made if self.source != "sqlite" else files[0]
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
        rows: dict[str, Iterable] = {"titles.jsonl": titles(pages)}
        if self.source == "wildhallucinations":
            known = Knowledge(made)
            rows["topics.jsonl"] = domains.topics(files, self.limit, known, work.dropped)
        if self.source == "expertqa":
            rows["documents.jsonl"] = domains.answers(
                files, self.limit, work.dropped, self.category
            )
        card = Card(
            pretty_name=f"Knowledge source ({self.source})",
            license=LICENCES[self.source],
            task_categories=("text-retrieval",),
            tags=("factuality", "knowledge-source", "fact-checking"),
            text=_text(self.source, made.name, database),
        )
        return Made(rows, card, details={"database": database})


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
    "labelled": "other",
}
_MORE = {
    "pages": "",
    "labelled": """
Pages are what labelled texts say truly of a topic, one claim a passage (`words: null`).
""",
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
