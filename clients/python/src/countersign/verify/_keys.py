"""The published keys: each named by its thumbprint, each with what it may still vouch for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from ._forms import base64url, unbase64url
from ._json import Json, canonical
from ._refused import Refused, must

Status = Literal["next", "signing", "retired", "revoked"]
STATUSES = ("next", "signing", "retired", "revoked")
SIGNS_TOKENS = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "countersign_use": "chain"}


@dataclass(frozen=True)
class Key:
    """A public key of Ed25519."""

    kid: str
    raw: bytes
    status: Status


class Keys:
    """Those of a set that sign tokens. Keep the set with what you check: a gateway's own word is not asked twice."""

    def __init__(self, keys: Mapping[str, Key], issuer: str | None = None) -> None:
        self._keys = dict(keys)
        # Whose they are, if the set says it.
        self.issuer = issuer

    @classmethod
    def read(cls, jwks: Json) -> Keys:
        """A published set, as `Client.jwks` gives it. Keys for other ends are passed over; one that is misnamed,
        private or listed twice makes the whole set not worth believing."""
        listed = jwks.get("keys") if isinstance(jwks, dict) else None
        if not isinstance(listed, list):
            raise Refused("jwks", "not a key set")
        found: dict[str, Key] = {}
        for said in listed:
            must(isinstance(said, dict), "jwks", "a key is an object")
            if any(said.get(member) != value for member, value in SIGNS_TOKENS.items()):
                continue
            key = _key(said)
            must(key.kid not in found, "jwks", "a key stands twice")
            found[key.kid] = key
        issuer = jwks.get("issuer")
        must(issuer is None or isinstance(issuer, str), "jwks", "an issuer is a text")
        return cls(found, issuer)

    def named(self, kid: str) -> Key | None:
        """The key of that name."""
        return self._keys.get(kid)


def thumbprint(raw: bytes) -> str:
    """The name of a key (RFC 7638)."""
    return base64url(hashlib.sha256(canonical({"crv": "Ed25519", "kty": "OKP", "x": base64url(raw)})).digest())


def _key(said: dict[str, Json]) -> Key:
    x, status = said.get("x"), said.get("status")
    raw = unbase64url(x) if isinstance(x, str) else None
    must("d" not in said, "jwks", "a private key")
    if raw is None or len(raw) != 32 or said.get("kid") != thumbprint(raw):
        raise Refused("jwks", "a key that is not the one of its name")
    must(isinstance(status, str) and status in STATUSES, "jwks", "a key of no known status")
    return Key(thumbprint(raw), raw, cast("Status", status))
