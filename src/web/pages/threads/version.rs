//! `GET /threads/{thread}/versions/{version}`: one version, what it changed, and what became of it.

use actix_web::http::Method;
use actix_web::web;

use super::version_view::{Became, Checked, Compare, RollbackForm, VersionPage};
use crate::domain::chain::entry::Gate;
use crate::domain::chain::statement::Kind;
use crate::domain::keys::KeyState;
use crate::domain::primitives::id::ThreadId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::transition::Outcome;
use crate::domain::writes::write::{Resolution, Write, WriteState};
use crate::service::error::{Error, Result};
use crate::service::threads::history::{VersionFacts, Who};
use crate::service::writes::verify::peek_receipt;
use crate::web::auth::permissions;
use crate::web::auth::permissions::Caller;
use crate::web::pages::reviews::review::change;
use crate::web::pages::shared::diff_rows::rows_of;
use crate::web::pages::shared::format::{deciders, moment};
use crate::web::pages::shared::layout::{Hash, Tone};
use crate::web::pages::shared::safe_text::{Line, Prose};
use crate::web::pages::shared::visitor::Visitor;
use crate::web::pages::shared::widgets::Asker;
use crate::web::pages::shared::widgets::Gate as Shown;
use crate::web::state::App;

/// `GET /threads/{thread}/versions/{version}`.
pub async fn show(app: web::Data<App>, visitor: Visitor, place: web::Path<(String, String)>) -> Result<VersionPage> {
    page(&app, &visitor, &place).await
}

async fn page(app: &App, visitor: &Visitor, (thread, version): &(String, String)) -> Result<VersionPage> {
    let service = &app.service;
    let id = ThreadId::try_from(thread.as_str()).map_err(|_| Error::NotFound("thread"))?;
    let version: u64 = version.parse().map_err(|_| Error::NotFound("version"))?;
    let facts = service.version_facts(&id, version, &visitor.account().into()).await?;
    let rows = rows_of(&facts.differing)?;
    let statement = &facts.transition.statement;
    let reasons = match (&facts.hold, &facts.transition.outcome) {
        (Some(hold), _) => change::reasons(&hold.reasons),
        (None, Outcome::Observed { would_hold, .. }) => change::reasons(would_hold),
        (None, _) => Vec::new(),
    };
    Ok(VersionPage {
        shell: visitor.shell(service, None).await?,
        thread: Line::new(id.as_str()),
        title: facts.thread.context.title.as_deref().map(Line::new),
        flow: Line::new(facts.thread.flow.as_str()),
        version,
        head: facts.thread.head.version,
        step: step_words(statement.kind).to_owned(),
        node: statement.node.as_ref().map(|it| Line::new(it.as_str())),
        by: facts.by.as_ref().map(asker),
        proposed: moment(statement.proposed_at, facts.now),
        committed: moment(facts.entry.committed_at, facts.now),
        gate: gate(&facts),
        reasons,
        warnings: change::warnings(&facts.warnings),
        call: facts.call.as_ref().map(change::call),
        usage: change::usage(statement),
        rationale: facts.rationale.as_deref().map(Prose::new),
        rows: rows.changed,
        became: became(&facts),
        checks: checks(&facts),
        statement: Line::new(statement.canonical()),
        digest: Hash::new(facts.transition.digest.to_string()),
        entry: Line::new(facts.token.as_str()),
        kid: Line::new(facts.kid.as_str()),
        rollback: rollback(visitor, &facts),
        compare: ways(&id, version, facts.thread.head.version),
    })
}

/// What kind of step it was, before its node's name.
pub const fn step_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Create => "created by the host",
        Kind::Fork => "forked by",
        Kind::Propose => "proposed by",
        Kind::Edit => "rewritten by a reviewer, for",
        Kind::Reaffirm => "asked to be signed as it stands, by",
        Kind::Rollback => "rolled back by",
        Kind::Join => "joined out of branches by",
        Kind::Confirm => "confirmed by",
    }
}

/// Who asked, for a page.
pub fn asker(who: &Who) -> Asker {
    match who {
        Who::Token { name, owner } => Asker::Token { name: Line::new(name.as_str()), owner: Line::new(owner.as_str()) },
        Who::Person(name) => Asker::Person(Line::new(name.as_str())),
    }
}

fn gate(facts: &VersionFacts) -> Shown {
    match &facts.entry.gate {
        Gate::Auto {} => Shown::Auto,
        Gate::Observed {} => Shown::Observed,
        Gate::Written { .. } => Shown::Written,
        Gate::Approved { review, .. } => Shown::Approved {
            review_url: format!("/reviews/{review}"),
            by: facts.hold.as_ref().map(deciders).unwrap_or_default(),
        },
    }
}

/// Every one of these was passed by [`crate::service::Service::version_facts`], which otherwise gives nothing.
fn checks(facts: &VersionFacts) -> Vec<Checked> {
    let but = (facts.key == KeyState::Retired).then(|| "The key is retired since.".to_owned());
    let parent = if facts.entry.version == 0 {
        "it is the first: it names no version before it, and begins with an empty state"
    } else {
        "it names the digest of the version before, whose entry is signed as well"
    };
    let plain = |words| Checked { words, but: None };
    vec![
        Checked { words: "the entry’s signature is that of a key in the gateway’s keyring", but },
        plain("the statement hashes to the digest"),
        plain(parent),
        plain("the states before and after, rebuilt from the rows, give the roots that were stated"),
        plain("every row that was read bears the gateway’s seal"),
    ]
}

fn became(facts: &VersionFacts) -> Vec<Became> {
    let mut told: Vec<Became> = facts.receipt.iter().map(|it| receipt(it, facts)).collect();
    told.extend(facts.writes.iter().rev().map(|it| write(it, facts.now)));
    if told.is_empty() {
        let head = facts.entry.version == facts.thread.head.version;
        let words = if head {
            "No writer was let through on it so far"
        } else {
            "No writer was let through on it: a later version is the head"
        };
        told.push(Became { tone: Tone::Plain, words: Line::new(words), at: None });
    }
    told
}

fn receipt(row: &crate::domain::threads::flow::ReceiptRow, facts: &VersionFacts) -> Became {
    if let Some(revoked) = &row.revoked {
        let words = Line::new("Its receipt was taken back");
        return Became { tone: Tone::Care, words, at: Some(moment(revoked.at, facts.now)) };
    }
    let expires = peek_receipt(&row.token).map(|it| Timestamp::from_millis(it.exp.saturating_mul(1000)));
    let used = facts.writes.iter().any(|it| it.receipt.as_ref() == Some(&row.jti));
    let (tone, words) = match expires {
        _ if used => (Tone::Good, "Its receipt was used"),
        Some(at) if at > facts.now => (Tone::Good, "Its receipt waits for its writer, and ends"),
        Some(_) => (Tone::Plain, "Its receipt expired unused"),
        None => (Tone::Bad, "Its receipt cannot be read"),
    };
    Became { tone, words: Line::new(words), at: expires.filter(|_| !used).map(|it| moment(it, facts.now)) }
}

fn write(write: &Write, now: Timestamp) -> Became {
    let (node, fence) = (&write.node, write.fence);
    let told = |tone, words: String, at| Became { tone, words: Line::new(words), at: Some(moment(at, now)) };
    match &write.state {
        WriteState::Reserved {} if write.is_live(now) => {
            told(Tone::Care, format!("{node} is writing now, fence {fence}"), write.reserved_at)
        }
        WriteState::Reserved {} => {
            told(Tone::Care, format!("{node} was let through, fence {fence}, and never answered"), write.reserved_at)
        }
        WriteState::Confirmed { at, version, .. } => {
            told(Tone::Good, format!("{node} has written, fence {fence}: recorded as version {version}"), *at)
        }
        WriteState::Aborted { at, .. } => told(Tone::Plain, format!("{node} wrote nothing, fence {fence}"), *at),
        WriteState::Late { at } => {
            told(Tone::Care, format!("{node} confirmed too late to be recorded, fence {fence}"), *at)
        }
        WriteState::Resolved { at, outcome: Resolution::Written, .. } => {
            told(Tone::Good, format!("An administrator found that {node} has written, fence {fence}"), *at)
        }
        WriteState::Resolved { at, outcome: Resolution::NotWritten, .. } => {
            told(Tone::Plain, format!("An administrator found that {node} wrote nothing, fence {fence}"), *at)
        }
    }
}

/// For who may ask. The same form sent twice is one try; after anything else has happened it is another.
fn rollback(visitor: &Visitor, facts: &VersionFacts) -> Option<RollbackForm> {
    let route = "/threads/{thread}/versions/{version}/rollback";
    let may = permissions::may(Caller::Person(visitor.account().role), &Method::POST, route);
    let seq = facts.thread.last_event.map_or(1, |it| it.seq);
    (may && !facts.rollback_nodes.is_empty()).then(|| RollbackForm {
        action: format!("/threads/{}/versions/{}/rollback", facts.thread.id, facts.entry.version),
        csrf: visitor.0.csrf.shown(),
        head: facts.thread.head.transition.to_string(),
        attempt: u32::try_from(seq).unwrap_or(u32::MAX).to_string(),
        nodes: facts.rollback_nodes.iter().map(|it| Line::new(it.as_str())).collect(),
    })
}

fn ways(thread: &ThreadId, version: u64, head: u64) -> Vec<Compare> {
    let way = |from: u64, to: u64, words: String| Compare {
        url: format!("/threads/{thread}/compare?from={from}&to={to}"),
        words,
    };
    let mut ways = Vec::new();
    if version > 1 {
        ways.push(way(0, version, "with the first, version 0".to_owned()));
    }
    if version < head {
        ways.push(way(version, head, format!("with the head, version {head}")));
    }
    ways
}
