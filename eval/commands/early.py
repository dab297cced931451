"""What can be said of a command line before stages are imported, which takes seconds."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import yaml

from records import UserError
from records.reading import check_there


def check_file(argv: Sequence[str], option: str) -> None:
    """See that the data file of an option is there; where none is named the parser complains.

    Args:
        argv: the command line.
        option: without dashes; a configuration may name the file, too.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(f"--{option}", dest="path")
    parser.add_argument("--config", action="append", default=[])
    given, _ = parser.parse_known_args(argv)
    path = given.path or next(filter(None, (_said(c, option) for c in given.config[::-1])), None)
    if path:
        check_there(path)


def check_no_folder(option: str, path: str | Path) -> None:
    """See that a file can be written to a path."""
    if Path(path).is_dir():
        raise UserError(f"{option}: {path} is a folder; give a file's name")


def _said(config: str, option: str) -> str | None:
    if not Path(config).is_file():  # a pipe can be read once, by the parser
        return None
    try:
        found = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    value = found.get(option) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None
