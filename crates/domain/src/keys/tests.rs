use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "urn:countersign:test";
const START: Timestamp = Timestamp::from_millis(1_795_000_000_000);
const LATER: Timestamp = Timestamp::from_millis(1_795_000_060_000);

/// Numbers every byte it gives, so that no two draws are alike and every run is.
fn counting() -> impl FnMut(&mut [u8]) {
    let mut drawn = 0_u64;
    move |buffer| {
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = (drawn as u8).wrapping_mul(31).wrapping_add(index as u8);
        }
        drawn += 1;
    }
}

fn keys() -> Keys {
    Keys::generate(ISSUER, START, &mut counting()).unwrap()
}

fn text(keys: &Keys) -> String {
    String::from_utf8(keys.write().to_vec()).unwrap()
}

fn spoil(change: impl FnOnce(&mut Value)) -> Result<Keys, KeysError> {
    let mut document: Value = serde_json::from_str(&text(&keys())).unwrap();
    change(&mut document);
    Keys::read(&document.to_string())
}

/// Draws that no earlier keyring of these tests had.
fn others() -> impl FnMut(&mut [u8]) {
    let mut draw = counting();
    move |buffer| {
        draw(buffer);
        buffer[31] = 0xee;
    }
}

#[test]
fn a_kid_is_the_thumbprint_of_rfc_8037() {
    let private = public::decode_32("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap();
    let key = SigningKey::of(KeyUse::Chain, KeyState::Signing, &private);
    assert_eq!(key.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn a_signature_verifies_by_its_own_key_and_message_alone() {
    let keys = keys();
    let key = keys.signing(KeyUse::Chain);
    let signature = key.sign(b"this");
    assert!(key.public().verify_strict(b"this", &signature));
    assert!(!key.public().verify_strict(b"that", &signature));
    assert!(!keys.signing(KeyUse::Log).public().verify_strict(b"this", &signature));
}

#[test]
fn a_malleable_twin_of_a_signature_is_refused() {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let keys = keys();
    let key = keys.signing(KeyUse::Chain);
    let mut twin = key.sign(b"this");
    let mut carry = 0_u16;
    for (byte, add) in twin[32..].iter_mut().zip(ORDER) {
        carry += u16::from(*byte) + u16::from(add);
        *byte = carry as u8;
        carry >>= 8;
    }
    assert!(!key.public().verify_strict(b"this", &twin));
}

#[test]
fn a_key_is_found_for_its_own_use_only() {
    let keys = keys();
    let kid = keys.signing(KeyUse::Log).kid();
    assert!(keys.public(KeyUse::Log, kid).is_some());
    assert!(keys.public(KeyUse::Chain, kid).is_none());
    assert!(keys.public(KeyUse::Webhook, kid).is_none());
}

#[test]
fn every_use_starts_with_one_key_that_signs_and_one_that_is_published_before() {
    let keys = keys();
    let states: Vec<_> = keys.published().map(|it| (it.key_use(), it.state())).collect();
    let expected = KeyUse::ALL.into_iter().flat_map(|it| [(it, KeyState::Signing), (it, KeyState::Next)]);
    assert_eq!(states, expected.collect::<Vec<_>>());
}

#[test]
fn a_rotation_promotes_the_published_next_key_and_retires_the_old() {
    let before = keys();
    let (old, next) =
        (before.signing(KeyUse::Chain).kid().to_owned(), before.published().nth(1).unwrap().kid().to_owned());
    let log = before.signing(KeyUse::Log).kid().to_owned();
    let after = before.rotate(KeyUse::Chain, LATER, &mut others()).unwrap();
    assert_eq!(after.signing(KeyUse::Chain).kid(), next);
    assert_eq!(after.signing(KeyUse::Chain).public().state(), KeyState::Signing);
    assert_eq!(after.public(KeyUse::Chain, &old).unwrap().state(), KeyState::Retired);
    assert_eq!(after.dates(&old), Some(KeyDates { created_at: START, since: LATER }));
    assert_eq!(after.dates(&next), Some(KeyDates { created_at: START, since: LATER }));
    assert_eq!(after.signing(KeyUse::Log).kid(), log);
    assert_eq!(after.published().count(), 7);
}

#[test]
fn a_retired_key_has_no_private_half_left() {
    let after = keys().rotate(KeyUse::Chain, LATER, &mut others()).unwrap();
    let document: Value = serde_json::from_str(&text(&after)).unwrap();
    let retired: Vec<_> = document["keys"].as_array().unwrap().iter().filter(|it| it["state"] == "retired").collect();
    assert_eq!(retired.len(), 1);
    assert!(retired[0].get("private").is_none());
}

#[test]
fn revoking_the_signing_key_lets_the_next_one_sign() {
    let before = keys();
    let (old, next) =
        (before.signing(KeyUse::Chain).kid().to_owned(), before.published().nth(1).unwrap().kid().to_owned());
    let after = before.revoke(&old, LATER, &mut others()).unwrap();
    assert_eq!(after.signing(KeyUse::Chain).kid(), next);
    assert_eq!(after.public(KeyUse::Chain, &old).unwrap().state(), KeyState::Revoked);
}

#[test]
fn revoking_a_next_a_retired_or_a_revoked_key_leaves_the_signing_one() {
    let mut random = others();
    let start = keys();
    let next = start.published().nth(1).unwrap().kid().to_owned();
    let first = start.signing(KeyUse::Chain).kid().to_owned();
    let after = start.revoke(&next, LATER, &mut random).unwrap();
    assert_eq!(after.signing(KeyUse::Chain).kid(), first);
    assert_eq!(after.public(KeyUse::Chain, &next).unwrap().state(), KeyState::Revoked);
    let rotated = after.rotate(KeyUse::Chain, LATER, &mut random).unwrap();
    let second = rotated.signing(KeyUse::Chain).kid().to_owned();
    let revoked = rotated.revoke(&first, LATER, &mut random).unwrap().revoke(&first, START, &mut random).unwrap();
    assert_eq!(revoked.signing(KeyUse::Chain).kid(), second);
    assert_eq!(revoked.public(KeyUse::Chain, &first).unwrap().state(), KeyState::Revoked);
    assert_eq!(revoked.dates(&first).unwrap().since, LATER);
}

#[test]
fn a_key_that_is_not_there_cannot_be_revoked() {
    let refused = keys().revoke("nobody", LATER, &mut others()).unwrap_err();
    assert_eq!(refused, KeysError::Unknown { kid: "nobody".to_owned() });
}

#[test]
fn a_keyring_reads_back_as_it_was_written() {
    let keys = keys().rotate(KeyUse::Webhook, LATER, &mut others()).unwrap();
    let again = Keys::read(&text(&keys)).unwrap();
    assert_eq!(again.trusted(), keys.trusted());
    assert_eq!(text(&again), text(&keys));
    assert!(again.continues(&keys.identity()));
    let signature = again.signing(KeyUse::Chain).sign(b"this");
    assert_eq!(signature, keys.signing(KeyUse::Chain).sign(b"this"));
}

#[test]
fn another_keyring_does_not_continue_this_one() {
    let other = Keys::generate(ISSUER, START, &mut others()).unwrap();
    assert!(!other.continues(&keys().identity()));
}

#[test]
fn a_keyring_whose_members_do_not_fit_is_refused() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 14] = [
        ("unknown member", |it| it["extra"] = json!(1)),
        ("unknown member of a key", |it| it["keys"][0]["extra"] = json!(1)),
        ("another format", |it| it["format"] = json!("countersign.keyring.v2")),
        ("empty issuer", |it| it["issuer"] = json!("")),
        ("issuer with a space", |it| it["issuer"] = json!("a b")),
        ("a use nobody has", |it| it["keys"][0]["purpose"] = json!("all")),
        ("a state nobody has", |it| it["keys"][0]["state"] = json!("resting")),
        ("two that sign", |it| it["keys"][1]["state"] = json!("signing")),
        ("none that signs", |it| drop(it["keys"].as_array_mut().unwrap().remove(0))),
        ("another's name", |it| it["keys"][0]["kid"] = it["keys"][1]["kid"].clone()),
        ("a private half too short", |it| it["keys"][0]["private"] = json!("AAAA")),
        ("a private half too long", |it| it["keys"][0]["private"] = json!("A".repeat(100))),
        ("a retired key with a private half", |it| {
            let mut retired = it["keys"][0].clone();
            retired["state"] = json!("retired");
            it["keys"].as_array_mut().unwrap().push(retired);
        }),
        ("one key twice", |it| {
            it["keys"][1] = it["keys"][0].clone();
            it["keys"][1]["state"] = json!("next");
        }),
    ];
    for (name, change) in cases {
        assert!(spoil(change).is_err(), "{name}");
    }
    assert!(spoil(|_| ()).is_ok());
}

#[test]
fn a_second_key_that_signs_is_refused() {
    let other = Keys::generate(ISSUER, START, &mut others()).unwrap();
    let other: Value = serde_json::from_str(&text(&other)).unwrap();
    let refused = spoil(|it| it["keys"].as_array_mut().unwrap().push(other["keys"][0].clone())).unwrap_err();
    let expected = KeysError::NotOne { key_use: KeyUse::Chain, state: KeyState::Signing, found: 2 };
    assert_eq!(refused, expected);
}

#[test]
fn a_refusal_never_quotes_the_keyring() {
    let text = text(&keys());
    let secret = serde_json::from_str::<Value>(&text).unwrap()["salt"].as_str().unwrap().to_owned();
    for spoiled in [text.replace("\"salt\"", "\"solt\""), text.replace(&secret, &format!("{secret}{secret}"))] {
        let refused = Keys::read(&spoiled).unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains(&secret));
    }
}

#[test]
fn nothing_private_prints() {
    let keys = keys();
    let document: Value = serde_json::from_str(&text(&keys)).unwrap();
    let printed = format!(
        "{keys:?} {:?} {:?} {:?} {:?}",
        keys.signing(KeyUse::Chain),
        keys.salt(),
        keys.row(),
        keys.salt().thread_secret("t")
    );
    assert!(printed.contains("[redacted]"));
    for key in KeyUse::ALL.map(|it| keys.signing(it)) {
        assert!(!printed.contains(&format!("{:?}", key.private())));
    }
    let privates = document["keys"].as_array().unwrap().iter().map(|it| &it["private"]);
    for secret in privates.chain([&document["salt"], &document["row"]]) {
        assert!(!printed.contains(secret.as_str().unwrap()));
    }
}

#[test]
fn a_weak_key_is_refused_wherever_it_is_loaded() {
    // The neutral element, its twin with the sign bit, and a non-canonical encoding of it.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let mut signed = neutral;
    signed[31] = 0x80;
    let mut beyond = [0xff; 32];
    (beyond[0], beyond[31]) = (0xee, 0x7f);
    // y = p + 3 is a sound point by its proper encoding, y = 3, but not by this one.
    let mut again = beyond;
    again[0] = 0xf0;
    for bytes in [neutral, signed, beyond, again, [0; 32]] {
        assert_eq!(PublicKey::read(KeyUse::Chain, KeyState::Signing, &bytes), Err(KeysError::Weak), "{bytes:?}");
    }
}

#[test]
fn a_thread_secret_is_the_hmac_of_its_id_and_differs_by_thread() {
    let salt = SaltKey::of(zeroize::Zeroizing::new([0x0b; 32]));
    // Python: hmac.new(b"\x0b" * 32, b"thread-1", "sha256").digest(), then keyed over b"x".
    let expected = ThreadSecret::from_bytes(&hex("4d03269bebe1a0f714be9e6b3f90611b9015f4d0ea3938b3652c63f22c108b1e"));
    assert_eq!(salt.thread_secret("thread-1").hmac(b"x"), expected.hmac(b"x"));
    assert_ne!(salt.thread_secret("thread-2").hmac(b"x"), expected.hmac(b"x"));
}

fn hex(text: &str) -> [u8; 32] {
    std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
}

#[test]
fn a_seal_holds_for_its_bytes_and_its_key_only() {
    let keys = keys();
    let seal = keys.row().hmac(b"row");
    assert!(keys.row().checks(b"row", &seal));
    assert!(!keys.row().checks(b"raw", &seal));
    assert!(!keys.row().checks(b"row", &seal[..31]));
    let other = Keys::generate(ISSUER, START, &mut others()).unwrap();
    assert!(!other.row().checks(b"row", &seal));
    assert_ne!(other.row().id(), keys.row().id());
}

#[test]
fn a_jwks_gives_back_what_was_published_and_nothing_private() {
    let keys = keys().rotate(KeyUse::Chain, LATER, &mut others()).unwrap();
    let document = keys.trusted().jwks();
    assert_eq!(&PublicKeys::from_jwks(&document).unwrap(), keys.trusted());
    let members: Vec<_> = document["keys"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["alg", "countersign_use", "crv", "kid", "kty", "status", "use", "x"]);
}

#[test]
fn a_jwks_without_an_issuer_is_read_and_says_so() {
    let mut document = keys().trusted().jwks();
    document.as_object_mut().unwrap().remove("issuer");
    assert_eq!(PublicKeys::from_jwks(&document).unwrap().issuer(), None);
}

#[test]
fn a_spoiled_jwks_is_refused_whole() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 13] = [
        ("no keys", |it| drop(it.as_object_mut().unwrap().remove("keys"))),
        ("an issuer that is no text", |it| it["issuer"] = json!(1)),
        ("no object", |it| it["keys"][0] = json!("key")),
        ("another type", |it| it["keys"][0]["kty"] = json!("EC")),
        ("another curve", |it| it["keys"][0]["crv"] = json!("X25519")),
        ("another algorithm", |it| it["keys"][0]["alg"] = json!("HS256")),
        ("for encryption", |it| it["keys"][0]["use"] = json!("enc")),
        ("no use", |it| drop(it["keys"][0].as_object_mut().unwrap().remove("countersign_use"))),
        ("no status", |it| drop(it["keys"][0].as_object_mut().unwrap().remove("status"))),
        ("a name of its own", |it| it["keys"][0]["kid"] = json!("mine")),
        ("a private half", |it| it["keys"][0]["d"] = json!("AAAA")),
        ("small order", |it| it["keys"][0]["x"] = json!("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")),
        ("one key twice", |it| it["keys"][1] = it["keys"][0].clone()),
    ];
    for (name, change) in cases {
        let mut document = keys().trusted().jwks();
        change(&mut document);
        assert!(PublicKeys::from_jwks(&document).is_err(), "{name}");
    }
}
