//! `GET /threads/{thread}`: shows the chain of a thread, newest version first.

use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::chain::entry::CommitGate;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::branch::Branch;
use countersign_domain::threads::flow::Mode;
use countersign_domain::threads::thread::{HeadUse, Thread, ThreadStatusCode};
use countersign_service::branches::Branches;
use countersign_service::branches::list::{BranchList, BranchStatus, BranchSummary};
use countersign_service::error::{Error, Result};
use countersign_service::identity::requester_names::RequesterName;
use countersign_service::inbox::Inbox;
use countersign_service::inbox::list::InboxItem;
use countersign_service::policies::Policies;
use countersign_service::threads::Threads;
use countersign_service::threads::history::HistoryItem;
use countersign_service::threads::list::ThreadListCursor;
use serde::Deserialize;

use super::thread_view::{
    BranchRow, BranchStatusView, EndedReviewRow, EntryRow, OriginRow, ThreadPage, ThreadStatusView, WriteStatusView,
};
use super::version::{asker, step_words};
use crate::pages::shared::format::{deciders, ending, head_change, headline, html, moment, see_other};
use crate::pages::shared::layout::{DigestText, Tone};
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::tool_call::ToolCallMention;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::widgets::GateView;
use crate::state::{Capability, capabilities};

capabilities! {
    /// The capabilities of the page about a thread.
    pub struct ThreadCapabilities {
        branches: Capability<Branches>,
        inbox: Capability<Inbox>,
        policies: Capability<Policies>,
        threads: Capability<Threads>,
    }
}

/// Versions on one page. The limit is low because each version is verified before it is shown.
const ENTRIES_MAX: u64 = 25;

/// Listed reviews without a commit.
const ENDED_MAX: usize = 10;

/// Paths that one row names.
const PLACES_SHOWN: usize = 4;

const BRANCHES_MAX: u32 = 25;

/// `?below=`: only versions below this one. `?branches=`: cursor of the branches.
#[derive(Deserialize)]
pub struct ThreadPageQuery {
    below: Option<u64>,
    branches: Option<String>,
}

/// `GET /threads/{thread}`.
pub async fn show(
    app: ThreadCapabilities,
    visitor: Visitor,
    thread: web::Path<String>,
    query: web::Query<ThreadPageQuery>,
) -> Result<HttpResponse> {
    match page(&app, &visitor, &thread, &query).await {
        Ok(page) => Ok(html(StatusCode::OK, page.render())),
        // An imported thread has no versions, so its only page is the episode.
        Err(Error::Imported) => Ok(see_other(&format!("/threads/{thread}/episode"))),
        Err(error) => Err(error),
    }
}

async fn page(app: &ThreadCapabilities, visitor: &Visitor, thread: &str, part: &ThreadPageQuery) -> Result<ThreadPage> {
    let below = part.below;
    let viewer = visitor.account();
    let id = ThreadId::try_from(thread).map_err(|_| Error::NotFound("thread"))?;
    let status = app.threads.overview(&id).await?.status;
    let (thread, items) = app.threads.history(&id, below, ENTRIES_MAX, &viewer.into()).await?;
    let now = visitor.now();
    let names = app.threads.askers(&items).await?;
    let mut entries = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        // A confirmed write becomes the next version, so the newer item shows whether this one was written.
        let newer = index.checked_sub(1).and_then(|it| items.get(it));
        entries.push(entry(item, newer, &names, now));
    }
    let last = items.last().map_or(0, |it| it.entry.version);
    let ended = match below {
        // Only the first page lists these, because they belong to no version.
        None => app.inbox.reviews_without_commit(&id, viewer, ENDED_MAX).await?,
        Some(_) => Vec::new(),
    };
    let seen = match below {
        None => {
            let from = part
                .branches
                .as_deref()
                .map(|it| ThreadListCursor::read(it).ok_or(Error::NotFound("page")))
                .transpose()?;
            app.branches.list_branches(&thread, from.as_ref(), BRANCHES_MAX).await?
        }
        Some(_) => BranchList::default(),
    };
    let (context, mode) = (&thread.context, app.policies.active_policy(&thread.flow).await?.mode());
    Ok(ThreadPage {
        shell: visitor.shell(None).await?,
        thread: SafeLine::new(id.as_str()),
        title: context.title.as_deref().map(SafeLine::new),
        flow: SafeLine::new(thread.flow.as_str()),
        on_behalf_of: context.on_behalf_of.as_deref().map(SafeLine::new),
        episode_url: thread.episode.as_ref().map(|_| format!("/threads/{id}/episode")),
        origin: thread.branch.as_ref().map(origin),
        branches: seen.branches.iter().map(|it| branch(&id, it)).collect(),
        earlier_branches_url: seen.earlier.map(|it| format!("/threads/{id}?branches={}#branches", it.token())),
        status: status_of(&thread, status),
        standing: [standing(&thread, mode, now), erased(&thread)].concat(),
        head: thread.head.version,
        entries,
        ended: ended.iter().filter_map(|it| ended_row(it, now)).collect(),
        older_url: (last > thread.gone.first_explained_version()).then(|| format!("/threads/{id}?below={last}")),
    })
}

fn origin(branch: &Branch) -> OriginRow {
    let (of, version) = (&branch.thread, branch.version);
    OriginRow {
        name: SafeLine::new(branch.name.as_str()),
        thread: SafeLine::new(of.as_str()),
        thread_url: format!("/threads/{of}"),
        version,
        version_url: format!("/threads/{of}/versions/{version}"),
    }
}

fn branch(of: &ThreadId, seen: &BranchSummary) -> BranchRow {
    let BranchSummary { name, thread, version, became } = seen;
    let became = match became {
        BranchStatus::Joined { version } => BranchStatusView {
            words: format!("Joined in version {version}"),
            tone: Tone::Good,
            url: Some(format!("/threads/{of}/versions/{version}")),
        },
        BranchStatus::Asked(review) => BranchStatusView {
            words: "Its join requires approval".to_owned(),
            tone: Tone::Care,
            url: Some(format!("/reviews/{review}")),
        },
        BranchStatus::Open => BranchStatusView { words: "Not joined".to_owned(), tone: Tone::Plain, url: None },
        BranchStatus::LeftBehind => {
            BranchStatusView { words: "Outdated: the thread has moved on".to_owned(), tone: Tone::Plain, url: None }
        }
    };
    BranchRow {
        name: SafeLine::new(name.as_str()),
        url: format!("/threads/{thread}"),
        version: *version,
        version_url: format!("/threads/{of}/versions/{version}"),
        became,
    }
}

pub fn status_of(thread: &Thread, status: ThreadStatusCode) -> ThreadStatusView {
    match (status, &thread.hold) {
        (ThreadStatusCode::Held, Some(review)) => ThreadStatusView::Held(format!("/reviews/{review}")),
        (ThreadStatusCode::Open | ThreadStatusCode::Held, _) => ThreadStatusView::Open,
        (ThreadStatusCode::Writing, _) => ThreadStatusView::Writing,
        (ThreadStatusCode::Closed, _) => ThreadStatusView::Closed,
    }
}

/// Returns the sentence about erased versions.
fn erased(thread: &Thread) -> String {
    match thread.gone.erased {
        0 => String::new(),
        count => format!(" The values of versions up to {} are erased, as the policy requires.", count - 1),
    }
}

fn standing(thread: &Thread, mode: Mode, now: Timestamp) -> String {
    if let Some(closed) = &thread.closed {
        return format!("Closed since {}. It accepts no more changes.", moment(closed.at, now).words);
    }
    if thread.branch.is_some() {
        return "A branch is not written. It is joined into its thread.".to_owned();
    }
    if thread.outcome_unknown(now) {
        return "A writer never reported the outcome of its write. An administrator can resolve it.".to_owned();
    }
    if thread.request.is_some() {
        return match &thread.head.usage {
            HeadUse::Reserved { .. } => "The call was started. Its outcome is not reported yet.",
            HeadUse::Used {} => "The approval was used. It cannot be used again.",
            HeadUse::Revoked {} => "The approval was revoked before the call ran.",
            HeadUse::Unused {} => "It has one tool call, which runs at most once.",
        }
        .to_owned();
    }
    match (&thread.head.usage, thread.head.needs_receipt) {
        (HeadUse::Reserved { .. }, _) => "A writer has reserved its head.".to_owned(),
        (HeadUse::Used {}, _) => "A writer has already used its head. A new write requires a new approval.".to_owned(),
        (HeadUse::Revoked {}, _) => "The receipt of its head was revoked. A write requires a new approval.".to_owned(),
        (HeadUse::Unused {}, false) if thread.taken_back => {
            "An approval that its head depends on was revoked. A write requires a new approval.".to_owned()
        }
        (HeadUse::Unused {}, true) if mode == Mode::Observe => {
            "Its head has no approval. Its flow is in observe mode, so it can be written anyway.".to_owned()
        }
        (HeadUse::Unused {}, true) => {
            "Its head can be written only with a receipt for exactly this version.".to_owned()
        }
        (HeadUse::Unused {}, false) => "Its head can be written without approval.".to_owned(),
    }
}

fn entry(
    item: &HistoryItem,
    newer: Option<&HistoryItem>,
    names: &BTreeMap<String, RequesterName>,
    now: Timestamp,
) -> EntryRow {
    let statement = &item.transition.statement;
    // Version 0 sets the whole state, so a list of its changes is useless.
    let diff = if statement.version == 0 { &[] } else { item.diff.as_slice() };
    let written = newer.filter(|it| matches!(it.entry.gate, CommitGate::Written { .. }));
    EntryRow {
        version: statement.version,
        url: format!("/threads/{}/versions/{}", statement.thread, statement.version),
        step: step_words(statement.kind).to_owned(),
        node: statement.node.as_ref().map(|it| SafeLine::new(it.as_str())),
        gate: gate(item),
        by: names.get(statement.principal.as_str()).map(asker),
        changed: diff.iter().take(PLACES_SHOWN).map(head_change).collect(),
        call: item.call.as_ref().map(ToolCallMention::of),
        more_changed: diff.len().saturating_sub(PLACES_SHOWN),
        digest: DigestText::new(item.transition.digest.to_string()),
        at: moment(item.entry.committed_at, now),
        write: written.map(|it| WriteStatusView {
            tone: Tone::Good,
            words: SafeLine::new(if item.call.is_some() && item.diff.is_empty() {
                format!("the call succeeded, recorded as version {}", it.entry.version)
            } else {
                format!("written, recorded as version {}", it.entry.version)
            }),
        }),
    }
}

fn gate(item: &HistoryItem) -> GateView {
    match &item.entry.gate {
        CommitGate::Auto {} => GateView::Auto,
        CommitGate::Observed {} => GateView::Observed,
        CommitGate::Written { .. } => GateView::Written,
        CommitGate::Approved { review, .. } => {
            let by = item.hold.as_ref().map(deciders).unwrap_or_default();
            GateView::Approved { review_url: format!("/reviews/{review}"), by }
        }
    }
}

fn ended_row(item: &InboxItem, now: Timestamp) -> Option<EndedReviewRow> {
    let (outcome, at) = ending(&item.hold.state)?;
    Some(EndedReviewRow {
        url: format!("/reviews/{}", item.hold.id),
        headline: headline(&item.hold, item.transition.as_ref(), &item.diff, item.call.as_ref()),
        outcome,
        at: moment(at, now),
    })
}
