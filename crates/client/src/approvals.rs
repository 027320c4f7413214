//! Approval requests: approvals of single tool calls.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::chain::receipt::Verification;
use countersign_domain::keys::PublicKeys;
use countersign_domain::threads::approval_request::CallStatus;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::{Client, now};
use crate::error::ClientError;
use crate::exchange::{GatewayAnswer, GatewayRequest, Patience};
use crate::mismatch::{AnswerMismatch, claims_of, must};

/// The path of the approval requests.
const REQUESTS: &str = "/aap/v1/requests";

/// The longest wait of one request. The gateway limits it too.
const WAIT_SECS_MAX: u64 = 25;

/// A call that needs an approval.
#[derive(Clone, Debug)]
pub struct CallToApprove<'a> {
    pub tool: &'a str,
    pub server: Option<&'a str>,
    pub arguments: &'a Map<String, Value>,
    /// The time for the decision, such as `10m`.
    pub timeout: &'a str,
    /// The reason, for reviewers.
    pub reasoning: Option<&'a str>,
    pub definition: ToolState,
}

/// Whether the server has changed the definition of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolState {
    Unchanged,
    Changed,
}

/// Whether equal calls share a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestSharing {
    /// The key names the request.
    ByKey,
    /// Equal calls of the instance find the request, also without its key.
    ByCall,
}

/// An approval request.
#[derive(Clone, Debug, Deserialize)]
pub struct ToolApproval {
    pub id: String,
    pub tool: String,
    pub server: Option<String>,
    pub status: ToolApprovalStatus,
    pub arguments: Map<String, Value>,
    pub agent_reasoning: Option<String>,
    pub created_at: String,
    pub decision: Option<Decision>,
    pub consumption: Option<Consumption>,
    /// The page of the pending review.
    #[serde(skip)]
    pub page: Option<String>,
    /// The receipt of an approval by reviewers.
    #[serde(skip)]
    pub receipt: Option<String>,
    /// Whether the lease of a used approval has ended without an outcome.
    #[serde(skip)]
    pub outcome_is_unknown: bool,
    /// Whether the request says that the server has changed the tool's definition.
    #[serde(skip)]
    pub tool_has_changed: bool,
    /// Whether this answer created the request.
    #[serde(skip)]
    pub is_new: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolApprovalStatus {
    Pending,
    Approved,
    Denied,
    Expired,
    Cancelled,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Decision {
    /// The reason, from a reviewer or the policy.
    pub note: Option<String>,
    pub decided_at: String,
}

/// The use of an approval.
#[derive(Clone, Debug, Deserialize)]
pub struct Consumption {
    pub consumed_at: String,
    pub outcome: Option<ReportedOutcome>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ReportedOutcome {
    pub status: CallStatus,
    pub note: Option<String>,
    pub reported_at: String,
}

/// A used approval. Run the call once, now, with exactly the arguments of the request.
#[derive(Clone, Debug)]
pub struct ConsumedApproval {
    pub request: ToolApproval,
    pub claims: Verification,
    /// The signed reservation.
    pub verification: String,
}

/// The tools that the policy allows.
#[derive(Clone, Debug, Deserialize)]
pub struct AllowedToolNames {
    pub callable: BTreeSet<String>,
    /// The tools of the same servers that the policy names and the request does not.
    pub missing: Vec<String>,
    /// The effect of a call of a tool whose definition has changed: `refuse` or `hold`.
    pub changed: String,
}

impl ConsumedApproval {
    /// Returns how long the call may run.
    pub fn lease(&self) -> Duration {
        let secs = self.claims.exp.saturating_sub(self.claims.iat);
        Duration::from_secs(secs.try_into().unwrap_or_default())
    }
}

impl Client {
    /// Asks for the approval of a call. The same key again returns the same request. The policy may decide at once.
    pub async fn ask(
        &self,
        key: &str,
        call: &CallToApprove<'_>,
        sharing: RequestSharing,
    ) -> Result<ToolApproval, ClientError> {
        let mut body = json!({"tool": call.tool, "arguments": call.arguments, "timeout": call.timeout});
        if let Some(server) = call.server {
            body["server"] = json!(server);
        }
        if let Some(reasoning) = call.reasoning {
            body["agent_reasoning"] = json!(reasoning);
        }
        if call.definition == ToolState::Changed {
            body["tool_has_changed"] = json!(true);
        }
        let path = match sharing {
            RequestSharing::ByKey => REQUESTS.to_owned(),
            RequestSharing::ByCall => format!("{REQUESTS}?share=true"),
        };
        let request = GatewayRequest::new(Method::POST, path).key(key).body(body);
        let found = read(&self.exchange(&request, Patience::Short).await?)?;
        must(found.tool == call.tool && found.server.as_deref() == call.server, AnswerMismatch::Tool)?;
        must(found.arguments == *call.arguments, AnswerMismatch::Arguments)?;
        Ok(found)
    }

    /// Reads a request, and waits up to that time for its decision. Without a wait it returns at once.
    pub async fn request(&self, id: &str, wait: Duration) -> Result<ToolApproval, ClientError> {
        let path = match wait.is_zero() {
            true => format!("{REQUESTS}/{id}"),
            false => format!("{REQUESTS}/{id}?wait={}s", wait.as_secs().clamp(1, WAIT_SECS_MAX)),
        };
        self.about(id, GatewayRequest::new(Method::GET, path), Patience::Long).await
    }

    /// Cancels a pending request.
    pub async fn cancel(&self, id: &str) -> Result<ToolApproval, ClientError> {
        self.about(id, GatewayRequest::new(Method::DELETE, format!("{REQUESTS}/{id}")), Patience::Short).await
    }

    /// Uses an approval, right before the call. If this fails, do not run the call. The same key again gets the same answer
    /// while the lease is valid. Compare the arguments with those of your own call.
    pub async fn consume(
        &self,
        id: &str,
        key: &str,
        keys: Option<&PublicKeys>,
    ) -> Result<ConsumedApproval, ClientError> {
        let request = GatewayRequest::new(Method::POST, format!("{REQUESTS}/{id}/consume")).key(key);
        let answer = self.exchange(&request, Patience::Short).await?;
        let request = read(&answer)?;
        must(request.id == id, AnswerMismatch::Request)?;
        if request.status != ToolApprovalStatus::Approved || request.consumption.is_none() {
            return Err(ClientError::UnexpectedAnswer("the approval was not used".to_owned()));
        }
        let verification = answer.header("countersign-verification").unwrap_or_default().to_owned();
        let claims = claims_of(&verification, &format!("request:{id}"), keys)?;
        // `exp` has whole seconds, so the last second counts.
        must(now().seconds() <= claims.exp, AnswerMismatch::Expired)?;
        Ok(ConsumedApproval { request, claims, verification })
    }

    /// Reports the outcome of a call. Repeats the report for a while.
    pub async fn report(&self, id: &str, status: CallStatus, note: Option<&str>) -> Result<ToolApproval, ClientError> {
        let name = if status == CallStatus::Succeeded { "succeeded" } else { "failed" };
        let mut body = json!({"status": name});
        if let Some(note) = note {
            body["note"] = json!(note);
        }
        let request = GatewayRequest::new(Method::POST, format!("{REQUESTS}/{id}/outcome")).body(body);
        self.about(id, request, Patience::Long).await
    }

    /// Returns those of the named tools that the policy allows.
    pub async fn callable_tools(&self, tools: &[String]) -> Result<AllowedToolNames, ClientError> {
        let request = GatewayRequest::new(Method::POST, "/v1/callable-tools").body(json!({"tools": tools}));
        self.exchange(&request, Patience::Short).await?.read()
    }

    async fn about(&self, id: &str, request: GatewayRequest, patience: Patience) -> Result<ToolApproval, ClientError> {
        let found = read(&self.exchange(&request, patience).await?)?;
        must(found.id == id, AnswerMismatch::Request)?;
        Ok(found)
    }
}

fn read(answer: &GatewayAnswer) -> Result<ToolApproval, ClientError> {
    let header = |name| answer.header(name).map(str::to_owned);
    Ok(ToolApproval {
        page: header("countersign-review"),
        receipt: header("countersign-receipt"),
        outcome_is_unknown: answer.header("countersign-outcome") == Some("unknown"),
        tool_has_changed: answer.header("countersign-tool") == Some("changed"),
        is_new: answer.status == 201,
        ..answer.read()?
    })
}
