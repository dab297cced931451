"""Read the lengths of arrays in a NumPy ``.npz`` archive without loading the arrays.

Kandpal et al. (2211.08411) publish for each corpus one archive with an array of document numbers
for each of millions of entities. Only the directory, about a kilobyte per entity, and the arrays'
headers are read.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from numpy.lib import format as array_format

from records import BadInput, UserError


def count_arrays(path: str | Path) -> int:
    """Return the number of members in the archive's directory."""
    with _open(path) as archive:
        return len(archive.infolist())


def array_lengths(path: str | Path) -> Iterator[tuple[str, int]]:
    """Yield name (without ``.npy``) and length of each array, in the order of the directory.

    Args:
        path: a file written by ``numpy.savez`` or ``numpy.savez_compressed``.

    Raises:
        BadInput: the file is truncated or not an archive, or a member is not a flat array.
    """
    with _open(path) as archive:
        for member in archive.infolist():
            where = f"{path}: {member.filename}"
            try:
                with archive.open(member) as file:
                    is_first = array_format.read_magic(file) == (1, 0)
                    read_header = (
                        array_format.read_array_header_1_0
                        if is_first
                        else array_format.read_array_header_2_0
                    )
                    shape, _, dtype = read_header(file)
            except (BadZipFile, ValueError, EOFError, zlib.error) as error:
                raise BadInput([f"{where}: {error}; download it again"]) from None
            if dtype.hasobject or len(shape) != 1:
                raise BadInput([f"{where}: expected a flat array of document numbers"])
            yield member.filename.removesuffix(".npy"), shape[0]


def _open(path: str | Path) -> ZipFile:
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a .npz archive of arrays")
    try:
        return ZipFile(path)
    except BadZipFile as error:
        raise BadInput([f"{path}: {error}; download it again"]) from None
