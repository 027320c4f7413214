//! `GET` and `POST /replays`: what another policy would have made of a flow's recorded proposals, with no effect.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use serde::Deserialize;

use super::replay_view::{ReplayRow, ReplayTold, ReplaysPage, Would};
use crate::domain::policy::{Became, Compared, PolicySource, WouldBe};
use crate::domain::primitives::id::FlowId;
use crate::domain::primitives::time::Timestamp;
use crate::service::error::{Error, Result};
use crate::service::policy_changes::replay::{Replay, ReplayFrom, Replayed};
use crate::web::pages::policies::what_if_view::{Chosen, FlowChoice};
use crate::web::pages::shared::error_page::Failure;
use crate::web::pages::shared::form::Form;
use crate::web::pages::shared::format::{error_row, html, lines, moment};
use crate::web::pages::shared::layout::Tone;
use crate::web::pages::shared::safe_text::Line;
use crate::web::pages::shared::visitor::Visitor;
use crate::web::state::App;

/// Proposals that are judged for one page; those that would end as they did are only counted.
const PROPOSALS_MAX: u32 = 200;

/// Errors that one row lists.
const ERRORS_SHOWN: usize = 6;

/// `?flow=`: whose active policy to begin with.
#[derive(Deserialize)]
pub struct Which {
    flow: Option<String>,
}

/// What the form sends.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct ReplayFields {
    flow: String,
    policy: String,
    after: String,
}

/// `GET /replays`.
pub async fn show(app: web::Data<App>, visitor: Visitor, query: web::Query<Which>) -> Result<ReplaysPage> {
    let mut fields = ReplayFields::default();
    if let Some(flow) = &query.flow {
        let flow = FlowId::try_from(flow.as_str()).map_err(|_| Error::NotFound("flow"))?;
        fields.policy = app.service.active_policy(&flow).await?.source().text.clone();
        fields.flow = flow.to_string();
    }
    page(&app, &visitor, &fields, Ok(None)).await
}

/// `POST /replays`.
pub async fn submit(
    app: web::Data<App>,
    request: HttpRequest,
    sent: Form<ReplayFields>,
) -> std::result::Result<HttpResponse, Failure> {
    let (visitor, form) = sent.parts();
    let failed = |error| Failure::of(&request, error);
    let replayed = replayed(&app, &visitor, &form).await.map_err(failed)?;
    let status = if replayed.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let page = page(&app, &visitor, &form, replayed.map(Some)).await.map_err(failed)?;
    Ok(html(status, page.render()))
}

/// The replay, or what could not be read, in words for the page.
async fn replayed(app: &App, visitor: &Visitor, form: &ReplayFields) -> Result<std::result::Result<Replay, String>> {
    let Ok(flow) = FlowId::try_from(form.flow.as_str()) else { return Ok(Err("Choose a flow.".to_owned())) };
    let after = match form.after.as_str() {
        "" => None,
        token => Some(ReplayFrom::read(token).ok_or(Error::NotFound("page"))?),
    };
    let active = app.service.active_policy(&flow).await?;
    // A form ends its lines otherwise than a file does.
    let source = PolicySource { text: form.policy.replace("\r\n", "\n"), schemas: active.source().schemas.clone() };
    match app.service.replay(visitor.account().id.as_str(), &flow, &source, after.as_ref(), PROPOSALS_MAX).await {
        Ok(replay) => Ok(Ok(replay)),
        Err(Error::Policy(error)) => {
            Ok(Err(format!("The policy is not understood. Line {}: {}.", error.line, error.message)))
        }
        Err(Error::Invalid { .. }) => Ok(Err("The policy is not for the flow that is chosen.".to_owned())),
        Err(error) => Err(error),
    }
}

async fn page(
    app: &App,
    visitor: &Visitor,
    form: &ReplayFields,
    replayed: std::result::Result<Option<Replay>, String>,
) -> Result<ReplaysPage> {
    let choice = |flow: &FlowId| FlowChoice {
        name: Line::new(flow.as_str()),
        chosen: if flow.as_str() == form.flow { Chosen::Yes } else { Chosen::No },
    };
    let flows = app.service.flows().await?;
    let (told, problem) = match replayed {
        Ok(replay) => (replay.map(|it| in_words(&it, app.service.now())), None),
        Err(problem) => (None, Some(problem)),
    };
    Ok(ReplaysPage {
        shell: visitor.shell(&app.service, None).await?,
        flows: flows.iter().map(choice).collect(),
        policy: form.policy.clone(),
        problem,
        told,
        csrf: visitor.0.csrf.shown(),
    })
}

fn in_words(replay: &Replay, now: Timestamp) -> ReplayTold {
    let count = |is: fn(&Compared) -> bool| replay.rows.iter().filter(|it| is(&it.compared)).count();
    let differs = count(|it| matches!(it, Compared::Differs { .. }));
    let unknown = count(|it| matches!(it, Compared::Unknown { .. }));
    let all = match replay.rows.len() {
        1 => "1 proposal".to_owned(),
        many => format!("{many} proposals"),
    };
    let untold = if unknown == 0 { String::new() } else { format!(", and of {unknown} it cannot be told") };
    let (tone, otherwise) = match (differs, unknown) {
        (0, 0) => (Tone::Good, "none would".to_owned()),
        (0, _) => (Tone::Plain, "none would".to_owned()),
        (some, _) => (Tone::Care, format!("{some} would")),
    };
    let nothing = replay.rows.is_empty() && replay.next.is_none();
    let words = format!("Of {all} {otherwise} end otherwise{untold}.");
    ReplayTold {
        tone: if nothing { Tone::Plain } else { tone },
        words: if nothing { "Nothing was proposed in this flow yet, or nothing more.".to_owned() } else { words },
        rows: replay.rows.iter().filter_map(|it| row(it, now)).collect(),
        next: replay.next.as_ref().map(|it| Line::new(it.token())),
    }
}

/// What would end as it did has no row.
fn row(replayed: &Replayed, now: Timestamp) -> Option<ReplayRow> {
    let would_be = match &replayed.compared {
        Compared::Same { .. } => return None,
        Compared::Differs { would_be } => would(would_be),
        Compared::Unknown { why } => Would::Unknown(why.detail()),
    };
    let was = match replayed.was.outcome {
        Became::Commit => "was let through",
        Became::Observe => "was let through, and marked",
        Became::Hold => "was held",
        Became::Reject => "was rejected",
    };
    Some(ReplayRow {
        node: Line::new(replayed.node.as_str()),
        thread: Line::new(replayed.thread.as_str()),
        thread_url: format!("/threads/{}", replayed.thread),
        version: replayed.on_version,
        was,
        was_codes: lines(replayed.was.codes.iter().map(String::as_str)),
        would_be,
        at: moment(replayed.at, now),
    })
}

fn would(it: &WouldBe) -> Would {
    let (tone, words) = match it.outcome {
        Became::Commit => (Tone::Good, "Would be let through"),
        Became::Observe => (Tone::Care, "Would be let through, and marked"),
        Became::Hold => (Tone::Care, "Would be held"),
        Became::Reject => (Tone::Bad, "Would be rejected"),
    };
    let errors = it.errors.iter().take(ERRORS_SHOWN);
    Would::Be {
        tone,
        words,
        reasons: lines(it.reasons.iter().map(String::as_str)),
        errors: errors.map(|it| error_row(it.code.as_str(), it.pointer.as_str(), &it.detail)).collect(),
        more: it.errors.len().saturating_sub(ERRORS_SHOWN),
    }
}
