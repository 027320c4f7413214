//! `GET /threads/{thread}/episode`: a run of agents, with what remains of it to download.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use serde_json::Value;

use super::failure::Failure;
use super::inbox::WAITING_MAX;
use super::log::words;
use super::parts::{html, moment};
use super::view::episode::{Badge, EpisodePage, EventRow, Fact, FileRow, PlanHead, StepRow};
use super::view::shell::Tone;
use super::view::text::{Json, Line, Prose};
use super::visitor::Visitor;
use crate::domain::episode::Artefact;
use crate::domain::episode::goal::Episode;
use crate::domain::episode::plan::Step;
use crate::domain::episode::record::{Record, phase};
use crate::domain::episode::state::{self, Status};
use crate::domain::event::EventType;
use crate::domain::id::{ReviewId, ThreadId};
use crate::domain::json::canonical::canonical;
use crate::domain::time::Timestamp;
use crate::service::episodes::Run;
use crate::service::error::{Error, Result};
use crate::web::app::App;

/// Events that one page lists; the file has all.
const EVENTS_SHOWN: usize = 300;

/// `GET /threads/{thread}/episode`.
pub async fn show(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    thread: web::Path<String>,
) -> std::result::Result<HttpResponse, Failure> {
    let page = page(&app, &visitor, &thread).await.map_err(|error| Failure::of(&request, error))?;
    Ok(html(StatusCode::OK, page.render()))
}

/// `GET /threads/{thread}/episode/{artefact}`: one file.
pub async fn download(
    app: web::Data<App>,
    request: HttpRequest,
    _visitor: Visitor,
    path: web::Path<(String, String)>,
) -> std::result::Result<HttpResponse, Failure> {
    let (thread, file) = path.into_inner();
    let (artefact, bytes) = file_of(&app, &thread, &file).await.map_err(|error| Failure::of(&request, error))?;
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", artefact.file())))
        .body(bytes))
}

async fn file_of(app: &App, thread: &str, file: &str) -> Result<(Artefact, Vec<u8>)> {
    let id = ThreadId::try_from(thread).map_err(|_| Error::NotFound("thread"))?;
    let artefact = Artefact::of_file(file).ok_or(Error::NotFound("artefact"))?;
    let files = app.service.files_of_run(&id).await?;
    files.into_iter().find(|it| it.0 == artefact).ok_or(Error::NotFound("artefact"))
}

async fn page(app: &App, visitor: &Visitor, thread: &str) -> Result<EpisodePage> {
    let (service, viewer) = (&app.service, visitor.account());
    let id = ThreadId::try_from(thread).map_err(|_| Error::NotFound("thread"))?;
    let Run { thread, timeline } = service.run_of(&id).await?;
    let (events, now) = (timeline.events(), service.now());
    let told: Vec<&Record> = events.iter().filter(|it| !it.is_projection()).collect();
    let state = state::state(events);
    let plan = state::plan_as_it_stands(events);
    let steps = plan.as_ref().map_or(Vec::new(), |it| it.steps.iter().map(step).collect());
    let status = state::status(events);
    Ok(EpisodePage {
        shell: visitor.shell(service.waiting_for(viewer, WAITING_MAX).await?, None),
        thread: Line::new(id.as_str()),
        thread_url: format!("/threads/{id}"),
        flow: Line::new(thread.flow.as_str()),
        task: Line::new(state["goal"]["task"].as_str().unwrap_or_default()),
        status: standing(status, thread.hold.is_some(), thread.episode.as_ref()),
        summary: state["outcomes"]["summary"].as_str().map(Prose::new),
        begun: moment(thread.created_at, now),
        plan: plan.map(|it| PlanHead { source: Line::new(it.source), rationale: it.rationale.map(Prose::new) }),
        steps,
        earlier: told.len().saturating_sub(EVENTS_SHOWN),
        events: told.iter().skip(told.len().saturating_sub(EVENTS_SHOWN)).map(|it| event(it, now)).collect(),
        outcomes: outcomes(&state["outcomes"]),
        files: timeline_files(&id, status),
    })
}

fn standing(status: Status, held: bool, episode: Option<&Episode>) -> Badge {
    let over = episode.is_some_and(|it| it.ended.is_some());
    let (words, tone) = match status {
        Status::Ok => ("Done", Tone::Good),
        Status::Error => ("Failed", Tone::Bad),
        Status::Vetoed => ("Not let do it", Tone::Bad),
        Status::Aborted => ("Stopped", Tone::Care),
        Status::Partial => ("Done in part", Tone::Care),
        Status::Pending if held && !over => ("Waits for a decision", Tone::Care),
        Status::Pending => ("Goes on", Tone::Plain),
    };
    Badge { words, tone }
}

fn step(step: &Step) -> StepRow {
    let (words, tone) = match step.status.as_str() {
        "running" => ("under way", Tone::Care),
        "done" => ("done", Tone::Good),
        "skipped" => ("left out", Tone::Plain),
        "failed" => ("failed", Tone::Bad),
        "vetoed" => ("not let do it", Tone::Bad),
        _ => ("to do", Tone::Plain),
    };
    StepRow {
        description: Line::new(step.description.as_str()),
        kind: Line::new(step.kind.as_str()),
        status: Badge { words, tone },
    }
}

/// What the gateway did is told in its own words; of an agent, its phase and what it says.
fn event(record: &Record, now: Timestamp) -> EventRow {
    let by_gateway = record.is(phase::RUNTIME) || record.is(phase::START);
    let what = match (&record.event_type, record.phase.as_str()) {
        (Some(name), phase::RUNTIME) => of_gateway(name),
        (_, phase::START) => "The run began",
        (_, other) => other,
    };
    let review = record.text("review").filter(|_| by_gateway).and_then(|it| ReviewId::try_from(it).ok());
    let says = (!by_gateway && !record.payload.is_empty())
        .then(|| Json::new(canonical(&Value::Object(record.payload.clone()))));
    EventRow {
        what: Line::new(what),
        tone: tone(record),
        who: (!by_gateway).then(|| Line::new(record.agent_id.as_str())),
        review_url: review.map(|it| format!("/reviews/{it}")),
        says,
        at: moment(Timestamp::parse(&record.timestamp).unwrap_or(now), now),
    }
}

fn of_gateway(name: &str) -> &'static str {
    let kind = EventType::ALL.iter().find(|it| it.name() == name);
    kind.map_or("Something happened", |it| words::of(it.name()))
}

fn tone(record: &Record) -> Tone {
    match record.event_type.as_deref().filter(|_| record.is(phase::RUNTIME)) {
        Some("transition.held" | "write.lapsed" | "thread.closed") => Tone::Care,
        Some("transition.approved" | "transition.committed" | "write.confirmed") => Tone::Good,
        Some("transition.denied" | "transition.rejected" | "receipt.revoked") => Tone::Bad,
        _ => Tone::Plain,
    }
}

fn outcomes(outcomes: &Value) -> Vec<Fact> {
    let metrics = outcomes["metrics"].as_object().into_iter().flatten();
    let gateway = outcomes["x-gateway"].as_object().into_iter().flatten();
    let fact = |(name, value): (&String, &Value)| Fact { name: Line::new(name), value: Json::new(canonical(value)) };
    let artifacts = outcomes["artifacts"].as_array().into_iter().flatten();
    let made = artifacts.map(|it| Fact {
        name: Line::new(it["type"].as_str().unwrap_or_default()),
        value: Json::new(canonical(&it["uri"])),
    });
    metrics.map(fact).chain(gateway.map(fact)).chain(made).collect()
}

fn timeline_files(thread: &ThreadId, status: Status) -> Vec<FileRow> {
    let there = Artefact::ALL.into_iter().filter(|it| status.is_final() || !it.is_of_finished_runs());
    let row = |artefact: Artefact| FileRow {
        name: artefact.file(),
        url: format!("/threads/{thread}/episode/{}", artefact.file()),
        words: match artefact {
            Artefact::Events => "what happened, line by line",
            Artefact::Learn => "what was learned",
            Artefact::State => "the state, as it follows from the events",
            Artefact::Summary => "the run in numbers",
            Artefact::Final => "that it is over, and how",
            Artefact::Manifest => "hashes of the others, signed",
        },
    };
    there.map(row).collect()
}
