//! What verify is measured against: the least that could check a receipt over HTTP.

use std::net::TcpListener;

use actix_web::{App, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::keys::{KeyUse, Keys};
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::{Value, json};

/// As many as the gateway has.
pub const WORKERS: usize = 2;

/// Serves the bare handler; its port.
pub fn serve(keys: &Keys) -> u16 {
    let key = keys.trusted().iter().find(|it| it.key_use() == KeyUse::Chain).unwrap();
    let key = *key.verifying_key();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = move || App::new().app_data(web::Data::new(key)).route("/v1/verify", web::post().to(check));
    tokio::spawn(HttpServer::new(app).workers(WORKERS).disable_signals().listen(listener).unwrap().run());
    port
}

async fn check(key: web::Data<VerifyingKey>, body: web::Bytes) -> HttpResponse {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let (signed, signature) = body["receipt"].as_str().unwrap().rsplit_once('.').unwrap();
    let signature = Signature::from_slice(&URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    key.verify_strict(signed.as_bytes(), &signature).unwrap();
    HttpResponse::Ok().json(json!({"allow": true}))
}
