//! The outcome of writes, reported by a writer, the clock or an administrator.

use std::sync::Arc;

use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{Judgement, Policy, RejectCode};
use countersign_domain::primitives::id::{PrincipalId, ThreadId, WriteId};
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::approval_request::{CallOutcome, CallStatus};
use countersign_domain::threads::thread::{Thread, WriteKey};
use countersign_domain::threads::transition::{
    HoldEndReason, ProposalIdentity, Transition, TransitionOutcome, patch_digest,
};
use countersign_domain::threads::usage::Usage;
use countersign_domain::writes::write::{ConfirmEffect, ResultError, Write, WriteResolution, WriteState};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::write_row_id;
use serde_json::{Value, json};

use super::verify::writer_node;
use crate::error::{Error, Result};
use crate::platform::core::ThreadContext;
use crate::platform::event_recorder;
use crate::platform::reason::cut_reason;
use crate::platform::rejection_body::result_error;
use crate::platform::retry::retrying;
use crate::proposals::judge_queue::{JudgedRequest, JudgingContext, JudgingJob};
use crate::threads::close::close_request;
use crate::threads::commit::{CommitBase, GatedTransition};
use crate::threads::hold_end::HoldEnd;
use crate::threads::statement::{JudgedEffect, StatementInput};
use crate::threads::version::Version;
use crate::writes::Writes;

/// The context of a write while it ends.
struct WriteEndContext {
    keys: Arc<Keys>,
    token: Stored<Token>,
    write: Stored<Write>,
    standing: ThreadContext,
    /// The outcome of the tool call that the write was reserved for.
    call: Option<CallOutcome>,
}

impl Writes {
    /// Records that the writer has written. If the head is still its own, its result commits as a transition.
    pub async fn confirm(&self, token: &Stored<Token>, write_id: &WriteId, result: &Value) -> Result<Write> {
        retrying!({
            let ending = self.end_context(token, write_id).await?;
            self.confirm_once(&ending, result).await
        })
    }

    async fn confirm_once(&self, ending: &WriteEndContext, result: &Value) -> Result<Write> {
        // A repeated confirmation gets the stored outcome, so that a writer can retry safely.
        if !ending.write.record.is_open() {
            return Ok(ending.write.record.clone());
        }
        match ending.write.record.confirm_effect(&ending.standing.thread.record) {
            ConfirmEffect::Commit => self.confirm_commit(ending, result).await,
            ConfirmEffect::Late => self.confirm_late(ending).await,
        }
    }

    /// Records the outcome of an approved tool call. Its approval is used up in any case.
    pub async fn report_call(&self, token: &Stored<Token>, write_id: &WriteId, call: &CallOutcome) -> Result<Write> {
        retrying!({
            let ending = WriteEndContext { call: Some(call.clone()), ..self.end_context(token, write_id).await? };
            match call.status {
                CallStatus::Succeeded => self.confirm_once(&ending, &json!({})).await,
                CallStatus::Failed => self.fail_once(&ending).await,
            }
        })
    }

    async fn fail_once(&self, ending: &WriteEndContext) -> Result<Write> {
        if !ending.write.record.is_open() {
            return Ok(ending.write.record.clone());
        }
        let now = self.core.now();
        let (write, mut thread) = ending.write.record.clone().failed(ending.standing.thread.record.clone(), now);
        let mut draft = Draft::new(ending.keys.row(), now);
        let data = json!({"write_id": write.key.write_id, "by": write.key.principal, "fence": write.fence});
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::WriteFailed, data)?;
        self.put_ending(draft, ending, &write, thread).await?;
        Ok(write)
    }

    async fn end_context(&self, token: &Stored<Token>, write_id: &WriteId) -> Result<WriteEndContext> {
        writer_node(&token.record)?;
        let keys = self.core.keys()?;
        // The token may have been revoked while the request waited.
        let token = self.identity.token_still(&keys, token).await?;
        let key = WriteKey { principal: token.record.principal(), write_id: write_id.clone() };
        let write: Stored<Write> = self.core.need(&keys, &write_row_id(&key), "write").await?;
        let thread = self.core.thread(&keys, &write.record.thread).await?;
        let standing = self.core.standing(&keys, thread).await?;
        Ok(WriteEndContext { keys, token, write, standing, call: None })
    }

    async fn confirm_late(&self, ending: &WriteEndContext) -> Result<Write> {
        let now = self.core.now();
        // The head belongs to another write by now, so the result is logged and changes no state.
        let (write, mut thread) = ending.write.record.clone().late(ending.standing.thread.record.clone(), now);
        let mut draft = Draft::new(ending.keys.row(), now);
        let data =
            json!({"write_id": write.key.write_id, "by": write.key.principal, "fence": write.fence, "late": true});
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::WriteConfirmed, data)?;
        self.put_ending(draft, ending, &write, thread).await?;
        Ok(write)
    }

    /// Commits the result of a write. A rejected result is replaced by an empty one, because a write that
    /// happened must always be recorded.
    async fn confirm_commit(&self, ending: &WriteEndContext, result: &Value) -> Result<Write> {
        let keys = &*ending.keys;
        let head = self.threads.head(keys, &ending.standing.thread.record).await?;
        let policy = self.policies.policy(keys, ending.standing.flow.record.policy).await?;
        let write = ending.write.record.clone();
        let around = JudgingContext {
            principal: write.key.principal.to_string(),
            owner: ending.token.record.owner.clone(),
            committed_nodes: ending.standing.thread.record.committed_nodes.clone(),
            ..JudgingContext::default()
        };
        let (after, content, refused) = self.admitted(&policy, &head, &write, around, result).await?;
        // The time is read last, because the judgement may have waited in the fair queue.
        let (now, identity) = (self.core.now(), identity_of(keys, &write, &content));
        let stating = StatementInput {
            kind: TransitionType::Confirm,
            node: &write.node,
            principal: write.key.principal.clone(),
            attempt: None,
            format: PatchFormat::Merge,
            patch: content,
            rationale: None,
            tool: None,
            usage: Usage::default(),
            context_tokens: None,
            step: None,
            restores: None,
            edits: None,
            write_id: Some(write.key.write_id.clone()),
            joins: None,
            identity,
            now,
        };
        let step = self.threads.state(keys, &head, &policy, stating, after);
        let (mut draft, mut thread) = (Draft::new(keys.row(), now), ending.standing.thread.record.clone());
        ending.standing.rely(&mut draft);
        self.supersede_hold(&mut draft, keys, &mut thread, step.transition.digest).await?;
        let gate = CommitGate::Written { write_id: write.key.write_id.clone(), receipt: write.receipt.clone() };
        let (transition, gated) = (step.transition.clone(), GatedTransition { step, gate, committed_at: now });
        let base = CommitBase { head: &head, policy: &policy, flow: &ending.standing.flow.record };
        // Set before `advance`, which would otherwise record an expired lease for a confirmed write.
        thread.head.usage = countersign_domain::threads::thread::HeadUse::Used {};
        // The change is written, so the revocation of its receipt has no effect any more.
        thread.taken_back = false;
        let advanced = self.threads.advance(&mut draft, keys, base, gated, &mut thread)?;
        let confirmed = confirmed(write, &mut thread, &advanced, refused, now);
        let data = json!({
            "write_id": confirmed.key.write_id, "by": confirmed.key.principal, "fence": confirmed.fence,
            "transition": advanced.entry.transition, "version": advanced.entry.version, "late": false,
        });
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::WriteConfirmed, data)?;
        let outcome = TransitionOutcome::Committed { entry: advanced.token.clone() };
        draft.insert(&Transition { outcome, ..transition })?;
        self.put_ending(draft, ending, &confirmed, thread).await?;
        self.threads.cache_head(advanced);
        Ok(confirmed)
    }

    /// Judges the writer's result by the rules of its own node. A rejected result has no effect.
    async fn admitted(
        &self,
        policy: &Arc<Policy>,
        head: &Arc<Version>,
        write: &Write,
        around: JudgingContext,
        result: &Value,
    ) -> Result<(JudgedEffect, Value, Vec<ResultError>)> {
        let nothing = || JudgedEffect { after: head.state.clone(), named: Default::default(), warnings: Vec::new() };
        let patch = match Patch::read(PatchFormat::Merge, result.clone()) {
            Ok(patch) => patch,
            // The write has happened, so an unreadable result must not stop its record.
            Err(error) => return Ok((nothing(), json!({}), vec![unreadable(&error.pointer().to_string())])),
        };
        let (policy, head, node) = (Arc::clone(policy), Arc::clone(head), write.node.clone());
        let judged = self
            .proposals
            .judged(JudgingJob { policy, head, node, asks: JudgedRequest::Confirm(patch), around })
            .await?;
        Ok(match judged {
            Judgement::Commit { after, named, warnings, .. } => {
                (JudgedEffect { after, named: named.into_iter().collect(), warnings }, result.clone(), Vec::new())
            }
            // A result is never held: the write has already happened.
            Judgement::Hold { .. } => (nothing(), json!({}), vec![unreadable("")]),
            Judgement::Reject { violations } => (nothing(), json!({}), violations.iter().map(result_error).collect()),
        })
    }

    /// Ends the review on the written head, because its proposal is based on a state that is no longer the
    /// head.
    async fn supersede_hold(&self, draft: &mut Draft<'_>, keys: &Keys, thread: &mut Thread, by: Digest) -> Result<()> {
        let Some(review) = thread.hold.clone() else { return Ok(()) };
        let hold: Stored<Hold> = self.core.need(keys, review.as_str(), "review").await?;
        if !matches!(hold.record.state, HoldState::Open {}) {
            return Ok(());
        }
        let now = self.core.now();
        let (state, reason) = if hold.record.is_open(now) {
            (HoldState::Superseded { at: now, by: Some(by), policy: None }, HoldEndReason::Superseded)
        } else {
            (HoldState::Expired { at: now }, HoldEndReason::Expired)
        };
        let end = HoldEnd { state, reason, at: now };
        self.threads.add_hold_end(draft, keys, thread, &hold, end).await
    }

    /// Records that the writer wrote nothing. Its receipt is used up in any case.
    pub async fn abort(&self, token: &Stored<Token>, write_id: &WriteId, reason: &str) -> Result<Write> {
        retrying!({
            let ending = self.end_context(token, write_id).await?;
            // A repeated abort gets the stored outcome, so that a writer can retry safely.
            if !ending.write.record.is_open() {
                return Ok(ending.write.record);
            }
            let now = self.core.now();
            let reason = cut_reason(reason);
            let thread = ending.standing.thread.record.clone();
            let (write, mut thread) = ending.write.record.clone().aborted(thread, reason, now);
            let mut draft = Draft::new(ending.keys.row(), now);
            let data = json!({"write_id": write.key.write_id, "by": write.key.principal, "fence": write.fence});
            event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::WriteAborted, data)?;
            self.put_ending(draft, &ending, &write, thread).await?;
            Ok(write)
        })
    }

    async fn put_ending(
        &self,
        mut draft: Draft<'_>,
        ending: &WriteEndContext,
        write: &Write,
        mut thread: Thread,
    ) -> Result<()> {
        if let (Some(request), Some(call)) = (thread.request.as_mut(), &ending.call) {
            request.outcome = Some(call.clone());
        }
        close_request(&mut draft, &mut thread, self.core.now())?;
        draft.require_unchanged(&ending.token).replace(&ending.write, write)?;
        draft.replace(&ending.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await
    }

    /// Records what an administrator found out about a write with an expired lease.
    pub async fn resolve_write(
        &self,
        by: &PrincipalId,
        thread: &ThreadId,
        key: &WriteKey,
        outcome: WriteResolution,
        reason: &str,
    ) -> Result<Write> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let write: Stored<Write> = self.core.need(&keys, &write_row_id(key), "write").await?;
            if write.record.thread != *thread {
                return Err(Error::NotFound("write"));
            }
            if !matches!(write.record.state, WriteState::Reserved {}) {
                return Err(Error::WrongState("the write has ended, so its outcome is already known"));
            }
            // The writer may still report the outcome itself, and it knows best.
            if write.record.is_live(now) {
                return Err(Error::WriteInProgress);
            }
            let stored = self.core.thread(&keys, &write.record.thread).await?;
            let reason = cut_reason(reason);
            let (resolved, mut thread) =
                write.record.clone().resolved(stored.record.clone(), by.clone(), outcome, reason, now);
            let mut draft = Draft::new(keys.row(), now);
            // The lease of a writer expires by the database's clock, so the resolution relies on that clock too.
            draft.not_before(write.record.lease_expires_at);
            let data = json!({"write_id": key.write_id, "of": key.principal, "by": by, "outcome": outcome});
            event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::WriteResolved, data)?;
            draft.replace(&write, &resolved)?;
            draft.replace(&stored, &thread)?;
            self.core.store_response(&mut draft, &keys, &resolved)?;
            self.core.commit(draft.finish()).await?;
            Ok(resolved)
        })
    }
}

fn confirmed(
    mut write: Write,
    thread: &mut Thread,
    advanced: &Version,
    refused: Vec<ResultError>,
    now: countersign_domain::primitives::time::Timestamp,
) -> Write {
    thread.unresolved.remove(&write.key);
    // The state is written, so its authors count no more for later approvals.
    thread.authors.clear();
    thread.written_version = advanced.entry.version;
    let (version, transition) = (advanced.entry.version, advanced.entry.transition);
    write.state = WriteState::Confirmed { at: now, version, transition, refused };
    write
}

fn unreadable(pointer: &str) -> ResultError {
    ResultError {
        pointer: pointer.to_owned(),
        code: RejectCode::PatchFailed.as_str().to_owned(),
        detail: "the result is not a patch of the writer's own node".to_owned(),
        rule: None,
    }
}

/// Returns the identity by which a repeated confirmation is recognized.
fn identity_of(keys: &Keys, write: &Write, content: &Value) -> Digest {
    let secret = &keys.salt().thread_secret(write.thread.as_str());
    let identity = ProposalIdentity {
        thread: &write.thread,
        parent: Some(write.transition),
        node: Some(&write.node),
        principal: &write.key.principal,
        kind: TransitionType::Confirm,
        format: PatchFormat::Merge,
        patch: patch_digest(secret, &json!({"write_id": write.key.write_id, "result": content})),
        attempt: 1,
        tool: None,
        step: None,
    };
    identity.digest(secret)
}
