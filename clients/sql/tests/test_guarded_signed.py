"""`guarded_write` with keys: an answer of verify is a yes only if the gateway signed it, for this very question."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from countersign import _verifying
from countersign.guarded import guarded_write
from countersign.verify import Keys, Refused

from scene import Scene
from targets import Target


def keys_of(scene: Scene) -> Keys:
    return Keys.read(scene.client("host").jwks())


def test_what_the_gateway_signed_is_written(scene: Scene, target: Target) -> None:
    for job in (scene.approved(), scene.unasked()):
        with closing(target.connect()) as connection:
            told = {**job.told(), "expect": {"/payment/amount": 40, "/payment": {"currency": "EUR", "amount": 40}}}
            assert guarded_write(
                connection, scene.client("writer"), target.body(job), **told, keys=keys_of(scene)
            ).by_this_call
        assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


@dataclass(frozen=True)
class Other:
    """Genuine tokens of another write."""

    receipt: str
    verification: str

    @classmethod
    def of(cls, scene: Scene) -> Other:
        job = scene.approved()
        assert job.receipt is not None
        return cls(job.receipt, scene.client("writer").verify(**job.told()).verification)


def spoiled(token: str) -> str:
    """One character of the signature."""
    at = len(token) - 10
    return token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]


LIES: dict[str, tuple[str, Any]] = {
    "another fence": ("fence_mismatch", lambda other, yes: replace(yes, fence=yes.fence + 1)),
    "a longer lease": (
        "lease_mismatch",
        lambda other, yes: replace(yes, lease_expires_at=yes.lease_expires_at + timedelta(minutes=1)),
    ),
    "enforced otherwise": ("enforced_mismatch", lambda other, yes: replace(yes, enforced=not yes.enforced)),
    "another write's": ("thread_mismatch", lambda other, yes: replace(yes, verification=other.verification)),
    "a spoiled signature": (
        "signature_invalid",
        lambda other, yes: replace(yes, verification=spoiled(yes.verification)),
    ),
    "a token of another kind": ("receipt_malformed", lambda other, yes: replace(yes, verification=other.receipt)),
    "no token": ("receipt_malformed", lambda other, yes: replace(yes, verification="eyJ.eyJ.sig")),
    "another view": (
        "expectation_failed",
        lambda other, yes: replace(yes, view={"payment": {"amount": 41}}),
    ),
    "an emptied view": ("expectation_failed", lambda other, yes: replace(yes, view={})),
}


@pytest.mark.parametrize(("code", "lie"), LIES.values(), ids=LIES.keys())
def test_an_answer_that_was_not_signed_so_writes_nothing(
    scene: Scene, target: Target, monkeypatch: pytest.MonkeyPatch, code: str, lie: Any
) -> None:
    """A proxy between writer and gateway changes the gateway's own response."""
    job, client, keys, other = scene.approved(), scene.client("writer"), keys_of(scene), Other.of(scene)
    told = {**job.told(), "expect": {"/payment/amount": 40}}
    with closing(target.connect()) as connection:
        with monkeypatch.context() as changed:
            honest = _verifying._yes
            changed.setattr(_verifying, "_yes", lambda answer, write_id: lie(other, honest(answer, write_id)))
            with pytest.raises(Refused) as refused:
                guarded_write(connection, client, target.body(job), **told, keys=keys)
        assert (refused.value.code, target.rows(job), scene.stands(job)) == (code, 0, ("writing", False))
        # The gateway was not notified, so the same job still works with its own response.
        assert guarded_write(connection, client, target.body(job), **told, keys=keys).by_this_call


def test_a_yes_by_keys_that_one_does_not_trust_writes_nothing(scene: Scene, target: Target) -> None:
    job = scene.approved()
    with closing(target.connect()) as connection, pytest.raises(Refused, match="unknown_key"):
        guarded_write(connection, scene.client("writer"), target.body(job), **job.told(), keys=Keys({}))
    strange = Keys(keys_of(scene)._keys, "https://another.example")
    with closing(target.connect()) as connection, pytest.raises(Refused, match="issuer_mismatch"):
        guarded_write(connection, scene.client("writer"), target.body(job), **job.told(), keys=strange)
    assert target.rows(job) == 0
