"""Secrets of nodes: requested once for each period, and used to check envelopes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from urllib.parse import quote

from . import _names as names
from ._calls import envelope, get
from ._plans import Core, Plan, asked
from .answers import Envelope, NodeSecrets
from .errors import Json

if TYPE_CHECKING:
    from .verify import Keys
    from .verify._expected import Whatever


class HeldSecrets:
    """The last secrets of one node, for `checked_envelope`. Create one and pass it each time: new secrets are
    requested when a period starts. Threads may share it. It does not print its secrets."""

    def __init__(self) -> None:
        self._given: NodeSecrets | None = None

    def __repr__(self) -> str:
        return "HeldSecrets(…)"

    def of(self, flow: str, node: str, epoch: str) -> NodeSecrets | None:
        """Returns the secrets of the node, if the period's secret is among them."""
        given = self._given
        if given is None or (given.flow, given.node) != (flow, node):
            return None
        return given if any(it.epoch == epoch for it in given.secrets) else None

    def keep(self, given: NodeSecrets) -> NodeSecrets:
        """Stores these secrets."""
        self._given = given
        return given


def node_secrets(core: Core, flow: str, node: str) -> Plan[NodeSecrets]:
    """Returns the node's HMAC secrets: of this period and, for a while, of the previous one. Only the node's own
    agent receives them, and the audit log records it."""
    flow, node = quote(names.name("flow", flow), safe=""), quote(names.name("node", node), safe="")
    return (yield from asked(core, get(NodeSecrets, f"/v1/flows/{flow}/nodes/{node}/envelope-secret")))


def checked_envelope(
    core: Core,
    thread: str,
    *,
    flow: str,
    node: str,
    keys: Keys,
    issuer: str | Whatever,
    held: HeldSecrets,
    fits: Callable[[Json], bool] | Whatever,
    count: Callable[[str, str], int] | Whatever,
) -> Plan[Envelope]:
    """Returns an envelope that was checked here: signed by one of `keys`, with an HMAC by the node's secret. The
    secret is requested if `held` has none of that period. `fits` and `count` are those of
    `countersign.verify.check_envelope`. A failed check raises `Refused` with its code."""
    from .verify import ANY, check_envelope

    if not isinstance(held, HeldSecrets):
        raise names.Invalid("held", "HeldSecrets() of this node")
    found = yield from envelope(core, thread, node=node, hmac=True)
    secrets = held.of(flow, node, "" if found.hmac is None else found.hmac.epoch)
    if secrets is None:
        secrets = held.keep((yield from node_secrets(core, flow, node)))
    check_envelope(
        found,
        keys,
        issuer=issuer,
        thread=thread,
        node=node,
        version=ANY,
        fits=fits,
        count=count,
        secrets=secrets,
        at=datetime.fromtimestamp(core.today(), timezone.utc),
    )
    return found
