//! The branches of the history: a join that requires approval, a join that does not, and branches without a join.

use countersign_domain::primitives::id::{BranchName, NodeId, StepKey};
use countersign_domain::reviews::VoteVerdict;
use countersign_domain::threads::branch::Strategy;

use countersign_service::Service;
use countersign_service::branches::fork::{CreatedBranches, NewBranches};
use countersign_service::proposals::join_request::JoinProposal;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use serde_json::{Value, json};

use super::{Digest, HistoryActors, Usage, ballot, held, make, propose, thread};

fn names(all: &[&str]) -> Vec<BranchName> {
    all.iter().map(|it| BranchName::try_from(*it).unwrap()).collect()
}

async fn fork(service: &Service, cast: &HistoryActors, name: &str, branches: &[&str]) -> CreatedBranches {
    let node = NodeId::try_from("planner").unwrap();
    let ask = NewBranches { thread: thread(name), node, parent: None, names: names(branches) };
    service.branches.fork(&cast.agent, &ask).await.unwrap()
}

async fn join(
    service: &Service,
    cast: &HistoryActors,
    name: &str,
    parent: Digest,
    branches: &[&str],
) -> ProposalOutcome {
    let strategy = Strategy::Explicit;
    let proposal = Proposal {
        thread: thread(name),
        node: NodeId::try_from("planner").unwrap(),
        parent,
        ask: ProposalKind::Join(Box::new(JoinProposal::read(names(branches), strategy, Some(json!([]))).unwrap())),
        attempt: 1,
        rationale: Some("both of them".to_owned()),
        tool: None,
        usage: Usage::read(&json!({"tokens": 3})).unwrap(),
        step: Some(StepKey::try_from(branches.join(".")).unwrap()),
    };
    service.proposals.propose(&cast.agent, &proposal).await.unwrap()
}

async fn change(service: &Service, cast: &HistoryActors, forked: &CreatedBranches, index: usize, patch: Value) {
    let branch = forked.branches[index].thread.as_str();
    let changed = propose(service, &cast.agent, branch, "planner", patch).await;
    assert!(matches!(changed, ProposalOutcome::Committed { .. }), "{changed:?}");
}

/// Makes a join that a reviewer approves, a join that requires no approval, and branches that are never joined.
pub async fn works_side_by_side(service: &Service, cast: &HistoryActors) {
    make(service, &cast.host, "forked").await;
    let forked = fork(service, cast, "forked", &["left", "right"]).await;
    change(service, cast, &forked, 0, json!({"requested_action": "payout"})).await;
    change(service, cast, &forked, 1, json!({"target_user_id": 42})).await;
    let (transition, review) = held(&join(service, cast, "forked", forked.transition, &["right", "left"]).await);
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    let again = fork(service, cast, "forked", &["left", "idle"]).await;
    change(service, cast, &again, 0, json!({"requested_action": "refund"})).await;
    let joined = join(service, cast, "forked", again.transition, &["left", "idle"]).await;
    assert!(matches!(joined, ProposalOutcome::Committed { .. }), "{joined:?}");
    fork(service, cast, "forked", &["left"]).await;
}
