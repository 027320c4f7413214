//! Asks for the approval of a tool call.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::identity::account::Token;
use countersign_domain::json::canonical::canonical;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::policy::ChangedTools;
use countersign_domain::primitives::id::{FlowId, NodeId, ThreadId, ToolName};
use countersign_domain::threads::approval_request::{
    ApprovalRequest, ApprovalRequestError, CallSharing, Submission, id_of, thread_of,
};
use countersign_domain::threads::thread::{Context, Thread};
use countersign_domain::threads::usage::InvalidUsage;
use countersign_store::record::Stored;
use serde_json::json;

use super::view::{ApprovalRequestView, SubmittedCall, allowed_view};
use super::{ApprovalRequests, MISSING, node_of};
use crate::error::{Error, Result};
use crate::proposals::allowed_call::ProposedCall;
use crate::proposals::request::RATIONALE_CHARS_MAX;
use crate::threads::create::NewThread;

/// The label under which ids are derived. It has spaces, so it is the name of no thread.
pub(super) const IDS: &str = "countersign approval request ids v1";

/// The label under which sessions at MCP servers are bound to their instances.
const SESSIONS: &str = "countersign mcp sessions v1";

/// The response to a request for approval.
#[derive(Clone, Debug)]
pub struct AskedRequest {
    pub view: ApprovalRequestView,
    /// Whether this is its first response.
    pub is_new: bool,
}

/// The tools that the policy lets an instance ask for.
#[derive(Clone, Debug)]
pub struct CallableTools {
    pub callable: Vec<ToolName>,
    /// The tools of the same servers that the policy names and the caller does not. Such a name can be misspelt.
    pub missing: Vec<ToolName>,
    /// The effect of a call of them whose definition has changed.
    pub changed: ChangedTools,
}

impl ApprovalRequests {
    /// Asks for the approval of a tool call. The policy may decide at once. The same key again returns the same request.
    pub async fn ask(
        &self,
        token: &Stored<Token>,
        key: &IdempotencyKey,
        submission: &Submission,
    ) -> Result<AskedRequest> {
        self.ask_as(token, self.request_id(&token.record, key)?, submission, None).await
    }

    /// Asks with the request of this id. Equal calls find the request if it has `sharing`.
    pub(super) async fn ask_as(
        &self,
        token: &Stored<Token>,
        id: String,
        submission: &Submission,
        sharing: Option<CallSharing>,
    ) -> Result<AskedRequest> {
        let keys = self.core.keys()?;
        let (node, flow) = (node_of(token)?, token.record.flow.as_ref().ok_or(MISSING)?);
        let sent = SubmittedCall {
            call: submission.tool_call().map_err(invalid)?,
            reasoning: submission.agent_reasoning.clone(),
        };
        check_reasoning(submission)?;
        let wait = submission.wait().map_err(invalid)?;
        let thread = thread_of(&id).ok_or(Error::Broken("an approval request's id"))?;
        let call = || ProposedCall {
            node: node.clone(),
            tool: sent.call.clone(),
            rationale: submission.agent_reasoning.clone(),
        };
        let digest = submission.digest(&keys.salt().thread_secret(thread.as_str()));
        let find = || self.core.fetch::<Thread>(&keys, thread.as_str());
        let (mut found, mut created) = (find().await?, None);
        if found.is_none() {
            let now = self.core.now();
            let ttl = self.ttl_of(flow, node).await?;
            let request = ApprovalRequest {
                instance: token.record.principal(),
                submission: digest,
                server: submission.server.clone(),
                timeout: submission.timeout.clone(),
                deadline: now.plus(wait.min(ttl)),
                context: submission.context.clone(),
                reasoning: None,
                tool_has_changed: submission.tool_has_changed,
                sharing,
                outcome: None,
            };
            let new = new_thread(flow, &thread);
            if let Some(allowed) = self.proposals.commit_allowed_call(token, &new, &request, call()).await? {
                return Ok(AskedRequest { view: allowed_view(id, request, sent, &allowed), is_new: true });
            }
            // The same request may have been faster.
            found = find().await?;
            if found.is_none() {
                created = Some(self.threads.create_thread_for(token, &new, Some(&request)).await?.transition);
            }
        }
        if let Some(found) = &found
            && self.is_asked(&found.record, &digest).await?
        {
            let own = self.own(&keys, &token.record, &id).await?;
            return Ok(AskedRequest { view: self.view_of(token, own, Some(sent)).await?, is_new: false });
        }
        let parent = created.or(found.map(|it| it.record.head.transition)).ok_or(MISSING)?;
        self.proposals.propose(token, &call().on(thread, parent)).await?;
        let own = self.own(&keys, &token.record, &id).await?;
        Ok(AskedRequest { view: self.view_of(token, own, Some(sent)).await?, is_new: true })
    }

    /// Returns whether the policy has judged the call of a thread. After a crash, the thread can exist without its call.
    async fn is_asked(&self, found: &Thread, submission: &Digest) -> Result<bool> {
        if found.request.as_ref().is_none_or(|it| it.submission != *submission) {
            return Err(ApprovalRequestError::KeyReused.into());
        }
        Ok(self.first_event_of(found).await?.is_some())
    }

    /// Returns the id of the request that an instance names by this key.
    pub fn request_id(&self, token: &Token, key: &IdempotencyKey) -> Result<String> {
        let keys = self.core.keys()?;
        Ok(id_of(&keys.salt().thread_secret(IDS), &token.principal(), key.as_str()))
    }

    /// Returns the mark that binds a session at an MCP server to the instance that began it.
    pub fn session_mark(&self, token: &Token, server: &str, session: &str) -> Result<String> {
        let keys = self.core.keys()?;
        let content = canonical(&json!([token.principal(), server, session]));
        let mark = Digest::keyed(&keys.salt().thread_secret(SESSIONS), Tag::Submission, content.as_bytes());
        Ok(URL_SAFE_NO_PAD.encode(mark.bytes()))
    }

    /// Returns the tools that an instance may ask for, of those that it names.
    pub async fn callable(&self, token: &Stored<Token>, tools: Vec<ToolName>) -> Result<CallableTools> {
        let keys = self.core.keys()?;
        let (node, flow) = (node_of(token)?, token.record.flow.as_ref().ok_or(MISSING)?);
        let policy = self.policies.policy(&keys, self.core.flow(&keys, flow).await?.record.policy).await?;
        let server = |it: &ToolName| it.as_str().split_once(':').map(|it| it.0.to_owned());
        let servers: BTreeSet<_> = tools.iter().map(server).collect();
        let mut missing = policy.named_tools();
        missing.retain(|it| servers.contains(&server(it)) && !tools.contains(it));
        let callable = tools.into_iter().filter(|it| policy.may_call(node, it)).collect();
        Ok(CallableTools { callable, missing: missing.into_iter().collect(), changed: policy.changed_tools() })
    }

    /// Returns the longest time that the policy gives reviewers. Fails if the node may not use an approval, so that no
    /// reviewer decides in vain.
    async fn ttl_of(&self, flow: &FlowId, node: &NodeId) -> Result<std::time::Duration> {
        let keys = self.core.keys()?;
        let policy = self.policies.policy(&keys, self.core.flow(&keys, flow).await?.record.policy).await?;
        match policy.node(node) {
            Some(node) if node.is_writer() => Ok(policy.approval().ttl()),
            Some(_) => Err(Error::Forbidden(
                "the policy does not let this node run approved calls. Add `writer = true` to its `[nodes.NODE]`",
            )),
            None => Err(Error::Forbidden(
                "the active policy has no node of this token. Activate the policy with that node again, or create a \
                 token for another node",
            )),
        }
    }
}

/// Checks the reason before the thread exists. Otherwise the key of a refused request could not be used again.
fn check_reasoning(submission: &Submission) -> Result<()> {
    let Some(text) = &submission.agent_reasoning else { return Ok(()) };
    if !text.trim().is_empty() && text.chars().count() <= RATIONALE_CHARS_MAX {
        return Ok(());
    }
    let why = format!("`agent_reasoning` must have visible text of at most {RATIONALE_CHARS_MAX} characters");
    Err(Error::invalid("/agent_reasoning", why))
}

fn new_thread(flow: &FlowId, thread: &ThreadId) -> NewThread {
    NewThread {
        flow: flow.clone(),
        thread: Some(thread.clone()),
        state: json!({}),
        context: Context::default(),
        episode: None,
    }
}

fn invalid(wrong: InvalidUsage) -> Error {
    Error::invalid(wrong.pointer.as_str(), wrong.detail)
}
