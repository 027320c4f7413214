//! A scripted provider, for behavior that a real provider never shows. It signs with Ed25519. It has no pages: tests
//! read the address that a browser would be sent to.

use std::sync::{Arc, Mutex, MutexGuard};

use actix_web::{App, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use countersign_adapters::clock::{Clock as _, SystemClock};
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::provider::CLIENT;
use super::visitor::parameter;

/// The provider's reply to a code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ProviderReply {
    Token,
    NoIdToken,
    Redirect,
    Huge,
    Failure,
    Refusal,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TokenSigning {
    Properly,
    WithAnotherKey,
    WithTheClientsSecret,
    NotAtAll,
}

pub struct ProviderScript {
    /// Members that replace the true metadata.
    pub metadata: Value,
    /// Claims that replace the true claims of the token.
    pub claims: Value,
    /// The token's payload as text, instead of all claims.
    pub payload: Option<String>,
    pub signing: TokenSigning,
    pub reply: ProviderReply,
    /// The number of the signing key, and the numbers of the published keys.
    pub key: u8,
    pub published: Vec<u8>,
    /// The number of requests for the keys, and the requests for a token.
    pub keys_asked: usize,
    pub redeemed: Vec<String>,
    /// The number of requests to the redirect target of the token endpoint.
    pub led_on: usize,
    nonce: String,
}

#[derive(Clone)]
pub struct FakeProvider {
    pub issuer: String,
    script: Arc<Mutex<ProviderScript>>,
}

impl FakeProvider {
    pub async fn start() -> Self {
        let script = ProviderScript {
            metadata: json!({}),
            claims: json!({}),
            payload: None,
            signing: TokenSigning::Properly,
            reply: ProviderReply::Token,
            key: 1,
            published: vec![1],
            keys_asked: 0,
            redeemed: Vec::new(),
            led_on: 0,
            nonce: String::new(),
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        let peer = Self { issuer, script: Arc::new(Mutex::new(script)) };
        let shared = peer.clone();
        let server = HttpServer::new(move || {
            App::new()
                .app_data(web::Data::new(shared.clone()))
                .route("/.well-known/openid-configuration", web::get().to(metadata))
                .route("/keys", web::get().to(keys))
                .route("/token", web::post().to(token))
                .default_service(web::to(elsewhere))
        });
        tokio::spawn(server.workers(1).disable_signals().listen(listener).unwrap().run());
        peer
    }

    pub fn script(&self) -> MutexGuard<'_, ProviderScript> {
        self.script.lock().unwrap()
    }

    /// Returns the address that a browser comes back to after the person signed in.
    pub fn signs_in(&self, sent_to: &str) -> String {
        self.script().nonce = parameter(sent_to, "nonce");
        let (back, state) = (parameter(sent_to, "redirect_uri"), parameter(sent_to, "state"));
        format!("{back}?state={state}&code=a-code&iss={}", self.issuer)
    }
}

async fn metadata(peer: web::Data<FakeProvider>) -> HttpResponse {
    let at = |path: &str| format!("{}{path}", peer.issuer);
    let mut said = json!({
        "issuer": peer.issuer,
        "authorization_endpoint": at("/auth"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA", "RS256", "HS256", "none"],
        "authorization_response_iss_parameter_supported": true,
    });
    over(&mut said, &peer.script().metadata);
    HttpResponse::Ok().json(said)
}

async fn keys(peer: web::Data<FakeProvider>) -> HttpResponse {
    let mut script = peer.script();
    script.keys_asked += 1;
    let jwk = |number: &u8| {
        let x = BASE64.encode(key(*number).verifying_key().as_bytes());
        json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": number.to_string(), "x": x})
    };
    HttpResponse::Ok().json(json!({"keys": script.published.iter().map(jwk).collect::<Vec<_>>()}))
}

async fn token(peer: web::Data<FakeProvider>, sent: String) -> HttpResponse {
    let mut script = peer.script();
    script.redeemed.push(sent);
    let token = match script.reply {
        ProviderReply::Token | ProviderReply::Huge => Some(signed(&script, &peer.issuer)),
        ProviderReply::NoIdToken => None,
        ProviderReply::Redirect => {
            return HttpResponse::TemporaryRedirect().insert_header(("location", "/elsewhere")).finish();
        }
        ProviderReply::Failure => return HttpResponse::InternalServerError().body("a secret of the provider's"),
        ProviderReply::Refusal => return HttpResponse::BadRequest().json(json!({"error": "invalid_grant"})),
    };
    let padding = if script.reply == ProviderReply::Huge { "x".repeat(300 * 1024) } else { String::new() };
    let answer = json!({"access_token": "opaque", "token_type": "Bearer", "id_token": token, "padding": padding});
    HttpResponse::Ok().json(answer)
}

async fn elsewhere(peer: web::Data<FakeProvider>) -> HttpResponse {
    let mut script = peer.script();
    script.led_on += 1;
    let token = signed(&script, &peer.issuer);
    HttpResponse::Ok().json(json!({"access_token": "opaque", "token_type": "Bearer", "id_token": token}))
}

fn signed(script: &ProviderScript, issuer: &str) -> String {
    let now = SystemClock.now().seconds();
    let mut claims = json!({
        "iss": issuer, "aud": CLIENT, "sub": "sub-1", "iat": now, "exp": now + 300, "nonce": script.nonce,
        "preferred_username": "carol", "groups": ["fin"],
    });
    over(&mut claims, &script.claims);
    let alg = match script.signing {
        TokenSigning::Properly | TokenSigning::WithAnotherKey => "EdDSA",
        TokenSigning::WithTheClientsSecret => "HS256",
        TokenSigning::NotAtAll => "none",
    };
    let header = json!({"alg": alg, "kid": script.key.to_string()});
    let payload = script.payload.clone().unwrap_or_else(|| claims.to_string());
    let input = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(payload));
    let signature = match script.signing {
        TokenSigning::Properly => key(script.key).sign(input.as_bytes()).to_bytes().to_vec(),
        TokenSigning::WithAnotherKey => key(script.key + 100).sign(input.as_bytes()).to_bytes().to_vec(),
        TokenSigning::WithTheClientsSecret => {
            let mut mac = Hmac::<Sha256>::new_from_slice(super::provider::CLIENT_SECRET.as_bytes()).unwrap();
            mac.update(input.as_bytes());
            mac.finalize().into_bytes().to_vec()
        }
        TokenSigning::NotAtAll => Vec::new(),
    };
    format!("{input}.{}", BASE64.encode(signature))
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// Replaces members of `value` by those of `other`. Null removes a member.
fn over(value: &mut Value, other: &Value) {
    for (name, it) in other.as_object().unwrap() {
        if it.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            value[name] = it.clone();
        }
    }
}

/// Returns the PKCE challenge of a verifier.
pub fn challenge(verifier: &str) -> String {
    BASE64.encode(Sha256::digest(verifier.as_bytes()))
}
