//! Audit: replays everything that is stored against what was signed and what the events say.
//!
//! It believes the keyring and nothing else. A row is genuine by its seal; that none is missing, and none was put
//! back to what it once said, shows by the events, which are hash-linked in each thread and numbered in the log.
//! It only reads, and runs beside a busy gateway: all rows are read as they stood at one moment, so whatever is done
//! meanwhile is no finding, however busy the gateway is, and whatever was wrong at that moment is one. Files of archives
//! are read after that: where one went because it was decided so meanwhile, all is looked at again.

mod archives;
mod attempts;
mod branches;
mod chain;
mod commit_gate;
mod context_tokens;
mod damages;
mod deadline_extensions;
mod delegations;
mod endpoints;
mod episodes;
mod escalations;
mod event_replay;
mod events;
mod halts;
mod holds;
mod idempotency;
mod identity;
mod imports;
mod insight;
mod interrupts;
mod keyring;
mod labels;
mod load;
mod mail;
mod passkeys;
mod policy_changes;
mod steps;
mod votes;
mod writes;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::archives::Archives;
use crate::domain::chain::hash::Digest;
use crate::domain::keys::Keys;
use crate::domain::policy::{Policy, PolicySource};
use crate::domain::primitives::id::ThreadId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::join_carryover::ThreadContributions;
use crate::store::row::Table;
use crate::store::{Store, StoreError};

pub use damages::unreadable;
use event_replay::ThreadEvents;
use load::Everything;

/// Something that is not as it was signed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct AuditFinding {
    pub table: &'static str,
    /// Which row, or where one should be.
    pub id: String,
    pub finding: String,
}

/// What an audit went through, and what it found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct AuditReport {
    pub rows: usize,
    pub threads: usize,
    /// How many versions of theirs.
    pub versions: u64,
    pub events: usize,
    /// What is wrong; empty if nothing is.
    pub findings: Vec<AuditFinding>,
}

/// How often it looks at most: more than once only where files went while they were read. What is wrong stays wrong.
const LOOKS_MAX: usize = 4;

/// Replays everything where nothing has left the database.
pub async fn audit(store: &dyn Store, keys: &Keys, now: Timestamp) -> Result<AuditReport, StoreError> {
    audit_with(store, None, keys, now).await
}

/// Has the database check itself, and then replays everything, with what is in archives.
pub async fn audit_with(
    store: &dyn Store,
    archives: Option<&Archives>,
    keys: &Keys,
    now: Timestamp,
) -> Result<AuditReport, StoreError> {
    let damages = damages::of(store).await?;
    let replayed = replay((store, archives), keys, now).await;
    damages::first(damages, replayed)
}

async fn replay(
    (store, archives): (&dyn Store, Option<&Archives>),
    keys: &Keys,
    now: Timestamp,
) -> Result<AuditReport, StoreError> {
    let mut policies = BTreeMap::new();
    let mut last = look((store, archives), keys, now, &mut policies).await?;
    for _ in 1..LOOKS_MAX {
        if !last.moved {
            break;
        }
        let mut again = look((store, archives), keys, now, &mut policies).await?;
        if again.moved {
            again.report.findings.retain(|it| last.report.findings.contains(it));
        }
        last = again;
    }
    Ok(last.report)
}

struct AuditPass {
    report: AuditReport,
    /// Whether rows of archives say something else by now than when they were read, whose files were not as they said.
    moved: bool,
}

/// Reads everything, and replays it.
async fn look(
    (store, archives): (&dyn Store, Option<&Archives>),
    keys: &Keys,
    now: Timestamp,
    policies: &mut BTreeMap<Digest, Policy>,
) -> Result<AuditPass, StoreError> {
    let mut findings = Vec::new();
    let mut all = Everything::load(store, keys.row(), &mut findings).await?;
    let unread = archives::put_back(&mut all, archives, &mut findings);
    let moved = archives::have_moved(store, &all, &unread).await?;
    let standings = BTreeMap::new();
    let mut audit = AuditRun { keys, now, all: &all, policies, findings, versions: 0, standings };
    audit.replay_all();
    let AuditRun { mut findings, versions, .. } = audit;
    findings.sort();
    findings.dedup();
    let report =
        AuditReport { rows: all.rows, threads: all.threads.len(), versions, events: all.events.len(), findings };
    Ok(AuditPass { report, moved })
}

struct AuditRun<'a> {
    keys: &'a Keys,
    now: Timestamp,
    all: &'a Everything,
    /// Compiled once, however often it looks; which there are is asked of the rows.
    policies: &'a mut BTreeMap<Digest, Policy>,
    findings: Vec<AuditFinding>,
    versions: u64,
    /// What threads had come to where branches begin and end, so that it is worked out once.
    standings: BTreeMap<(ThreadId, u64), Option<ThreadContributions>>,
}

impl AuditRun<'_> {
    /// Whatever is found by comparing rows with each other.
    fn replay_all(&mut self) {
        let all = self.all;
        self.check_policies();
        self.check_events();
        self.check_access();
        self.check_keys();
        self.check_passkeys();
        self.check_figures();
        self.check_marks();
        self.check_answers();
        self.check_contacts();
        let mut belongings = all.by_thread();
        for thread in all.threads.values().map(|it| &it.record) {
            let own = belongings.remove(thread.id.as_str()).unwrap_or_default();
            let story = ThreadEvents::of(&own.events);
            self.check_chain(thread, &story);
            self.check_holds(thread, &own, &story);
            self.check_receipts(&own, &story);
            self.check_writes(&own, &story);
            self.check_thread(thread, &own, &story);
            self.check_branches(thread, &own, &story);
            self.check_archives(thread, &own.archives, &story);
            self.check_episode(thread, &own);
            self.check_steps(thread, &own);
        }
        self.check_orphan_rows();
        self.check_orphan_episode_events();
        self.check_orphan_steps();
        self.check_labels();
    }

    fn note(&mut self, table: Table, id: impl ToString, finding: impl Into<String>) {
        self.findings.push(AuditFinding { table: table.name(), id: id.to_string(), finding: finding.into() });
    }

    /// Notes it unless it holds.
    fn expect(&mut self, holds: bool, table: Table, id: impl ToString, finding: impl Into<String>) {
        if !holds {
            self.note(table, id, finding);
        }
    }

    /// Every policy hashes to its name and compiles; every event that names one has its row.
    fn check_policies(&mut self) {
        for (id, stored) in &self.all.policies {
            let row = &stored.record;
            let source = PolicySource { text: row.text.clone(), schemas: row.schemas.clone() };
            self.expect(source.digest() == row.digest, Table::Policies, id, "the text does not hash to the digest");
            self.expect(stored.revision == 1, Table::Policies, id, "a policy is never replaced");
            if self.policies.contains_key(&source.digest()) {
                continue;
            }
            match Policy::compile(&source) {
                Ok(policy) if *policy.flow() == row.flow => {
                    self.policies.insert(source.digest(), policy);
                }
                Ok(_) => self.note(Table::Policies, id, "the text is of another flow than the row says"),
                Err(error) => self.note(Table::Policies, id, format!("the text is no policy: {error}")),
            }
        }
    }
}
