"""Branches that do not agree: where, and what to go on from."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Flow
from countersign import BranchConflict

POLICY = """
flow = "joining"
trust_initial = true

[nodes.lead]
reads = ["question"]
writes = ["question"]
fork = true

[approval]
[[approval.stages]]
groups = ["finance"]
"""


def test_branches_that_do_not_agree_name_the_places_and_the_version_that_stands(flow: Flow, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    flow.gateway.activate(tmp_path / "policy.toml")
    host = flow.gateway.client(flow.gateway.add_token("host", flow="joining"))
    lead = flow.gateway.client(flow.gateway.add_token("agent", flow="joining", nodes=["lead"]))
    made = host.create_thread("joining", {"question": "who"})
    for branch in lead.fork(made.thread, node="lead", branches=["a", "b"]).branches:
        patch = {"question": branch.name}
        lead.propose(branch.thread, node="lead", parent=branch.transition, patch=patch)
    with pytest.raises(BranchConflict) as no:
        lead.join(made.thread, node="lead", parent=made.transition, branches=["a", "b"], strategy="union")
    assert [it.pointer for it in no.value.errors] == ["/question"]
    assert no.value.checkpoint is not None
    assert (no.value.checkpoint.version, no.value.checkpoint.transition) == (0, made.transition)
    joined = lead.join(
        made.thread,
        node="lead",
        parent=no.value.checkpoint.transition,
        branches=["a", "b"],
        strategy="explicit",
        resolve=[{"path": "/question", "value": "both"}],
    )
    assert joined.outcome == "committed"
