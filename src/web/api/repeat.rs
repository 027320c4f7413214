//! `Idempotency-Key`: POSTs that may be sent again. It means nothing where `write_id` does, and where people decide.

use std::any::Any;
use std::future::Future;

use actix_web::http::{StatusCode, header};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;

use super::body::Bytes;
use crate::domain::account::Token;
use crate::domain::repeat::{RepeatKey, Repeatable, Told};
use crate::domain::secret::Secret;
use crate::service::Stored;
use crate::service::error::{Error, Result};
use crate::service::repeats::Repeated;
use crate::web::app::App;

/// What a sender calls its request.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Says that an answer was given before.
pub const REPLAYED: &str = "idempotency-replayed";

/// A POST of a machine.
#[derive(Clone, Copy)]
pub struct Post<'a> {
    /// As it came.
    pub request: &'a HttpRequest,
    /// Where to.
    pub app: &'a Data<App>,
    /// By whom.
    pub token: &'a Stored<Token>,
    /// What it says.
    pub body: &'a Bytes,
}

impl Post<'_> {
    /// Does the work and tells what was done; once for each key, if the sender gave one.
    pub async fn once<T: Any>(
        self,
        work: impl Future<Output = Result<T>>,
        tell: impl Fn(&App, &T) -> Result<Told> + Clone + 'static,
    ) -> Result<HttpResponse> {
        let Some(named) = self.key()? else { return Ok(answer(&tell(self.app, &work.await?)?)) };
        let service = &self.app.service;
        let route = (self.request.method().as_str(), self.request.path());
        let keys = service.keys()?;
        let request = Repeatable::new(keys.row(), self.token.record.principal(), route, &named, self.body.sent());
        let app = self.app.clone();
        Ok(match service.once(&request, move |done| tell(&app, done), work).await? {
            Repeated::First(told) => answer(&told),
            Repeated::Again(told) => {
                let mut answer = answer(&told);
                answer
                    .headers_mut()
                    .insert(header::HeaderName::from_static(REPLAYED), header::HeaderValue::from_static("true"));
                answer
            }
        })
    }

    fn key(self) -> Result<Option<RepeatKey>> {
        let mut all = self.request.headers().get_all(IDEMPOTENCY_KEY);
        let Some(first) = all.next() else { return Ok(None) };
        let only = if all.next().is_some() { None } else { first.to_str().ok().and_then(RepeatKey::read) };
        let wrong = "Idempotency-Key is said once, in 1 to 255 ASCII characters that can be seen";
        only.map(Some).ok_or_else(|| Error::invalid("", wrong))
    }
}

/// An answer in JSON, as it is kept if it is kept.
pub fn told(status: StatusCode, body: &impl Serialize) -> Told {
    let body = serde_json::to_string(body).expect("an answer is made of texts, numbers and lists");
    Told { status: status.as_u16(), body: Secret::new(body) }
}

fn answer(told: &Told) -> HttpResponse {
    let status = StatusCode::from_u16(told.status).expect("an answer has the status of an answer");
    let json = (header::CONTENT_TYPE, "application/json");
    HttpResponse::build(status).insert_header(json).body(told.body.expose().clone())
}
