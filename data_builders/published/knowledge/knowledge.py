"""``knowledge``: build a knowledge source in FActScore's format, with a full-text index.

FActScore (2305.14251) verifies biographies with a SQLite file of Wikipedia pages. This builder
makes such a file from a current dump, other texts, the web pages of WildHallucinations (2407.17468)
or the evidence of ExpertQA (2309.07852). ``eval/retrieve/knowledge.py`` reads it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from multiprocessing.pool import Pool
from pathlib import Path
from sqlite3 import sqlite_version
from typing import ClassVar, Literal

from tqdm import tqdm

from components.words import name_key
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card, read_card, remove_earlier
from data_builders.published.knowledge import domains
from data_builders.published.knowledge.page_sources import SOURCES, Item, is_dump
from data_builders.published.knowledge.page_store import Store, content_sha256, count, titles
from data_builders.published.knowledge.wikitext import plain_text
from data_builders.rows import files_of
from eval.retrieve.knowledge import Knowledge
from records import UserError, sha256_file, sha256_text

BATCH = 1000  # items per commit, the most that an interruption loses
NOT_PARSED = "page whose wikitext cannot be parsed"


@dataclass
class KnowledgeFile(Builder):
    """A knowledge source in FActScore's format (SQLite), with a full-text index.

    Args:
        output: folder of the dataset; the database is ``knowledge.db`` in it.
        input: files, or folders with files: MediaWiki dumps (``.xml``, ``.xml.bz2``), tables with
            ``title`` and ``text`` (JSONL, Parquet, CSV), and texts (``.txt``, ``.md``), whose file
            names are their titles.
        source: ``pages`` for the above; ``wildhallucinations`` and ``expertqa`` for tables of these
            sets; ``labelled`` for texts with labelled claims, whose supported claims become the
            page of their topic; ``sqlite`` for one file with ``documents(title, text)``, to build
            only its index (``knowledge.fts.db``) without changing the file.
        category: use only entities of this ``category`` of WildHallucinations, or questions of this
            ``metadata.field`` of ExpertQA, ignoring case; null uses all.
        in_wikipedia: topics are only entities of WildHallucinations whose ``wiki`` is 1.
        workers: processes that convert wikitext; changes the speed only.
        seed: has no effect: nothing is random.
    """

    input: list[str]
    source: Literal["pages", "wildhallucinations", "expertqa", "labelled", "sqlite"] = "pages"
    workers: int = 1
    category: str | None = field(default=None, kw_only=True)
    in_wikipedia: bool = field(default=False, kw_only=True)

    reads = ("input",)
    speed = ("workers",)
    least: ClassVar = {"workers": 1}

    def faults(self) -> Iterable[str]:
        if self.source not in SOURCES:
            yield f"source: expected one of {', '.join(SOURCES)}, got {self.source}"
        if self.category is not None and self.source not in ("wildhallucinations", "expertqa"):
            yield f"category: source {self.source} has no categories"
        if self.in_wikipedia and self.source != "wildhallucinations":
            yield f"in_wikipedia: source {self.source} does not say it of its topics"

    def files(self) -> dict[str, dict[str, str]]:
        extra = {"wildhallucinations": "topics", "expertqa": "documents"}.get(self.source)
        split = "test" if extra else "train"
        return {kind: {split: f"{kind}.jsonl"} for kind in ("titles", extra) if kind}

    def writes(self) -> list[str]:
        return [*super().writes(), self._made_file()]

    def _made_file(self) -> str:
        return "knowledge.fts.db" if self.source == "sqlite" else "knowledge.db"

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
        if empty and self.source != "expertqa":  # its answers are useful without pages
            raise UserError(f"input: no page left ({work.dropped_summary()}); check `source`")
        remove_earlier(self.output, (), self.writes(), self.inputs())
        store.finish(made)
        return self._made(files, made, work)

    def _files(self) -> list[Path]:
        files = files_of(self.input)
        if self.source == "sqlite":
            if len(files) != 1:
                raise UserError(f"input: source sqlite expects one file, got {len(files)}")
            Knowledge(files[0])  # validates the file
        if self.source == "pages" and any(map(is_dump, files)):
            _parser_version()
        return files

    def _key(self, files: list[Path]) -> str:
        parser = _parser_version() if any(map(is_dump, files)) else None
        hashes = [(path.name, sha256_file(path)) for path in files]
        category = () if self.category is None else (name_key(self.category),)
        return sha256_text(repr((4, self.source, self.limit, BATCH, parser, hashes, *category)))

    def _mark_other_category(self, item: Item) -> Item:
        if self.category is None or name_key(item.category) == name_key(self.category):
            return item
        return replace(item, drop=domains.OTHER_CATEGORY)

    def _fill(self, store: Store, files: list[Path]) -> None:
        rows = islice(SOURCES[self.source](files), store.position, self.limit)
        items = map(self._mark_other_category, rows)
        bar = iter(tqdm(items, desc="pages", unit=" pages", initial=store.position, disable=None))
        parallel = self.workers > 1 and any(map(is_dump, files))
        context = multiprocessing.get_context("spawn")
        with context.Pool(self.workers) if parallel else nullcontext() as pool:
            while batch := list(islice(bar, BATCH)):
                store.write(_convert(batch, pool))

    def _made(self, files: list[Path], made: Path, work: Work) -> Made:
        pages = made if self.source != "sqlite" else files[0]
        database = {
            "file": made.name,
            "documents": count(pages, "documents"),
            # SQLite writes its version into the file: bytes are equal for equal versions.
            "sqlite": sqlite_version,
            "sha256": sha256_file(made),
        }
        if self.source != "sqlite":
            database["redirects"] = count(made, "redirects")
            database["content_sha256"] = content_sha256(made)
        rows: dict[str, Iterable] = {"titles.jsonl": titles(pages)}
        if self.source == "wildhallucinations":
            pages_by_title = Knowledge(made)
            rows["topics.jsonl"] = domains.topics(
                files, self.limit, pages_by_title, self.in_wikipedia, work.dropped
            )
        if self.source == "expertqa":
            rows["documents.jsonl"] = domains.answers(
                files, self.limit, work.dropped, self.category
            )
        card = _card(self.source, made.name, database)
        return Made(rows, card, details={"database": database})


def _convert(batch: list[Item], pool: Pool | None) -> list[Item]:
    raw = [item.text for item in batch if item.wikitext]
    texts = iter(pool.map(plain_text, raw, chunksize=16) if pool else map(plain_text, raw))
    plain = []
    for item in batch:
        if item.wikitext:
            text, left_out = next(texts)
            drop = NOT_PARSED if text is None else item.drop
            item = replace(item, text=text or "", drop=drop, left_out=left_out)
        plain.append(item)
    return plain


def _parser_version() -> str:
    try:
        return version("mwparserfromhell")
    except PackageNotFoundError:
        raise UserError(
            "reading a dump needs mwparserfromhell; run `pip install mwparserfromhell`"
        ) from None


_FILES_TEXT = {
    "labelled": """
Pages are the supported claims of labelled texts, one claim per passage (`words: null`).
""",
    "wildhallucinations": """
- `topics.jsonl`: the entities that have a page (`topic`, `group`: the category, `wiki`: 1 if in
  Wikipedia, `perplexity`, `pages`: number of web pages), as topics of texts to score.
""",
    "expertqa": """
- `documents.jsonl`: the answers to the experts' questions as documents to score, with the claims
  of the set. Labels are the experts' judgements of `correctness` (definitely or probably correct:
  S; likely or definitely incorrect: NS; unsure: none); `support` is kept. Passages are the pieces
  of evidence, `contexts` those of the claim.
""",
}


def _card(source: str, name: str, database: dict) -> Card:
    pages = (
        f"a SQLite file with the table `documents(title, text)` ({database['documents']:,} pages)"
        if source != "sqlite"
        else f"the full-text index of a file with {database['documents']:,} pages"
    )
    return read_card(
        "knowledge",
        source=source,
        licence="mit" if source == "expertqa" else "other",
        name=name,
        pages=pages,
        files=_FILES_TEXT.get(source, "").strip(),
    )
