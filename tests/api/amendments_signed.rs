//! Policies that people approve with a passkey's signature, on both databases.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::domain::chain::signed_vote::{Evidence, PolicyVoteStatement};
use countersign::domain::identity::account::Account;
use countersign::domain::identity::passkey::Refused;
use countersign::domain::policy_changes::change_request::Amendment;
use countersign::domain::primitives::id::AmendmentId;
use countersign::domain::reviews::{Ballot, Proof, Verdict, VoteRefused};
use countersign::service::error::{Error, Result};
use countersign::service::identity::passkeys::Signature;
use countersign::service::identity::session::SignedIn;
use countersign::service::reviews::vote::Voted;
use serde_json::{Value, json};

use crate::amendments::{activates, active, ballot, guarded, now, security};
use crate::attacks::policy_with;
use crate::gateway::Gateway;
use crate::passkeys_of_people::authenticator::Authenticator;
use crate::passkeys_of_people::{allow_removing, enrol, get, sign_in};
use crate::rules::Scene;

on_both! {
    a_policy_that_asks_for_a_signature_is_approved_with_one_and_not_without(super::signed("passkey = true")),
    a_signature_counts_for_one_policy_verdict_comment_page_and_person(super::signed("passkey = true")),
    a_signature_over_a_policy_is_used_in_time_and_by_a_passkey_that_counts(super::signed("passkey = true")),
    a_passkey_that_opened_the_session_is_enough_where_the_policy_says_so(super::signed("passkey_within = \"5m\"")),
}

const PASSWORD: &str = "correct horse battery";

fn signed(asks: &str) -> String {
    guarded(1).replace("ttl = \"1h\"\n", &format!("ttl = \"1h\"\n{asks}\n"))
}

struct Signer {
    inside: SignedIn,
    key: Authenticator,
}

async fn signer(g: &Gateway, who: &Account, seed: u8) -> Signer {
    let (inside, mut key) =
        (g.service.sign_in(&who.name, PASSWORD.to_owned()).await.unwrap().0, Authenticator::new(seed));
    enrol(&g.service, &inside, (&mut key, PASSWORD)).await;
    Signer { inside, key }
}

async fn amendment(g: &Gateway, asked: &Value) -> Amendment {
    let id = AmendmentId::try_from(asked["amendment"].as_str().unwrap()).unwrap();
    g.service.amendment(&id).await.unwrap()
}

/// What the page would have that person sign, signed.
async fn sign(g: &Gateway, who: &mut Signer, asked: &Value, ballot: &Ballot) -> Signature {
    let amendment = amendment(g, asked).await;
    let voter = &who.inside.account.record.id;
    let (challenge, expires_at) = g.service.policy_vote_challenge(&amendment, voter, ballot).unwrap();
    let ask = get(&g.service, &URL_SAFE_NO_PAD.encode(challenge.bytes()));
    Signature { expires_at, assertion: serde_json::from_value(who.key.sign(&ask)).unwrap() }
}

async fn cast(
    g: &Gateway,
    who: &Signer,
    asked: &Value,
    (ballot, signature): (&Ballot, Option<&Signature>),
) -> Result<Voted> {
    let id = amendment(g, asked).await.id;
    g.service.vote_signed_on_amendment(&who.inside.account.record.id, &id, ballot, signature).await
}

fn refused(outcome: Result<Voted>) -> VoteRefused {
    match outcome {
        Err(Error::Vote(refused)) => refused,
        Err(Error::Passkey(refused)) => refused.into(),
        other => panic!("{other:?}"),
    }
}

fn laxer() -> String {
    policy_with("\"target_user_id\", \"execution", "\"execution")
}

async fn a_policy_that_asks_for_a_signature_is_approved_with_one_and_not_without(scene: Scene) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let mut grace = signer(g, &grace, 1).await;
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let yes = ballot(&asked, Verdict::Approve);
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, None)).await), VoteRefused::PasskeyRequired);
    let id = grace.inside.account.record.id.clone();
    let (by_passkey, _) = sign_in(&g.service, id.as_str(), &mut grace.key).await.unwrap();
    let session = Ballot { proof: Proof::of_session(&by_passkey.session.record), ..yes.clone() };
    assert_eq!(refused(cast(g, &grace, &asked, (&session, None)).await), VoteRefused::PasskeyRequired);
    assert_ne!(json!(active(g).await), asked["policy"]);
    let signature = sign(g, &mut grace, &asked, &yes).await;
    assert_eq!(cast(g, &grace, &asked, (&yes, Some(&signature))).await.unwrap(), Voted::Approved);
    assert_eq!(json!(active(g).await), asked["policy"]);
    let told = now(g, &asked).await;
    let evidence: Evidence<PolicyVoteStatement> = serde_json::from_value(told["evidence"][0].clone()).unwrap();
    assert_eq!(json!(evidence.statement.digest), asked["digest"]);
    while g.service.sequence().await.unwrap() > 0 {}
    let log = g.get("/v1/events", &g.auditor).await.expect(200);
    let vote = log["events"].as_array().unwrap().iter().find(|it| it["type"] == "policy.vote").unwrap();
    assert_eq!((&vote["data"]["method"], &vote["data"]["evidence"]), (&json!("passkey"), &json!(evidence.digest())));
    scene.passes_an_audit().await;
}

async fn a_signature_counts_for_one_policy_verdict_comment_page_and_person(scene: Scene) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let (mut grace, mut heidi) = (signer(g, &grace, 1).await, signer(g, &heidi, 2).await);
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let other = activates(g, &policy_with("need = 1", "need = 2"), json!([])).await.expect(202);
    let yes = ballot(&asked, Verdict::Approve);
    let signature = sign(g, &mut grace, &asked, &yes).await;
    let challenge = || VoteRefused::Passkey(Refused::Challenge);
    for (what, spoiled) in [
        ("another verdict", Ballot { verdict: Verdict::Deny, ..yes.clone() }),
        ("another comment", Ballot { comment: Some("I looked".to_owned()), ..yes.clone() }),
        ("another page", Ballot { nonce: "another".to_owned(), ..yes.clone() }),
    ] {
        assert_eq!(refused(cast(g, &grace, &asked, (&spoiled, Some(&signature))).await), challenge(), "{what}");
    }
    let on_other = Ballot { nonce: yes.nonce.clone(), ..ballot(&other, Verdict::Approve) };
    assert_eq!(refused(cast(g, &grace, &other, (&on_other, Some(&signature))).await), challenge(), "another policy");
    let later = Signature { expires_at: signature.expires_at.minus(Duration::from_secs(1)), ..signature.clone() };
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, Some(&later))).await), challenge(), "another end");
    let theirs = refused(cast(g, &heidi, &asked, (&yes, Some(&signature))).await);
    assert_eq!(theirs, VoteRefused::Passkey(Refused::NotTheirs));
    // What is signed of a vote on a review is no vote on a policy, though all else were the same.
    let held = g.held(&g.thread().await).await;
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let hold = g.service.review(&review, &heidi.inside.account.record).await.unwrap().hold;
    let (over_review, expires_at) = g.service.vote_challenge(&hold, &heidi.inside.account.record.id, &yes).unwrap();
    let ask = get(&g.service, &URL_SAFE_NO_PAD.encode(over_review.bytes()));
    let crossed = Signature { expires_at, assertion: serde_json::from_value(heidi.key.sign(&ask)).unwrap() };
    assert_eq!(refused(cast(g, &heidi, &asked, (&yes, Some(&crossed))).await), challenge());
    assert_ne!(json!(active(g).await), asked["policy"]);
    assert_eq!(cast(g, &grace, &asked, (&yes, Some(&signature))).await.unwrap(), Voted::Approved);
    scene.passes_an_audit().await;
}

async fn a_signature_over_a_policy_is_used_in_time_and_by_a_passkey_that_counts(scene: Scene) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let mut grace = signer(g, &grace, 1).await;
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let yes = ballot(&asked, Verdict::Approve);
    let late = sign(g, &mut grace, &asked, &yes).await;
    g.pass(Duration::from_secs(301));
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, Some(&late))).await), VoteRefused::SignatureExpired);
    let fresh = sign(g, &mut grace, &asked, &yes).await;
    let own = g.service.passkeys_of(&grace.inside.account.record.id).await.unwrap();
    let id = own[0].id.clone();
    let allowed = allow_removing(&g.service, &grace.inside, (&mut grace.key, id.as_str()));
    g.service.remove_passkey(&grace.inside, &id, allowed).await.unwrap();
    let gone = refused(cast(g, &grace, &asked, (&yes, Some(&fresh))).await);
    assert_eq!(gone, VoteRefused::Passkey(Refused::NotTheirs));
    assert_ne!(json!(active(g).await), asked["policy"]);
    scene.passes_an_audit().await;
}

async fn a_passkey_that_opened_the_session_is_enough_where_the_policy_says_so(scene: Scene) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let mut grace = signer(g, &grace, 1).await;
    let asked = activates(g, &laxer(), json!([])).await.expect(202);
    let yes = ballot(&asked, Verdict::Approve);
    assert_eq!(refused(cast(g, &grace, &asked, (&yes, None)).await), VoteRefused::PasskeyStale);
    let id = grace.inside.account.record.id.clone();
    let (by_passkey, _) = sign_in(&g.service, id.as_str(), &mut grace.key).await.unwrap();
    let session = Ballot { proof: Proof::of_session(&by_passkey.session.record), ..yes };
    assert_eq!(cast(g, &grace, &asked, (&session, None)).await.unwrap(), Voted::Approved);
    scene.passes_an_audit().await;
}
