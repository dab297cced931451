"""How every command ends: a user's mistake is one line and exit code 2, without a traceback."""

import errno
import io
import locale
import os
import signal
import sqlite3
import sys
from argparse import ArgumentError
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from cli.printable import printable

_REFUSED = (
    *(FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
    sqlite3.OperationalError,  # disk full, no rights
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

RESUME_HINT = "the same command resumes (a fit with --ckpt_path last)"


class CommandError(Exception):
    """A mistake in a command line or its configuration."""

    exit_code = 2


def run_command(main: Callable[[], int | None]) -> None:
    """Run a command's ``main`` and leave the process with its exit code.

    An exception with an ``exit_code`` (``records.UserError``), a parser's error and a failed file
    operation are printed on standard error as one line. Any other exception keeps its traceback.
    If standard error is not a terminal, libraries draw no progress bars.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # as standard error does it
        sys.stdout.reconfigure(errors="backslashreplace")
    # The parser reads YAML in the encoding of the locale, which may be Latin-1 or ASCII.
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
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
        message = _message_for_user(error)
        if message is None:
            raise
        print(f"error: {printable(message)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code or 0)


def choose_command(
    prog: str,
    commands: Mapping[str, str],
    argv: Sequence[str] | None,
    describe: Callable[[str], str] | None = None,
) -> tuple[str, list[str]]:
    """The command that a command line names, and the words after it; prints the help if asked.

    Args:
        prog: e.g. ``python -m eval``.
        commands: name → one line of help.
        argv: the command line; that of the process if null.
        describe: name → one line of help, instead of the values of ``commands``.
    """
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in {"-h", "--help"}:
        width = max(map(len, commands))
        describe = describe or commands.__getitem__
        lines = [f"  {command:{width}}  {describe(command)}" for command in commands]
        last = f"{prog} NAME --help shows the options of NAME."
        print(f"usage: {prog} NAME [options]", "", *lines, "", last, sep="\n")
        sys.exit(0)
    if name not in commands:
        raise CommandError(f"no command {name!r}; expected one of: {', '.join(commands)}")
    return name, rest


def _message_for_user(error: BaseException | None) -> str | None:
    if isinstance(error, ArgumentError):
        return " ".join(str(error).split())
    name = getattr(error, "filename", None) or "a file"
    if isinstance(error, _REFUSED) or getattr(error, "errno", None) in _FULL:
        why = getattr(error, "strerror", error)
        return f"{name}: cannot be read or written ({why}); free some space, or use another path"
    # jsonargparse wraps what the constructor of an optional stage raises.
    while error is not None and not hasattr(error, "exit_code"):
        error = error.__cause__
    return None if error is None else str(error)
