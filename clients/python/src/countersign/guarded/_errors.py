"""Exceptions of the guard, and what to do about each."""

from __future__ import annotations

from typing import Literal

from countersign.errors import CountersignError

Code = Literal["fence_not_newer", "id_used", "lease_past", "arguments", "no_pass", "other_thread", "receipt_mismatch"]


class GuardRefused(CountersignError):
    """The database's guard refused, and nothing was written. `code` says why.

    `fence_not_newer` and `id_used`: the thread was written already, or has moved on. `lease_past`: the lease expired.
    `no_pass` and `other_thread`: the body left the transaction, or wrote rows of another thread. `arguments`: the
    response of `verify` does not fit this database. Check its clock first. `receipt_mismatch`: the receipt wrote
    another transition here before.
    """

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class OutcomeUnknown(CountersignError):
    """The database could not be asked how the commit ended, and the gateway was not notified.

    Call `settle` on a new connection, for the same write.
    """

    def __init__(self, write_id: str) -> None:
        super().__init__(f"the outcome of {write_id} is unknown: call settle on a new connection")
        self.write_id = write_id


class GaveWay(CountersignError):
    """The database let another transaction go first in each attempt. Nothing was written, and neither the guard nor the
    gateway was notified.

    Within the lease the same call can be repeated. Otherwise call `settle`.
    """

    def __init__(self, *, in_body: bool = False) -> None:
        super().__init__("the database let other transactions go first in each attempt: nothing was written")
        # Whether the body started in any attempt, because it can have committed by itself.
        self.in_body = in_body
