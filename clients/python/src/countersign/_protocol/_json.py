"""Strict JSON, which two parsers cannot read in two ways, and its canonical form (RFC 8785)."""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from ._refused import Refused

Json = Any

BYTES_MAX = 1 << 20
DEPTH_MAX = 64
SAFE = 2**53 - 1
DOUBLE_BITS_MAX = 1024
# An integer with so few characters is below 2^53.
SHORT_CHARS = 15
BLANKS = " \t\r\n"
# A text, which may lack its end, or a bracket.
MARKS = re.compile(r'"(?:[^"\\]+|\\.)*"?|[\[{\]}]', re.DOTALL)
TOO_DEEP = ("too_deep", "more levels than Python can read")


def read_json(raw: bytes, *, bytes_max: int = BYTES_MAX, depth_max: int = DEPTH_MAX) -> Json:
    """Reads one value, or raises `Refused` with the protocol's code."""
    if len(raw) > bytes_max:
        raise Refused("too_large", f"more than {bytes_max} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as bad:
        raise Refused("encoding", f"not UTF-8 at byte {bad.start}") from None
    if not text.strip(BLANKS):
        raise Refused("empty", "no value")
    _shallow(text, depth_max)
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
        )
    except json.JSONDecodeError as bad:
        raise Refused("syntax", f"at character {bad.pos}") from None
    except RecursionError:
        raise Refused(*TOO_DEEP) from None
    # Half of a surrogate pair is not UTF-8, so only an escape can write one.
    if "\\u" in text:
        _whole_characters(value)
    return value


def _shallow(text: str, depth_max: int) -> None:
    """Counts levels first, so that deep input is never descended into."""
    if text.count("[") + text.count("{") <= depth_max:
        return
    depth = 0
    for mark in MARKS.finditer(text):
        char = mark[0]
        if char in "[{":
            depth += 1
            if depth > depth_max:
                raise Refused("too_deep", f"more than {depth_max} levels")
        elif char in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs) or len({unicodedata.normalize("NFC", key) for key in found}) != len(found):
        raise Refused("duplicate_key", "duplicate key, also after NFC")
    return found


def _constant(name: str) -> Json:
    raise Refused("not_a_number", name)


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= SHORT_CHARS else _number(text)


def _number(text: str) -> int | float:
    """Reads a number whose decimal is its double's shortest spelling, so that the value read is the value hashed."""
    number = float(text)
    try:
        exact = text == repr(number) or (abs(number) != float("inf") and Decimal(text) == Decimal(repr(number)))
    except InvalidOperation:
        # With such an exponent only zero is a double.
        exact = number == 0 and not text.lower().partition("e")[0].strip("-0.")
    if not exact:
        raise Refused("number_not_exact", "not the shortest decimal of a double: send it as a string")
    return int(number) if number.is_integer() and abs(number) <= SAFE else number


def _whole_characters(value: Json) -> None:
    rest = [value]
    while rest:
        it = rest.pop()
        if isinstance(it, str):
            _whole(it)
        elif isinstance(it, list):
            rest.extend(it)
        elif isinstance(it, dict):
            rest.extend(it)
            rest.extend(it.values())


def _whole(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("encoding", "half of a surrogate pair") from None


def canonical(value: Json) -> bytes:
    """Returns RFC 8785 (JCS) as UTF-8."""
    parts: list[str] = []
    try:
        _write(value, parts)
    except RecursionError:
        raise Refused(*TOO_DEEP) from None
    return _whole("".join(parts))


def _write(value: Json, parts: list[str]) -> None:
    if value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        parts.append(encode_basestring(value))
    elif isinstance(value, int | float):
        parts.append(_spelled(value))
    elif isinstance(value, list | tuple):
        parts.append("[")
        for index, item in enumerate(value):
            parts.append("," if index else "")
            _write(item, parts)
        parts.append("]")
    elif isinstance(value, dict):
        parts.append("{")
        for index, key in enumerate(sorted(value, key=_utf16)):
            parts.append(("," if index else "") + encode_basestring(key) + ":")
            _write(value[key], parts)
        parts.append("}")
    else:
        raise Refused("syntax", f"a {type(value).__name__} is not JSON")


def _utf16(key: str) -> bytes:
    """Returns the sort key of an object key: code units, not code points."""
    if not isinstance(key, str):
        raise Refused("syntax", "a key is a text")
    return key.encode("utf-16-be", "surrogatepass")


def _spelled(number: int | float) -> str:
    """Spells a number as ECMAScript does."""
    if isinstance(number, int):
        if abs(number) <= SAFE:
            return str(number)
        number = _double(number)
    if number - number != 0:
        raise Refused("not_a_number", repr(number))
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return "0"
    # The number of digits before the decimal point.
    point = len(digits) + int(exponent)
    return ("-" if sign else "") + _placed(text, point)


def _double(number: int) -> float:
    """Returns an integer that exceeds JSON's, by the rule for reading."""
    # Python refuses to print an integer with that many digits.
    if number.bit_length() > DOUBLE_BITS_MAX:
        raise Refused("number_not_exact", "longer than any double: send it as a string")
    return float(_number(str(number)))


def _placed(text: str, point: int) -> str:
    if len(text) <= point <= 21:
        return text + "0" * (point - len(text))
    if 0 < point <= 21:
        return f"{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + text
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{text[0]}{fraction}e{point - 1:+d}"
