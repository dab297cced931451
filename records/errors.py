"""Errors that are the user's to mend, and texts of anybody's as a line may repeat them."""

from __future__ import annotations

import errno
import re

# What a file system refuses and the user can mend: space, rights, a path that leads below a file.
REFUSED = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG),
}
# Signs by which a text would move a terminal's cursor, give it commands or turn its writing round,
# and others that no drawing can hold.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


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


def printable(text: str) -> str:
    """A text of anybody's as a terminal, a page or a drawing can show it."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text)


def first_line(error: BaseException) -> str:
    """The first line of what an error says; the name of its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
