//! The halts, revocations and policy change requests of the history, and halts that two people lift.

use countersign_domain::identity::party::Party;

use super::*;

pub async fn stops_and_takes_back(service: &Service, cast: &HistoryActors) {
    let halt = |proposing| Halt { proposing, verifying: false, reason: "drill".to_owned() };
    for scope in [HaltScope::All, HaltScope::Flow(flow("payments"))] {
        service.operations.set_halt(&admin(), &scope, &halt(true)).await.unwrap();
        service.operations.set_halt(&admin(), &scope, &halt(false)).await.unwrap();
    }
    for thread in ["revoked", "at-work"] {
        make(service, &cast.host, thread).await;
        let (transition, review) =
            held(&propose(service, &cast.agent, thread, "planner", json!({"target_user_id": 42})).await);
        service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
        let decision = service.reviews.decision(transition, &Party::Receiver).await.unwrap().1.unwrap();
        if thread == "at-work" {
            let ask = ask(thread, transition, decision.receipt, "w-at-work");
            service.writes.verify(&cast.writer, &ask).await.unwrap();
        }
        let by = Revoker::Reviewer(cast.ada.clone());
        service.writes.revoke_receipt(&by, &decision.nonce.unwrap(), "I misread it").await.unwrap();
    }
    let write = WriteId::try_from("w-at-work").unwrap();
    service.writes.abort(&cast.writer, &write, "nobody wants it any more").await.unwrap();
    let spare = token(service, MachineRole::Agent, "payments", &["planner"]).await;
    service.identity.revoke_token(&spare.record.id).await.unwrap();
    for admission in [SignInAccess::Barred, SignInAccess::Open] {
        service.identity.set_admission("ben", admission).await.unwrap();
    }
    make(service, &cast.host, "asked").await;
    held(&propose(service, &cast.agent, "asked", "planner", json!({"target_user_id": 42})).await);
    service.policy_changes.activate_policy(&admin(), None, stricter(), BTreeSet::new()).await.unwrap();
    rejudge::run_once(service).await.unwrap();
    service.policy_changes.activate_policy(&admin(), None, example("payments"), BTreeSet::new()).await.unwrap();
    rejudge::run_once(service).await.unwrap();
}

/// Makes policy change requests that end as denied, cancelled, overtaken and approved, and one that is still open.
pub async fn amends(service: &Service, cast: &HistoryActors) {
    let guarded = |ttl: &str| {
        let mut source = example("payments");
        source.text = source.text.replacen("flow = \"payments\"", "flow = \"amended\"", 1);
        source.text.push_str(&format!("\n[approval.policy]\ngroups = [\"finance\"]\nttl = \"{ttl}\"\n"));
        source
    };
    let by = token(service, MachineRole::Host, "payments", &[]).await.record.principal();
    let asked = async |source: PolicySource| match service
        .policy_changes
        .activate_policy(&by, None, source, BTreeSet::new())
        .await
    {
        Ok(ActivationOutcome::Waiting(amendment)) => *amendment,
        other => panic!("{other:?}"),
    };
    service.policy_changes.activate_policy(&by, None, guarded("1h"), BTreeSet::new()).await.unwrap();
    let refused = asked(guarded("2h")).await;
    let vote = |of: &PolicyChangeRequest, verdict| ballot(of.digest, 0, verdict);
    service
        .policy_changes
        .vote_on_policy_change(&cast.ada, &refused.id, &vote(&refused, VoteVerdict::Deny), None)
        .await
        .unwrap();
    let taken_back = asked(guarded("3h")).await;
    service.policy_changes.cancel_policy_change(&by, &taken_back.id, "a slip").await.unwrap();
    asked(guarded("4h")).await;
    let approved = asked(guarded("5h")).await;
    service
        .policy_changes
        .vote_on_policy_change(&cast.ada, &approved.id, &vote(&approved, VoteVerdict::Approve), None)
        .await
        .unwrap();
    asked(guarded("6h")).await;
}

/// A halt that two people lift, and one that a first has asked to lift.
pub async fn lifts_in_pairs(service: &Service, cast: &HistoryActors) {
    let scope = HaltScope::Flow(flow("amended"));
    let both = |reason: &str| Halt { proposing: true, verifying: true, reason: reason.to_owned() };
    let pull = async |who: &AccountId, wish: HaltRequest| {
        let person = service.identity.account_row(who).await.unwrap();
        service.operations.request_halt(Actor::Person(&person), &scope, &wish).await.unwrap()
    };
    pull(&cast.ada, HaltRequest::Stop(both("something is off"))).await;
    let asked = pull(&cast.gus, HaltRequest::Lift(both("a false alarm"))).await;
    assert!(asked.halt.proposing && asked.halt.verifying);
    let lifted = pull(&cast.hal, HaltRequest::Lift(both("seen it, too"))).await;
    assert!(!lifted.halt.proposing && !lifted.halt.verifying && lifted.stops.is_none());
    pull(&cast.ben, HaltRequest::Stop(both("off again"))).await;
    pull(&cast.gus, HaltRequest::Lift(both("again a false alarm"))).await;
}
