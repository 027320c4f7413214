use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use countersign_domain::identity::oidc_identity::{AdmissionRule, ClaimMapping};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::*;
use crate::clock::SystemClock;

const AUTHORITY: &[u8] = include_bytes!("../../../../tests/provider/tls/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/provider/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/provider/tls/key.pem");

fn said(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/auth"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "end_session_endpoint": format!("{issuer}/leave"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "keys": [],
    })
}

fn is_followed(issuer: &str, said: Value) -> bool {
    is_private(&issuer.parse().unwrap(), &serde_json::from_value(said).unwrap())
}

/// Every endpoint in the metadata.
const PLACES: [&str; 4] = ["authorization_endpoint", "token_endpoint", "jwks_uri", "end_session_endpoint"];

#[test]
fn https_provider_must_have_https_endpoints() {
    let (issuer, plain) = ("https://id.example", "http://id.example/x");
    assert!(is_followed(issuer, said(issuer)));
    for place in PLACES {
        let mut elsewhere = said(issuer);
        elsewhere[place] = json!(plain);
        assert!(!is_followed(issuer, elsewhere), "{place}");
    }
    let here = "http://localhost:1";
    assert!(is_followed(here, said(here)), "localhost needs no https");
}

/// Starts a provider with https and returns its issuer. The function makes the metadata and the keys.
fn provider(of_itself: impl FnOnce(&str) -> Value) -> String {
    crate::tls::ready();
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let body = of_itself(&issuer).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let (mut seen, mut part) = (Vec::new(), [0; 1024]);
            while let Ok(read @ 1..) = tls.read(&mut part) {
                seen.extend_from_slice(&part[..read]);
                if seen.ends_with(b"\r\n\r\n") {
                    let _ = tls.write_all(answer.as_bytes());
                    break;
                }
            }
        }
    });
    issuer
}

/// Returns the URL of a sign-in at that provider.
async fn sent_to(issuer: String) -> Result<String, SignInRejected> {
    let settings = OidcConfig {
        issuer,
        client_id: "countersign".to_owned(),
        client_secret: None,
        authority: Some(AUTHORITY.to_vec()),
        scopes: Vec::new(),
        button: String::new(),
        name_claim: "name".to_owned(),
        groups_claim: "groups".to_owned(),
        mapping: ClaimMapping { groups: Vec::new(), roles: Vec::new(), admit: AdmissionRule::Mapped },
        session: Duration::from_secs(60),
    };
    let errand = AuthorizationSecrets { nonce: Secret::new("n".to_owned()), verifier: Secret::new("v".repeat(43)) };
    Provider::new(settings, "https://gate.example", Arc::new(SystemClock)).unwrap().ask("state", &errand).await
}

#[tokio::test]
async fn plain_endpoint_is_refused_before_a_request() {
    let unspoiled = provider(said);
    assert!(sent_to(unspoiled.clone()).await.unwrap().starts_with(&format!("{unspoiled}/auth?")));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let plain = format!("http://localhost:{}/x", listener.local_addr().unwrap().port());
    for place in PLACES {
        let spoiled = provider(|issuer| {
            let mut said = said(issuer);
            said[place] = json!(plain);
            said
        });
        assert_eq!(sent_to(spoiled).await, Err(SignInRejected::ProviderDown), "{place}");
        let asked = listener.accept().map(|_| ()).map_err(|it| it.kind());
        assert_eq!(asked, Err(std::io::ErrorKind::WouldBlock), "{place} was asked");
    }
}

#[test]
fn client_secret_is_in_the_header_unless_the_provider_refuses_it() {
    let with = |ways: Value| {
        let mut said = said("https://id.example");
        said["token_endpoint_auth_methods_supported"] = ways;
        way_to_authenticate(&serde_json::from_value(said).unwrap())
    };
    assert!(matches!(with(json!(["client_secret_post"])), AuthType::RequestBody));
    assert!(matches!(with(json!(["client_secret_post", "client_secret_basic"])), AuthType::BasicAuth));
    assert!(matches!(with(json!(null)), AuthType::BasicAuth));
}
