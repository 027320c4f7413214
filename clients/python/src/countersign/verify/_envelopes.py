"""Checks signed context envelopes."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from countersign._names import Invalid
from countersign._protocol._claims import Envelope
from countersign._protocol._forms import (
    AnyText,
    Count,
    Digest,
    Moment,
    Pointer,
    Text,
    base64url,
    exactly,
    members_of,
    unbase64url,
)
from countersign._protocol._json import Json, canonical
from countersign._protocol._pointer import value_at
from countersign._protocol._refused import Refused, must
from countersign.answers import NodeSecrets

from ._expected import ANY, Whatever, expects
from ._keys import Keys
from ._tagged import tagged
from ._tokens import claims

MALFORMED = "envelope_malformed"
# A long text is counted in pieces of this size.
PIECE_CHARS = 16_384


@dataclass(frozen=True)
class Truncated:
    """A part that was dropped or shortened."""

    pointer: Pointer
    how: Literal["dropped", "cut"]


@dataclass(frozen=True)
class Mac:
    """The HMAC beside the signature."""

    alg: Literal["HS256"]
    epoch: Moment
    value: AnyText


@dataclass(frozen=True)
class Sealed:
    """An envelope as it is sent."""

    version: Count
    timestamp: Moment
    tokenBudget: Count | None
    tokens: Count
    payload: Any
    truncated: tuple[Truncated, ...]
    transition: Digest
    signature: Text
    hmac: Mac | None = None


def check_envelope(
    envelope: Json,
    keys: Keys,
    *,
    issuer: str | Whatever,
    thread: str | Whatever,
    node: str | Whatever,
    version: int | Whatever,
    fits: Callable[[Json], bool] | Whatever,
    count: Callable[[str, str], int] | Whatever,
    secrets: NodeSecrets | Whatever = ANY,
    at: datetime | None = None,
) -> Envelope:
    """Checks that a model may receive this: signed for this node of this thread, of `version` or a later one. It must
    be complete, with everything that the node requires, and within its budget and schema.

    `fits(payload)` checks the payload against the node's schema, as `jsonschema.Draft202012Validator(schema).is_valid`
    does. With `ANY` the gateway is trusted, which checks it before it signs.

    `count(text, encoding)` counts tokens, as `len(tiktoken.get_encoding(encoding).encode(text, disallowed_special=()))`
    does. With `ANY` the gateway is trusted.

    With `secrets` of the node, an HMAC by one that is valid at `at`, or now, is required.
    """
    said = members_of(envelope)
    if isinstance(said, Mapping):
        # As sent: lists, and no member for a missing HMAC.
        listed_as = {"truncated": [*said["truncated"]]} if isinstance(said.get("truncated"), tuple) else {}
        listed_as["hmac"] = members_of(said.get("hmac"))
        said = {name: it for name, it in {**said, **listed_as}.items() if name != "hmac" or it is not None}
    sealed = exactly(Sealed, said, MALFORMED)
    try:
        found = claims(sealed.signature, Envelope, keys)
    except Refused as bad:
        if bad.code == "receipt_malformed":
            raise Refused(MALFORMED, str(bad)) from None
        raise
    expects("issuer", issuer, found.iss, "issuer_mismatch")
    expects("thread", thread, found.thread, "thread_mismatch")
    expects("node", node, found.node, "node_mismatch")
    listed: Json = [{"pointer": it.pointer, "how": it.how} for it in sealed.truncated]
    same = (
        (sealed.version, sealed.timestamp, sealed.tokenBudget, sealed.tokens, sealed.transition)
        == (found.version, found.timestamp, found.budget, found.tokens, found.transition)
        and tagged("countersign.payload.v1", canonical(sealed.payload)) == found.payload
        and tagged("countersign.truncated.v1", canonical(listed)) == found.truncated
    )
    must(same, "envelope_mismatch", "its content is not the signed content")
    if secrets is not ANY:
        if not isinstance(secrets, NodeSecrets):
            raise Invalid("secrets", "the result of node_secrets(…), or ANY")
        _bears(sealed.hmac, said, found, secrets, datetime.now(timezone.utc) if at is None else at)
    if version is not ANY:
        if type(version) is not int:
            raise Invalid("version", "say which version the thread has come to, or ANY")
        must(found.version >= version, "stale", "the thread has moved on")
    complete = all(value_at(sealed.payload, it) is not None for it in found.requires)
    must(complete, "required_missing", "something required is missing")
    if fits is not ANY:
        if not callable(fits):
            raise Invalid("fits", "say what holds the payload against the node's schema, or ANY")
        must(fits(sealed.payload) is True, "schema_mismatch", "it does not fit the schema of what the node receives")
    if count is not ANY:
        if not callable(count):
            raise Invalid("count", "say what counts tokens, or ANY")
        text = canonical(sealed.payload).decode()
        tokens = sum(count(text[at : at + PIECE_CHARS], found.encoding) for at in range(0, len(text), PIECE_CHARS))
        must(tokens == found.tokens, "tokens_mismatch", "its number of tokens is wrong")
    must(found.budget is None or found.tokens <= found.budget, "over_budget", "it exceeds the node's budget")
    return found


def _bears(mac: Mac | None, said: Json, found: Envelope, secrets: NodeSecrets, at: datetime) -> None:
    """Checks the HMAC, with a secret that is valid at that time, over the whole envelope."""
    if mac is None:
        raise Refused("hmac_missing", "it has no HMAC")
    good = [it.secret for it in secrets.secrets if it.epoch == mac.epoch and at < it.good_until]
    must(len(good) == 1, "hmac_expired", "its HMAC uses a secret that is not valid now")
    secret = unbase64url(good[0].removeprefix("envsec_")) if good[0].startswith("envsec_") else None
    if secret is None:
        raise Invalid("secrets", "the result of node_secrets(…), or ANY")
    bare = {name: value for name, value in said.items() if name != "hmac"} if isinstance(said, Mapping) else None
    message = canonical({"envelope": bare, "epoch": mac.epoch, "node": found.node, "thread": found.thread})
    expected = base64url(hmac.digest(secret, b"countersign.envelope-mac.v1\0" + message, "sha256"))
    same = hmac.compare_digest(expected, mac.value if mac.value.isascii() else "")
    must(same, "hmac_mismatch", "its HMAC is not the one of this envelope and its node's secret")
