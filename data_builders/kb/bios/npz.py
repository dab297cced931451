"""Read the lengths of arrays in a NumPy ``.npz`` archive without loading the arrays.

Kandpal et al. (2211.08411) publish for each corpus one archive with an array of document numbers
for each of millions of entities. ``numpy.load`` reads the arrays, and ``zipfile`` needs about a
kilobyte per member; this reader reads one header at a time. Nothing is unpickled.

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
# Bytes of an .npy header; NumPy refuses headers of more than 10,000.
_HEAD, _LONGEST_HEAD = 192, 10_000
_EXTRA = 64  # upper bound of a member's extra fields; savez writes 20 bytes

_DESCR = re.compile(rb"'descr': *'([^']*)'")
_SHAPE = re.compile(rb"'shape': *\((\d+),\)")


@dataclass(frozen=True)
class _Member:
    name: str
    method: int
    packed: int  # bytes in the file
    offset: int  # of its local header


def count_arrays(path: str | Path) -> int:
    """Return the number of members in the archive's directory."""
    with _open(path) as file:
        return _directory(file, path)[0]


def array_lengths(path: str | Path) -> Iterator[tuple[str, int]]:
    """Yield name (without ``.npy``) and length of each array, in the order of the directory.

    Args:
        path: a file written by ``numpy.savez`` or ``numpy.savez_compressed``, zip64 or not.

    Raises:
        BadInput: the file is truncated or not an archive, or a member is not a flat array.
    """
    with _open(path) as directory, _open(path, buffering=0) as members:
        for member in _members(directory, path):
            head = _read_header(members, member, path)
            yield member.name.removesuffix(".npy"), _array_length(head, f"{path}: {member.name}")


def _open(path: str | Path, buffering: int = 1 << 16) -> BinaryIO:
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a .npz archive of arrays")
    return open(path, "rb", buffering=buffering)


def _directory(file: BinaryIO, path: str | Path) -> tuple[int, int, int]:
    size = file.seek(0, 2)
    start = max(0, size - _END.size - _LONGEST_COMMENT)
    file.seek(start)
    tail = file.read()
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or len(tail) - position < _END.size:
        raise BadInput([f"{path}: not a zip archive, or truncated; download it again"])
    _, _, _, _, count, length, offset, _ = _END.unpack_from(tail, position)
    if count == _IN_ZIP64_SHORT or _IN_ZIP64 in (length, offset):
        count, length, offset = _directory64(file, start + position, path) or (
            count,
            length,
            offset,
        )
    if offset + length > size:
        raise BadInput([f"{path}: wrong directory offset; download it again"])
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
        raise BadInput([f"{path}: wrong zip64 offset; download it again"])
    _, _, _, _, _, _, _, count, length, start = _END64.unpack(record)
    return count, length, start


def _members(file: BinaryIO, path: str | Path) -> Iterator[_Member]:
    count, start, end = _directory(file, path)
    file.seek(start)
    for number in range(count):
        record = file.read(_ENTRY.size)
        if len(record) < _ENTRY.size or not record.startswith(b"PK\x01\x02"):
            raise BadInput([f"{path}: member {number + 1} of {count}: damaged; download it again"])
        entry = _ENTRY.unpack(record)
        flags, method = entry[3], entry[4]
        packed, unpacked, offset = entry[8], entry[9], entry[16]
        raw, extra = file.read(entry[10]), file.read(entry[11])
        file.seek(entry[12], 1)  # past the comment
        name = raw.decode("utf-8" if flags & _UTF8 else "cp437", errors="replace")
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
            raise BadInput([f"{path}: {name}: encrypted, or not compressed by savez"])
        if _IN_ZIP64 in (packed, unpacked, offset):
            packed, offset = _zip64_fields(extra, packed, unpacked, offset)
        yield _Member(name, method, packed, offset)
    if file.tell() != end:
        raise BadInput([f"{path}: directory longer than its {count} members"])


def _zip64_fields(extra: bytes, packed: int, unpacked: int, offset: int) -> tuple[int, int]:
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, position)
        if kind == 1:
            longs = iter(struct.unpack_from(f"<{size // 8}Q", extra, position + 4))
            # Contains only the values whose 32-bit field is full, in this order.
            _, packed, offset = (
                next(longs, short) if short == _IN_ZIP64 else short
                for short in (unpacked, packed, offset)
            )
            break
        position += 4 + size
    return packed, offset


def _read_header(file: BinaryIO, member: _Member, path: str | Path) -> bytes:
    file.seek(member.offset)
    block = file.read(_LOCAL.size + len(member.name.encode()) + _EXTRA + _HEAD)
    if not block.startswith(b"PK\x03\x04") or len(block) < _LOCAL.size:
        raise BadInput([f"{path}: {member.name}: wrong offset in the directory; download it again"])
    local = _LOCAL.unpack_from(block)
    data = _LOCAL.size + local[9] + local[10]
    head = _decompress(block[data : data + member.packed], member, _HEAD, path)
    size = _header_end(head)
    if len(head) < size <= _LONGEST_HEAD:
        file.seek(member.offset + data)
        # Deflate may enlarge incompressible bytes slightly.
        raw = file.read(min(member.packed, size + 1024))
        head = _decompress(raw, member, size, path)
    return head


def _decompress(raw: bytes, member: _Member, size: int, path: str | Path) -> bytes:
    if member.method == _STORED:
        return raw[:size]
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, size)
    except zlib.error as error:
        raise BadInput([f"{path}: {member.name}: {error}; download it again"]) from None


def _header_end(head: bytes) -> int:
    if len(head) < 12:
        return 12
    if head[6] == 1:
        return 10 + struct.unpack_from("<H", head, 8)[0]
    return 12 + struct.unpack_from("<L", head, 8)[0]


def _array_length(head: bytes, where: str) -> int:
    end = _header_end(head)
    if not head.startswith(b"\x93NUMPY") or len(head) < end:
        raise BadInput([f"{where}: not a NumPy array, or truncated"])
    descr, shape = _DESCR.search(head, 0, end), _SHAPE.search(head, 0, end)
    if descr is None or b"O" in descr[1]:
        raise BadInput([f"{where}: array of objects; save arrays of numbers"])
    if shape is None:
        raise BadInput([f"{where}: expected a flat array of document numbers"])
    return int(shape[1])
