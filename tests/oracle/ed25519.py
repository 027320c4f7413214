"""What OpenSSL's Ed25519 lets through and a strict verifier does not: keys and nonces of small
order (anybody can sign for those) and points or scalars in a second spelling."""

from __future__ import annotations

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]
IDENTITY: Point = (0, 1)


def decode(raw: bytes) -> Point | None:
    """The point that 32 bytes stand for (RFC 8032, 5.1.3); None if they are not its one form."""
    if len(raw) != 32:
        return None
    number = int.from_bytes(raw, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return (P - x if x % 2 != sign else x, y)


def add(a: Point, b: Point) -> Point:
    (x1, y1), (x2, y2) = a, b
    cross = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + y1 * x2) * pow(1 + cross, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - cross, -1, P)
    return (x % P, y % P)


def is_sound_point(raw: bytes) -> bool:
    """Canonically written, on the curve, and not among the eight points of small order."""
    point = decode(raw)
    if point is None:
        return False
    for _ in range(3):
        point = add(point, point)
    return point != IDENTITY


def is_sound_scalar(raw: bytes) -> bool:
    return len(raw) == 32 and int.from_bytes(raw, "little") < L
