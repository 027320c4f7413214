//! Tests that a decision about a branch is made again if something changes before it is committed.

use std::sync::Arc;

use countersign_domain::json::patch::PatchFormat;
use countersign_domain::threads::branch::Strategy;
use countersign_service::Service;
use countersign_service::proposals::join_request::JoinProposal;
use countersign_service::proposals::request::{Proposal, ProposalKind};

use super::*;
use crate::gateway::spawn_with_policy;
use crate::meanwhile::{InterleavedAction, second_gateway};

fn asks(thread: &Value, parent: &Value, ask: ProposalKind) -> Proposal {
    Proposal {
        thread: thread.as_str().unwrap().try_into().unwrap(),
        node: "planner".try_into().unwrap(),
        parent: parent.as_str().unwrap().try_into().unwrap(),
        ask,
        attempt: 1,
        rationale: None,
        tool: None,
        usage: Default::default(),
        step: None,
    }
}

fn patch(patch: Value) -> ProposalKind {
    ProposalKind::Patch { format: PatchFormat::Merge, patch }
}

async fn proposes(service: &Service, token: &str, proposal: &Proposal) -> Result<(), Error> {
    let token = service.identity.token_of(token).await.unwrap();
    service.proposals.propose(&token, proposal).await.map(drop)
}

#[tokio::test]
async fn branch_changed_before_its_join_commits_is_joined_with_the_change() {
    let g = spawn_with_policy(&research("write")).await;
    let it = ForkedThread::new(&g, &["a"]).await;
    let first = it.change(&g, 0, json!({"notes": {"a": 1}})).await;
    let (store, second) = second_gateway(&g).await;
    let (service, token) = (Arc::clone(&g.service), g.planner.clone());
    let more = asks(&it.branches[0]["thread"], &first["transition"], patch(json!({"notes": {"a": 2}})));
    let goes_on: InterleavedAction =
        Box::new(move || Box::pin(async move { proposes(&service, &token, &more).await.unwrap() }));
    store.watching.by(goes_on);
    let join = JoinProposal::read(vec!["a".try_into().unwrap()], Strategy::Union, None).unwrap();
    proposes(&second, &g.planner, &asks(&it.id, &it.head, ProposalKind::Join(Box::new(join)))).await.unwrap();
    assert!(store.watching.is_over());
    assert_eq!(it.state(&g).await["notes"], json!({"a": 2}));
}

#[tokio::test]
async fn nothing_is_committed_on_a_branch_whose_thread_is_closed_by_then() {
    let g = spawn_with_policy(&research("write")).await;
    let it = ForkedThread::new(&g, &["a"]).await;
    let (store, second) = second_gateway(&g).await;
    let (service, thread) = (Arc::clone(&g.service), it.id.as_str().unwrap().try_into().unwrap());
    let closes: InterleavedAction = Box::new(move || {
        Box::pin(
            async move { service.threads.close_thread(&"tests".try_into().unwrap(), &thread, "now").await.unwrap() },
        )
    });
    store.watching.by(closes);
    let branch = &it.branches[0];
    let late = asks(&branch["thread"], &branch["transition"], patch(json!({"notes": {"a": 1}})));
    let refused = proposes(&second, &g.planner, &late).await;
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    assert_eq!(now(&g, &branch["thread"]).await["version"], 0);
}
