//! The approval requests of a gateway, by HTTP.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::random;
use countersign_domain::primitives::secret::Secret;
use countersign_mcp_guard::approvals::{
    AllowedTools, Approval, ApprovalFailure, ApprovalStatus, ApprovalUse, Approvals, AskedCall, UsedApproval, lease_of,
};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::Url;

use crate::cli::CliError;
use crate::cli::mcp::pipe;

/// The time for which a request is repeated if its response is lost, or the gateway cannot answer now.
const RETRIED_FOR: Duration = Duration::from_secs(20);

/// The time for which a request is repeated if there is no connection. A gateway restarts in it.
const CONNECTED_IN: Duration = Duration::from_secs(3);

/// The pause before a request is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// The longest wait of one request. The gateway limits it too.
const WAIT_SECS_MAX: u64 = 25;

/// The header with the signed reservation of a used approval.
const VERIFICATION: &str = "countersign-verification";

/// The header with the page of a pending review.
const REVIEW: &str = "countersign-review";

/// The header of an approval whose lease has ended without an outcome.
const OUTCOME: &str = "countersign-outcome";

/// The header of a request for a tool whose definition has changed.
const TOOL: &str = "countersign-tool";

/// An approval request, as the protocol writes it.
#[derive(Deserialize)]
struct WireApproval {
    id: String,
    tool: String,
    server: Option<String>,
    status: String,
    arguments: Map<String, Value>,
    agent_reasoning: Option<String>,
    created_at: String,
    decision: Option<WireDecision>,
    consumption: Option<WireConsumption>,
}

#[derive(Deserialize)]
struct WireDecision {
    note: Option<String>,
    decided_at: String,
}

#[derive(Deserialize)]
struct WireConsumption {
    consumed_at: String,
    outcome: Option<WireOutcome>,
}

#[derive(Deserialize)]
struct WireOutcome {
    status: String,
    note: Option<String>,
    reported_at: String,
}

impl WireApproval {
    fn approval(self, answer: &GatewayAnswer) -> Result<Approval, ApprovalFailure> {
        let mut updated_at = self.created_at.clone();
        let note = self.decision.and_then(|it| {
            updated_at = it.decided_at;
            it.note
        });
        let usage = match self.consumption {
            None => ApprovalUse::Unused,
            Some(WireConsumption { outcome: Some(outcome), .. }) => {
                updated_at = outcome.reported_at;
                ApprovalUse::Ended { succeeded: outcome.status == "succeeded", note: outcome.note }
            }
            Some(WireConsumption { consumed_at, outcome: None }) => {
                updated_at = consumed_at;
                if answer.outcome_is_unknown { ApprovalUse::Unknown } else { ApprovalUse::Used }
            }
        };
        Ok(Approval {
            is_new: answer.status == StatusCode::CREATED,
            page: answer.page.clone(),
            status: ApprovalStatus::read(&self.status).ok_or(ApprovalFailure::Unavailable)?,
            id: self.id,
            tool: self.tool,
            server: self.server,
            arguments: self.arguments,
            tool_has_changed: answer.tool_has_changed,
            reasoning: self.agent_reasoning,
            note,
            usage,
            created_at: self.created_at,
            updated_at,
        })
    }
}

/// A complete response of the gateway.
struct GatewayAnswer {
    status: StatusCode,
    /// The signed reservation of a used approval.
    verification: Option<String>,
    /// The page of a pending review.
    page: Option<String>,
    /// Whether the lease of a used approval has ended without an outcome.
    outcome_is_unknown: bool,
    /// Whether the request says that the server has changed the tool's definition.
    tool_has_changed: bool,
    body: Vec<u8>,
}

/// The tools that the policy allows.
#[derive(Deserialize)]
struct WireTools {
    callable: BTreeSet<String>,
    missing: Vec<String>,
    changed: String,
}

/// The approval requests of a token at a gateway.
#[derive(Clone)]
pub struct GatewayApprovals {
    client: Client,
    base: Url,
    tools: Url,
}

#[async_trait]
impl Approvals for GatewayApprovals {
    async fn ask(&self, key: &str, call: &AskedCall) -> Result<Approval, ApprovalFailure> {
        let mut body = json!({"tool": call.tool, "arguments": call.arguments, "timeout": call.timeout});
        if let Some(server) = &call.server {
            body["server"] = json!(server);
        }
        if let Some(change) = &call.change {
            body["tool_has_changed"] = json!(true);
            body["agent_reasoning"] = json!(change);
        }
        self.send(Method::POST, "/requests?share=true", Some(key), Some(&body)).await
    }

    async fn read(&self, id: &str, wait: Duration) -> Result<Approval, ApprovalFailure> {
        let path = match wait.is_zero() {
            true => format!("/requests/{id}"),
            false => format!("/requests/{id}?wait={}s", wait.as_secs().clamp(1, WAIT_SECS_MAX)),
        };
        self.send(Method::GET, &path, None, None).await
    }

    async fn consume(&self, id: &str) -> Result<UsedApproval, ApprovalFailure> {
        // A key of its own makes the repetition of this one request safe.
        let key = random::uuid_v4().to_string();
        let answer =
            self.exchange(&Method::POST, &self.url(&format!("/requests/{id}/consume")), Some(&key), None).await?;
        let lease = answer.verification.as_deref().and_then(lease_of);
        let approval = read::<WireApproval>(answer.status, &answer.body)?.approval(&answer)?;
        Ok(UsedApproval { approval, lease: lease.ok_or(ApprovalFailure::Unavailable)? })
    }

    async fn report(&self, id: &str, succeeded: bool, note: &str) -> Result<(), ApprovalFailure> {
        let body = json!({"status": if succeeded { "succeeded" } else { "failed" }, "note": note});
        self.send(Method::POST, &format!("/requests/{id}/outcome"), None, Some(&body)).await.map(|_| ())
    }

    async fn cancel(&self, id: &str) -> Result<(), ApprovalFailure> {
        self.send(Method::DELETE, &format!("/requests/{id}"), None, None).await.map(|_| ())
    }

    async fn callable(&self, tools: &[String]) -> Result<AllowedTools, ApprovalFailure> {
        let body = json!({"tools": tools});
        let answer = self.exchange(&Method::POST, self.tools.as_str(), None, Some(&body)).await?;
        let told: WireTools = read(answer.status, &answer.body)?;
        Ok(AllowedTools { names: told.callable, missing: told.missing, holds_changed: told.changed == "hold" })
    }
}

impl GatewayApprovals {
    /// Prepares the calls. `base` is the URL of the approval requests, and `tools` that of the list of tools.
    pub fn new(base: Url, tools: Url, token: &Secret<String>) -> Result<Self, CliError> {
        Ok(Self { client: pipe::client_of(&base, token)?, base, tools })
    }

    /// Sends a request about one approval.
    async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Approval, ApprovalFailure> {
        let answer = self.exchange(&method, &self.url(path), key, body).await?;
        read::<WireApproval>(answer.status, &answer.body)?.approval(&answer)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// Checks the connection and the token.
    pub async fn check(&self) -> Result<(), ApprovalFailure> {
        self.callable(&[]).await.map(|_| ())
    }

    /// Sends a request, again if the gateway could not be reached. Each request can be repeated safely.
    async fn exchange(
        &self,
        method: &Method,
        url: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<GatewayAnswer, ApprovalFailure> {
        // A call waits, or has run. Then a gateway that restarts is worth the time.
        let is_patient = method == Method::GET || url.ends_with("/outcome");
        let begun = SystemClock.instant();
        loop {
            let mut request = self.client.request(method.clone(), url);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Some(body) = body {
                request = request.body(body.to_string());
            }
            let retried_for = match whole(request).await {
                Ok(answer) if !is_passing(answer.status) => return Ok(answer),
                Err(error) if error.is_connect() && !is_patient => CONNECTED_IN,
                _ => RETRIED_FOR,
            };
            if begun.elapsed() >= retried_for {
                return Err(ApprovalFailure::Unavailable);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

async fn whole(request: RequestBuilder) -> reqwest::Result<GatewayAnswer> {
    let answer = request.send().await?;
    let header = |name| answer.headers().get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
    let (verification, page) = (header(VERIFICATION), header(REVIEW));
    let outcome_is_unknown = header(OUTCOME).as_deref() == Some("unknown");
    let tool_has_changed = header(TOOL).as_deref() == Some("changed");
    Ok(GatewayAnswer {
        status: answer.status(),
        verification,
        page,
        outcome_is_unknown,
        tool_has_changed,
        body: answer.bytes().await?.into(),
    })
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

fn read<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ApprovalFailure> {
    if status.is_success() {
        return serde_json::from_slice(body).map_err(|_| ApprovalFailure::Unavailable);
    }
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |it: &Value| it.as_str().map(str::to_owned);
    // A problem has other members than an error of the protocol.
    let code = text(&told["error"]["code"]).or_else(|| text(&told["code"]));
    match (code, text(&told["error"]["message"]).or_else(|| text(&told["detail"]))) {
        (Some(code), Some(message)) => Err(ApprovalFailure::Refused { code, message }),
        _ => Err(ApprovalFailure::Unavailable),
    }
}
