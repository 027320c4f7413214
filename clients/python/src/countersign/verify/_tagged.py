"""Hashes that say what they are of."""

from __future__ import annotations

import hashlib


def tagged(tag: str, content: bytes) -> str:
    """H(tag, content) of the protocol."""
    return "sha256:" + hashlib.sha256(tag.encode("ascii") + b"\0" + content).hexdigest()
