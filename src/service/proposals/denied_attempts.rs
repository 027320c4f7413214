//! How often an agent has asked for the same change. Heads come and go, and the answer of reviewers stays.

use std::time::Duration;

use super::context::ProposalContext;
use crate::domain::chain::hash::Digest;
use crate::domain::identity::party::{Author, Party};
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::Keys;
use crate::domain::policy::{JudgedReason, Policy, RejectCode, Violation};
use crate::domain::primitives::id::AccountId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::change_fingerprint::RequestedEffect;
use crate::domain::reviews::{Hold, HoldReason, HoldState, SearchWord, VoteVerdict};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::log::browse::WITHHELD;
use crate::service::threads::hold::hold_reason;
use crate::service::threads::statement::JudgedEffect;
use crate::store::{Cursor, Direction};

/// What an agent is told that asks for the same change too often.
pub(in crate::service) fn effect_attempts_exhausted() -> Violation {
    let detail = "this node has asked for this change as often as the policy lets it, and it was not approved; propose \
        another change, or wait until `attempts_within` has passed";
    Violation::new(RejectCode::AttemptsExhausted, Pointer::root(), detail)
}

/// The effect by which an agent's attempts are counted. A person's rollback is not bounded and has none.
pub(in crate::service) fn effect_of(
    asking: &ProposalContext<'_>,
    effected: &JudgedEffect,
    reasons: &[JudgedReason],
) -> Option<Digest> {
    let reasons: Vec<HoldReason> = reasons.iter().cloned().map(hold_reason).collect();
    let effect = RequestedEffect {
        policy: asking.policy,
        node: &asking.proposal.node,
        kind: asking.proposal.ask.kind(),
        tool: asking.proposal.tool.as_ref(),
        before: &asking.head.state,
        after: &effected.after,
        named: &effected.named,
        reasons: &reasons,
    };
    let secret = asking.keys.salt().thread_secret(asking.proposal.thread.as_str());
    asking.by.has_tries().then(|| effect.digest(&secret))
}

/// Earlier denials of the change that a review is about.
#[derive(Clone, Debug)]
pub struct EarlierDenials {
    /// How many reviews of it were denied.
    pub times: usize,
    /// In which time before this review was opened.
    pub within: Duration,
    pub last: Hold,
    pub by: AccountId,
    pub name: String,
    /// Their comment. What the states of that review hide is hidden in it from everybody but its author.
    pub comment: Option<String>,
}

impl Service {
    /// Returns whether a node has asked for an effect as often as the policy allows. The change that opens a hold
    /// replaces the row of its thread, and so does the end of every earlier one: two gateways cannot both count the
    /// same attempts and open a hold.
    pub(in crate::service) async fn is_effect_exhausted(
        &self,
        keys: &Keys,
        policy: &Policy,
        effect: Option<Digest>,
    ) -> Result<bool> {
        let (Some(effect), approval) = (effect, policy.approval()) else { return Ok(false) };
        let since = self.now().minus(approval.attempts_within());
        // One more: a review that is still open stands before those that ended.
        let attempts = self.attempts_at(keys, effect, (since, None), approval.attempts().saturating_add(1)).await?;
        Ok(attempts.len() >= approval.attempts() as usize)
    }

    /// Returns the earlier denials of the change that a review is about, as the viewer may read them.
    pub(in crate::service) async fn denied_before(
        &self,
        keys: &Keys,
        (hold, policy): (&Hold, &Policy),
        viewer: &Party,
    ) -> Result<Option<EarlierDenials>> {
        let (Some(effect), approval) = (hold.effect, policy.approval()) else { return Ok(None) };
        let within = approval.attempts_within();
        let since = hold.opened_at.minus(within);
        let until = Cursor { due: hold.opened_at.millis(), id: String::new() };
        let attempts = self.attempts_at(keys, effect, (since, Some(&until)), approval.attempts()).await?;
        let denied = attempts.into_iter().filter(|it| matches!(it.state, HoldState::Denied { .. }));
        let denied: Vec<Hold> = denied.collect();
        let (times, last) = (denied.len(), denied.into_iter().next());
        let Some(last) = last else { return Ok(None) };
        let Some(vote) = last.counted_votes().rfind(|it| it.verdict == VoteVerdict::Deny).cloned() else {
            return Err(Error::Broken("a denied review"));
        };
        let comment = match vote.comment {
            Some(words) => Some(self.earlier_comment(keys, (&last, viewer), (&vote.reviewer, &words)).await?),
            None => None,
        };
        Ok(Some(EarlierDenials { times, within, last, by: vote.reviewer, name: vote.name, comment }))
    }

    /// Attempts at an effect that ended after `since` and were not approved, the last first. At most `limit` of them.
    async fn attempts_at(
        &self,
        keys: &Keys,
        effect: Digest,
        (since, until): (Timestamp, Option<&Cursor>),
        limit: u32,
    ) -> Result<Vec<Hold>> {
        let word = SearchWord::Attempted(effect).to_string();
        let (found, _) = self.reader(keys).labelled::<Hold>(&word, Direction::Backward, until, limit).await?;
        let is_recent = |it: &Hold| it.state.ended_at().is_some_and(|at| at > since);
        Ok(found.into_iter().map(|it| it.record).filter(is_recent).collect())
    }

    /// A comment whose states cannot be read any more is withheld, and does not keep the page from being shown.
    async fn earlier_comment(
        &self,
        keys: &Keys,
        (hold, viewer): (&Hold, &Party),
        (by, words): (&AccountId, &str),
    ) -> Result<String> {
        let author = Author::of(self.party_of(keys, &by.into()).await?);
        match self.redacted_comment(keys, (hold, viewer), (&author, words)).await {
            Err(Error::Broken(_) | Error::NotFound(_) | Error::Archive(_) | Error::NoArchives) => {
                Ok(WITHHELD.to_owned())
            }
            masked => masked,
        }
    }
}
