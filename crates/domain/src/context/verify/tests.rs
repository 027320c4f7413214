use serde_json::json;

use super::*;
use crate::chain::hash::{Digest, Tag};
use crate::context::tokenizer::Encoding;
use crate::context::truncate::FittedView;
use crate::context::truncate::ViewRequirements;
use crate::context::{Truncated, TruncationKind, fit};
use crate::json::pointer::Pointer;
use crate::keys::{KeyUse, Keys};
use crate::primitives::time::Timestamp;
use crate::threads::thread::Checkpoint;

fn keys() -> Keys {
    let mut next = 0_u8;
    let mut entropy = move |bytes: &mut [u8]| {
        bytes.iter_mut().for_each(|it| {
            next = next.wrapping_add(7);
            *it = next;
        });
    };
    Keys::generate("urn:test:gateway", Timestamp::from_millis(0), &mut entropy).unwrap()
}

fn thread() -> ThreadId {
    ThreadId::try_from("brief-7").unwrap()
}

fn node() -> NodeId {
    NodeId::try_from("lead").unwrap()
}

fn claims(requires: &[&str], budget: Option<u64>) -> EnvelopeClaims {
    let head = Checkpoint { version: 3, transition: Digest::of(Tag::Transition, &[b"head"]) };
    let at = Timestamp::from_millis(1_000);
    EnvelopeClaims {
        budget,
        requires: requires.iter().map(|it| Pointer::try_from(*it).unwrap()).collect(),
        ..EnvelopeClaims::unsealed("urn:test:gateway", &thread(), &node(), head, at)
    }
}

fn sealed(keys: &Keys) -> Envelope {
    let view = json!({"question": "Who owns the harbour?", "notes": "word ".repeat(100)});
    let claims = claims(&["/question"], Some(60));
    let encoding = claims.encoding;
    let wish = ViewRequirements {
        requires: &claims.requires,
        priority: &[],
        max_tokens: claims.budget,
        encoding,
        receives: None,
    };
    let fitted = fit(&view, &wish).unwrap();
    Envelope::seal(keys.signing(KeyUse::Chain), claims, fitted)
}

fn checked(keys: &Keys, envelope: &Envelope) -> Result<EnvelopeClaims, EnvelopeCode> {
    let (thread, node) = (thread(), node());
    check(
        envelope,
        &ExpectedEnvelope {
            issuer: Some("urn:test:gateway"),
            thread: Some(&thread),
            node: Some(&node),
            version: Some(3),
            ..ExpectedEnvelope::by(keys.trusted())
        },
    )
}

#[test]
fn envelope_is_valid_whatever_the_order_of_its_keys() {
    let keys = keys();
    let envelope = sealed(&keys);
    assert_eq!(
        envelope.truncated,
        [Truncated { pointer: Pointer::try_from("/notes").unwrap(), how: TruncationKind::Cut }]
    );
    let claims = checked(&keys, &envelope).unwrap();
    assert_eq!((claims.tokens, claims.budget), (envelope.tokens, Some(60)));
    let text = json!({
        "transition": envelope.transition, "truncated": envelope.truncated, "signature": envelope.signature,
        "payload": {"question": envelope.payload["question"], "notes": envelope.payload["notes"]},
        "tokens": envelope.tokens, "tokenBudget": 60, "timestamp": envelope.timestamp, "version": 3,
    });
    let again: Envelope = serde_json::from_str(&text.to_string()).unwrap();
    assert_eq!(checked(&keys, &again), Ok(claims));
}

#[test]
fn changed_envelope_is_refused() {
    let keys = keys();
    let envelope = sealed(&keys);
    let other = Digest::of(Tag::Transition, &[b"other"]);
    let changed: [(&str, Envelope); 7] = [
        ("version", Envelope { version: 4, ..envelope.clone() }),
        ("timestamp", Envelope { timestamp: Timestamp::from_millis(2_000), ..envelope.clone() }),
        ("budget", Envelope { token_budget: None, ..envelope.clone() }),
        ("tokens", Envelope { tokens: envelope.tokens - 1, ..envelope.clone() }),
        ("payload", Envelope { payload: json!({"question": "Who sold it?"}), ..envelope.clone() }),
        ("truncated", Envelope { truncated: Vec::new(), ..envelope.clone() }),
        ("transition", Envelope { transition: other, ..envelope.clone() }),
    ];
    for (what, spoiled) in changed {
        assert_eq!(checked(&keys, &spoiled), Err(EnvelopeCode::EnvelopeMismatch), "{what}");
    }
    let (signed, _) = envelope.signature.rsplit_once('.').unwrap();
    let unsigned = Envelope { signature: format!("{signed}.{}", "A".repeat(86)), ..envelope.clone() };
    assert_eq!(checked(&keys, &unsigned), Err(EnvelopeCode::SignatureInvalid));
    let malformed = Envelope { signature: signed.to_owned(), ..envelope };
    assert_eq!(checked(&keys, &malformed), Err(EnvelopeCode::EnvelopeMalformed));
}

#[test]
fn envelope_is_valid_only_for_its_own_thread_and_node() {
    let keys = keys();
    let envelope = sealed(&keys);
    let (thread, node) = (thread(), node());
    let expected = ExpectedEnvelope {
        issuer: Some("urn:test:gateway"),
        thread: Some(&thread),
        node: Some(&node),
        version: Some(3),
        ..ExpectedEnvelope::by(keys.trusted())
    };
    let elsewhere = ThreadId::try_from("brief-8").unwrap();
    let another = NodeId::try_from("press").unwrap();
    for (expected, code) in [
        (ExpectedEnvelope { issuer: Some("urn:other"), ..expected }, EnvelopeCode::IssuerMismatch),
        (ExpectedEnvelope { thread: Some(&elsewhere), ..expected }, EnvelopeCode::ThreadMismatch),
        (ExpectedEnvelope { node: Some(&another), ..expected }, EnvelopeCode::NodeMismatch),
        (ExpectedEnvelope { version: Some(4), ..expected }, EnvelopeCode::Stale),
    ] {
        assert_eq!(check(&envelope, &expected), Err(code));
    }
    // A token of another type is refused, and so is one by a key that may not sign.
    let disguised = jws::sign(keys.signing(KeyUse::Chain), TokenType::Receipt, &claims(&[], None));
    let disguised = Envelope { signature: disguised, ..envelope.clone() };
    assert_eq!(check(&disguised, &expected), Err(EnvelopeCode::EnvelopeMalformed));
    let strangers = {
        let mut next = 3_u8;
        let mut entropy = move |bytes: &mut [u8]| {
            bytes.iter_mut().for_each(|it| {
                next = next.wrapping_mul(5).wrapping_add(1);
                *it = next;
            });
        };
        Keys::generate("urn:test:gateway", Timestamp::from_millis(0), &mut entropy).unwrap()
    };
    let expected = ExpectedEnvelope { keys: strangers.trusted(), ..expected };
    assert_eq!(check(&envelope, &expected), Err(EnvelopeCode::UnknownKey));
}

#[test]
fn signed_token_count_is_counted_again() {
    let keys = keys();
    let key = keys.signing(KeyUse::Chain);
    let payload = json!({"question": "Who owns the harbour?"});
    let tokens = Encoding::default().count(&canonical(&payload));
    let fitted = |tokens| FittedView { payload: payload.clone(), tokens, truncated: Vec::new() };
    let of = |claims, tokens| checked(&keys, &Envelope::seal(key, claims, fitted(tokens)));
    assert!(of(claims(&["/question"], Some(tokens)), tokens).is_ok());
    assert_eq!(of(claims(&["/answer"], Some(tokens)), tokens), Err(EnvelopeCode::RequiredMissing));
    assert_eq!(of(claims(&[], Some(tokens)), tokens - 1), Err(EnvelopeCode::TokensMismatch));
    assert_eq!(of(claims(&[], Some(tokens - 1)), tokens), Err(EnvelopeCode::OverBudget));
}

#[test]
fn signed_payload_is_checked_against_the_input_schema() {
    let keys = keys();
    let envelope = sealed(&keys);
    let read = |text: &str| InputSchema::read("brief", text).unwrap();
    let brief = read(r#"{"properties": {"question": {"type": "string"}, "notes": {}}, "required": ["question"]}"#);
    let report = read(r#"{"properties": {"question": {}, "notes": {}, "report": {}}, "required": ["report"]}"#);
    let expected = ExpectedEnvelope { receives: Some(&brief), ..ExpectedEnvelope::by(keys.trusted()) };
    assert!(check(&envelope, &expected).is_ok());
    let expected = ExpectedEnvelope { receives: Some(&report), ..expected };
    assert_eq!(check(&envelope, &expected), Err(EnvelopeCode::SchemaMismatch));
}
