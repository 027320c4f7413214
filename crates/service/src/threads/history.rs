//! The history of a thread: its chain, single versions, and differences between two. Every call verifies the
//! signatures of what it returns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use countersign_domain::chain::commitment::{LeafSource, Tree};
use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::{Opening, OpeningSelection, open};
use countersign_domain::identity::party::Party;
use countersign_domain::json::diff::diff;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::{KeyState, KeyUse, Keys};
use countersign_domain::policy::{JudgedWarning, Policy, RedactedChange, Redactor, redacted_by};
use countersign_domain::primitives::id::{NodeId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::Transition;
use countersign_domain::writes::write::Write;
use countersign_store::records::event_alias;
use serde_json::Value;

use super::provenance::TraceStart;
use super::redacted_fields::{RedactedField, hidden_places};
use super::redaction::Redaction;
use super::redaction_queue::RedactionWork;
use super::tool_call_view::{CallContext, RedactedToolCall};
use crate::error::{Error, Result};
use crate::identity::requester_names::RequesterName;
use crate::threads::Threads;
use crate::threads::version::Version;

/// A version in the history of a thread.
pub struct HistoryItem {
    pub transition: Transition,
    /// The changes of the version, redacted.
    pub diff: Vec<RedactedChange>,
    /// The tool call of the version, redacted.
    pub call: Option<RedactedToolCall>,
    /// The claims of the signed entry.
    pub entry: Entry,
    /// The review, if the version was approved.
    pub hold: Option<Hold>,
}

/// The difference between two states, redacted.
pub struct StateDifference {
    /// The opening of both trees along the difference. Redacted leaves stay closed.
    pub opening: Opening,
    pub hidden: Vec<RedactedField>,
    /// The policies that apply. A path is redacted or protected if any of them says so.
    pub policies: Vec<Arc<Policy>>,
}

/// Everything about one version.
pub struct VersionFacts {
    pub thread: Thread,
    /// The statement and outcome of the version.
    pub transition: Transition,
    /// The claims of the signed entry.
    pub entry: Entry,
    /// The signed entry.
    pub token: String,
    pub kid: String,
    pub key: KeyState,
    pub differing: StateDifference,
    /// The rationale, redacted.
    pub rationale: Option<String>,
    /// The tool call that belongs to the change.
    pub call: Option<RedactedToolCall>,
    /// The warnings of rules.
    pub warnings: Vec<JudgedWarning>,
    pub by: Option<RequesterName>,
    /// The review, if the version was held for approval.
    pub hold: Option<Hold>,
    pub receipt: Option<ReceiptRow>,
    /// The writes of the version, newest first.
    pub writes: Vec<Write>,
    /// The nodes that may roll back to this version. Empty if a rollback is not possible now.
    pub rollback_nodes: Vec<NodeId>,
    /// The time at which the facts were read.
    pub now: Timestamp,
}

/// A version with the state before it and its policies.
struct LoadedVersion {
    thread: Thread,
    transition: Transition,
    before: Value,
    checked: Version,
    policies: Vec<Arc<Policy>>,
    active: Digest,
    now: Timestamp,
}

/// Writes of one head in a response. A head without a receipt can be aborted and reserved again without
/// limit.
const WRITES_TOLD: usize = 10;

impl Threads {
    /// Returns a page of a thread's chain, newest first, below version `below`.
    pub async fn history(
        self: &Arc<Self>,
        thread: &ThreadId,
        below: Option<u64>,
        limit: u64,
        reader: &Party,
    ) -> Result<(Thread, Vec<HistoryItem>)> {
        let keys = self.core.keys()?;
        let record = self.core.thread(&keys, thread).await?.record;
        // A larger value would ask for versions that do not exist.
        let top = below.unwrap_or(record.head.version + 1).min(record.head.version + 1);
        if top == 0 {
            return Ok((record, Vec::new()));
        }
        // The first version after erased ones has no known predecessor, so its changes are unknown.
        let told = record.gone.first_explained_version();
        if top <= told {
            return Ok((record, Vec::new()));
        }
        let first = top.saturating_sub(limit.max(1)).max(told);
        let active = self.core.flow(&keys, &record.flow).await?.record.policy;
        // The changes of the oldest version need the version before it.
        let versions = self.versions(&keys, thread, first.saturating_sub(1)..=top - 1).await?;
        let work = RedactionWork::of(reader, thread, versions.iter().map(|(it, _)| &it.state));
        let (threads, reader) = (Arc::clone(self), reader.clone());
        let items = move || async move { threads.items_of(&keys, active, first, versions, &reader).await };
        Ok((record, self.redact(work, items).await?))
    }

    /// Returns these versions from `first` on, newest first, with their changes.
    async fn items_of(
        &self,
        keys: &Keys,
        active: Digest,
        first: u64,
        mut versions: Vec<(Version, Transition)>,
        reader: &Party,
    ) -> Result<Vec<HistoryItem>> {
        let mut holds = self.approved_by(keys, &versions).await?;
        let mut items = Vec::with_capacity(versions.len());
        while let Some((after, transition)) = versions.pop() {
            if transition.statement.version < first {
                break;
            }
            let nothing = Value::Object(Default::default());
            let before = versions.last().map_or(&nothing, |(it, _)| &it.state);
            let policies = self.policies_under(keys, active, [transition.statement.policy]).await?;
            let sides = [
                TraceStart::before(&transition, before),
                TraceStart::After { transition: &transition, before, after: &after.state },
            ];
            let call = self.sent_call(keys, &transition).await?;
            let hidings = self.redactors_for(keys, reader, &policies, sides, &[call.as_ref()]).await?;
            let diff = redacted_by(&hidings, &diff(before, &after.state), &transition.named);
            let context =
                CallContext { reader, policies: &policies, hidings: &hidings, states: [before, &after.state] };
            let call = self.call_in(keys, &transition, call.as_ref(), &context)?;
            let hold = holds.remove(&transition.digest);
            items.push(HistoryItem { diff, call, transition, entry: after.entry, hold });
        }
        Ok(items)
    }

    /// Returns the reviews of the approved ones of these versions, by transition.
    async fn approved_by(&self, keys: &Keys, versions: &[(Version, Transition)]) -> Result<HashMap<Digest, Hold>> {
        let review = |(version, _): &(Version, Transition)| match &version.entry.gate {
            CommitGate::Approved { review, .. } => Some(review.to_string()),
            _ => None,
        };
        let reviews: Vec<String> = versions.iter().filter_map(review).collect();
        let holds = self.core.reader(keys).get_many::<Hold>(&reviews).await?;
        Ok(holds.into_iter().map(|it| (it.record.transition, it.record)).collect())
    }

    /// Returns one version with everything that belongs to it.
    pub async fn version_facts(
        self: &Arc<Self>,
        thread: &ThreadId,
        version: u64,
        reader: &Party,
    ) -> Result<VersionFacts> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let record = self.core.thread(&keys, thread).await?.record;
        if version > record.head.version {
            return Err(Error::NotFound("version"));
        }
        let checked = self.version(&keys, thread, version).await?;
        let transition = self.transition(&keys, checked.entry.transition).await?;
        let policies = self.policies_over(&keys, &record, [transition.statement.policy]).await?;
        let active = self.core.flow(&keys, &record.flow).await?.record.policy;
        let (before, _) = self.states_of(&keys, &transition).await?;
        let work = RedactionWork::of(reader, thread, [&before, &checked.state]);
        let (threads, reader) = (Arc::clone(self), reader.clone());
        let loaded = LoadedVersion { thread: record, transition, before, checked, policies, active, now };
        self.redact(work, move || async move { threads.facts_of(&keys, loaded, &reader).await }).await
    }

    async fn facts_of(&self, keys: &Keys, loaded: LoadedVersion, reader: &Party) -> Result<VersionFacts> {
        let LoadedVersion { thread: record, transition, before, checked, policies, active, now } = loaded;
        let (call, version) = (self.sent_call(keys, &transition).await?, checked.entry.version);
        let call = call.as_ref();
        let sides = [
            TraceStart::before(&transition, &before),
            TraceStart::After { transition: &transition, before: &before, after: &checked.state },
        ];
        let hidings = self.redactors_for(keys, reader, &policies, sides, &[call]).await?;
        let hides = |at: &Pointer| hidings.iter().any(|it| it.hides(at));
        let own = policies.first().ok_or(Error::Broken("a policy"))?;
        let opening = self.open_transition(keys, &transition, own, &hides).await?;
        let ((author, caller), states) = (self.authors_of(keys, &transition).await?, [&before, &checked.state]);
        let authors = [&author, &caller];
        let redaction = Redaction::with_redactors(reader.clone(), &policies, &hidings, &states, call, authors);
        let rationale = transition.rationale.as_ref().map(|it| redaction.words(&author, it).into_owned());
        let differing = differing(opening, &before, &checked.state, &hidings);
        let receipt = match &checked.entry.gate {
            CommitGate::Approved { receipt, .. } => self.core.fetch::<ReceiptRow>(keys, receipt.as_str()).await?,
            _ => None,
        };
        // The page shows if the key was retired or revoked since.
        let key = keys.trusted().public(KeyUse::Chain, &checked.kid).map(|it| it.state());
        let active = policies.iter().find(|it| it.digest() == active).or(policies.last());
        // Otherwise the rollback form would only lead to a refusal.
        let behind = version < record.head.version && record.closed.is_none() && record.hold.is_none();
        let nodes = active.filter(|_| behind).into_iter().flat_map(|it| it.nodes());
        let nodes = nodes.filter(|(_, rules)| rules.may_roll_back()).map(|(node, _)| node.clone());
        Ok(VersionFacts {
            rollback_nodes: nodes.collect(),
            call: self.call_of(keys, &redaction, &caller, &transition)?,
            warnings: warnings_by(&hidings, &transition),
            by: self.identity.names_of(keys, [&transition.statement.principal]).await?.into_values().next(),
            hold: self.hold_of(keys, transition.digest).await?.map(|it| it.record),
            writes: self.writes_of(keys, &record, version).await?,
            receipt: receipt.map(|it| it.record),
            key: key.ok_or(Error::Broken("the chain"))?,
            differing: StateDifference { policies: policies.clone(), ..differing },
            thread: record,
            transition,
            entry: checked.entry,
            token: checked.token,
            kid: checked.kid,
            rationale,
            now,
        })
    }

    /// Returns the policies of these digests and the active policy. A path that only the active policy
    /// redacts is redacted in the history too.
    pub(crate) async fn policies_over<const N: usize>(
        &self,
        keys: &Keys,
        thread: &Thread,
        of: [Digest; N],
    ) -> Result<Vec<Arc<Policy>>> {
        let active = self.core.flow(keys, &thread.flow).await?.record.policy;
        self.policies_under(keys, active, of).await
    }

    /// Returns the policies of these digests and the given active policy.
    pub(crate) async fn policies_under<const N: usize>(
        &self,
        keys: &Keys,
        active: Digest,
        of: [Digest; N],
    ) -> Result<Vec<Arc<Policy>>> {
        let mut policies: Vec<Arc<Policy>> = Vec::with_capacity(N + 1);
        for digest in of.into_iter().chain([active]) {
            if !policies.iter().any(|it| it.digest() == digest) {
                policies.push(self.policies.policy(keys, digest).await?);
            }
        }
        Ok(policies)
    }

    /// Returns the requesters of these history items, by the id of the principal.
    pub async fn askers(&self, items: &[HistoryItem]) -> Result<BTreeMap<String, RequesterName>> {
        let keys = self.core.keys()?;
        self.identity.names_of(&keys, items.iter().map(|it| &it.transition.statement.principal)).await
    }

    /// Returns the writes of a version, newest first. Fencing tokens grow with versions, so a binary search
    /// finds the last one.
    pub(crate) async fn writes_of(&self, keys: &Keys, thread: &Thread, version: u64) -> Result<Vec<Write>> {
        // Invariant: every fencing token up to `below` belongs to this version or an earlier one, and every
        // one from `above` on to a later version.
        let (mut below, mut above) = (0, thread.fence + 1);
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            match self.write_at(keys, thread, middle).await? {
                Some(it) if it.version > version => above = middle,
                Some(_) => below = middle,
                None => return Err(Error::Broken("a write")),
            }
        }
        let mut writes = Vec::new();
        while below > 0 && writes.len() < WRITES_TOLD {
            match self.write_at(keys, thread, below).await? {
                Some(it) if it.version == version => writes.push(it),
                _ => break,
            }
            below -= 1;
        }
        Ok(writes)
    }

    async fn write_at(&self, keys: &Keys, thread: &Thread, fence: u64) -> Result<Option<Write>> {
        let stored = self.core.reader(keys).get_by_alias::<Write>(&event_alias(&thread.id, fence)).await?;
        Ok(stored.map(|it| it.record))
    }

    /// Opens both trees of a transition along its change and along the paths that writers of its policy read.
    pub(crate) async fn open_transition(
        &self,
        keys: &Keys,
        transition: &Transition,
        policy: &Policy,
        hidden: &(dyn Fn(&Pointer) -> bool + Sync),
    ) -> Result<Opening> {
        let statement = &transition.statement;
        let secret = self.secret(keys, &statement.thread);
        let (before, tree) = match statement.version.checked_sub(1) {
            Some(version) => {
                let version = self.version(keys, &statement.thread, version).await?;
                (version.state, version.tree)
            }
            None => {
                // Version 0 has no predecessor, so everything in it is a change.
                let nothing = Value::Object(Default::default());
                let tree = Tree::new(&secret, &nothing, &statement.proposal);
                (nothing, tree)
            }
        };
        let after = transition.delta.apply(&before).map_err(|_| Error::Broken("a transition's effect"))?;
        let setting = LeafSource { proposal: &statement.proposal, named: &transition.named };
        let next = match statement.version {
            0 => Tree::new(&secret, &after, &statement.proposal),
            _ => tree.advance(&secret, &before, &after, &setting),
        };
        // The opening must prove exactly the signed roots, or a reviewer would decide on changed data.
        if next.root() != statement.to || tree.root() != statement.from {
            return Err(Error::Broken("a transition does not match its statement"));
        }
        let wanted = |at: &Pointer| policy.writers().any(|(_, rules)| rules.reads().touches(at));
        Ok(open((&before, &tree), (&after, &next), &OpeningSelection { hidden, wanted: &wanted }))
    }
}

pub(super) fn differing(opening: Opening, before: &Value, after: &Value, hidings: &[Redactor<'_>]) -> StateDifference {
    let hides = |at: &Pointer| hidings.iter().any(|it| it.hides(at));
    StateDifference { hidden: hidden_places(&hides, &opening, before, after), opening, policies: Vec::new() }
}

/// Returns the warnings of a transition, redacted by all policies.
pub(crate) fn warnings_by(hidings: &[Redactor<'_>], transition: &Transition) -> Vec<JudgedWarning> {
    hidings.iter().fold(transition.warnings.clone(), |warnings, it| it.warnings(&warnings))
}
