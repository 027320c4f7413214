//! Tests of the signature of a folder.

use super::*;

fn keys() -> Keys {
    let now = Timestamp::from_millis(1_795_225_000_000);
    Keys::generate("https://a.example", now, &mut crate::test_random::fill).unwrap()
}

/// Builds the signed folder of a finished episode.
fn signed(keys: &Keys) -> Folder {
    let timeline = Timeline::of(happened("ok"));
    let run = ThreadId::try_from("order-17").unwrap();
    let sign = |it| manifest::signed(it, &run, keys.signing(KeyUse::Chain), keys.issuer(), 1_795_225_000);
    let mut folder = folder(happened("ok"));
    *bytes(&mut folder, "manifest.json") = timeline.manifest(sign).unwrap();
    folder
}

fn codes_by(folder: &Folder, keys: &Keys) -> Vec<&'static str> {
    let (_, report) = verify(folder, SignatureRequirement::By(keys.trusted()));
    report.findings.iter().map(|it| it.code.as_str()).collect()
}

#[test]
fn manifest_signature_covers_every_member_and_needs_the_key() {
    let keys = keys();
    let good = signed(&keys);
    assert_eq!(codes_by(&good, &keys), [""; 0]);
    assert_eq!(codes(&good), [""; 0], "a signature that is not asked for is in nobody's way");
    let content = bytes(&mut good.clone(), "manifest.json").clone();
    for bad in flipped(&content) {
        let mut folder = good.clone();
        // A line feed that became another blank changes nothing.
        let blank = bad.last() != content.last();
        *bytes(&mut folder, "manifest.json") = bad;
        assert!(blank || !codes_by(&folder, &keys).is_empty());
    }
    assert_eq!(codes_by(&folder(happened("ok")), &keys), ["unsigned"]);
    let others = self::keys();
    assert_eq!(codes_by(&good, &others), ["signature"]);
    let mut moved = good.clone();
    edit(&mut moved, "manifest.json", |it| it["created_at"] = "2026-11-22T09:00:00.000Z".into());
    assert_eq!(codes_by(&moved, &keys), ["signature"]);
}

#[test]
fn revoked_key_is_refused_and_retired_key_is_accepted() {
    let keys = keys();
    let (good, kid) = (signed(&keys), keys.signing(KeyUse::Chain).kid().to_owned());
    let now = Timestamp::from_millis(1_795_225_000_000);
    let retired = keys.rotate(KeyUse::Chain, now, &mut crate::test_random::fill).unwrap();
    assert_eq!(codes_by(&good, &retired), [""; 0]);
    let revoked = retired.revoke(&kid, now, &mut crate::test_random::fill).unwrap();
    assert_eq!(codes_by(&good, &revoked), ["signature"]);
}

#[test]
fn no_other_token_of_the_gateway_signs_a_manifest() {
    let keys = keys();
    let mut other = signed(&keys);
    edit(&mut other, "manifest.json", |it| {
        let read =
            jws::read::<manifest::ManifestClaims>(it["signer"]["jws"].as_str().unwrap(), TokenType::Episode).unwrap();
        let jws = jws::sign(keys.signing(KeyUse::Chain), TokenType::Entry, read.claims_unverified());
        it["signer"]["jws"] = jws.into();
    });
    assert_eq!(codes_by(&other, &keys), ["signature"]);
}

#[test]
fn each_claim_of_a_signature_is_checked() {
    let keys = keys();
    let with = |change: &dyn Fn(&mut Value), kid: Option<&str>| {
        let mut folder = signed(&keys);
        edit(&mut folder, "manifest.json", |it| {
            let read = jws::read::<manifest::ManifestClaims>(it["signer"]["jws"].as_str().unwrap(), TokenType::Episode)
                .unwrap();
            let mut claims = json!(read.claims_unverified());
            change(&mut claims);
            it["signer"]["jws"] = jws::sign(keys.signing(KeyUse::Chain), TokenType::Episode, &claims).into();
            if let Some(kid) = kid {
                it["signer"]["kid"] = kid.into();
            }
        });
        codes_by(&folder, &keys)
    };
    assert_eq!(with(&|_| {}, None), [""; 0]);
    assert_eq!(with(&|it| it["episode"] = "order-18".into(), None), ["signature"]);
    assert_eq!(with(&|it| it["manifest"] = json!(Digest::of_file(b"")), None), ["signature"]);
    assert_eq!(with(&|it| it["iss"] = "https://b.example".into(), None), ["signature"]);
    assert_eq!(with(&|_| {}, Some("another")), ["signature"], "the manifest names the key that signed");
    // Keys that name no issuer still refuse an empty one.
    let mut nameless = keys.trusted().jwks();
    drop(nameless.as_object_mut().unwrap().remove("issuer"));
    let nameless = PublicKeys::from_jwks(&nameless).unwrap();
    let mut empty = signed(&keys);
    edit(&mut empty, "manifest.json", |it| {
        let read =
            jws::read::<manifest::ManifestClaims>(it["signer"]["jws"].as_str().unwrap(), TokenType::Episode).unwrap();
        let claims = manifest::ManifestClaims { iss: String::new(), ..read.claims_unverified().clone() };
        it["signer"]["jws"] = jws::sign(keys.signing(KeyUse::Chain), TokenType::Episode, &claims).into();
    });
    let (_, report) = verify(&empty, SignatureRequirement::By(&nameless));
    assert_eq!(report.findings.iter().map(|it| it.code).collect::<Vec<_>>(), [Code::Signature]);
}
