"""What a library's Ed25519 may let through and a strict reader does not (RFC 8032 and no more)."""

from __future__ import annotations

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
# The second coordinate of the two pairs of points of order 8; the others of small order have 1, -1 and 0.
_EIGHTH = int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
_SMALL = frozenset({0, 1, P - 1, _EIGHTH, P - _EIGHTH})


def is_strict_point(raw: bytes) -> bool:
    """Written in its one way, and not one of the eight for which anybody can sign."""
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    return len(raw) == 32 and y < P and y not in _SMALL


def is_strict_scalar(raw: bytes) -> bool:
    """Below the group's order: a signature has no second spelling."""
    return len(raw) == 32 and int.from_bytes(raw, "little") < ORDER
