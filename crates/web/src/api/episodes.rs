//! `/v1/threads/{thread}/episode`: events that agents add to a run, and its run artifacts.

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};
use actix_web::web::Path;
use countersign_domain::episode::Artefact;
use countersign_domain::episode::agent_event::{AgentEvent, POSTED_MAX, Phase};
use countersign_domain::primitives::id::{EventId, NodeId, ThreadId};
use countersign_service::episodes::Episodes;
use countersign_service::episodes::record::NewEvent;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::threads::Threads;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use super::of_own_flow;
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// The body of `POST /v1/threads/{thread}/episode/events`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddEpisodeEventRequest {
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The phase of the episode.
    pub phase: Phase,
    /// The content: the members of its phase and any others, at most 16 KiB.
    #[schema(value_type = Object)]
    pub payload: Map<String, Value>,
    /// The id of the event in the same episode that caused this one.
    pub caused_by: Option<EventId>,
    /// The evidence for the event, in the agent's own names.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub evidence_ids: Vec<String>,
}

/// Add an event to an episode.
///
/// Returns 201 with the stored event. It has no effect on decisions. Returns 409 `wrong_state` if the thread has no
/// episode or the episode has ended.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/episode/events", tag = "episodes", request_body = AddEpisodeEventRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 201, description = "The stored event", body = super::responses::EpisodeEventAddedResponse))
)]
pub async fn add_event(
    episodes: Capability<Episodes>,
    post: IdempotentPost,
    thread: Path<String>,
) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let AddEpisodeEventRequest { node, phase, payload, caused_by, evidence_ids } = post.read()?;
    let new = NewEvent { thread, node, phase, payload, caused_by, evidence_ids };
    post.once(episodes.add_episode_event(&post.token, &new), |_, added: &AgentEvent| {
        let body = json!({
            "event": added.id, "thread": added.thread, "number": added.number, "phase": added.phase,
            "timestamp": added.at, "left": POSTED_MAX.saturating_sub(added.number),
        });
        Ok(told(StatusCode::CREATED, &body))
    })
    .await
}

/// Read a run artifact of an episode.
///
/// Returns 200 with one file, the same bytes each time for the same reader. Returns 404 if the file does not exist
/// yet.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/episode/{artefact}", tag = "episodes",
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
        ("artefact" = Artefact, Path, description = "The file. The last three exist once the episode is finished"),
    ),
    responses((status = 200, description = "The file", content(
        (Object = "application/json"), (String = "application/x-ndjson"),
    )))
)]
pub async fn artefact(
    identity: Capability<Identity>,
    threads: Capability<Threads>,
    episodes: Capability<Episodes>,
    machine: Machine,
    path: Path<(String, String)>,
) -> Result<HttpResponse> {
    let (thread, file) = path.into_inner();
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let wanted = Artefact::of_file(&file).ok_or(Error::NotFound("artefact"))?;
    // The reader decides which values are masked, so two roles can get different bytes.
    let (by, reader) = (machine.0.record.id.as_str(), &identity.reader_with(&machine.0.record).await?);
    match threads.flow_of(&thread).await {
        Ok(flow) => of_own_flow(&machine, &flow, "thread")?,
        // An imported run belongs to no flow, so only tokens without a flow can read it.
        Err(Error::Imported) if machine.0.record.flow.is_none() => {
            let files = episodes.files_of_run(by, reader, &thread).await?;
            let bytes = files.into_iter().find_map(|(name, bytes)| (name == file).then_some(bytes));
            return bytes.map(|it| answer(wanted, it)).ok_or(Error::NotFound("artefact"));
        }
        Err(error) => return Err(error),
    }
    let bytes = episodes.file_of_run(by, reader, &thread, wanted).await?;
    // The last three files exist only after the end of the run, so until then they are 404.
    bytes.map(|it| answer(wanted, it)).ok_or(Error::NotFound("artefact"))
}

fn answer(artefact: Artefact, bytes: Vec<u8>) -> HttpResponse {
    let kind = match artefact {
        // These files have one JSON value on each line.
        Artefact::Events | Artefact::Learn => "application/x-ndjson",
        Artefact::State | Artefact::Summary | Artefact::Final | Artefact::Manifest => "application/json",
    };
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, kind)).body(bytes)
}
