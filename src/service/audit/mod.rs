//! Audit: replays everything that is stored against what was signed and what the events say.
//!
//! It believes the keyring and nothing else. A row is genuine by its seal; that none is missing, and none was put
//! back to what it once said, shows by the events, which are hash-linked in each thread and numbered in the log.
//! It only reads, and runs beside a busy gateway: what was merely under way between two reads is not found again
//! at the next look.

mod access;
mod amendments;
mod answers;
mod archives;
mod branches;
mod chain;
mod contacts;
mod deadlines;
mod delegations;
mod endpoints;
mod episodes;
mod events;
mod figures;
mod gate;
mod given;
mod halts;
mod holds;
mod imports;
mod interrupts;
mod labels;
mod load;
mod notices;
mod passkeys;
mod steps;
mod story;
mod votes;
mod writes;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::archives::Archives;
use crate::domain::branch::Standing;
use crate::domain::chain::hash::Digest;
use crate::domain::id::ThreadId;
use crate::domain::keys::Keys;
use crate::domain::policy::{Policy, PolicySource};
use crate::domain::time::Timestamp;
use crate::store::row::Table;
use crate::store::{Store, StoreError};

use load::Everything;
use story::Story;

/// Something that is not as it was signed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Finding {
    /// In which table.
    pub table: &'static str,
    /// Which row, or where one should be.
    pub id: String,
    /// What is wrong.
    pub finding: String,
}

/// What an audit went through, and what it found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// How many rows.
    pub rows: usize,
    /// How many threads.
    pub threads: usize,
    /// How many versions of theirs.
    pub versions: u64,
    /// How many events.
    pub events: usize,
    /// What is wrong; empty if nothing is.
    pub findings: Vec<Finding>,
}

/// How often it looks at most. What is wrong stays wrong; what was under way has another detail each time.
const LOOKS_MAX: usize = 4;

/// Replays everything where nothing has left the database.
pub async fn audit(store: &dyn Store, keys: &Keys, now: Timestamp) -> Result<Report, StoreError> {
    audit_with(store, None, keys, now).await
}

/// Replays everything, with what is in archives.
pub async fn audit_with(
    store: &dyn Store,
    archives: Option<&Archives>,
    keys: &Keys,
    now: Timestamp,
) -> Result<Report, StoreError> {
    let mut policies = BTreeMap::new();
    let mut report = look((store, archives), keys, now, &mut policies).await?;
    for _ in 1..LOOKS_MAX {
        if report.findings.is_empty() {
            break;
        }
        let mut again = look((store, archives), keys, now, &mut policies).await?;
        again.findings.retain(|it| report.findings.contains(it));
        let steady = again.findings.len() == report.findings.len();
        report = again;
        if steady {
            break;
        }
    }
    Ok(report)
}

async fn look(
    (store, archives): (&dyn Store, Option<&Archives>),
    keys: &Keys,
    now: Timestamp,
    policies: &mut BTreeMap<Digest, Policy>,
) -> Result<Report, StoreError> {
    let mut findings = Vec::new();
    let mut all = Everything::load(store, keys.row(), &mut findings).await?;
    archives::put_back(&mut all, archives, &mut findings);
    let standings = BTreeMap::new();
    let mut audit = Audit { keys, now, all: &all, policies, findings, versions: 0, standings };
    audit.check_policies();
    audit.check_events();
    audit.check_access();
    audit.check_passkeys();
    audit.check_figures();
    audit.check_marks();
    audit.check_answers();
    audit.check_contacts();
    let mut belongings = all.by_thread();
    for thread in all.threads.values().map(|it| &it.record) {
        let own = belongings.remove(thread.id.as_str()).unwrap_or_default();
        let story = Story::of(&own.events);
        audit.check_chain(thread, &story);
        audit.check_holds(thread, &own, &story);
        audit.check_receipts(&own, &story);
        audit.check_writes(&own, &story);
        audit.check_thread(thread, &own, &story);
        audit.check_branches(thread, &own, &story);
        audit.check_archives(thread, &own.archives, &story);
        audit.check_episode(thread, &own);
        audit.check_steps(thread, &own);
    }
    audit.check_strays();
    audit.check_episode_strays();
    audit.check_step_strays();
    audit.check_labels(store).await?;
    let Audit { mut findings, versions, .. } = audit;
    findings.sort();
    findings.dedup();
    Ok(Report { rows: all.rows, threads: all.threads.len(), versions, events: all.events.len(), findings })
}

/// An audit under way.
struct Audit<'a> {
    keys: &'a Keys,
    now: Timestamp,
    all: &'a Everything,
    /// Compiled once, however often it looks; which there are is asked of the rows.
    policies: &'a mut BTreeMap<Digest, Policy>,
    findings: Vec<Finding>,
    versions: u64,
    /// What threads had come to where branches begin and end, so that it is worked out once.
    standings: BTreeMap<(ThreadId, u64), Option<Standing>>,
}

impl Audit<'_> {
    fn note(&mut self, table: Table, id: impl ToString, finding: impl Into<String>) {
        self.findings.push(Finding { table: table.name(), id: id.to_string(), finding: finding.into() });
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
