//! Tests which joins require approval, and who can decide them.

use super::*;

on_both_in_full! {
    protected_change_commits_on_a_branch_and_is_held_at_the_join(super::research("write")),
    protected_change_is_held_even_if_the_strategy_outvotes_it(super::research("write")),
    join_of_a_branch_that_requires_approval_requires_its_own(super::research("write")),
    under_a_policy_that_covers_commits_an_approved_join_settles_it(super::research("commit")),
    author_on_a_branch_does_not_approve_its_join(super::research("write")),
    creator_of_a_branch_does_not_approve_its_join(super::research("write")),
    held_join_is_judged_again_on_its_original_branches(super::research("write")),
    join_of_a_branch_under_a_withdrawn_policy_requires_its_own_approval(super::research("write")),
}

async fn protected_change_commits_on_a_branch_and_is_held_at_the_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["law", "press", "web"]).await;
    it.change(g, 0, json!({"notes": {"law": 1}})).await;
    let injected = it.change(g, 2, json!({"target_user_id": 666})).await;
    assert_eq!(injected["would_hold"][0]["pointer"], "target_user_id");
    let entry = jws::read::<Entry>(injected["entry"].as_str().unwrap(), TokenType::Entry).unwrap();
    assert!(entry.claims_unverified().owes, "and it owes");
    let held = it.join(g, &["law", "press", "web"], "union").await.expect(202);
    assert_eq!((&held["outcome"], &held["reasons"][0]["pointer"]), (&json!("held"), &json!("target_user_id")));
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap(), VoteOutcome::Denied);
    let rest = it.join(g, &["law", "press"], "union").await.expect(201);
    assert_eq!((&it.state(g).await["target_user_id"], &rest["version"]), (&json!(17), &json!(1)));
    g.verify(&it.id, &rest["transition"], &Value::Null, "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn protected_change_is_held_even_if_the_strategy_outvotes_it(scene: ApiScenario) {
    let g = &scene.gateway;
    for strategy in ["last_write", "vote", "confidence"] {
        let it = ForkedThread::new(g, &["a", "b"]).await;
        it.change(g, 0, json!({"target_user_id": 666, "sure": 0.1})).await;
        it.change(g, 1, json!({"target_user_id": 666, "notes": {"b": 1}})).await;
        let both = it.join(g, &["a", "b"], strategy).await.expect(202);
        assert_eq!(both["reasons"][0]["pointer"], "target_user_id", "{strategy}");
        // A change that its branch reverted is no change. A value that the strategy outvoted is one.
        let it = ForkedThread::new(g, &["a", "b"]).await;
        it.change(g, 0, json!({"target_user_id": {"x": 1}, "sure": 0.1})).await;
        it.change(g, 1, json!({"target_user_id": {"x": 2}, "sure": 0.9})).await;
        let held = it.join(g, &["a", "b"], strategy).await;
        assert_eq!(held.status, 202, "{strategy}: {}", held.body);
    }
    scene.passes_an_audit().await;
}

async fn join_of_a_branch_that_requires_approval_requires_its_own(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let there = it.change(g, 0, json!({"target_user_id": 666})).await;
    let branch = &it.branches[0]["thread"];
    let back = json!({"target_user_id": 17, "notes": {"a": 1}});
    let back = g.propose(branch, &there["transition"], (&g.planner, "planner"), back).await.expect(201);
    assert!(now(g, branch).await["owes"].as_bool().unwrap(), "{back}");
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    assert_eq!(held["reasons"][0]["pointer"], "target_user_id", "it was set, though nothing differs");
    let decision = g.approved(&held).await;
    assert!(now(g, &it.id).await["owes"].as_bool().unwrap());
    let denied = g.verify(&it.id, &held["transition"], &Value::Null, "w1").await;
    assert_eq!((denied.status, denied.code()), (403, "receipt_missing"));
    g.verify(&it.id, &held["transition"], &decision["receipt"], "w2").await.expect(200);
    scene.passes_an_audit().await;
}

async fn under_a_policy_that_covers_commits_an_approved_join_settles_it(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"target_user_id": 42})).await;
    it.change(g, 1, json!({"notes": {"b": 1}})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let decision = g.approved(&held).await;
    assert_eq!(now(g, &it.id).await["owes"], json!(false));
    g.verify(&it.id, &held["transition"], &decision["receipt"], "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn author_on_a_branch_does_not_approve_its_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let own = owned_token(&g.service, "alices", MachineRole::Agent, &["planner"], g.alice.id.as_str()).await;
    let branch = &it.branches[0];
    let patch = json!({"target_user_id": 42});
    g.propose(&branch["thread"], &branch["transition"], (&own, "planner"), patch).await.expect(201);
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let refused = g.vote(&g.alice, &held, VoteVerdict::Approve).await;
    assert!(matches!(refused, Err(Error::Vote(VoteRejected::Ineligible(_)))), "{refused:?}");
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    let decision = g.decision(&held).await.expect(200);
    g.verify(&it.id, &held["transition"], &decision["receipt"], "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn creator_of_a_branch_does_not_approve_its_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
    let own = owned_token(&g.service, "alices", MachineRole::Agent, &["planner"], g.alice.id.as_str()).await;
    let body = json!({"node": "planner", "branches": ["hers"]});
    let hers = g.post(&it.path("forks"), &own, body).await.expect(201)["branches"][0].clone();
    let patch = json!({"target_user_id": 42});
    g.propose(&hers["thread"], &hers["transition"], (&g.planner, "planner"), patch).await.expect(201);
    let held = it.join(g, &["a", "hers"], "union").await.expect(202);
    let refused = g.vote(&g.alice, &held, VoteVerdict::Approve).await;
    assert!(matches!(refused, Err(Error::Vote(VoteRejected::Ineligible(_)))), "{refused:?}");
    scene.passes_an_audit().await;
}

async fn held_join_is_judged_again_on_its_original_branches(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let first = it.change(g, 0, json!({"target_user_id": 42})).await;
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    let branch = &it.branches[0]["thread"];
    let more = json!({"target_user_id": 666});
    g.propose(branch, &first["transition"], (&g.planner, "planner"), more).await.expect(201);
    let policy = research("write").replace("ttl = \"24h\"", "ttl = \"12h\"");
    let body = json!({"policy": policy, "schemas": {}, "accepts": [it_policy(g, &held).await]});
    g.post("/v1/flows/payments/policies", &g.admin, body).await.expect(200);
    for review in g.service.reviews.holds_to_rejudge().await.unwrap() {
        g.service.reviews.rejudge_hold(&review).await.unwrap();
    }
    let decision = g.decision(&held).await.expect(200);
    let next = decision["superseded_by"].as_str().unwrap().to_owned();
    let told = g.get(&format!("/v1/transitions/{next}"), &g.auditor).await.expect(200);
    assert_eq!(told["statement"]["join"]["branches"][0]["transition"], first["transition"], "the head that it had");
    let anew = json!({"transition": next, "review": {"id": told["review"]["id"]}});
    g.approved(&anew).await;
    assert_eq!(it.state(g).await["target_user_id"], 42);
    scene.passes_an_audit().await;
}

async fn it_policy(g: &TestGateway, held: &Value) -> Value {
    let told =
        g.get(&format!("/v1/transitions/{}", held["transition"].as_str().unwrap()), &g.auditor).await.expect(200);
    told["statement"]["policy"].clone()
}

async fn join_of_a_branch_under_a_withdrawn_policy_requires_its_own_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let activate = async |word: &str, accepts: Vec<Value>| {
        let body = json!({"policy": format!("{}# {word}\n", research("write")), "schemas": {}, "accepts": accepts});
        g.post("/v1/flows/payments/policies", &g.admin, body).await.expect(200)["policy"].clone()
    };
    for withdrawn in [true, false] {
        let first = activate(&format!("first {withdrawn}"), vec![]).await;
        let it = ForkedThread::new(g, &["a"]).await;
        let second = activate(&format!("second {withdrawn}"), vec![first.clone()]).await;
        it.change(g, 0, json!({"notes": {"a": 1}})).await;
        let accepts = if withdrawn { vec![first] } else { vec![first, second] };
        activate(&format!("third {withdrawn}"), accepts).await;
        let joined = it.join(g, &["a"], "union").await.expect(201);
        let entry = jws::read::<Entry>(joined["entry"].as_str().unwrap(), TokenType::Entry).unwrap();
        assert_eq!(entry.claims_unverified().owes, withdrawn);
        let verified = g.verify(&it.id, &joined["transition"], &Value::Null, &format!("w-{withdrawn}")).await;
        let expected = if withdrawn { (403, "receipt_missing") } else { (200, "") };
        assert_eq!((verified.status, verified.code()), expected, "{}", verified.body);
    }
    scene.passes_an_audit().await;
}
