//! The facts of a review: everything that a reviewer needs to decide, redacted and provable.

use std::sync::Arc;

use countersign_domain::chain::commitment::Tree;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::Opening;
use countersign_domain::identity::account::Account;
use countersign_domain::identity::delegation::Delegation;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::diff::diff;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::Event;
use countersign_domain::policy::{
    JudgedWarning, NodePolicy, Policy, RedactedChange, RedactedLeaf, Redactor, readable_leaves, redacted_by,
};
use countersign_domain::primitives::id::{AccountId, DelegationId, NodeId, ReviewId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{CannotDecide, Hold, HoldState, VoterRoll, VotingSeat};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::{Thread, ThreadStatusCode};
use countersign_domain::threads::transition::{ChainRow, Transition};
use countersign_domain::writes::write::Write;
use countersign_store::records::event_alias;
use serde_json::Value;

use super::eligible_voters::can_decide;
use crate::error::{Error, Result};
use crate::identity::requester_names::RequesterName;
use crate::platform::core::ThreadContext;
use crate::platform::retry::retrying;
use crate::proposals::denied_attempts::EarlierDenials;
use crate::reviews::Reviews;
use crate::threads::archive_lookup::ArchiveFiles;
use crate::threads::history::warnings_by;
use crate::threads::known_values::KnownValues;
use crate::threads::provenance::TraceStart;
use crate::threads::redacted_fields::{RedactedField, hidden_places, set_since};
use crate::threads::redaction::Redaction;
use crate::threads::redaction_queue::RedactionWork;
use crate::threads::tool_call_view::RedactedToolCall;

/// The view of one writer if the change is approved and written.
#[derive(Clone, Debug)]
pub struct WriterView {
    pub node: NodeId,
    /// All leaves that the writer reads, redacted.
    pub leaves: Vec<RedactedLeaf>,
    /// The differences from the last confirmed write, or from version 0.
    pub changed_since_write: Vec<RedactedChange>,
}

/// The redaction of texts for the viewer of a review, under the policy of the review and the active one.
pub(crate) struct ReviewTexts {
    pub(crate) redaction: Redaction,
    /// The author of the rationale and the tool arguments.
    pub(crate) author: Author,
    /// The proposer, who can cancel the proposal.
    pub(crate) proposer: Author,
    /// The person who revoked the receipt, if it is revoked.
    pub(crate) revoker: Author,
}

pub struct ReviewFacts {
    pub hold: Hold,
    pub transition: Transition,
    pub policy: Arc<Policy>,
    /// The redaction of texts, by author.
    pub(crate) texts: ReviewTexts,
    pub warnings: Vec<JudgedWarning>,
    pub thread: Thread,
    pub status: ThreadStatusCode,
    pub diff: Vec<RedactedChange>,
    /// The opening of both trees along the change and along the paths that writers read. Redacted leaves stay
    /// closed.
    pub opening: Opening,
    pub hidden: Vec<RedactedField>,
    /// Values at the changed keys that reviewers know from earlier versions.
    pub known: KnownValues,
    /// The same opening with one redacted value open, for a viewer whose reveal was just recorded.
    pub revealed: Option<(Pointer, Opening)>,
    pub writers: Vec<WriterView>,
    /// The tool call that belongs to the change.
    pub call: Option<RedactedToolCall>,
    pub by: Option<RequesterName>,
    /// The accounts and delegations of the voters, the viewer and the editor, as they are now.
    pub roll: VoterRoll,
    pub viewer: AccountId,
    /// The seats in which the viewer can vote now, or the reason why there is none.
    pub can_decide: std::result::Result<Vec<VotingSeat>, CannotDecide>,
    pub denied_before: Option<EarlierDenials>,
    pub outcome_unknown: bool,
    pub receipt: Option<ReceiptRow>,
    /// The write of the change, once it is committed.
    pub write: Option<Write>,
    /// The time at which the facts were read.
    pub now: Timestamp,
}

/// A review with its states.
struct LoadedReview {
    hold: Hold,
    standing: ThreadContext,
    transition: Transition,
    policy: Arc<Policy>,
    before: Value,
    after: Value,
    /// The state of the last confirmed write.
    written: Value,
    tree: Option<Tree>,
    now: Timestamp,
}

impl ReviewFacts {
    /// Returns a delegation by which the viewer may vote, the delegator, and the time of the facts.
    pub fn place_of(&self, delegation: Option<&DelegationId>) -> Option<(&Delegation, &Account)> {
        let delegation = delegation?;
        self.roll.away_for(&self.viewer).find(|(by, _)| by.id == *delegation)
    }
}

impl Reviews {
    /// Returns a review as one viewer may see it. A review past its deadline is ended first.
    pub async fn review(self: &Arc<Self>, review: &ReviewId, viewer: &Account) -> Result<ReviewFacts> {
        retrying!(self.review_once(review, viewer, None))
    }

    /// Returns a review, with one redacted value open if `reveal` is set. The caller must record the reveal
    /// first.
    pub(crate) async fn review_once(
        self: &Arc<Self>,
        review: &ReviewId,
        viewer: &Account,
        reveal: Option<&Pointer>,
    ) -> Result<ReviewFacts> {
        self.threads.expire_hold(review).await?;
        let (keys, now) = (self.core.keys()?, self.core.now());
        let hold = self.core.need::<Hold>(&keys, review.as_str(), "review").await?.record;
        let standing = self.core.standing(&keys, self.core.thread(&keys, &hold.thread).await?).await?;
        let transition = self.threads.transition(&keys, hold.transition).await?;
        let policy = self.policies.policy(&keys, hold.policy).await?;
        let (before, after) = self.threads.states_of(&keys, &transition).await?;
        let (written, tree) = self.written_state(&keys, &standing.thread.record).await?;
        let work = RedactionWork::of(&viewer.into(), &hold.thread, [&before, &after, &written]);
        let loaded = LoadedReview { hold, standing, transition, policy, before, after, written, tree, now };
        let (reviews, viewer, reveal) = (Arc::clone(self), viewer.clone(), reveal.cloned());
        let facts = move || async move { reviews.facts_of(&keys, loaded, &viewer, reveal.as_ref()).await };
        self.threads.redact(work, facts).await
    }

    async fn facts_of(
        &self,
        keys: &Keys,
        loaded: LoadedReview,
        viewer: &Account,
        reveal: Option<&Pointer>,
    ) -> Result<ReviewFacts> {
        let LoadedReview { hold, standing, transition, policy, before, after, written, tree, now } = loaded;
        let thread = standing.thread.record.clone();
        let policies = self.threads.policies_under(keys, standing.flow.record.policy, [hold.policy]).await?;
        let (reader, call) = (Party::from(viewer), self.threads.sent_call(keys, &transition).await?);
        let call = call.as_ref();
        let sides = [
            TraceStart::before(&transition, &before),
            TraceStart::After { transition: &transition, before: &before, after: &after },
            TraceStart::Version { thread: &thread.id, version: thread.written_version, state: &written },
        ];
        let hidings = self.threads.redactors_for(keys, &reader, &policies, sides, &[call]).await?;
        let states = [&before, &after, &written];
        let (author, caller) = self.threads.authors_of(keys, &transition).await?;
        let hides = |at: &Pointer| hidings.iter().any(|it| it.hides(at));
        let opening = self.threads.open_transition(keys, &transition, &policy, &hides).await?;
        let revealed = self.revealed_of(keys, &transition, &policy, &hides, reveal).await?;
        let receipt = self.receipt_of(keys, &hold).await?;
        let authors = [&author, &caller];
        let redaction = Redaction::with_redactors(reader, &policies, &hidings, &states, call, authors);
        let roll = self.voter_roll_for_viewer(keys, &viewer.id, &hold.votes, transition.editor.as_slice()).await?;
        let redacted = redacted_by(&hidings, &diff(&before, &after), &transition.named);
        let set = tree.map(|it| set_since(&hides, &opening, (&written, &it))).unwrap_or_default();
        Ok(ReviewFacts {
            known: KnownValues::of(&hidings, [&before, &written], &redacted),
            diff: redacted,
            writers: writer_views(&hidings, &set, &written, &after, &policy),
            revealed,
            hidden: hidden_places(&hides, &opening, &before, &after),
            warnings: warnings_by(&hidings, &transition),
            can_decide: can_decide(&standing, &hold, viewer, &roll),
            viewer: viewer.id.clone(),
            status: thread.status(now),
            outcome_unknown: thread.outcome_unknown(now),
            write: self.write_of(keys, &thread, &transition).await?,
            by: self.identity.names_of(keys, [&hold.proposer]).await?.into_values().next(),
            denied_before: self.proposals.denied_before(keys, &hold, &policy, &Party::from(viewer)).await?,
            call: self.threads.call_of(keys, &redaction, &caller, &transition)?,
            texts: self.texts_of(keys, receipt.as_ref(), redaction, author, caller).await?,
            receipt,
            roll: VoterRoll { now, ..roll },
            hold,
            transition,
            policy,
            thread,
            opening,
            now,
        })
    }

    /// Returns the opening of a transition with one more leaf open.
    async fn revealed_of(
        &self,
        keys: &Keys,
        transition: &Transition,
        policy: &Policy,
        hides: &(dyn Fn(&Pointer) -> bool + Sync),
        reveal: Option<&Pointer>,
    ) -> Result<Option<(Pointer, Opening)>> {
        let Some(revealed) = reveal else { return Ok(None) };
        // Only this leaf opens. Its siblings stay closed.
        let hides = |at: &Pointer| hides(at) && at != revealed;
        Ok(Some((revealed.clone(), self.threads.open_transition(keys, transition, policy, &hides).await?)))
    }

    async fn receipt_of(&self, keys: &Keys, hold: &Hold) -> Result<Option<ReceiptRow>> {
        let HoldState::Approved { receipt, .. } = &hold.state else { return Ok(None) };
        Ok(self.core.fetch::<ReceiptRow>(keys, receipt.as_str()).await?.map(|it| it.record))
    }

    async fn texts_of(
        &self,
        keys: &Keys,
        receipt: Option<&ReceiptRow>,
        redaction: Redaction,
        author: Author,
        proposer: Author,
    ) -> Result<ReviewTexts> {
        let revoker = match receipt.and_then(|it| it.revoked.as_ref()) {
            Some(revoked) => self.threads.party_of(keys, &revoked.by).await?,
            None => Party::Gone,
        };
        Ok(ReviewTexts { redaction, author, proposer, revoker: Author::of(revoker) })
    }

    /// Returns the write of a transition, once it is committed.
    async fn write_of(&self, keys: &Keys, thread: &Thread, transition: &Transition) -> Result<Option<Write>> {
        let writes = self.threads.writes_of(keys, thread, transition.statement.version).await?;
        Ok(writes.into_iter().find(|it| it.transition == transition.digest))
    }

    /// Returns the state of the last confirmed write with its tree. If it is erased or its archive is unreadable, every
    /// leaf counts as changed, so that a reviewer misses nothing.
    async fn written_state(&self, keys: &Keys, thread: &Thread) -> Result<(Value, Option<Tree>)> {
        let unread = match self.threads.version(keys, &thread.id, thread.written_version).await {
            Err(unread @ (Error::Erased | Error::Archive(_) | Error::NoArchives)) => unread,
            written => return written.map(|it| (it.state, Some(it.tree))),
        };
        if !matches!(unread, Error::Erased) {
            let error = &unread as &dyn std::error::Error;
            tracing::warn!(thread = %thread.id, error, "the state of the last confirmed write cannot be read; the review shows every value as changed");
        }
        Ok((Value::Object(Default::default()), None))
    }

    /// Returns a page of a thread's chain, oldest first.
    pub async fn chain(&self, thread: &ThreadId, from: u64, limit: u32) -> Result<Vec<(ChainRow, Transition)>> {
        let keys = self.core.keys()?;
        let head = self.core.thread(&keys, thread).await?.record.head.version;
        // Saturating, because `from` comes from the request.
        let last = head.min(from.saturating_add(u64::from(limit)).saturating_sub(1));
        let mut files = ArchiveFiles::default();
        let rows = self.threads.links(&keys, &mut files, thread, from..=last).await?;
        let digests: Vec<Digest> = rows.iter().map(|row| row.transition).collect();
        let mut transitions = self.threads.transitions_of(&keys, &mut files, &digests).await?;
        let with = |row: ChainRow| {
            let transition = transitions.remove(&row.transition).ok_or(Error::Broken("the chain"))?;
            Ok((row, transition))
        };
        rows.into_iter().map(with).collect()
    }

    /// Returns an event by its sequence number in its thread.
    pub async fn event(&self, thread: &ThreadId, seq: u64) -> Result<Option<Event>> {
        let keys = self.core.keys()?;
        let stored = self.core.reader(&keys).get_by_alias::<Event>(&event_alias(thread, seq)).await?;
        Ok(stored.map(|it| it.record))
    }
}

/// Returns the view of each writer, with the changes since the last confirmed write. `set` has the redacted paths that
/// requests set since then.
fn writer_views(
    hidings: &[Redactor<'_>],
    set: &[Pointer],
    written: &Value,
    after: &Value,
    policy: &Policy,
) -> Vec<WriterView> {
    let changes = diff(written, after);
    let view = |(node, rules): (&NodeId, &NodePolicy)| {
        let read: Vec<_> = changes.iter().filter(|it| rules.reads().covers(&it.pointer)).cloned().collect();
        WriterView {
            node: node.clone(),
            leaves: readable_leaves(policy, hidings, node, after),
            changed_since_write: redacted_by(hidings, &read, set.iter().filter(|it| rules.reads().touches(it))),
        }
    };
    policy.writers().map(view).collect()
}
