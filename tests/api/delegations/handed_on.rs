//! Tests who can delegate to whom, and the proof that this requires.

use super::*;

use crate::passwords::hashed;

on_both! {
    delegated_vote_cannot_be_delegated_again(super::two()),
    only_reviewers_delegate_to_reviewers_within_limits(super::two()),
    two_concurrent_delegations_are_both_counted(super::two()),
    delegation_requires_the_password_or_an_existing_passkey(super::two()),
    passkey_stage_needs_a_signed_delegation_and_the_delegates_passkey(super::signed()),
    delegation_signed_by_a_passkey_ends_with_the_passkey(super::signed()),
    delegation_by_password_ends_with_the_password(super::two()),
}

async fn delegated_vote_cannot_be_delegated_again(scene: ApiScenario) {
    let g = &scene.gateway;
    let (dana, erin) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "erin", &["elsewhere"]).await);
    let (first, second) = (given(g, &g.alice, &dana).await, given(g, &dana, &erin).await);
    let held = g.held(&g.thread().await).await;
    assert_eq!(code(casts(g, &erin, &held, &second).await), "not_eligible: group", "Dana has nothing of her own");
    assert_eq!(code(casts(g, &erin, &held, &first).await), "not_eligible: group", "and Alice named somebody else");
    assert_eq!(code(casts(g, &g.bob, &held, &first).await), "not_delegated", "nobody else uses it");
    assert_eq!(casts(g, &dana, &held, &first).await.unwrap(), VoteOutcome::Waiting);
    scene.passes_an_audit().await;
}

async fn only_reviewers_delegate_to_reviewers_within_limits(scene: ApiScenario) {
    let g = &scene.gateway;
    let boss = administrator(g, "boss").await;
    let new = NewAccount { name: "ivy".to_owned(), role: PersonRole::Auditor, groups: BTreeSet::new() };
    let ivy = g.service.identity.add_account_hashed(&new, &hashed(PASSWORD).await).await.unwrap();
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (groupless, gone) = (person(&g.service, "lone", &[]).await, person(&g.service, "gone", &["reviewers"]).await);
    g.service.identity.set_admission("gone", SignInAccess::Barred).await.unwrap();
    let no_vote = "you have no vote to delegate: only enabled reviewers in a group have one";
    let no_delegate = "this account cannot vote for you: name an enabled reviewer";
    for (from, to, why) in [
        (&boss, &dana, no_vote),
        (&ivy, &dana, no_vote),
        (&groupless, &dana, no_vote),
        (&g.alice, &boss, no_delegate),
        (&g.alice, &ivy, no_delegate),
        (&g.alice, &gone, no_delegate),
        (&g.alice, &g.alice, "a delegation needs another person: name a reviewer other than yourself"),
    ] {
        assert_eq!(code(gives(g, from, to, DAY).await), why, "{} to {}", from.name, to.name);
    }
    let nobody = naming("nobody", DAY);
    let shown = || PasskeyConfirmation::Password(PASSWORD.to_owned());
    assert_eq!(code(g.service.identity.delegate_to(&inside(g, &g.alice).await, &nobody, shown()).await), no_delegate);
    let second = Duration::from_secs(1);
    for length in [LENGTH_MIN - second, LENGTH_MAX + second] {
        assert_eq!(code(gives(g, &g.alice, &dana, length).await), "a delegation lasts between one hour and 30 days");
    }
    gives(g, &g.alice, &dana, LENGTH_MIN).await.unwrap();
    assert_eq!(
        code(gives(g, &g.alice, &dana, LENGTH_MAX).await),
        "you have an active delegation to this person: end it first"
    );
    for number in 1..GIVEN_MAX {
        given(g, &g.alice, &person(&g.service, &format!("d-{number}"), &[]).await).await;
    }
    let too_many = "you have three active delegations, which is the limit: end one first";
    assert_eq!(code(gives(g, &g.alice, &g.bob, DAY).await), too_many);
    for number in 1..RECEIVED_MAX {
        given(g, &person(&g.service, &format!("from-{number}"), &["reviewers"]).await, &dana).await;
    }
    let full = "this person votes for ten people already, which is the limit: name another reviewer";
    assert_eq!(code(gives(g, &g.bob, &dana, DAY).await), full);
    g.pass(LENGTH_MIN);
    for _ in 0..GIVEN_LATELY_MAX {
        let one = given(g, &g.bob, &dana).await;
        g.service.identity.end_delegation(&g.bob.id, &one.id).await.unwrap();
    }
    let lately = "you have created 20 delegations within 30 days, which is the limit: ask an administrator";
    assert_eq!(code(gives(g, &g.bob, &dana, DAY).await), lately);
    g.pass(LENGTH_MAX);
    given(g, &g.bob, &dana).await;
    scene.passes_an_audit().await;
}

async fn two_concurrent_delegations_are_both_counted(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut people = Vec::new();
    for number in 0..6 {
        people.push(person(&g.service, &format!("d-{number}"), &[]).await);
    }
    let from = inside(g, &g.alice).await;
    let asked = people.iter().map(|it| {
        let (from, naming) = (&from, naming(&it.name, DAY));
        async move {
            g.service.identity.delegate_to(from, &naming, PasskeyConfirmation::Password(PASSWORD.to_owned())).await
        }
    });
    let done = futures_util::future::join_all(asked).await;
    assert!(done.iter().filter(|it| it.is_ok()).count() <= GIVEN_MAX, "{done:?}");
    let all = g.service.identity.delegations(&g.alice.id, DelegationOwnerFilter::Own).await.unwrap().given;
    let numbers: Vec<u32> = all.iter().rev().map(|it| it.number).collect();
    assert_eq!(numbers, (1..=u32::try_from(all.len()).unwrap()).collect::<Vec<_>>());
    assert!(all.len() <= GIVEN_MAX);
    scene.passes_an_audit().await;
}

async fn allowed(g: &TestGateway, who: &SignedIn, key: &mut Authenticator, to: &NewDelegation) -> PasskeyConfirmation {
    allow_delegating(&g.service, who, (key, to)).await
}

async fn delegation_requires_the_password_or_an_existing_passkey(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let alice = inside(g, &g.alice).await;
    let (to, longer) = (naming("dana", DAY), naming("dana", 2 * DAY));
    for wrong in ["", "a wrong password"] {
        let done = g.service.identity.delegate_to(&alice, &to, PasskeyConfirmation::Password(wrong.to_owned())).await;
        assert_eq!(code(done), "the password is wrong");
    }
    let mut key = Authenticator::new(1);
    enrol(&g.service, &alice, (&mut key, PASSWORD)).await;
    // An attacker who resets or finds a password does not have the passkey.
    let by_password =
        g.service.identity.delegate_to(&alice, &to, PasskeyConfirmation::Password(PASSWORD.to_owned())).await;
    assert_eq!(code(by_password), "you have a passkey: confirm with it instead of the password");
    let mut of_dana = Authenticator::new(2);
    enrol(&g.service, &inside(g, &dana).await, (&mut of_dana, PASSWORD)).await;
    let others = allowed(g, &alice, &mut of_dana, &to).await;
    assert_eq!(code(g.service.identity.delegate_to(&alice, &to, others).await), "passkey");
    let used = "the form was already used or is older than five minutes: open the page again";
    let for_a_day = allowed(g, &alice, &mut key, &to).await;
    assert_eq!(code(g.service.identity.delegate_to(&alice, &longer, for_a_day).await), used, "it signs for how long");
    let other_session = inside(g, &g.alice).await;
    let elsewhere = allowed(g, &other_session, &mut key, &to).await;
    assert_eq!(code(g.service.identity.delegate_to(&alice, &to, elsewhere).await), used, "and in which session");
    // Some authenticators have no counter, so a replayed signature looks valid.
    let mut synced = Authenticator::synced(3);
    let session = alice.session.record.id.as_str();
    let new = crate::passkeys_of_people::new_passkey(&g.service, &alice, &mut synced, |it| {
        crate::passkeys_of_people::allow_adding(&g.service, &alice, (&mut key, it))
    });
    g.service.identity.add_passkey(&alice, new).await.unwrap();
    let offer = g.service.identity.offer(&alice.account.record, &to).await.unwrap();
    let challenge = g
        .service
        .identity
        .passkey_challenge(&ChallengePurpose::AllowDelegating { session, terms: &offer.terms })
        .unwrap();
    let signature = assertion(&mut synced, &get(&g.service, &challenge));
    let again = || PasskeyConfirmation::Passkey { challenge: challenge.clone(), assertion: signature.clone() };
    let delegation = g.service.identity.delegate_to(&alice, &to, again()).await.unwrap();
    assert!(delegation.confirmed_by.is_some());
    g.service.identity.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    assert_eq!(code(g.service.identity.delegate_to(&alice, &to, again()).await), used, "and once");
    scene.passes_an_audit().await;
}

async fn passkey_stage_needs_a_signed_delegation_and_the_delegates_passkey(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (inside_alice, inside_dana) = (inside(g, &g.alice).await, inside(g, &dana).await);
    let mut key = Authenticator::new(2);
    enrol(&g.service, &inside_dana, (&mut key, PASSWORD)).await;
    let by_password = given(g, &g.alice, &dana).await;
    let held = g.held(&g.thread().await).await;
    let cast = async |key: &mut Authenticator, delegation: &Delegation| {
        let ballot = by(&held, delegation, VoteVerdict::Approve);
        vote_signed(&g.service, &inside_dana, key, (&review(&held), &ballot)).await
    };
    assert_eq!(code(cast(&mut key, &by_password).await), "not_eligible: group");
    g.service.identity.end_delegation(&g.alice.id, &by_password.id).await.unwrap();
    let mut of_alice = Authenticator::new(1);
    enrol(&g.service, &inside_alice, (&mut of_alice, PASSWORD)).await;
    let to = naming("dana", DAY);
    let shown = allowed(g, &inside_alice, &mut of_alice, &to).await;
    let by_passkey = g.service.identity.delegate_to(&inside_alice, &to, shown).await.unwrap();
    assert_eq!(code(casts(g, &dana, &held, &by_passkey).await), "passkey_required", "the delegate signs, too");
    assert_eq!(code(cast(&mut of_alice, &by_passkey).await), "passkey_refused", "and by their own");
    assert_eq!(cast(&mut key, &by_passkey).await.unwrap(), VoteOutcome::Approved);
    let decision = g.decision(&held).await.expect(200);
    let claims = verified::<Receipt>(g, decision["receipt"].as_str().unwrap(), TokenType::Receipt);
    let [approval] = claims.approvals.try_into().unwrap();
    assert_eq!(
        (approval.method, approval.reviewer, approval.absent),
        (ApprovalMethod::Passkey, dana.id, Some(g.alice.id.clone()))
    );
    scene.passes_an_audit().await;
}

async fn delegation_signed_by_a_passkey_ends_with_the_passkey(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (inside_alice, inside_dana) = (inside(g, &g.alice).await, inside(g, &dana).await);
    let (mut of_alice, mut of_dana) = (Authenticator::new(1), Authenticator::new(2));
    enrol(&g.service, &inside_alice, (&mut of_alice, PASSWORD)).await;
    enrol(&g.service, &inside_dana, (&mut of_dana, PASSWORD)).await;
    let held = g.held(&g.thread().await).await;
    for by_administrator in [false, true] {
        let to = naming("dana", DAY);
        let shown = allowed(g, &inside_alice, &mut of_alice, &to).await;
        let delegation = g.service.identity.delegate_to(&inside_alice, &to, shown).await.unwrap();
        let id = of_alice.id();
        if by_administrator {
            g.service.identity.remove_passkeys_of(&"tests".try_into().unwrap(), "alice").await.unwrap();
        } else {
            let shown = allow_removing(&g.service, &inside_alice, (&mut of_alice, &id));
            g.service.identity.remove_passkey(&inside_alice, &id.as_str().try_into().unwrap(), shown).await.unwrap();
        }
        let ballot = by(&held, &delegation, VoteVerdict::Approve);
        let cast = vote_signed(&g.service, &inside_dana, &mut of_dana, (&review(&held), &ballot)).await;
        assert_eq!(code(cast), "not_eligible: group", "by an administrator: {by_administrator}");
        of_alice = Authenticator::new(if by_administrator { 4 } else { 3 });
        enrol(&g.service, &inside_alice, (&mut of_alice, PASSWORD)).await;
    }
    assert_eq!(told(g, EventType::DelegationEnded).await.len(), 2);
    scene.passes_an_audit().await;
}

async fn delegation_by_password_ends_with_the_password(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let gus = administrator(g, "gus").await;
    let gus = g.service.identity.account_row(&gus.id).await.unwrap();
    let held = g.held(&g.thread().await).await;
    let by_alice = given(g, &g.alice, &dana).await;
    let inside_alice = inside(g, &g.alice).await;
    let another = "another correct horse".to_owned();
    g.service.identity.change_password(&inside_alice, PASSWORD.to_owned(), another).await.unwrap();
    assert_eq!(code(casts(g, &dana, &held, &by_alice).await), "not_eligible: group");
    let by_bob = given(g, &g.bob, &dana).await;
    g.service.identity.reset_link(&gus, &g.bob.id).await.unwrap();
    assert_eq!(code(casts(g, &dana, &held, &by_bob).await), "not_eligible: group");
    scene.passes_an_audit().await;
}
