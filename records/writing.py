"""Atomic and resumable writing.

A file that is there is whole: everything is written beside its place and renamed into it. The one
file that grows in place is a :class:`LineAppender`'s, which repairs a torn last line when opened.
"""

import errno
import fcntl
import glob
import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self, TextIO

from pydantic import BaseModel

from records.errors import UserError

# What the user can fix: space, rights, a path that leads below a file.
_REFUSED = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG),
}
_TEMPORARY = "[a-z0-9_]" * 8  # what ends the name of a file that is being written


@contextmanager
def report_write_errors(path: str | Path) -> Iterator[None]:
    """What the file system refuses while the block writes to ``path``, in a line for the user."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        # Of a file that could not take its place: not the one beside it, which nobody knows of.
        name = error.filename2 or error.filename or path
        raise UserError(
            f"{name}: cannot be written ({error.strerror}); free some space, or give a folder that "
            "you may write to"
        ) from None


@contextmanager
def lock_folder(folder: str | Path, option: str = "--output") -> Iterator[None]:
    """A folder that is nobody else's while the block runs; made where it is not there.

    The lock goes with the process: what a killed one left of it keeps nobody out.

    Args:
        folder: the folder.
        option: by which the user gives another one.
    """
    path = Path(folder) / ".lock"
    with report_write_errors(folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path, option)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def _locked(path: Path, option: str) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # the umask says who else may
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise UserError(
                f"{path.parent}: another process runs in this folder; wait for it, or give another "
                f"{option}"
            ) from None
        except OSError:  # a file system without locks
            return lock
        # Whoever had it may have deleted the file, and a third have made a new one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)


def escape_markdown(text: str) -> str:
    """A text that Markdown shows as it is, in one line: no cell's end, no HTML, link or picture."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("](", "]\\(")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def json_line(record: BaseModel | dict) -> str:
    """One line of JSON with sorted-as-declared keys, without absent optional fields."""
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json", exclude_none=True)
    return json.dumps(record, ensure_ascii=False)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[TextIO]:
    """A text file to write to that takes its place when the block ends without an error."""
    with atomic_bytes(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield file
        file.flush()


@contextmanager
def atomic_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """As :func:`atomic_file`, of bytes."""
    path = Path(path)
    with report_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # No ``mkstemp``: its files are the owner's alone, whatever the umask lets others do.
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with report_write_errors(path):
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old file or the new one."""
    with atomic_file(path) as file:
        file.write(text)


def write_json(path: str | Path, value: object) -> None:
    """Write ``value`` as indented JSON, atomically. NaN and infinity are refused."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: str | Path, records: Iterable[BaseModel | dict]) -> int:
    """Write records one a line, atomically, and return how many there were.

    One record at a time is in memory, so ``records`` may be a generator over millions.
    """
    rows = 0
    with atomic_file(path) as file:
        for rows, record in enumerate(records, 1):  # noqa: B007 (the count is the answer)
            file.write(json_line(record) + "\n")
    return rows


def replace_lone_surrogates(text: str) -> str:
    """A text of which every file takes each character: half a pair of escapes is replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def find_partial_files(folder: Path, name: str | None = None) -> list[Path]:
    """What processes left in a folder that were killed in :func:`atomic_bytes`.

    Args:
        folder: it need not be there.
        name: of the file that was to be written; by default any, with an ending.
    """
    of = "?*.?*" if name is None else glob.escape(name)
    return list(folder.glob(f".{of}.{_TEMPORARY}"))


def sha256_file(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give the path of one that is there") from None
    return digest.hexdigest()


def sha256_text(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class LineAppender:
    """A file that a killed run can go on with.

    Each ``append_lines`` writes whole lines and flushes them to disk. On opening, a torn end
    (killed in the middle of a write) is cut off. Until it is closed, the file is nobody else's.

    Args:
        path: the file; made with its folder when absent.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        with report_write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab")  # noqa: SIM115 (kept open until close)
        try:
            self._lock()
            whole = self._read()
            with report_write_errors(self.path):
                self._file.truncate(whole)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{self.path}: another process writes it; wait for it, or give another output"
            ) from None
        except OSError:  # a file system without locks
            pass

    def _read(self) -> int:
        raise NotImplementedError

    def append_lines(self, lines: Iterable[str]) -> None:
        """Write lines and make them durable before returning."""
        with report_write_errors(self.path):
            self._file.writelines(f"{line}\n".encode() for line in lines)
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; what was appended is on disk already."""
        with report_write_errors(self.path):  # what a full disk did not take is tried again
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_complete_rows(path: str | Path) -> Iterator[tuple[int, dict]]:
    """The rows of a JSONL file up to a torn one, each with the offset of its end in bytes."""
    end = 0
    with open(path, "rb") as file:
        for raw in file:
            if not raw.endswith(b"\n"):
                return
            try:
                row = json.loads(raw)
            except ValueError:
                return
            end += len(raw)
            yield end, row


class JsonlAppender(LineAppender):
    """Rows of a :class:`LineAppender`; ``done`` holds those that are safe.

    Args:
        path: the file; made with its folder when absent.
        key: the field that identifies a row; ``done`` is keyed by it.
    """

    def __init__(self, path: str | Path, key: str):
        self.key = key
        self.done: dict[object, dict] = {}
        super().__init__(path)

    def _read(self) -> int:
        end = 0
        for end, row in read_complete_rows(self.path):  # noqa: B007 (the last one is the answer)
            self.done[row[self.key]] = row
        return end

    def append(self, rows: Iterable[BaseModel | dict]) -> None:
        """Write rows and make them durable before returning."""
        lines = [json_line(row) for row in rows]
        self.append_lines(lines)
        self.done.update((row[self.key], row) for row in map(json.loads, lines))
