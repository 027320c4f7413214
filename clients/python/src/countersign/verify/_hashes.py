"""Tagged hashes over canonical JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ._json import Json, canonical
from ._statement import statement


def tagged(tag: str, content: bytes) -> str:
    """H(tag, content) of the protocol."""
    return "sha256:" + hashlib.sha256(tag.encode("ascii") + b"\0" + content).hexdigest()


def transition_digest(said: Json) -> str:
    """A transition's digest, from its statement; `Refused` if that is not whole."""
    statement(said)
    return tagged("countersign.transition.v1", canonical(said))


def policy_digest(policy: str, schemas: Mapping[str, str]) -> str:
    """A policy's digest, from its texts."""
    return tagged("countersign.policy.v1", canonical({"policy": policy, "schemas": dict(schemas)}))


def patch_digest(patch: Json) -> str:
    """A patch's digest, which names rejected attempts."""
    return tagged("countersign.patch.v1", canonical(patch))
