"""The two exceptions of a check."""

from __future__ import annotations

from countersign.errors import CountersignError


class Refused(CountersignError):
    """The check failed. `code` is the gateway's own code, if it has one."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail = code, detail


class CouldNotTell(CountersignError):
    """The check could not be decided. Treat it as a failure."""


def must(holds: bool, code: str, detail: str) -> None:
    """Raises `Refused` unless the condition holds."""
    if not holds:
        raise Refused(code, detail)
