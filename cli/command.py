"""Command entry and exit: user errors become one line on stderr and exit code 2."""

import errno
import io
import locale
import logging
import os
import signal
import sqlite3
import sys
from argparse import ArgumentError
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from cli.printable import printable

_FILE_ERRORS = (
    *(FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
    sqlite3.OperationalError,  # disk full, no permission
)
_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

RESUME_HINT = "the same command resumes"


class CommandError(Exception):
    """An error in a command line or its configuration."""

    exit_code = 2


def run_command(main: Callable[[], int | None]) -> None:
    """Run a command's ``main`` and exit with its return code.

    Exceptions with an ``exit_code`` (``records.UserError``), parser errors and failed file
    operations are printed to standard error as one line, and end the process with that code or 2;
    others keep their traceback. Progress bars
    are off if standard error is not a terminal.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # jsonargparse reads YAML in the encoding of the locale, which may be Latin-1 or ASCII.
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    # Threads that spin while they wait make a training five times as slow beside one busy process.
    # PyTorch reads this when it is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # What files are read as.
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("records").setLevel(logging.INFO)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # read when tqdm is first imported
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"interrupted; {RESUME_HINT}", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:  # `| head`; Python would report it again when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        user_error = _user_error(error)
        if user_error is None:
            raise
        message, code = user_error
        print(f"error: {printable(message)}", file=sys.stderr)
        sys.exit(code)
    sys.exit(code or 0)


def choose_command(
    prog: str,
    commands: Mapping[str, str],
    argv: Sequence[str] | None,
    describe: Callable[[str], str] | None = None,
) -> tuple[str, list[str]]:
    """Return the command name and the remaining arguments; print the help on request.

    ``commands`` and ``describe`` return the help line of a name; ``argv`` defaults to ``sys.argv``.
    """
    name, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in {"-h", "--help"}:
        width = max(map(len, commands))
        describe = describe or commands.__getitem__
        lines = [f"  {command:{width}}  {describe(command)}" for command in commands]
        hint = f"{prog} NAME --help shows the options of NAME."
        print(f"usage: {prog} NAME [options]", "", *lines, "", hint, sep="\n")
        sys.exit(0)
    if name not in commands:
        raise CommandError(f"no command {name!r}; expected one of: {', '.join(commands)}")
    return name, arguments


def _user_error(error: BaseException | None) -> tuple[str, int] | None:
    """Return the message and the exit code of a user's mistake, ``None`` for other errors."""
    if isinstance(error, ArgumentError):
        return " ".join(str(error).split()), CommandError.exit_code
    name = getattr(error, "filename", None) or "a file"
    if isinstance(error, _FILE_ERRORS) or getattr(error, "errno", None) in _DISK_ERRNOS:
        reason = getattr(error, "strerror", error)
        message = (
            f"{name}: cannot be read or written ({reason}); free some space or use another path"
        )
        return message, CommandError.exit_code
    # jsonargparse wraps exceptions from the constructor of an optional stage.
    while error is not None and not hasattr(error, "exit_code"):
        error = error.__cause__
    return None if error is None else (str(error), error.exit_code)
