"""The exception of a call that did not run."""

from __future__ import annotations

from countersign.errors import CountersignError

_AGAIN = "If the call is still needed, make it again"
# Without a key, each call is another one.
_WITH_KEY = {"new_key": " with a new key", "same_key": ", with the same key"}
_WITHOUT_KEY = {"new_key": "", "same_key": ""}
_NEXT_STEPS = {
    "denied": "Do not make this call again. Follow the note, if there is one.",
    "expired": f"No reviewer decided in time. {_AGAIN}{{new_key}}.",
    "cancelled": f"The request was cancelled. {_AGAIN}{{new_key}}.",
    "still_held": "Reviewers have not decided yet. Make the same call again later{same_key}.",
    "not_approved": f"The approval is no longer valid. {_AGAIN}{{new_key}}.",
    "approval_expired": f"The approval was not used in time. {_AGAIN}{{new_key}}.",
    "halted": "An administrator has halted the flow. Make the same call again after the halt{same_key}.",
    "already_consumed": "An earlier attempt used the approval, so the call may have had its effect. Find out whether "
    "it did. Then make the call again{new_key}, if it is still needed.",
    "idempotency_conflict": "The key belongs to a call with other arguments. Use one key for each call.",
}
CODES = frozenset(_NEXT_STEPS)


class CallRefused(CountersignError):
    """The function did not run. `code` says why, and `next_step` what to do. The text is for the model.

    - `denied`: by a reviewer or by the policy. `note` is their reason.
    - `expired`, `cancelled`, `still_held`: there is no decision.
    - `not_approved`: the approval was revoked, or the policy has changed.
    - `approval_expired`: the approval was not used in time.
    - `halted`: an administrator has halted the flow. The halt does not end the approval.
    - `already_consumed`: an earlier attempt used the approval, perhaps in a process that died.
    - `idempotency_conflict`: the key belongs to another call.

    `request` is the id of the approval request, if there is one. `keyed` is whether the call has a `key`.
    """

    def __init__(
        self, code: str, tool: str, *, note: str | None = None, request: str | None = None, keyed: bool = True
    ) -> None:
        self.code, self.tool, self.note, self.request = code, tool, note, request
        next_step = _NEXT_STEPS.get(code, "Do not make this call.")
        self.next_step = next_step.format(**(_WITH_KEY if keyed else _WITHOUT_KEY))
        reason = f" Note: {note}" if note else ""
        super().__init__(f"{tool} did not run ({code}). {self.next_step}{reason}")
