//! Tests receipts that are invalid by their form, their algorithm or their signature.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use countersign_domain::json::canonical::canonical;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::forge::{RECEIPT, attackers, header_of, join, sign, signed, stolen, take_apart, with_receipt};
use super::{AttackScenario, cases};

/// Returns the receipt with a changed header, signed again by the gateway's own key.
fn with_header(scene: &AttackScenario, change: impl FnOnce(&mut Value)) -> Value {
    let parts = take_apart(scene.case.receipt());
    let mut header = parts.header;
    change(&mut header);
    let token = sign(&header, &parts.claims, &stolen(scene, "chain", "signing"));
    with_receipt(scene, token)
}

/// The receipt's bytes, spoiled as text.
fn spelt(scene: &AttackScenario, change: impl FnOnce(&str) -> String) -> Value {
    let other = change(scene.case.receipt());
    assert_ne!(other, scene.case.receipt(), "nothing was spoiled");
    with_receipt(scene, other)
}

/// The receipt with another signature.
fn with_signature(scene: &AttackScenario, change: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut parts = take_apart(scene.case.receipt());
    change(&mut parts.signature);
    let (header, claims) = (canonical(&parts.header), canonical(&parts.claims));
    with_receipt(scene, join(header.as_bytes(), claims.as_bytes(), &parts.signature))
}

/// A token signed with the published key as an HMAC secret; the signature made as long as wanted.
fn hmac_signed(scene: &AttackScenario, alg: &str, length: usize) -> Value {
    let parts = take_apart(scene.case.receipt());
    let mut header = parts.header;
    header["alg"] = json!(alg);
    let (header, claims) = (canonical(&header), canonical(&parts.claims));
    let public = stolen(scene, "chain", "signing").verifying_key().to_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(&public).unwrap();
    mac.update(signed(header.as_bytes(), claims.as_bytes()).as_bytes());
    let mut signature = mac.finalize().into_bytes().to_vec();
    signature.resize(length, 0);
    with_receipt(scene, join(header.as_bytes(), claims.as_bytes(), &signature))
}

/// Returns a base64 text whose surplus bits are not zero in the last character.
fn surplus_bits(text: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (front, last) = text.split_at(text.len() - 1);
    let at = ALPHABET.iter().position(|it| *it == last.as_bytes()[0]).unwrap();
    format!("{front}{}", char::from(ALPHABET[at + 1]))
}

/// The order of the group, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// S + L: the same signature in its other form.
fn malleable(signature: &mut [u8]) {
    let mut carry = 0u16;
    for (byte, order) in signature[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(carry, 0, "S + L fits into 32 bytes");
}

cases! {
    a_receipt_is_missing: "receipt_missing", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask.as_object_mut().unwrap().remove("receipt");
        ask
    };
    an_empty_receipt_is_none: "receipt_malformed", Same, |s| with_receipt(s, String::new());
    a_receipt_without_its_last_byte_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| it[..it.len() - 1].to_owned());
    a_receipt_without_its_signature_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| it[..=it.rfind('.').unwrap()].to_owned());
    a_receipt_of_two_parts_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| it[..it.rfind('.').unwrap()].to_owned());
    a_receipt_with_a_fourth_part_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| format!("{it}.AA"));
    a_receipt_of_half_its_length_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| it[..it.len() / 2].to_owned());
    a_receipt_of_a_megabyte_is_refused: "receipt_malformed", Same, |s| with_receipt(s, format!("{}.{}.{}", "A".repeat(4), "A".repeat(500_000), "A".repeat(86)));
    a_signature_with_surplus_bits_is_refused: "receipt_malformed", Same, |s| spelt(s, surplus_bits);
    a_padded_receipt_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| format!("{it}=="));
    every_part_padded_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| {
        it.split('.').map(|part| URL_SAFE.encode(URL_SAFE_NO_PAD.decode(part).unwrap())).collect::<Vec<_>>().join(".")
    });
    the_other_alphabet_of_base64_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| {
        it.split('.').map(|part| STANDARD.encode(URL_SAFE_NO_PAD.decode(part).unwrap())).collect::<Vec<_>>().join(".")
    });
    a_receipt_with_a_line_break_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| format!("{it}\n"));
    a_receipt_with_a_blank_before_it_is_refused: "receipt_malformed", Same, |s| spelt(s, |it| format!(" {it}"));
    claims_in_another_spelling_are_refused_though_signed: "receipt_malformed", Same, |s| {
        let parts = take_apart(s.case.receipt());
        let (header, claims) = (canonical(&parts.header), format!(" {}", canonical(&parts.claims)));
        let key = stolen(s, "chain", "signing");
        let signature = ed25519_dalek::Signer::sign(&key, signed(header.as_bytes(), claims.as_bytes()).as_bytes());
        with_receipt(s, join(header.as_bytes(), claims.as_bytes(), &signature.to_bytes()))
    };
    a_claim_that_stands_twice_is_refused_though_signed: "receipt_malformed", Same, |s| {
        let parts = take_apart(s.case.receipt());
        let (header, claims) = (canonical(&parts.header), canonical(&parts.claims).replacen('{', r#"{"exp":9999999999,"#, 1));
        let key = stolen(s, "chain", "signing");
        let signature = ed25519_dalek::Signer::sign(&key, signed(header.as_bytes(), claims.as_bytes()).as_bytes());
        with_receipt(s, join(header.as_bytes(), claims.as_bytes(), &signature.to_bytes()))
    };
    alg_none_is_refused: "receipt_malformed", Same, |s| {
        let mut parts = take_apart(s.case.receipt());
        parts.header["alg"] = json!("none");
        with_receipt(s, join(canonical(&parts.header).as_bytes(), canonical(&parts.claims).as_bytes(), b""))
    };
    alg_none_with_a_signature_of_zeros_is_refused: "receipt_malformed", Same, |s| {
        let mut parts = take_apart(s.case.receipt());
        parts.header["alg"] = json!("none");
        with_receipt(s, join(canonical(&parts.header).as_bytes(), canonical(&parts.claims).as_bytes(), &[0; 64]))
    };
    hs256_with_the_public_key_is_refused: "receipt_malformed", Same, |s| hmac_signed(s, "HS256", 32);
    hs256_of_the_right_length_is_refused: "receipt_malformed", Same, |s| hmac_signed(s, "HS256", 64);
    an_hmac_that_says_it_is_eddsa_is_refused: "signature_invalid", Same, |s| hmac_signed(s, "EdDSA", 64);
    another_name_of_the_algorithm_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| it["alg"] = json!("Ed25519"));
    a_key_in_the_header_is_refused: "receipt_malformed", Same, |s| {
        let key = attackers();
        let mut header = header_of(&key, RECEIPT);
        header["jwk"] = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.verifying_key().to_bytes())});
        with_receipt(s, sign(&header, &take_apart(s.case.receipt()).claims, &key))
    };
    a_crit_header_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| it["crit"] = json!(["exp"]));
    a_header_that_fetches_a_key_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| it["jku"] = json!("https://localhost/keys"));
    an_unencoded_payload_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| it["b64"] = json!(false));
    a_header_without_typ_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| _ = it.as_object_mut().unwrap().remove("typ"));
    a_header_without_kid_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| _ = it.as_object_mut().unwrap().remove("kid"));
    a_receipt_called_jwt_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| it["typ"] = json!("JWT"));
    a_receipt_that_says_it_is_an_entry_is_refused: "receipt_malformed", Same, |s| with_header(s, |it| it["typ"] = json!("countersign-entry+jwt"));
    an_entry_is_no_receipt: "receipt_malformed", Same, |s| {
        let digest = s.case.held["transition"].as_str().unwrap();
        let told = s.g.get(&format!("/v1/transitions/{digest}"), &s.g.auditor).await.expect(200);
        with_receipt(s, told["entry"].as_str().unwrap().to_owned())
    };
    an_entry_renamed_to_receipt_is_refused: "receipt_malformed", Same, |s| {
        let digest = s.case.held["transition"].as_str().unwrap();
        let told = s.g.get(&format!("/v1/transitions/{digest}"), &s.g.auditor).await.expect(200);
        let parts = take_apart(told["entry"].as_str().unwrap());
        let key = stolen(s, "chain", "signing");
        with_receipt(s, sign(&header_of(&key, RECEIPT), &parts.claims, &key))
    };
    a_signature_moved_from_an_entry_is_refused: "signature_invalid", Same, |s| {
        let digest = s.case.held["transition"].as_str().unwrap();
        let told = s.g.get(&format!("/v1/transitions/{digest}"), &s.g.auditor).await.expect(200);
        let other = take_apart(told["entry"].as_str().unwrap()).signature;
        with_signature(s, |it| *it = other)
    };
    one_bit_of_the_signature_is_refused: "signature_invalid", Same, |s| with_signature(s, |it| it[3] ^= 1);
    a_malleable_signature_is_refused: "signature_invalid", Same, |s| with_signature(s, |it| malleable(it));
    a_signature_of_zeros_is_refused: "signature_invalid", Same, |s| with_signature(s, |it| *it = vec![0; 64]);
    a_small_order_signature_is_refused: "signature_invalid", Same, |s| with_signature(s, |it| { *it = vec![0; 64]; it[0] = 1; });
    a_small_order_nonce_with_the_true_s_is_refused: "signature_invalid", Same, |s| with_signature(s, |it| { it[..32].fill(0); it[0] = 1; });
    a_small_order_key_is_unknown: "unknown_key", Same, |s| {
        // The neutral element: R = 1, S = 0 is its signature of every message, for a verifier that is not strict.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let parts = take_apart(s.case.receipt());
        let header = json!({"alg": "EdDSA", "kid": super::forge::kid_of(&neutral), "typ": RECEIPT});
        let mut signature = [0; 64];
        signature[0] = 1;
        with_receipt(s, join(canonical(&header).as_bytes(), canonical(&parts.claims).as_bytes(), &signature))
    };
}
