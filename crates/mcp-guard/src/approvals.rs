//! Approval requests, as the guard uses them. Every failure means that the call does not run.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::Verification;
use serde_json::{Map, Value};

/// A tool call that needs an approval.
#[derive(Clone, Debug)]
pub struct AskedCall {
    /// The tool's name at its server.
    pub tool: String,
    pub server: Option<String>,
    pub arguments: Map<String, Value>,
    /// The time to wait for a decision, such as `24h`.
    pub timeout: &'static str,
    /// How the definition of the tool has changed, for reviewers.
    pub change: Option<String>,
}

/// The tools that the policy allows.
#[derive(Clone, Debug, Default)]
pub struct AllowedTools {
    pub names: BTreeSet<String>,
    /// The tools of the same server that the policy names and the list does not have.
    pub missing: Vec<String>,
    /// Whether reviewers decide about calls of tools whose definition has changed. Otherwise they are refused.
    pub holds_changed: bool,
}

/// An approval request.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: String,
    /// The tool's name at its server.
    pub tool: String,
    pub server: Option<String>,
    pub status: ApprovalStatus,
    /// The arguments, as the gateway knows them.
    pub arguments: Map<String, Value>,
    /// Whether the request says that the server has changed the tool's definition.
    pub tool_has_changed: bool,
    /// The reason for the call, as reviewers see it.
    pub reasoning: Option<String>,
    /// The reason of the decision.
    pub note: Option<String>,
    pub usage: ApprovalUse,
    /// Whether the request was made by this call.
    pub is_new: bool,
    /// The page of the pending review.
    pub page: Option<String>,
    pub created_at: String,
    /// The time of the latest step.
    pub updated_at: String,
}

impl Approval {
    pub fn is_used(&self) -> bool {
        self.usage != ApprovalUse::Unused
    }

    /// Returns the change of the tool's definition that reviewers decided about. The guard sends it as the reason.
    pub fn change(&self) -> Option<&String> {
        self.reasoning.as_ref().filter(|_| self.tool_has_changed)
    }
}

/// The use of an approval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApprovalUse {
    Unused,
    /// A guard has used the approval, and has not reported the outcome.
    Used,
    /// The call has ended with this outcome.
    Ended {
        succeeded: bool,
        note: Option<String>,
    },
    /// The lease has ended without an outcome.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApprovalStatus {
    Pending,
    Approved,
    Denied,
    Expired,
    Cancelled,
}

/// An approval that is used up by one call.
#[derive(Clone, Debug)]
pub struct UsedApproval {
    pub approval: Approval,
    /// The time in which the call must run. Afterwards, an administrator must find out its outcome.
    pub lease: Duration,
}

/// The reason why there is no approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalFailure {
    /// The gateway refused the request, with a code and a message.
    Refused { code: String, message: String },
    /// The gateway cannot be reached, or does not answer as a gateway.
    Unavailable,
}

impl ApprovalFailure {
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Unavailable => None,
        }
    }
}

/// The approval requests of one agent instance.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// Asks for an approval, or finds the request of an equal call that waits. The same key again returns the same request.
    async fn ask(&self, key: &str, call: &AskedCall) -> Result<Approval, ApprovalFailure>;

    /// Reads a request, and waits up to that time for its decision. Without a wait it returns at once.
    async fn read(&self, id: &str, wait: Duration) -> Result<Approval, ApprovalFailure>;

    /// Uses an approval.
    async fn consume(&self, approval: &Approval) -> Result<UsedApproval, ApprovalFailure>;

    async fn report(&self, id: &str, succeeded: bool, note: &str) -> Result<(), ApprovalFailure>;

    async fn cancel(&self, id: &str) -> Result<(), ApprovalFailure>;

    /// Returns the tools that the policy allows, of those that are named.
    async fn callable(&self, tools: &[String]) -> Result<AllowedTools, ApprovalFailure>;
}

/// Returns the lease of a reservation. The connection to the gateway protects it, so its signature is not checked.
pub fn lease_of(verification: &str) -> Option<Duration> {
    let token = jws::read::<Verification>(verification, TokenType::Verification).ok()?;
    let claims = token.claims_unverified();
    u64::try_from(claims.exp.checked_sub(claims.iat)?).ok().map(Duration::from_secs)
}
