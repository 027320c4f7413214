"""The settings of both clients, checked once."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from ._address import Address, address
from ._bounded import Body
from ._names import Invalid, whole
from ._plans import Core, Lost, Reply, Request, Retries
from ._secret import Secret


@dataclass(frozen=True)
class Settings:
    """Address, token and patience of a client."""

    address: Address
    token: Secret
    timeout_secs: float
    core: Core = field(repr=False)
    answer_bytes_max: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        url: str,
        token: Secret,
        *,
        timeout_secs: float,
        retries: Retries | None,
        allow_plain_http: bool,
        tls: ssl.SSLContext | None,
        answer_bytes_max: int,
    ) -> Settings:
        if not timeout_secs > 0:
            raise Invalid("timeout_secs", "must be positive")
        whole("answer_bytes_max", answer_bytes_max, 1)
        core = Core(retries=retries or Retries())
        where = address(url, allow_plain_http=allow_plain_http)
        return cls(where, token.checked(), timeout_secs, core, answer_bytes_max, tls)

    def httpx(self) -> Mapping[str, Any]:
        """Returns the settings of httpx: no redirects, and over plain HTTP no proxy of the environment, which would
        see the token."""
        return {
            "base_url": self.address.url,
            # Nothing is decompressed: a small response could expand to any size.
            "headers": {
                "Authorization": f"Bearer {self.token.reveal()}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            "follow_redirects": False,
            "trust_env": self.address.is_encrypted,
            "verify": self.tls or True,
        }

    def sent(self, request: Request) -> Mapping[str, Any]:
        """Returns a request as httpx takes it."""
        headers = dict(request.headers)
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        return {
            "method": request.method,
            "url": request.path,
            "params": dict(request.query) or None,
            "content": request.body,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout_secs, read=self.timeout_secs + request.waits_secs),
        }


def reply(response: httpx.Response, body: Body) -> Reply:
    """Returns a response."""
    return Reply(response.status_code, body.whole(), response.headers.get("retry-after"), response.headers)


def lost(error: httpx.HTTPError, url: str) -> Lost:
    """Returns a missing response. The address has no password, and httpx names no header."""
    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    kind = type(error).__name__
    if isinstance(error, httpx.ConnectError) and _was_refused(error):
        why = f"{url} refused the connection. Is `countersign serve` running there?"
    elif isinstance(error, httpx.ConnectError):
        why = f"no connection to {url} ({error}). Is the address right?"
    elif isinstance(error, httpx.TimeoutException):
        why = f"{url} did not answer in time ({kind})"
    else:
        why = f"the connection to {url} was lost ({kind})"
    return Lost(why, sent=not unsent, cause=error)


def _was_refused(error: BaseException | None) -> bool:
    """Returns whether no program listens at the address. Asynchronous connections try several, and raise a group."""
    if error is None or isinstance(error, ConnectionRefusedError):
        return error is not None
    return any(map(_was_refused, (error.__cause__ or error.__context__, *getattr(error, "exceptions", ()))))
