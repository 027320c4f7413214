//! Proposals, and what became of them.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::{self, Bytes};
use super::problem::Problem;
use super::repeat::{Post, told};
use super::threads::Reason;
use super::{of_own_flow, waiting};
use crate::domain::account::MachineRole;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::opening::{Opened, Opening};
use crate::domain::id::{NodeId, ReviewId, ThreadId};
use crate::domain::json::diff::Change;
use crate::domain::json::patch::Format;
use crate::domain::policy::{Kind, RedactedLeaf, Warning};
use crate::domain::repeat::Told;
use crate::domain::review::{CannotDecide, Hold, Place};
use crate::domain::tool::Tool;
use crate::domain::usage::{Malformed, Usage};
use crate::service::electorate::Elector;
use crate::service::error::{Error, Result as Done};
use crate::service::proposals::{Asked, Proposal};
use crate::service::revealing::HiddenPlace;
use crate::service::transitions::{Answer, warnings_for_everyone};
use crate::web::app::App;
use crate::web::auth::Machine;

/// `POST /v1/threads/{thread}/transitions`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Propose {
    /// As which node.
    pub node: NodeId,
    /// On which head.
    pub parent: Digest,
    /// For what.
    pub patch: Value,
    /// In which form: `merge` (the default), `merge-patch` or `json-patch`.
    pub format: Option<Format>,
    /// Ask for a receipt for the head as it stands; `patch` must be `{}`.
    #[serde(default)]
    pub reaffirm: bool,
    /// Which try, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The tool that is called along with it: `{name, arguments}`.
    #[schema(value_type = Option<super::answers::ToolCall>)]
    pub tool: Option<Value>,
    /// What it took: `{tokens, cost}`, both optional.
    #[schema(value_type = Option<super::answers::Used>)]
    pub usage: Option<Value>,
    /// Why, in the agent's words; shown to people as untrusted.
    #[schema(max_length = 8000)]
    pub rationale: Option<String>,
}

/// `POST /v1/threads/{thread}/rollbacks`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// Which version's state.
    pub to_version: u64,
    /// As which node.
    pub node: NodeId,
    /// On which head.
    pub parent: Digest,
    /// Which try, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
}

/// Takes a proposal.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/transitions", tag = "proposals", request_body = Propose,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
    ),
    responses((status = 201, description = "It is in the chain", body = super::answers::Committed), (status = 202, description = "People are asked", body = super::answers::Held))
)]
pub async fn propose(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    thread: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let thread: ThreadId = body::name("/thread", &thread)?;
        let ask: Propose = body::read(&app, &bytes)?;
        let proposal = read_proposal(thread, ask)?;
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        post.once(app.service.propose(&machine.0, &proposal), answer).await
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

fn read_proposal(thread: ThreadId, ask: Propose) -> Done<Proposal> {
    if ask.reaffirm && (ask.tool.is_some() || ask.usage.is_some()) {
        return Err(Error::invalid("", "reaffirm takes no tool and no usage"));
    }
    let (tool, usage) = read_along(ask.tool.as_ref(), ask.usage.as_ref())?;
    let asked = match (ask.reaffirm, &ask.patch) {
        (true, Value::Object(patch)) if patch.is_empty() && ask.format.is_none() => Asked::Reaffirm,
        (true, _) => return Err(Error::invalid("/patch", "reaffirm takes an empty patch and no format")),
        (false, _) => Asked::Patch { format: ask.format.unwrap_or(Format::Merge), patch: ask.patch },
    };
    let attempt = ask.attempt.unwrap_or(1);
    Ok(Proposal {
        thread,
        node: ask.node,
        parent: ask.parent,
        ask: asked,
        attempt,
        rationale: ask.rationale,
        tool,
        usage,
    })
}

/// What comes along with a proposal: a tool and what it took.
fn read_along(tool: Option<&Value>, usage: Option<&Value>) -> Done<(Option<Tool>, Usage)> {
    let below = |at: &str, wrong: Malformed| Error::invalid(&format!("{at}{}", wrong.pointer), wrong.detail);
    let tool = tool.map(Tool::read).transpose().map_err(|it| below("/tool", it))?;
    let usage = usage.map(Usage::read).transpose().map_err(|it| below("/usage", it))?;
    Ok((tool, usage.unwrap_or_default()))
}

/// Asks for an ancestor's state again.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/rollbacks", tag = "proposals", request_body = RollBack,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
    ),
    responses((status = 201, description = "It is in the chain, in a flow that only observes", body = super::answers::Committed), (status = 202, description = "People are asked", body = super::answers::Held))
)]
pub async fn roll_back(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    thread: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let thread: ThreadId = body::name("/thread", &thread)?;
        let ask: RollBack = body::read(&app, &bytes)?;
        let proposal = Proposal {
            thread,
            node: ask.node,
            parent: ask.parent,
            ask: Asked::Rollback { to_version: ask.to_version },
            attempt: ask.attempt.unwrap_or(1),
            rationale: None,
            tool: None,
            usage: Usage::default(),
        };
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        post.once(app.service.propose(&machine.0, &proposal), answer).await
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

fn answer(app: &App, answer: &Answer) -> Done<Told> {
    match answer {
        Answer::Committed { version, transition, entry, changed, would_hold, warnings } => {
            let mut body = json!({
                "outcome": "committed", "version": version, "transition": transition, "entry": entry,
                "changed": changed,
            });
            if let Some(reasons) = would_hold {
                body["would_hold"] = json!(reasons);
            }
            put_warnings(&mut body, warnings);
            Ok(told(StatusCode::CREATED, &body))
        }
        Answer::Held { transition, hold, reasons, warnings, diff } => {
            let mut body = json!({
                "outcome": "held", "transition": transition, "review": review_of(app, hold),
                "reasons": reasons, "diff": diff_json(diff),
            });
            put_warnings(&mut body, warnings);
            Ok(told(StatusCode::ACCEPTED, &body))
        }
        Answer::Rejected(refusal) => Err(Error::Rejected(refusal.clone())),
    }
}

/// What rules warn of: `[{rule, pointer, detail}]`, if they do.
fn put_warnings(told: &mut Value, warnings: &[Warning]) {
    let line = |it: &Warning| json!({"rule": it.rule, "pointer": it.pointer, "detail": it.detail});
    if !warnings.is_empty() {
        told["warnings"] = warnings.iter().map(line).collect();
    }
}

/// A review as machines are told it. None of them decides, and they are told so by a code like everybody.
fn review_of(app: &App, hold: &Hold) -> Value {
    let mut review = review_link(app, &hold.id);
    let needed: Vec<Value> =
        hold.stages.iter().map(|stage| json!({"groups": stage.groups, "need": stage.need})).collect();
    review["expires_at"] = json!(hold.expires_at);
    if let Some(last) = hold.extensions.last() {
        review["extended"] = json!({"by": last.person, "at": last.at, "was": last.was});
    }
    review["needed"] = json!(needed);
    if let Some(escalation) = hold.notices.escalation.as_ref().filter(|it| it.from <= app.service.now()) {
        review["escalated"] = json!({"at": escalation.from, "to": escalation.to});
    }
    let why =
        if hold.is_open(app.service.now()) { MACHINE } else { (CannotDecide::Ended.code(), "this review is over") };
    review["can_decide"] = json!(false);
    review["why_not"] = json!({"code": why.0, "detail": why.1});
    review
}

/// Why no token decides.
const MACHINE: (&str, &str) = ("machine", "people decide, signed in and in a browser; no token does");

/// People and whether each can decide now: `[{reviewer, name, can_decide, stages}]`, or `why_not` for `stages`.
fn people_json(people: &[Elector]) -> Value {
    let line = |it: &Elector| {
        let mut line = json!({"reviewer": it.account.id, "name": it.account.name, "can_decide": it.can_decide.is_ok()});
        match &it.can_decide {
            Ok(places) => put_places(&mut line, places),
            Err(why) => line["why_not"] = json!({"code": why.code(), "detail": why.to_string()}),
        }
        line
    };
    people.iter().map(line).collect()
}

/// The stages that somebody may decide; and in whose place, if only so.
fn put_places(line: &mut Value, places: &[Place]) {
    let stages: BTreeSet<u32> = places.iter().map(|it| it.stage).collect();
    line["stages"] = json!(stages);
    let other = |it: &Place| {
        Some(json!({"reviewer": it.absent.as_ref()?.person, "name": it.absent.as_ref()?.name, "stage": it.stage}))
    };
    let others: Vec<Value> = places.iter().filter_map(other).collect();
    if !others.is_empty() {
        line["for"] = json!(others);
    }
}

/// A review's name and address.
pub fn review_link(app: &App, review: &ReviewId) -> Value {
    json!({"id": review, "url": format!("{}/reviews/{review}", app.service.public_url())})
}

fn leaf_json(leaf: &RedactedLeaf) -> Value {
    match leaf {
        RedactedLeaf::Shown { pointer, value } => json!({"pointer": pointer, "value": value}),
        RedactedLeaf::Hidden { pointer } => json!({"pointer": pointer, "hidden": true}),
    }
}

/// Something hidden as auditors are told it: type, length class and commitment of each side that is there.
fn hidden_json(place: &HiddenPlace, opening: &Opening) -> Value {
    let side = |kind: Option<Kind>, tree: &Opened| {
        let mut told = json!(kind?);
        told["commitment"] = json!(tree.at(&place.pointer).and_then(Opened::root));
        Some(told)
    };
    let mut line = json!({"pointer": place.pointer});
    let sides = [("before", side(place.before, &opening.from)), ("after", side(place.after, &opening.to))];
    for (name, told) in sides.into_iter().filter_map(|(name, side)| Some((name, side?))) {
        line[name] = told;
    }
    line
}

fn diff_json(diff: &[Change]) -> Value {
    let line = |change: &Change| {
        let mut line = json!({"pointer": change.pointer});
        if let Some(before) = &change.before {
            line["before"] = before.clone();
        }
        if let Some(after) = &change.after {
            line["after"] = after.clone();
        }
        line
    };
    diff.iter().map(line).collect()
}

/// A transition with its statement and what the caller may see of its effect.
#[utoipa::path(
    get, path = "/v1/transitions/{digest}", tag = "proposals",
    params(
        ("digest" = Digest, Path, description = "The transition's digest"),
    ),
    responses((status = 200, description = "As far as the asker may see it", body = super::answers::TransitionTold))
)]
pub async fn read(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    digest: Path<String>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let digest: Digest = body::name("/digest", &digest)?;
        of_own_flow(&machine, &app.service.flow_of_transition(digest).await?, "transition")?;
        let told = app.service.told(digest).await?;
        let token = &machine.0.record;
        let mut answer = json!({
            "transition": digest, "thread": told.thread, "status": told.status,
            "statement": told.statement, "entry": told.entry,
        });
        let is_own = told.statement.principal == token.principal();
        if let (Some(arguments), true) = (&told.arguments, is_own || token.role != MachineRole::Agent) {
            answer["arguments"] = arguments.iter().map(leaf_json).collect();
        }
        match (token.role, is_own) {
            (MachineRole::Agent, true) => put_warnings(&mut answer, &warnings_for_everyone(&told.warnings)),
            (MachineRole::Agent, false) => {}
            _ => put_warnings(&mut answer, &told.warnings_shown),
        }
        answer["diff"] = match token.role {
            MachineRole::Agent => diff_json(&app.service.visible_to(token, &told).await?),
            _ => json!(told.redacted),
        };
        if token.role == MachineRole::Auditor {
            let opening = app.service.opening(digest).await?;
            answer["hidden"] = told.hidden.iter().map(|it| hidden_json(it, &opening)).collect();
            answer["opening"] = json!(opening);
        }
        if let Some(hold) = &told.hold {
            answer["review"] = review_of(&app, hold);
            // Who could decide is for whoever watches over people, and for nobody who might want to choose among them.
            if token.role == MachineRole::Auditor {
                answer["review"]["people"] = people_json(&app.service.electorate(&hold.id).await?);
            }
        }
        Ok(HttpResponse::Ok().json(answer))
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

/// What became of a transition; waits for it if asked to by `Prefer: wait=N`.
#[utoipa::path(
    get, path = "/v1/transitions/{digest}/decision", tag = "proposals",
    params(
        ("digest" = Digest, Path, description = "The transition's digest"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` waits up to so many seconds for the end", example = "wait=30"),
    ),
    responses((status = 200, description = "What became of it: the same bytes each time", body = crate::service::decision::Decision), (status = 202, description = "Still held: ask again", body = super::answers::StillHeld))
)]
pub async fn decision(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    digest: Path<String>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let digest: Digest = body::name("/digest", &digest)?;
        of_own_flow(&machine, &app.service.flow_of_transition(digest).await?, "transition")?;
        let look = async || Ok(app.service.decision(digest).await?.1);
        match waiting::until_there(&app, &request, look).await? {
            Some(decision) => Ok(HttpResponse::Ok().json(decision)),
            None => Ok(HttpResponse::Accepted().json(json!({"status": "held"}))),
        }
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

/// Takes a held proposal back.
#[utoipa::path(
    post, path = "/v1/transitions/{digest}/cancellation", tag = "proposals", request_body = Reason,
    params(
        ("digest" = Digest, Path, description = "The transition's digest"),
    ),
    responses((status = 200, description = "Taken back", body = super::answers::Cancelled))
)]
pub async fn cancel(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    digest: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let digest: Digest = body::name("/digest", &digest)?;
        let ask: Reason = body::read(&app, &bytes)?;
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        let work = app.service.cancel(&machine.0, digest, &ask.reason);
        let body = json!({"transition": digest, "status": "cancelled"});
        post.once(work, move |_, ()| Ok(told(StatusCode::OK, &body))).await
    };
    done.await.map_err(|error| Problem::of(&request, error))
}
