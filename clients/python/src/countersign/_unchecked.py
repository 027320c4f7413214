"""Reads claims of a signed token without checking the signature, only for comparison with known values."""

from __future__ import annotations

import base64
import binascii

from ._reading import parse
from .errors import Json, UnexpectedAnswer


class NoToken(ValueError):
    """Not a token, or one without that claim."""


def claim(token: str, name: str) -> Json:
    """One claim of a token."""
    try:
        part = token.split(".")[1]
        return parse(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))[name]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, binascii.Error, UnexpectedAnswer):
        raise NoToken(name) from None
