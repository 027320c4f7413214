//! Every kind of row: how it is sealed, and what of it an audit does not hold against anything.

use countersign_domain::delivery::delivery_record::Delivery;
use countersign_domain::delivery::endpoint::{DeliveryPosition, Endpoint};
use countersign_domain::delivery::mail_contact::{MailContact, MailNotification};
use countersign_domain::episode::agent_event::AgentEvent;
use countersign_domain::episode::imported::{ImportChunk, RunImport};
use countersign_domain::identity::account::{Account, OneTimeLink, Session, Token};
use countersign_domain::identity::delegation::Delegation;
use countersign_domain::identity::login_throttle::FailedSignIns;
use countersign_domain::identity::passkey::Passkey;
use countersign_domain::interrupts::{Interrupt, SignedPostRecord};
use countersign_domain::keys::RowKey;
use countersign_domain::log::event::Event;
use countersign_domain::platform::idempotency::IdempotencyRecord;
use countersign_domain::policy_changes::change_request::PolicyChangeRequest;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::archive::{Archive, ArchivedLocation};
use countersign_domain::threads::flow::{Flow, Gateway as GatewayRow, PolicyRow, ReceiptRow};
use countersign_domain::threads::step::StepRow;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ChainRow, Rejection, StateRow, Transition};
use countersign_domain::writes::write::Write;

use countersign_store::record::Record;
use countersign_store::records::{InsightRow, LastSeenRow, LogCursor, LogRow, UnsequencedEvent};
use countersign_store::row::{SealedRow, Table};
use serde_json::Value;

pub type SealFn = fn(&RowKey, &Value, i64) -> Option<SealedRow>;

pub fn sealed<R: Record>(key: &RowKey, body: &Value, revision: i64) -> Option<SealedRow> {
    let record: R = serde_json::from_value(body.clone()).ok()?;
    record.seal(key, revision).ok()
}

pub const KINDS: &[(Table, SealFn)] = &[
    (Table::Gateway, sealed::<GatewayRow>),
    (Table::Flows, sealed::<Flow>),
    (Table::Policies, sealed::<PolicyRow>),
    (Table::Amendments, sealed::<PolicyChangeRequest>),
    (Table::Interrupts, sealed::<Interrupt>),
    (Table::Posts, sealed::<SignedPostRecord>),
    (Table::Threads, sealed::<Thread>),
    (Table::Transitions, sealed::<Transition>),
    (Table::Rejections, sealed::<Rejection>),
    (Table::Steps, sealed::<StepRow>),
    (Table::Entries, sealed::<ChainRow>),
    (Table::States, sealed::<StateRow>),
    (Table::Archives, sealed::<Archive>),
    (Table::Whereabouts, sealed::<ArchivedLocation>),
    (Table::Holds, sealed::<Hold>),
    (Table::Receipts, sealed::<ReceiptRow>),
    (Table::Writes, sealed::<Write>),
    (Table::Accounts, sealed::<Account>),
    (Table::Tokens, sealed::<Token>),
    (Table::Sessions, sealed::<Session>),
    (Table::Links, sealed::<OneTimeLink>),
    (Table::Tries, sealed::<FailedSignIns>),
    (Table::Sightings, sealed::<LastSeenRow>),
    (Table::Passkeys, sealed::<Passkey>),
    (Table::Figures, sealed::<InsightRow>),
    (Table::Marks, sealed::<LogCursor>),
    (Table::Contacts, sealed::<MailContact>),
    (Table::Letters, sealed::<MailNotification>),
    (Table::Delegations, sealed::<Delegation>),
    (Table::Answers, sealed::<IdempotencyRecord>),
    (Table::EpisodeEvents, sealed::<AgentEvent>),
    (Table::Imports, sealed::<RunImport>),
    (Table::ImportPieces, sealed::<ImportChunk>),
    (Table::Events, sealed::<Event>),
    (Table::Outbox, sealed::<UnsequencedEvent>),
    (Table::Log, sealed::<LogRow>),
    (Table::Endpoints, sealed::<Endpoint>),
    (Table::Lanes, sealed::<DeliveryPosition>),
    (Table::Deliveries, sealed::<Delivery>),
];

/// Rows whose revision also counts changes without an event. The audit compares their content with the events instead.
pub const UNCOUNTED: &[&str] = &[
    "answers",
    "contacts",
    "deliveries",
    "figures",
    "holds",
    "lanes",
    "letters",
    "marks",
    "sightings",
    "threads",
    "transitions",
    "tries",
];

/// Rows that may be deleted: failed attempts, times of use, positions of copies, addresses for notifications, sent
/// messages and stored responses.
pub const FORGOTTEN: &[Table] =
    &[Table::Tries, Table::Sightings, Table::Marks, Table::Contacts, Table::Letters, Table::Deliveries, Table::Answers];

pub fn seal_of(table: Table) -> SealFn {
    KINDS.iter().find(|it| it.0 == table).unwrap().1
}
