//! `GET /threads/{thread}/episode`: a run of agents, with what remains of it to download.

mod import;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::Value;

use super::failure::Failure;
use super::log::words;
use super::parts::moment;
use super::view::episode::{Badge, EpisodePage, EventRow, Fact, FileRow, Head, PlanHead, StepRow};
use super::view::shell::{Shell, Tone};
use super::view::text::{Json, Line, Prose};
use super::visitor::Visitor;
use crate::domain::episode::Artefact;
use crate::domain::episode::goal::Episode;
use crate::domain::episode::imported::cut;
use crate::domain::episode::record::{Record, phase};
use crate::domain::episode::state::{self, Status};
use crate::domain::episode::told;
use crate::domain::event::EventType;
use crate::domain::id::{ReviewId, ThreadId};
use crate::domain::json::canonical::canonical;
use crate::domain::time::Timestamp;
use crate::service::episodes::Run;
use crate::service::error::{Error, Result};
use crate::web::app::App;

/// Events that one page lists; the file has all.
const EVENTS_SHOWN: usize = 300;
/// Steps of a plan that one page lists: ours have as many at most, of others' the file has all.
const STEPS_SHOWN: usize = 100;
/// Numbers, and things that a run made, that one page lists.
const FACTS_SHOWN: usize = 200;
/// Characters of one text: an event of ours has four times as many at most, of an imported one any number.
const TEXT_CHARS_SHOWN: usize = 4_000;

/// `GET /threads/{thread}/episode`.
pub async fn show(app: web::Data<App>, visitor: Visitor, thread: web::Path<String>) -> Result<EpisodePage> {
    page(&app, &visitor, &thread).await
}

/// `GET /threads/{thread}/episode/{artefact}`: one file.
pub async fn download(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    path: web::Path<(String, String)>,
) -> std::result::Result<HttpResponse, Failure> {
    let (thread, file) = path.into_inner();
    let (name, bytes) =
        file_of(&app, &visitor, (&thread, &file)).await.map_err(|error| Failure::of(&request, error))?;
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")))
        .body(bytes))
}

/// A file of a run. What an imported one is called was checked when it was imported: letters, digits and `._-`.
async fn file_of(app: &App, visitor: &Visitor, (thread, file): (&str, &str)) -> Result<(String, Vec<u8>)> {
    let id = ThreadId::try_from(thread).map_err(|_| Error::NotFound("thread"))?;
    let reader = visitor.account();
    let files = app.service.files_of_run((reader.id.as_str(), &reader.into()), &id).await?;
    files.into_iter().find(|it| it.0 == file).ok_or(Error::NotFound("artefact"))
}

async fn page(app: &App, visitor: &Visitor, thread: &str) -> Result<EpisodePage> {
    let service = &app.service;
    let id = ThreadId::try_from(thread).map_err(|_| Error::NotFound("thread"))?;
    let (shell, now) = (visitor.shell(service, None).await?, service.now());
    let own = shell.clone();
    let reader = visitor.account();
    match service.of_run((reader.id.as_str(), &reader.into()), &id, move |run| of_run(run, own, now)).await {
        Err(Error::Imported) => Ok(import::page(&service.imported_run(&id).await?, shell, now)),
        page => page,
    }
}

fn of_run(run: &Run, shell: Shell, now: Timestamp) -> EpisodePage {
    let Run { thread, timeline } = run;
    let (id, status) = (&thread.id, state::status(timeline.events()));
    let told: Vec<&Record> = timeline.events().iter().filter(|it| !it.is_projection()).collect();
    let state = state::state(timeline.events());
    let files = Artefact::ALL.into_iter().filter(|it| status.is_final() || !it.is_of_finished_runs());
    EpisodePage {
        shell,
        thread: Line::new(id.as_str()),
        head: Head::Own { thread_url: format!("/threads/{id}"), flow: Line::new(thread.flow.as_str()) },
        task: Line::new(state["goal"]["task"].as_str().unwrap_or_default()),
        status: standing(status, thread.hold.is_some(), thread.episode.as_ref()),
        summary: summary(&state),
        begun: moment(thread.created_at, now),
        plan: plan(&state),
        steps: steps(&state),
        earlier: told.len().saturating_sub(EVENTS_SHOWN),
        events: told.iter().skip(told.len().saturating_sub(EVENTS_SHOWN)).map(|it| event(it, now)).collect(),
        outcomes: outcomes(&state["outcomes"]),
        files: files.map(|it| file(id, it.file())).collect(),
    }
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

/// How a run that is over ended.
pub(super) fn ended(status: Status) -> Badge {
    standing(status, false, None)
}

fn shown(text: &Value) -> String {
    cut(text.as_str().unwrap_or_default(), TEXT_CHARS_SHOWN)
}

fn summary(state: &Value) -> Option<Prose> {
    state["outcomes"]["summary"].is_string().then(|| Prose::new(shown(&state["outcomes"]["summary"])))
}

fn plan(state: &Value) -> Option<PlanHead> {
    let plan = &state["plan"];
    let source = plan["source"].as_str().filter(|it| *it != state::NO_PLAN)?;
    let rationale = plan["rationale"].is_string().then(|| Prose::new(shown(&plan["rationale"])));
    Some(PlanHead { source: Line::new(cut(source, TEXT_CHARS_SHOWN)), rationale })
}

fn steps(state: &Value) -> Vec<StepRow> {
    state["plan"]["steps"].as_array().into_iter().flatten().take(STEPS_SHOWN).map(step).collect()
}

fn step(step: &Value) -> StepRow {
    let (words, tone) = match step["status"].as_str().unwrap_or_default() {
        "running" => ("under way", Tone::Care),
        "done" => ("done", Tone::Good),
        "skipped" => ("left out", Tone::Plain),
        "failed" => ("failed", Tone::Bad),
        "vetoed" => ("not let do it", Tone::Bad),
        "blocked" => ("blocked", Tone::Bad),
        _ => ("to do", Tone::Plain),
    };
    StepRow {
        description: Line::new(shown(&step["description"])),
        kind: Line::new(shown(&step["kind"])),
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
    let branches = if by_gateway { told::branches_named(record) } else { Vec::new() };
    let what = match (record.event_type.as_deref(), branches.as_slice()) {
        (_, []) => what.to_owned(),
        (Some("thread.forked"), names) => format!("{what}: {}", names.join(", ")),
        (_, names) => format!("{what}, joined out of {}", names.join(", ")),
    };
    EventRow {
        what: Line::new(what),
        tone: tone(record),
        who: (!by_gateway).then(|| Line::new(record.agent_id.as_str())),
        review_url: review.map(|it| format!("/reviews/{it}")),
        says: says(record).filter(|_| !by_gateway),
        at: moment(Timestamp::parse(&record.timestamp).unwrap_or(now), now),
    }
}

fn says(record: &Record) -> Option<Json> {
    let text = || cut(&canonical(&Value::Object(record.payload.clone())), TEXT_CHARS_SHOWN);
    (!record.payload.is_empty()).then(|| Json::new(text()))
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
    let value = |it: &Value| Json::new(cut(&canonical(it), TEXT_CHARS_SHOWN));
    let metrics = outcomes["metrics"].as_object().into_iter().flatten();
    let gateway = outcomes["x-gateway"].as_object().into_iter().flatten();
    let fact = |(name, it): (&String, &Value)| Fact { name: Line::new(cut(name, TEXT_CHARS_SHOWN)), value: value(it) };
    let artifacts = outcomes["artifacts"].as_array().into_iter().flatten();
    let made = artifacts.map(|it| match it.is_string() {
        // The published text has names of files, where the published schema has objects.
        true => Fact { name: Line::new("artifact"), value: value(it) },
        false => Fact { name: Line::new(shown(&it["type"])), value: value(&it["uri"]) },
    });
    metrics.map(fact).chain(gateway.map(fact)).chain(made).take(FACTS_SHOWN).collect()
}

fn file(thread: &ThreadId, name: &str) -> FileRow {
    let words = match Artefact::of_file(name) {
        Some(Artefact::Events) => "what happened, line by line",
        Some(Artefact::Learn) => "what was learned",
        Some(Artefact::State) => "the state, as it follows from the events",
        Some(Artefact::Summary) => "the run in numbers",
        Some(Artefact::Final) => "that it is over, and how",
        Some(Artefact::Manifest) => "names, hashes and sizes of the others",
        None => "a file that the run made",
    };
    FileRow { name: Line::new(name), url: format!("/threads/{thread}/episode/{name}"), words }
}
