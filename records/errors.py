"""Errors that the user can fix."""


class UserError(Exception):
    """A mistake in the user's input. The message contains the fix; commands exit with 2."""

    exit_code = 2


class BadInput(UserError):
    """Invalid rows of a data file.

    Attributes:
        faults: up to ten ``file:line: field: message`` strings.
    """

    def __init__(self, faults: list[str], more: int = 0):
        self.faults = faults
        tail = [f"… and {more} more"] if more else []
        super().__init__("\n".join([*faults, *tail]))


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, or the type name if it is empty."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
