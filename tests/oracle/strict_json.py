"""Strict JSON: what may be read at all, the number rule, and the canonical form (RFC 8785).

Values: None, bool, int (within ±(2^53-1)), float (every other number), str, list, dict.
Equal values are equal here too, except that Python says True == 1: compare with `same`.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import TypeAlias, Union

import rfc8785

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]

BYTES_MAX = 1 << 20
DEPTH_MAX = 64
SAFE_INT_MAX = 2**53 - 1
# A double's exponent has three digits; a number that needs more is zero or not a double's.
EXPONENT_DIGITS_MAX = 6


class Refused(Exception):
    """What an input is refused for: a code for machines, a sentence for people."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


@dataclass(frozen=True)
class Limits:
    bytes_max: int = BYTES_MAX
    depth_max: int = DEPTH_MAX


def parse(raw: bytes, limits: Limits = Limits()) -> Json:
    """Reads one JSON value, or raises Refused with the code of the first thing wrong."""
    if len(raw) > limits.bytes_max:
        raise Refused("too_large", f"{len(raw)} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as bad:
        raise Refused("encoding", f"not UTF-8 at byte {bad.start}") from bad
    if not text.strip(" \t\r\n"):
        raise Refused("empty")
    _bound_depth(text, limits.depth_max)
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as bad:
        raise Refused("syntax", str(bad)) from bad
    _no_surrogates(value)
    return value


def canonical(value: Json) -> bytes:
    """RFC 8785."""
    return rfc8785.dumps(_normal(value))


def same(a: Json, b: Json) -> bool:
    """Whether two values are one: true is not 1, and the order of keys does not count."""
    return canonical(a) == canonical(b)


def unbase64url(text: str) -> bytes:
    """base64url without padding, only in its one canonical spelling."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text) or len(text) % 4 == 1:
        raise Refused("malformed", "not base64url without padding")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64url(raw) != text:
        raise Refused("malformed", "base64url with non-zero trailing bits")
    return raw


def base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _bound_depth(text: str, depth_max: int) -> None:
    """Counts open brackets outside strings, so that nothing deep is ever recursed into."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text, re.DOTALL):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth > depth_max:
                raise Refused("too_deep", f"more than {depth_max} levels")
        elif mark in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    seen: set[str] = set()
    for key, _ in pairs:
        composed = unicodedata.normalize("NFC", key)
        if composed in seen:
            raise Refused("duplicate_key", f"{key!r} stands twice (after NFC)")
        seen.add(composed)
    return dict(pairs)


def _constant(name: str) -> Json:
    raise Refused("not_a_number", name)


def _number(text: str) -> Json:
    """The number rule: the decimal must be that of its double's shortest spelling."""
    decimal = _decimal(text)
    number = float(text) if decimal else 0.0
    if number in (float("inf"), float("-inf")) or _decimal(repr(number)) != decimal:
        raise Refused("number_not_exact", "send it as a string")
    return _normal(number)


def _decimal(text: str) -> tuple[bool, str, int] | None:
    """(negative, digits without zeros at the ends, exponent), or None for zero.

    Two texts write the same decimal exactly when these are equal; no big number is built.
    """
    parts = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)(\d+))?", text)
    if parts is None:
        raise Refused("syntax", "not a number")
    minus, whole, fraction, sign, exponent = parts.groups(default="")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return None
    exponent = exponent.lstrip("0")
    if len(exponent) > EXPONENT_DIGITS_MAX:
        raise Refused("number_not_exact", "exponent out of all bounds")
    power = int(sign + (exponent or "0")) - len(fraction) + len(digits) - len(kept)
    return (minus == "-", kept, power)


def _normal(value: Json) -> Json:
    """Whole numbers within ±(2^53-1) as int, every other number as float."""
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if float(value).is_integer() and abs(value) <= SAFE_INT_MAX:
        return int(value)
    return float(value)


def _no_surrogates(value: Json) -> None:
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise Refused("encoding", "lone surrogate")
    elif isinstance(value, list):
        for item in value:
            _no_surrogates(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _no_surrogates(key)
            _no_surrogates(item)
