//! A transition with its statement and redacted effect, for one reader.

use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::Statement;
use countersign_domain::identity::party::Party;
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::keys::Keys;
use countersign_domain::policy::{
    JudgedWarning, Policy, RedactedChange, RedactedLeaf, Redactor, RedactorFindings, redacted_by, shown_arguments_by,
};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use serde_json::Value;

use crate::error::Result;
use crate::threads::Threads;
use crate::threads::history::warnings_by;
use crate::threads::provenance::TraceStart;
use crate::threads::redacted_fields::RedactedField;
use crate::threads::redaction::{Redaction, RedactionDetail, SentCall};
use crate::threads::redaction_queue::RedactionWork;
use crate::threads::tool_call_view::{CallContext, RedactedToolCall};

impl Threads {
    /// Returns a transition with its statement and redacted effect.
    pub async fn told(
        self: &Arc<Self>,
        digest: Digest,
        reader: &Party,
        part: RedactionDetail,
    ) -> Result<TransitionView> {
        let keys = self.core.keys()?;
        let transition = self.transition(&keys, digest).await?;
        let thread = self.core.thread(&keys, &transition.statement.thread).await?.record;
        let policies = self.policies_over(&keys, &thread, [transition.statement.policy]).await?;
        let (before, after) = self.states_of(&keys, &transition).await?;
        let loaded = LoadedTransition { transition, policies, before, after };
        let (work, threads, reader) = (loaded.redaction_work(reader), Arc::clone(self), reader.clone());
        self.redact(work, move || async move { threads.view_of(&keys, loaded, &reader, part).await }).await
    }

    /// Returns the redacted changes and the redacted tool call of a transition.
    pub(crate) async fn redacted_effect(
        self: &Arc<Self>,
        loaded: LoadedTransition,
        reader: &Party,
    ) -> Result<RedactedEffect> {
        let keys = self.core.keys()?;
        let (work, threads, reader) = (loaded.redaction_work(reader), Arc::clone(self), reader.clone());
        let changes = move || async move {
            let call = threads.sent_call(&keys, &loaded.transition).await?;
            let hidings = threads.redactors_of(&keys, &loaded, &reader, call.as_ref()).await?;
            let changes = redacted_by(&hidings, &diff(&loaded.before, &loaded.after), &loaded.transition.named);
            let LoadedTransition { transition, policies, before, after } = &loaded;
            let context = CallContext { reader: &reader, policies, hidings: &hidings, states: [before, after] };
            let call = threads.call_in(&keys, transition, call.as_ref(), &context)?;
            Ok(RedactedEffect { changes, call })
        };
        self.redact(work, changes).await
    }

    /// Returns what each policy redacts in the states of a transition.
    pub(crate) async fn findings_in(
        self: &Arc<Self>,
        loaded: LoadedTransition,
        reader: &Party,
    ) -> Result<Vec<RedactorFindings>> {
        let keys = self.core.keys()?;
        let (work, threads, reader) = (loaded.redaction_work(reader), Arc::clone(self), reader.clone());
        let findings = move || async move {
            let call = threads.sent_call(&keys, &loaded.transition).await?;
            let hidings = threads.redactors_of(&keys, &loaded, &reader, call.as_ref()).await?;
            Ok(hidings.into_iter().map(Redactor::into_findings).collect())
        };
        self.redact(work, findings).await
    }

    async fn redactors_of<'l>(
        &self,
        keys: &Keys,
        loaded: &'l LoadedTransition,
        reader: &Party,
        call: Option<&SentCall>,
    ) -> Result<Vec<Redactor<'l>>> {
        self.redactors_for(keys, reader, &loaded.policies, loaded.sides(), &[call]).await
    }

    async fn view_of(
        &self,
        keys: &Keys,
        loaded: LoadedTransition,
        reader: &Party,
        part: RedactionDetail,
    ) -> Result<TransitionView> {
        let LoadedTransition { transition, policies, before, after } = &loaded;
        let changes = diff(before, after);
        let call = self.sent_call(keys, transition).await?;
        let states_reader = match part {
            // A receiver never triggers a trace of leaves, whose duration could reveal a redacted value.
            RedactionDetail::OfAnAgent => &Party::Receiver,
            RedactionDetail::Whole => reader,
        };
        let hidings = self.redactors_of(keys, &loaded, states_reader, call.as_ref()).await?;
        let arguments = call.as_ref().map(|it| {
            let (reader, states) = (reader.clone(), [before, after]);
            let redaction = Redaction::with_redactors(reader, policies, &hidings, &states, call.as_ref(), [&it.caller]);
            shown_arguments_by(&redaction.redactors(&it.caller), &it.tool)
        });
        let redacted = redacted_by(&hidings, &changes, &transition.named);
        let hidden = redacted.iter().filter_map(|it| match it {
            RedactedChange::Hidden { pointer, .. } => Some(RedactedField::of(pointer.clone(), before, after)),
            RedactedChange::Shown { .. } => None,
        });
        let hold = self.hold_of(keys, transition.digest).await?.map(|it| it.record);
        Ok(TransitionView {
            thread: transition.statement.thread.clone(),
            status: status_of(transition),
            entry: transition.outcome.entry().map(str::to_owned),
            arguments,
            warnings_shown: warnings_by(&hidings, transition),
            statement: transition.statement.clone(),
            warnings: transition.warnings.clone(),
            hidden: hidden.collect(),
            redacted,
            changes,
            hold,
        })
    }
}

/// The changes and the tool call of a transition, redacted.
#[derive(Default)]
pub(crate) struct RedactedEffect {
    pub(crate) changes: Vec<RedactedChange>,
    pub(crate) call: Option<RedactedToolCall>,
}

/// A transition with its policies and its states.
pub(crate) struct LoadedTransition {
    pub(crate) transition: Transition,
    pub(crate) policies: Vec<Arc<Policy>>,
    pub(crate) before: Value,
    pub(crate) after: Value,
}

impl LoadedTransition {
    fn redaction_work(&self, reader: &Party) -> RedactionWork {
        RedactionWork::of(reader, &self.transition.statement.thread, [&self.before, &self.after])
    }

    /// Returns both states, with the positions from which their texts can be traced.
    fn sides(&self) -> [TraceStart<'_>; 2] {
        let Self { transition, before, after, .. } = self;
        [TraceStart::before(transition, before), TraceStart::After { transition, before, after }]
    }
}

/// A transition as its reader may see it.
#[derive(Clone, Debug)]
pub struct TransitionView {
    pub thread: ThreadId,
    /// `committed`, `observed`, `held`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub status: String,
    /// The statement of the transition.
    pub statement: Statement,
    /// The signed entry, if the transition is committed.
    pub entry: Option<String>,
    pub changes: Vec<LeafChange>,
    /// The arguments of its tool call, redacted.
    pub arguments: Option<Vec<RedactedLeaf>>,
    /// The whole effect, redacted.
    pub redacted: Vec<RedactedChange>,
    /// The warnings of rules, for the proposer.
    pub warnings: Vec<JudgedWarning>,
    /// The warnings of rules, redacted for other readers.
    pub warnings_shown: Vec<JudgedWarning>,
    /// The kinds of the redacted values.
    pub hidden: Vec<RedactedField>,
    /// The review, if the transition was held for approval.
    pub hold: Option<Hold>,
}

pub(crate) fn status_of(transition: &Transition) -> String {
    match &transition.outcome {
        TransitionOutcome::Ended { decision, .. } => match serde_json::to_value(decision) {
            Ok(Value::String(word)) => word,
            _ => "ended".to_owned(),
        },
        other => other.word().to_owned(),
    }
}
