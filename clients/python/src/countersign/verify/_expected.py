"""Expectations about a token. Each must be stated. An expectation that is left out by accident, because a variable
was `None`, would skip a check."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Final

from countersign._names import Invalid
from countersign._protocol._refused import must


class Whatever(Enum):
    """The type of `ANY`."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


# Replaces an expectation: every value is accepted.
ANY: Final = Whatever.ANY


def expects(argument: str, expected: str | Whatever, found: str, code: str) -> None:
    """Refuses a value that differs from the expectation."""
    must(allows(argument, expected, (found,)), code, "it says another")


def allows(argument: str, expected: str | Whatever, found: tuple[str, ...]) -> bool:
    """Returns whether a token's list has the expected value."""
    if expected is ANY:
        return True
    if not isinstance(expected, str):
        raise Invalid(argument, "state your expectation, or ANY")
    return expected in found


def seconds(at: datetime | Whatever) -> float | None:
    """Returns the time at which a token must be valid, if one is required."""
    if at is ANY:
        return None
    if not isinstance(at, datetime):
        raise Invalid("at", "say at which moment, or ANY")
    if at.utcoffset() is None:
        # Python would read it as local time, which can be hours off.
        raise Invalid("at", "a moment with its time zone: datetime.now(timezone.utc)")
    return at.timestamp()
