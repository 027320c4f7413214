"""Tagged hashes over canonical JSON."""

from __future__ import annotations

from collections.abc import Mapping

from countersign._protocol._json import Json, canonical

from ._statement import statement
from ._tagged import tagged


def transition_digest(said: Json) -> str:
    """Returns a transition's digest from its statement, or raises `Refused` if the statement is incomplete."""
    statement(said)
    return tagged("countersign.transition.v1", canonical(said))


def policy_digest(policy: str, schemas: Mapping[str, str]) -> str:
    """Returns a policy's digest from its texts."""
    return tagged("countersign.policy.v1", canonical({"policy": policy, "schemas": dict(schemas)}))


def manifest_digest(manifest: Mapping[str, Json]) -> str:
    """Returns the digest of a run's manifest that a gateway signs: everything except its `signer`."""
    return tagged("countersign.episode.v1", canonical({**manifest, "signer": None}))
