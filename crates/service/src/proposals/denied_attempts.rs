//! Limits how often a node may request the same change. The limit applies across heads, because a new head
//! does not change the reviewers' answer.

use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::{Keys, ThreadSecret};
use countersign_domain::policy::{JudgedReason, Policy, RejectCode, Violation};
use countersign_domain::primitives::id::AccountId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::change_fingerprint::RequestedEffect;
use countersign_domain::reviews::{Hold, HoldReason, HoldState, SearchWord, VoteVerdict};
use countersign_domain::threads::thread::Thread;
use countersign_store::{Cursor, Direction};

use super::context::ProposalContext;
use crate::error::{Error, Result};
use crate::platform::reason::WITHHELD;
use crate::proposals::Proposals;
use crate::proposals::hold::hold_reason;
use crate::threads::statement::JudgedEffect;

/// The label under which the effects of an instance's calls are compared. It has spaces, so it is the name of no thread.
const CALLS: &str = "countersign calls of the instance ";

/// Returns the violation for a node that requested the same change too often.
pub(crate) fn effect_attempts_exhausted() -> Violation {
    let detail = "the node has used up its attempts for this change, and no reviewer approved it. Propose \
        another change, or wait until `attempts_within` has passed.";
    Violation::new(RejectCode::AttemptsExhausted, Pointer::root(), detail)
}

/// Returns the effect by which the attempts of an agent are counted. A rollback by a person is not limited
/// and has none.
pub(crate) fn effect_of(
    asking: &ProposalContext<'_>,
    effected: &JudgedEffect,
    reasons: &[JudgedReason],
) -> Option<Digest> {
    let reasons: Vec<HoldReason> = reasons.iter().cloned().map(hold_reason).collect();
    let effect = RequestedEffect {
        policy: asking.policy,
        node: &asking.proposal.node,
        owner: Some(asking.by.author()),
        kind: asking.proposal.ask.kind(),
        tool: asking.proposal.tool.as_ref(),
        before: &asking.head.state,
        after: &effected.after,
        named: &effected.named,
        reasons: &reasons,
    };
    let secret = effect_secret(asking.keys, &asking.standing.thread.record);
    asking.by.has_tries().then(|| effect.digest(&secret))
}

/// Returns the secret by which effects are compared: those of one thread, or those of an instance's calls, which have
/// threads of their own.
pub(crate) fn effect_secret(keys: &Keys, thread: &Thread) -> ThreadSecret {
    match &thread.request {
        Some(request) => keys.salt().thread_secret(&format!("{CALLS}{}", request.instance)),
        None => keys.salt().thread_secret(thread.id.as_str()),
    }
}

/// Earlier denials of the change under review.
#[derive(Clone, Debug)]
pub struct EarlierDenials {
    /// How many reviews of the change were denied.
    pub times: usize,
    /// The period before this review in which denials count.
    pub within: Duration,
    pub last: Hold,
    pub by: AccountId,
    pub name: String,
    /// The comment of the last denial. The redacted values of that review are masked for everyone except the
    /// author of the comment.
    pub comment: Option<String>,
}

impl Proposals {
    /// Returns whether a node has used up its attempts for an effect. The start and the end of a review both
    /// replace the row of the thread. Therefore two gateways cannot count the same attempts concurrently and
    /// both open a review. Approval requests at the same moment are counted without each other.
    pub(crate) async fn is_effect_exhausted(
        &self,
        keys: &Keys,
        policy: &Policy,
        effect: Option<Digest>,
    ) -> Result<bool> {
        // Requests of people have no effect digest and no limit.
        let (Some(effect), approval) = (effect, policy.approval()) else { return Ok(false) };
        let since = self.core.now().minus(approval.attempts_within());
        // One more than the limit, because a pending review is listed before the ended ones.
        let attempts = self.attempts_at(keys, effect, since, None, approval.attempts().saturating_add(1)).await?;
        Ok(attempts.len() >= approval.attempts() as usize)
    }

    /// Returns the earlier denials of the change under review, as the viewer may read them.
    pub(crate) async fn denied_before(
        &self,
        keys: &Keys,
        hold: &Hold,
        policy: &Policy,
        viewer: &Party,
    ) -> Result<Option<EarlierDenials>> {
        let (Some(effect), approval) = (hold.effect, policy.approval()) else { return Ok(None) };
        let within = approval.attempts_within();
        // Counted back from the opening of this review, so that its page stays the same over time.
        let since = hold.opened_at.minus(within);
        let until = Cursor { due: hold.opened_at.millis(), id: String::new() };
        let attempts = self.attempts_at(keys, effect, since, Some(&until), approval.attempts()).await?;
        let denied = attempts.into_iter().filter(|it| matches!(it.state, HoldState::Denied { .. }));
        let denied: Vec<Hold> = denied.collect();
        let (times, last) = (denied.len(), denied.into_iter().next());
        let Some(last) = last else { return Ok(None) };
        let Some(vote) = last.counted_votes().rfind(|it| it.verdict == VoteVerdict::Deny).cloned() else {
            // A denied review always has the vote that denied it.
            return Err(Error::Broken("a denied review"));
        };
        let comment = match vote.comment {
            Some(words) => Some(self.earlier_comment(keys, &last, viewer, &vote.reviewer, &words).await?),
            None => None,
        };
        Ok(Some(EarlierDenials { times, within, last, by: vote.reviewer, name: vote.name, comment }))
    }

    /// Returns the latest attempts at an effect that ended after `since` without approval, at most `limit`.
    async fn attempts_at(
        &self,
        keys: &Keys,
        effect: Digest,
        since: Timestamp,
        until: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Hold>> {
        let word = SearchWord::Attempted(effect).to_string();
        let (found, _) = self.core.reader(keys).labelled::<Hold>(&word, Direction::Backward, until, limit).await?;
        // A label has no time of the end, so the row decides.
        let is_recent = |it: &Hold| it.state.ended_at().is_some_and(|at| at > since);
        Ok(found.into_iter().map(|it| it.record).filter(is_recent).collect())
    }

    /// Masks a comment. If its states cannot be read, the comment is withheld, so that the page still works.
    async fn earlier_comment(
        &self,
        keys: &Keys,
        hold: &Hold,
        viewer: &Party,
        by: &AccountId,
        words: &str,
    ) -> Result<String> {
        let author = Author::of(self.threads.party_of(keys, &by.into()).await?);
        match self.threads.redacted_comment(keys, hold, viewer, &author, words).await {
            Err(Error::Broken(_) | Error::NotFound(_) | Error::Archive(_) | Error::NoArchives) => {
                Ok(WITHHELD.to_owned())
            }
            masked => masked,
        }
    }
}
