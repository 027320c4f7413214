"""What the guard says, and what one must do about it."""

from __future__ import annotations

from typing import Literal

from countersign.errors import CountersignError, UnexpectedAnswer

Code = Literal["fence_not_newer", "id_used", "lease_past", "arguments", "no_pass", "other_thread", "receipt_mismatch"]


class GuardRefused(CountersignError):
    """The database's own guard said no, and nothing was written. `code` says why.

    `fence_not_newer` and `id_used`: somebody wrote already, or the thread went on. `lease_past`: it took too long.
    `no_pass` and `other_thread`: the body left the transaction, or wrote rows of another thread. `arguments`: what
    the gateway answered does not fit this database, its clock above all. `receipt_mismatch`: the receipt wrote another
    transition here before.
    """

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class ReceiptMismatch(UnexpectedAnswer):
    """The receipt in the job is not the one that the gateway allowed this write by. Nothing was written.

    The gateway was told nothing, so its answer stands: call again with the right receipt within the lease, or `settle`.
    """

    code = "receipt_mismatch"

    def __init__(self) -> None:
        super().__init__(f"{self.code}: verify used another receipt than the one that was sent, or none")


class OutcomeUnknown(CountersignError):
    """The database could not be asked how it ended: whether it was written is not known. The gateway was told nothing.

    Call `settle` by a new connection, about the write that `guarded_write` was given.
    """

    def __init__(self, write_id: str) -> None:
        super().__init__(f"whether {write_id} was written is not known: settle it by a new connection")
        self.write_id = write_id


class GaveWay(CountersignError):
    """The database let another transaction go first, each time that it was tried. Nothing was written, and neither the
    guard nor the gateway was told that nothing will be.

    Within the lease the same call may be made again. After it, or where it is not made again: `settle`."""

    def __init__(self, *, in_body: bool = False) -> None:
        super().__init__("the database let others go first, each time: nothing was written")
        # Whether in any of these tries the body had begun, which might have committed by itself.
        self.in_body = in_body
