//! Tool calls that the policy allows without approval: their threads are created by the change that commits them.

use std::sync::{Arc, OnceLock};

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::policy::{Judgement, Policy};
use countersign_domain::primitives::id::{NodeId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::approval_request::ApprovalRequest;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::usage::Usage;
use countersign_store::record::Stored;
use serde_json::json;

use super::Proposals;
use super::context::{ProposalContext, identity_of};
use super::outcome::ProposalOutcome;
use super::proposer::Proposer;
use super::request::{Proposal, ProposalKind};
use crate::error::{Error, Result};
use crate::platform::core::ThreadContext;
use crate::threads::create::NewThread;
use crate::threads::statement::JudgedEffect;

/// A tool call that is proposed on a thread of its own.
pub(crate) struct ProposedCall {
    pub(crate) node: NodeId,
    pub(crate) tool: Tool,
    pub(crate) rationale: Option<String>,
}

/// A committed tool call.
pub(crate) struct AllowedCall {
    pub(crate) transition: Digest,
    pub(crate) policy: Arc<Policy>,
    pub(crate) committed_at: Timestamp,
}

impl ProposedCall {
    /// Returns the proposal on the first version of its thread.
    pub(crate) fn on(self, thread: ThreadId, parent: Digest) -> Proposal {
        Proposal {
            thread,
            node: self.node,
            parent,
            ask: ProposalKind::Patch { format: PatchFormat::Merge, patch: json!({}) },
            attempt: 1,
            rationale: self.rationale,
            tool: Some(self.tool),
            usage: Usage::default(),
            step: None,
        }
    }
}

impl Proposals {
    /// Creates the thread of a call and commits the call. Returns `None` and stores nothing if the policy does not commit
    /// the call at once, or after a conflict. The caller then creates the thread and proposes the call.
    pub(crate) async fn commit_allowed_call(
        &self,
        token: &Stored<Token>,
        new: &NewThread,
        request: &ApprovalRequest,
        call: ProposedCall,
    ) -> Result<Option<AllowedCall>> {
        let keys = self.core.keys()?;
        let creation = self.threads.creation(&keys, token, new, Some(request)).await?;
        let (draft, head, thread) = self.threads.draft_thread(&keys, &creation, new, Some(request))?;
        let (head, policy, now) = (&Arc::new(head), &creation.policy, creation.now);
        let proposal = &call.on(creation.id, head.entry.transition);
        let by = Proposer::Token(&creation.token);
        let asking = ProposalContext {
            keys: &keys,
            by,
            proposal,
            identity: identity_of(&keys, by, proposal),
            standing: &ThreadContext {
                gateway: Arc::new(creation.gateway),
                flow: Arc::new(creation.flow),
                thread: Arc::new(thread),
                origin: None,
            },
            head,
            policy,
            trying: None,
            given: OnceLock::new(),
        };
        let Judgement::Commit { after, named, warnings, .. } = self.judge_proposal(&asking).await? else {
            return Ok(None);
        };
        let effected = JudgedEffect { after, named: named.into_iter().collect(), warnings };
        match self.commit_in(draft, now, &asking, effected, None).await {
            Ok(ProposalOutcome::Committed { transition, .. }) => {
                Ok(Some(AllowedCall { transition, policy: Arc::clone(policy), committed_at: now }))
            }
            Ok(ProposalOutcome::Held { .. } | ProposalOutcome::Rejected(_)) => Err(Error::Broken("a commit")),
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
