"""Offline checks of a real gateway's signatures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from conftest import STATE, Flow
from countersign import Held, Invalid, verify
from countersign._protocol._parts import TYPES
from countersign.verify import ANY, Keys, Refused
from test_vectors import TOKENS as VECTORS

# A test states its expectations about a receipt.
NOTHING: dict[str, Any] = dict.fromkeys(("issuer", "thread", "transition", "audience", "at"), ANY)


def test_everything_that_a_write_left_behind_holds_offline(flow: Flow) -> None:
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    decision = flow.planner.wait_for_decision(held.transition, within_secs=30)
    allowed = flow.writer.verify(
        thread=made.thread, transition=held.transition, receipt=decision.receipt, write_id="signed-1"
    )
    flow.writer.confirm("signed-1")
    keys, now = Keys.read(flow.host.jwks()), datetime.now(timezone.utc)

    receipt = verify.check_receipt(
        decision.receipt,
        keys,
        thread=made.thread,
        transition=held.transition,
        audience="database_writer",
        issuer=ANY,
        at=now,
    )
    assert (receipt.jti, receipt.approvals[0].reviewer) == (decision.nonce, decision.reviewer_id)
    let_through = verify.check_verification(
        allowed.verification,
        keys,
        issuer=receipt.iss,
        thread=made.thread,
        transition=held.transition,
        write_id="signed-1",
        at=now,
    )
    assert let_through.fence == allowed.fence
    entry = verify.check_entry(made.entry, keys, issuer=receipt.iss, transition=made.transition)
    assert entry.version == 0

    chain = verify.check_chain(list(flow.auditor.chain(made.thread)), keys, issuer=receipt.iss, thread=made.thread)
    assert [link.statement.type for link in chain.links] == ["create", "propose", "confirm"]
    assert chain.receipt(decision.receipt, keys) == receipt
    difference = chain.links[1].difference
    assert difference is not None
    assert difference.changed == (verify.Change("/target_user_id", 17, 42),)
    statement = flow.host.transition(held.transition).statement
    assert verify.transition_digest(statement) == held.transition
    # Without an auditor's token there are no openings, and the chain still links.
    told = verify.check_chain(list(flow.host.chain(made.thread, page_size=1)), keys, issuer=ANY, thread=made.thread)
    assert [it.difference for it in told.links] == [None, None, None]


def test_a_receipt_is_not_for_another_thread_transition_writer_or_time(flow: Flow) -> None:
    made = flow.host.create_thread("payments", STATE)
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 43})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    token = flow.planner.wait_for_decision(held.transition, within_secs=30).receipt
    keys, now = Keys.read(flow.host.jwks()), datetime.now(timezone.utc)
    refusals: dict[str, dict[str, Any]] = {
        "thread_mismatch": {"thread": "another"},
        "digest_mismatch": {"transition": made.transition},
        "audience_mismatch": {"audience": "planner"},
        "issuer_mismatch": {"issuer": "urn:another"},
        "expired": {"at": now + timedelta(minutes=11)},
        "not_yet_valid": {"at": now - timedelta(minutes=11)},
    }
    for code, expects in refusals.items():
        with pytest.raises(Refused) as refused:
            verify.check_receipt(token, keys, **{**NOTHING, **expects})
        assert refused.value.code == code
    with pytest.raises(Refused) as refused:
        verify.check_entry(token, keys, issuer=ANY, transition=ANY)
    assert refused.value.code == "receipt_malformed"


def test_a_moment_without_its_zone_is_not_guessed_at(flow: Flow) -> None:
    """East of Greenwich it would be hours ago, and what is over would still be good."""
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 44})
    assert isinstance(held, Held)
    flow.ada.approve(held)
    token = flow.planner.wait_for_decision(held.transition, within_secs=30).receipt
    keys = Keys.read(flow.host.jwks())
    allowed = flow.writer.verify(thread=made.thread, transition=held.transition, receipt=token, write_id="signed-2")
    flow.writer.abort("signed-2", reason="only looked at")
    naive = datetime.now(timezone.utc).replace(tzinfo=None)
    with pytest.raises(Invalid, match="time zone"):
        verify.check_receipt(token, keys, issuer=ANY, thread=ANY, transition=ANY, audience=ANY, at=naive)
    with pytest.raises(Invalid, match="time zone"):
        verify.check_verification(
            allowed.verification, keys, issuer=ANY, thread=ANY, transition=ANY, write_id=ANY, at=naive
        )


def test_the_chain_of_another_thread_or_gateway_is_not_taken_for_the_one_asked_for(flow: Flow) -> None:
    """A proxy can return another chain, and every signature of it is valid."""
    mine, other = flow.thread(), flow.thread()
    keys, entries = Keys.read(flow.host.jwks()), list(flow.host.chain(other.thread))
    assert verify.check_chain(entries, keys, issuer=ANY, thread=other.thread).thread == other.thread
    for code, expects in {"thread_mismatch": {"thread": mine.thread}, "issuer_mismatch": {"issuer": "urn:x"}}.items():
        with pytest.raises(Refused) as refused:
            verify.check_chain(entries, keys, **{"issuer": ANY, "thread": ANY, **expects})  # type: ignore[arg-type]
        assert refused.value.code == code


CHECKS = {
    verify.check_receipt: ("issuer", "thread", "transition", "audience", "at"),
    verify.check_entry: ("issuer", "transition"),
    verify.check_denial: ("issuer", "transition"),
    verify.check_verification: ("issuer", "thread", "transition", "write_id", "at"),
    verify.check_answer: ("issuer", "audience", "transition", "at"),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda it: it.__name__)
def test_an_expectation_is_said_or_refused_and_never_passed_over(check: Callable[..., Any]) -> None:
    """A variable that is `None` by accident expects nothing, and would let everything through."""
    typ = next(typ for kind, typ in TYPES.items() if check.__name__ == f"check_{kind.__name__.lower()}")
    case = next(it for it in VECTORS["genuine"] if it["typ"] == typ)
    keys, expected = Keys.read(VECTORS["jwks"]), dict.fromkeys(CHECKS[check], ANY)
    check(case["token"], keys, **expected)
    for name in CHECKS[check]:
        with pytest.raises(Invalid, match=name):
            check(case["token"], keys, **{**expected, name: None})
        with pytest.raises(TypeError, match=name):
            check(case["token"], keys, **{it: ANY for it in CHECKS[check] if it != name})


@pytest.mark.parametrize("name", ["issuer", "thread"])
def test_what_is_expected_of_a_chain_is_said_or_refused(flow: Flow, name: str) -> None:
    entries, keys = list(flow.host.chain(flow.thread().thread)), Keys.read(flow.host.jwks())
    with pytest.raises(Invalid, match=name):
        verify.check_chain(entries, keys, **{"issuer": ANY, "thread": ANY, name: None})  # type: ignore[arg-type]
