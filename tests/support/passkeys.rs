//! People of the tests with passkeys: registering a passkey, and voting with it.

#[path = "authenticator.rs"]
pub mod authenticator;

use countersign_domain::identity::passkey::{Assertion, Passkey};
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::Ballot;

use countersign_service::Service;
use countersign_service::error::Result;
use countersign_service::identity::delegations::NewDelegation;
use countersign_service::identity::passkeys::{
    ChallengePurpose, NewPasskey, PasskeyConfirmation, PasskeySignIn, VoteSignature,
};
use countersign_service::identity::session::SignedIn;
use countersign_service::reviews::vote::VoteOutcome;

use authenticator::{Authenticator, AuthenticatorRequest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// As a browser at the gateway would ask.
pub fn get(service: &Service, challenge: &str) -> AuthenticatorRequest {
    AuthenticatorRequest::get(service.core.public_url(), challenge)
}

pub fn assertion(authenticator: &mut Authenticator, ask: &AuthenticatorRequest) -> Assertion {
    serde_json::from_value(authenticator.sign(ask)).unwrap()
}

/// A request to register that authenticator's key, confirmed so.
pub fn new_passkey(
    service: &Service,
    person: &SignedIn,
    authenticator: &mut Authenticator,
    confirmation: impl FnOnce(&str) -> PasskeyConfirmation,
) -> NewPasskey {
    let session = person.session.record.id.as_str();
    let challenge = service.identity.passkey_challenge(&ChallengePurpose::Add { session }).unwrap();
    let ask = AuthenticatorRequest { kind: "webauthn.create", ..get(service, &challenge) };
    let registration = serde_json::from_value(authenticator.register(&ask)).unwrap();
    NewPasskey { name: "blue key".to_owned(), confirmation: confirmation(&challenge), challenge, registration }
}

/// The first one of a person who signed in.
pub async fn enrol(
    service: &Service,
    person: &SignedIn,
    (authenticator, password): (&mut Authenticator, &str),
) -> Passkey {
    let new = new_passkey(service, person, authenticator, |_| PasskeyConfirmation::Password(password.to_owned()));
    service.identity.add_passkey(person, new).await.unwrap()
}

/// Confirms the registration of another passkey with that challenge, by an existing passkey.
pub fn allow_adding(
    service: &Service,
    person: &SignedIn,
    (authenticator, registration): (&mut Authenticator, &str),
) -> PasskeyConfirmation {
    let session = person.session.record.id.as_str();
    let challenge =
        service.identity.passkey_challenge(&ChallengePurpose::AllowAdding { session, registration }).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    PasskeyConfirmation::Passkey { challenge, assertion }
}

/// Confirms the removal of a passkey with another one.
pub fn allow_removing(
    service: &Service,
    person: &SignedIn,
    (authenticator, passkey): (&mut Authenticator, &str),
) -> PasskeyConfirmation {
    let session = person.session.record.id.as_str();
    let challenge = service.identity.passkey_challenge(&ChallengePurpose::AllowRemoving { session, passkey }).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    PasskeyConfirmation::Passkey { challenge, assertion }
}

/// Confirms a delegation to another person with a passkey.
pub async fn allow_delegating(
    service: &Service,
    person: &SignedIn,
    (authenticator, to): (&mut Authenticator, &NewDelegation),
) -> PasskeyConfirmation {
    let offer = service.identity.offer(&person.account.record, to).await.unwrap();
    let session = person.session.record.id.as_str();
    let purpose = ChallengePurpose::AllowDelegating { session, terms: &offer.terms };
    let challenge = service.identity.passkey_challenge(&purpose).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    PasskeyConfirmation::Passkey { challenge, assertion }
}

pub async fn sign_in(
    service: &Service,
    account: &str,
    authenticator: &mut Authenticator,
) -> Result<(SignedIn, String)> {
    let challenge = service.identity.passkey_challenge(&ChallengePurpose::SignIn { door: "a browser" }).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    let attempt =
        PasskeySignIn { door: "a browser", challenge: &challenge, assertion: &assertion, account, origin: None };
    service.identity.sign_in_with_passkey(&attempt).await
}

/// Returns the request that the page would give to the authenticator for that ballot, and the unsigned vote.
pub async fn to_sign(
    service: &Service,
    person: &SignedIn,
    (review, ballot): (&ReviewId, &Ballot),
) -> (AuthenticatorRequest, UnsignedVote) {
    let account = &person.account.record;
    let hold = service.reviews.review(review, account).await.unwrap().hold;
    let (challenge, expires_at) = service.identity.vote_challenge(&hold, &account.id, ballot).unwrap();
    (get(service, &URL_SAFE_NO_PAD.encode(challenge.bytes())), UnsignedVote { expires_at })
}

/// A signature before it is one.
#[derive(Clone, Copy)]
pub struct UnsignedVote {
    pub expires_at: countersign_domain::primitives::time::Timestamp,
}

impl UnsignedVote {
    pub fn by(self, authenticator: &mut Authenticator, ask: &AuthenticatorRequest) -> VoteSignature {
        VoteSignature { expires_at: self.expires_at, assertion: assertion(authenticator, ask) }
    }
}

/// Votes with its signature.
pub async fn vote(
    service: &Service,
    person: &SignedIn,
    authenticator: &mut Authenticator,
    (review, ballot): (&ReviewId, &Ballot),
) -> Result<VoteOutcome> {
    let (ask, unsigned) = to_sign(service, person, (review, ballot)).await;
    let signature = unsigned.by(authenticator, &ask);
    service.reviews.vote(&person.account.record.id, review, ballot, Some(&signature)).await
}
