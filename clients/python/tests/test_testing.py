"""The help for tests, where it must not help."""

from __future__ import annotations

import httpx
import pytest

from conftest import Flow
from countersign import Held
from countersign.testing import Gateway, NoGateway, NotCounted, Reviewer
from countersign.testing._program import BIN


def test_a_program_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BIN, "/nowhere/countersign")
    with pytest.raises(NoGateway, match="/nowhere/countersign"):
        Gateway.start()


def test_a_gateway_that_does_not_start_says_why() -> None:
    with pytest.raises(NoGateway, match="NO_SUCH_KEY"):
        Gateway.start({"COUNTERSIGN_NO_SUCH_KEY": "1"})


def test_what_would_configure_another_gateway_does_not_reach_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERSIGN_DATABASE", "postgres://nobody@127.0.0.1:1/nothing")
    with Gateway.start() as gateway:
        assert httpx.get(f"{gateway.url}/readyz", trust_env=False).status_code == 200
        folder = gateway.data
    assert not folder.exists()


def test_nobody_is_let_in_by_another_password(flow: Flow) -> None:
    with pytest.raises(NotCounted):
        Reviewer(flow.gateway.site, "ada", "another one")


def test_a_vote_counts_only_on_what_is_shown_and_by_who_is_asked(flow: Flow) -> None:
    made = flow.thread()
    held = flow.planner.propose(made.thread, node="planner", parent=made.transition, patch={"target_user_id": 42})
    assert isinstance(held, Held)
    stranger = flow.gateway.reviewer("stranger", groups=["others"])
    with pytest.raises(NotCounted):
        stranger.approve(held)
    other = Held(made.transition, held.review, held.reasons, held.diff)
    with pytest.raises(NotCounted, match="another digest"):
        flow.ada.approve(other)
    assert flow.planner.decision(held.transition) is None
    flow.ada.approve(held.review.url)
    with pytest.raises(NotCounted):
        flow.ada.deny(held)
    assert flow.planner.wait_for_decision(held.transition, within_secs=30).approved


def test_a_command_that_fails_says_so_without_what_was_typed(flow: Flow) -> None:
    with pytest.raises(NoGateway) as failed:
        flow.gateway.add_user("ada")
    assert "correct horse" not in str(failed.value)
