//! Tests passkeys: registration, sign-in and votes with a passkey, and crafted requests. On both databases.

use std::time::Duration;

use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::{ApprovalMethod, Receipt};
use countersign_domain::chain::signed_vote::VoteEvidence;
use countersign_domain::chain::verify_receipt_offline;
use countersign_domain::chain::verify_receipt_offline::{CheckName, CheckOutcome, PinnedPasskey};
use countersign_domain::identity::account::Account;
use countersign_domain::identity::passkey::AssertionRejected;
use countersign_domain::keys::PublicKeys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{PrincipalId, ReviewId};
use countersign_domain::reviews::{Ballot, VoteRejected, VoteVerdict, VoterProof};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_service::error::{Error, Result};
use countersign_service::identity::passkeys::{ChallengePurpose, PasskeyConfirmation, PasskeySignIn, VoteSignature};
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::identity::session::SignedIn;
use countersign_service::reviews::vote::VoteOutcome;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, ballot};
use crate::passkeys_of_people::authenticator::{Authenticator, AuthenticatorRequest, PRESENT};
use crate::passkeys_of_people::{
    UnsignedVote, allow_adding, allow_removing, assertion, enrol, get, new_passkey, sign_in, to_sign, vote,
};
use crate::rules::ApiScenario;

on_both! {
    a_stage_that_asks_for_a_passkey_is_passed_with_its_signature_and_not_without(super::signed()),
    a_signature_counts_for_exactly_what_it_is_over(super::two_signed()),
    an_assertion_that_is_not_quite_right_counts_no_vote(super::signed()),
    a_signature_is_used_once_and_in_time(super::signed()),
    a_passkey_that_was_used_a_moment_ago_is_enough_where_the_policy_says_so(super::fresh()),
    the_first_passkey_takes_the_password_and_every_other_one_that_is_there(super::signed()),
    a_registration_is_bound_to_its_session_and_used_once(super::signed()),
    passkey_signs_in_only_its_owner(super::signed()),
    a_sign_in_that_is_played_again_opens_nothing(super::signed()),
    a_counter_that_goes_back_is_refused_and_told(super::signed()),
    a_removed_passkey_opens_nothing_and_the_sessions_it_opened_end(super::signed()),
    an_administrator_takes_lost_passkeys_away(super::signed()),
}

const PASSWORD: &str = "correct horse battery";

fn signed() -> String {
    policy_with("need = 1", "need = 1\npasskey = true")
}

fn fresh() -> String {
    policy_with("need = 1", "need = 1\npasskey_within = \"5m\"")
}

/// Returns a policy with two stages, each of which requires a signature.
fn two_signed() -> String {
    let stage = "[[approval.stages]]\ngroups = [\"reviewers\"]\nneed = 1\npasskey = true\n";
    let before = signed();
    assert!(before.contains("[[approval.stages]]"));
    before.replacen("[[approval.stages]]", &format!("{stage}\n[[approval.stages]]"), 1)
}

/// A person who signed in by password and has one passkey.
struct PasskeyUser {
    inside: SignedIn,
    key: Authenticator,
}

async fn inside(g: &TestGateway, who: &Account) -> SignedIn {
    g.service.identity.sign_in(&who.name, PASSWORD.to_owned()).await.unwrap().0
}

async fn person(g: &TestGateway, who: &Account, seed: u8) -> PasskeyUser {
    let (inside, mut key) = (inside(g, who).await, Authenticator::new(seed));
    enrol(&g.service, &inside, (&mut key, PASSWORD)).await;
    PasskeyUser { inside, key }
}

struct PasskeyHold {
    answer: Value,
    review: ReviewId,
}

impl PasskeyHold {
    fn ballot(&self, verdict: VoteVerdict) -> Ballot {
        ballot(&self.answer, verdict)
    }
}

async fn held(g: &TestGateway) -> PasskeyHold {
    let answer = g.held(&g.thread().await).await;
    let review = answer["review"]["id"].as_str().unwrap().try_into().unwrap();
    PasskeyHold { answer, review }
}

async fn cast(
    g: &TestGateway,
    who: &SignedIn,
    held: &PasskeyHold,
    ballot: &Ballot,
    signature: Option<&VoteSignature>,
) -> Result<VoteOutcome> {
    g.service.reviews.vote(&who.account.record.id, &held.review, ballot, signature).await
}

fn refused(outcome: Result<VoteOutcome>) -> VoteRejected {
    match outcome {
        Err(Error::Vote(refused)) => refused,
        Err(Error::Passkey(refused)) => refused.into(),
        other => panic!("{other:?}"),
    }
}

async fn events(g: &TestGateway, kind: EventType) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    events.into_iter().map(|it| it.event).filter(|it| it.kind == kind).map(|it| it.data).collect()
}

async fn a_stage_that_asks_for_a_passkey_is_passed_with_its_signature_and_not_without(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let held = held(g).await;
    let yes = held.ballot(VoteVerdict::Approve);
    assert_eq!(refused(cast(g, &alice.inside, &held, &yes, None).await), VoteRejected::PasskeyRequired);
    let (by_passkey, _) = sign_in(&g.service, g.alice.id.as_str(), &mut alice.key).await.unwrap();
    let claimed = Ballot { proof: VoterProof::of_session(&by_passkey.session.record), ..yes.clone() };
    assert!(matches!(claimed.proof, VoterProof::PasskeySession { .. }));
    assert_eq!(refused(cast(g, &by_passkey, &held, &claimed, None).await), VoteRejected::PasskeyRequired);
    let signed = vote(&g.service, &alice.inside, &mut alice.key, (&held.review, &yes)).await.unwrap();
    assert_eq!(signed, VoteOutcome::Approved);
    let receipt = g.decision(&held.answer).await.expect(200)["receipt"].as_str().unwrap().to_owned();
    let claims = jws::read::<Receipt>(&receipt, TokenType::Receipt).unwrap();
    let keys = g.service.core.keys().unwrap();
    let key = keys.public(countersign_domain::keys::KeyUse::Chain, claims.kid()).unwrap();
    let [approval] = claims.verify(key).unwrap().approvals.try_into().unwrap();
    assert_eq!(approval.method, ApprovalMethod::Passkey);
    let [told] = events(g, EventType::ReviewVote).await.try_into().unwrap();
    assert_eq!((&told["method"], &told["evidence"]), (&json!("passkey"), &json!(approval.evidence.unwrap())));
    assert_eq!(told["passkey"], json!(alice.key.id()));
    let pinned = g.get("/v1/passkeys", &g.auditor).await.expect(200);
    let jti = g.decision(&held.answer).await.expect(200)["nonce"].as_str().unwrap().to_owned();
    let given = g.get(&format!("/v1/receipts/{jti}/evidence"), &g.auditor).await.expect(200);
    let pinned: Vec<PinnedPasskey> = serde_json::from_value(pinned["passkeys"].clone()).unwrap();
    let votes: Vec<VoteEvidence> = serde_json::from_value(given["evidence"].clone()).unwrap();
    let jwks = g.get("/.well-known/jwks.json", &g.auditor).await.expect(200);
    let published = PublicKeys::from_jwks(&jwks).unwrap();
    let (entry, statement, opening, passkeys) = (None, None, None, Some(&pinned[..]));
    let all = verify_receipt_offline::ReceiptEvidence {
        receipt: &receipt,
        keys: &published,
        entry,
        statement,
        opening,
        votes: &votes,
        passkeys,
    };
    let checks = verify_receipt_offline::check(&all, g.service.core.now());
    let approvals = checks.iter().find(|it| it.name == CheckName::Approvals).unwrap();
    assert_eq!(approvals.outcome, CheckOutcome::Passed, "an auditor with nothing but these files");
    scene.passes_an_audit().await;
}

async fn a_signature_counts_for_exactly_what_it_is_over(scene: ApiScenario) {
    let g = &scene.gateway;
    let (mut alice, mut bob) = (person(g, &g.alice, 1).await, person(g, &g.bob, 2).await);
    let (this, that) = (held(g).await, held(g).await);
    let no = Ballot { comment: Some("I looked".to_owned()), ..this.ballot(VoteVerdict::Deny) };
    let (ask, unsigned) = to_sign(&g.service, &alice.inside, (&this.review, &no)).await;
    let signature = unsigned.by(&mut alice.key, &ask);
    let other = AssertionRejected::Challenge;
    for (what, ballot) in [
        ("another verdict", Ballot { verdict: VoteVerdict::Approve, ..no.clone() }),
        ("another comment", Ballot { comment: Some("I looked!".to_owned()), ..no.clone() }),
        ("no comment", Ballot { comment: None, ..no.clone() }),
        ("another stage", Ballot { stage: 1, ..no.clone() }),
        ("another page", Ballot { nonce: "another".to_owned(), ..no.clone() }),
        ("another change", Ballot { transition: that.ballot(VoteVerdict::Deny).transition, ..no.clone() }),
    ] {
        let outcome = refused(cast(g, &alice.inside, &this, &ballot, Some(&signature)).await);
        assert_eq!(outcome, VoteRejected::Passkey(other), "{what}");
    }
    let on_that = Ballot { nonce: no.nonce.clone(), comment: no.comment.clone(), ..that.ballot(VoteVerdict::Deny) };
    let outcome = refused(cast(g, &alice.inside, &that, &on_that, Some(&signature)).await);
    assert_eq!(outcome, VoteRejected::Passkey(other), "another review");
    let later = VoteSignature { expires_at: unsigned.expires_at.plus(Duration::from_millis(1)), ..signature.clone() };
    g.pass(Duration::from_secs(1));
    let outcome = refused(cast(g, &alice.inside, &this, &no, Some(&later)).await);
    assert_eq!(outcome, VoteRejected::Passkey(other), "another end");
    let outcome = refused(cast(g, &bob.inside, &this, &no, Some(&signature)).await);
    assert_eq!(outcome, VoteRejected::Passkey(AssertionRejected::NotTheirs), "another person");
    let theirs = unsigned.by(&mut bob.key, &ask);
    let outcome = refused(cast(g, &bob.inside, &this, &no, Some(&theirs)).await);
    assert_eq!(outcome, VoteRejected::Passkey(other), "another person's challenge");
    let outcome = refused(cast(g, &alice.inside, &this, &no, Some(&theirs)).await);
    assert_eq!(outcome, VoteRejected::Passkey(AssertionRejected::NotTheirs), "another person's passkey");
    assert_eq!(cast(g, &alice.inside, &this, &no, Some(&signature)).await.unwrap(), VoteOutcome::Denied, "itself");
    scene.passes_an_audit().await;
}

async fn an_assertion_that_is_not_quite_right_counts_no_vote(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let held = held(g).await;
    let yes = held.ballot(VoteVerdict::Approve);
    let (honest, unsigned) = to_sign(&g.service, &alice.inside, (&held.review, &yes)).await;
    let framed = json!({"crossOrigin": true});
    for (what, ask, why) in [
        (
            "another site",
            AuthenticatorRequest { origin: "https://evil.example".to_owned(), ..honest.clone() },
            AssertionRejected::Origin,
        ),
        (
            "another host",
            AuthenticatorRequest { rp_id: "evil.example".to_owned(), ..honest.clone() },
            AssertionRejected::Origin,
        ),
        ("a frame", AuthenticatorRequest { more: framed, ..honest.clone() }, AssertionRejected::Origin),
        (
            "a registration",
            AuthenticatorRequest { kind: "webauthn.create", ..honest.clone() },
            AssertionRejected::Purpose,
        ),
        (
            "nothing of ours",
            AuthenticatorRequest { challenge: URL_SAFE_NO_PAD.encode([0; 32]), ..honest.clone() },
            AssertionRejected::Challenge,
        ),
    ] {
        let signature = unsigned.by(&mut alice.key, &ask);
        let outcome = refused(cast(g, &alice.inside, &held, &yes, Some(&signature)).await);
        assert_eq!(outcome, VoteRejected::Passkey(why), "{what}");
    }
    let mut careless = Authenticator { flags: PRESENT, ..alice.key.clone() };
    let signature = unsigned.by(&mut careless, &honest);
    let outcome = refused(cast(g, &alice.inside, &held, &yes, Some(&signature)).await);
    assert_eq!(outcome, VoteRejected::Passkey(AssertionRejected::Unverified));
    let mut unknown = Authenticator::new(99);
    let signature = unsigned.by(&mut unknown, &honest);
    let outcome = refused(cast(g, &alice.inside, &held, &yes, Some(&signature)).await);
    assert_eq!(outcome, VoteRejected::Passkey(AssertionRejected::NotTheirs));
    assert_eq!(events(g, EventType::ReviewVote).await, [Value::Null; 0]);
    let signature = unsigned.by(&mut alice.key, &honest);
    assert_eq!(cast(g, &alice.inside, &held, &yes, Some(&signature)).await.unwrap(), VoteOutcome::Approved);
}

async fn a_signature_is_used_once_and_in_time(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let held = held(g).await;
    let yes = held.ballot(VoteVerdict::Approve);
    let (ask, unsigned) = to_sign(&g.service, &alice.inside, (&held.review, &yes)).await;
    let far = UnsignedVote { expires_at: unsigned.expires_at.plus(Duration::from_secs(3600)) };
    let outcome = refused(cast(g, &alice.inside, &held, &yes, Some(&far.by(&mut alice.key, &ask))).await);
    assert_eq!(outcome, VoteRejected::SignatureExpired, "nobody signs for longer than five minutes");
    let signature = unsigned.by(&mut alice.key, &ask);
    g.pass(Duration::from_secs(301));
    let outcome = refused(cast(g, &alice.inside, &held, &yes, Some(&signature)).await);
    assert_eq!(outcome, VoteRejected::SignatureExpired);
    let (ask, unsigned) = to_sign(&g.service, &alice.inside, (&held.review, &yes)).await;
    let signature = unsigned.by(&mut alice.key, &ask);
    cast(g, &alice.inside, &held, &yes, Some(&signature)).await.unwrap();
    assert!(cast(g, &alice.inside, &held, &yes, Some(&signature)).await.is_err(), "played again");
    assert_eq!(events(g, EventType::ReviewVote).await.len(), 1);
}

async fn a_passkey_that_was_used_a_moment_ago_is_enough_where_the_policy_says_so(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let (one, two) = (held(g).await, held(g).await);
    let yes = one.ballot(VoteVerdict::Approve);
    assert_eq!(refused(cast(g, &alice.inside, &one, &yes, None).await), VoteRejected::PasskeyStale);
    let (inside, _) = sign_in(&g.service, g.alice.id.as_str(), &mut alice.key).await.unwrap();
    let proof = VoterProof::of_session(&inside.session.record);
    let claimed = Ballot { proof: proof.clone(), ..yes };
    let as_bob = g.service.reviews.vote(&g.bob.id, &one.review, &claimed, None).await;
    assert_eq!(refused(as_bob), VoteRejected::Passkey(AssertionRejected::NotTheirs), "somebody else's session");
    g.pass(Duration::from_secs(301));
    assert_eq!(refused(cast(g, &inside, &one, &claimed, None).await), VoteRejected::PasskeyStale);
    let (inside, _) = sign_in(&g.service, g.alice.id.as_str(), &mut alice.key).await.unwrap();
    let claimed = Ballot { proof: VoterProof::of_session(&inside.session.record), ..claimed };
    assert_eq!(cast(g, &inside, &one, &claimed, None).await.unwrap(), VoteOutcome::Approved);
    let [told] = events(g, EventType::ReviewVote).await.try_into().unwrap();
    assert_eq!((&told["method"], &told["evidence"]), (&json!("passkey_session"), &Value::Null));
    let yes = two.ballot(VoteVerdict::Approve);
    let voted = vote(&g.service, &alice.inside, &mut alice.key, (&two.review, &yes)).await.unwrap();
    assert_eq!(voted, VoteOutcome::Approved, "a signature is always new enough");
    scene.passes_an_audit().await;
}

async fn the_first_passkey_takes_the_password_and_every_other_one_that_is_there(scene: ApiScenario) {
    let g = &scene.gateway;
    let (service, inside) = (&g.service, inside(g, &g.alice).await);
    let (mut first, mut second, mut strange) = (Authenticator::new(1), Authenticator::synced(2), Authenticator::new(3));
    let wrong = new_passkey(service, &inside, &mut first, |_| PasskeyConfirmation::Password("a wrong one".to_owned()));
    assert!(matches!(service.identity.add_passkey(&inside, wrong).await, Err(Error::Forbidden(_))));
    let strange_says =
        new_passkey(service, &inside, &mut first, |it| allow_adding(service, &inside, (&mut strange, it)));
    assert!(matches!(
        service.identity.add_passkey(&inside, strange_says).await,
        Err(Error::Passkey(AssertionRejected::NotTheirs))
    ));
    assert_eq!(service.identity.passkeys().await.unwrap(), []);
    enrol(service, &inside, (&mut first, PASSWORD)).await;
    let by_password =
        new_passkey(service, &inside, &mut second, |_| PasskeyConfirmation::Password(PASSWORD.to_owned()));
    assert!(matches!(service.identity.add_passkey(&inside, by_password).await, Err(Error::Forbidden(_))));
    let for_another = new_passkey(service, &inside, &mut second, |_| {
        allow_adding(service, &inside, (&mut first, "another registration"))
    });
    assert!(service.identity.add_passkey(&inside, for_another).await.is_err(), "what was confirmed was another one");
    let confirmed = new_passkey(service, &inside, &mut second, |it| allow_adding(service, &inside, (&mut first, it)));
    service.identity.add_passkey(&inside, confirmed).await.unwrap();
    let told = events(g, EventType::PasskeyAdded).await;
    let by: Vec<&Value> = told.iter().map(|it| &it["confirmed_by"]).collect();
    assert_eq!(by, [&Value::Null, &json!(first.id())]);
    assert_eq!(told[1]["backup_eligible"], json!(true));
    assert_eq!(told[0]["public_key"]["kty"], json!("EC"));
    for _ in 0..2 {
        sign_in(service, g.alice.id.as_str(), &mut second).await.unwrap();
    }
    scene.passes_an_audit().await;
}

async fn a_registration_is_bound_to_its_session_and_used_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let (service, alice, bob) = (&g.service, inside(g, &g.alice).await, inside(g, &g.bob).await);
    let password = |_: &str| PasskeyConfirmation::Password(PASSWORD.to_owned());
    let hers = new_passkey(service, &alice, &mut Authenticator::new(1), password);
    assert!(matches!(service.identity.add_passkey(&bob, hers).await, Err(Error::WrongState(_))), "another session");
    let late = new_passkey(service, &alice, &mut Authenticator::new(1), password);
    g.pass(Duration::from_secs(301));
    assert!(matches!(service.identity.add_passkey(&alice, late).await, Err(Error::WrongState(_))), "too late");
    let mut key = Authenticator::new(1);
    let passkey = enrol(service, &alice, (&mut key, PASSWORD)).await;
    let taken = new_passkey(service, &bob, &mut Authenticator::new(1), password);
    assert!(
        matches!(service.identity.add_passkey(&bob, taken).await, Err(Error::WrongState(_))),
        "one key, one person"
    );
    // The same challenge with another key, confirmed as it should be.
    let mut again = Authenticator::new(5);
    let ask = AuthenticatorRequest { kind: "webauthn.create", ..get(service, &passkey.challenge) };
    let mut twice =
        new_passkey(service, &alice, &mut again, |_| allow_adding(service, &alice, (&mut key, &passkey.challenge)));
    twice.challenge = passkey.challenge.clone();
    twice.registration = serde_json::from_value(again.register(&ask)).unwrap();
    assert!(
        matches!(service.identity.add_passkey(&alice, twice).await, Err(Error::WrongState(_))),
        "a challenge counts once"
    );
    assert_eq!(service.identity.passkeys().await.unwrap().len(), 1);
    service.identity.sign_out(&alice).await.unwrap();
    let after = new_passkey(service, &alice, &mut again, |it| allow_adding(service, &alice, (&mut key, it)));
    assert!(service.identity.add_passkey(&alice, after).await.is_err(), "the session ended");
    scene.passes_an_audit().await;
}

/// Signs in as the browser of that name would.
async fn try_in(
    g: &TestGateway,
    (door, challenge): (&str, &str),
    (account, assertion): (&str, &countersign_domain::identity::passkey::Assertion),
) -> bool {
    let attempt = PasskeySignIn { door, challenge, assertion, account, origin: None };
    match g.service.identity.sign_in_with_passkey(&attempt).await {
        Ok(_) => true,
        Err(Error::Unauthenticated) => false,
        other => panic!("{other:?}"),
    }
}

async fn passkey_signs_in_only_its_owner(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let id = g.alice.id.as_str();
    let door = "this browser";
    let challenge = || g.service.identity.passkey_challenge(&ChallengePurpose::SignIn { door }).unwrap();
    let honest = challenge();
    for (what, ask) in [
        (
            "another site",
            AuthenticatorRequest { origin: "https://evil.example".to_owned(), ..get(&g.service, &honest) },
        ),
        ("another challenge", get(&g.service, &challenge())),
        ("a registration", AuthenticatorRequest { kind: "webauthn.create", ..get(&g.service, &honest) }),
        ("a frame", AuthenticatorRequest { more: json!({"crossOrigin": true}), ..get(&g.service, &honest) }),
    ] {
        let signed = assertion(&mut alice.key, &ask);
        assert!(!try_in(g, (door, &honest), (id, &signed)).await, "{what}");
    }
    let careless = assertion(&mut Authenticator { flags: PRESENT, ..alice.key.clone() }, &get(&g.service, &honest));
    assert!(!try_in(g, (door, &honest), (id, &careless)).await, "nobody was made sure of");
    let strange = assertion(&mut Authenticator::new(9), &get(&g.service, &honest));
    assert!(!try_in(g, (door, &honest), (id, &strange)).await, "a passkey that nobody has");
    let signed = assertion(&mut alice.key, &get(&g.service, &honest));
    assert!(!try_in(g, ("another browser", &honest), (id, &signed)).await, "another browser's page");
    assert!(!try_in(g, (door, &honest), (g.bob.id.as_str(), &signed)).await, "another account");
    assert!(!try_in(g, (door, &honest), ("", &signed)).await, "no account");
    let made_up = URL_SAFE_NO_PAD.encode([7; 56]);
    let over_it = assertion(&mut alice.key, &get(&g.service, &made_up));
    assert!(!try_in(g, (door, &made_up), (id, &over_it)).await, "a challenge that is not ours");
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    let signed = assertion(&mut alice.key, &get(&g.service, &honest));
    assert!(!try_in(g, (door, &honest), (id, &signed)).await, "a disabled account");
    g.service.identity.set_admission("alice", SignInAccess::Open).await.unwrap();
    let late = challenge();
    let signed = assertion(&mut alice.key, &get(&g.service, &late));
    g.pass(Duration::from_secs(301));
    assert!(!try_in(g, (door, &late), (id, &signed)).await, "too late");
    assert_eq!(events(g, EventType::SignInFailed).await.len(), 12);
    let (inside, _) = sign_in(&g.service, id, &mut alice.key).await.unwrap();
    assert_eq!(inside.account.record.id, g.alice.id);
    scene.passes_an_audit().await;
}

async fn a_sign_in_that_is_played_again_opens_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let inside = inside(g, &g.alice).await;
    // The counter of this passkey never changes, so it cannot reveal a replay.
    let mut key = Authenticator::synced(1);
    enrol(&g.service, &inside, (&mut key, PASSWORD)).await;
    let challenge = g.service.identity.passkey_challenge(&ChallengePurpose::SignIn { door: "d" }).unwrap();
    let signed = assertion(&mut key, &get(&g.service, &challenge));
    let id = g.alice.id.as_str();
    assert!(try_in(g, ("d", &challenge), (id, &signed)).await);
    assert!(!try_in(g, ("d", &challenge), (id, &signed)).await, "the same once more");
    let again = assertion(&mut key, &get(&g.service, &challenge));
    assert!(!try_in(g, ("d", &challenge), (id, &again)).await, "signed anew, over a challenge that was used");
    scene.passes_an_audit().await;
}

async fn a_counter_that_goes_back_is_refused_and_told(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let mut copy = alice.key.clone();
    let id = g.alice.id.as_str();
    for _ in 0..3 {
        sign_in(&g.service, id, &mut alice.key).await.unwrap();
    }
    assert!(matches!(sign_in(&g.service, id, &mut copy).await, Err(Error::Unauthenticated)));
    let held = held(g).await;
    let yes = held.ballot(VoteVerdict::Approve);
    let outcome = refused(vote(&g.service, &alice.inside, &mut copy, (&held.review, &yes)).await);
    assert_eq!(outcome, VoteRejected::Passkey(AssertionRejected::Counter));
    let told = json!({"passkey": copy.id(), "account": g.alice.id, "why": "counter"});
    assert_eq!(events(g, EventType::PasskeyRefused).await, [told.clone(), told]);
    assert_eq!(
        vote(&g.service, &alice.inside, &mut alice.key, (&held.review, &yes)).await.unwrap(),
        VoteOutcome::Approved
    );
    scene.passes_an_audit().await;
}

async fn a_removed_passkey_opens_nothing_and_the_sessions_it_opened_end(scene: ApiScenario) {
    let g = &scene.gateway;
    let (service, mut alice) = (&g.service, person(g, &g.alice, 1).await);
    let (id, held) = (g.alice.id.as_str(), held(g).await);
    let mut other = Authenticator::new(2);
    let new = new_passkey(service, &alice.inside, &mut other, |it| {
        allow_adding(service, &alice.inside, (&mut alice.key, it))
    });
    service.identity.add_passkey(&alice.inside, new).await.unwrap();
    let (_, by_first) = sign_in(service, id, &mut alice.key).await.unwrap();
    let (_, by_other) = sign_in(service, id, &mut other).await.unwrap();
    let yes = held.ballot(VoteVerdict::Approve);
    let (ask, unsigned) = to_sign(service, &alice.inside, (&held.review, &yes)).await;
    let before = unsigned.by(&mut alice.key, &ask);
    let (first_id, other_id) = (alice.key.id(), other.id());
    let first = first_id.as_str().try_into().unwrap();
    let by_password = PasskeyConfirmation::Password(PASSWORD.to_owned());
    let outcome = service.identity.remove_passkey(&alice.inside, &first, by_password).await;
    assert!(matches!(outcome, Err(Error::Forbidden(_))), "a stolen password does not clear the way for another");
    let for_other = allow_removing(service, &alice.inside, (&mut other, &other_id));
    assert!(
        service.identity.remove_passkey(&alice.inside, &first, for_other).await.is_err(),
        "what was confirmed was another"
    );
    let bob = inside(g, &g.bob).await;
    let his = allow_removing(service, &bob, (&mut other, &first_id));
    assert!(matches!(service.identity.remove_passkey(&bob, &first, his).await, Err(Error::NotFound(_))));
    let yours = allow_removing(service, &alice.inside, (&mut other, &first_id));
    service.identity.remove_passkey(&alice.inside, &first, yours).await.unwrap();
    assert!(service.identity.session_of(&by_first).await.is_err(), "a session that it opened");
    assert!(service.identity.session_of(&by_other).await.is_ok());
    assert!(sign_in(service, id, &mut alice.key).await.is_err());
    let outcome = refused(cast(g, &alice.inside, &held, &yes, Some(&before)).await);
    assert_eq!(outcome, VoteRejected::Passkey(AssertionRejected::NotTheirs), "signed before it was removed");
    let allow = new_passkey(service, &alice.inside, &mut Authenticator::new(3), |it| {
        allow_adding(service, &alice.inside, (&mut alice.key, it))
    });
    assert!(service.identity.add_passkey(&alice.inside, allow).await.is_err());
    let itself = allow_removing(service, &alice.inside, (&mut other, &other_id));
    service.identity.remove_passkey(&alice.inside, &other_id.as_str().try_into().unwrap(), itself).await.unwrap();
    assert_eq!(service.identity.passkeys_of(&g.alice.id).await.unwrap(), []);
    assert_eq!(service.identity.passkeys().await.unwrap().len(), 2, "what they signed can be checked for ever");
    scene.passes_an_audit().await;
}

async fn an_administrator_takes_lost_passkeys_away(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut alice = person(g, &g.alice, 1).await;
    let held = held(g).await;
    let yes = held.ballot(VoteVerdict::Approve);
    vote(&g.service, &alice.inside, &mut alice.key, (&held.review, &yes)).await.unwrap();
    let (_, secret) = sign_in(&g.service, g.alice.id.as_str(), &mut alice.key).await.unwrap();
    let by = PrincipalId::try_from("command-line").unwrap();
    assert_eq!(g.service.identity.remove_passkeys_of(&by, "alice").await.unwrap().1, 1);
    assert!(g.service.identity.session_of(&secret).await.is_err());
    assert!(sign_in(&g.service, g.alice.id.as_str(), &mut alice.key).await.is_err());
    let [told] = events(g, EventType::PasskeyRemoved).await.try_into().unwrap();
    assert_eq!(told["by"], json!("command-line"));
    enrol(&g.service, &alice.inside, (&mut Authenticator::new(4), PASSWORD)).await;
    scene.passes_an_audit().await;
}
