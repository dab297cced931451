"""Files of this repository, found from any working directory."""

import os
import re
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

ROOT = Path(__file__).resolve().parents[1]
_SHIPPED = re.compile(r"(checkpoints/(base|ready)|configs|docs|downloads|eval)/|requirements\.txt")


def find_shipped(name: str) -> str:
    """The path of a file of the repository that the working directory lacks; else the name."""
    path = os.path.join(ROOT, name)
    is_elsewhere = _SHIPPED.match(name) and not os.path.exists(name) and os.path.exists(path)
    return path if is_elsewhere else name


def with_shipped(value: Any) -> Any:
    """A parsed configuration with paths of the repository's files, except that of an output."""
    if isinstance(value, dict):
        return {key: with_shipped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_shipped(item) for item in value]
    if isinstance(value, Namespace):
        inputs = {key: item for key, item in vars(value).items() if key != "export_to"}
        vars(value).update(with_shipped(inputs))
    return find_shipped(value) if isinstance(value, str) else value
