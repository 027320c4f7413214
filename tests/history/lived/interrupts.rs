//! A host that keeps its own state asks people: one is approved, one denied, one overtaken by another policy, one waits.

use std::collections::BTreeSet;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::interrupts::{HostAssertion, Interrupt, SignedPostId};
use countersign_domain::primitives::id::AccountId;
use countersign_domain::reviews::VoteVerdict;

use countersign::worker::rejudge;
use countersign_service::Service;
use serde_json::json;

use super::{HistoryActors, admin, ballot, example};

/// Asks about a step whose digest is made of that digit.
pub async fn ask(service: &Service, cast: &HistoryActors, digit: &str) -> Interrupt {
    let asserted = json!({
        "kind": "state_transition_review", "transition_digest": digit.repeat(64), "interrupt_id": "7652e9dc",
        "changed_keys": ["target_user_id"], "redacted_diff": {"target_user_id": [17, 42]}, "attempt": 1,
        "thread_ref": "order-1", "title": "Another user", "reason": "asked by mail", "expires_in": 600,
    });
    let asserted: HostAssertion = serde_json::from_value(asserted).unwrap();
    let post = SignedPostId::new(&format!("msg_{digit}"), digit.as_bytes());
    service.interrupts.receive_interrupt(&cast.host, &asserted, Some(&post)).await.unwrap()
}

pub async fn decide(service: &Service, who: &AccountId, asked: &Interrupt, verdict: VoteVerdict) {
    service.interrupts.vote_on_interrupt(who, &asked.id, &ballot(asked.digest, 0, verdict), None).await.unwrap();
}

pub async fn asks_people(service: &Service, cast: &HistoryActors) {
    let overtaken = ask(service, cast, "0").await;
    service.policy_changes.activate_policy(&admin(), None, super::stricter(), BTreeSet::new()).await.unwrap();
    rejudge::run_once(service).await.unwrap();
    assert!(service.interrupts.interrupt(&overtaken.id).await.unwrap().ending().is_some());
    let first_of_two = ask(service, cast, "1").await;
    decide(service, &cast.ada, &first_of_two, VoteVerdict::Approve).await;
    decide(service, &cast.ben, &first_of_two, VoteVerdict::Approve).await;
    service.policy_changes.activate_policy(&admin(), None, example("payments"), BTreeSet::new()).await.unwrap();
    rejudge::run_once(service).await.unwrap();
    let signer = super::token(service, MachineRole::Host, "payments", &[]).await;
    for _ in 0..2 {
        service.interrupts.make_post_secret(&signer.record.id).await.unwrap();
    }
    let denied = ask(service, cast, "2").await;
    decide(service, &cast.ada, &denied, VoteVerdict::Deny).await;
    ask(service, cast, "3").await;
}
