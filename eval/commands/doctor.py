"""``python -m eval doctor``: print the installation, and the missing inputs of each configuration.

Data and trained components are those of the working directory; sends no requests and changes
nothing.
"""

import os
import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

import yaml

from cli.parser import command_parser, parse
from cli.shipped import find_shipped
from eval.run.provenance import find_missing

MAIN = ("torch", "transformers", "lightning")
# Options for output, not inputs.
_OUTPUTS = ("output", "export_to", "name")


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parse(command_parser("python -m eval doctor", __doc__.split("\n\n")[1], config=False), argv)
    parts = {
        "installed": [*_versions(), *_pins()],
        "device": [_device()],
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
    lines = Path(find_shipped("requirements.txt")).read_text(encoding="utf-8").splitlines()
    pins = [re.split(r"\[.*\]==|==", line) for line in lines if "==" in line]
    # A torch build for one device has its name after a plus sign.
    versions = [(name, pin, (_version(name) or "absent").split("+")[0]) for name, pin in pins]
    wrong = [f"{name} {has} instead of {pin}" for name, pin, has in versions if has != pin]
    if wrong:
        yield f"{'requirements.txt':<22}{', '.join(wrong)}: `make setup`"
    else:
        yield f"{'requirements.txt':<22}all {len(pins)} as pinned"


def _device() -> str:
    try:
        import torch  # slow import

        from components.precision import is_bfloat16_fast
    except ImportError as error:
        return f"unknown: {error}"
    if torch.cuda.is_available():
        device = "cuda"
        name = f"cuda, {torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    else:
        device = "cpu"
        name = f"cpu, {len(os.sched_getaffinity(0))} cores"
    return f"{name}, {'bf16' if is_bfloat16_fast(device) else 'fp32 (faster than bf16 here)'}"


def _configs() -> Iterator[str]:
    for path in _yamls():
        lines = list(_missing_inputs(path))
        yield f"{path}{'' if lines else ': nothing missing'}"
        yield from (f"    {line}" for line in lines)


def _yamls() -> list[Path]:
    return sorted(Path(find_shipped("configs/")).glob("*/*/*.yaml"))


def _missing_inputs(path: Path) -> Iterator[str]:
    try:
        inputs = _inputs(path)
        # Other configurations, e.g. a metric to sample by, or the training that a sweep repeats
        values = chain.from_iterable(v if isinstance(v, list) else [v] for v in inputs.values())
        files = [Path(v) for v in values if str(v).endswith(".yaml") and Path(v).is_file()]
        paths = find_missing([inputs, *map(_inputs, files)])
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        yield f"not valid YAML: {' '.join(str(error).split())}"
        return
    by_command: dict[str | None, list[str]] = {}
    for name in (line.split(": not found (")[0] for line in paths):
        by_command.setdefault(_command_for(name, path.parent.name), []).append(name)
    for command, names in by_command.items():
        how = f"`{command}`" if command else "see the first lines of the configuration"
        yield f"missing {_shorten(names)}: {how}"


def _command_for(path: str, tier: str) -> str | None:
    target = Path(os.path.relpath(path)).as_posix()
    configs = sorted(_yamls(), key=lambda config: (config.parts[-2] != tier, config))
    for config in configs:
        kind = config.parts[-3]
        text = config.read_text(encoding="utf-8", errors="replace")
        keys = re.findall(r"^(export_to|output|name): *([^\s#]+)", text, re.MULTILINE)
        folders = [f"runs/train/{value}" if key == "name" else value for key, value in keys]
        if kind in {"train", "data"} and any(f"{target}/".startswith(f"{f}/") for f in folders):
            builder = re.search(r"python -m data_builders \w+", text)
            command = builder[0] if kind == "data" and builder else "python -m train fit"
            return f"{command} --config {config.as_posix()}"
    return None


def _inputs(path: Path) -> dict:
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    return (
        {k: v for k, v in config.items() if k not in _OUTPUTS} if isinstance(config, dict) else {}
    )


def _shorten(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 3 else ""
    return ", ".join(names[: 2 if more else 3]) + more


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
