//! Signatures of the gateway and of passkeys.

use super::*;

fn typ(name: &str) -> TokenType {
    let all = [
        TokenType::Entry,
        TokenType::Receipt,
        TokenType::Denial,
        TokenType::Verification,
        TokenType::InterruptAnswer,
        TokenType::Episode,
    ];
    all.into_iter().find(|it| it.as_str() == name).unwrap()
}

/// Returns the claims of a token, or the code of its rejection.
fn believed(token: &str, accept_as: TokenType, keys: &PublicKeys) -> Result<Value, &'static str> {
    fn generic<C: TokenClaims>(token: &str, typ: TokenType, keys: &PublicKeys) -> Result<Value, &'static str> {
        let read = jws::read::<C>(token, typ).map_err(|_| "receipt_malformed")?;
        let key = keys.public(KeyUse::Chain, read.kid()).ok_or("unknown_key")?;
        if matches!(key.state().as_str(), "next" | "revoked") {
            return Err("unknown_key");
        }
        read.verify(key).map(|it| serde_json::to_value(it).unwrap()).ok_or("signature_invalid")
    }
    match accept_as {
        TokenType::Receipt => {
            read_receipt(token, keys, None).map(|it| serde_json::to_value(it).unwrap()).map_err(|it| it.as_str())
        }
        TokenType::Entry => generic::<Entry>(token, accept_as, keys),
        TokenType::Denial => generic::<Denial>(token, accept_as, keys),
        TokenType::Verification => generic::<Verification>(token, accept_as, keys),
        TokenType::InterruptAnswer => generic::<InterruptAnswer>(token, accept_as, keys),
        TokenType::Episode => generic::<manifest::ManifestClaims>(token, accept_as, keys),
        TokenType::Envelope => generic::<EnvelopeClaims>(token, accept_as, keys),
    }
}

#[test]
fn every_genuine_token_is_read_and_every_spoiled_one_refused_with_its_code() {
    let file = vectors("tokens");
    let keys = PublicKeys::from_jwks(&file["jwks"]).unwrap();
    for case in cases(&file, "genuine") {
        let read = believed(text(&case, "token"), typ(text(&case, "typ")), &keys);
        assert_eq!(read.as_ref(), Ok(&case["claims"]), "{}", case["name"]);
        let payload = text(&case, "token").split('.').nth(1).unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(payload).unwrap(), text(&case, "payload").as_bytes());
    }
    for case in cases(&file, "could_not_tell") {
        let read = believed(text(&case, "token"), typ(text(&case, "accept_as")), &keys);
        assert_eq!(read, Err("unknown_key"), "not stored: {}", case["name"]);
    }
    for case in cases(&file, "refused") {
        let own = case.get("jwks").map(PublicKeys::from_jwks);
        let keys = match &own {
            Some(Err(_)) => continue, // refused when it is loaded, which the page allows
            Some(Ok(keys)) => keys,
            None => &keys,
        };
        let refused = believed(text(&case, "token"), typ(text(&case, "accept_as")), keys);
        assert_eq!(refused, Err(text(&case, "code")), "{}", case["name"]);
    }
}

#[test]
fn claims_with_anything_wrong_are_no_claims() {
    let file = vectors("claims");
    fn whole<C: TokenClaims>(claims: &Value) -> bool {
        let read = serde_json::from_value::<C>(claims.clone());
        read.is_ok_and(|it| it.is_whole() && serde_json::to_value(&it).unwrap() == *claims)
    }
    let reads = |typ: &str, claims: &Value| match typ {
        "countersign-entry+jwt" => whole::<Entry>(claims),
        "countersign-receipt+jwt" => whole::<Receipt>(claims),
        "countersign-denial+jwt" => whole::<Denial>(claims),
        "countersign-interrupt-answer+jwt" => whole::<InterruptAnswer>(claims),
        "countersign-episode+jwt" => whole::<manifest::ManifestClaims>(claims),
        _ => whole::<Verification>(claims),
    };
    for (typ, whole) in file["whole"].as_object().unwrap() {
        assert!(reads(typ, whole), "{typ}");
    }
    let mut read = Vec::new();
    for case in cases(&file, "refused") {
        let name = text(&case, "typ");
        let mut claims = file["whole"][name].clone();
        if let Some(without) = case.get("without") {
            claims.as_object_mut().unwrap().remove(without.as_str().unwrap());
        }
        if let Some(with) = case.get("with") {
            claims.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        }
        if reads(name, &claims) {
            read.push(case.to_string());
        }
    }
    assert_eq!(read, Vec::<String>::new());
}

#[test]
fn passkey_signature_of_a_vote_is_valid_for_that_vote_only() {
    let vectors = vectors("votes");
    let pinned: PinnedPasskey = serde_json::from_value(vectors["passkey"].clone()).unwrap();
    let passkey = pinned.unused();
    let evidence = |case: &Value| serde_json::from_value::<VoteEvidence>(case["evidence"].clone()).unwrap();
    for case in cases(&vectors, "cases") {
        let evidence = evidence(&case);
        assert_eq!(canonical(&serde_json::to_value(&evidence.statement).unwrap()), text(&case, "jcs"));
        assert_eq!(evidence.statement.challenge(), digest(&case, "challenge"));
        assert_eq!(evidence.digest(), digest(&case, "digest"));
        assert_eq!(evidence.check(&passkey), Ok(7), "{}", text(&case, "name"));
    }
    type PolicyVoteEvidence = VoteEvidence<PolicyVoteStatement>;
    let of_policy = |case: &Value| serde_json::from_value::<PolicyVoteEvidence>(case["evidence"].clone()).unwrap();
    for case in cases(&vectors, "policy_cases") {
        let evidence = of_policy(&case);
        assert_eq!(canonical(&serde_json::to_value(&evidence.statement).unwrap()), text(&case, "jcs"));
        assert_eq!(evidence.statement.challenge(), digest(&case, "challenge"));
        assert_eq!((evidence.digest(), evidence.check(&passkey)), (digest(&case, "digest"), Ok(7)));
        assert!(serde_json::from_value::<VoteEvidence>(case["evidence"].clone()).is_err(), "it is no vote on a review");
    }
    for case in cases(&vectors, "policy_spoiled") {
        assert_eq!(of_policy(&case).check(&passkey), Err(AssertionRejected::Challenge), "{}", text(&case, "name"));
    }
    for case in cases(&vectors, "spoiled") {
        let why = match evidence(&case).check(&passkey) {
            Err(AssertionRejected::Purpose) => "purpose",
            Err(AssertionRejected::Origin) => "origin",
            Err(AssertionRejected::Unverified) => "unverified",
            Err(AssertionRejected::Challenge) => "challenge",
            Err(AssertionRejected::NotTheirs) => "not_theirs",
            Err(AssertionRejected::Signature) => "signature",
            other => panic!("{other:?} of {case}"),
        };
        assert_eq!(why, text(&case, "code"), "{}", text(&case, "name"));
    }
}
