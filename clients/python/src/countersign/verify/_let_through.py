"""Checks the signed verification in a `verify` response, for a writer that does not trust the transport."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from countersign._names import Invalid
from countersign._protocol._json import canonical
from countersign._protocol._refused import Refused, must
from countersign._unchecked import NoToken, claim
from countersign.answers import Verified
from countersign.errors import Json

from ._expected import ANY
from ._keys import Keys
from ._tokens import check_verification


@dataclass(frozen=True)
class Asked:
    """The request of a writer, from its own job."""

    thread: str
    transition: str
    write_id: str
    receipt: str | None
    expect: Mapping[str, Json]


def must_be_comparable(expect: Mapping[str, Json]) -> None:
    """Refuses an expectation that no view can match, before a permission is spent on it."""
    try:
        canonical(dict(expect))
    except Refused as bad:
        raise Invalid("expect", f"no view has such a value ({bad})") from None
    except RecursionError:
        raise Invalid("expect", "no view has such a value (too_deep)") from None


def must_be_signed(answer: Verified, asked: Asked, keys: Keys, *, now: float) -> None:
    """Refuses a response that differs from the signed verification of exactly this request.

    The view is not signed. The writer's expectations are compared with it here, as the gateway does.
    """
    signed = check_verification(
        answer.verification,
        keys,
        issuer=ANY if keys.issuer is None else keys.issuer,
        thread=asked.thread,
        transition=asked.transition,
        write_id=asked.write_id,
        # `exp` has whole seconds, so the lease is compared below.
        at=ANY,
    )
    lease = answer.lease_expires_at.timestamp()
    must(signed.fence == answer.fence, "fence_mismatch", "another fence was signed")
    must(signed.exp == math.floor(lease), "lease_mismatch", "another lease was signed")
    must(
        signed.enforced == answer.enforced,
        "enforced_mismatch",
        "another value of `enforced` was signed",
    )
    must(signed.receipt in (None, _jti(asked.receipt)), "receipt_mismatch", "another receipt was used")
    must(now < lease, "expired", "the lease has expired by the local clock")
    for pointer, value in asked.expect.items():
        must(_at(answer.view, pointer) == (canonical(value),), "expectation_failed", "the view is not as expected")


def _jti(receipt: str | None) -> Json:
    if receipt is None:
        return None
    try:
        return claim(receipt, "jti")
    except NoToken:
        return None


def _at(view: Json, pointer: str) -> tuple[bytes] | None:
    """Returns the canonical value at a JSON Pointer, if there is one."""
    found = view
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name in map(str, range(len(found))):
            found = found[int(name)]
        else:
            return None
    return (canonical(found),)
