"""Sources of pages: dumps, tables, folders of texts, FActScore's file, and two other sets.

A source is a stream of :class:`Item` in a fixed order, so an interrupted build can resume by
position.
"""

import bz2
import gzip
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from eval.retrieve.knowledge import SEPARATOR
from records import BadInput, Document, iter_rows, read_records
from records.abstention import responds

TABLES = (".jsonl", ".parquet", ".csv", ".tsv")
TEXTS = (".txt", ".md")
# Templates of disambiguation pages, which the live wiki marks with a page property.
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:[\w -]*\bdisambig\w*(?: page| cleanup)?|desambig\w*|dab|disamb|hndis|geodis|roaddis"
    r"|schooldis|numberdis|mathdab|mil-unit-dis|homonymie|begriffsklärung)\s*(?:\||\}\})"
    r"|__DISAMBIG__",
    re.IGNORECASE,
)
_SECTION = re.compile(r"\[\[[^\]|#]*(#[^\]|]+)")


@dataclass(frozen=True)
class Item:
    """A page, a redirect or a skipped entry of a source."""

    title: str
    text: str = ""
    target: str | None = None  # title of a redirect's target
    drop: str | None = None  # reason to skip the item
    row: int | None = None  # rowid in the source table ``documents``
    wikitext: bool = False
    left_out: int = 0  # sentences of the wikitext
    category: str = ""


def is_dump(path: Path) -> bool:
    """Return whether a file name is a dump's (``x.xml``, ``x.xml.bz2``, ``x.xml-p1p9.bz2``)."""
    return ".xml" in path.name.lower()


def pages(files: Sequence[Path]) -> Iterator[Item]:
    """Read dumps, tables with ``title`` and ``text``, and text files, by file suffix."""
    for path in files:
        suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")
        if is_dump(path):
            yield from dump(path)
        elif suffix in TABLES:
            yield from table(path)
        elif suffix in TEXTS:
            yield Item(path.name.removesuffix(path.suffix), _read_text(path))
        else:
            yield Item(path.name, drop="file of an unsupported type")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput([f"{path}:1: text: not UTF-8 ({error.reason})"]) from None


def table(path: Path) -> Iterator[Item]:
    """Read rows of ``title`` and ``text``; the text may be a list, as in FActScore."""
    for number, row in iter_rows(path, any_text=True):
        text = field(path, number, row, "text", (str, list))
        if isinstance(text, list):
            if not all(isinstance(part, str) for part in text):
                raise BadInput([f"{path}:{number}: text: expected texts in the list"])
            text = " ".join(part.strip() for part in text)
        yield Item(field(path, number, row, "title", str), text)


def field(path: Path, number: int, row: dict, name: str, kind: type | tuple) -> object:
    """Return a field of a row; raise ``BadInput`` if it is missing or of another type."""
    if row.get(name) is None:
        raise BadInput([f"{path}:{number}: {name}: field required"])
    if not isinstance(row[name], kind):
        raise BadInput([f"{path}:{number}: {name}: expected a {_kind_name(kind)}"])
    return row[name]


def _kind_name(kind: type | tuple) -> str:
    names = {str: "text", list: "list", dict: "object"}
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or a ".join(names[k] for k in kinds)


def dump(path: Path) -> Iterator[Item]:
    """Stream the articles and redirects of a MediaWiki XML export."""
    opener: Callable = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix.lower(), open)
    with opener(path, "rb") as file:
        try:
            events = ElementTree.iterparse(file, events=("start", "end"))
            _, root = next(events)
            for event, element in events:
                if event == "end" and _local_name(element) == "page":
                    yield _read_page(element)
                    root.clear()
        except ElementTree.ParseError as error:
            raise BadInput([f"{path}:{error.position[0]}: xml: {error.msg}"]) from None
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput([f"{path}:1: file: cannot be read ({error})"]) from None


def _local_name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _read_page(element: ElementTree.Element) -> Item:
    children = {_local_name(child): child for child in element}
    title = children["title"].text or "" if "title" in children else ""
    if "ns" in children and children["ns"].text != "0":
        return Item(title, drop="page of another namespace")
    revision = {_local_name(child): child for child in children.get("revision", ())}
    text = (revision["text"].text if "text" in revision else None) or ""
    if "redirect" in children:
        section = _SECTION.search(text)
        target = children["redirect"].get("title", "")
        return Item(title, target=f"{target}{section[1].strip()}" if section else target)
    if "model" in revision and revision["model"].text != "wikitext":
        return Item(title, drop="page that is not wikitext")
    if _DISAMBIGUATION.search(text):
        return Item(title, drop="disambiguation page")
    return Item(title, text, wikitext=True)


@contextmanager
def report_bad_types(project: str, path: Path, number: int) -> Iterator[None]:
    """Raise ``BadInput`` if the block fails because a value has another type."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        raise BadInput([f"{path}:{number}: not a row of {project} ({error})"]) from None


def wildhallucinations(files: Sequence[Path]) -> Iterator[Item]:
    """Join the fetched web pages (``info`` with status 200) of each entity to one page."""
    for path in files:
        for number, row in iter_rows(path):
            with report_bad_types("WildHallucinations", path, number):
                category = str(row.get("category") or "")
                entity = field(path, number, row, "entity", str)
                texts, _ = web_pages(path, number, row)
            drop = None if texts else NO_WEB_PAGE
            yield Item(entity, "\n\n".join(texts), drop=drop, category=category)


NO_WEB_PAGE = "entity without a fetched web page"


def web_pages(path: Path, number: int, row: dict) -> tuple[list[str], int]:
    """Return an entity's unique web page texts, and the number not fetched or empty."""
    texts: dict[str, None] = {}
    unavailable = 0
    for info in field(path, number, row, "info", list):
        text = (info.get("text") or "").strip()
        if str(info.get("status_code")) == "200" and text:
            texts[text] = None
        else:
            unavailable += 1
    return list(texts), unavailable


def expertqa(files: Sequence[Path]) -> Iterator[Item]:
    """Join the ``evidence`` of all claims of a question's answers to one page."""
    for path in files:
        for number, row in iter_rows(path):
            pieces: dict[str, None] = {}
            with report_bad_types("ExpertQA", path, number):
                question, category = field(path, number, row, "question", str), area_of(row)
                for answer in field(path, number, row, "answers", dict).values():
                    for claim in (answer or {}).get("claims") or []:
                        pieces |= dict.fromkeys(evidence_of(claim))
            texts = list(pieces)
            drop = None if texts else "question without evidence"
            yield Item(question, "\n\n".join(texts), drop=drop, category=category)


def area_of(row: dict) -> str:
    return str((row.get("metadata") or {}).get("field") or "")


def evidence_of(claim: dict) -> list[str]:
    texts = (text.strip() for text in claim.get("evidence") or [] if isinstance(text, str))
    return list(dict.fromkeys(t for t in texts if t and len(t.split()) > 1))


def labelled(files: Sequence[Path]) -> Iterator[Item]:
    """Build one page per topic from the unique supported claims of labelled texts.

    For topics without an encyclopedia. Each claim is one passage (``words: null`` of
    ``SqliteKnowledge``). The page of a text contains its own supported claims, so it cannot verify
    their labels. Texts that do not respond ("I'm sorry") are skipped.
    """
    claims_by_topic: dict[str, dict[str, None]] = {}
    skipped = []  # yielded after the pages, so that a limit applies to pages
    for path in files:
        for document in read_records(path, Document):
            if not responds(document):
                skipped.append(Item(document.topic, drop="text that does not respond"))
                continue
            topic_claims = claims_by_topic.setdefault(document.topic, {})
            topic_claims |= {c.text: None for c in document.claims or [] if c.label == "S"}
    for topic, claims in claims_by_topic.items():
        yield Item(
            topic,
            f" {SEPARATOR}".join(claims),
            drop=None if claims else "topic without a supported claim",
        )
    yield from skipped


def sqlite(files: Sequence[Path]) -> Iterator[Item]:
    """Read FActScore's file, or any SQLite file with ``documents(title, text)``."""
    (path,) = files
    with sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True) as connection:
        query = "SELECT rowid, title, text FROM documents ORDER BY rowid"
        for row, title, text in connection.execute(query):
            yield Item(title or "", text or "", row=row)


SOURCES: dict[str, Callable[[Sequence[Path]], Iterator[Item]]] = {
    "pages": pages,
    "wildhallucinations": wildhallucinations,
    "expertqa": expertqa,
    "labelled": labelled,
    "sqlite": sqlite,
}
