//! Audit: replays everything that is stored against the signatures and the events.
//!
//! The audit trusts only the keyring. The seal of a row shows that the gateway wrote it. The events, which are
//! hash-linked in each thread and numbered in the audit log, show that no row is missing and that no row was replaced
//! by an older copy.
//!
//! The audit only reads, and it can run beside a busy gateway. It reads all rows in one snapshot, so concurrent changes
//! cause no findings. It reads archive files after that. If a concurrent change removed a file, the audit starts again.

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

use countersign_adapters::archives::Archives;
use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{Policy, PolicySource};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::join_carryover::ThreadContributions;
use countersign_store::row::Table;
use countersign_store::{Store, StoreError};
use serde::Serialize;

pub use damages::unreadable;
use event_replay::ThreadEvents;
use load::Everything;

/// A difference between the stored data and the signed data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct AuditFinding {
    pub table: &'static str,
    /// Id of the row, or the id that a missing row should have.
    pub id: String,
    pub finding: String,
}

/// Result of an audit.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct AuditReport {
    pub rows: usize,
    pub threads: usize,
    /// Number of versions in these threads.
    pub versions: u64,
    pub events: usize,
    /// Empty if nothing is wrong.
    pub findings: Vec<AuditFinding>,
}

/// Maximum number of passes. The audit repeats only if archive files disappeared while it read them. A real finding
/// appears in every pass.
const LOOKS_MAX: usize = 4;

/// Replays everything if no versions are archived.
pub async fn audit(store: &dyn Store, keys: &Keys, now: Timestamp) -> Result<AuditReport, StoreError> {
    audit_with(store, None, keys, now).await
}

/// Asks the database to check itself, and then replays everything, including the archives.
pub async fn audit_with(
    store: &dyn Store,
    archives: Option<&Archives>,
    keys: &Keys,
    now: Timestamp,
) -> Result<AuditReport, StoreError> {
    // The database checks itself first, because a damaged page may contain no row that the replay reads.
    let damages = damages::of(store).await?;
    let replayed = replay(store, archives, keys, now).await;
    damages::first(damages, replayed)
}

async fn replay(
    store: &dyn Store,
    archives: Option<&Archives>,
    keys: &Keys,
    now: Timestamp,
) -> Result<AuditReport, StoreError> {
    let mut policies = BTreeMap::new();
    let mut last = look(store, archives, keys, now, &mut policies).await?;
    for _ in 1..LOOKS_MAX {
        if !last.moved {
            break;
        }
        let mut again = look(store, archives, keys, now, &mut policies).await?;
        // Files disappear only a few times. A finding of both passes is real.
        if again.moved {
            again.report.findings.retain(|it| last.report.findings.contains(it));
        }
        last = again;
    }
    Ok(last.report)
}

struct AuditPass {
    report: AuditReport,
    /// Whether an archive row with a bad file has changed since it was read.
    moved: bool,
}

/// Reads everything and replays it once.
async fn look(
    store: &dyn Store,
    archives: Option<&Archives>,
    keys: &Keys,
    now: Timestamp,
    policies: &mut BTreeMap<Digest, Policy>,
) -> Result<AuditPass, StoreError> {
    let mut findings = Vec::new();
    let mut all = Everything::load(store, keys.row(), &mut findings).await?;
    // From here on, archived rows look as if they had never left the database.
    let unread = archives::put_back(&mut all, archives, &mut findings);
    let moved = archives::have_moved(store, &all, &unread).await?;
    let standings = BTreeMap::new();
    let mut audit = AuditRun { keys, now, all: &all, policies, findings, versions: 0, standings };
    audit.replay_all();
    let AuditRun { mut findings, versions, .. } = audit;
    // Several checks can report the same finding.
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
    /// Policies by digest. Each is compiled once for all passes, and the rows decide which policies exist.
    policies: &'a mut BTreeMap<Digest, Policy>,
    findings: Vec<AuditFinding>,
    versions: u64,
    /// Contributions to threads at the versions where branches start and end, so that each is computed once.
    standings: BTreeMap<(ThreadId, u64), Option<ThreadContributions>>,
}

impl AuditRun<'_> {
    /// Runs every check that compares rows with each other.
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
        // Rows without a thread are not reached by the loop above.
        self.check_orphan_rows();
        self.check_orphan_episode_events();
        self.check_orphan_steps();
        self.check_labels();
    }

    fn note(&mut self, table: Table, id: impl ToString, finding: impl Into<String>) {
        self.findings.push(AuditFinding { table: table.name(), id: id.to_string(), finding: finding.into() });
    }

    /// Adds the finding unless the condition is true.
    fn expect(&mut self, holds: bool, table: Table, id: impl ToString, finding: impl Into<String>) {
        if !holds {
            self.note(table, id, finding);
        }
    }

    /// Checks that every policy has its own digest as its name and compiles.
    fn check_policies(&mut self) {
        for (id, stored) in &self.all.policies {
            let row = &stored.record;
            let source = PolicySource { text: row.text.clone(), schemas: row.schemas.clone() };
            self.expect(
                source.digest() == row.digest,
                Table::Policies,
                id,
                "the digest of the policy text differs from the stored digest",
            );
            self.expect(
                stored.revision == 1,
                Table::Policies,
                id,
                "the policy was replaced, which the gateway never does",
            );
            // Compiled in an earlier pass.
            if self.policies.contains_key(&source.digest()) {
                continue;
            }
            match Policy::compile(&source) {
                Ok(policy) if *policy.flow() == row.flow => {
                    self.policies.insert(source.digest(), policy);
                }
                Ok(_) => self.note(Table::Policies, id, "the policy text belongs to another flow than the row"),
                Err(error) => self.note(Table::Policies, id, format!("the policy text does not compile: {error}")),
            }
        }
    }
}
