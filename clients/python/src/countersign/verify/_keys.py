"""The published keys: each named by its thumbprint, each with its use and status."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from countersign._protocol._forms import base64url, unbase64url
from countersign._protocol._json import Json, canonical
from countersign._protocol._refused import Refused, must

from ._curve import is_strict_key

Status = Literal["next", "signing", "retired", "revoked"]
STATUSES = ("next", "signing", "retired", "revoked")
OF_A_GATEWAY = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
USES = ("chain", "log", "webhook")
# Visible ASCII characters.
ISSUER = re.compile(r"[!-~]{1,256}")


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
        """Reads a published set, as `Client.jwks` returns it. Keys that are not a gateway's are ignored. A key that is
        misnamed, weak, private or listed twice makes the whole set invalid."""
        listed = jwks.get("keys") if isinstance(jwks, dict) else None
        if not isinstance(listed, list):
            raise Refused("jwks", "not a key set")
        found: dict[str, Key] = {}
        signing: set[str] = set()
        for said in listed:
            must(isinstance(said, dict), "jwks", "a key is an object")
            # Its readers can sign with it.
            must("d" not in said, "jwks", "a private key")
            use = said.get("countersign_use")
            if use not in USES or any(said.get(member) != value for member, value in OF_A_GATEWAY.items()):
                continue
            key = _key(said)
            must(key.kid not in found, "jwks", "duplicate key")
            found[key.kid] = key
            if use == "chain":
                signing.add(key.kid)
        return cls({kid: found[kid] for kid in signing}, _issuer(jwks))

    def named(self, kid: str) -> Key | None:
        """Returns the key of that name."""
        return self._keys.get(kid)


def thumbprint(raw: bytes) -> str:
    """Returns the name of a key (RFC 7638)."""
    return base64url(hashlib.sha256(canonical({"crv": "Ed25519", "kty": "OKP", "x": base64url(raw)})).digest())


def _issuer(jwks: dict[str, Json]) -> str | None:
    if "issuer" not in jwks:
        return None
    issuer = jwks["issuer"]
    if not isinstance(issuer, str) or ISSUER.fullmatch(issuer) is None:
        raise Refused("jwks", "an issuer has 1 to 256 visible ASCII characters")
    return issuer


def _key(said: dict[str, Json]) -> Key:
    x, status = said.get("x"), said.get("status")
    raw = unbase64url(x) if isinstance(x, str) else None
    if raw is None or len(raw) != 32 or said.get("kid") != thumbprint(raw):
        raise Refused("jwks", "a key that is not the one of its name")
    must(is_strict_key(raw), "jwks", "a key of small order, or no key at all")
    must(isinstance(status, str) and status in STATUSES, "jwks", "a key of no known status")
    return Key(thumbprint(raw), raw, cast("Status", status))
