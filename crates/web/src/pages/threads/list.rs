//! `GET /threads`: lists and filters threads.

use actix_web::web;
use countersign_domain::primitives::id::FlowId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::thread::{Thread, ThreadStatusCode};
use countersign_service::error::{Error, Result};
use countersign_service::policies::Policies;
use countersign_service::threads::Threads;
use countersign_service::threads::list::{ThreadFilter, ThreadListCursor, ThreadSearchResult};
use serde::Deserialize;

use super::list_view::{FilterState, SelectOption, ThreadRow, ThreadsPage};
use super::thread::status_of;
use crate::pages::shared::format::moment;
use crate::pages::shared::return_path::encoded;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const ROWS_MAX: usize = 30;

/// Query value, label and code of each status.
const STATUSES: [(&str, &str, ThreadStatusCode); 4] = [
    ("open", "Open", ThreadStatusCode::Open),
    ("held", "Waiting for approval", ThreadStatusCode::Held),
    ("writing", "Being written", ThreadStatusCode::Writing),
    ("closed", "Closed", ThreadStatusCode::Closed),
];

/// The filters. An empty text is no filter.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct ThreadListQuery {
    flow: String,
    status: String,
    name: String,
    title: String,
    after: String,
}

/// `GET /threads`.
pub async fn show(
    policies: Capability<Policies>,
    threads: Capability<Threads>,
    visitor: Visitor,
    asked: web::Query<ThreadListQuery>,
) -> Result<ThreadsPage> {
    let now = visitor.now();
    let sought = sought(&asked);
    let (found, problem) = match &sought {
        Ok(sought) => {
            let after = Some(asked.after.as_str()).filter(|it| !it.is_empty());
            let after = after.map(|it| ThreadListCursor::read(it).ok_or(Error::NotFound("page"))).transpose()?;
            (threads.find_threads(sought, after.as_ref(), ROWS_MAX).await?, None)
        }
        Err(problem) => {
            (ThreadSearchResult { threads: Vec::new(), looked: 0, onward: None }, Some((*problem).to_owned()))
        }
    };
    let filter = if sought == Ok(ThreadFilter::default()) { FilterState::None } else { FilterState::Some };
    // A search stops after a number of rows, so a short page can still have a next one.
    let full = found.threads.len() == ROWS_MAX;
    let flows = policies.flows().await?;
    let flows = flows.iter().map(|it| SelectOption::new(it.as_str(), it.as_str(), &asked.flow));
    let statuses = STATUSES.iter().map(|(word, label, _)| SelectOption::new(word, label, &asked.status));
    Ok(ThreadsPage {
        shell: visitor.shell(None).await?,
        flows: std::iter::once(SelectOption::new("", "All flows", &asked.flow)).chain(flows).collect(),
        statuses: std::iter::once(SelectOption::new("", "Any status", &asked.status)).chain(statuses).collect(),
        name: SafeLine::new(asked.name.as_str()),
        title: SafeLine::new(asked.title.as_str()),
        filter,
        rows: found.threads.iter().map(|it| row(it, now)).collect(),
        looked: (!full && found.onward.is_some()).then_some(found.looked),
        more_url: found.onward.map(|it| onward(&asked, &it)),
        problem,
    })
}

fn sought(asked: &ThreadListQuery) -> std::result::Result<ThreadFilter, &'static str> {
    let said = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let status = match said(&asked.status) {
        None => None,
        Some(word) => Some(
            STATUSES.iter().find(|it| it.0 == word).ok_or("There is no such status. Choose a status from the list.")?.2,
        ),
    };
    let flow = said(&asked.flow)
        .map(FlowId::try_from)
        .transpose()
        .map_err(|_| "There is no flow with this name. Choose a flow from the list.")?;
    Ok(ThreadFilter { flow, status, name: said(&asked.name), title: said(&asked.title) })
}

/// Returns the URL of the next page with the same filters.
fn onward(asked: &ThreadListQuery, after: &ThreadListCursor) -> String {
    let given = [("flow", &asked.flow), ("status", &asked.status), ("name", &asked.name), ("title", &asked.title)];
    let mut url = "/threads?".to_owned();
    for (name, value) in given.into_iter().filter(|(_, value)| !value.is_empty()) {
        url.push_str(&format!("{name}={}&", encoded(value)));
    }
    format!("{url}after={}", encoded(&after.token()))
}

fn row(thread: &Thread, now: Timestamp) -> ThreadRow {
    ThreadRow {
        url: format!("/threads/{}", thread.id),
        name: SafeLine::new(thread.id.as_str()),
        title: thread.context.title.as_deref().map(SafeLine::new),
        flow: SafeLine::new(thread.flow.as_str()),
        on_behalf_of: thread.context.on_behalf_of.as_deref().map(SafeLine::new),
        status: status_of(thread, thread.status(now)),
        version: thread.head.version,
        since: moment(thread.created_at, now),
    }
}
