"""Read rows of third-party files and Hub datasets in any supported format.

A source is the path of a file (JSONL, CSV, TSV or Parquet, all but Parquet also gzipped, or a
tab-separated ``.txt`` like SICK's and SNLI's), a folder of such files, or ``hub:OWNER/NAME`` with
an optional configuration and split: ``hub:nyu-mll/glue#mnli:validation_matched``. Only ``hub:``
sources use the network.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from records import UserError, iter_rows
from records.reading import name_classes

HUB = "hub:"


def source_rows(source: str) -> Iterator[tuple[str, dict]]:
    """Yield the rows of a source with their location (``file:line``)."""
    if source.startswith(HUB):
        yield from _hub_rows(source)
        return
    for path in files_of([source]):
        for number, row in iter_rows(path):
            yield f"{path}:{number}", row


def source_name(source: str) -> str:
    """Return a source's name for the manifest: Hub name, URL, or file name without folder."""
    return Path(source).name if is_local(source) else source


def is_local(source: str) -> bool:
    """Whether a source is a local file."""
    return not source.startswith(HUB) and "://" not in source


def files_of(paths: Iterable[str]) -> list[Path]:
    """List files; folders are expanded in sorted order without hidden files.

    All missing paths are reported in one error.
    """
    places = list(map(Path, paths))
    missing = [f"{path}: no such file or folder" for path in places if not path.exists()]
    if missing:
        raise UserError("\n".join(missing))
    files: list[Path] = []
    for path in places:
        if path.is_dir():
            members = [
                member
                for member in path.rglob("*")
                if member.is_file() and not any(s[0] == "." for s in member.relative_to(path).parts)
            ]
            if not members:
                raise UserError(f"{path}: the folder contains no files")
            files += sorted(members, key=lambda member: member.relative_to(path).as_posix())
        else:
            files.append(path)
    return files


def _hub_rows(source: str) -> Iterator[tuple[str, dict]]:
    from datasets import ClassLabel, load_dataset

    name, _, split = source.removeprefix(HUB).partition(":")
    name, _, config = name.partition("#")
    try:
        rows = load_dataset(name, config or None, split=split or "train", streaming=True)
    except Exception as error:  # the library raises many kinds
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{source}: cannot load from the Hub ({reason}); "
            "expected hub:OWNER/NAME#CONFIG:SPLIT, or the path of a file"
        ) from None
    features = (rows.features or {}).items()
    classes = {column: f.names for column, f in features if isinstance(f, ClassLabel)}
    for number, row in enumerate(rows, 1):
        yield f"{source}:{number}", row | name_classes(row, classes)
