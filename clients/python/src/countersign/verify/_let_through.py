"""Whether the gateway signed what verify answered: for a writer that does not trust whoever carried the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from countersign._names import Invalid
from countersign._unchecked import NoToken, claim
from countersign.answers import Verified
from countersign.errors import Json

from ._expected import ANY
from ._json import canonical
from ._keys import Keys
from ._refused import Refused, must
from ._tokens import check_verification


@dataclass(frozen=True)
class Asked:
    """What a writer asked about, by its own job."""

    thread: str
    transition: str
    write_id: str
    receipt: str | None
    expect: Mapping[str, Json]


def must_be_comparable(expect: Mapping[str, Json]) -> None:
    """Refuses an expectation that no view could be held against, before a yes is spent on it."""
    try:
        canonical(dict(expect))
    except Refused as bad:
        raise Invalid("expect", f"no view has such a value ({bad})") from None
    except RecursionError:
        raise Invalid("expect", "no view has such a value (too_deep)") from None


def must_be_signed(answer: Verified, asked: Asked, keys: Keys, *, now: float) -> None:
    """Refuses an answer that says anything else than the verification that was signed for exactly this question.

    The view is not among what is signed. What the writer expects of it is looked for in it here, as the gateway does.
    """
    signed = check_verification(
        answer.verification,
        keys,
        issuer=ANY if keys.issuer is None else keys.issuer,
        thread=asked.thread,
        transition=asked.transition,
        write_id=asked.write_id,
        # Its `exp` has no parts of a second: the lease that it agrees with is looked at below.
        at=ANY,
    )
    lease = answer.lease_expires_at.timestamp()
    must(signed.fence == answer.fence, "fence_mismatch", "another fence was signed")
    must(signed.exp == math.floor(lease), "lease_mismatch", "another lease was signed")
    must(
        signed.enforced == answer.enforced,
        "enforced_mismatch",
        "signed was another word on whether it is enforced",
    )
    must(signed.receipt in (None, _jti(asked.receipt)), "receipt_mismatch", "another receipt was used")
    must(now < lease, "expired", "the lease is over, by this machine's clock")
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
    """What stands at a JSON Pointer, in its canonical form, if anything does."""
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
