//! Requests under a key of their sender's: one that is sent again, and one that asks only.

use countersign_domain::platform::idempotency::{IdempotencyKey, IdempotentRequest, StoredResponse};
use countersign_domain::primitives::secret::Secret;

use countersign_service::Service;
use countersign_service::error::Result;
use countersign_service::platform::idempotency::IdempotentResponse;
use countersign_service::threads::create::CreatedThread;
use countersign_service::threads::create::NewThread;
use serde_json::json;

use super::{HistoryActors, first_state};

/// Has a thread made twice under one key, of which the second is the first, and asks something under another.
pub async fn sends_again(service: &Service, cast: &HistoryActors) {
    let keys = service.core.keys().unwrap();
    let asked = |key: &str| {
        let named = IdempotencyKey::read(key).unwrap();
        IdempotentRequest::new(keys.row(), cast.host.record.principal(), "POST", "/v1/threads", &named, b"the body")
    };
    let new = NewThread {
        flow: cast.host.record.flow.clone().unwrap(),
        thread: None,
        state: first_state(),
        context: Default::default(),
        episode: None,
    };
    let told = |body: String| -> Result<StoredResponse> { Ok(StoredResponse { status: 201, body: Secret::new(body) }) };
    let tell = move |made: &CreatedThread| told(json!({"thread": made.thread}).to_string());
    let first = service.core.once(&asked("1"), tell, service.threads.create_thread(&cast.host, &new)).await.unwrap();
    let again = service.core.once(&asked("1"), tell, service.threads.create_thread(&cast.host, &new)).await.unwrap();
    assert!(
        matches!((first, again), (IdempotentResponse::First(one), IdempotentResponse::Again(other)) if one == other)
    );
    let tell = move |all: &Vec<_>| told(json!(all).to_string());
    assert!(matches!(
        service.core.once(&asked("2"), tell, service.policies.flows()).await.unwrap(),
        IdempotentResponse::First(_)
    ));
}
