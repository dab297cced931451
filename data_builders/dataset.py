"""Writing a dataset folder: JSONL shards, a card with Hub front matter, and the manifest, last."""

import json
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path, PurePath

from pydantic import BaseModel

from clients.polite import PoliteClient
from records import UserError, sha256_file, write_json, write_jsonl, write_text
from records.writing import find_partial_files

PACKAGES = ("pydantic", "oxigraph", "matplotlib")


@dataclass(frozen=True)
class Card:
    """What the dataset card says.

    Attributes:
        pretty_name: title of the card.
        text: the body in Markdown: what it is, how it was made, what it must not be used for.
        license: the Hub's name of the licence.
        task_categories: the Hub's names of the tasks.
        tags: free words.
    """

    pretty_name: str
    text: str
    license: str = "cc0-1.0"
    task_categories: Sequence[str] = ("text-classification",)
    tags: Sequence[str] = ("factuality",)


def write_dataset(
    folder: str | Path,
    files: Mapping[str, Iterable[BaseModel | dict]],
    *,
    builder: str,
    configs: Mapping[str, Mapping[str, str]],
    card: Card,
    clients: Sequence[PoliteClient],
    dropped: Mapping[str, int],
    config: Mapping[str, object],
    seed: int,
    inputs: Sequence[str | Path] = (),
    pages: Mapping[str, str] | None = None,
) -> Path:
    """Write a whole dataset folder; returns the path of the manifest.

    The manifest comes last: a folder with one is whole. The same records, config and seed give the
    same bytes; times of remote endpoints come from the client's cache when a build starts again.

    Args:
        folder: where it goes; files of an earlier dataset, those that its manifest names and those
            with the names of ``configs``, are replaced, or removed where this one has none such.
        files, pages, card: as of :class:`~data_builders.builder.Made`.
        builder: who made it, as the command line names it.
        configs: as of ``Builder.files``. The card names the files that have rows, since the Hub's
            viewer cannot read others.
        clients, dropped: as of :class:`~data_builders.builder.Work`; read after the last record.
        config, seed: the builder's.
        inputs: files that were read; the manifest has their names, sizes and SHA-256. One that
            stands in the folder is not removed.
    """
    folder = Path(folder)
    named = {path for splits in configs.values() for path in splits.values()}
    # Before the first file is written: one of them may be replaced.
    read = [
        {"file": Path(p).name, "bytes": Path(p).stat().st_size, "sha256": sha256_file(p)}
        for p in inputs
    ]
    remove_earlier(folder, named, {*files, *(pages or {})}, inputs)
    written = _write_files(folder, files, pages or {})
    total = sum(entry["rows"] for entry in written.values())
    if not total:
        raise UserError(f"{folder}: no record is left ({dropped_summary(dropped)})")
    write_text(folder / "README.md", _card_text(card, configs, written, total))
    manifest = {
        "builder": builder,
        "config": {name: _plain(value) for name, value in config.items()},
        "seed": seed,
        "inputs": read,
        "requests": request_families(clients),
        "kept": total,
        "dropped": {reason: count for reason, count in sorted(dropped.items()) if count},
        "files": written,
        "pages": {name: sha256_file(folder / name) for name in sorted(pages or {})},
        "card_sha256": sha256_file(folder / "README.md"),
        "versions": {"python": platform.python_version(), **_versions()},
    }
    write_json(folder / "manifest.json", manifest)
    sweep(folder, [*files, *(pages or {}), "README.md", "manifest.json"])
    return folder / "manifest.json"


def _write_files(
    folder: Path, files: Mapping[str, Iterable[BaseModel | dict]], pages: Mapping[str, str]
) -> dict[str, dict]:
    written = {}
    for name in sorted(files):
        rows = write_jsonl(folder / name, files[name])
        written[name] = {"rows": rows, "sha256": sha256_file(folder / name)}
    for name, text in sorted(pages.items()):
        write_text(folder / name, text)
    return written


def remove_earlier(
    folder: Path, names: Iterable[str], kept: Collection[str], inputs: Sequence[str | Path] = ()
) -> None:
    """Remove the manifest of an earlier build, and the files that it names and this one has not.

    An earlier build may have had another split, whose rows are in this one's train.

    Args:
        names: further files that go.
        kept: those that stay, since this build replaces them.
        inputs: files that are read and stay.
    """
    read = {Path(path).resolve() for path in inputs}
    for name in (_of_manifest(folder) | {*names}) - {*kept}:
        if (folder / name).resolve() not in read:
            (folder / name).unlink(missing_ok=True)
    # Last: while it is there, a build that is killed here finds them again.
    (folder / "manifest.json").unlink(missing_ok=True)


def require_same_builder(folder: Path, builder: str) -> None:
    """See that a folder holds no other builder's dataset, whose card and manifest would be lost.

    Args:
        folder: where a dataset is to go.
        builder: who is to make it, as the command line names it.
    """
    there = _manifest(folder).get("builder", builder)
    if there != builder:
        raise UserError(
            f"{folder}: holds a dataset of {there}, whose card and manifest {builder} would "
            "overwrite; give another --output, or delete the folder"
        )


def dropped_summary(dropped: Mapping[str, int]) -> str:
    """What was left out, by reason, for a message that nothing is left."""
    told = [f"{n} x {reason}" for reason, n in sorted(dropped.items()) if n]
    return ", ".join(told) or "the files are empty"


def _manifest(folder: Path) -> dict:
    path = folder / "manifest.json"
    if not path.is_file():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        manifest = None
    return manifest if isinstance(manifest, dict) else {"builder": "something else"}


def _of_manifest(folder: Path) -> set[str]:
    manifest = _manifest(folder)
    names = {*manifest.get("files", ()), *manifest.get("pages", ())}
    return {n for n in names if (folder / n).resolve().is_relative_to(folder.resolve())}


def sweep(folder: Path, names: Sequence[str]) -> None:
    """Remove what earlier builds left of these files when they were killed while writing."""
    for name in names:
        place = folder / name
        for leftover in find_partial_files(place.parent, place.name):
            leftover.unlink()


def request_families(clients: Sequence[PoliteClient]) -> list[dict]:
    """Each family of requests once: endpoint, kind, how many, rows, hash of the requests.

    Times are given for remote endpoints only: what a local server says depends on its data, named
    by their hash.
    """
    found = []
    for client in clients:
        for name, family in client.families.items():
            entry = {
                "endpoint": client.identity,
                "kind": "remote" if client.remote else "local",
                "family": name,
                "requests": family.requests,
                "rows": family.rows,
                "example": family.example[:500],
                "requests_sha256": family.sha256,
            }
            if client.remote:
                entry |= {
                    "first": family.first,
                    "last": family.last,
                    "user_agent": client.user_agent,
                }
            found.append(entry)
    return sorted(found, key=lambda entry: (entry["endpoint"], entry["family"]))


def _card_text(
    card: Card, configs: Mapping[str, Mapping[str, str]], written: Mapping[str, dict], total: int
) -> str:
    from huggingface_hub import DatasetCard, DatasetCardData  # slow; ``--help`` has no need of it

    filled = {
        name: {s: path for s, path in splits.items() if written.get(path, {}).get("rows")}
        for name, splits in configs.items()
        if name
    }
    front = DatasetCardData(
        pretty_name=card.pretty_name,
        license=card.license,
        language=["en"],
        task_categories=list(card.task_categories),
        tags=list(card.tags),
        size_categories=[_size_category(total)],
        configs=[
            {
                "config_name": name,
                "data_files": [{"split": s, "path": path} for s, path in splits.items()],
            }
            for name, splits in filled.items()
            if splits
        ],
    )
    rows = "".join(f"| `{name}` | {entry['rows']} |\n" for name, entry in written.items())
    return str(
        DatasetCard(
            f"---\n{front.to_yaml()}\n---\n\n# {card.pretty_name}\n\n{card.text.strip()}\n\n"
            f"## Files\n\n| file | rows |\n|---|---|\n{rows}\n"
            "`manifest.json` holds the configuration, the requests, what was dropped and why, and "
            "the SHA-256 of each file.\n"
        )
    )


def _size_category(rows: int) -> str:
    names = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
    if rows < 1000:
        return "n<1K"
    for exponent, (low, high) in enumerate(pairwise(names), 4):
        if rows < 10**exponent:
            return f"{low}<n<{high}"
    return "1B<n<10B"


def _plain(value: object) -> object:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, PurePath):
        return value.name
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if hasattr(value, "identity"):
        return _plain(value.identity)
    if is_dataclass(value) and not callable(value):  # a stage goes by its name
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return type(value).__name__


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found
