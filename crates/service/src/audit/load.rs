//! Reads every row of every table and checks it: its seal, its shape, and whether its id and search columns match its
//! content.

use std::collections::BTreeMap;

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
use countersign_domain::threads::flow::{Flow, Gateway, PolicyRow, ReceiptRow};
use countersign_domain::threads::step::StepRow;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ChainRow, Rejection, StateRow, Transition};
use countersign_domain::writes::write::Write;
use countersign_store::label::Label;
use countersign_store::record::{Record, Stored, open};
use countersign_store::records::{InsightRow, LastSeenRow, LogCursor, LogRow, UnsequencedEvent};
use countersign_store::row::SealedRow;
use countersign_store::{ScanPage, Store, StoreError};

use super::AuditFinding;

pub(super) type LoadedRows<R> = BTreeMap<String, Stored<R>>;

macro_rules! everything {
    ($($rows:ident: $record:ty,)*) => {
        /// All stored rows that have this gateway's seal, read in one snapshot.
        #[derive(Default)]
        pub(super) struct Everything {
            $(pub(super) $rows: LoadedRows<$record>,)*
            pub(super) labels: Vec<Label>,
            /// Number of rows, with or without a valid seal.
            pub(super) rows: usize,
        }

        impl Everything {
            fn keep(&mut self, key: &RowKey, row: &SealedRow) -> Result<(), StoreError> {
                match row.table {
                    $(<$record as Record>::TABLE => self.$rows.insert(row.id.clone(), open(key, row)?).map_or((), drop),)*
                }
                Ok(())
            }
        }
    };
}

everything! {
    figures: InsightRow,
    marks: LogCursor,
    answers: IdempotencyRecord,
    deliveries: Delivery,
    lanes: DeliveryPosition,
    endpoints: Endpoint,
    contacts: MailContact,
    letters: MailNotification,
    gateway: Gateway,
    flows: Flow,
    policies: PolicyRow,
    amendments: PolicyChangeRequest,
    interrupts: Interrupt,
    posts: SignedPostRecord,
    threads: Thread,
    transitions: Transition,
    rejections: Rejection,
    steps: StepRow,
    entries: ChainRow,
    states: StateRow,
    archives: Archive,
    whereabouts: ArchivedLocation,
    holds: Hold,
    receipts: ReceiptRow,
    writes: Write,
    accounts: Account,
    tokens: Token,
    sessions: Session,
    links: OneTimeLink,
    tries: FailedSignIns,
    sightings: LastSeenRow,
    passkeys: Passkey,
    delegations: Delegation,
    episode_events: AgentEvent,
    imports: RunImport,
    import_pieces: ImportChunk,
    events: Event,
    outbox: UnsequencedEvent,
    log: LogRow,
}

/// Rows of one thread, grouped once because the audit replays every thread.
#[derive(Default)]
pub(super) struct ThreadRows<'a> {
    pub(super) events: Vec<&'a Event>,
    pub(super) holds: Vec<&'a Hold>,
    pub(super) receipts: Vec<&'a Stored<ReceiptRow>>,
    pub(super) writes: Vec<&'a Stored<Write>>,
    pub(super) rejections: Vec<&'a Stored<Rejection>>,
    /// Archives of the versions that left the database.
    pub(super) archives: Vec<&'a Stored<Archive>>,
    /// Threads that name this thread as their parent.
    pub(super) branches: Vec<&'a Thread>,
}

impl Everything {
    /// Reads all rows in one snapshot. Changes that a gateway makes at the same time are therefore neither missing nor
    /// in excess.
    pub(super) async fn load(
        store: &dyn Store,
        key: &RowKey,
        findings: &mut Vec<AuditFinding>,
    ) -> Result<Self, StoreError> {
        let mut all = Self::default();
        let mut meet = |page| match page {
            ScanPage::Rows(rows) => rows.iter().for_each(|row| all.take(key, row, findings)),
            ScanPage::Labels(labels) => all.labels.extend(labels),
        };
        store.walk(&mut meet).await?;
        Ok(all)
    }

    fn take(&mut self, key: &RowKey, row: &SealedRow, findings: &mut Vec<AuditFinding>) {
        self.rows += 1;
        // A bad row is a finding and not an error, so that the audit goes on.
        let Err(error) = self.keep(key, row) else { return };
        let finding = match error {
            StoreError::Unsealed(_) => {
                "the row does not have the seal of this gateway: it was changed, or belongs to another keyring"
            }
            _ => "the row is sealed, but its content is malformed or does not match its id and search columns",
        };
        findings.push(AuditFinding { table: row.table.name(), id: row.id.clone(), finding: finding.to_owned() });
    }

    /// Returns the rows of each thread by thread id.
    pub(super) fn by_thread(&self) -> BTreeMap<&str, ThreadRows<'_>> {
        let mut threads: BTreeMap<&str, ThreadRows<'_>> = BTreeMap::new();
        for event in self.events.values().map(|it| &it.record) {
            if let Some(thread) = &event.thread {
                threads.entry(thread.as_str()).or_default().events.push(event);
            }
        }
        for hold in self.holds.values().map(|it| &it.record) {
            threads.entry(hold.thread.as_str()).or_default().holds.push(hold);
        }
        for thread in self.threads.values().map(|it| &it.record) {
            if let Some(origin) = &thread.branch {
                threads.entry(origin.thread.as_str()).or_default().branches.push(thread);
            }
        }
        for stored in self.archives.values() {
            threads.entry(stored.record.thread.as_str()).or_default().archives.push(stored);
        }
        for stored in self.receipts.values() {
            threads.entry(stored.record.thread.as_str()).or_default().receipts.push(stored);
        }
        for stored in self.writes.values() {
            threads.entry(stored.record.thread.as_str()).or_default().writes.push(stored);
        }
        for stored in self.rejections.values() {
            threads.entry(stored.record.thread.as_str()).or_default().rejections.push(stored);
        }
        threads
    }
}
