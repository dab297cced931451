"""Atomic and resumable writing.

Files are written under a temporary name and renamed, so an existing file is complete. The exception
is :class:`LineAppender`, which grows in place and removes a torn last line when opened.
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
from functools import cache
from pathlib import Path
from typing import BinaryIO, Self, TextIO

from pydantic import BaseModel

from records.errors import UserError

# Errors that the user can fix: disk space, permissions, invalid paths.
_USER_ERRNOS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG),
}
_TEMPORARY = "[a-z0-9_]" * 8  # suffix of temporary files
_LARGE_FILE = 1 << 24  # bytes; hashing a smaller file takes milliseconds


@contextmanager
def report_write_errors(path: str | Path) -> Iterator[None]:
    """Convert file system errors of the block into a one-line :class:`UserError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _USER_ERRNOS:
            raise
        # `filename2` is the target of a failed rename.
        name = error.filename2 or error.filename or path
        raise UserError(
            f"{name}: cannot be written ({error.strerror}); free some space or choose "
            "a writable folder"
        ) from None


@contextmanager
def lock_folder(folder: str | Path, option: str = "--output") -> Iterator[None]:
    """Create and lock a folder while the block runs; the lock ends with the process.

    ``option`` is named in the message as the way to select another folder.
    """
    path = Path(folder) / ".lock"
    with report_write_errors(folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _open_lock(path, option)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def _open_lock(path: Path, option: str) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise UserError(
                f"{path.parent}: another process runs in this folder; wait for it or set another "
                f"{option}"
            ) from None
        except OSError:  # a file system without locks
            return lock
        # The previous owner may have deleted the file and a third process recreated it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)


def escape_markdown(text: str) -> str:
    """Escape a text for one line of Markdown: table cells, HTML, links and images."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("](", "]\\(")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def json_line(record: BaseModel | dict) -> str:
    """Serialise a record as one line of JSON in field order, without absent optional fields."""
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json", exclude_none=True)
    return json.dumps(record, ensure_ascii=False)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[TextIO]:
    """Open a text file that replaces ``path`` when the block ends without an error."""
    with atomic_bytes(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield file
        file.flush()


@contextmanager
def atomic_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """As :func:`atomic_file`, for bytes."""
    path = Path(path)
    with report_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # ``mkstemp`` would ignore the umask.
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with report_write_errors(path):
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically."""
    with atomic_file(path) as file:
        file.write(text)


def write_json(path: str | Path, value: object) -> None:
    """Write ``value`` as indented JSON, atomically. Rejects NaN and infinity."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: str | Path, records: Iterable[BaseModel | dict]) -> int:
    """Write one record per line, atomically and streaming, and return the number of records."""
    rows = 0
    with atomic_file(path) as file:
        for rows, record in enumerate(records, 1):  # noqa: B007 (used after the loop)
            file.write(json_line(record) + "\n")
    return rows


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded in UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def find_partial_files(folder: Path, name: str | None = None) -> list[Path]:
    """Find files left by processes killed in :func:`atomic_bytes`, by default of any name."""
    pattern = "?*.?*" if name is None else glob.escape(name)
    return list(folder.glob(f".{pattern}.{_TEMPORARY}"))


def sha256_file(path: str | Path) -> str:
    """Return the hex SHA-256 of a file; a large one that did not change is read once a process."""
    try:
        state = os.stat(path)
        # The time of a change is too coarse to tell two versions of a small file apart.
        if state.st_size < _LARGE_FILE:
            return _digest(path)
        return _digest_once(os.path.abspath(path), state.st_ino, state.st_size, state.st_mtime_ns)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; pass the path of an existing file") from None


@cache
def _digest_once(path: str, *_: int) -> str:
    return _digest(path)


def _digest(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_text(text: str) -> str:
    """Return the hex SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class LineAppender:
    """An append-only file for resumable runs; created with its folder if absent.

    ``append_lines`` writes complete lines and flushes them to disk. A torn last line is removed on
    opening. The file is locked until closed.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        with report_write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab")  # noqa: SIM115 (kept open until close)
        try:
            self._lock()
            end = self._read()
            with report_write_errors(self.path):
                self._file.truncate(end)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{self.path}: another process writes this file; wait for it or set another output"
            ) from None
        except OSError:  # a file system without locks
            pass

    def _read(self) -> int:
        raise NotImplementedError

    def append_lines(self, lines: Iterable[str]) -> None:
        """Write lines and flush them to disk."""
        with report_write_errors(self.path):
            self._file.writelines(f"{line}\n".encode() for line in lines)
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with report_write_errors(self.path):  # retries what a full disk rejected
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_complete_rows(path: str | Path) -> Iterator[tuple[int, dict]]:
    """Yield the rows of a JSONL file up to a torn one, each with its end offset in bytes."""
    end = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
            except ValueError:
                return
            end += len(line)
            yield end, row


class JsonlAppender(LineAppender):
    """A :class:`LineAppender` for rows; ``done`` maps field ``key`` to the rows on disk."""

    def __init__(self, path: str | Path, key: str):
        self.key = key
        self.done: dict[object, dict] = {}
        super().__init__(path)

    def _read(self) -> int:
        end = 0
        for end, row in read_complete_rows(self.path):  # noqa: B007 (used after the loop)
            self.done[row[self.key]] = row
        return end

    def append(self, rows: Iterable[BaseModel | dict]) -> None:
        """Write rows and flush them to disk."""
        lines = [json_line(row) for row in rows]
        self.append_lines(lines)
        self.done.update((row[self.key], row) for row in map(json.loads, lines))
