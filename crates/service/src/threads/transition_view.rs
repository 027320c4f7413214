//! A transition with its statement and redacted effect, for one reader.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::Statement;
use countersign_domain::identity::party::Party;
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::policy::{JudgedWarning, RedactedChange, RedactedLeaf, redacted_by, shown_arguments_by};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use serde_json::Value;

use crate::error::Result;
use crate::threads::Threads;
use crate::threads::history::warnings_by;
use crate::threads::provenance::TraceStart;
use crate::threads::redacted_fields::RedactedField;
use crate::threads::redaction::{RedactionDetail, TextComparisonScope, beside};

impl Threads {
    /// Returns a transition with its statement and redacted effect.
    pub async fn told(&self, digest: Digest, reader: &Party, part: RedactionDetail) -> Result<TransitionView> {
        let keys = self.core.keys()?;
        let transition = self.transition(&keys, digest).await?;
        let thread = self.core.thread(&keys, &transition.statement.thread).await?.record;
        let policies = self.policies_over(&keys, &thread, [transition.statement.policy]).await?;
        let (before, after) = self.states_of(&keys, &transition).await?;
        let changes = diff(&before, &after);
        let sides = [
            TraceStart::before(&transition, &before),
            TraceStart::After { transition: &transition, before: &before, after: &after },
        ];
        let tool = transition.tool.as_ref();
        let states_reader = match part {
            // A receiver never triggers a trace of leaves, whose duration could reveal a redacted value.
            RedactionDetail::OfAnAgent => &Party::Receiver,
            RedactionDetail::Whole => reader,
        };
        let hidings = self.redactors_for(&keys, states_reader, &policies, sides, &[tool]).await?;
        let (_, caller) = self.authors_of(&keys, &transition).await?;
        let called = beside(&policies, TextComparisonScope::of(reader, &caller), &[&before, &after], tool);
        let redacted = redacted_by(&hidings, &changes, &transition.named);
        let hidden = redacted.iter().filter_map(|it| match it {
            RedactedChange::Hidden { pointer, .. } => Some(RedactedField::of(pointer.clone(), &before, &after)),
            RedactedChange::Shown { .. } => None,
        });
        let hold = self.hold_of(&keys, digest).await?.map(|it| it.record);
        Ok(TransitionView {
            thread: transition.statement.thread.clone(),
            status: status_of(&transition),
            entry: transition.outcome.entry().map(str::to_owned),
            arguments: tool.map(|it| shown_arguments_by(&called, it)),
            warnings_shown: warnings_by(&hidings, &transition),
            statement: transition.statement,
            warnings: transition.warnings,
            hidden: hidden.collect(),
            redacted,
            changes,
            hold,
        })
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
