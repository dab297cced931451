"""Where a number came from: the configuration, and the content of every file it names."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from components.checkpoint import is_hub_id, library_versions
from records import sha256_file, sha256_text

# Arguments of what a run costs and how it is run, not what it says: a slower second try goes on
# with the first.
_COSTS = {
    *("cache", "cache_dir", "concurrency", "timeout_s", "prices", "api_key_env", "user_agent"),
    "batch_size",
}

# Of files that configurations name.
_ENDINGS = {
    *(".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt", ".db", ".sqlite", ".jinja", ".conllu"),
    *(".npz", ".npy", ".gguf"),
}

# Where configurations here put things and look for them: paths also before the folder is there.
_PLACES = {"data", "downloads", "runs"}

# Packages of this repository, whose versions are no part of a run's key.
OUR_PACKAGES = {"clients", "components", "data_builders", "eval", "records", "train"}

# What says what a folder's weights are: a checkpoint's own, or a published model's configuration.
_ABOUT = ("component.json", "config.json")
# Of a published model, whose settings others may change, what decides its answers.
_OF_MODEL = {".safetensors", ".gguf", ".json", ".jinja", ".txt", ".model"}


def hash_inputs(config: object) -> dict[str, str]:
    """SHA-256 of every file and model folder that a configuration names, by its name there.

    So it is with the files of a user's own stages, by their paths from the working folder: a stage
    that was edited is another stage. What they import is not looked after.
    """
    deciding = _deciding(config)
    names = {name for name in _strings(deciding) if _is_input(name)}
    return {name: _digest(Path(name)) for name in sorted({*names, *_own_code(deciding)})}


def find_missing(config: object) -> list[str]:
    """Files and folders that a configuration names and that are not there, each with its option.

    What looks like a path: with the ending of a file, below a folder that is there or ``data``,
    ``downloads`` or ``runs``, or what a ``checkpoint`` (unless it can be a hub id) or a
    ``training_logs`` is said to be. Hub ids and addresses do not.
    """
    found = {name: where for where, name in _places(config) if _is_missing(where, name)}
    return [f"{name}: not there ({where})" for name, where in sorted(found.items())]


def config_hash(config: object, digests: dict[str, str]) -> str:
    """One hash over all of a configuration that decides the results, and its inputs' content."""
    return sha256_text(json.dumps([_deciding(config), digests], sort_keys=True))


def build_provenance(config: dict, digests: dict[str, str]) -> dict:
    """What stands once a results file: no time and no host, so that equal runs are equal files."""
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


def find_differences(told: dict, config: object, digests: dict[str, str]) -> list[str]:
    """Options and files in which a run's provenance is not that of another run.

    Args:
        told: the provenance of a results file.
        config: the other run's configuration.
        digests: its :func:`inputs`.
    """
    names = list(_others(_deciding(told.get("config")), _deciding(json.loads(json.dumps(config)))))
    known = dict(told.get("data") or {})
    known |= {name: own["sha256"] for name, own in (told.get("checkpoints") or {}).items()}
    return names + [n for n in sorted({*known, *digests}) if known.get(n) != digests.get(n)]


def _others(one: object, other: object, where: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            yield from _others(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))
    elif one != other:
        yield where


def _deciding(value: object, arguments: bool = False) -> object:
    if isinstance(value, dict):
        return {
            key: _deciding(item, key == "init_args")
            for key, item in value.items()
            if not (arguments and key in _COSTS)
        }
    return [_deciding(item) for item in value] if isinstance(value, list | tuple) else value


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _places(value: object, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a configuration with the option that it is the value of.

    So are the keys of numbers: ``train: {FILE: WEIGHT}``.
    """
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str) and isinstance(item, int | float):
                yield where, key
            elif key not in _COSTS:
                yield from _places(item, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _places(item, where)


def _own_code(config: object) -> Iterator[str]:
    """The files, below the working folder, of what a configuration names of loaded modules.

    It is a class, also one within another, or a function; our own are left out.
    """
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


def _is_missing(where: str, name: str) -> bool:
    if not name or any(sign in name for sign in "\n{:"):
        return False
    path = Path(name)
    above = path.parts[0] if len(path.parts) > 1 else ""
    trained = where.endswith(".checkpoint") and not is_hub_id(name)
    asked = trained or "training_logs." in where
    named = path.suffix in _ENDINGS or above in _PLACES or (above and os.path.isdir(above))
    return bool(asked or named) and not os.path.exists(name)


def _is_input(name: str) -> bool:
    # A Path would raise where a long text, such as a template, can be no file's name.
    folder = bool(name) and any(os.path.isfile(os.path.join(name, about)) for about in _ABOUT)
    return folder or os.path.isfile(name)


def _digest(path: Path) -> str:
    if path.is_file():
        return sha256_file(path)
    about = path / "component.json"
    if about.is_file():
        files = sorted([about, *path.glob("*.safetensors")])
    else:  # a sentence encoder has modules of its own in folders
        files = sorted(file for file in path.rglob("*") if file.suffix in _OF_MODEL)
    lines = [f"{file.relative_to(path).as_posix()}:{sha256_file(file)}\n" for file in files]
    return sha256_text("".join(lines))
