"""Rows of other people's files and of the Hub's datasets, one at a time, whatever their format.

A source is the path of a file (JSONL, CSV, TSV, Parquet, each but Parquet also packed with gzip,
or a tab-separated ``.txt`` as SICK's and SNLI's), or ``hub:OWNER/NAME`` with an optional
configuration and split: ``hub:nyu-mll/glue#mnli:validation_matched``. Only what starts with
``hub:`` is ever looked for on the network.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from records import UserError, iter_rows

HUB = "hub:"


def source_rows(source: str) -> Iterator[tuple[str, dict]]:
    """The rows of a source, each with where it stands (``file:line``).

    Raises:
        BadInput: a row that cannot be read.
    """
    if source.startswith(HUB):
        yield from _hub_rows(source)
        return
    for number, row in iter_rows(source):
        yield f"{source}:{number}", row


def source_name(source: str) -> str:
    """What a manifest calls a source: the Hub's name, a URL, or the file's without its folder."""
    return Path(source).name if is_local(source) else source


def is_local(source: str) -> bool:
    """Whether a source is a file of this machine."""
    return not source.startswith(HUB) and "://" not in source


def files_of(paths: Sequence[str]) -> list[Path]:
    """The files of paths; those of a folder sorted, hidden ones left out."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            own = [p for p in path.rglob("*") if p.is_file()]
            own = [p for p in own if not any(s[0] == "." for s in p.relative_to(path).parts)]
            if not own:
                raise UserError(f"{path}: the folder holds no files")
            found += sorted(own, key=lambda p: p.relative_to(path).as_posix())
        elif path.is_file():
            found.append(path)
        else:
            raise UserError(f"{path}: no such file or folder")
    return found


def _hub_rows(source: str) -> Iterator[tuple[str, dict]]:
    from datasets import load_dataset

    name, _, split = source.removeprefix(HUB).partition(":")
    name, _, config = name.partition("#")
    try:
        rows = load_dataset(name, config or None, split=split or "train", streaming=True)
    except Exception as error:  # the library raises a dozen kinds for a name, a split, a network
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{source}: the Hub gives no such rows ({reason}); "
            "give hub:OWNER/NAME#CONFIG:SPLIT, or the path of a file"
        ) from None
    for number, row in enumerate(rows, 1):
        yield f"{source}:{number}", row
