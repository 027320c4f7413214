//! `Idempotency-Key`: POST requests that can be repeated safely. Calls with a `write_id` and calls of reviewers ignore
//! it.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::{StatusCode, header};
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use countersign_domain::identity::account::Token;
use countersign_domain::platform::idempotency::{IdempotencyError, IdempotencyKey, IdempotentRequest, StoredResponse};
use countersign_domain::primitives::secret::Secret;
use countersign_service::Stored;
use countersign_service::error::{Error, Result};
use countersign_service::platform::core::Core;
use countersign_service::platform::idempotency::IdempotentResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::json_body;
use super::json_body::JsonBytes;
use super::problem::Problem;
use crate::auth::extractors::{Machine, read_body};
use crate::state::{Capability, EdgeConfig, FromState as _};

/// The header with the client's key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header of a repeated response.
pub const REPLAYED: &str = "idempotency-replayed";

pub struct IdempotentPost {
    pub request: HttpRequest,
    pub token: Arc<Stored<Token>>,
    pub body: JsonBytes,
    core: Capability<Core>,
    edge: Capability<EdgeConfig>,
}

impl FromRequest for IdempotentPost {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (machine, body) = (Machine::extract(request), JsonBytes::from_request(request, payload));
        let request = request.clone();
        Box::pin(async move {
            // Authentication comes first, so that the body of an unauthenticated client is not read.
            let token = machine.await?.0;
            let body = read_body(&token, &request, body).await?;
            Ok(Self::new(request, token, body))
        })
    }
}

impl IdempotentPost {
    pub fn new(request: HttpRequest, token: Arc<Stored<Token>>, body: JsonBytes) -> Self {
        let (core, edge) = (Capability::of(&request), Capability::of(&request));
        Self { request, token, body, core, edge }
    }

    /// Parses the body as the call's input.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        json_body::read(&self.edge, &self.body)
    }

    /// Runs the work and returns its response, once per key if the client sent one.
    pub async fn once<T: Any>(
        &self,
        work: impl Future<Output = Result<T>>,
        tell: impl Fn(&Core, &T) -> Result<StoredResponse> + Clone + 'static,
    ) -> Result<HttpResponse> {
        // Without a key there is nothing to repeat, so the response is not stored.
        let Some(named) = self.key()? else { return Ok(answer(&tell(&self.core, &work.await?)?)) };
        let keys = self.core.keys()?;
        let request = IdempotentRequest::new(
            keys.row(),
            // The principal is part of the identity, so that one client cannot get the response of another by guessing
            // its key.
            self.token.record.principal(),
            self.request.method().as_str(),
            self.request.path(),
            &named,
            // The bytes are compared as they were sent, so the same values in another format are another request.
            self.body.sent(),
        );
        let core = self.core.clone();
        Ok(match self.core.once(&request, move |done| tell(&core, done), work).await? {
            IdempotentResponse::First(told) => answer(&told),
            IdempotentResponse::Again(told) => {
                let mut answer = answer(&told);
                answer
                    .headers_mut()
                    .insert(header::HeaderName::from_static(REPLAYED), header::HeaderValue::from_static("true"));
                answer
            }
        })
    }

    /// Runs the work and returns its response without a key. A signed post is identified by its signed ID, and the
    /// signature does not cover the key.
    pub async fn signed<T: Any>(
        &self,
        work: impl Future<Output = Result<T>>,
        tell: impl Fn(&Core, &T) -> Result<StoredResponse>,
    ) -> Result<HttpResponse> {
        Ok(answer(&tell(&self.core, &work.await?)?))
    }

    /// Returns the key of a call that requires one.
    pub fn required_key(&self) -> Result<IdempotencyKey> {
        self.key()?.ok_or(Error::NotRepeated(IdempotencyError::Missing))
    }

    fn key(&self) -> Result<Option<IdempotencyKey>> {
        let mut all = self.request.headers().get_all(IDEMPOTENCY_KEY);
        let Some(first) = all.next() else { return Ok(None) };
        // Two headers name two keys, and a proxy may have joined or dropped one, so neither is used.
        let only = if all.next().is_some() { None } else { first.to_str().ok().and_then(IdempotencyKey::read) };
        let wrong = "Idempotency-Key must occur once and have 1 to 255 visible ASCII characters";
        only.map(Some).ok_or_else(|| Error::invalid("", wrong))
    }
}

/// Returns a JSON response that can be stored.
pub fn told(status: StatusCode, body: &impl Serialize) -> StoredResponse {
    let body = serde_json::to_string(body).expect("an answer is made of texts, numbers and lists");
    StoredResponse { status: status.as_u16(), body: Secret::new(body) }
}

fn answer(told: &StoredResponse) -> HttpResponse {
    let status = StatusCode::from_u16(told.status).expect("an answer has the status of an answer");
    let json = (header::CONTENT_TYPE, "application/json");
    HttpResponse::build(status).insert_header(json).body(told.body.expose().clone())
}
