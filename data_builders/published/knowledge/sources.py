"""Where pages come from: dumps, tables, folders of texts, FActScore's file, two domains.

Every source is a stream of :class:`Item` in an order that only its files decide, so a killed build
can skip what it has.
"""

import bz2
import gzip
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from eval.retrieve.knowledge import SEPARATOR
from records import BadInput, Document, iter_rows, read_records
from records.abstention import responds

TABLES = (".jsonl", ".parquet", ".csv", ".tsv")
TEXTS = (".txt", ".md")


@dataclass(frozen=True)
class Item:
    """Something that a source holds.

    Attributes:
        title: the page's title.
        text: its text; wikitext where ``wikitext`` says so.
        target: of a redirect, the title of the page that it leads to.
        drop: why it is no page, where it is none.
        row: its row in the table ``documents`` that it comes from.
        category: what the set says that it is of.
    """

    title: str
    text: str = ""
    target: str | None = None
    drop: str | None = None
    row: int | None = None
    wikitext: bool = False
    category: str = ""


def is_dump(path: Path) -> bool:
    """Whether a file is a dump, by its name (``x.xml``, ``x.xml.bz2``, ``x.xml-p1p9.bz2``)."""
    return ".xml" in path.name.lower()


def pages(files: Sequence[Path]) -> Iterator[Item]:
    """Dumps, tables with ``title`` and ``text``, and single texts, each by its file's suffix."""
    for path in files:
        suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")
        if is_dump(path):
            yield from dump(path)
        elif suffix in TABLES:
            yield from table(path)
        elif suffix in TEXTS:
            yield Item(path.name.removesuffix(path.suffix), _read(path))
        else:
            yield Item(path.name, drop="file of a kind that is not read")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput([f"{path}:1: text: not UTF-8 ({error.reason})"]) from None


def table(path: Path) -> Iterator[Item]:
    """Rows of ``title`` and ``text``; FActScore's own have a list of texts."""
    for number, row in iter_rows(path, any_text=True):
        text = field(path, number, row, "text", (str, list))
        if isinstance(text, list):
            if not all(isinstance(part, str) for part in text):
                raise BadInput([f"{path}:{number}: text: expected texts in the list"])
            text = " ".join(part.strip() for part in text)
        yield Item(field(path, number, row, "title", str), text)


def field(path: Path, number: int, row: dict, name: str, kind: type | tuple) -> object:
    """A row's field of a type.

    Raises:
        BadInput: it is not there or of another type.
    """
    if row.get(name) is None:
        raise BadInput([f"{path}:{number}: {name}: field required"])
    if not isinstance(row[name], kind):
        raise BadInput([f"{path}:{number}: {name}: not a {_named(kind)}"])
    return row[name]


def _named(kind: type | tuple) -> str:
    names = {str: "text", list: "list", dict: "object"}
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or a ".join(names[k] for k in kinds)


def dump(path: Path) -> Iterator[Item]:
    """Articles and redirects of a MediaWiki XML export; one page at a time is in memory."""
    with _open(path) as file:
        try:
            events = ElementTree.iterparse(file, events=("start", "end"))
            _, root = next(events)
            for event, element in events:
                if event == "end" and _local(element) == "page":
                    yield _page(element)
                    root.clear()
        except ElementTree.ParseError as error:
            raise BadInput([f"{path}:{error.position[0]}: xml: {error.msg}"]) from None
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput([f"{path}:1: file: cannot be read ({error})"]) from None


def _open(path: Path) -> BinaryIO:
    opener: Callable = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix.lower(), open)
    return opener(path, "rb")


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _page(element: ElementTree.Element) -> Item:
    own = {_local(child): child for child in element}
    title = own["title"].text or "" if "title" in own else ""
    if "ns" in own and own["ns"].text != "0":
        return Item(title, drop="page that is no article (another namespace)")
    if "redirect" in own:
        return Item(title, target=own["redirect"].get("title", ""))
    revision = {_local(child): child for child in own.get("revision", ())}
    if "model" in revision and revision["model"].text != "wikitext":
        return Item(title, drop="page that is not wikitext")
    text = revision["text"].text if "text" in revision else None
    return Item(title, text or "", wikitext=True)


@contextmanager
def as_written(project: str, path: Path, number: int) -> Iterator[None]:
    """What the block reads of a row.

    Raises:
        BadInput: something in it is of another type than its project writes.
    """
    try:
        yield
    except (AttributeError, TypeError) as error:
        said = f"row: not as {project} writes it ({error})"
        raise BadInput([f"{path}:{number}: {said}"]) from None


def wildhallucinations(files: Sequence[Path]) -> Iterator[Item]:
    """An entity's web pages as one page: those of ``info`` that were fetched (status 200)."""
    for path in files:
        for number, row in iter_rows(path):
            with as_written("WildHallucinations", path, number):
                category = str(row.get("category") or "")
                entity = field(path, number, row, "entity", str)
                texts, _ = web_pages(path, number, row)
            drop = None if texts else NO_WEB_PAGE
            yield Item(entity, "\n\n".join(texts), drop=drop, category=category)


NO_WEB_PAGE = "entity of which no web page was fetched"


def web_pages(path: Path, number: int, row: dict) -> tuple[list[str], int]:
    """The texts of an entity's web pages, each once, and how many were not fetched or empty."""
    texts: dict[str, None] = {}
    lost = 0
    for info in field(path, number, row, "info", list):
        text = (info.get("text") or "").strip()
        if str(info.get("status_code")) == "200" and text:
            texts[text] = None
        else:
            lost += 1
    return list(texts), lost


def expertqa(files: Sequence[Path]) -> Iterator[Item]:
    """A question's evidence as one page: what stands in ``evidence`` of any answer's claims."""
    for path in files:
        for number, row in iter_rows(path):
            found: dict[str, None] = {}
            with as_written("ExpertQA", path, number):
                question, category = field(path, number, row, "question", str), area_of(row)
                for answer in field(path, number, row, "answers", dict).values():
                    for claim in (answer or {}).get("claims") or []:
                        found |= dict.fromkeys(evidence_of(claim))
            texts = list(found)
            drop = None if texts else "question without evidence"
            yield Item(question, "\n\n".join(texts), drop=drop, category=category)


def area_of(row: dict) -> str:
    """The field of a question of ExpertQA, e.g. ``Healthcare / Medicine``."""
    return str((row.get("metadata") or {}).get("field") or "")


def evidence_of(claim: dict) -> list[str]:
    """A claim's pieces of evidence, each once; bare web addresses are no evidence one can read."""
    texts = (text.strip() for text in claim.get("evidence") or [] if isinstance(text, str))
    return list(dict.fromkeys(t for t in texts if t and len(t.split()) > 1))


def labelled(files: Sequence[Path]) -> Iterator[Item]:
    """What labelled texts say truly of a topic as its page: their supported claims, each once.

    Where no encyclopedia is at hand, texts are judged by what is known to be true of the topic; a
    claim is a passage of its own (``words: null`` of ``SqliteKnowledge``). A text's own supported
    claims are on the page as well, so it is no evidence on whether their labels are right. What a
    text says that gives up on its topic ("I'm sorry") is true of the text alone.
    """
    found: dict[str, dict[str, None]] = {}
    others = []  # behind the pages, so that a limit is of pages
    for path in files:
        for document in read_records(path, Document):
            if not responds(document):
                others.append(Item(document.topic, drop="text that does not respond"))
                continue
            own = found.setdefault(document.topic, {})
            own |= {c.text: None for c in document.claims or [] if c.label == "S"}
    for topic, claims in found.items():
        yield Item(
            topic,
            f" {SEPARATOR}".join(claims),
            drop=None if claims else "topic without a supported claim",
        )
    yield from others


def sqlite(files: Sequence[Path]) -> Iterator[Item]:
    """The pages of FActScore's file, or any with ``documents(title, text)``."""
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
