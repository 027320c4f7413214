"""What whoever checks a token expects of it. It is always said: an expectation that is left out by accident, because
some variable was `None`, would be a check that nobody makes."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Final

from countersign._names import Invalid

from ._refused import must


class Whatever(Enum):
    """The type of `ANY`."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


# Said in the place of an expectation: whatever stands there is good.
ANY: Final = Whatever.ANY


def expects(argument: str, expected: str | Whatever, found: str, code: str) -> None:
    """Refuses what is not as expected."""
    must(allows(argument, expected, (found,)), code, "it says another")


def allows(argument: str, expected: str | Whatever, found: tuple[str, ...]) -> bool:
    """Whether what is expected is among what a token says."""
    if expected is ANY:
        return True
    if not isinstance(expected, str):
        raise Invalid(argument, "say what you expect, or ANY")
    return expected in found


def seconds(at: datetime | Whatever) -> float | None:
    """The moment at which something is to be good, if that is asked."""
    if at is ANY:
        return None
    if not isinstance(at, datetime):
        raise Invalid("at", "say at which moment, or ANY")
    if at.utcoffset() is None:
        # Python would take it for the local time, which is hours from what was meant.
        raise Invalid("at", "a moment with its time zone: datetime.now(timezone.utc)")
    return at.timestamp()
