"""The published keys: each named by its thumbprint, each with its use and status."""

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
    """A public Ed25519 key."""

    kid: str
    raw: bytes
    status: Status


class Keys:
    """The keys of a set that sign tokens. Store the set with the data that you check, so that a later gateway cannot
    replace it."""

    def __init__(self, keys: Mapping[str, Key], issuer: str | None = None) -> None:
        self._keys = dict(keys)
        # The issuer, if the set names it.
        self.issuer = issuer

    @classmethod
    def read(cls, jwks: Json) -> Keys:
        """Reads a published set, as `Client.jwks` returns it. Keys for other uses are ignored. A key that is
        misnamed, private or listed twice makes the whole set invalid."""
        listed = jwks.get("keys") if isinstance(jwks, dict) else None
        if not isinstance(listed, list):
            raise Refused("jwks", "not a key set")
        found: dict[str, Key] = {}
        for said in listed:
            must(isinstance(said, dict), "jwks", "a key is an object")
            if any(said.get(member) != value for member, value in SIGNS_TOKENS.items()):
                continue
            key = _key(said)
            must(key.kid not in found, "jwks", "duplicate key")
            found[key.kid] = key
        issuer = jwks.get("issuer")
        must(issuer is None or isinstance(issuer, str), "jwks", "an issuer is a text")
        return cls(found, issuer)

    def named(self, kid: str) -> Key | None:
        """Returns the key of that name."""
        return self._keys.get(kid)


def thumbprint(raw: bytes) -> str:
    """Returns the name of a key (RFC 7638)."""
    return base64url(hashlib.sha256(canonical({"crv": "Ed25519", "kty": "OKP", "x": base64url(raw)})).digest())


def _key(said: dict[str, Json]) -> Key:
    x, status = said.get("x"), said.get("status")
    raw = unbase64url(x) if isinstance(x, str) else None
    must("d" not in said, "jwks", "a private key")
    if raw is None or len(raw) != 32 or said.get("kid") != thumbprint(raw):
        raise Refused("jwks", "a key that is not the one of its name")
    must(isinstance(status, str) and status in STATUSES, "jwks", "a key of no known status")
    return Key(thumbprint(raw), raw, cast("Status", status))
