//! A real receipt is genuine. Each damaged one is refused by the intended check.

use serde_json::{Value, json};

use super::*;
use crate::keys::Keys;

const TOKENS: &str = include_str!("../../../../../tests/vectors/tokens.json");

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_225_000_000)
}

fn keys() -> Keys {
    Keys::generate("https://a.example", now(), &mut crate::test_random::fill).unwrap()
}

fn statement() -> Statement {
    let hash = |text: &str| Digest::of(crate::chain::hash::Tag::Object, &[text.as_bytes()]);
    serde_json::from_value(json!({
        "type": "propose", "flow": "payments", "policy": hash("policy"), "thread": "t-1", "version": 2,
        "parent": hash("parent"), "node": "planner", "principal": "p-1", "proposal": "q-1", "attempt": 1,
        "from": hash("from"), "to": hash("to"), "tool": null, "usage": null, "rationale": null, "supersedes": null,
        "restores": null, "write_id": null, "proposed_at": "2026-11-21T01:36:40.123Z",
    }))
    .unwrap()
}

fn receipt_of(statement: &Statement) -> Value {
    json!({
        "iss": "https://a.example", "sub": statement.thread, "aud": ["database_writer"], "jti": "AAECAwQFBgcICQoLDA0ODw",
        "iat": now().seconds(), "nbf": now().seconds(), "exp": now().seconds() + 600, "flow": statement.flow,
        "policy": statement.policy, "transition": statement.digest(), "parent": statement.parent,
        "version": statement.version, "to": statement.to,
        "approvals": [{"reviewer": "ada", "stage": 0, "at": "2026-11-21T01:36:40.123Z", "method": "password"}],
    })
}

fn entry_of(statement: &Statement) -> Value {
    json!({
        "iss": "https://a.example", "thread": statement.thread, "version": statement.version,
        "transition": statement.digest(), "parent": statement.parent,
        "gate": {"kind": "approved", "review": "r-1", "receipt": "AAECAwQFBgcICQoLDA0ODw"}, "owes": true,
        "policy": statement.policy, "committed_at": "2026-11-21T01:36:40.123Z",
    })
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

/// Returns the first failed check and its code.
fn refusal(checks: &[ReceiptCheck]) -> Option<(CheckName, DenialCode)> {
    checks.iter().find_map(|it| match it.outcome {
        CheckOutcome::Failed { code, .. } => Some((it.name, code)),
        _ => None,
    })
}

struct ReceiptTestCase {
    keys: Keys,
    statement: Statement,
    receipt: String,
    entry: String,
}

impl ReceiptTestCase {
    fn genuine() -> Self {
        Self::of(|_, receipt| receipt, |_, entry| entry)
    }

    fn of(receipt: impl Fn(&Statement, Value) -> Value, entry: impl Fn(&Statement, Value) -> Value) -> Self {
        let (keys, statement) = (keys(), statement());
        let signing = keys.signing(KeyUse::Chain);
        let receipt = jws::sign(signing, TokenType::Receipt, &receipt(&statement, receipt_of(&statement)));
        let entry = jws::sign(signing, TokenType::Entry, &entry(&statement, entry_of(&statement)));
        Self { keys, statement, receipt, entry }
    }

    fn checks(&self, now: Timestamp) -> Vec<ReceiptCheck> {
        let (entry, statement) = (Some(self.entry.as_str()), Some(&self.statement));
        check(
            &ReceiptEvidence {
                receipt: &self.receipt,
                keys: self.keys.trusted(),
                entry,
                statement,
                opening: None,
                votes: &[],
                passkeys: None,
            },
            now,
        )
    }
}

#[test]
fn a_genuine_receipt_passes_every_check_that_its_evidence_allows() {
    let checks = ReceiptTestCase::genuine().checks(now());
    assert_eq!(conclusion(&checks), Conclusion::Genuine, "{checks:?}");
    let unchecked: Vec<_> = checks.iter().filter(|it| it.outcome != CheckOutcome::Passed).map(|it| it.name).collect();
    assert_eq!(unchecked, [CheckName::Opening, CheckName::Approvals], "and the only ones without evidence say so");
}

#[test]
fn each_spoiled_claim_is_refused_by_its_own_check() {
    let other = json!(Digest::of(crate::chain::hash::Tag::Object, &[b"other"]));
    type ReceiptTamper = (&'static str, Value, CheckName, DenialCode);
    let of_receipt: Vec<ReceiptTamper> = vec![
        ("iss", json!("https://b.example"), CheckName::Issuer, DenialCode::IssuerMismatch),
        ("nbf", json!(now().seconds() + 1), CheckName::Time, DenialCode::NotYetValid),
        ("exp", json!(now().seconds()), CheckName::Time, DenialCode::Expired),
        ("sub", json!("t-2"), CheckName::Thread, DenialCode::ThreadMismatch),
        ("flow", json!("refunds"), CheckName::Thread, DenialCode::ThreadMismatch),
        ("policy", other.clone(), CheckName::Policy, DenialCode::PolicyMismatch),
        ("version", json!(3), CheckName::Version, DenialCode::VersionMismatch),
        ("transition", other.clone(), CheckName::Statement, DenialCode::DigestMismatch),
        ("parent", other.clone(), CheckName::Binding, DenialCode::DigestMismatch),
        ("to", other.clone(), CheckName::Binding, DenialCode::DigestMismatch),
        ("jti", json!("EAECAwQFBgcICQoLDA0ODw"), CheckName::Binding, DenialCode::DigestMismatch),
        ("scope", json!("all"), CheckName::Form, DenialCode::ReceiptMalformed),
        ("version", json!(-2), CheckName::Form, DenialCode::ReceiptMalformed),
        ("exp", json!(now().seconds() - 1), CheckName::Form, DenialCode::ReceiptMalformed),
        ("iss", json!(""), CheckName::Form, DenialCode::ReceiptMalformed),
    ];
    for (claim, value, name, code) in of_receipt {
        let case = ReceiptTestCase::of(|_, it| with(it, claim, value.clone()), |_, it| it);
        assert_eq!(refusal(&case.checks(now())), Some((name, code)), "receipt: {claim} = {value}");
    }
    let of_entry: Vec<ReceiptTamper> = vec![
        ("iss", json!("https://b.example"), CheckName::Entry, DenialCode::IssuerMismatch),
        ("thread", json!("t-2"), CheckName::Link, DenialCode::ChainBroken),
        ("version", json!(3), CheckName::Link, DenialCode::ChainBroken),
        ("transition", other.clone(), CheckName::Link, DenialCode::ChainBroken),
        ("parent", other.clone(), CheckName::Link, DenialCode::ChainBroken),
        ("policy", other, CheckName::Link, DenialCode::ChainBroken),
        ("gate", json!({"kind": "auto"}), CheckName::Binding, DenialCode::DigestMismatch),
        ("owes", json!("yes"), CheckName::Entry, DenialCode::ChainBroken),
    ];
    for (claim, value, name, code) in of_entry {
        let case = ReceiptTestCase::of(|_, it| it, |_, it| with(it, claim, value.clone()));
        assert_eq!(refusal(&case.checks(now())), Some((name, code)), "entry: {claim} = {value}");
    }
}

#[test]
fn an_entry_alone_still_binds_a_receipt() {
    for (claim, value, name) in [
        ("thread", json!("t-2"), CheckName::Thread),
        ("version", json!(3), CheckName::Version),
        ("gate", json!({"kind": "auto"}), CheckName::Binding),
    ] {
        let case = ReceiptTestCase::of(|_, it| it, |_, it| with(it, claim, value.clone()));
        let evidence = ReceiptEvidence {
            receipt: &case.receipt,
            keys: case.keys.trusted(),
            entry: Some(&case.entry),
            statement: None,
            opening: None,
            votes: &[],
            passkeys: None,
        };
        assert_eq!(refusal(&check(&evidence, now())).map(|it| it.0), Some(name), "{claim}");
    }
}

/// Builds a statement from and to trees of one leaf, and their opening.
fn opened() -> (Statement, Value) {
    let leaf = |value: &str, salt: &str| json!({"object": {"to": {"value": value, "salt": salt.repeat(43)}}});
    let opening = json!({"from": leaf("Eva", "A"), "to": leaf("Mallory", "E")});
    let read: Opening = serde_json::from_value(opening.clone()).unwrap();
    let statement = Statement { from: read.from.root().unwrap(), to: read.to.root().unwrap(), ..statement() };
    (statement, opening)
}

#[test]
fn an_opening_of_other_trees_is_refused() {
    let (statement, opening) = opened();
    let keys = keys();
    let signing = keys.signing(KeyUse::Chain);
    let receipt = jws::sign(signing, TokenType::Receipt, &receipt_of(&statement));
    let entry = jws::sign(signing, TokenType::Entry, &entry_of(&statement));
    let checked = |opening: &Value| {
        let opening: Opening = serde_json::from_value(opening.clone()).unwrap();
        let evidence = ReceiptEvidence {
            receipt: &receipt,
            keys: keys.trusted(),
            entry: Some(&entry),
            statement: Some(&statement),
            opening: Some(&opening),
            votes: &[],
            passkeys: None,
        };
        check(&evidence, now())
    };
    let genuine = checked(&opening);
    let (approvals, others) = genuine.split_last().unwrap();
    assert!(others.iter().all(|it| it.outcome == CheckOutcome::Passed), "all thirteen: {genuine:?}");
    assert!(matches!(approvals.outcome, CheckOutcome::NotChecked { .. }), "nobody used a passkey");
    assert_eq!((genuine.len(), conclusion(&genuine)), (14, Conclusion::Genuine));
    let salt = format!("B{}", "A".repeat(42));
    for (place, other) in [
        ("/to/object/to/value", json!("Eva")),
        ("/from/object/to/value", json!("Mallory")),
        ("/to/object/to/salt", json!(salt)),
        ("/from/object/to/salt", json!(salt)),
        ("/to/object", json!({"too": opening["to"]["object"]["to"]})),
        ("/to/object/to", json!(statement.to)),
        ("/from", json!(statement.to)),
        ("/to", json!(statement.from)),
        ("/to/object/to/value", json!({"not": "a leaf"})),
    ] {
        let mut spoiled = opening.clone();
        *spoiled.pointer_mut(place).unwrap() = other.clone();
        let refused = Some((CheckName::Opening, DenialCode::DigestMismatch));
        assert_eq!(refusal(&checked(&spoiled)), refused, "{place}: {other}");
    }
}

#[test]
fn key_state_decides_the_value_of_a_signature() {
    let mut random = crate::test_random::fill;
    let case = ReceiptTestCase::genuine();
    let kid = case.keys.signing(KeyUse::Chain).kid().to_owned();
    let rotated = ReceiptTestCase { keys: case.keys.rotate(KeyUse::Chain, now(), &mut random).unwrap(), ..case };
    let checks = rotated.checks(now());
    assert_eq!(conclusion(&checks), Conclusion::CouldNotTell, "a retired key's receipt may be genuine: {checks:?}");
    assert_eq!(
        refusal(&rotated.checks(Timestamp::from_millis(now().millis() + 601_000))).unwrap().1,
        DenialCode::Expired
    );
    let empty = ReceiptTestCase::of(|_, it| with(it, "approvals", json!([])), |_, it| it);
    let empty = ReceiptTestCase { keys: empty.keys.rotate(KeyUse::Chain, now(), &mut random).unwrap(), ..empty };
    assert_eq!(refusal(&empty.checks(now())), Some((CheckName::Form, DenialCode::ReceiptMalformed)));
    let (head, signature) = rotated.receipt.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}{}", if signature.starts_with('A') { "B" } else { "A" }, &signature[1..]);
    let forged = ReceiptTestCase { receipt: forged, ..rotated };
    assert_eq!(refusal(&forged.checks(now())), Some((CheckName::Signature, DenialCode::SignatureInvalid)));
    let ReceiptTestCase { keys, statement, entry, .. } = forged;
    let revoked =
        ReceiptTestCase { keys: keys.revoke(&kid, now(), &mut random).unwrap(), ..ReceiptTestCase::genuine() };
    let signing = jws::sign(revoked.keys.signing(KeyUse::Chain), TokenType::Receipt, &receipt_of(&statement));
    let revoked = ReceiptTestCase { receipt: signing, entry, statement, ..revoked };
    assert_eq!(refusal(&revoked.checks(now())), Some((CheckName::Entry, DenialCode::ChainBroken)));
    let stranger = ReceiptTestCase { keys: self::keys(), ..ReceiptTestCase::genuine() };
    assert_eq!(refusal(&stranger.checks(now())), Some((CheckName::Key, DenialCode::UnknownKey)));
}

/// Reads a JWKS of the vectors, and adds the purpose that the vectors leave out.
fn vector_keys(jwks: &Value) -> Result<PublicKeys, crate::keys::KeysError> {
    let mut jwks = jwks.clone();
    for key in jwks["keys"].as_array_mut().unwrap() {
        key["countersign_use"] = json!("chain");
    }
    PublicKeys::from_jwks(&jwks)
}

fn at_the_vectors_time() -> Timestamp {
    serde_json::from_value(json!("2026-11-02T09:05:00.000Z")).unwrap()
}

#[test]
fn the_published_receipts_are_genuine() {
    let vectors: Value = serde_json::from_str(TOKENS).unwrap();
    let keys = vector_keys(&vectors["jwks"]).unwrap();
    let receipts = vectors["genuine"].as_array().unwrap().iter().filter(|it| it["typ"] == TokenType::Receipt.as_str());
    for case in receipts {
        let receipt = case["token"].as_str().unwrap();
        let evidence = ReceiptEvidence {
            receipt,
            keys: &keys,
            entry: None,
            statement: None,
            opening: None,
            votes: &[],
            passkeys: None,
        };
        let checks = check(&evidence, at_the_vectors_time());
        assert_eq!(conclusion(&checks), Conclusion::Genuine, "{}: {checks:?}", case["name"]);
    }
    for case in vectors["could_not_tell"].as_array().unwrap() {
        let receipt = case["token"].as_str().unwrap();
        let evidence = ReceiptEvidence {
            receipt,
            keys: &keys,
            entry: None,
            statement: None,
            opening: None,
            votes: &[],
            passkeys: None,
        };
        assert_eq!(conclusion(&check(&evidence, at_the_vectors_time())), Conclusion::CouldNotTell, "{}", case["name"]);
    }
}

#[test]
fn every_refused_token_of_the_vectors_is_refused_with_its_code() {
    let vectors: Value = serde_json::from_str(TOKENS).unwrap();
    let mut tried = 0;
    for case in vectors["refused"].as_array().unwrap() {
        let (name, token) = (case["name"].as_str().unwrap(), case["token"].as_str().unwrap());
        let keys = case.get("jwks").unwrap_or(&vectors["jwks"]);
        let Ok(keys) = vector_keys(keys) else {
            // Stricter: a key of small order refuses the whole set before any token is read.
            assert!(name.starts_with("a key of small order"), "{name}");
            tried += 1;
            continue;
        };
        if case["accept_as"] == TokenType::Receipt.as_str() {
            let evidence = ReceiptEvidence {
                receipt: token,
                keys: &keys,
                entry: None,
                statement: None,
                opening: None,
                votes: &[],
                passkeys: None,
            };
            let refused = refusal(&check(&evidence, at_the_vectors_time()));
            assert_eq!(refused.map(|it| it.1.as_str()), case["code"].as_str(), "{name}");
        } else {
            assert!(!is_read_as(token, case["accept_as"].as_str().unwrap(), &keys), "{name}");
        }
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}

fn is_read_as(token: &str, typ: &str, keys: &PublicKeys) -> bool {
    fn read<C: jws::TokenClaims>(token: &str, typ: TokenType, keys: &PublicKeys) -> bool {
        jws::read::<C>(token, typ).is_ok_and(|it| {
            let key = keys.public(KeyUse::Chain, it.kid()).cloned();
            let has_signed = |state| matches!(state, KeyState::Signing | KeyState::Retired);
            key.is_some_and(|key| has_signed(key.state()) && it.verify(&key).is_some())
        })
    }
    use crate::chain::receipt::{Denial, Verification};
    use crate::episode::manifest;
    use crate::interrupts::InterruptAnswer;
    match typ {
        "countersign-entry+jwt" => read::<Entry>(token, TokenType::Entry, keys),
        "countersign-denial+jwt" => read::<Denial>(token, TokenType::Denial, keys),
        "countersign-verification+jwt" => read::<Verification>(token, TokenType::Verification, keys),
        "countersign-interrupt-answer+jwt" => read::<InterruptAnswer>(token, TokenType::InterruptAnswer, keys),
        "countersign-episode+jwt" => read::<manifest::ManifestClaims>(token, TokenType::Episode, keys),
        other => panic!("{other}"),
    }
}

#[test]
fn opening_with_impossible_salts_is_refused() {
    let file: Value = serde_json::from_str(include_str!("../../../../../tests/vectors/openings.json")).unwrap();
    let case = |list: &str, wanted: &dyn Fn(&Value) -> bool| {
        file[list].as_array().unwrap().iter().find(|it| wanted(it)).unwrap().clone()
    };
    let outcome = |case: &Value, kind: &str| {
        let mut stated = serde_json::to_value(statement()).unwrap();
        stated["type"] = json!(kind);
        stated["from"] = case["from_root"].clone();
        stated["to"] = case["to_root"].clone();
        let statement: Statement = serde_json::from_value(stated).unwrap();
        let shown: Opening = serde_json::from_value(case["opening"].clone()).unwrap();
        let (keys, entry) = (keys(), None);
        let (statement, shown, to) = (Some(&statement), Some(&shown), statement.to);
        let (keys, receipt, votes, passkeys) = (keys.trusted(), "", &[][..], None);
        opening(&ReceiptEvidence { receipt, keys, entry, statement, opening: shown, votes, passkeys }, to)
    };
    let broken = |outcome| matches!(outcome, CheckOutcome::Failed { code: DenialCode::ChainBroken, .. });

    for kept in file["inconsistent"].as_array().unwrap() {
        assert!(broken(outcome(kept, "propose")), "{}", kept["name"]);
    }
    let again = case("cases", &|it| it["set_again"].as_array().is_some_and(|them| !them.is_empty()));
    assert_eq!(outcome(&again, "propose"), CheckOutcome::Passed);
    assert_eq!(outcome(&again, "confirm"), CheckOutcome::Passed);
    assert_eq!(outcome(&again, "rollback"), CheckOutcome::Passed, "a rollback sets guessable leaves again");
    let none = case("cases", &|it| it["set_again"] == json!([]));
    assert_eq!(outcome(&none, "rollback"), CheckOutcome::Passed);
}
