//! `GET /log` and `GET /log/{event}`: the audit log, newest event first. `GET /log.jsonl`: the same as a download.

use std::collections::BTreeMap;

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use countersign_domain::json::canonical::canonical;
use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::{EventId, FlowId, InterruptId, ReviewId, ThreadId};
use countersign_domain::primitives::sanitize;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::error::{Error, Result};
use countersign_service::identity::requester_names::RequesterName;
use countersign_service::log::Log;
use countersign_service::log::browse as service;
use countersign_service::log::browse::{LogAudience, LogFilter};
use countersign_service::log::sequencer::SequencedEvent;
use countersign_service::policies::Policies;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::browse_view::{EventFact, EventPage, LogEventRow, LogPage};
use crate::api::events::event_json;
use crate::pages::shared::format::moment;
use crate::pages::shared::layout::DigestText;
use crate::pages::shared::return_path::encoded;
use crate::pages::shared::safe_text::{SafeJson, SafeLine};
use crate::pages::shared::visitor::Visitor;
use crate::pages::threads::list_view::{FilterState, SelectOption};
use crate::state::Capability;

const ROWS_MAX: usize = 50;

/// Maximum number of events in one download, and number of events that one query reads.
const FILE_EVENTS_MAX: usize = 10_000;
const FILE_PAGE: usize = 500;

/// Maximum number of queries for one download. If few events match, each query scans many events.
const FILE_PAGES_MAX: usize = 100;

/// Filters from the address. An empty text is no filter.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct LogQuery {
    kind: String,
    flow: String,
    thread: String,
    who: String,
    since: String,
    until: String,
    below: Option<u64>,
}

/// `GET /log`.
pub async fn show(
    policies: Capability<Policies>,
    log: Capability<Log>,
    visitor: Visitor,
    asked: web::Query<LogQuery>,
) -> Result<LogPage> {
    let now = visitor.now();
    let audience = LogAudience::of(visitor.account().role);
    let sought = sought(&asked);
    let (found, problem) = match &sought {
        Ok(sought) => match log.log_page(sought, audience, asked.below, ROWS_MAX).await {
            // A mistyped thread gets a sentence on the page, because an error page would lose the other filters.
            Err(Error::NotFound(_)) => {
                (service::LogListing::default(), Some("This thread does not exist. Check its name.".to_owned()))
            }
            found => (found?, None),
        },
        Err(problem) => (service::LogListing::default(), Some((*problem).to_owned())),
    };
    let filter = if sought == Ok(LogFilter::default()) { FilterState::None } else { FilterState::Some };
    let full = found.lines.len() == ROWS_MAX;
    let flows = policies.flows().await?;
    let flows = flows.iter().map(|it| SelectOption::new(it.as_str(), it.as_str(), &asked.flow));
    // Only overseers may read access events, so other readers are not offered that filter.
    let kinds = super::event_names::KINDS.iter().filter(|it| audience == LogAudience::Overseers || it.0 != "access");
    let kinds = kinds.map(|(kind, label)| SelectOption::new(kind, label, &asked.kind));
    let typed = |text: &str| SafeLine::new(text);
    Ok(LogPage {
        shell: visitor.shell(None).await?,
        kinds: std::iter::once(SelectOption::new("", "All kinds", &asked.kind)).chain(kinds).collect(),
        flows: std::iter::once(SelectOption::new("", "All flows", &asked.flow)).chain(flows).collect(),
        thread: typed(&asked.thread),
        who: typed(&asked.who),
        since: typed(&asked.since),
        until: typed(&asked.until),
        filter,
        problem,
        rows: found.lines.iter().map(|it| row(&it.event, it.index, &found.names, now)).collect(),
        // A short page that goes on has reached the limit of the scan, so it says how far it looked.
        looked: (!full && found.below.is_some()).then_some(found.looked),
        more_url: found.below.map(|it| address("/log", &asked, Some(it))),
        download_url: (audience == LogAudience::Overseers && sought.is_ok())
            .then(|| address("/log.jsonl", &asked, None)),
    })
}

fn sought(asked: &LogQuery) -> std::result::Result<LogFilter, &'static str> {
    let said = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let time = |text: &str, why: &'static str| said(text).map(|it| moment_of(&it).ok_or(why)).transpose();
    Ok(LogFilter {
        kind: said(&asked.kind),
        flow: said(&asked.flow)
            .map(FlowId::try_from)
            .transpose()
            .map_err(|_| "This is not a valid name of a flow. Choose a flow from the list.")?,
        thread: said(&asked.thread)
            .map(ThreadId::try_from)
            .transpose()
            .map_err(|_| "This is not a valid name of a thread. Check its spelling.")?,
        who: said(&asked.who),
        since: time(&asked.since, "“From” needs a date and time, such as 2026-11-03T14:32.")?,
        until: time(&asked.until, "“To” needs a date and time, such as 2026-11-03T14:32.")?,
    })
}

/// Parses a time as browsers send it, with or without seconds, or as a full timestamp.
pub(in crate::pages) fn moment_of(text: &str) -> Option<Timestamp> {
    let full = match text.len() {
        16 => format!("{text}:00.000Z"),
        19 => format!("{text}.000Z"),
        // Other lengths are passed on unchanged, because the timestamp parser rejects bad ones.
        _ => text.to_owned(),
    };
    serde_json::from_value(Value::String(full)).ok()
}

/// Builds the address of a page or download with the same filters.
fn address(page: &str, asked: &LogQuery, below: Option<u64>) -> String {
    let given = [
        ("kind", &asked.kind),
        ("flow", &asked.flow),
        ("thread", &asked.thread),
        ("who", &asked.who),
        ("since", &asked.since),
        ("until", &asked.until),
    ];
    let given = given.into_iter().filter(|(_, value)| !value.is_empty());
    let mut parts: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    parts.extend(below.map(|it| format!("below={it}")));
    if parts.is_empty() { page.to_owned() } else { format!("{page}?{}", parts.join("&")) }
}

fn row(event: &Event, index: Option<u64>, names: &BTreeMap<String, RequesterName>, now: Timestamp) -> LogEventRow {
    let name = event.kind.name();
    let thread = event.thread.as_ref().map(|it| (SafeLine::new(it.as_str()), format!("/threads/{it}")));
    LogEventRow {
        url: format!("/log/{}", event.id),
        words: SafeLine::new(super::event_names::of(name)),
        name: SafeLine::new(name),
        index,
        flow: event.flow.as_ref().map(|it| SafeLine::new(it.as_str())),
        thread,
        who: named(event, names),
        at: moment(event.at, now),
    }
}

/// Returns the people and tokens that an event names, in the order of its members.
fn named(event: &Event, names: &BTreeMap<String, RequesterName>) -> Vec<SafeLine> {
    let members = event.data.as_object().into_iter().flat_map(|it| it.values());
    members.filter_map(|it| names.get(it.as_str()?)).map(called).collect()
}

fn called(who: &RequesterName) -> SafeLine {
    match who {
        // A token acts for its owner, so the label names both.
        RequesterName::Token { name, owner } => SafeLine::new(format!("{name}, of {owner}")),
        RequesterName::Person(name) => SafeLine::new(name.as_str()),
    }
}

/// `GET /log/{event}`.
pub async fn show_event(log: Capability<Log>, visitor: Visitor, event: web::Path<String>) -> Result<EventPage> {
    let now = visitor.now();
    // A malformed id names no event, so it gets 404 like an unknown one.
    let id = EventId::try_from(event.as_str()).map_err(|_| Error::NotFound("event"))?;
    let told = log.event_view(&id, visitor.account()).await?;
    let members = told.event.data.as_object().into_iter().flatten();
    Ok(EventPage {
        shell: visitor.shell(None).await?,
        row: row(&told.event, told.index, &told.names, now),
        seq: told.event.seq,
        id: SafeLine::new(id.as_str()),
        hash: told.hash.map(|it| DigestText::new(it.to_string())),
        previous: told.event.previous.map(|it| DigestText::new(it.to_string())),
        facts: members.map(|(name, value)| fact(name, value, &told)).collect(),
    })
}

fn fact(name: &str, value: &Value, told: &service::EventView) -> EventFact {
    // A number or an object is no id, so it gets no link and no name.
    let text = value.as_str().unwrap_or_default();
    let url = match (name, &told.event.thread) {
        ("review", Some(_)) => ReviewId::try_from(text).ok().map(|it| format!("/reviews/{it}")),
        ("interrupt", None) => InterruptId::try_from(text).ok().map(|it| format!("/interrupts/{it}")),
        ("version", Some(thread)) => value.as_u64().map(|it| format!("/threads/{thread}/versions/{it}")),
        _ => None,
    };
    let called = told.names.get(text).map(called);
    EventFact { name: SafeLine::new(name), value: SafeJson::new(canonical(value)), called, url }
}

/// `GET /log.jsonl`: streams one line per matching event, newest first.
pub async fn download(log: Capability<Log>, visitor: Visitor, query: web::Query<LogQuery>) -> Result<HttpResponse> {
    let sought = sought(&query).map_err(|problem| Error::invalid("", problem))?;
    let audience = LogAudience::of(visitor.account().role);
    // The first query runs before the headers are sent, so that an error still gets its status.
    let first = log.log_page(&sought, audience, query.below, FILE_PAGE).await?;
    let begun =
        LogDownload { log, sought, audience, next: Some(LogDownloadStep::Have(Box::new(first))), sent: 0, pages: 0 };
    let lines = stream::unfold(begun, |mut sending| async move {
        let chunk = sending.chunk().await?;
        Some((chunk, sending))
    });
    Ok(HttpResponse::Ok()
        .content_type("application/jsonl")
        // The lines depend on the role of the reader, so no cache may keep them.
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_DISPOSITION, "attachment; filename=\"countersign-log.jsonl\""))
        .streaming(Box::pin(lines)))
}

struct LogDownload {
    log: Capability<Log>,
    sought: LogFilter,
    audience: LogAudience,
    next: Option<LogDownloadStep>,
    sent: usize,
    pages: usize,
}

enum LogDownloadStep {
    Have(Box<service::LogListing>),
    Below(u64),
}

impl LogDownload {
    async fn chunk(&mut self) -> Option<std::result::Result<web::Bytes, Error>> {
        let page = match self.next.take()? {
            LogDownloadStep::Have(page) => *page,
            LogDownloadStep::Below(below) => {
                match self.log.log_page(&self.sought, self.audience, Some(below), FILE_PAGE).await {
                    Ok(page) => page,
                    Err(error) => {
                        // The headers are already sent, so the error can only break the download and be logged.
                        tracing::error!(%error, "a download of the audit log was interrupted");
                        return Some(Err(error));
                    }
                }
            }
        };
        self.sent += page.lines.len();
        self.pages += 1;
        let mut text = String::new();
        for line in page.lines {
            let placed = SequencedEvent::untraced(line.index.unwrap_or_default(), line.event);
            let mut told = event_json(&placed);
            // An event without an index gets null, because zero would be a wrong position.
            if line.index.is_none() {
                told["index"] = Value::Null;
            }
            // Text of agents may contain control or bidirectional characters that mislead a reader of the file.
            text.push_str(&sanitize::json(&told.to_string()));
            text.push('\n');
        }
        if let Some(below) = page.below {
            // The last line says where to go on, so that a cut file does not look complete.
            if self.sent + FILE_PAGE > FILE_EVENTS_MAX || self.pages == FILE_PAGES_MAX {
                text.push_str(&format!("{}\n", json!({"go_on_below": below})));
            } else {
                self.next = Some(LogDownloadStep::Below(below));
            }
        }
        Some(Ok(web::Bytes::from(text)))
    }
}
