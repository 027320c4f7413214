//! Creates threads and reads them.

use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::episode::goal::{Episode, EpisodeTerms};
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::keys::{Keys, ThreadSecret};
use countersign_domain::policy::{Policy, project};
use countersign_domain::primitives::id::{FlowId, NodeId, PrincipalId, ReviewId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::approval_request::ApprovalRequest;
use countersign_domain::threads::branch::Branch;
use countersign_domain::threads::flow::Flow;
use countersign_domain::threads::flow::Gateway;
use countersign_domain::threads::thread::{Context, Thread, ThreadStatusCode};
use countersign_domain::threads::transition::{ProposalIdentity, patch_digest};
use countersign_domain::threads::usage::InvalidUsage;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::platform::rejection_body::result_error;
use crate::platform::retry::retrying;
use crate::threads::Threads;
use crate::threads::commit::head_of;
use crate::threads::first_version::FirstVersion;
use crate::threads::version::Version;

#[derive(Clone, Debug)]
pub struct NewThread {
    pub flow: FlowId,
    /// The name that the host application chose, if any.
    pub thread: Option<ThreadId>,
    pub state: Value,
    pub context: Context,
    /// The terms of the episode, if the thread is one.
    pub episode: Option<EpisodeTerms>,
}

#[derive(Clone, Debug)]
pub struct CreatedThread {
    pub thread: ThreadId,
    pub flow: FlowId,
    /// The digest of version 0.
    pub transition: Digest,
    /// The root of version 0.
    pub state_root: Digest,
    /// The signed entry of version 0.
    pub entry: String,
}

#[derive(Clone, Debug)]
pub struct ThreadOverview {
    pub thread: Thread,
    pub status: ThreadStatusCode,
    /// The review that holds the thread.
    pub review: Option<ReviewId>,
}

#[derive(Clone, Debug)]
pub struct StateView {
    pub version: u64,
    pub transition: Digest,
    pub state: Value,
}

/// The rows and the name on which the creation of a thread relies.
pub(crate) struct ThreadCreation {
    pub(crate) token: Stored<Token>,
    pub(crate) flow: Stored<Flow>,
    pub(crate) gateway: Stored<Gateway>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) id: ThreadId,
    /// Whether the first write requires its own approval.
    owes: bool,
    pub(crate) now: Timestamp,
}

impl Threads {
    /// Creates a thread. The same request for the same name again gets the same response.
    pub async fn create_thread(&self, token: &Stored<Token>, new: &NewThread) -> Result<CreatedThread> {
        self.create_thread_for(token, new, None).await
    }

    /// Creates a thread, for an approval request if there is one.
    pub(crate) async fn create_thread_for(
        &self,
        token: &Stored<Token>,
        new: &NewThread,
        request: Option<&ApprovalRequest>,
    ) -> Result<CreatedThread> {
        retrying!({
            let keys = self.core.keys()?;
            let creation = self.creation(&keys, token, new, request).await?;
            // A repeated request gets the same response, so that a client can retry.
            if let Some(made) = self.made_before(&keys, &creation.token, &creation.id, new, request).await? {
                return Ok(made);
            }
            let (mut draft, head, _) = self.draft_thread(&keys, &creation, new, request)?;
            let made = created(&head, new.flow.clone());
            self.core.store_response(&mut draft, &keys, &made)?;
            self.core.commit(draft.finish()).await?;
            // Cached only after the commit, so that the cache never contains a head that failed to commit.
            self.cache_head(head);
            Ok(made)
        })
    }

    /// Checks that a thread may be created, and returns what its creation relies on.
    pub(crate) async fn creation(
        &self,
        keys: &Keys,
        token: &Stored<Token>,
        new: &NewThread,
        request: Option<&ApprovalRequest>,
    ) -> Result<ThreadCreation> {
        if !token.record.of_flow(&new.flow) {
            return Err(Error::Forbidden("this token belongs to another flow. Use a token of the thread's flow"));
        }
        check_terms(new)?;
        // The token may have been revoked while the request waited.
        let token = self.identity.token_still(keys, token).await?;
        let flow = self.core.flow(keys, &new.flow).await?;
        let gateway = self.core.gateway(keys).await?;
        if gateway.record.halt.proposing || flow.record.halt.proposing {
            return Err(Error::Halted);
        }
        let policy = self.policies.policy(keys, flow.record.policy).await?;
        let judged = self.policies.judge_initial_state(token.record.principal().as_str(), &policy, &new.state).await?;
        let initial = judged
            .map_err(|violations| Error::Rejected(violations.iter().map(result_error).collect::<Vec<_>>().into()))?;
        // The time is read last, because the judgement may have waited in the fair queue.
        let now = self.core.now();
        let id = name_of(request, new, now)?;
        Ok(ThreadCreation { token, flow, gateway, policy, id, owes: initial.owes(), now })
    }

    /// Returns the change that creates a thread, with its head and its row.
    pub(crate) fn draft_thread<'k>(
        &self,
        keys: &'k Keys,
        creation: &ThreadCreation,
        new: &NewThread,
        request: Option<&ApprovalRequest>,
    ) -> Result<(Draft<'k>, Version, Stored<Thread>)> {
        let ThreadCreation { token, flow, gateway, policy, id, owes, now } = creation;
        let principal = token.record.principal();
        let first = FirstVersion {
            policy,
            identity: first_identity(&self.secret(keys, id), id, &principal, &new.state),
            thread: id.clone(),
            node: None,
            token: &token.record,
            state: &new.state,
            patch: json!({}),
            fork: None,
            owes: *owes,
            now: *now,
        };
        let mut draft = Draft::new(keys.row(), *now);
        // The commit fails if the token was revoked, the policy was replaced or a halt began in the meantime.
        draft.require_unchanged(token).require_unchanged(flow).require_unchanged(gateway);
        let (head, thread) =
            self.insert_thread(&mut draft, keys, first, |first| thread_of(first, new, request, *now))?;
        Ok((draft, head, thread))
    }

    pub(crate) async fn made_before(
        &self,
        keys: &Keys,
        token: &Stored<Token>,
        id: &ThreadId,
        new: &NewThread,
        request: Option<&ApprovalRequest>,
    ) -> Result<Option<CreatedThread>> {
        let Some(thread) = self.core.fetch::<Thread>(keys, id.as_str()).await? else { return Ok(None) };
        let first = self.version(keys, id, 0).await?;
        // The whole request is compared: a different one with the same name must not get this response.
        let same = first.state == new.state
            && first.statement.flow == new.flow
            && first.statement.principal == token.record.principal()
            && thread.record.context == new.context
            && submission_of(thread.record.request.as_deref()) == submission_of(request)
            && thread.record.episode.as_ref().map(|it| &it.terms) == new.episode.as_ref();
        if same {
            Ok(Some(created(&first, new.flow.clone())))
        } else {
            Err(Error::Exists("a different thread has this name. Choose another name"))
        }
    }

    pub async fn flow_of(&self, thread: &ThreadId) -> Result<FlowId> {
        let keys = self.core.keys()?;
        Ok(self.core.thread(&keys, thread).await?.record.flow)
    }

    pub async fn overview(&self, thread: &ThreadId) -> Result<ThreadOverview> {
        let keys = self.core.keys()?;
        let thread = self.core.thread(&keys, thread).await?;
        // The worker may not have recorded a passed deadline yet, and the status must not show an ended review as
        // pending.
        let thread = self.expire_hold_if_due(&keys, thread).await?.record;
        let status = thread.status(self.core.now());
        let review = thread.hold.clone();
        Ok(ThreadOverview { thread, status, review })
    }

    /// Returns what a node may read of a version, or of the head without a version. The chain is verified
    /// first. For an earlier version, both the active policy and the version's own policy must allow the
    /// read.
    pub async fn state_view(&self, thread: &ThreadId, node: &NodeId, version: Option<u64>) -> Result<StateView> {
        let keys = self.core.keys()?;
        let stored = self.core.thread(&keys, thread).await?;
        let head = self.head(&keys, &stored.record).await?;
        let version = match version {
            Some(it) if it > head.entry.version => return Err(Error::NotFound("version")),
            Some(it) if it < head.entry.version => Arc::new(self.version(&keys, thread, it).await?),
            _ => head,
        };
        let flow: Stored<Flow> = self.core.flow(&keys, &stored.record.flow).await?;
        let policy = self.policies.policy(&keys, flow.record.policy).await?;
        let mut state = project(&policy, node, &version.state);
        if version.entry.version < stored.record.head.version && version.entry.policy != policy.digest() {
            let own = self.policies.policy(&keys, version.entry.policy).await?;
            state = project(&own, node, &state);
        }
        Ok(StateView { version: version.entry.version, transition: version.entry.transition, state })
    }

    /// Returns the parent thread, on which every change of the branch depends. Fails if the parent has moved on,
    /// because the branch can then never be joined.
    pub(crate) async fn origin_of(&self, keys: &Keys, branch: &Branch) -> Result<Stored<Thread>> {
        let origin = self.core.thread(keys, &branch.thread).await?;
        if origin.record.closed.is_some() {
            return Err(Error::Closed);
        }
        if origin.record.head.transition != branch.transition {
            return Err(Error::WrongState("the parent thread has a newer head: fork that head"));
        }
        Ok(origin)
    }
}

fn thread_of(first: &Version, new: &NewThread, request: Option<&ApprovalRequest>, now: Timestamp) -> Thread {
    Thread {
        id: first.entry.thread.clone(),
        flow: new.flow.clone(),
        branch: None,
        branches: 0,
        context: new.context.clone(),
        created_at: now,
        head: head_of(&first.entry),
        fence: 0,
        hold: None,
        closed: None,
        unresolved: Default::default(),
        authors: Default::default(),
        written_version: 0,
        taken_back: false,
        lineage: Default::default(),
        holds_opened: Default::default(),
        violations: Default::default(),
        committed_nodes: Default::default(),
        spent: Default::default(),
        episode: new.episode.clone().map(Episode::new),
        request: request.cloned().map(Box::new),
        gone: Default::default(),
        last_event: None,
    }
}

fn check_terms(new: &NewThread) -> Result<()> {
    super::host_context::check(&new.context)?;
    let wrong = |it: InvalidUsage| Error::invalid(&format!("/episode{}", it.pointer), it.detail);
    new.episode.as_ref().map_or(Ok(()), |terms| terms.check().map_err(wrong))
}

/// Returns the name of a new thread. No host can use the name of an approval request's thread.
fn name_of(request: Option<&ApprovalRequest>, new: &NewThread, now: Timestamp) -> Result<ThreadId> {
    match (request, &new.thread) {
        (Some(_), Some(reserved)) => Ok(reserved.clone()),
        _ => super::names::name_for(&new.flow, new.thread.as_ref(), now),
    }
}

fn submission_of(request: Option<&ApprovalRequest>) -> Option<Digest> {
    request.map(|it| it.submission)
}

fn created(first: &Version, flow: FlowId) -> CreatedThread {
    CreatedThread {
        thread: first.entry.thread.clone(),
        flow,
        transition: first.entry.transition,
        state_root: first.tree.root(),
        entry: first.token.clone(),
    }
}

fn first_identity(secret: &ThreadSecret, thread: &ThreadId, principal: &PrincipalId, state: &Value) -> Digest {
    let identity = ProposalIdentity {
        thread,
        parent: None,
        node: None,
        principal,
        kind: TransitionType::Create,
        format: PatchFormat::Merge,
        patch: patch_digest(secret, state),
        attempt: 1,
        tool: None,
        step: None,
    };
    identity.digest(secret)
}
