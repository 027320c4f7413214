"""Converts an application/problem+json body into an exception."""

from __future__ import annotations

from . import errors
from .errors import Fault, Json, Problem

_BY_CODE: dict[tuple[int, str], type[Problem]] = {
    (409, "conflict"): errors.BranchConflict,
    (409, "head_moved"): errors.HeadMoved,
    (409, "step_reused"): errors.StepReused,
    (409, "thread_held"): errors.ThreadHeld,
    (409, "write_in_progress"): errors.WriteInProgress,
    (409, "halted"): errors.Halted,
    (409, "closed"): errors.Closed,
    (409, "exists"): errors.Exists,
    (409, "wrong_state"): errors.WrongState,
    (409, "expired"): errors.Expired,
    (403, "forbidden"): errors.Forbidden,
    (410, "state_erased"): errors.StateErased,
    (422, "rejected"): errors.Rejected,
    (500, "chain_broken"): errors.ChainBroken,
}
_BY_STATUS: dict[int, type[Problem]] = {
    400: errors.Malformed,
    401: errors.Unauthenticated,
    403: errors.Denied,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.Malformed,
    429: errors.TooManyRequests,
}
_KNOWN = frozenset({"type", "title", "status", "detail", "instance", "code", "request_id", "errors"})


def problem(status: int, body: Json) -> Problem:
    """Returns the exception for a refusal. A response without a problem document, for example of a proxy, has no
    code."""
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        kind = errors.Failed if status >= 500 else _BY_STATUS.get(status, Problem)
        return kind(status=status, code="unknown", title="the answer is not the gateway's")
    code = body["code"]
    kind = _BY_CODE.get((status, code)) or _BY_STATUS.get(status) or (errors.Failed if status >= 500 else Problem)
    return kind(
        status=status,
        code=code,
        title=_text(body.get("title")) or "",
        detail=_text(body.get("detail")) or "",
        request_id=_text(body.get("request_id")),
        errors=_faults(body.get("errors")),
        facts={key: value for key, value in body.items() if key not in _KNOWN},
    )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _faults(listed: Json) -> tuple[Fault, ...]:
    found = listed if isinstance(listed, list) else []
    return tuple(_fault(it) for it in found if isinstance(it, dict))


def _fault(it: dict[str, Json]) -> Fault:
    offset = it.get("offset")
    return Fault(
        pointer=_text(it.get("pointer")) or "",
        code=_text(it.get("code")) or "unknown",
        detail=_text(it.get("detail")) or "",
        rule=_text(it.get("rule")),
        offset=offset if isinstance(offset, int) else None,
        value=it.get("value"),
    )
