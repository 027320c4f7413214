//! `GET /threads/{thread}/versions/{version}`: shows one version, its changes, its receipt and its writes.

use actix_web::http::Method;
use actix_web::web;
use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::keys::KeyState;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::transition::TransitionOutcome;
use countersign_domain::writes::write::{Write, WriteResolution, WriteState};
use countersign_service::error::{Error, Result};
use countersign_service::identity::requester_names::RequesterName;
use countersign_service::threads::Threads;
use countersign_service::threads::history::VersionFacts;
use countersign_service::writes::verify::peek_receipt;

use super::version_view::{CompareLink, RollbackForm, VersionCheckRow, VersionEventRow, VersionPage};
use crate::auth::permissions;
use crate::auth::permissions::CallerRole;
use crate::pages::reviews::review::change;
use crate::pages::shared::call_outcome::outcome_phrase;
use crate::pages::shared::diff_rows::rows_of;
use crate::pages::shared::format::{deciders, moment};
use crate::pages::shared::layout::{DigestText, Tone};
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::widgets::GateView;
use crate::pages::shared::widgets::RequesterView;
use crate::state::Capability;

/// `GET /threads/{thread}/versions/{version}`.
pub async fn show(
    threads: Capability<Threads>,
    visitor: Visitor,
    place: web::Path<(String, String)>,
) -> Result<VersionPage> {
    let id = ThreadId::try_from(place.0.as_str()).map_err(|_| Error::NotFound("thread"))?;
    // A text that is no number names no version, so it gets 404 like an unknown one.
    let version: u64 = place.1.parse().map_err(|_| Error::NotFound("version"))?;
    let facts = threads.version_facts(&id, version, &visitor.account().into()).await?;
    let rows = rows_of(&facts.differing)?;
    let statement = &facts.transition.statement;
    let reasons = match (&facts.hold, &facts.transition.outcome) {
        (Some(hold), _) => change::reasons(&hold.reasons),
        (None, TransitionOutcome::Observed { would_hold, .. }) => change::reasons(would_hold),
        (None, _) => Vec::new(),
    };
    Ok(VersionPage {
        shell: visitor.shell(None).await?,
        thread: SafeLine::new(id.as_str()),
        title: facts.thread.context.title.as_deref().map(SafeLine::new),
        flow: SafeLine::new(facts.thread.flow.as_str()),
        version,
        head: facts.thread.head.version,
        step: step_words(statement.kind).to_owned(),
        node: statement.node.as_ref().map(|it| SafeLine::new(it.as_str())),
        by: facts.by.as_ref().map(asker),
        proposed: moment(statement.proposed_at, facts.now),
        committed: moment(facts.entry.committed_at, facts.now),
        gate: gate(&facts),
        reasons,
        warnings: change::warnings(&facts.warnings),
        call: facts.call.as_ref().map(ToolCallView::of),
        usage: change::usage(statement),
        rationale: facts.rationale.as_deref().map(SafeText::new),
        rows: rows.changed,
        became: became(&facts),
        checks: checks(&facts),
        statement: SafeLine::new(statement.canonical()),
        digest: DigestText::new(facts.transition.digest.to_string()),
        entry: SafeLine::new(facts.token.as_str()),
        kid: SafeLine::new(facts.kid.as_str()),
        rollback: rollback(&visitor, &facts),
        compare: ways(&id, version, facts.thread.head.version),
    })
}

/// Returns the label of a transition type. The name of the node follows it.
pub const fn step_words(kind: TransitionType) -> &'static str {
    match kind {
        TransitionType::Create => "created by the host",
        TransitionType::Fork => "forked by",
        TransitionType::Propose => "proposed by",
        TransitionType::Edit => "edited by a reviewer, for",
        TransitionType::Reaffirm => "reaffirmed by",
        TransitionType::Rollback => "rolled back by",
        TransitionType::Join => "joined from branches by",
        TransitionType::Confirm => "confirmed by",
    }
}

pub fn asker(who: &RequesterName) -> RequesterView {
    match who {
        RequesterName::Token { name, owner } => {
            RequesterView::Token { name: SafeLine::new(name.as_str()), owner: SafeLine::new(owner.as_str()) }
        }
        RequesterName::Person(name) => RequesterView::Person(SafeLine::new(name.as_str())),
    }
}

fn gate(facts: &VersionFacts) -> GateView {
    match &facts.entry.gate {
        CommitGate::Auto {} => GateView::Auto,
        CommitGate::Observed {} => GateView::Observed,
        CommitGate::Written { .. } => GateView::Written,
        CommitGate::Approved { review, .. } => GateView::Approved {
            review_url: format!("/reviews/{review}"),
            by: facts.hold.as_ref().map(deciders).unwrap_or_default(),
        },
    }
}

/// Lists the checks of [`countersign_service::threads::Threads::version_facts`], which returns an error if one of them fails.
fn checks(facts: &VersionFacts) -> Vec<VersionCheckRow> {
    let but = (facts.key == KeyState::Retired).then(|| "The key has been retired since then.".to_owned());
    let parent = if facts.entry.version == 0 {
        "it is the first version and starts with an empty state"
    } else {
        "it names the digest of the version before, whose entry is also signed"
    };
    let plain = |words| VersionCheckRow { words, but: None };
    vec![
        VersionCheckRow { words: "a key in the gateway’s keyring signed the entry", but },
        plain("the statement hashes to the digest"),
        plain(parent),
        plain("the states before and after, rebuilt from the rows, have the signed roots"),
        plain("every row has a valid seal of the gateway"),
    ]
}

fn became(facts: &VersionFacts) -> Vec<VersionEventRow> {
    let mut told: Vec<VersionEventRow> = facts.receipt.iter().map(|it| receipt(it, facts)).collect();
    let is_request = facts.thread.request.is_some();
    told.extend(
        facts.writes.iter().rev().map(|it| if is_request { call(it, facts.now) } else { write(it, facts.now) }),
    );
    // A denied or waiting request has no version, so this is the state before the call or after it.
    if told.is_empty() && !is_request {
        let head = facts.entry.version == facts.thread.head.version;
        let words =
            if head { "No writer has written it yet" } else { "No writer wrote it, and a later version is the head" };
        told.push(VersionEventRow { tone: Tone::Plain, words: SafeLine::new(words), at: None });
    }
    told
}

fn receipt(row: &countersign_domain::threads::flow::ReceiptRow, facts: &VersionFacts) -> VersionEventRow {
    if let Some(revoked) = &row.revoked {
        let words = SafeLine::new("Its receipt was revoked");
        return VersionEventRow { tone: Tone::Care, words, at: Some(moment(revoked.at, facts.now)) };
    }
    let expires = peek_receipt(&row.token).map(|it| Timestamp::from_millis(it.exp.saturating_mul(1000)));
    let used = facts.writes.iter().any(|it| it.receipt.as_ref() == Some(&row.jti));
    let (tone, words) = match expires {
        // A used receipt can have expired since then, so its use comes first.
        _ if used => (Tone::Good, "Its receipt was used"),
        Some(at) if at > facts.now && facts.thread.request.is_some() => {
            (Tone::Good, "The call has not run yet. Its approval expires")
        }
        Some(at) if at > facts.now => (Tone::Good, "Its receipt waits for its writer and expires"),
        Some(_) => (Tone::Plain, "Its receipt expired unused"),
        None => (Tone::Bad, "Its receipt cannot be read"),
    };
    VersionEventRow { tone, words: SafeLine::new(words), at: expires.filter(|_| !used).map(|it| moment(it, facts.now)) }
}

/// Returns the start and the outcome of the call of an approval request.
fn call(write: &Write, now: Timestamp) -> VersionEventRow {
    let (tone, at) = match &write.state {
        WriteState::Confirmed { at, .. } => (Tone::Good, *at),
        WriteState::Aborted { at, .. } => (Tone::Plain, *at),
        WriteState::Failed { at } | WriteState::Late { at } | WriteState::Resolved { at, .. } => (Tone::Care, *at),
        WriteState::Reserved {} => (Tone::Care, write.reserved_at),
    };
    let words = format!("{}: {}", write.node, outcome_phrase(write, now));
    VersionEventRow { tone, words: SafeLine::new(words), at: Some(moment(at, now)) }
}

fn write(write: &Write, now: Timestamp) -> VersionEventRow {
    let (node, fence) = (&write.node, write.fence);
    let told =
        |tone, words: String, at| VersionEventRow { tone, words: SafeLine::new(words), at: Some(moment(at, now)) };
    match &write.state {
        WriteState::Reserved {} if write.is_live(now) => {
            told(Tone::Care, format!("{node} is writing now, fence {fence}"), write.reserved_at)
        }
        WriteState::Reserved {} => told(
            Tone::Care,
            format!("{node} started to write, fence {fence}, and never reported the outcome"),
            write.reserved_at,
        ),
        WriteState::Confirmed { at, version, .. } => {
            told(Tone::Good, format!("{node} has written, fence {fence}, recorded as version {version}"), *at)
        }
        WriteState::Aborted { at, .. } => told(Tone::Plain, format!("{node} wrote nothing, fence {fence}"), *at),
        WriteState::Failed { at } => told(Tone::Care, format!("{node} ran the call, which failed, fence {fence}"), *at),
        WriteState::Late { at } => {
            told(Tone::Care, format!("{node} confirmed too late to be recorded, fence {fence}"), *at)
        }
        WriteState::Resolved { at, outcome: WriteResolution::Written, .. } => {
            told(Tone::Good, format!("An administrator confirmed that {node} has written, fence {fence}"), *at)
        }
        WriteState::Resolved { at, outcome: WriteResolution::NotWritten, .. } => {
            told(Tone::Plain, format!("An administrator confirmed that {node} wrote nothing, fence {fence}"), *at)
        }
    }
}

/// Returns the rollback form if the visitor may use it. The attempt is the number of the last event, so a repeated
/// form is the same request, and a form after any later event is a new one.
fn rollback(visitor: &Visitor, facts: &VersionFacts) -> Option<RollbackForm> {
    let route = "/threads/{thread}/versions/{version}/rollback";
    // The permission table decides, so that the form appears only for a role that may send it.
    let may = permissions::may(CallerRole::Person(visitor.account().role), &Method::POST, route);
    let seq = facts.thread.last_event.map_or(1, |it| it.seq);
    (may && !facts.rollback_nodes.is_empty()).then(|| RollbackForm {
        action: format!("/threads/{}/versions/{}/rollback", facts.thread.id, facts.entry.version),
        csrf: visitor.0.csrf.shown(),
        head: facts.thread.head.transition.to_string(),
        attempt: u32::try_from(seq).unwrap_or(u32::MAX).to_string(),
        nodes: facts.rollback_nodes.iter().map(|it| SafeLine::new(it.as_str())).collect(),
    })
}

fn ways(thread: &ThreadId, version: u64, head: u64) -> Vec<CompareLink> {
    let way = |from: u64, to: u64, words: String| CompareLink {
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
