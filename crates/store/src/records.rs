//! The record types: their tables, ids, lookup columns and labels.

mod archives;
mod delegations;
mod endpoints;
mod episodes;
mod idempotency;
mod insight;
mod interrupts;
mod log_cursors;
mod mail;
mod policy_changes;
mod steps;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::{Account, LinkPurpose, OneTimeLink, Session, Token};
use countersign_domain::identity::login_throttle::FailedSignIns;
use countersign_domain::identity::passkey::Passkey;
use countersign_domain::log::event::Event;
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_domain::primitives::id::{EventId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::flow::{Flow, Gateway, PolicyRow, ReceiptRow};
use countersign_domain::threads::thread::{HeadUse, Thread, WriteKey};
use countersign_domain::threads::transition::{ChainRow, Rejection, StateRow, Transition};
use countersign_domain::writes::write::{Write, WriteState};
use serde::{Deserialize, Serialize};

use super::label::Labels;
use super::record::Record;
use super::row::{Facets, Table};
pub use archives::held_since;
pub use delegations::{delegation_alias, delegations_from};
pub use endpoints::{behind_in, deliveries_of, delivery_id, ended_of, waiting_of};
pub use episodes::{piece_id, posted_row_id};
pub use idempotency::KEPT;
pub use insight::{COUNTED, InsightRow};
pub use interrupts::{interrupt_alias, post_id};
pub use log_cursors::{LogCursor, LogFollower};
pub use steps::step_row_id;

/// An event without a log position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsequencedEvent {
    pub event: EventId,
    /// The trace of the request that caused the event. It is passed on with the event and is not part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// The log position of an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRow {
    /// The position: from 1, without gaps.
    pub index: u64,
    pub event: EventId,
    pub hash: Digest,
    /// The trace of the request that caused the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// Formats a number for an id with a fixed number of digits, so texts sort like numbers.
fn number(n: u64) -> String {
    format!("{n:020}")
}

/// Returns the id of a version's rows.
pub fn version_id(thread: &ThreadId, version: u64) -> String {
    format!("{thread}/{}", number(version))
}

/// Returns the alias of a thread's event.
pub fn event_alias(thread: &ThreadId, seq: u64) -> String {
    format!("{thread}/{}", number(seq))
}

/// The number of events that share an alias prefix: their last two digits differ.
pub const HUNDRED: u64 = 100;

/// Returns the common prefix of the aliases of a hundred events of a thread.
pub fn events_alias(thread: &ThreadId, hundreds: u64) -> String {
    let mut alias = event_alias(thread, hundreds.saturating_mul(HUNDRED));
    alias.truncate(alias.len() - 2);
    alias
}

/// Returns the id of a log position.
pub fn log_id(index: u64) -> String {
    number(index)
}

pub fn write_row_id(key: &WriteKey) -> String {
    format!("{}/{}", key.principal, key.write_id)
}

/// The id of the only row of the gateway's table.
pub const GATEWAY_ID: &str = "gateway";

/// The owner of all log positions. It makes the last one quick to find.
pub const LOG: &str = "log";

/// The state of reviews that can still be decided.
pub const OPEN: &str = "open";
/// The state of threads and writes with an open reservation.
pub const RESERVED: &str = "reserved";

fn owned(owner: &str) -> Facets {
    Facets { owner: owner.to_owned(), ..Facets::default() }
}

impl Record for Gateway {
    const TABLE: Table = Table::Gateway;
    const REMEMBERED: bool = true;
    fn id(&self) -> String {
        GATEWAY_ID.to_owned()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for Flow {
    const TABLE: Table = Table::Flows;
    const REMEMBERED: bool = true;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for PolicyRow {
    const TABLE: Table = Table::Policies;
    fn id(&self) -> String {
        self.digest.to_string()
    }
    fn facets(&self) -> Facets {
        owned(self.flow.as_str())
    }
}

/// Returns the label of a thread's branches.
pub fn branches_word(of: &ThreadId) -> String {
    format!("branch_of:{of}")
}

/// Returns the label of the approval requests of equal calls.
pub fn equal_call_word(digest: &Digest) -> String {
    format!("call:{digest}")
}

impl Record for Thread {
    const TABLE: Table = Table::Threads;
    const REMEMBERED: bool = true;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let (state, due) = match (&self.closed, &self.head.usage) {
            // The worker for leases lists these rows by their expiry.
            (None, HeadUse::Reserved { lease_expires_at, .. }) => (RESERVED, lease_expires_at.millis()),
            (Some(_), _) | (None, HeadUse::Unused {} | HeadUse::Used {} | HeadUse::Revoked {}) => ("", 0),
        };
        Facets { alias: None, owner: self.flow.to_string(), state: state.to_owned(), due }
    }
    fn labels(&self) -> Labels {
        let branch = self.branch.iter().map(|it| branches_word(&it.thread));
        let call = self.request.iter().filter_map(|it| it.sharing.as_ref()).map(|it| equal_call_word(&it.call));
        Labels { due: self.created_at.millis(), words: branch.chain(call).collect() }
    }
}

impl Record for Transition {
    const TABLE: Table = Table::Transitions;
    fn id(&self) -> String {
        self.digest.to_string()
    }
    fn facets(&self) -> Facets {
        Facets {
            // The unique alias makes a repeated request find its transition instead of adding one.
            alias: Some(self.identity.to_string()),
            owner: self.statement.thread.to_string(),
            state: self.outcome.word().to_owned(),
            due: self.statement.proposed_at.millis(),
        }
    }
}

impl Record for Rejection {
    const TABLE: Table = Table::Rejections;
    fn id(&self) -> String {
        self.identity.to_string()
    }
    fn facets(&self) -> Facets {
        Facets { due: self.at.millis(), ..owned(self.thread.as_str()) }
    }
}

impl Record for ChainRow {
    const TABLE: Table = Table::Entries;
    fn id(&self) -> String {
        version_id(&self.thread, self.version)
    }
    fn facets(&self) -> Facets {
        Facets { alias: Some(self.transition.to_string()), ..owned(self.thread.as_str()) }
    }
}

impl Record for StateRow {
    const TABLE: Table = Table::States;
    fn id(&self) -> String {
        version_id(&self.thread, self.version)
    }
    fn facets(&self) -> Facets {
        owned(self.thread.as_str())
    }
}

impl Record for Hold {
    const TABLE: Table = Table::Holds;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let state = if matches!(self.state, HoldState::Open {}) { OPEN } else { "ended" };
        Facets {
            alias: Some(self.transition.to_string()),
            owner: self.thread.to_string(),
            state: state.to_owned(),
            // The worker for reviews lists open ones by their next event.
            due: self.next_due().millis(),
        }
    }
    fn labels(&self) -> Labels {
        let due = self.state.ended_at().unwrap_or(self.expires_at).millis();
        Labels { due, words: self.searched_by().iter().map(ToString::to_string).collect() }
    }
}

impl Record for ReceiptRow {
    const TABLE: Table = Table::Receipts;
    const REMEMBERED: bool = true;
    fn id(&self) -> String {
        self.jti.to_string()
    }
    fn facets(&self) -> Facets {
        Facets { alias: Some(self.transition.to_string()), ..owned(self.thread.as_str()) }
    }
}

impl Record for Write {
    const TABLE: Table = Table::Writes;
    fn id(&self) -> String {
        write_row_id(&self.key)
    }
    fn facets(&self) -> Facets {
        let state = if matches!(self.state, WriteState::Reserved {}) { RESERVED } else { "ended" };
        Facets {
            // Unique, so two writes of a thread can never have the same fencing token.
            alias: Some(event_alias(&self.thread, self.fence)),
            owner: self.thread.to_string(),
            state: state.to_owned(),
            due: self.lease_expires_at.millis(),
        }
    }
}

impl Record for Account {
    const TABLE: Table = Table::Accounts;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        // Unique, so no two accounts have the same name.
        Facets { alias: Some(self.name.clone()), ..Facets::default() }
    }
}

impl Record for Token {
    const TABLE: Table = Table::Tokens;
    const REMEMBERED: bool = true;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        owned(&self.owner)
    }
}

impl Record for Session {
    const TABLE: Table = Table::Sessions;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        // Unique, so a replayed assertion cannot open a second session.
        let alias = self.passkey.as_ref().map(|it| it.challenge.clone());
        Facets { alias, due: self.expires_at.millis(), ..owned(self.account.as_str()) }
    }
}

impl Record for OneTimeLink {
    const TABLE: Table = Table::Links;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let due = self.expires_at.millis();
        match &self.purpose {
            LinkPurpose::SetUp {} | LinkPurpose::SignIn { .. } | LinkPurpose::Oidc { .. } => {
                Facets { due, ..Facets::default() }
            }
            LinkPurpose::Invite { .. } | LinkPurpose::Reset { .. } => {
                let state = if self.used { "ended" } else { OPEN };
                Facets { due, state: state.to_owned(), ..Facets::default() }
            }
        }
    }
}

impl Record for FailedSignIns {
    const TABLE: Table = Table::Tries;
    fn id(&self) -> String {
        self.asker.clone()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

/// The id of the row that a readiness check commits.
pub const READY: &str = "gateway/ready";

/// The time at which something was last used, with a precision of some minutes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastSeenRow {
    /// The subject: `token/…`, `account/…`, `session/…` or [`READY`].
    pub of: String,
    pub at: Timestamp,
}

impl Record for LastSeenRow {
    const TABLE: Table = Table::Sightings;
    fn id(&self) -> String {
        self.of.clone()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for Passkey {
    const TABLE: Table = Table::Passkeys;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        // Unique, so a registration cannot be replayed.
        Facets { alias: Some(self.challenge.clone()), ..owned(self.account.as_str()) }
    }
}

impl Record for Event {
    const TABLE: Table = Table::Events;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let alias = self.thread.as_ref().zip(self.seq).map(|(thread, seq)| event_alias(thread, seq));
        let owner = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        Facets { alias, owner, state: String::new(), due: 0 }
    }
}

impl Record for UnsequencedEvent {
    const TABLE: Table = Table::Outbox;
    fn id(&self) -> String {
        self.event.to_string()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for LogRow {
    const TABLE: Table = Table::Log;
    fn id(&self) -> String {
        log_id(self.index)
    }
    fn facets(&self) -> Facets {
        Facets { alias: Some(self.event.to_string()), ..owned(LOG) }
    }
}
