"""How every door ends: errors that are the user's to mend are one line, exit code 2, no traceback.

Of what is not there, the command that makes it is named.
"""

from __future__ import annotations

import io
import locale
import os
import re
import select
import signal
import sqlite3
import sys
from argparse import ArgumentError
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from records.complaints import configs, of_encoding, of_parser
from records.errors import REFUSED, UserError, printable

# Configurations of the tier `small` whose checkpoint or dataset `make demo` makes.
IN_DEMO = frozenset(
    {"adversary_info", "corruption", "generations", "kb_pairs", "lss_tagger", "relation", "unli"}
)
# Other places that the Makefile fills.
_MADE = {
    "checkpoints/small/untrained": "make demo",
    "checkpoints/small/preference_": "make small",
    "data/preferences_core": "make small",
    "checkpoints/base/all-mpnet-base-v2": "make mpnet",
}
_MISSING = re.compile(
    r"(?:[\w.]+: |base model )?([^\s:]+): (?:no component\.json|no such f(?:ile|older))"
)
# What is told of a command that was ended from outside.
GOES_ON = "the same command goes on from what is kept (of a fit with --ckpt_path last)"
_OF_SQLITE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")


def run_door(main: Callable[[], int | None]) -> None:
    """Run a door's ``main`` and leave the process with its exit code.

    A ``UserError``, a parser's complaint about an option or a config key, or what a file system
    refuses, is printed on standard error as one line and becomes exit code 2. Ctrl-C is one line,
    too, and the exit code that shells give it. Any other exception is a defect of ours and keeps
    its traceback, but where nobody reads the output any longer (``| head``). Where nobody looks at
    a terminal, libraries draw no progress bars into the log.
    """
    _surroundings()
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # read when tqdm is first imported
    try:
        _check_words()
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"interrupted; {GOES_ON}", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            sys.exit(1)
        said = _said(error)
        if said is None:
            raise
        print(f"error: {printable(said)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code or 0)


def _surroundings() -> None:
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # `>&-`; its number would go to the first file of data
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # as standard error does it
        sys.stdout.reconfigure(errors="backslashreplace")
    # The parser reads YAML in the encoding of the locale, which may be Latin-1 or ASCII.
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")


def _check_words() -> None:
    for word in sys.argv[1:]:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise UserError(
                f"{word}: not UTF-8; rename it or, where it is UTF-8, set LC_ALL=C.UTF-8"
            ) from None


def _nobody_reads() -> bool:
    out = sys.stdout.fileno()
    pipe = select.poll()
    pipe.register(out, 0)  # errors are told in any case
    gone = any(event & select.POLLERR for _, event in pipe.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out)
    return gone


def made_by(path: str | Path, tier: str = "") -> str | None:
    """The command that makes a checkpoint, a dataset or a training log, by the configs here.

    Args:
        path: the folder, or a file in it.
        tier: ``small``, ``laptop`` or ``paper``, whose config is named where several make it.

    Returns:
        ``make demo``, ``python -m train fit --config …``, or ``None`` where no config makes it.
    """
    place = Path(os.path.relpath(path)).as_posix()
    for folder, command in _MADE.items():
        if place.startswith(folder):
            return command
    configs = [*Path("configs/train").glob("*/*.yaml"), *Path("configs/data").glob("*/*.yaml")]
    for config in sorted(configs, key=lambda c: (c.parts[2] != tier, c.as_posix())):
        text = config.read_text(encoding="utf-8")
        names = re.findall(r"^(export_to|output|name): *([^\s#]+)", text, re.MULTILINE)
        made = [f"runs/train/{at}" if key == "name" else at for key, at in names]
        if any(f"{place}/".startswith(f"{folder}/") for folder in made):
            if config.parts[2] == "small" and config.stem in IN_DEMO:
                return "make demo"
            builder = re.search(r"python -m data_builders \w+", text)
            door = builder[0] if config.parts[1] == "data" and builder else "python -m train fit"
            return f"{door} --config {config.as_posix()}"
    return None


def _said(error: BaseException | None) -> str | None:
    """The line for the user; ``None`` for a defect of ours.

    jsonargparse wraps what a stage's constructor said of its options where the stage may be left
    out: ``Retriever | None``.
    """
    if isinstance(error, ArgumentError):
        return of_parser(error)
    if isinstance(error, (OSError, sqlite3.Error)):
        return _of_file_system(error)
    if isinstance(error, UnicodeDecodeError):
        return of_encoding()
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__
    if error is None:
        return None
    said = str(error)
    missing = _MISSING.match(said)
    tiers = [config.parent.name for config in configs()]
    command = missing and made_by(missing[1], *tiers[:1])
    return f"{said}; `{command}` makes it" if command else said


def _of_file_system(error: OSError | sqlite3.Error) -> str | None:
    if isinstance(error, OSError):
        refused, path, said = error.errno in REFUSED, error.filename, error.strerror
    else:
        refused = getattr(error, "sqlite_errorname", "").startswith(_OF_SQLITE)
        path, said = None, str(error)
    if not refused:
        return None
    return (
        f"{path or 'a file'}: cannot be read or written ({said}); free some space, or give a place "
        "that you may use"
    )
