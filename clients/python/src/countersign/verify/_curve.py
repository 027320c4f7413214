"""Strict Ed25519 checks that a library may omit (RFC 8032 and nothing more)."""

from __future__ import annotations

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, P) % P
# The y coordinates of the points of order 8. Other points of small order have 1, -1 and 0.
_EIGHTH = int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
_SMALL = frozenset({0, 1, P - 1, _EIGHTH, P - _EIGHTH})


def is_strict_point(raw: bytes) -> bool:
    """Returns whether a point is canonical, and not one of the eight of small order, for which anyone can sign."""
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    return len(raw) == 32 and y < P and y not in _SMALL


def is_strict_key(raw: bytes) -> bool:
    """Returns whether these are the bytes of a key: a strict point that is on the curve."""
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    # On the curve, this quotient is the square of x (RFC 8032, section 5.1.3).
    square = (y * y - 1) * pow(_D * y * y + 1, -1, P) % P
    return is_strict_point(raw) and pow(square, (P - 1) // 2, P) == 1


def is_strict_scalar(raw: bytes) -> bool:
    """Returns whether a scalar is below the group's order, so that a signature has one spelling."""
    return len(raw) == 32 and int.from_bytes(raw, "little") < ORDER
