//! Tests reviewers' edits of held proposals. On both databases.

use std::collections::BTreeMap;

use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::identity::party::Party;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::edit::{EDITS_MAX, ReviewEdit};
use countersign_domain::reviews::{HoldState, VoteVerdict};

use countersign_service::error::{Error, Result};
use countersign_service::identity::accounts::NewAccount;
use countersign_service::reviews::edit::{EditRequest, EditResult};
use countersign_service::reviews::vote::VoteOutcome;
use countersign_service::threads::redaction::RedactionDetail;
use countersign_web::api::problem::vote_code;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, person};
use crate::passwords::hashed;
use crate::rules::ApiScenario;

on_both! {
    edit_supersedes_the_held_proposal_and_needs_another_approver,
    neither_editor_nor_owner_decides_an_edit,
    only_one_of_an_edit_and_a_concurrent_last_vote_succeeds,
    edit_that_the_policy_would_reject_is_refused,
    redacted_value_is_neither_edited_nor_guessed,
    only_eligible_reviewers_edit_a_held_proposal,
    former_reviewer_edits_nothing,
    edits_of_edits_are_limited,
}

fn policy() -> String {
    policy_with(
        "[approval]\n",
        "[[rules]]\nname = \"small\"\nwhen = \"object.target_user_id < 10\"\nthen = \"deny\"\nreason = \"ours\"\n\n[approval]\n",
    )
    .replace(
        "writes = [\"requested_action\", \"target_user_id\", \"payment.amount\"]",
        "writes = [\"requested_action\", \"target_user_id\", \"payment\", \"raw_text\"]",
    )
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

fn asks(held: &Value, values: &[(&str, Value)], more: Option<Value>) -> EditRequest {
    let values: BTreeMap<_, _> = values.iter().map(|(at, value)| ((*at).try_into().unwrap(), value.clone())).collect();
    let transition = held["transition"].as_str().unwrap().try_into().unwrap();
    EditRequest { transition, edit: ReviewEdit { values, more }, why: "better so".to_owned() }
}

fn user(held: &Value, user: u64) -> EditRequest {
    asks(held, &[("/target_user_id", json!(user))], None)
}

async fn rewrite(g: &TestGateway, who: &Account, held: &Value, ask: &EditRequest) -> Result<EditResult> {
    g.service.reviews.rewrite(&who.id, &review(held), ask).await
}

/// Returns the new pending review, in the shape of a proposal's response.
async fn rewritten(g: &TestGateway, who: &Account, held: &Value, ask: &EditRequest) -> Value {
    let EditResult::Held(next) = rewrite(g, who, held, ask).await.unwrap() else { panic!("rejected") };
    let transition = g.service.reviews.review(&next, who).await.unwrap().hold.transition;
    json!({"transition": transition, "review": {"id": next}})
}

fn why(done: Result<EditResult>) -> String {
    match done {
        Ok(EditResult::Held(_)) => "held".to_owned(),
        Ok(EditResult::Rejected(violations)) => {
            violations.iter().map(|it| format!("{} {}", it.code.as_str(), it.pointer)).collect::<Vec<_>>().join(", ")
        }
        Err(Error::Vote(refused)) => vote_code(&refused).to_owned(),
        Err(Error::WrongState(why)) => why.to_owned(),
        Err(other) => other.to_string(),
    }
}

async fn still_waits(g: &TestGateway, held: &Value) {
    assert_eq!(g.service.reviews.review(&review(held), &g.alice).await.unwrap().hold.state, HoldState::Open {});
}

async fn edit_supersedes_the_held_proposal_and_needs_another_approver(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let next = rewritten(g, &g.alice, &held, &user(&held, 43)).await;
    let old = g.decision(&held).await.expect(200);
    assert_eq!((&old["decision"], &old["superseded_by"]), (&json!("superseded"), &next["transition"]));
    let told =
        g.get(&format!("/v1/transitions/{}", next["transition"].as_str().unwrap()), &g.planner).await.expect(200);
    let statement = &told["statement"];
    assert_eq!((&statement["type"], &statement["supersedes"]), (&json!("edit"), &held["transition"]));
    assert_eq!((&statement["principal"], &statement["node"]), (&json!(g.alice.id), &json!("planner")));
    let decision = {
        assert_eq!(g.vote(&g.bob, &next, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
        g.decision(&next).await.expect(200)
    };
    let view =
        g.verify(&thread["thread"], &next["transition"], &decision["receipt"], "w1").await.expect(200)["view"].clone();
    assert_eq!((&view["target_user_id"], &view["requested_action"]), (&json!(43), &json!("update_email")));
    let refused = g.verify(&thread["thread"], &held["transition"], &decision["receipt"], "w2").await;
    assert_eq!(refused.status, 403);
    scene.passes_an_audit().await;
}

async fn neither_editor_nor_owner_decides_an_edit(scene: ApiScenario) {
    let g = &scene.gateway;
    let owner = person(&g.service, "carol", &["reviewers", "platform"]).await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let next = rewritten(g, &g.alice, &held, &user(&held, 43)).await;
    for who in [&g.alice, &owner] {
        let refused = g.vote(who, &next, VoteVerdict::Approve).await.unwrap_err();
        assert!(matches!(&refused, Error::Vote(it) if vote_code(it) == "not_eligible"), "{refused:?}");
    }
    let on_old = g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap_err();
    assert!(matches!(&on_old, Error::Vote(it) if vote_code(it) == "review_ended"), "{on_old:?}");
    g.vote(&g.bob, &next, VoteVerdict::Approve).await.unwrap();
    // The editor is not eligible for later proposals either, until a confirmed write.
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let again = json!({"node": "planner", "parent": next["transition"], "patch": {}, "reaffirm": true});
    let again = g.post(&path, &g.planner, again).await.expect(202);
    assert!(g.vote(&g.alice, &again, VoteVerdict::Approve).await.is_err(), "an approval does not wash the hands");
    scene.passes_an_audit().await;
}

async fn only_one_of_an_edit_and_a_concurrent_last_vote_succeeds(scene: ApiScenario) {
    let g = &scene.gateway;
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        let ask = user(&held, 43);
        let (edit, vote) = tokio::join!(rewrite(g, &g.alice, &held, &ask), g.vote(&g.bob, &held, VoteVerdict::Approve));
        let word = g.decision(&held).await.expect(200)["decision"].as_str().unwrap().to_owned();
        match (why(edit).as_str(), vote.is_ok()) {
            ("held", false) => assert_eq!(word, "superseded"),
            ("review_ended", true) => assert_eq!(word, "approved"),
            other => panic!("{other:?}"),
        }
    }
    scene.passes_an_audit().await;
}

async fn edit_that_the_policy_would_reject_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    let admin = asks(&held, &[], Some(json!({"execution_permissions": ["all"]})));
    assert_eq!(
        why(rewrite(g, &g.alice, &held, &admin).await),
        "write_not_allowed /execution_permissions/0, schema /execution_permissions"
    );
    assert_eq!(why(rewrite(g, &g.alice, &held, &user(&held, 9)).await), "rule_denied ");
    let same = asks(&held, &[("/target_user_id", json!(42))], None);
    assert!(why(rewrite(g, &g.alice, &held, &same).await).contains("the edit changes nothing"));
    g.service
        .identity
        .set_admission("bob", countersign_service::identity::revocation::SignInAccess::Barred)
        .await
        .unwrap();
    assert!(why(rewrite(g, &g.alice, &held, &user(&held, 43)).await).contains("no reviewer would be left"));
    still_waits(g, &held).await;
    scene.passes_an_audit().await;
}

async fn redacted_value_is_neither_edited_nor_guessed(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let patch = json!({"target_user_id": 42, "payment": {"card": "4929000000000000"}});
    let ask = json!({"node": "planner", "parent": thread["transition"], "patch": patch, "format": "merge-patch"});
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    // The proposed value, the current value and a wrong guess all get the same answer.
    for guess in ["4929000000000000", "4111111111111111", "1"] {
        let blind = [
            asks(&held, &[("/payment/card", json!(guess))], None),
            asks(&held, &[("/payment", json!({"card": guess}))], None),
            asks(&held, &[], Some(json!({"payment": {"card": guess}}))),
            asks(&held, &[], Some(json!({"payment": guess}))),
        ];
        for ask in &blind {
            assert!(
                why(rewrite(g, &g.alice, &held, ask).await).contains("the edit touches a redacted value"),
                "{ask:?}"
            );
        }
    }
    for gone in [json!({"payment": null}), json!({"payment": {"card": null}})] {
        assert!(
            why(rewrite(g, &g.alice, &held, &asks(&held, &[], Some(gone))).await)
                .contains("the edit touches a redacted value")
        );
    }
    still_waits(g, &held).await;
    let next = rewritten(g, &g.alice, &held, &user(&held, 43)).await;
    g.vote(&g.bob, &next, VoteVerdict::Approve).await.unwrap();
    let told =
        g.get(&format!("/v1/threads/{}/state?node=input_parser", thread["thread"].as_str().unwrap()), &g.auditor).await;
    assert_eq!(told.status, 200);
    let kept = g
        .service
        .threads
        .told(next["transition"].as_str().unwrap().try_into().unwrap(), &Party::Receiver, RedactionDetail::Whole)
        .await
        .unwrap();
    let card = kept.changes.iter().find(|it| it.pointer.as_str() == "/payment/card").unwrap();
    assert_eq!(card.after, Some(json!("4929000000000000")), "what was hidden stays as it was proposed");
    scene.passes_an_audit().await;
}

async fn only_eligible_reviewers_edit_a_held_proposal(scene: ApiScenario) {
    let g = &scene.gateway;
    let owner = person(&g.service, "carol", &["reviewers", "platform"]).await;
    let stranger = person(&g.service, "dave", &["elsewhere"]).await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    for who in [&owner, &stranger] {
        assert_eq!(why(rewrite(g, who, &held, &user(&held, 43)).await), "not_eligible");
    }
    let other = g.held(&g.thread().await).await;
    assert_eq!(why(rewrite(g, &g.alice, &held, &user(&other, 43)).await), "digest_mismatch");
    let silent = EditRequest { why: " ".to_owned(), ..user(&held, 43) };
    assert!(why(rewrite(g, &g.alice, &held, &silent).await).contains("give a reason of at most"));
    g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap();
    assert_eq!(why(rewrite(g, &g.alice, &held, &user(&held, 43)).await), "review_ended");
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let again = json!({"node": "planner", "parent": held["transition"], "patch": {}, "reaffirm": true});
    let again = g.post(&path, &g.planner, again).await.expect(202);
    assert!(why(rewrite(g, &g.alice, &again, &user(&again, 43)).await).contains("only a change"));
    g.pass(std::time::Duration::from_secs(24 * 3600));
    assert_eq!(why(rewrite(g, &g.alice, &other, &user(&other, 43)).await), "expired");
}

async fn former_reviewer_edits_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let new = NewAccount { name: "boss".to_owned(), role: PersonRole::Admin, groups: Default::default() };
    let boss = g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap();
    let boss = g.service.identity.account_row(&boss.id).await.unwrap();
    let held = g.held(&g.thread().await).await;
    let edit = rewritten(g, &g.alice, &held, &user(&held, 43)).await;
    let elsewhere = ["elsewhere".try_into().unwrap()].into();
    g.service.identity.change_access(&boss, &g.alice.id, PersonRole::Reviewer, &elsewhere).await.unwrap();
    assert_eq!(why(rewrite(g, &g.alice, &edit, &user(&edit, 44)).await), "not_eligible");
    let reviewers = ["reviewers".try_into().unwrap()].into();
    g.service.identity.change_access(&boss, &g.alice.id, PersonRole::Reviewer, &reviewers).await.unwrap();
    rewritten(g, &g.alice, &edit, &user(&edit, 44)).await;
    scene.passes_an_audit().await;
}

async fn edits_of_edits_are_limited(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut held = g.held(&g.thread().await).await;
    for turn in 0..EDITS_MAX as u64 {
        held = rewritten(g, &g.alice, &held, &user(&held, 50 + turn)).await;
    }
    assert!(why(rewrite(g, &g.alice, &held, &user(&held, 99)).await).contains("reached the limit of edits"));
    g.vote(&g.bob, &held, VoteVerdict::Deny).await.unwrap();
    scene.passes_an_audit().await;
}
