//! Tests policies that reviewers approve with a passkey's signature. On both databases.

use std::time::Duration;

use countersign_domain::chain::signed_vote::{PolicyVoteStatement, VoteEvidence};
use countersign_domain::identity::account::Account;
use countersign_domain::identity::passkey::AssertionRejected;
use countersign_domain::policy_changes::change_request::PolicyChangeRequest;
use countersign_domain::primitives::id::AmendmentId;
use countersign_domain::reviews::{Ballot, VoteRejected, VoteVerdict, VoterProof};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_service::error::{Error, Result};
use countersign_service::identity::passkeys::VoteSignature;
use countersign_service::identity::session::SignedIn;
use countersign_service::reviews::vote::VoteOutcome;
use serde_json::{Value, json};

use crate::amendments::{activates, active, ballot, guarded, now, security};
use crate::attacks::policy_with;
use crate::gateway::TestGateway;
use crate::passkeys_of_people::authenticator::Authenticator;
use crate::passkeys_of_people::{allow_removing, enrol, get, sign_in};
use crate::rules::ApiScenario;

on_both! {
    signature_over_a_policy_needs_a_valid_passkey_and_expires(super::signed("passkey = true")),
}

on_both_in_full! {
    policy_that_requires_a_signature_is_not_approved_without_one(super::signed("passkey = true")),
    a_signature_counts_for_one_policy_verdict_comment_page_and_person(super::signed("passkey = true")),
    policy_can_accept_the_passkey_that_opened_the_session(super::signed("passkey_within = \"5m\"")),
}

const PASSWORD: &str = "correct horse battery";

fn signed(asks: &str) -> String {
    guarded(1).replace("ttl = \"1h\"\n", &format!("ttl = \"1h\"\n{asks}\n"))
}

struct PasskeySigner {
    inside: SignedIn,
    key: Authenticator,
}

async fn signer(g: &TestGateway, who: &Account, seed: u8) -> PasskeySigner {
    let (inside, mut key) =
        (g.service.identity.sign_in(&who.name, PASSWORD.to_owned()).await.unwrap().0, Authenticator::new(seed));
    enrol(&g.service, &inside, (&mut key, PASSWORD)).await;
    PasskeySigner { inside, key }
}

async fn amendment(g: &TestGateway, asked: &Value) -> PolicyChangeRequest {
    let id = AmendmentId::try_from(asked["amendment"].as_str().unwrap()).unwrap();
    g.service.policy_changes.amendment(&id).await.unwrap()
}

/// Signs the challenge that the page would show to this person.
async fn sign(g: &TestGateway, who: &mut PasskeySigner, asked: &Value, ballot: &Ballot) -> VoteSignature {
    let amendment = amendment(g, asked).await;
    let voter = &who.inside.account.record.id;
    let (challenge, expires_at) = g.service.identity.vote_challenge(&amendment, voter, ballot).unwrap();
    let ask = get(&g.service, &URL_SAFE_NO_PAD.encode(challenge.bytes()));
    VoteSignature { expires_at, assertion: serde_json::from_value(who.key.sign(&ask)).unwrap() }
}

async fn cast(
    g: &TestGateway,
    who: &PasskeySigner,
    asked: &Value,
    (ballot, signature): (&Ballot, Option<&VoteSignature>),
) -> Result<VoteOutcome> {
    let id = amendment(g, asked).await.id;
    g.service.policy_changes.vote_on_policy_change(&who.inside.account.record.id, &id, ballot, signature).await
}

fn refused(outcome: Result<VoteOutcome>) -> VoteRejected {
    match outcome {
        Err(Error::Vote(refused)) => refused,
        Err(Error::Passkey(refused)) => refused.into(),
        other => panic!("{other:?}"),
    }
}

fn laxer() -> String {
    policy_with("\"target_user_id\", \"execution", "\"execution")
}

async fn policy_that_requires_a_signature_is_not_approved_without_one(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let mut grace = signer(g, &grace, 1).await;
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let yes = ballot(&asked, VoteVerdict::Approve);
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, None)).await), VoteRejected::PasskeyRequired);
    let id = grace.inside.account.record.id.clone();
    let (by_passkey, _) = sign_in(&g.service, id.as_str(), &mut grace.key).await.unwrap();
    let session = Ballot { proof: VoterProof::of_session(&by_passkey.session.record), ..yes.clone() };
    assert_eq!(refused(cast(g, &grace, &asked, (&session, None)).await), VoteRejected::PasskeyRequired);
    assert_ne!(json!(active(g).await), asked["policy"]);
    let signature = sign(g, &mut grace, &asked, &yes).await;
    assert_eq!(cast(g, &grace, &asked, (&yes, Some(&signature))).await.unwrap(), VoteOutcome::Approved);
    assert_eq!(json!(active(g).await), asked["policy"]);
    let told = now(g, &asked).await;
    let evidence: VoteEvidence<PolicyVoteStatement> = serde_json::from_value(told["evidence"][0].clone()).unwrap();
    assert_eq!(json!(evidence.statement.digest), asked["digest"]);
    while g.service.log.sequence().await.unwrap() > 0 {}
    let log = g.get("/v1/events", &g.auditor).await.expect(200);
    let vote = log["events"].as_array().unwrap().iter().find(|it| it["type"] == "policy.vote").unwrap();
    assert_eq!((&vote["data"]["method"], &vote["data"]["evidence"]), (&json!("passkey"), &json!(evidence.digest())));
    scene.passes_an_audit().await;
}

async fn a_signature_counts_for_one_policy_verdict_comment_page_and_person(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let (mut grace, mut heidi) = (signer(g, &grace, 1).await, signer(g, &heidi, 2).await);
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let other = activates(g, &policy_with("need = 1", "need = 2"), json!([])).await.expect(202);
    let yes = ballot(&asked, VoteVerdict::Approve);
    let signature = sign(g, &mut grace, &asked, &yes).await;
    let challenge = || VoteRejected::Passkey(AssertionRejected::Challenge);
    for (what, spoiled) in [
        ("another verdict", Ballot { verdict: VoteVerdict::Deny, ..yes.clone() }),
        ("another comment", Ballot { comment: Some("I looked".to_owned()), ..yes.clone() }),
        ("another page", Ballot { nonce: "another".to_owned(), ..yes.clone() }),
    ] {
        assert_eq!(refused(cast(g, &grace, &asked, (&spoiled, Some(&signature))).await), challenge(), "{what}");
    }
    let on_other = Ballot { nonce: yes.nonce.clone(), ..ballot(&other, VoteVerdict::Approve) };
    assert_eq!(refused(cast(g, &grace, &other, (&on_other, Some(&signature))).await), challenge(), "another policy");
    let later = VoteSignature { expires_at: signature.expires_at.minus(Duration::from_secs(1)), ..signature.clone() };
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, Some(&later))).await), challenge(), "another end");
    let theirs = refused(cast(g, &heidi, &asked, (&yes, Some(&signature))).await);
    assert_eq!(theirs, VoteRejected::Passkey(AssertionRejected::NotTheirs));
    // A signature for a vote on a review is invalid for a vote on a policy, even if everything else is equal.
    let held = g.held(&g.thread().await).await;
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let hold = g.service.reviews.review(&review, &heidi.inside.account.record).await.unwrap().hold;
    let (over_review, expires_at) =
        g.service.identity.vote_challenge(&hold, &heidi.inside.account.record.id, &yes).unwrap();
    let ask = get(&g.service, &URL_SAFE_NO_PAD.encode(over_review.bytes()));
    let crossed = VoteSignature { expires_at, assertion: serde_json::from_value(heidi.key.sign(&ask)).unwrap() };
    assert_eq!(refused(cast(g, &heidi, &asked, (&yes, Some(&crossed))).await), challenge());
    assert_ne!(json!(active(g).await), asked["policy"]);
    assert_eq!(cast(g, &grace, &asked, (&yes, Some(&signature))).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}

async fn signature_over_a_policy_needs_a_valid_passkey_and_expires(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let mut grace = signer(g, &grace, 1).await;
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let yes = ballot(&asked, VoteVerdict::Approve);
    let late = sign(g, &mut grace, &asked, &yes).await;
    g.pass(Duration::from_secs(301));
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, Some(&late))).await), VoteRejected::SignatureExpired);
    let fresh = sign(g, &mut grace, &asked, &yes).await;
    let own = g.service.identity.passkeys_of(&grace.inside.account.record.id).await.unwrap();
    let id = own[0].id.clone();
    let allowed = allow_removing(&g.service, &grace.inside, (&mut grace.key, id.as_str()));
    g.service.identity.remove_passkey(&grace.inside, &id, allowed).await.unwrap();
    let gone = refused(cast(g, &grace, &asked, (&yes, Some(&fresh))).await);
    assert_eq!(gone, VoteRejected::Passkey(AssertionRejected::NotTheirs));
    assert_ne!(json!(active(g).await), asked["policy"]);
    scene.passes_an_audit().await;
}

async fn policy_can_accept_the_passkey_that_opened_the_session(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let mut grace = signer(g, &grace, 1).await;
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let yes = ballot(&asked, VoteVerdict::Approve);
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, None)).await), VoteRejected::PasskeyStale);
    let id = grace.inside.account.record.id.clone();
    let (by_passkey, _) = sign_in(&g.service, id.as_str(), &mut grace.key).await.unwrap();
    let session = Ballot { proof: VoterProof::of_session(&by_passkey.session.record), ..yes };
    assert_eq!(cast(g, &grace, &asked, (&session, None)).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}
