"""What decides an object's outputs: its class, its options, and the content of the files they name.

Journal keys, the guards of output folders, cached answers, manifests and results use it, so that
answers of one model are never taken for those of another.
"""

import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from inspect import signature
from pathlib import Path, PurePath
from types import FunctionType
from typing import Any

from pydantic import BaseModel

from cli.shipped import find_shipped
from components.checkpoint import PACKAGE, is_adapter
from records import UserError, sha256_file, sha256_text
from records.errors import first_line
from records.reading import load_json
from records.stage_outputs import class_path_of

# Options that change the cost or the speed, not the outputs.
COST_OPTIONS = frozenset(
    {
        *("api_key_env", "batch_size", "cache", "cache_dir", "concurrency", "device", "prices"),
        *("timeout_s", "user_agent"),
    }
)
# Files that mark a folder as a checkpoint or as a published model.
_MARKERS = ("component.json", "config.json")
# Suffixes of a model's files that decide its answers.
_MODEL_SUFFIXES = {".safetensors", ".gguf", ".json", ".jinja", ".txt", ".model"}
# Options that name a model even if there is no file or folder of that name.
_MODEL_OPTIONS = {"checkpoint", "model", "generator"}


def identity(value: object) -> Any:
    """Describe an object as JSON without secrets and without folders of this machine.

    An attribute ``identity`` of the object describes it. Without one, the description is the class
    and the options of its constructor, which must be attributes of the same name (a leading
    underscore is accepted) of the object or of one of its attributes. Options that name files and
    models are described by their content, and :data:`COST_OPTIONS` are left out.

    Raises:
        UserError: the object does not keep an option, or has state but no options.
    """
    return _describe(value, is_option=False)


def _describe(value: object, is_option: bool = True) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and not (is_option and is_input(value)):
        return value
    if isinstance(value, str | PurePath):
        return model_identity(str(value)) if _is_model(value) else _describe_path(Path(value))
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _describe(item, is_option) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(item, is_option) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(identity, value))
    if isinstance(value, partial):  # a class with some options, of jsonargparse
        return _describe([value.func, value.args, value.keywords])
    name = class_path_of(value)
    if isinstance(value, type | FunctionType) and "<lambda>" not in name:
        return name
    declared = getattr(value, "identity", None)
    if declared is None:
        return {"class": name} | {key: _describe(item) for key, item in _options(value, name)}
    declared = _describe(declared, is_option=False)
    return {"class": name} | (declared if isinstance(declared, dict) else {"identity": declared})


def _options(value: object, name: str) -> Iterator[tuple[str, object]]:
    kind, options = type(value), signature(type(value)).parameters
    state = getattr(value, "__dict__", {})
    if not options and any(not isinstance(getattr(kind, n, 0), cached_property) for n in state):
        raise UserError(f"{name}: has no options; define what it is in the attribute `identity`")
    holders = [value, *(part for part in state.values() if hasattr(part, "__dict__"))]
    # The commit of a hub model is described with its name.
    left_out = COST_OPTIONS | ({"revision"} if _MODEL_OPTIONS & options.keys() else set())
    for option in [name for name in options if name not in left_out]:
        kept = [(h, n) for h in holders for n in (option, f"_{option}") if hasattr(h, n)]
        if not kept:
            raise UserError(
                f"{name}: does not keep its option {option}; store it in an attribute of the same "
                "name, or define the attribute `identity`"
            )
        item = getattr(*kept[0])
        is_name = option in _MODEL_OPTIONS and isinstance(item, str | PurePath)
        yield option, model_identity(str(item), state.get("revision")) if is_name else item


def is_input(name: str) -> bool:
    """Whether an option names an existing file or a model folder, or a model in a package."""
    # `os.path` returns false for a long string that cannot be a file name; Path raises.
    return _is_model(name) or os.path.isfile(name)


def _is_model(name: str | PurePath) -> bool:
    folder = bool(name) and any(os.path.isfile(os.path.join(name, file)) for file in _MARKERS)
    return folder or str(name).startswith(PACKAGE)


def model_identity(model: str, revision: str | None = None) -> dict[str, Any]:
    """Describe a model: a folder or file by its SHA-256, a hub model by its commit.

    Args:
        model: its name: a hub id, a folder, a file or ``package:…``.
        revision: branch, tag or commit of a hub model.

    Returns:
        ``id``, and ``sha256`` of weights, tokenizer and configuration, or ``revision`` (the
        commit). ``base`` is the same of the model that an adapter in the folder adapts.
    """
    path = Path(model)
    if model.startswith(PACKAGE):
        from components.base import resolve_base  # imports PyTorch

        path = resolve_base(model)
    elif not path.exists():
        return {"id": model, "revision": _hub_commit(model, revision)}
    name = model if model.startswith(PACKAGE) else path.name
    described = {"id": name, "sha256": _sha256_path(path)}
    base = _adapted_base(path)
    if base is None:
        return described
    try:
        return described | {"base": model_identity(*base)}
    except UserError as error:
        raise UserError(
            f"{model}: the base of its adapter is missing ({error}); restore it, or merge the "
            "adapter into its base"
        ) from None


def input_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of a model folder and the base that its adapter adapts."""
    described = _describe(Path(path))
    if "base" in described:
        return sha256_text(json.dumps(described, sort_keys=True))
    return described["sha256"]


def _describe_path(path: Path) -> dict[str, Any]:
    described = {"id": path.name}
    return described | ({"sha256": _sha256_path(path)} if path.exists() else {})


def _sha256_path(path: Path) -> str:
    if path.is_file():
        return sha256_file(path)
    # A sentence encoder has its modules in subfolders.
    files = sorted(file for file in path.rglob("*") if file.is_file())
    if _is_model(path):
        files = [file for file in files if file.suffix in _MODEL_SUFFIXES]
    lines = [f"{file.relative_to(path).as_posix()}:{sha256_file(file)}\n" for file in files]
    return sha256_text("".join(lines))


def _hub_commit(model: str, revision: str | None) -> str | None:
    from transformers.utils.hub import cached_file, extract_commit_hash

    from components.base import use_cache_if_offline  # imports PyTorch

    use_cache_if_offline()
    try:
        config = cached_file(model, "config.json", revision=revision)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError(f"{model}: no such model, locally or on the hub ({reason})") from None
    return extract_commit_hash(config, None)


def _adapted_base(folder: Path) -> tuple[str, str | None] | None:
    if is_adapter(folder):
        base = load_json(folder / "component.json")["base"]
        return find_shipped(base["id"]), base.get("revision")
    path = folder / "adapter_config.json"
    if not path.is_file():
        return None
    config = load_json(path)
    base = config.get("base_model_name_or_path")
    if not base:
        raise UserError(f"{path}: has no base_model_name_or_path; merge the adapter into its base")
    return base, config.get("revision")
