//! People of the tests with passkeys: registering one, and voting with it.

#[path = "authenticator.rs"]
pub mod authenticator;

use authenticator::{Ask, Authenticator};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::domain::identity::passkey::{Assertion, Passkey};
use countersign::domain::primitives::id::ReviewId;
use countersign::domain::reviews::Ballot;
use countersign::service::Service;
use countersign::service::error::Result;
use countersign::service::identity::delegations::Naming;
use countersign::service::identity::passkeys::{Confirmation, NewPasskey, PasskeySignIn, Purpose, Signature};
use countersign::service::identity::session::SignedIn;
use countersign::service::reviews::vote::Voted;

/// As a browser at the gateway would ask.
pub fn get(service: &Service, challenge: &str) -> Ask {
    Ask::get(service.public_url(), challenge)
}

pub fn assertion(authenticator: &mut Authenticator, ask: &Ask) -> Assertion {
    serde_json::from_value(authenticator.sign(ask)).unwrap()
}

/// A request to register that authenticator's key, confirmed so.
pub fn new_passkey(
    service: &Service,
    person: &SignedIn,
    authenticator: &mut Authenticator,
    confirmation: impl FnOnce(&str) -> Confirmation,
) -> NewPasskey {
    let session = person.session.record.id.as_str();
    let challenge = service.passkey_challenge(&Purpose::Add { session }).unwrap();
    let ask = Ask { kind: "webauthn.create", ..get(service, &challenge) };
    let registration = serde_json::from_value(authenticator.register(&ask)).unwrap();
    NewPasskey { name: "blue key".to_owned(), confirmation: confirmation(&challenge), challenge, registration }
}

/// The first one of a person who signed in.
pub async fn enrol(
    service: &Service,
    person: &SignedIn,
    (authenticator, password): (&mut Authenticator, &str),
) -> Passkey {
    let new = new_passkey(service, person, authenticator, |_| Confirmation::Password(password.to_owned()));
    service.add_passkey(person, new).await.unwrap()
}

/// What one that is there says to another being registered with that challenge.
pub fn allow_adding(
    service: &Service,
    person: &SignedIn,
    (authenticator, registration): (&mut Authenticator, &str),
) -> Confirmation {
    let session = person.session.record.id.as_str();
    let challenge = service.passkey_challenge(&Purpose::AllowAdding { session, registration }).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    Confirmation::Passkey { challenge, assertion }
}

/// What one says to one being removed.
pub fn allow_removing(
    service: &Service,
    person: &SignedIn,
    (authenticator, passkey): (&mut Authenticator, &str),
) -> Confirmation {
    let session = person.session.record.id.as_str();
    let challenge = service.passkey_challenge(&Purpose::AllowRemoving { session, passkey }).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    Confirmation::Passkey { challenge, assertion }
}

/// What one says to somebody else voting in its person's place.
pub async fn allow_delegating(
    service: &Service,
    person: &SignedIn,
    (authenticator, to): (&mut Authenticator, &Naming),
) -> Confirmation {
    let offer = service.offer(&person.account.record, to).await.unwrap();
    let session = person.session.record.id.as_str();
    let purpose = Purpose::AllowDelegating { session, terms: &offer.terms };
    let challenge = service.passkey_challenge(&purpose).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    Confirmation::Passkey { challenge, assertion }
}

/// Signs in by it.
pub async fn sign_in(
    service: &Service,
    account: &str,
    authenticator: &mut Authenticator,
) -> Result<(SignedIn, String)> {
    let challenge = service.passkey_challenge(&Purpose::SignIn { door: "a browser" }).unwrap();
    let assertion = assertion(authenticator, &get(service, &challenge));
    let attempt =
        PasskeySignIn { door: "a browser", challenge: &challenge, assertion: &assertion, account, origin: None };
    service.sign_in_with_passkey(&attempt).await
}

/// What the page would have signed of that ballot.
pub async fn to_sign(service: &Service, person: &SignedIn, (review, ballot): (&ReviewId, &Ballot)) -> (Ask, Unsigned) {
    let account = &person.account.record;
    let hold = service.review(review, account).await.unwrap().hold;
    let (challenge, expires_at) = service.vote_challenge(&hold, &account.id, ballot).unwrap();
    (get(service, &URL_SAFE_NO_PAD.encode(challenge.bytes())), Unsigned { expires_at })
}

/// A signature before it is one.
#[derive(Clone, Copy)]
pub struct Unsigned {
    pub expires_at: countersign::domain::primitives::time::Timestamp,
}

impl Unsigned {
    pub fn by(self, authenticator: &mut Authenticator, ask: &Ask) -> Signature {
        Signature { expires_at: self.expires_at, assertion: assertion(authenticator, ask) }
    }
}

/// Votes with its signature.
pub async fn vote(
    service: &Service,
    person: &SignedIn,
    authenticator: &mut Authenticator,
    (review, ballot): (&ReviewId, &Ballot),
) -> Result<Voted> {
    let (ask, unsigned) = to_sign(service, person, (review, ballot)).await;
    let signature = unsigned.by(authenticator, &ask);
    service.vote_signed(&person.account.record.id, review, ballot, Some(&signature)).await
}
