"""Calls of auditors and monitors."""

from __future__ import annotations

from . import _names as names
from ._calls import by_pages, get, given
from ._plans import Call, Core, Plan, Request, Walk, asked
from .errors import Json
from .resources import Evidence, Health, Passkey, Passkeys, Rejection, RejectionPage

# The gateway's own maximum.
REJECTIONS_PAGE = 200


def rejections_page(
    core: Core, *, page_size: int = REJECTIONS_PAGE, page_token: str | None = None
) -> Plan[RejectionPage]:
    """Returns a page of rejected proposals, newest first."""
    query = given(page_size=str(names.whole("page_size", page_size, 1)), page_token=page_token)
    return (yield from asked(core, get(RejectionPage, "/v1/rejections", **query)))


def rejections(core: Core) -> Walk[Rejection]:
    """Yields all rejected proposals, newest first."""
    yield from by_pages(
        lambda token: rejections_page(core, page_token=token), lambda page: (page.rejections, page.next_page_token)
    )


def passkeys(core: Core) -> Plan[tuple[Passkey, ...]]:
    """Returns every passkey that was ever registered. Auditors store this list."""
    return (yield from asked(core, get(Passkeys, "/v1/passkeys"))).passkeys


def evidence(core: Core, jti: str) -> Plan[tuple[Json, ...]]:
    """Returns the passkey signatures of a receipt's approvals."""
    return (yield from asked(core, get(Evidence, f"/v1/receipts/{names.jti('jti', jti)}/evidence"))).evidence


def alive(core: Core) -> Plan[str]:
    """Returns whether the gateway's process runs (liveness)."""
    return (yield from asked(core, get(Health, "/livez"))).status


def ready(core: Core) -> Plan[str]:
    """Returns whether the gateway can commit (readiness). Raises `Failed` if it cannot."""
    return (yield from asked(core, get(Health, "/readyz"))).status


def metrics(core: Core) -> Plan[str]:
    """Returns the metrics in Prometheus' text format."""
    request = Request("GET", "/metrics", headers={"Accept": "text/plain"})
    call: Call[str] = Call(request, {200: str}, parses=lambda body: body.decode("utf-8", "replace"))
    return (yield from asked(core, call))
