"""Lengths of the arrays in a NumPy ``.npz`` archive, one member at a time, without loading them.

Kandpal et al. (2211.08411) publish for each corpus which documents name which entity, as one
archive with an array for each of millions of entities. ``numpy.load`` reads the arrays, and
``zipfile`` keeps about a kilobyte for each member; here one member is in memory, and of its array
only the header, which has the length. Nothing is ever unpickled.

Source: PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.3 (zip64); NumPy's NEP 1 (``.npy``).
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from records import BadInput, UserError

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 0xFFFF
_IN_ZIP64, _IN_ZIP64_SHORT = 0xFFFFFFFF, 0xFFFF
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _UTF8 = 0x1, 0x800
# Numpy pads its header to 64 bytes and itself refuses one of more than 10,000.
_HEAD, _LONGEST_HEAD = 192, 10_000
_EXTRA = 64  # room for a member's extra fields, which savez fills with 20 bytes

_DESCR = re.compile(rb"'descr': *'([^']*)'")
_SHAPE = re.compile(rb"'shape': *\((\d+),\)")


@dataclass(frozen=True)
class _Member:
    name: str
    method: int
    packed: int  # bytes in the file
    offset: int  # of its local header


def count_arrays(path: str | Path) -> int:
    """How many members the archive says it has; nothing else is read.

    Raises:
        BadInput: no zip archive.
    """
    with _open(path) as file:
        return _directory(file, path)[0]


def array_lengths(path: str | Path) -> Iterator[tuple[str, int]]:
    """Name and length of each array, in the order of the archive's directory.

    Args:
        path: a file that ``numpy.savez`` or ``numpy.savez_compressed`` wrote, zip64 or not.

    Yields:
        The name as ``numpy.load`` gives it (without ``.npy``), and the number of elements.

    Raises:
        BadInput: the file is cut or no archive, a member is no flat array, or it is one of
            objects, which only ``pickle`` could read.
    """
    with _open(path) as directory, _open(path, buffering=0) as members:
        for member in _members(directory, path):
            head = _head(members, member, path)
            yield member.name.removesuffix(".npy"), _length(head, f"{path}: {member.name}")


def _open(path: str | Path, buffering: int = 1 << 16) -> BinaryIO:
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give a .npz archive of arrays")
    return open(path, "rb", buffering=buffering)


def _directory(file: BinaryIO, path: str | Path) -> tuple[int, int, int]:
    size = file.seek(0, 2)
    start = max(0, size - _END.size - _LONGEST_COMMENT)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise BadInput([f"{path}: no zip archive, or it was cut; fetch it again"])
    _, _, _, _, count, length, offset, _ = _END.unpack_from(tail, at)
    if count == _IN_ZIP64_SHORT or _IN_ZIP64 in (length, offset):
        count, length, offset = _directory64(file, start + at, path) or (count, length, offset)
    if offset + length > size:
        raise BadInput([f"{path}: its directory is not where it says; fetch it again"])
    return count, offset, offset + length


def _directory64(file: BinaryIO, end: int, path: str | Path) -> tuple[int, int, int] | None:
    if end < _LOCATOR.size:
        return None
    file.seek(end - _LOCATOR.size)
    magic, _, offset, _ = _LOCATOR.unpack(file.read(_LOCATOR.size))
    if magic != b"PK\x06\x07":
        return None
    file.seek(offset)
    record = file.read(_END64.size)
    if len(record) < _END64.size or not record.startswith(b"PK\x06\x06"):
        raise BadInput([f"{path}: its zip64 record is not where it says; fetch it again"])
    _, _, _, _, _, _, _, count, length, start = _END64.unpack(record)
    return count, length, start


def _members(file: BinaryIO, path: str | Path) -> Iterator[_Member]:
    count, start, end = _directory(file, path)
    file.seek(start)
    for number in range(count):
        record = file.read(_ENTRY.size)
        if len(record) < _ENTRY.size or not record.startswith(b"PK\x01\x02"):
            raise BadInput([f"{path}: member {number + 1} of {count}: broken; fetch it again"])
        entry = _ENTRY.unpack(record)
        flags, method = entry[3], entry[4]
        packed, whole, offset = entry[8], entry[9], entry[16]
        raw, extra = file.read(entry[10]), file.read(entry[11])
        file.seek(entry[12], 1)  # past the comment
        name = raw.decode("utf-8" if flags & _UTF8 else "cp437", errors="replace")
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
            raise BadInput([f"{path}: {name}: encrypted, or packed otherwise than savez does"])
        if _IN_ZIP64 in (packed, whole, offset):
            packed, offset = _long(extra, packed, whole, offset)
        yield _Member(name, method, packed, offset)
    if file.tell() != end:
        raise BadInput([f"{path}: its directory is longer than its {count} members"])


def _long(extra: bytes, packed: int, whole: int, offset: int) -> tuple[int, int]:
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            longs = iter(struct.unpack_from(f"<{size // 8}Q", extra, at + 4))
            # Only those stand here whose own field is full, in this order.
            _, packed, offset = (
                next(longs, short) if short == _IN_ZIP64 else short
                for short in (whole, packed, offset)
            )
            break
        at += 4 + size
    return packed, offset


def _head(file: BinaryIO, member: _Member, path: str | Path) -> bytes:
    file.seek(member.offset)
    block = file.read(_LOCAL.size + len(member.name.encode()) + _EXTRA + _HEAD)
    if not block.startswith(b"PK\x03\x04") or len(block) < _LOCAL.size:
        raise BadInput([f"{path}: {member.name}: not where the directory says; fetch it again"])
    local = _LOCAL.unpack_from(block)
    data = _LOCAL.size + local[9] + local[10]
    head = _unpacked(block[data : data + member.packed], member, _HEAD, path)
    wanted = _header_end(head)
    if len(head) < wanted <= _LONGEST_HEAD:
        file.seek(member.offset + data)
        # Deflate may make bytes that cannot be packed a little longer.
        raw = file.read(min(member.packed, wanted + 1024))
        head = _unpacked(raw, member, wanted, path)
    return head


def _unpacked(raw: bytes, member: _Member, most: int, path: str | Path) -> bytes:
    if member.method == _STORED:
        return raw[:most]
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, most)
    except zlib.error as error:
        raise BadInput([f"{path}: {member.name}: {error}; fetch it again"]) from None


def _header_end(head: bytes) -> int:
    if len(head) < 12:
        return 12
    if head[6] == 1:
        return 10 + struct.unpack_from("<H", head, 8)[0]
    return 12 + struct.unpack_from("<L", head, 8)[0]


def _length(head: bytes, where: str) -> int:
    end = _header_end(head)
    if not head.startswith(b"\x93NUMPY") or len(head) < end:
        raise BadInput([f"{where}: no NumPy array, or it was cut"])
    descr, shape = _DESCR.search(head, 0, end), _SHAPE.search(head, 0, end)
    if descr is None or b"O" in descr[1]:
        raise BadInput(
            [f"{where}: an array of objects, which only pickle reads; save arrays of numbers"]
        )
    if shape is None:
        raise BadInput([f"{where}: expected a flat array of document numbers"])
    return int(shape[1])
