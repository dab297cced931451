"""Write a dataset folder: JSONL files, a card with Hub front matter, and the manifest, last."""

import json
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import yaml
from pydantic import BaseModel

from clients.polite import PoliteClient
from components.identity import identity
from records import UserError, sha256_file, sha256_text, write_json, write_jsonl, write_text
from records.writing import find_partial_files

CARDS = Path(__file__).parent / "cards"
PACKAGES = ("pydantic", "oxigraph", "matplotlib")


@dataclass(frozen=True)
class Card:
    """Contents of the dataset card.

    Attributes:
        text: body in Markdown: contents, method, and what the data must not be used for.
        license, task_categories: the Hub's names.
    """

    pretty_name: str
    text: str
    license: str = "cc0-1.0"
    task_categories: Sequence[str] = ("text-classification",)
    tags: Sequence[str] = ("factuality",)


def read_card(name: str, /, **values: object) -> Card:
    """Read ``cards/NAME.md``, whose front matter has the fields of :class:`Card` except ``text``.

    ``values`` replace placeholders in braces; without values, braces stay as they are.
    """
    _, front, text = (CARDS / f"{name}.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(front) | {"text": text}
    if values:
        texts = {key: v.format(**values) for key, v in fields.items() if isinstance(v, str)}
        fields |= texts
    return Card(**fields)


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
    build: Mapping[str, str] | None = None,
    code: Mapping[str, object] | None = None,
    inputs: Sequence[str | Path] = (),
    pages: Mapping[str, str] | None = None,
) -> Path:
    """Write a dataset folder; return the path of the manifest.

    The manifest is written last, so a folder with a manifest is complete. The same records, config
    and seed give byte-identical files; resumed builds reuse cached request times.

    Args:
        folder: output folder. Files that an earlier manifest or ``configs`` name are deleted.
        files, pages, card: as in :class:`~data_builders.builder.Made`.
        builder: name of the builder on the command line.
        configs: as in ``Builder.files``. The card lists only files with rows, since the Hub's
            viewer cannot read empty ones.
        clients, dropped: as in :class:`~data_builders.builder.Work`; read after the last record.
        config, seed, build, code: the builder's; ``build`` is what :func:`start_build` returns.
        inputs: input files; the manifest records names, sizes and SHA-256. Inputs within the folder
            are not removed.
    """
    folder = Path(folder)
    named = {path for splits in configs.values() for path in splits.values()}
    read = _describe_inputs(inputs)  # before writing: the build may replace one of them
    remove_earlier(folder, named, {*files, *(pages or {})}, inputs)
    written = _write_files(folder, files, pages or {})
    total = sum(entry["rows"] for entry in written.values())
    if not total:
        raise UserError(f"{folder}: no record left ({dropped_summary(dropped)})")
    write_text(folder / "README.md", _card_text(card, configs, written, total))
    manifest = {
        "builder": builder,
        "config": identity(config),
        "seed": seed,
        "options": dict(build or {}),
        "inputs": read,
        "requests": request_families(clients),
        "kept": total,
        "dropped": {reason: count for reason, count in sorted(dropped.items()) if count},
        "files": written,
        "pages": {name: sha256_file(folder / name) for name in sorted(pages or {})},
        "card_sha256": sha256_file(folder / "README.md"),
        "code": dict(code or {}),
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
    }
    write_json(folder / "manifest.json", manifest)
    remove_partial_files(folder, [*files, *(pages or {}), "README.md", "manifest.json"])
    return folder / "manifest.json"


def _describe_inputs(inputs: Sequence[str | Path]) -> list[dict]:
    return [
        {"file": Path(p).name, "bytes": Path(p).stat().st_size, "sha256": sha256_file(p)}
        for p in inputs
    ]


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
    """Remove an earlier build's manifest and the files that this build does not replace.

    An earlier build may have used another split, whose test rows are in this build's train.

    Args:
        names: further files to remove.
        kept: files that this build replaces.
        inputs: input files, which are never removed.
    """
    read = {Path(path).resolve() for path in inputs}
    for name in (_listed_files(folder) | {*names}) - {*kept}:
        if (folder / name).resolve() not in read:
            (folder / name).unlink(missing_ok=True)
    # Last: an interrupted removal can be repeated while the manifest exists.
    (folder / "manifest.json").unlink(missing_ok=True)


# What is built, until the manifest says it.
BUILD_FILE = ".build.json"


def start_build(folder: Path, build: Mapping[str, object], overwrite: bool) -> dict[str, str]:
    """Record in the folder what is built; raise an error if it holds another build.

    ``build`` has builder, seed and config. The other build may be finished or interrupted; with
    ``overwrite`` it may be replaced. Returns a hash of each option, since options may hold a
    password, which no file repeats.
    """
    path = folder / BUILD_FILE
    hashes = {
        name: sha256_text(json.dumps(identity(value), sort_keys=True))[:16]
        for name, value in build.items()
    }
    manifest = _read_object(folder / "manifest.json")
    existing = _read_object(path) or manifest.get("options", {})
    if "builder" in manifest:
        existing |= {"builder": sha256_text(json.dumps(manifest["builder"]))[:16]}
    changed = [name for name, value in hashes.items() if existing.get(name, value) != value]
    has_files = any(file.name not in {".lock", path.name} for file in folder.iterdir())
    if changed and has_files and not overwrite:
        raise UserError(
            f"{folder}: contains a build with another {', '.join(changed)}; set another --output, "
            "or pass --overwrite to replace it"
        )
    for journal in folder.glob(".*.partial.jsonl") if changed else ():
        journal.unlink()
    write_json(path, hashes)
    return hashes


def dropped_summary(dropped: Mapping[str, int]) -> str:
    """Summarize dropped rows by reason, for error messages."""
    reasons = [f"{n} x {reason}" for reason, n in sorted(dropped.items()) if n]
    return ", ".join(reasons) or "the files are empty"


def _read_object(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        manifest = None
    return manifest if isinstance(manifest, dict) else {"builder": "something else"}


def _listed_files(folder: Path) -> set[str]:
    manifest = _read_object(folder / "manifest.json")
    names = {*manifest.get("files", ()), *manifest.get("pages", ())}
    return {n for n in names if (folder / n).resolve().is_relative_to(folder.resolve())}


def remove_partial_files(folder: Path, names: Sequence[str]) -> None:
    """Remove partial files that interrupted builds left."""
    for name in names:
        path = folder / name
        for leftover in find_partial_files(path.parent, path.name):
            leftover.unlink()


def request_families(clients: Sequence[PoliteClient]) -> list[dict]:
    """List each family of requests: endpoint, kind, numbers, hash of the requests.

    Times are recorded for remote endpoints only: a local server is identified by its data's hash.
    """
    entries = []
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
            entries.append(entry)
    return sorted(entries, key=lambda entry: (entry["endpoint"], entry["family"]))


def _card_text(
    card: Card, configs: Mapping[str, Mapping[str, str]], written: Mapping[str, dict], total: int
) -> str:
    from huggingface_hub import DatasetCard, DatasetCardData  # slow import

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
            "`manifest.json` records the configuration, the requests, the dropped rows by reason, "
            "and the SHA-256 of each file.\n"
        )
    )


def _size_category(rows: int) -> str:
    sizes = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B")
    place = len(str(rows)) - 3
    return f"{sizes[place - 1]}<n<{sizes[place]}" if place > 0 else "n<1K"
