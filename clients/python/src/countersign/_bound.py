"""Checks that a `verify` response answers this request. Without keys, the signed claims bind the response,
and prove nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._names import Invalid
from ._protocol._claims import Verification
from ._protocol._json import canonical
from ._protocol._parts import read_token
from ._protocol._pointer import value_at
from ._protocol._refused import Refused, must
from ._unchecked import NoToken, claim
from .answers import Verified
from .errors import AnswerMismatch, Json, ReceiptMismatch

if TYPE_CHECKING:
    from .verify import Keys


@dataclass(frozen=True)
class Asked:
    """The request of a writer, from its own job."""

    thread: str
    transition: str
    write_id: str
    receipt: str | None
    expect: Mapping[str, Json]


def must_be_keys(keys: Keys | None) -> None:
    """Refuses values that are no keys, such as a key set that was not read, before anything is sent."""
    if keys is None:
        return
    from .verify import Keys

    if not isinstance(keys, Keys):
        raise Invalid("keys", "Keys of countersign.verify: Keys.read(…)")


def must_be_comparable(expect: Mapping[str, Json]) -> None:
    """Refuses an expectation that no view can match, before a permission is spent on it."""
    try:
        canonical(dict(expect))
    except Refused as bad:
        raise Invalid("expect", f"no view has such a value ({bad})") from None


def must_be_bound(answer: Verified, asked: Asked, keys: Keys | None, *, now: float) -> None:
    """Refuses a response that differs from the verification of exactly this request.

    The view is not signed. The writer's expectations are compared with it here, as the gateway does.
    """
    with _unproven(keys):
        signed = _claims(answer.verification, asked.thread, asked.write_id, keys)
        must(signed.transition == asked.transition, "digest_mismatch", "another transition was verified")
        lease = answer.lease_expires_at.timestamp()
        must(signed.fence == answer.fence, "fence_mismatch", "another fence was signed")
        # `exp` has whole seconds.
        must(signed.exp == math.floor(lease), "lease_mismatch", "another lease was signed")
        must(signed.enforced == answer.enforced, "enforced_mismatch", "another value of `enforced` was signed")
        # The gateway may need no receipt although one was sent.
        must(signed.receipt in (None, _jti(asked.receipt)), "receipt_mismatch", "another receipt was used")
        must(now < lease, "expired", "the lease has expired by the local clock")
        for pointer, value in asked.expect.items():
            found = value_at(answer.view, pointer)
            as_expected = found is not None and canonical(found[0]) == canonical(value)
            must(as_expected, "expectation_failed", "the view is not as expected")


def reservation(token: str, thread: str, write_id: str, keys: Keys | None) -> Verification:
    """Returns the claims of the verification of this write. Only `keys` prove them."""
    with _unproven(keys):
        return _claims(token, thread, write_id, keys)


def _claims(token: str, thread: str, write_id: str, keys: Keys | None) -> Verification:
    if keys is not None:
        from .verify import ANY, check_verification

        issuer = ANY if keys.issuer is None else keys.issuer
        # `exp` has whole seconds, so the caller compares the lease.
        return check_verification(token, keys, issuer=issuer, thread=thread, transition=ANY, write_id=write_id, at=ANY)
    found = read_token(token, Verification).claims
    must(found.sub == thread, "thread_mismatch", "the verification is about another thread")
    must(found.write_id == write_id, "write_mismatch", "the verification is about another write")
    return found


@contextmanager
def _unproven(keys: Keys | None) -> Iterator[None]:
    """Raises `AnswerMismatch` instead of `Refused` if there are no keys. Then nothing was checked by a signature."""
    try:
        yield
    except Refused as refused:
        if keys is not None:
            raise
        if refused.code == "receipt_mismatch":
            raise ReceiptMismatch from None
        raise AnswerMismatch(refused.code, refused.detail) from None


def _jti(receipt: str | None) -> Json:
    """Returns the id that the sent receipt claims. The gateway checks receipts."""
    if receipt is None:
        return None
    try:
        return claim(receipt, "jti")
    except NoToken:
        return None
