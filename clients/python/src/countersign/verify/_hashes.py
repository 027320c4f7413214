"""Tagged hashes over canonical JSON."""

from __future__ import annotations

from collections.abc import Mapping

from ._json import Json, canonical
from ._statement import statement
from ._tagged import tagged


def transition_digest(said: Json) -> str:
    """A transition's digest, from its statement; `Refused` if that is not whole."""
    statement(said)
    return tagged("countersign.transition.v1", canonical(said))


def policy_digest(policy: str, schemas: Mapping[str, str]) -> str:
    """A policy's digest, from its texts."""
    return tagged("countersign.policy.v1", canonical({"policy": policy, "schemas": dict(schemas)}))


def manifest_digest(manifest: Mapping[str, Json]) -> str:
    """The digest of a run's manifest that a gateway signs: of all that it says but its `signer`."""
    return tagged("countersign.episode.v1", canonical({**manifest, "signer": None}))
