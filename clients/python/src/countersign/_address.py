"""Address of the gateway. A token is sent over plain HTTP to localhost only, unless `allow_plain_http` is set."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from ._names import Invalid


@dataclass(frozen=True)
class Address:
    """Scheme, host and port of a gateway."""

    url: str
    is_encrypted: bool


def address(url: str, *, allow_plain_http: bool = False) -> Address:
    """Parses `url` as the address of a gateway: https, or http on localhost."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Invalid("url", "is no address") from None
    if parts.scheme not in ("https", "http") or not host:
        raise Invalid("url", "begins with https:// and a host")
    if parts.username is not None or parts.password is not None:
        # The address is not repeated, because it may contain a password.
        raise Invalid("url", "contains a user or a password: pass the token as `token`")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise Invalid(
            "url",
            "has a path or a query: give only scheme, host and port, such as http://localhost:8480, without /aap/v1",
        )
    if parts.scheme == "http" and not (allow_plain_http or _is_this_machine(host)):
        raise Invalid("url", "plain http would expose the token: use https")
    named = f"[{host}]" if ":" in host else host
    return Address(f"{parts.scheme}://{named}" + (f":{port}" if port else ""), parts.scheme == "https")


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
