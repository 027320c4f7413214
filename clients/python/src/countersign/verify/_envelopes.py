"""Envelopes: whether what a model would be given is what the gateway sealed for this node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Literal

from countersign._names import Invalid

from ._claims import Envelope
from ._expected import ANY, Whatever, expects
from ._forms import Count, Digest, Moment, Text, exactly
from ._json import Json, canonical
from ._keys import Keys
from ._refused import Refused, must
from ._tagged import tagged
from ._tokens import claims

MALFORMED = "envelope_malformed"
# A long text is counted in pieces of so many characters.
PIECE_CHARS = 16_384


@dataclass(frozen=True)
class Truncated:
    """A part that did not fit."""

    pointer: Any
    how: Literal["dropped", "cut"]


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
) -> Envelope:
    """That a model may be given this: signed for this node of this thread, of `version` or a later one, whole, with all
    that the node requires, what it may receive, and no more than it may have.

    `fits(payload)` holds the payload against the schema of what the node receives, as
    `jsonschema.Draft202012Validator(schema).is_valid` does; with `ANY` the gateway, which does so before it seals, is
    believed about that.

    `count(text, encoding)` counts tokens, as `len(tiktoken.get_encoding(encoding).encode(text, disallowed_special=()))`
    does; with `ANY` the gateway is believed about that.
    """
    said = asdict(envelope) if is_dataclass(envelope) and not isinstance(envelope, type) else envelope
    if isinstance(said, Mapping) and isinstance(said.get("truncated"), tuple):
        said = {**said, "truncated": [*said["truncated"]]}
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
    must(same, "envelope_mismatch", "what is in it is not what was signed")
    if version is not ANY:
        if type(version) is not int:
            raise Invalid("version", "say which version the thread has come to, or ANY")
        must(found.version >= version, "stale", "the thread has moved on")
    must(all(_stands(sealed.payload, it) for it in found.requires), "required_missing", "something required is missing")
    if fits is not ANY:
        if not callable(fits):
            raise Invalid("fits", "say what holds the payload against the node's schema, or ANY")
        must(fits(sealed.payload) is True, "schema_mismatch", "it does not fit the schema of what the node receives")
    if count is not ANY:
        if not callable(count):
            raise Invalid("count", "say what counts tokens, or ANY")
        text = canonical(sealed.payload).decode()
        tokens = sum(count(text[at : at + PIECE_CHARS], found.encoding) for at in range(0, len(text), PIECE_CHARS))
        must(tokens == found.tokens, "tokens_mismatch", "it is not as many tokens as it says")
    must(found.budget is None or found.tokens <= found.budget, "over_budget", "it is more than the node may be given")
    return found


def _stands(value: Json, pointer: str) -> bool:
    """Whether something stands at a JSON Pointer."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and str(int(name)) == name:
            if int(name) >= len(value):
                return False
            value = value[int(name)]
        else:
            return False
    return True
