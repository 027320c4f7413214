//! The gateway's approval requests, as the guard uses them. Every failure means that the call does not run.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::random;
use countersign_domain::primitives::secret::Secret;
use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::Url;

use crate::cli::CliError;
use crate::cli::mcp::pipe;

/// The time for which a request is repeated if the gateway cannot be reached.
const RETRIED_FOR: Duration = Duration::from_secs(20);

/// The pause before a request is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// The longest wait of one request. The gateway limits it too.
const WAIT_SECS_MAX: u64 = 25;

/// An approval request.
#[derive(Clone, Debug, Deserialize)]
pub struct Approval {
    pub id: String,
    pub status: String,
    pub arguments: Map<String, Value>,
    pub decision: Option<ApprovalDecision>,
    pub consumption: Option<Value>,
}

/// The decision on an approval request.
#[derive(Clone, Debug, Deserialize)]
pub struct ApprovalDecision {
    pub note: Option<String>,
}

/// The reason why there is no approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalFailure {
    /// The gateway refused the request, with a code and a message.
    Refused { code: String, message: String },
    /// The gateway cannot be reached, or does not answer as a gateway.
    Unavailable,
}

/// The tools that the policy allows.
#[derive(Deserialize)]
struct CallableTools {
    callable: BTreeSet<String>,
}

pub struct Approvals {
    client: Client,
    base: Url,
    tools: Url,
}

impl Approvals {
    /// Prepares the calls. `base` is the URL of the approval requests, and `tools` that of the list of tools.
    pub fn new(base: Url, tools: Url, token: &Secret<String>) -> Result<Self, CliError> {
        Ok(Self { client: pipe::client_of(&base, token)?, base, tools })
    }

    pub async fn ask(&self, key: &str, body: &Value) -> Result<Approval, ApprovalFailure> {
        self.send(Method::POST, "/requests", Some(key), Some(body)).await
    }

    /// Reads a request, and waits up to that time for its decision.
    pub async fn read(&self, id: &str, wait: Duration) -> Result<Approval, ApprovalFailure> {
        let secs = wait.as_secs().clamp(1, WAIT_SECS_MAX);
        self.send(Method::GET, &format!("/requests/{id}?wait={secs}s"), None, None).await
    }

    /// Uses an approval. A key of its own makes the repetition of this one request safe.
    pub async fn consume(&self, id: &str) -> Result<Approval, ApprovalFailure> {
        let key = random::uuid_v4().to_string();
        self.send(Method::POST, &format!("/requests/{id}/consume"), Some(&key), None).await
    }

    pub async fn report(&self, id: &str, succeeded: bool, note: &str) -> Result<Approval, ApprovalFailure> {
        let body = json!({"status": if succeeded { "succeeded" } else { "failed" }, "note": note});
        self.send(Method::POST, &format!("/requests/{id}/outcome"), None, Some(&body)).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Approval, ApprovalFailure> {
        self.send(Method::DELETE, &format!("/requests/{id}"), None, None).await
    }

    /// Returns the tools that the policy allows, of those that are named.
    pub async fn callable(&self, tools: &[String]) -> Result<BTreeSet<String>, ApprovalFailure> {
        let body = json!({"tools": tools});
        let answer = self.exchange(&Method::POST, self.tools.as_str(), None, Some(&body)).await?;
        let told: CallableTools = read(answer.0, &answer.1)?;
        Ok(told.callable)
    }

    /// Sends a request about one approval.
    async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Approval, ApprovalFailure> {
        let url = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let (status, body) = self.exchange(&method, &url, key, body).await?;
        read(status, &body)
    }

    /// Sends a request, again if the gateway could not be reached. Each request can be repeated safely.
    async fn exchange(
        &self,
        method: &Method,
        url: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Vec<u8>), ApprovalFailure> {
        let begun = SystemClock.instant();
        loop {
            let mut request = self.client.request(method.clone(), url);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Some(body) = body {
                request = request.body(body.to_string());
            }
            let answer = match request.send().await {
                Ok(answer) => Some((answer.status(), answer.bytes().await.ok())),
                Err(_) => None,
            };
            match answer {
                Some((status, Some(body))) if !is_passing(status) => return Ok((status, body.into())),
                // The response was lost, or the gateway cannot answer now.
                _ if begun.elapsed() >= RETRIED_FOR => return Err(ApprovalFailure::Unavailable),
                _ => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

fn read<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ApprovalFailure> {
    if status.is_success() {
        return serde_json::from_slice(body).map_err(|_| ApprovalFailure::Unavailable);
    }
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let member = |name: &str| told["error"][name].as_str().map(str::to_owned);
    match (member("code"), member("message")) {
        (Some(code), Some(message)) => Err(ApprovalFailure::Refused { code, message }),
        _ => Err(ApprovalFailure::Unavailable),
    }
}
