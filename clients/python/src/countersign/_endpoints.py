"""Calls for endpoints and their deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from . import _names as names
from ._calls import by_pages, get, given, keyed
from ._plans import Call, Core, Plan, Request, Walk, asked, text
from ._reading import reads
from .errors import Json
from .resources import Attempt, Count, Delivery, DeliveryPage, Endpoint, Endpoints, Secret

# The gateway's own maximum.
DELIVERIES_PAGE = 200
Kind = Literal["webhook", "langgraph", "resume", "slack", "teams"]


def endpoints(core: Core) -> Plan[tuple[Endpoint, ...]]:
    """Returns all endpoints."""
    return (yield from asked(core, get(Endpoints, "/v1/endpoints"))).endpoints


def endpoint(core: Core, endpoint: str) -> Plan[Endpoint]:
    """Returns one endpoint: its delivery cursor and its health."""
    return (yield from asked(core, get(Endpoint, _path(endpoint))))


def add_endpoint(
    core: Core,
    name: str,
    url: str,
    *,
    kind: Kind = "webhook",
    events: Sequence[str] | None = None,
    flows: Sequence[str] = (),
    ordered: bool = False,
    headers: Mapping[str, str] | None = None,
    assistant: str | None = None,
    template: Mapping[str, Json] | None = None,
    payload: int | None = None,
    after: int | None = None,
) -> Plan[Endpoint]:
    """Creates an endpoint. Store the response's `secret`: it is returned only here."""
    body = given(
        name=name,
        url=url,
        kind=kind,
        events=None if events is None else list(events),
        flows=list(flows),
        ordered=ordered,
        headers=None if headers is None else dict(headers),
        assistant=assistant,
        template=None if template is None else dict(template),
        payload=payload,
        after=after,
    )
    return (yield from asked(core, keyed(Endpoint, "/v1/endpoints", body, 201)))


def change_endpoint(
    core: Core,
    endpoint: str,
    *,
    name: str | None = None,
    url: str | None = None,
    events: Sequence[str] | None = None,
    flows: Sequence[str] | None = None,
    headers: Mapping[str, str] | None = None,
    enabled: bool | None = None,
    from_: Literal["where_it_stopped", "now"] | None = None,
) -> Plan[Endpoint]:
    """Changes the given members only. An endpoint that is enabled continues `from_` where it stopped, or with new
    events."""
    body = given(
        name=name,
        url=url,
        events=None if events is None else list(events),
        flows=None if flows is None else list(flows),
        headers=None if headers is None else dict(headers),
        enabled=enabled,
    ) | given(**{"from": from_})
    request = Request("PATCH", _path(endpoint), body=text(body))
    return (yield from asked(core, Call(request, {200: reads(Endpoint)})))


def remove_endpoint(core: Core, endpoint: str) -> Plan[None]:
    """Removes an endpoint. `NotFound` means that it does not exist, or was removed before."""
    # A retry after a lost response would not find the endpoint, and report the success as a failure.
    call: Call[None] = Call(Request("DELETE", _path(endpoint)), {}, repeatable=False, done=204)
    yield from asked(core, call)


def new_endpoint_secret(core: Core, endpoint: str, *, overlap_secs: int | None = None) -> Plan[Secret]:
    """Creates a new secret. The previous one also signs for a day, or for as long as given."""
    body = given(overlap_secs=None if overlap_secs is None else names.whole("overlap_secs", overlap_secs, 0))
    return (yield from asked(core, keyed(Secret, _path(endpoint, "/secret"), body)))


def test_endpoint(core: Core, endpoint: str) -> Plan[Attempt]:
    """Sends a test event at once, and returns the result."""
    return (yield from asked(core, keyed(Attempt, _path(endpoint, "/test"), {})))


def deliveries_page(
    core: Core,
    endpoint: str,
    *,
    state: Literal["waiting", "failed"] | None = None,
    page_size: int = DELIVERIES_PAGE,
    page_token: str | None = None,
) -> Plan[DeliveryPage]:
    """Returns a page of deliveries, the newest event first."""
    query = given(state=state, page_size=str(names.whole("page_size", page_size, 1)), page_token=page_token)
    return (yield from asked(core, get(DeliveryPage, _path(endpoint, "/deliveries"), **query)))


def deliveries(core: Core, endpoint: str, *, state: Literal["waiting", "failed"] | None = None) -> Walk[Delivery]:
    """Yields all deliveries, the newest event first."""
    yield from by_pages(
        lambda token: deliveries_page(core, endpoint, state=state, page_token=token),
        lambda page: (page.deliveries, page.next_page_token),
    )


def delivery(core: Core, endpoint: str, delivery: int) -> Plan[Delivery]:
    """Returns one delivery, named by the log position of its event, with its body."""
    return (yield from asked(core, get(Delivery, _delivery(endpoint, delivery))))


def redeliver(core: Core, endpoint: str, delivery: int) -> Plan[Delivery]:
    """Sends a delivery again, whatever its result was."""
    return (yield from asked(core, keyed(Delivery, f"{_delivery(endpoint, delivery)}/redelivery", {}, 202)))


def redeliver_many(
    core: Core, endpoint: str, *, failed_since: str | None = None, after: int | None = None
) -> Plan[int]:
    """Sends failed deliveries since a time (RFC 3339) again, or everything after a log position that has not
    arrived. Returns their number."""
    body = given(failed_since=failed_since, after=None if after is None else names.whole("after", after, 0))
    return (yield from asked(core, keyed(Count, _path(endpoint, "/redeliveries"), body, 202))).count


def _path(endpoint: str, below: str = "") -> str:
    return f"/v1/endpoints/{names.part('endpoint', endpoint)}{below}"


def _delivery(endpoint: str, delivery: int) -> str:
    return _path(endpoint, f"/deliveries/{names.whole('delivery', delivery, 0)}")
