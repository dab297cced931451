"""Errors that are the user's to mend: one line, exit code 2, no traceback."""

from __future__ import annotations

import sys
from argparse import ArgumentError
from collections.abc import Callable

from records.moved import moved


class UserError(Exception):
    """A mistake in the user's input. The message says what to change; the doors exit with 2."""


class BadInput(UserError):
    """Faults found in a data file.

    Attributes:
        faults: up to ten ``file:line: field: message`` strings.
    """

    def __init__(self, faults: list[str], more: int = 0):
        self.faults = faults
        tail = [f"… and {more} more"] if more else []
        super().__init__("\n".join([*faults, *tail]))


def run_door(main: Callable[[], int | None]) -> None:
    """Run a door's ``main`` and leave the process with its exit code.

    A ``UserError``, or a parser's complaint about an option or a config key, is printed on
    standard error as one line and becomes exit code 2; a class path that moved is answered with
    the new one. Any other exception is a defect of ours and keeps its traceback.
    """
    try:
        code = main()
    except (UserError, ArgumentError, ValueError) as error:
        said = _said(error)
        if said is None:
            raise
        print(f"error: {moved(said) or said}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code or 0)


def _said(error: BaseException | None) -> str | None:
    """The line for the user; ``None`` for a defect of ours.

    jsonargparse wraps what a stage's constructor said of its options where the stage may be left
    out: ``Retriever | None``.
    """
    if isinstance(error, ArgumentError):
        return " ".join(str(error).split())
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__
    return None if error is None else str(error)
