"""Hashes with a domain tag."""

from __future__ import annotations

import hashlib


def tagged(tag: str, content: bytes) -> str:
    """Computes H(tag, content) of the protocol."""
    return "sha256:" + hashlib.sha256(tag.encode("ascii") + b"\0" + content).hexdigest()
