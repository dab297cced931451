"""Provenance of results: the configuration, and hashes of all files and checkpoints it names."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from cli.shipped import find_shipped
from components.checkpoint import is_hub_id, library_versions
from components.code import OUR_PACKAGES
from components.identity import COST_OPTIONS, input_sha256, is_input
from records import sha256_text

# Suffixes of files that configurations name.
_SUFFIXES = {
    *(".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt", ".db", ".sqlite", ".jinja", ".conllu"),
    *(".npz", ".npy", ".gguf", ".py"),
}

# Folders of this repository's data and runs; a name below one is a path even if it does not exist.
_FOLDERS = {"data", "downloads", "runs"}


def hash_inputs(config: object) -> dict[str, str]:
    """Return SHA-256 of every file and model folder that a configuration names.

    Source files of custom stages are included, by their path from the working directory, so an
    edited stage changes the key. Modules that these import are not included.
    """
    options = _result_options(config)
    names = {name for name in _strings(options) if is_input(name)}
    return {name: input_sha256(name) for name in sorted({*names, *_custom_code(options)})}


def find_missing(config: object) -> list[str]:
    """Return the files and folders that a configuration names but that do not exist.

    A string counts as a path if it has the suffix of a data file, is below an existing folder or
    ``data``, ``downloads`` or ``runs``, or is the value of ``checkpoint`` (unless it can be a hub
    id) or ``training_logs``. Hub ids and URLs do not count.
    """
    paths = {name: option for option, name in _named_options(config) if _is_missing(option, name)}
    return [f"{name}: not found ({option})" for name, option in sorted(paths.items())]


def config_hash(config: object, digests: dict[str, str]) -> str:
    """Hash the options that decide the results, and the content of the inputs."""
    return sha256_text(json.dumps([_result_options(config), digests], sort_keys=True))


def build_provenance(config: dict, digests: dict[str, str]) -> dict:
    """Return a results file's provenance: no time and no host, so equal runs give equal files."""
    checkpoints = {}
    for name in digests:
        path = Path(name) / "component.json"
        if path.is_file():
            component = json.loads(path.read_text(encoding="utf-8"))
            checkpoints[name] = {
                "component": component["component"],
                "sha256": digests[name],
                "metrics": component["metrics"],
                "metrics_split": component["metrics_split"],
            }
        elif Path(name).is_dir():
            checkpoints[name] = {"sha256": digests[name]}
    return {
        "config": config,
        "checkpoints": checkpoints,
        "data": {name: d for name, d in digests.items() if name not in checkpoints},
        "versions": library_versions(),
    }


def find_differences(
    stored: dict, config: object, digests: dict[str, str], code: dict[str, object]
) -> list[str]:
    """Return the options and files that differ between stored provenance and a new run.

    ``digests`` are the new run's :func:`hash_inputs`, and ``code`` its version of the code.
    """
    config = _result_options(json.loads(json.dumps(config)))
    hashes = dict(stored.get("data") or {})
    hashes |= {name: row["sha256"] for name, row in (stored.get("checkpoints") or {}).items()}
    files = [name for name in sorted({*hashes, *digests}) if hashes.get(name) != digests.get(name)]
    of = stored.get("code") or {}
    version = [f"code of commit {of.get('commit')}"] * (of.get("sha256") != code["sha256"])
    return [*_changed_options(_result_options(stored.get("config")), config), *files, *version]


def _changed_options(first: object, second: object, option: str = "") -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys([*first, *second]):
            name = f"{option}.{key}".lstrip(".")
            yield from _changed_options(first.get(key), second.get(key), name)
    elif first != second:
        yield option


def _result_options(value: object, arguments: bool = False) -> object:
    if isinstance(value, dict):
        return {
            key: _result_options(item, key == "init_args")
            for key, item in value.items()
            if not (arguments and key in COST_OPTIONS)
        }
    return [_result_options(item) for item in value] if isinstance(value, list | tuple) else value


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _named_options(value: object, option: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string of a configuration with its option, and keys of numbers.

    Keys of numbers are e.g. ``train: {FILE: WEIGHT}``.
    """
    if isinstance(value, str):
        yield option, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str) and isinstance(item, int | float):
                yield option, key
            elif key not in COST_OPTIONS:
                yield from _named_options(item, f"{option}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named_options(item, option)


def _custom_code(config: object) -> Iterator[str]:
    """Yield the files below the working directory that define custom classes and functions."""
    for name in _strings(config):
        module = name.rpartition(".")[0]
        while module and module not in sys.modules:
            module = module.rpartition(".")[0]
        loaded = sys.modules.get(module)
        file = getattr(loaded, "__file__", None)
        if not file or module.partition(".")[0] in OUR_PACKAGES:
            continue
        path, first = Path(file), name[len(module) + 1 :].partition(".")[0]
        below = path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts
        if below and hasattr(loaded, first):
            yield path.relative_to(Path.cwd()).as_posix()


def _is_missing(option: str, name: str) -> bool:
    if not name or any(sign in name for sign in "\n{:"):
        return False
    path = Path(name)
    above = path.parts[0] if len(path.parts) > 1 else ""
    is_checkpoint = option.endswith(".checkpoint") and not is_hub_id(name)
    is_path = is_checkpoint or "training_logs." in option
    looks_like_path = (
        path.suffix in _SUFFIXES or above in _FOLDERS or (above and os.path.isdir(above))
    )
    return bool(is_path or looks_like_path) and not os.path.exists(find_shipped(name))
