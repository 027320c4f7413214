//! `GET /threads`: threads, to be looked for.

use actix_web::web;
use serde::Deserialize;

use super::list_view::{Choice, Filter, ThreadRow, ThreadsPage};
use super::thread::status_of;
use crate::domain::primitives::id::FlowId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::thread::{Status, Thread};
use crate::service::error::{Error, Result};
use crate::service::threads::list::{Found, Onward, Sought};
use crate::web::pages::shared::format::moment;
use crate::web::pages::shared::return_path::encoded;
use crate::web::pages::shared::safe_text::Line;
use crate::web::pages::shared::visitor::Visitor;
use crate::web::state::App;

/// Threads of one page.
const ROWS_MAX: usize = 30;

/// The words of the address for what a thread is doing.
const STATUSES: [(&str, &str, Status); 4] = [
    ("open", "Open", Status::Open),
    ("held", "Waiting for a decision", Status::Held),
    ("writing", "Being written", Status::Writing),
    ("closed", "Closed", Status::Closed),
];

/// What is asked for. An empty text asks for nothing.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct Asked {
    flow: String,
    status: String,
    name: String,
    title: String,
    after: String,
}

/// `GET /threads`.
pub async fn show(app: web::Data<App>, visitor: Visitor, query: web::Query<Asked>) -> Result<ThreadsPage> {
    page(&app, &visitor, &query).await
}

async fn page(app: &App, visitor: &Visitor, asked: &Asked) -> Result<ThreadsPage> {
    let (service, now) = (&app.service, app.service.now());
    let sought = sought(asked);
    let (found, problem) = match &sought {
        Ok(sought) => {
            let after = Some(asked.after.as_str()).filter(|it| !it.is_empty());
            let after = after.map(|it| Onward::read(it).ok_or(Error::NotFound("page"))).transpose()?;
            (service.find_threads(sought, after.as_ref(), ROWS_MAX).await?, None)
        }
        Err(problem) => (Found { threads: Vec::new(), looked: 0, onward: None }, Some((*problem).to_owned())),
    };
    let filter = if sought == Ok(Sought::default()) { Filter::None } else { Filter::Some };
    let full = found.threads.len() == ROWS_MAX;
    let flows = service.flows().await?;
    let flows = flows.iter().map(|it| Choice::new(it.as_str(), it.as_str(), &asked.flow));
    let statuses = STATUSES.iter().map(|(word, label, _)| Choice::new(word, label, &asked.status));
    Ok(ThreadsPage {
        shell: visitor.shell(service, None).await?,
        flows: std::iter::once(Choice::new("", "All flows", &asked.flow)).chain(flows).collect(),
        statuses: std::iter::once(Choice::new("", "Anything", &asked.status)).chain(statuses).collect(),
        name: Line::new(asked.name.as_str()),
        title: Line::new(asked.title.as_str()),
        filter,
        rows: found.threads.iter().map(|it| row(it, now)).collect(),
        looked: (!full && found.onward.is_some()).then_some(found.looked),
        more_url: found.onward.map(|it| onward(asked, &it)),
        problem,
    })
}

fn sought(asked: &Asked) -> std::result::Result<Sought, &'static str> {
    let said = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let status = match said(&asked.status) {
        None => None,
        Some(word) => Some(STATUSES.iter().find(|it| it.0 == word).ok_or("Threads do nothing of that name.")?.2),
    };
    let flow = said(&asked.flow).map(FlowId::try_from).transpose().map_err(|_| "No flow has such a name.")?;
    Ok(Sought { flow, status, name: said(&asked.name), title: said(&asked.title) })
}

/// The same question, from there on.
fn onward(asked: &Asked, after: &Onward) -> String {
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
        name: Line::new(thread.id.as_str()),
        title: thread.context.title.as_deref().map(Line::new),
        flow: Line::new(thread.flow.as_str()),
        on_behalf_of: thread.context.on_behalf_of.as_deref().map(Line::new),
        status: status_of(thread, thread.status(now)),
        version: thread.head.version,
        since: moment(thread.created_at, now),
    }
}
