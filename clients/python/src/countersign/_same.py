"""Compares JSON values."""

from __future__ import annotations

from .errors import Json


def same(a: Json, b: Json) -> bool:
    """Returns whether two values are equal as JSON. In Python, true equals 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
