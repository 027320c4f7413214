//! Registrations and assertions by a test authenticator, and their rejections.

#[path = "../../../../../tests/support/authenticator.rs"]
mod authenticator;

use authenticator::{Authenticator, AuthenticatorRequest, PRESENT, VERIFIED};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;

const ORIGIN: &str = "https://gate.example";

fn challenge(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

fn create(origin: &str) -> AuthenticatorRequest {
    AuthenticatorRequest { kind: "webauthn.create", ..AuthenticatorRequest::get(origin, &challenge("register")) }
}

fn party() -> RelyingParty {
    RelyingParty::at(ORIGIN).unwrap()
}

fn registered(given: Value) -> Result<VerifiedRegistration, AssertionRejected> {
    serde_json::from_value::<Registration>(given).unwrap().check(&party(), b"register")
}

fn enrolled(authenticator: &mut Authenticator) -> Passkey {
    let made = registered(authenticator.register(&create(ORIGIN))).unwrap();
    assert_eq!(made.id.as_str(), authenticator.id());
    Passkey {
        id: made.id,
        account: "ada".try_into().unwrap(),
        name: "key".to_owned(),
        public_key: made.public_key,
        origin: ORIGIN.to_owned(),
        backup_eligible: made.backup_eligible,
        counter: made.counter,
        challenge: challenge("register"),
        added_at: Timestamp::from_millis(1000),
        used_at: None,
        removed_at: None,
    }
}

fn checked(assertion: Value, passkey: &Passkey) -> Result<u32, AssertionRejected> {
    serde_json::from_value::<Assertion>(assertion).unwrap().check(passkey, b"sign this")
}

fn ask() -> AuthenticatorRequest {
    AuthenticatorRequest::get(ORIGIN, &challenge("sign this"))
}

#[test]
fn enrolled_passkey_signs_and_its_key_is_a_json_web_key() {
    let mut authenticator = Authenticator::new(7);
    let passkey = enrolled(&mut authenticator);
    assert_eq!(checked(authenticator.sign(&ask()), &passkey), Ok(2));
    let kept = serde_json::to_value(&passkey).unwrap();
    assert_eq!((&kept["public_key"]["kty"], &kept["public_key"]["crv"]), (&json!("EC"), &json!("P-256")));
    let again: Passkey = serde_json::from_value(kept).unwrap();
    assert_eq!(checked(authenticator.sign(&ask()), &again), Ok(3));
}

#[test]
fn assertion_with_any_wrong_part_is_refused() {
    let mut authenticator = Authenticator::new(7);
    let passkey = enrolled(&mut authenticator);
    let framed = json!({"crossOrigin": true});
    let below = json!({"crossOrigin": false, "topOrigin": "https://evil.example"});
    let elsewhere = "https://gate.example.evil.example".to_owned();
    let cases = [
        ("another origin", AuthenticatorRequest { origin: elsewhere, ..ask() }, AssertionRejected::Origin),
        (
            "a subdomain",
            AuthenticatorRequest { origin: "https://a.gate.example".to_owned(), ..ask() },
            AssertionRejected::Origin,
        ),
        (
            "another port",
            AuthenticatorRequest { origin: "https://gate.example:444".to_owned(), ..ask() },
            AssertionRejected::Origin,
        ),
        (
            "no https",
            AuthenticatorRequest { origin: "http://gate.example".to_owned(), ..ask() },
            AssertionRejected::Origin,
        ),
        (
            "another host's key",
            AuthenticatorRequest { rp_id: "evil.example".to_owned(), ..ask() },
            AssertionRejected::Origin,
        ),
        ("another page's frame", AuthenticatorRequest { more: framed, ..ask() }, AssertionRejected::Origin),
        ("a page above", AuthenticatorRequest { more: below, ..ask() }, AssertionRejected::Origin),
        (
            "another challenge",
            AuthenticatorRequest { challenge: challenge("sign that"), ..ask() },
            AssertionRejected::Challenge,
        ),
        (
            "a longer challenge",
            AuthenticatorRequest { challenge: challenge("sign this!"), ..ask() },
            AssertionRejected::Challenge,
        ),
        ("a registration", AuthenticatorRequest { kind: "webauthn.create", ..ask() }, AssertionRejected::Purpose),
        ("a payment", AuthenticatorRequest { kind: "payment.get", ..ask() }, AssertionRejected::Purpose),
    ];
    for (what, ask, why) in cases {
        assert_eq!(checked(authenticator.sign(&ask), &passkey), Err(why), "{what}");
    }
    for flags in [PRESENT, VERIFIED, 0] {
        let careless = Authenticator { flags, ..authenticator.clone() }.sign(&ask());
        assert_eq!(checked(careless, &passkey), Err(AssertionRejected::Unverified), "{flags}");
    }
    let mut other = Authenticator::new(8);
    let theirs = other.sign(&ask());
    assert_eq!(checked(theirs.clone(), &passkey), Err(AssertionRejected::NotTheirs));
    let mut renamed = theirs;
    renamed["passkey"] = json!(authenticator.id());
    assert_eq!(checked(renamed, &passkey), Err(AssertionRejected::Signature));
    let mut altered = authenticator.sign(&ask());
    altered["authenticator_data"] =
        Authenticator { counter: 99, ..authenticator.clone() }.sign(&ask())["authenticator_data"].clone();
    assert_eq!(checked(altered, &passkey), Err(AssertionRejected::Signature));
}

#[test]
fn counter_must_increase_unless_it_is_always_zero() {
    let mut authenticator = Authenticator::new(7);
    let passkey = enrolled(&mut authenticator).used(5, Timestamp::from_millis(2000));
    for (counter, outcome) in
        [(4, Err(AssertionRejected::Counter)), (5, Ok(6)), (3, Err(AssertionRejected::Counter)), (9, Ok(10))]
    {
        let signed = Authenticator { counter, ..authenticator.clone() }.sign(&ask());
        assert_eq!(checked(signed, &passkey), outcome, "{counter}");
    }
    let mut synced = Authenticator::synced(9);
    let passkey = enrolled(&mut synced);
    assert!(passkey.backup_eligible && passkey.counter == 0);
    for _ in 0..3 {
        assert_eq!(checked(synced.sign(&ask()), &passkey), Ok(0));
    }
    let counted = passkey.used(3, Timestamp::from_millis(2000));
    assert_eq!(checked(synced.sign(&ask()), &counted), Err(AssertionRejected::Counter), "back to nothing is back");
}

#[test]
fn last_use_never_goes_back() {
    let [early, late] = [2000, 3000].map(Timestamp::from_millis);
    let passkey = enrolled(&mut Authenticator::new(7));
    assert_eq!(passkey.used(1, late).used(2, early).used_at, Some(late));
    assert_eq!(passkey.used(1, early).used(2, late).used_at, Some(late));
}

#[test]
fn registration_with_any_wrong_part_is_refused() {
    let mut authenticator = Authenticator::new(7);
    let cases = [
        ("another origin", create("https://evil.example"), AssertionRejected::Origin),
        (
            "another challenge",
            AuthenticatorRequest { challenge: challenge("other"), ..create(ORIGIN) },
            AssertionRejected::Challenge,
        ),
        ("a signature", AuthenticatorRequest { kind: "webauthn.get", ..create(ORIGIN) }, AssertionRejected::Purpose),
        (
            "another page's frame",
            AuthenticatorRequest { more: json!({"crossOrigin": true}), ..create(ORIGIN) },
            AssertionRejected::Origin,
        ),
    ];
    for (what, ask, why) in cases {
        assert_eq!(registered(authenticator.register(&ask)), Err(why), "{what}");
    }
    authenticator.flags = PRESENT;
    assert_eq!(registered(authenticator.register(&create(ORIGIN))), Err(AssertionRejected::Unverified));
    let nothing = json!({"attestation": "AAAA", "client_data": "AAAA"});
    assert_eq!(registered(nothing), Err(AssertionRejected::Unreadable));
}

#[test]
fn passkeys_are_allowed_for_https_names_and_localhost() {
    for (url, id) in [("https://gate.example:8443", "gate.example"), ("http://localhost:8480", "localhost")] {
        let party = RelyingParty::at(url).unwrap();
        assert_eq!((party.id(), party.origin().as_str()), (id, url));
    }
    for url in ["http://127.0.0.1:8480", "https://[::1]", "https://10.0.0.1", "http://gate.example", "nothing"] {
        assert_eq!(RelyingParty::at(url), None, "{url}");
    }
}

#[test]
fn removed_passkey_stays_removed_when_a_clock_goes_back() {
    let at = |secs: i64| Timestamp::from_millis(secs * 1000);
    let passkey = Passkey { added_at: at(10), ..enrolled(&mut Authenticator::new(7)) };
    assert_eq!([9, 10, 14].map(|it| passkey.counts_at(at(it))), [false, true, true]);
    let removed = Passkey { removed_at: Some(at(15)), ..passkey };
    assert_eq!([14, 15].map(|it| removed.counts_at(at(it))), [false, false]);
    assert_eq!(
        [9, 14, 15].map(|it| removed.counted_at(at(it))),
        [false, true, false],
        "what was then is another question"
    );
}
