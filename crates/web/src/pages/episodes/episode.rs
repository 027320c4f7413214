//! `GET /threads/{thread}/episode`: one episode of agents, with its run artifacts to download.

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use countersign_domain::episode::Artefact;
use countersign_domain::episode::event_line::{EventRecord, phase};
use countersign_domain::episode::from_thread;
use countersign_domain::episode::state::{self};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{ReviewId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_service::episodes::Episodes;
use countersign_service::episodes::record::EpisodeRecord;
use countersign_service::error::{Error, Result};

use super::episode_view::{EpisodeEventRow, EpisodeHeadView, EpisodePage};
use super::run_parts::{EVENTS_SHOWN, file, outcomes, plan, says, standing, steps, summary};
use crate::pages::log::event_names;
use crate::pages::shared::format::moment;
use crate::pages::shared::layout::{PageLayout, Tone};
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// `GET /threads/{thread}/episode`.
pub async fn show(episodes: Capability<Episodes>, visitor: Visitor, thread: web::Path<String>) -> Result<EpisodePage> {
    let id = ThreadId::try_from(thread.as_str()).map_err(|_| Error::NotFound("thread"))?;
    let (shell, now) = (visitor.shell(None).await?, visitor.now());
    // The closure takes a copy, because the page of an imported run needs the shell too.
    let own = shell.clone();
    let reader = visitor.account();
    match episodes.of_run(reader.id.as_str(), &reader.into(), &id, move |run| of_run(run, own, now)).await {
        Err(Error::Imported) => Ok(super::imported::page(&episodes.imported_run(&id).await?, shell, now)),
        page => page,
    }
}

/// `GET /threads/{thread}/episode/{artefact}`: downloads one file.
pub async fn download(
    episodes: Capability<Episodes>,
    visitor: Visitor,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse> {
    let (thread, file) = path.into_inner();
    let (name, bytes) = file_of(&episodes, &visitor, &thread, &file).await?;
    Ok(HttpResponse::Ok()
        // Agents wrote the content, so the browser must save it and never render it.
        .content_type("application/octet-stream")
        // The files depend on the permissions of the reader, so no cache may keep them.
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")))
        .body(bytes))
}

/// Returns a file of an episode. The name is safe in a header: the import accepts only letters, digits and `._-`.
async fn file_of(episodes: &Episodes, visitor: &Visitor, thread: &str, file: &str) -> Result<(String, Vec<u8>)> {
    let id = ThreadId::try_from(thread).map_err(|_| Error::NotFound("thread"))?;
    let reader = visitor.account();
    let files = episodes.files_of_run(reader.id.as_str(), &reader.into(), &id).await?;
    // The name is compared with the run's own files, so a path in it leads nowhere.
    files.into_iter().find(|it| it.0 == file).ok_or(Error::NotFound("artefact"))
}

fn of_run(run: &EpisodeRecord, shell: PageLayout, now: Timestamp) -> EpisodePage {
    let EpisodeRecord { thread, timeline } = run;
    let (id, status) = (&thread.id, state::status(timeline.events()));
    // A projection contains the whole state, which the page shows anyway, so the timeline leaves it out.
    let told: Vec<&EventRecord> = timeline.events().iter().filter(|it| !it.is_projection()).collect();
    let state = state::state(timeline.events());
    // Files about the result of a run exist only after its end.
    let files = Artefact::ALL.into_iter().filter(|it| status.is_final() || !it.is_of_finished_runs());
    EpisodePage {
        shell,
        thread: SafeLine::new(id.as_str()),
        head: EpisodeHeadView::Own { thread_url: format!("/threads/{id}"), flow: SafeLine::new(thread.flow.as_str()) },
        task: SafeLine::new(state["goal"]["task"].as_str().unwrap_or_default()),
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

/// Converts an event. The gateway's own events get a description. An agent's event shows its phase and its claim.
fn event(record: &EventRecord, now: Timestamp) -> EpisodeEventRow {
    let by_gateway = record.is(phase::RUNTIME) || record.is(phase::START);
    let what = match (&record.event_type, record.phase.as_str()) {
        (Some(name), phase::RUNTIME) => of_gateway(name),
        (_, phase::START) => "Episode started",
        (_, other) => other,
    };
    // An agent can name any review in its event, so only events of the gateway get a link.
    let review = record.text("review").filter(|_| by_gateway).and_then(|it| ReviewId::try_from(it).ok());
    let branches = if by_gateway { from_thread::branches_named(record) } else { Vec::new() };
    let what = match (record.event_type.as_deref(), branches.as_slice()) {
        (_, []) => what.to_owned(),
        (Some("thread.forked"), names) => format!("{what}: {}", names.join(", ")),
        (_, names) => format!("{what}, from {}", names.join(", ")),
    };
    EpisodeEventRow {
        what: SafeLine::new(what),
        tone: tone(record),
        who: (!by_gateway).then(|| SafeLine::new(record.agent_id.as_str())),
        review_url: review.map(|it| format!("/reviews/{it}")),
        says: says(record).filter(|_| !by_gateway),
        at: moment(Timestamp::parse(&record.timestamp).unwrap_or(now), now),
    }
}

fn of_gateway(name: &str) -> &'static str {
    let kind = EventType::ALL.iter().find(|it| it.name() == name);
    kind.map_or("Unknown event", |it| event_names::of(it.name()))
}

fn tone(record: &EventRecord) -> Tone {
    match record.event_type.as_deref().filter(|_| record.is(phase::RUNTIME)) {
        Some("transition.held" | "write.lapsed" | "thread.closed") => Tone::Care,
        Some("transition.approved" | "transition.committed" | "write.confirmed") => Tone::Good,
        Some("transition.denied" | "transition.rejected" | "receipt.revoked") => Tone::Bad,
        _ => Tone::Plain,
    }
}
