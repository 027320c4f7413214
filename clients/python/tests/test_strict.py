"""Cases without a vector: tokens by a test's own key, and second spellings of points and scalars."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign import verify
from countersign._protocol._forms import base64url
from countersign.verify import ANY, Keys, Refused
from countersign.verify._curve import ORDER, P, is_strict_point, is_strict_scalar
from countersign.verify._keys import OF_A_GATEWAY, thumbprint

SIGNING = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = SIGNING.public_key().public_bytes_raw()
OURS = {**OF_A_GATEWAY, "countersign_use": "chain", "x": base64url(RAW), "kid": thumbprint(RAW), "status": "signing"}
KEYS = Keys.read({"keys": [OURS]})
DIGEST = "sha256:" + "a" * 64
CLAIMS: dict[str, Any] = {
    "iss": "urn:test",
    "thread": "order-1",
    "version": 0,
    "transition": DIGEST,
    "parent": None,
    "gate": {"kind": "auto"},
    "owes": False,
    "policy": DIGEST,
    "committed_at": "2026-11-21T04:03:42.391Z",
}


def signed(payload: bytes, typ: str = "countersign-entry+jwt") -> str:
    header = verify.canonical({"alg": "EdDSA", "kid": thumbprint(RAW), "typ": typ})
    text = f"{base64url(header)}.{base64url(payload)}"
    return f"{text}.{base64url(SIGNING.sign(text.encode()))}"


def test_a_token_in_canonical_form_is_good() -> None:
    assert verify.check_entry(signed(verify.canonical(CLAIMS)), KEYS, issuer=ANY, transition=ANY).thread == "order-1"


@pytest.mark.parametrize(
    "payload",
    [
        verify.canonical(CLAIMS) + b" ",
        verify.canonical(CLAIMS).replace(b'"version":0', b'"version":0.0'),
        verify.canonical(CLAIMS).replace(b"order-1", b"order-\\u0031"),
        b"{"
        + verify.canonical(CLAIMS)[1:]
        .replace(b',"version":0}', b"}")
        .replace(b'"committed', b'"version":0,"committed'),
    ],
    ids=["a blank", "a number", "an escape", "the order"],
)
def test_one_that_says_the_same_in_another_spelling_is_not(payload: bytes) -> None:
    assert verify.read_json(payload) == CLAIMS
    with pytest.raises(Refused, match="canonical"):
        verify.check_entry(signed(payload), KEYS, issuer=ANY, transition=ANY)


def test_one_that_is_longer_than_any_is_not_read() -> None:
    with pytest.raises(Refused) as refused:
        verify.check_entry(signed(verify.canonical({**CLAIMS, "iss": "x" * 50_000})), KEYS, issuer=ANY, transition=ANY)
    assert refused.value.code == "receipt_malformed"


def test_points_and_scalars_have_one_spelling() -> None:
    def raw(number: int) -> bytes:
        return number.to_bytes(32, "little")

    assert is_strict_point(RAW)
    assert is_strict_point(raw(3))
    # Seven is the y coordinate of a point, and so is P + 7 for a library that reduces it.
    for number in (P + 3, P + 7, P, P + 1, 0, 1, P - 1, 2**255 + 1, 2**255):
        assert not is_strict_point(raw(number)), number
    assert not is_strict_point(RAW[:31])
    assert is_strict_scalar(raw(ORDER - 1))
    assert not is_strict_scalar(raw(ORDER))
    assert not is_strict_scalar(raw(ORDER + 5))


def test_whoever_lacks_the_extra_is_told_its_name() -> None:
    # The client itself checks the form of a response without it.
    script = "import sys; sys.modules['cryptography'] = None; import countersign.tools; import countersign.verify"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "pip install 'countersign-gateway[verify]'" in done.stderr
