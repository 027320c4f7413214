"""The two ways in which a check does not end well."""

from __future__ import annotations

from countersign.errors import CountersignError


class Refused(CountersignError):
    """It is not as it says. `code` is the gateway's own word where it has one."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class CouldNotTell(CountersignError):
    """Neither yes nor no. Act as on a no."""


def must(holds: bool, code: str, detail: str) -> None:
    """Refuses what does not hold."""
    if not holds:
        raise Refused(code, detail)
