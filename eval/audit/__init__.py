"""Can a user's metric or reward be gamed?"""

from eval.audit.audited import audit

__all__ = ["audit"]
