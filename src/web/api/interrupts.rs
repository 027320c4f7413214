//! Interrupts: what hosts that keep their own state ask people about.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::{long_poll, of_own_flow};
use crate::domain::identity::account::MachineRole;
use crate::domain::interrupts::{Asserted, Interrupt, Kind};
use crate::domain::primitives::id::InterruptId;
use crate::service::error::{Error, Result};
use crate::web::auth::extractors::{Machine, Sender};
use crate::web::limits::rate_limit::Throttle;
use crate::web::state::App;

/// `POST /v1/interrupts`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Interrupted {
    /// `state_transition_review`.
    pub kind: Kind,
    /// The host's own digest of the step, 16 to 200 characters; answered as it came.
    #[schema(min_length = 16, max_length = 200, pattern = "^[A-Za-z0-9:_+/=-]{16,200}$")]
    pub transition_digest: String,
    /// The keys that the step changes, 500 characters each and 64 KiB in all.
    #[schema(max_items = 200)]
    pub changed_keys: Vec<String>,
    /// What the step changes, for people to read: any JSON of at most 64 KiB and 500 values.
    pub redacted_diff: Value,
    /// What the host's framework calls the interrupt; answered as it came.
    #[schema(min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9:_+/=-]{1,200}$")]
    pub interrupt_id: String,
    /// The host's own thread.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub thread_ref: Option<String>,
    /// In a line.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub title: Option<String>,
    /// Why people are asked.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: Option<String>,
    /// How long people are asked, in seconds; at most, and if left out, as long as the flow's policy says.
    #[serde(default)]
    #[schema(minimum = 60)]
    pub expires_in: Option<u64>,
    /// Which try, from 1.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
}

impl From<Interrupted> for Asserted {
    fn from(it: Interrupted) -> Self {
        Self {
            kind: it.kind,
            transition_digest: it.transition_digest,
            changed_keys: it.changed_keys,
            redacted_diff: it.redacted_diff,
            interrupt_id: it.interrupt_id,
            attempt: it.attempt.unwrap_or(1),
            thread_ref: it.thread_ref,
            title: it.title,
            reason: it.reason,
            expires_in: it.expires_in,
        }
    }
}

/// How often one post may come in a row. Whoever sends it waits for longer between two tries, each time.
const POSTS_BURST: u32 = 30;

/// How long until it may come once more.
const POSTS_INTERVAL: Duration = Duration::from_secs(10);

/// Bounds how fast one signed post is sent again.
pub fn throttle() -> Throttle {
    Throttle::new(POSTS_BURST, POSTS_INTERVAL)
}

/// Asks people about a step of the host's own graph. The same digest asked again is the same interrupt, with the same
/// answer; beside other members it is refused. By the host's token; or signed by Standard Webhooks, with `?source=` the token's id.
#[utoipa::path(
    post, path = "/v1/interrupts", tag = "interrupts", request_body = Interrupted,
    params(
        ("source" = Option<crate::domain::primitives::id::TokenId>, Query, description = "Of a signed post: whose token signed it"),
        ("webhook-id" = Option<String>, Header, description = "Of a signed post (Standard Webhooks): its name"),
        ("webhook-timestamp" = Option<String>, Header, description = "Of a signed post: when, in seconds"),
        ("webhook-signature" = Option<String>, Header, description = "Of a signed post: `v1,` and an HMAC-SHA-256"),
    ),
    responses((status = 202, description = "People are asked, or were", body = super::responses::InterruptTaken))
)]
pub async fn post(request: HttpRequest, app: Data<App>, sender: Sender) -> Result<HttpResponse> {
    let Sender { token, body, post: named } = sender;
    let post = Post { request, app, token, body };
    let asserted = Asserted::from(post.read::<Interrupted>()?);
    let work = post.app.service.receive_interrupt(&post.token, &asserted, named.as_ref());
    let tell = |app: &App, it: &Interrupt| Ok(told(StatusCode::ACCEPTED, &reference(it, app.service.public_url())));
    if named.is_some() { post.signed(work, tell).await } else { post.once(work, tell).await }
}

/// What of an interrupt never changes: so the same request has the same answer, whatever became of it since.
fn reference(interrupt: &Interrupt, url: &str) -> Value {
    let Interrupt { id, asserted, digest, asking, expires_at, .. } = interrupt;
    let needed = asking.stages.iter().map(|it| json!({"groups": it.groups, "need": it.need}));
    json!({
        "id": id, "interrupt_id": asserted.interrupt_id, "transition_digest": asserted.transition_digest,
        "attempt": asserted.attempt, "digest": digest, "url": format!("{url}/interrupts/{id}"),
        "expires_at": expires_at, "needed": needed.collect::<Vec<_>>(),
    })
}

/// What people decided; waits for it if asked to by `Prefer: wait=N`.
#[utoipa::path(
    get, path = "/v1/interrupts/{interrupt}", tag = "interrupts",
    params(
        ("interrupt" = InterruptId, Path, description = "The interrupt's name here"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` waits up to so many seconds for the end", example = "wait=30"),
    ),
    responses((status = 200, description = "What people decided: the same bytes each time; for auditors also `evidence`, what passkeys signed of the votes", body = crate::domain::interrupts::Answered), (status = 202, description = "Still asked: ask again", body = super::responses::StillOpen))
)]
pub async fn read(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    interrupt: Path<String>,
) -> Result<HttpResponse> {
    let id = InterruptId::try_from(interrupt.as_str()).map_err(|_| Error::NotFound("interrupt"))?;
    let known = app.service.interrupt(&id).await?;
    of_own_flow(&machine, &known.flow, "interrupt")?;
    let look = || async { Ok(app.service.interrupt(&id).await?.answered()) };
    let wish = (&*machine.0, long_poll::wished(&request));
    let Some(answered) = long_poll::until_there(&app, wish, look).await? else {
        return Ok(HttpResponse::Accepted().json(json!({"status": "open"})));
    };
    if machine.0.record.role == MachineRole::Auditor {
        let mut told = json!(answered);
        told["evidence"] = json!(app.service.evidence_of_interrupt(&app.service.interrupt(&id).await?)?);
        return Ok(HttpResponse::Ok().json(told));
    }
    Ok(HttpResponse::Ok().json(answered))
}
