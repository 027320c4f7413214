//! Reads every row of every table, and checks each by itself: seal, shape, and that it is found as what it says.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::Finding;
use crate::domain::account::{Account, OneTimeLink, Session, Token};
use crate::domain::amendment::Amendment;
use crate::domain::archive::{Archive, Whereabouts};
use crate::domain::contact::{Contact, Letter};
use crate::domain::delegation::Delegation;
use crate::domain::endpoint::delivery::Delivery;
use crate::domain::endpoint::{Endpoint, Lane};
use crate::domain::episode::imported::{Imported, Piece};
use crate::domain::episode::posted::Posted;
use crate::domain::event::Event;
use crate::domain::flow::{Flow, Gateway, PolicyRow, ReceiptRow};
use crate::domain::interrupt::{Interrupt, Posted as SignedPost};
use crate::domain::keys::RowKey;
use crate::domain::passkey::Passkey;
use crate::domain::repeat::KeptAnswer;
use crate::domain::review::Hold;
use crate::domain::step::StepRow;
use crate::domain::thread::Thread;
use crate::domain::transition::{ChainRow, Rejection, StateRow, Transition};
use crate::domain::tries::Tries;
use crate::domain::write::Write;
use crate::store::record::{Record, Stored, open};
use crate::store::records::{InsightRow, LogMark, LogRow, Pending, Sighting};
use crate::store::row::Row;
use crate::store::{Cursor, Filter, LIST_ROWS_MAX, Store, StoreError};

/// The rows of a table by id.
pub(super) type Kept<R> = BTreeMap<String, Stored<R>>;

/// Everything that is stored and bears this gateway's seal.
pub(super) struct Everything {
    pub(super) figures: Kept<InsightRow>,
    pub(super) marks: Kept<LogMark>,
    pub(super) answers: Kept<KeptAnswer>,
    pub(super) deliveries: Kept<Delivery>,
    pub(super) lanes: Kept<Lane>,
    pub(super) endpoints: Kept<Endpoint>,
    pub(super) contacts: Kept<Contact>,
    pub(super) letters: Kept<Letter>,
    pub(super) gateway: Kept<Gateway>,
    pub(super) flows: Kept<Flow>,
    pub(super) policies: Kept<PolicyRow>,
    pub(super) amendments: Kept<Amendment>,
    pub(super) interrupts: Kept<Interrupt>,
    pub(super) posts: Kept<SignedPost>,
    pub(super) threads: Kept<Thread>,
    pub(super) transitions: Kept<Transition>,
    pub(super) rejections: Kept<Rejection>,
    pub(super) steps: Kept<StepRow>,
    pub(super) entries: Kept<ChainRow>,
    pub(super) states: Kept<StateRow>,
    pub(super) archives: Kept<Archive>,
    pub(super) whereabouts: Kept<Whereabouts>,
    pub(super) holds: Kept<Hold>,
    pub(super) receipts: Kept<ReceiptRow>,
    pub(super) writes: Kept<Write>,
    pub(super) accounts: Kept<Account>,
    pub(super) tokens: Kept<Token>,
    pub(super) sessions: Kept<Session>,
    pub(super) links: Kept<OneTimeLink>,
    pub(super) tries: Kept<Tries>,
    pub(super) sightings: Kept<Sighting>,
    pub(super) passkeys: Kept<Passkey>,
    pub(super) delegations: Kept<Delegation>,
    pub(super) episode_events: Kept<Posted>,
    pub(super) imports: Kept<Imported>,
    pub(super) import_pieces: Kept<Piece>,
    pub(super) events: Kept<Event>,
    pub(super) outbox: Kept<Pending>,
    pub(super) log: Kept<LogRow>,
    pub(super) rows: usize,
    /// Over every row as it lay there, whether or not it bears the seal.
    pub(super) hash: [u8; 32],
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

struct Loader<'a> {
    store: &'a dyn Store,
    key: &'a RowKey,
    findings: &'a mut Vec<Finding>,
    rows: usize,
    hasher: Sha256,
}

impl Everything {
    /// Threads before what belongs to them, and what was counted before all: what is made meanwhile is then in
    /// excess, not missing.
    pub(super) async fn load(store: &dyn Store, key: &RowKey, findings: &mut Vec<Finding>) -> Result<Self, StoreError> {
        let mut loader = Loader { store, key, findings, rows: 0, hasher: Sha256::new() };
        Ok(Self {
            figures: loader.table().await?,
            marks: loader.table().await?,
            answers: loader.table().await?,
            deliveries: loader.table().await?,
            lanes: loader.table().await?,
            endpoints: loader.table().await?,
            letters: loader.table().await?,
            contacts: loader.table().await?,
            gateway: loader.table().await?,
            flows: loader.table().await?,
            policies: loader.table().await?,
            amendments: loader.table().await?,
            interrupts: loader.table().await?,
            posts: loader.table().await?,
            threads: loader.table().await?,
            transitions: loader.table().await?,
            rejections: loader.table().await?,
            steps: loader.table().await?,
            entries: loader.table().await?,
            states: loader.table().await?,
            archives: loader.table().await?,
            whereabouts: loader.table().await?,
            holds: loader.table().await?,
            receipts: loader.table().await?,
            writes: loader.table().await?,
            accounts: loader.table().await?,
            tokens: loader.table().await?,
            sessions: loader.table().await?,
            links: loader.table().await?,
            tries: loader.table().await?,
            sightings: loader.table().await?,
            passkeys: loader.table().await?,
            delegations: loader.table().await?,
            episode_events: loader.table().await?,
            imports: loader.table().await?,
            import_pieces: loader.table().await?,
            events: loader.table().await?,
            outbox: loader.table().await?,
            log: loader.table().await?,
            rows: loader.rows,
            hash: loader.hasher.finalize().into(),
        })
    }
}

impl Everything {
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

impl Loader<'_> {
    async fn table<R: Record>(&mut self) -> Result<Kept<R>, StoreError> {
        let mut kept = Kept::new();
        let mut after: Option<Cursor> = None;
        loop {
            let page = self.store.list(R::TABLE, Filter::All, after.as_ref(), LIST_ROWS_MAX).await?;
            let Some(last) = page.last() else { return Ok(kept) };
            after = Some(Cursor { due: last.facets.due, id: last.id.clone() });
            for row in page {
                self.rows += 1;
                self.keep(&row, &mut kept);
            }
        }
    }

    fn keep<R: Record>(&mut self, row: &Row, kept: &mut Kept<R>) {
        for part in [&row.sealed_bytes(), &row.mac] {
            self.hasher.update((part.len() as u64).to_be_bytes());
            self.hasher.update(part);
        }
        match open::<R>(self.key, row) {
            Ok(stored) => {
                kept.insert(row.id.clone(), stored);
            }
            Err(error) => {
                let finding = match error {
                    StoreError::Unsealed(_) => "it does not bear this gateway's seal",
                    _ => "it is sealed, but not of the shape or not findable as what it says",
                };
                self.findings.push(Finding { table: R::TABLE.name(), id: row.id.clone(), finding: finding.to_owned() });
            }
        }
    }
}
