use serde_json::json;

use super::*;

fn metadata(issuer: &str, token: &str, keys: &str) -> Metadata {
    let said = json!({
        "issuer": issuer,
        "authorization_endpoint": "https://id.example/auth",
        "token_endpoint": token,
        "jwks_uri": keys,
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    });
    serde_json::from_value(said).unwrap()
}

#[test]
fn a_provider_of_https_is_followed_to_no_place_without_it() {
    let (safe, plain) = ("https://id.example/x", "http://id.example/x");
    for (token, keys, private) in [(safe, safe, true), (plain, safe, false), (safe, plain, false)] {
        let issuer = "https://id.example";
        assert_eq!(is_private(issuer, &metadata(issuer, token, keys)), private, "{token} {keys}");
    }
    let here = "http://localhost:1";
    assert!(is_private(here, &metadata(here, plain, plain)), "on this machine nobody reads along");
}

#[test]
fn a_secret_goes_into_the_header_unless_the_provider_wants_it_elsewhere() {
    let with = |ways: serde_json::Value| {
        let safe = "https://id.example/x";
        let mut said = serde_json::to_value(metadata("https://id.example", safe, safe)).unwrap();
        said["token_endpoint_auth_methods_supported"] = ways;
        way_to_authenticate(&serde_json::from_value(said).unwrap())
    };
    assert!(matches!(with(json!(["client_secret_post"])), AuthType::RequestBody));
    assert!(matches!(with(json!(["client_secret_post", "client_secret_basic"])), AuthType::BasicAuth));
    assert!(matches!(with(json!(null)), AuthType::BasicAuth));
}
