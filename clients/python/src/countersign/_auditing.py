"""The calls of those who look: auditors, and whatever watches over the gateway."""

from __future__ import annotations

from . import _names as names
from ._calls import by_pages, get, given
from ._plans import Call, Core, Plan, Request, Walk, asked
from .errors import Json
from .standing import Evidence, Health, Passkey, Passkeys, Rejection, RejectionPage

# As many as the gateway gives at once.
REJECTIONS_PAGE = 200


def rejections_page(
    core: Core, *, page_size: int = REJECTIONS_PAGE, page_token: str | None = None
) -> Plan[RejectionPage]:
    """Proposals that the policy turned away, the latest first, and where to go on."""
    query = given(page_size=str(names.whole("page_size", page_size, 1)), page_token=page_token)
    return (yield from asked(core, get(RejectionPage, "/v1/rejections", **query)))


def rejections(core: Core) -> Walk[Rejection]:
    """All of them, the latest first."""
    yield from by_pages(
        lambda token: rejections_page(core, page_token=token), lambda page: (page.rejections, page.next_page_token)
    )


def passkeys(core: Core) -> Plan[tuple[Passkey, ...]]:
    """Every passkey that was ever enrolled: what an auditor keeps."""
    return (yield from asked(core, get(Passkeys, "/v1/passkeys"))).passkeys


def evidence(core: Core, jti: str) -> Plan[tuple[Json, ...]]:
    """What passkeys signed for the approvals of a receipt."""
    return (yield from asked(core, get(Evidence, f"/v1/receipts/{names.jti('jti', jti)}/evidence"))).evidence


def alive(core: Core) -> Plan[str]:
    """Whether the gateway's process runs."""
    return (yield from asked(core, get(Health, "/livez"))).status


def ready(core: Core) -> Plan[str]:
    """Whether the gateway can be asked; `Failed` if it cannot."""
    return (yield from asked(core, get(Health, "/readyz"))).status


def metrics(core: Core) -> Plan[str]:
    """What the gateway counts of itself, in Prometheus' text."""
    request = Request("GET", "/metrics", headers={"Accept": "text/plain"})
    call: Call[str] = Call(request, {200: str}, parses=lambda body: body.decode("utf-8", "replace"))
    return (yield from asked(core, call))
