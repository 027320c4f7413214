"""A wait continues over disconnects and restarts, and ends at its deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import POLICY, Flow
from countersign import Client, Forbidden, Held, Invalid, NotFound, Retries, StillHeld, UnexpectedAnswer, Unreachable
from countersign._plans import Came, Core, Lost, Pause, Reply, Request
from countersign._waiting import wait_for_decision
from faulty import Instead, between

QUICK = Retries(tries=2, first_secs=0.05, most_secs=0.2)


def held_in(flow: Flow) -> Held:
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    return held


def test_a_wait_goes_on_over_a_gateway_that_is_killed_and_one_that_is_restarted(own_flow: Flow) -> None:
    held = held_in(own_flow)
    waiting = own_flow.gateway.client(own_flow.tokens["planner"], retries=QUICK)
    with ThreadPoolExecutor(1) as pool:
        decision = pool.submit(waiting.wait_for_decision, held.transition, within_secs=60)
        own_flow.gateway.kill()
        own_flow.gateway.up()
        own_flow.gateway.restart()
        own_flow.ada.approve(held)
        assert decision.result(60).approved


def test_a_wait_ends_in_time_and_the_proposal_stands(flow: Flow) -> None:
    held, began = held_in(flow), time.monotonic()
    with pytest.raises(StillHeld) as still:
        flow.planner.wait_for_decision(held.transition, within_secs=0.3)
    assert time.monotonic() - began < 30
    assert still.value.transition == held.transition
    assert flow.planner.decision(held.transition) is None


def test_whether_it_is_still_held_is_not_said_where_nobody_answered(flow: Flow) -> None:
    held = held_in(flow)
    with Client("http://127.0.0.1:1", flow.tokens["planner"], retries=QUICK) as nobody, pytest.raises(Unreachable):
        nobody.wait_for_decision(held.transition, within_secs=0.3)


def test_a_wait_that_is_not_allowed_ends_at_once(flow: Flow) -> None:
    with pytest.raises(NotFound):
        flow.planner.wait_for_decision("sha256:" + "0" * 64, within_secs=60)
    with pytest.raises(Forbidden):
        flow.writer.wait_for_decision(held_in(flow).transition, within_secs=60)


def test_a_decision_about_something_else_is_none(flow: Flow) -> None:
    one, other = held_in(flow), held_in(flow)
    flow.ada.approve(other)
    answer = flow.planner._http.get(f"/v1/transitions/{other.transition}/decision")
    with between(flow.gateway.url) as proxy, Client(proxy.url, flow.tokens["planner"]) as planner:
        proxy.todo.append(Instead(200, answer.content))
        with pytest.raises(UnexpectedAnswer):
            planner.wait_for_decision(one.transition, within_secs=60)
        proxy.todo.append(Instead(200, answer.content.replace(b'"approved":true', b'"approved":false')))
        with pytest.raises(UnexpectedAnswer):
            planner.wait_for_decision(other.transition, within_secs=60)


def test_what_was_superseded_is_followed_if_one_asks_for_it(own_flow: Flow, tmp_path: Path) -> None:
    held = held_in(own_flow)
    for file in POLICY.parent.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace('ttl = "15m"', 'ttl = "14m"'))
    own_flow.gateway.activate(tmp_path / POLICY.name)
    ended = own_flow.planner.wait_for_decision(held.transition, within_secs=30)
    assert (ended.approved, ended.decision) == (False, "superseded")
    assert ended.superseded_by is not None
    review = own_flow.host.thread(own_flow.host.transition(held.transition).thread).review
    assert review is not None
    own_flow.ada.approve(review)
    followed = own_flow.planner.wait_for_decision(held.transition, within_secs=30, follow=True)
    assert (followed.approved, followed.transition_digest) == (True, ended.superseded_by)


# ── the plan itself, by a clock of its own ───────────────────────────────────────────────────────────────────────────

DIGEST = "sha256:" + "a" * 64


def played(came: Iterator[Came], *, answers_after: float, within_secs: float) -> list[str]:
    """Returns the requests of a wait with their times, for responses of this duration."""
    now, told = [0.0], []
    core = Core(clock=lambda: now[0], chance=lambda: 1.0)
    plan = wait_for_decision(core, DIGEST, within_secs=within_secs)
    given: Came = None
    try:
        while True:
            step: Any = plan.send(given)
            if isinstance(step, Request):
                told.append(f"{now[0]:g} ask {step.headers['Prefer']}")
                now[0] += answers_after
                given = next(came)
            else:
                assert isinstance(step, Pause)
                now[0] += step.secs
                given = None
    except Exception as error:
        told.append(f"{now[0]:g} {type(error).__name__}")
    return told


def test_not_yet_at_once_is_not_asked_in_a_loop() -> None:
    not_yet = iter(lambda: Reply(202, b'{"status":"held"}'), None)
    assert played(not_yet, answers_after=0.0, within_secs=2.5) == [
        "0 ask wait=3",
        "1 ask wait=2",
        "2 ask wait=1",
        "2.5 StillHeld",
    ]


def test_a_wait_is_cut_into_polls() -> None:
    not_yet = iter(lambda: Reply(202, b'{"status":"held"}'), None)
    assert played(not_yet, answers_after=25.0, within_secs=60) == [
        "0 ask wait=25",
        "25 ask wait=25",
        "50 ask wait=10",
        "75 StillHeld",
    ]


def test_trouble_is_met_with_longer_and_longer_pauses_until_the_deadline() -> None:
    lost = iter(lambda: Lost("ReadError", sent=True), None)
    assert played(lost, answers_after=0.0, within_secs=3) == [
        "0 ask wait=3",
        "0.2 ask wait=3",
        "0.6 ask wait=3",
        "1.4 ask wait=2",
        "3 Unreachable",
    ]


@pytest.mark.parametrize("within_secs", [float("nan"), -1.0])
def test_what_is_no_time_is_not_waited_for(flow: Flow, within_secs: float) -> None:
    with pytest.raises(Invalid):
        flow.planner.wait_for_decision(DIGEST, within_secs=within_secs)


def test_threads_share_a_client(flow: Flow) -> None:
    made, found = flow.thread(), []
    threads = [threading.Thread(target=lambda: found.append(flow.host.thread(made.thread))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(it == found[0] for it in found)
