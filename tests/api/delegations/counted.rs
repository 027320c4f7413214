//! Tests whose vote a delegated vote is, and that one person is counted once.

use super::*;

on_both! {
    delegated_vote_counts_and_names_both_people(super::two()),
    delegated_denial_names_both_people(super::two()),
    mutual_delegations_count_each_person_once(super::two()),
    only_one_of_two_concurrent_delegates_of_one_person_counts(super::two()),
    author_neither_votes_as_a_delegate_nor_has_one(super::two()),
    delegator_withdraws_a_delegated_vote_and_votes(super::two()),
    delegate_finds_waiting_reviews_and_is_listed_as_eligible(super::two()),
    delegate_gets_only_the_vote(super::two()),
}

async fn delegated_vote_counts_and_names_both_people(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let held = g.held(&g.thread().await).await;
    assert_eq!(code(g.vote(&dana, &held, VoteVerdict::Approve).await), "not_eligible: group");
    // A delegation may begin after the review was opened. The vote is Alice's, under the same rules as before.
    let delegation = given(g, &g.alice, &dana).await;
    assert_eq!(
        code(g.vote(&dana, &held, VoteVerdict::Approve).await),
        "not_eligible: group",
        "they have no place of their own"
    );
    assert_eq!(casts(g, &dana, &held, &delegation).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    let decision = g.decision(&held).await.expect(200);
    assert_eq!(decision["reviewers"], json!([dana.id, g.bob.id]));
    assert_eq!(decision["for"], json!({dana.id.as_str(): g.alice.id}));
    let receipt = decision["receipt"].as_str().unwrap();
    let claims = verified::<Receipt>(g, receipt, TokenType::Receipt);
    let named: Vec<_> = claims.approvals.iter().map(|it| (&it.reviewer, it.absent.as_ref())).collect();
    assert_eq!(named, [(&dana.id, Some(&g.alice.id)), (&g.bob.id, None)]);
    let [first, second] = told(g, EventType::ReviewVote).await.try_into().unwrap();
    assert_eq!((&first["reviewer"], &first["for"]), (&json!(dana.id), &json!(g.alice.id)));
    assert_eq!((&first["delegation"], &second["for"]), (&json!(delegation.id), &Value::Null));
    let [given] = told(g, EventType::Delegated).await.try_into().unwrap();
    assert_eq!((&given["from"], &given["to"]), (&json!(g.alice.id), &json!(dana.id)));
    let verified = g.verify(&held_thread(g, &held).await, &held["transition"], &decision["receipt"], "w-1").await;
    assert_eq!(verified.expect(200)["allow"], true, "a receipt with both names opens its write");
    scene.passes_an_audit().await;
}

async fn held_thread(g: &TestGateway, held: &Value) -> Value {
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    g.get(&path, &g.auditor).await.expect(200)["thread"].clone()
}

async fn delegated_denial_names_both_people(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let held = g.held(&g.thread().await).await;
    let delegation = given(g, &g.alice, &dana).await;
    g.service.reviews.vote(&dana.id, &review(&held), &by(&held, &delegation, VoteVerdict::Deny), None).await.unwrap();
    // A denial stays valid if its delegation ends, just as it does if its voter leaves.
    g.service.identity.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Deny).await.unwrap(), VoteOutcome::Denied);
    let hold = g.service.reviews.review(&review(&held), &g.bob).await.unwrap().hold;
    let countersign_domain::reviews::HoldState::Denied { denial, .. } = hold.state else { panic!("{:?}", hold.state) };
    let claims = verified::<Denial>(g, &denial, TokenType::Denial);
    let named: Vec<_> = claims.reviewers.iter().map(|it| it.absent.as_ref()).collect();
    assert_eq!(named, [Some(&g.alice.id), None]);
    assert_eq!(g.decision(&held).await.expect(200)["for"], json!({dana.id.as_str(): g.alice.id}));
    scene.passes_an_audit().await;
}

async fn mutual_delegations_count_each_person_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let (dana, erin) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "erin", &["reviewers"]).await);
    let (to_bob, to_dana) = (given(g, &g.alice, &g.bob).await, given(g, &g.alice, &dana).await);
    let (back, of_erin) = (given(g, &g.bob, &g.alice).await, given(g, &erin, &dana).await);
    // Bob votes for Alice, so neither of them has another vote, directly or by a delegate.
    let held = g.held(&g.thread().await).await;
    assert_eq!(casts(g, &g.bob, &held, &to_bob).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(code(g.vote(&g.bob, &held, VoteVerdict::Approve).await), "not_eligible: voted");
    assert_eq!(code(g.vote(&g.alice, &held, VoteVerdict::Approve).await), "not_eligible: voted");
    assert_eq!(code(casts(g, &g.alice, &held, &back).await), "not_eligible: voted", "nor crosswise");
    assert_eq!(code(casts(g, &dana, &held, &to_dana).await), "not_eligible: group", "nor by another delegate");
    assert_eq!(casts(g, &dana, &held, &of_erin).await.unwrap(), VoteOutcome::Approved, "another place is another's");
    // Bob votes for himself, so not for Alice, who still has her own vote.
    let held = g.held(&g.thread().await).await;
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(code(casts(g, &g.bob, &held, &to_bob).await), "not_eligible: voted");
    // Dana does not vote for two people either.
    assert_eq!(casts(g, &dana, &g.held(&g.thread().await).await, &of_erin).await.unwrap(), VoteOutcome::Waiting);
    let third = g.held(&g.thread().await).await;
    assert_eq!(casts(g, &dana, &third, &to_dana).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(code(casts(g, &dana, &third, &of_erin).await), "not_eligible: voted");
    // A person whose vote was cast by a delegate cannot vote as a delegate either: one human, one vote.
    assert_eq!(code(casts(g, &g.alice, &third, &back).await), "not_eligible: voted");
    scene.passes_an_audit().await;
}

async fn only_one_of_two_concurrent_delegates_of_one_person_counts(scene: ApiScenario) {
    let g = &scene.gateway;
    let (dana, erin) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "erin", &["elsewhere"]).await);
    let (one, other) = (given(g, &g.alice, &dana).await, given(g, &g.alice, &erin).await);
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        let (one, other) = tokio::join!(casts(g, &dana, &held, &one), casts(g, &erin, &held, &other));
        let mut came = [code(one), code(other)];
        came.sort();
        assert_eq!(came, ["done", "not_eligible: group"]);
    }
    scene.passes_an_audit().await;
}

async fn author_neither_votes_as_a_delegate_nor_has_one(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (by_alice, by_bob) = (given(g, &g.alice, &dana).await, given(g, &g.bob, &dana).await);
    for (owner, for_alice) in
        [("alice", "not_eligible: group"), ("dana", "not_eligible: author"), ("elsewhere", "not_eligible: author")]
    {
        let agent = owned_token(&g.service, &format!("of-{owner}"), MachineRole::Agent, &["planner"], owner).await;
        let (thread, patch) = (g.thread().await, json!({"target_user_id": 42}));
        let held = g.propose(&thread["thread"], &thread["transition"], (&agent, "planner"), patch).await;
        if owner == "alice" {
            person(&g.service, "spare", &["reviewers"]).await;
            assert_eq!(
                held.expect(422)["errors"][0]["code"],
                "nobody_can_approve",
                "one who is away adds nobody to those who can"
            );
        }
        let again = g.thread().await;
        let patch = json!({"target_user_id": 43});
        let held = g.propose(&again["thread"], &again["transition"], (&agent, "planner"), patch).await.expect(202);
        assert_eq!(code(casts(g, &dana, &held, &by_alice).await), for_alice, "{owner}");
        let for_bob = if owner == "alice" { "done" } else { "not_eligible: author" };
        assert_eq!(code(casts(g, &dana, &held, &by_bob).await), for_bob, "{owner}");
    }
    scene.passes_an_audit().await;
}

async fn take_back(g: &TestGateway, who: &Account, held: &Value, vote: usize) -> Result<()> {
    let transition = held["transition"].as_str().unwrap().try_into().unwrap();
    let nonce = countersign_adapters::random::uuid_v4().to_string();
    g.service.reviews.withdraw_vote(&who.id, &review(held), &WithdrawalRequest { transition, vote, nonce }).await
}

async fn delegator_withdraws_a_delegated_vote_and_votes(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let delegation = given(g, &g.alice, &dana).await;
    let held = g.held(&g.thread().await).await;
    casts(g, &dana, &held, &delegation).await.unwrap();
    assert_eq!(code(take_back(g, &g.bob, &held, 0).await), "nothing_to_withdraw");
    // A delegator can end the delegation whether or not the delegate can be reached.
    g.service.identity.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    g.service.identity.set_admission("dana", SignInAccess::Barred).await.unwrap();
    assert_eq!(code(g.vote(&g.alice, &held, VoteVerdict::Approve).await), "not_eligible: voted");
    take_back(g, &g.alice, &held, 0).await.unwrap();
    assert_eq!(code(take_back(g, &g.alice, &held, 0).await), "nothing_to_withdraw");
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    let [back] = told(g, EventType::ReviewWithdrawn).await.try_into().unwrap();
    assert_eq!((&back["reviewer"], &back["by"]), (&json!(dana.id), &json!(g.alice.id)));
    scene.passes_an_audit().await;
}

async fn delegate_finds_waiting_reviews_and_is_listed_as_eligible(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let held = g.held(&g.thread().await).await;
    let mine = async || {
        let found = g.service.inbox.find(&dana, &InboxFilter::mine(), &InboxPageSelection::First, 10).await.unwrap();
        (found.items.len(), g.service.inbox.count_waiting(&dana, 10).await.unwrap())
    };
    assert_eq!(mine().await, (0, WaitingCount::Exactly(0)));
    let delegation = given(g, &g.alice, &dana).await;
    assert_eq!(mine().await, (1, WaitingCount::Exactly(1)));
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let about_dana = async || {
        let told = g.get(&path, &g.auditor).await.expect(200);
        told["review"]["people"].as_array().unwrap().iter().find(|it| it["name"] == "dana").cloned()
    };
    let line = about_dana().await.unwrap();
    let place = json!([{"reviewer": g.alice.id, "name": "alice", "stage": 0}]);
    assert_eq!((&line["can_decide"], &line["stages"], &line["for"]), (&json!(true), &json!([0]), &place));
    let facts = g.service.reviews.review(&review(&held), &dana).await.unwrap();
    let places = facts.can_decide.unwrap();
    assert_eq!(places[0].absent.as_ref().map(|it| &it.person), Some(&g.alice.id));
    casts(g, &dana, &held, &delegation).await.unwrap();
    assert_eq!(mine().await, (0, WaitingCount::Exactly(0)));
    assert_eq!(about_dana().await.unwrap()["why_not"]["code"], "voted");
    g.service.identity.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    assert_eq!(about_dana().await, None, "and is not asked any more");
}

async fn delegate_gets_only_the_vote(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let delegation = given(g, &g.alice, &dana).await;
    let held = g.held(&g.thread().await).await;
    let may_rewrite = async || {
        let hold = g.service.reviews.review(&review(&held), &dana).await.unwrap().hold;
        hold.may_rewrite(&dana, None, g.service.core.now()).map_err(|it| it.code())
    };
    assert_eq!(may_rewrite().await, Err("group"));
    casts(g, &dana, &held, &delegation).await.unwrap();
    assert_eq!(may_rewrite().await, Err("group"), "nor once they have voted");
}
