//! Reads every row of every table, and checks each by itself: seal, shape, and that it is found as what it says.

use std::collections::BTreeMap;

use super::Finding;
use crate::domain::delivery::delivery::Delivery;
use crate::domain::delivery::endpoint::{Endpoint, Lane};
use crate::domain::delivery::mail_contact::{Contact, Letter};
use crate::domain::episode::agent_event::Posted;
use crate::domain::episode::imported::{Imported, Piece};
use crate::domain::identity::account::{Account, OneTimeLink, Session, Token};
use crate::domain::identity::delegation::Delegation;
use crate::domain::identity::login_throttle::Tries;
use crate::domain::identity::passkey::Passkey;
use crate::domain::interrupts::{Interrupt, Posted as SignedPost};
use crate::domain::keys::RowKey;
use crate::domain::log::event::Event;
use crate::domain::platform::idempotency::KeptAnswer;
use crate::domain::policy_changes::change_request::Amendment;
use crate::domain::reviews::Hold;
use crate::domain::threads::archive::{Archive, Whereabouts};
use crate::domain::threads::flow::{Flow, Gateway, PolicyRow, ReceiptRow};
use crate::domain::threads::step::StepRow;
use crate::domain::threads::thread::Thread;
use crate::domain::threads::transition::{ChainRow, Rejection, StateRow, Transition};
use crate::domain::writes::write::Write;
use crate::store::label::Label;
use crate::store::record::{Record, Stored, open};
use crate::store::records::{InsightRow, LogMark, LogRow, Pending, Sighting};
use crate::store::row::Row;
use crate::store::{Page, Store, StoreError};

/// The rows of a table by id.
pub(super) type Kept<R> = BTreeMap<String, Stored<R>>;

macro_rules! everything {
    ($($rows:ident: $record:ty,)*) => {
        /// Everything that is stored and bears this gateway's seal, as it stood at one moment.
        #[derive(Default)]
        pub(super) struct Everything {
            $(pub(super) $rows: Kept<$record>,)*
            pub(super) labels: Vec<Label>,
            /// How many rows, whether or not they bear the seal.
            pub(super) rows: usize,
        }

        impl Everything {
            fn keep(&mut self, key: &RowKey, row: &Row) -> Result<(), StoreError> {
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
    marks: LogMark,
    answers: KeptAnswer,
    deliveries: Delivery,
    lanes: Lane,
    endpoints: Endpoint,
    contacts: Contact,
    letters: Letter,
    gateway: Gateway,
    flows: Flow,
    policies: PolicyRow,
    amendments: Amendment,
    interrupts: Interrupt,
    posts: SignedPost,
    threads: Thread,
    transitions: Transition,
    rejections: Rejection,
    steps: StepRow,
    entries: ChainRow,
    states: StateRow,
    archives: Archive,
    whereabouts: Whereabouts,
    holds: Hold,
    receipts: ReceiptRow,
    writes: Write,
    accounts: Account,
    tokens: Token,
    sessions: Session,
    links: OneTimeLink,
    tries: Tries,
    sightings: Sighting,
    passkeys: Passkey,
    delegations: Delegation,
    episode_events: Posted,
    imports: Imported,
    import_pieces: Piece,
    events: Event,
    outbox: Pending,
    log: LogRow,
}

/// What belongs to each thread, gathered once: an audit goes through every thread.
#[derive(Default)]
pub(super) struct Belongings<'a> {
    pub(super) events: Vec<&'a Event>,
    pub(super) holds: Vec<&'a Hold>,
    pub(super) receipts: Vec<&'a Stored<ReceiptRow>>,
    pub(super) writes: Vec<&'a Stored<Write>>,
    pub(super) rejections: Vec<&'a Stored<Rejection>>,
    /// Where its past is that has left the database.
    pub(super) archives: Vec<&'a Stored<Archive>>,
    /// Threads that say that they are its branches.
    pub(super) branches: Vec<&'a Thread>,
}

impl Everything {
    /// All of it as it stands at one moment: what a gateway does meanwhile is in none of it, and so neither missing nor in
    /// excess.
    pub(super) async fn load(store: &dyn Store, key: &RowKey, findings: &mut Vec<Finding>) -> Result<Self, StoreError> {
        let mut all = Self::default();
        let mut meet = |page| match page {
            Page::Rows(rows) => rows.iter().for_each(|row| all.take(key, row, findings)),
            Page::Labels(labels) => all.labels.extend(labels),
        };
        store.walk(&mut meet).await?;
        Ok(all)
    }

    fn take(&mut self, key: &RowKey, row: &Row, findings: &mut Vec<Finding>) {
        self.rows += 1;
        let Err(error) = self.keep(key, row) else { return };
        let finding = match error {
            StoreError::Unsealed(_) => "it does not bear this gateway's seal",
            _ => "it is sealed, but not of the shape or not findable as what it says",
        };
        findings.push(Finding { table: row.table.name(), id: row.id.clone(), finding: finding.to_owned() });
    }

    /// What belongs to each thread, by its name.
    pub(super) fn by_thread(&self) -> BTreeMap<&str, Belongings<'_>> {
        let mut threads: BTreeMap<&str, Belongings<'_>> = BTreeMap::new();
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
